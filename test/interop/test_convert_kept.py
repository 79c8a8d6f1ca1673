# SPDX-License-Identifier: Apache-2.0
"""What docs/convert.md says that a conversion keeps, changes and refuses."""
import datetime
import decimal
import math
import pathlib
import subprocess
import sys

import duckdb
import numpy
import pyarrow as pa
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

NAN = float("nan")


def convert(*words, check=0):
    done = subprocess.run([sluice.BINARY, "convert", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == check, done.stderr
    return done


def same(ours, expected):
    return len(ours) == len(expected) and all(
        a == b or isinstance(a, float) and math.isnan(a) and math.isnan(b) for a, b in zip(ours, expected))


TEXT = [  # lines of CSV, lines of NDJSON or None, the type, the values
    (["true", "false"], ["true", "false"], pa.bool_(), [True, False]),
    (["1", "-9223372036854775808"], ["1", "-9223372036854775808"], pa.int64(), [1, -2**63]),
    (["1", "18446744073709551615"], ["1", "18446744073709551615"], pa.uint64(), [1, 2**64 - 1]),
    (["1", "1.5", "NaN", "-Infinity"], ["1", "1.5", '"NaN"', '"-Infinity"'], pa.float64(), [1, 1.5, NAN, -math.inf]),
    (["9007199254740993", "1.5"], ["9007199254740993", "1.5"], pa.string(), ["9007199254740993", "1.5"]),
    (["3.14159265358979323846"], ["3.14159265358979323846"], pa.string(), ["3.14159265358979323846"]),
    (["-1", "18446744073709551615"], ["-1", "18446744073709551615"], pa.string(), ["-1", "18446744073709551615"]),
    (["007"], None, pa.string(), ["007"]),
    (["2024-02-29"], None, pa.date32(), [datetime.date(2024, 2, 29)]),
    (["2024-02-29T23:59:59.25"], None, pa.timestamp("us"), [datetime.datetime(2024, 2, 29, 23, 59, 59, 250000)]),
    (["1970-01-01T01:00:00+01:00"], None, pa.timestamp("us", "UTC"), [datetime.datetime.fromtimestamp(0, datetime.timezone.utc)]),
    (["", '""', "x"], None, pa.string(), [None, "", "x"]),
    (None, ["[1]", "[]"], pa.list_(pa.int64()), [[1], []]),
    (None, ['{"b":1}', "{}"], pa.struct([("b", pa.int64())]), [{"b": 1}, {"b": None}]),
    (None, ["1", '"x"', '{"k": [2]}'], pa.string(), ["1", "x", '{"k": [2]}']),
]


@pytest.mark.parametrize("given", TEXT, ids=lambda given: str((given[0] or given[1])[0]))
def test_types_of_text(tmp_path, given):
    csv, ndjson, kind, values = given
    lines = {"csv": csv and ["a", *csv], "ndjson": ndjson and [f'{{"a":{value}}}' for value in ndjson]}
    for ending in [ending for ending in lines if lines[ending]]:
        path = tmp_path / f"in.{ending}"
        path.write_text("".join(line + "\n" for line in lines[ending]))
        convert(path, tmp_path / f"{ending}.arrow")
        back = pa.ipc.open_file(tmp_path / f"{ending}.arrow").read_all()["a"]
        assert back.type == kind or pa.types.is_list(kind) and back.type.value_type == kind.value_type, ending
        assert same(back.to_pylist(), values), ending


def write(path, rows):
    with pa.ipc.new_file(path, rows.schema) as file:
        file.write_table(rows)


@pytest.mark.parametrize("at", ("top", "struct", "list"))
def test_two_columns_of_one_name(tmp_path, at):
    """JSON would lose one; CSV gives it another name when it is read."""
    twice = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    rows = {"top": pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"]),
            "struct": pa.table({"s": twice}),
            "list": pa.table({"l": pa.ListArray.from_arrays([0, 1, 2], twice)})}[at]
    write(tmp_path / "in.arrow", rows)
    for ending in ("ndjson", "avro"):
        done = convert(tmp_path / "in.arrow", tmp_path / f"out.{ending}", check=2)
        assert "two columns named a" in done.stderr and not (tmp_path / f"out.{ending}").exists()
    if at == "top":
        convert(tmp_path / "in.arrow", tmp_path / "out.csv")
        convert(tmp_path / "out.csv", tmp_path / "back.arrow")
        assert pa.ipc.open_file(tmp_path / "back.arrow").read_all().to_pydict() == {"a": [1, 2], "a_2": [3, 4]}


# ---- from Arrow into other formats: each line of the tables in docs/convert.md ----

UTC, EPOCH = datetime.timezone.utc, datetime.datetime(1970, 1, 1)
DAY, HALF = datetime.date(2024, 2, 29), decimal.Decimal("1.50")
PARTS = {"months": 1, "days": 2, "nanoseconds": 3000000}
LONG = "12345678901234567.89"


def counts(kind, value=1):
    return pa.array([value], pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


def names(column, *more):
    return pa.Table.from_arrays([column, *more], names=["a"] * (1 + len(more)))


INSTANT = counts(pa.timestamp("us", "Europe/Berlin"))
SECONDS, TIME = counts(pa.timestamp("s")), counts(pa.time32("s"))
DATE64, DURATION = pa.array([DAY], pa.date64()), counts(pa.duration("s"))
LARGE, VIEW = pa.array(["x"], pa.large_string()), pa.array(["x"], pa.string_view())
LARGE_LIST, LIST_OF_2 = pa.array([[1]], pa.large_list(pa.int32())), pa.array([[1, 2]], pa.list_(pa.int32(), 2))
DICTIONARY = pa.array(["x"]).dictionary_encode()
INTERVAL = pa.array([(1, 2, 3000000)], pa.month_day_nano_interval())
BELOW = pa.array([decimal.Decimal("100")], pa.decimal128(5, -2))
MEMBERLESS = pa.array([{}], pa.struct([]))
SCHEMA_PAIR = pa.table({"a": [1]}).replace_schema_metadata({"k": "v"})
FIELD_PAIR = pa.Table.from_arrays([pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"})]))
REQUIRED = pa.Table.from_arrays([pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)]))
KEPT, DROPPED = {b"k": b"v"}, {}

# What: [(given, what it is when it comes back)], which is (type, value), an exit code, or metadata.
COMMON = {
    "instant with another zone than UTC": [(INSTANT, (pa.timestamp("us", "UTC"), EPOCH.replace(microsecond=1, tzinfo=UTC)))],
    "timestamp or time in seconds": [(SECONDS, (pa.timestamp("ms"), EPOCH.replace(second=1))),
                                     (TIME, (pa.time32("ms"), datetime.time(0, 0, 1)))],
    "date in milliseconds": [(DATE64, (pa.date32(), DAY))],
    "duration": [(DURATION, (pa.int64(), 1))],
    "large text and views, large lists and such of a fixed size": [
        (LARGE, (pa.string(), "x")), (VIEW, (pa.string(), "x")),
        (LARGE_LIST, (pa.list_(pa.field("element", pa.int32())), [1])),
        (LIST_OF_2, (pa.list_(pa.field("element", pa.int32())), [1, 2]))],
    "dictionary": [(DICTIONARY, (pa.string(), "x"))],
    "metadata of columns": [(FIELD_PAIR, DROPPED)],
}
REFUSED = {
    "interval with a part below zero, or with parts of a millisecond": [
        (pa.array([value], pa.month_day_nano_interval()), 2) for value in ((-1, 2, 3000000), (1, 2, 3))],
    "decimal with a scale below zero": [(BELOW, 2)],
    "struct without members": [(MEMBERLESS, 2)],
    "file without columns": [(pa.table({}), 2)],
    "bytes of width 0 (by the reader of Arrow)": [(pa.array([b""], pa.binary(0)), 6)],
}
WIDE = [pa.array([HALF], pa.decimal256(9, 2)), pa.array([HALF], pa.decimal32(9, 2)), pa.array([HALF], pa.decimal64(9, 2))]
LIST_VIEW, NUMBERS = pa.array([[1]], pa.list_view(pa.int32())), pa.array([7]).dictionary_encode()
OPAQUE = pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "kind", "seller"), pa.array([b"x"]))
ELEMENTS = pa.list_(pa.field("element", pa.int32()))
BARE_PARQUET = COMMON | REFUSED | {
    "null": [(pa.nulls(1), (pa.int32(), None))],
    "metadata of the schema": [(SCHEMA_PAIR, KEPT)],
    "list view": [(LIST_VIEW, (ELEMENTS, [1]))],
    "decimal wider than its digits, or of 32 or 64 bits": [(column, (pa.decimal128(9, 2), HALF)) for column in WIDE],
    "dictionary of text or bytes": COMMON["dictionary"],
    "other dictionary": [(NUMBERS, (pa.int64(), 7))],
    "extension types other than UUID and JSON": [(OPAQUE, (pa.binary(), b"x"))],
}
del BARE_PARQUET["dictionary"]
SAME = ("instant with another zone than UTC", "timestamp or time in seconds", "date in milliseconds", "duration",
        "large text and views, large lists and such of a fixed size",
        "decimal wider than its digits, or of 32 or 64 bits", "dictionary of text or bytes",
        "extension types other than UUID and JSON")
PARQUET = BARE_PARQUET | {what: [(column, (column.type, column[0].as_py())) for column, _ in BARE_PARQUET[what]] for what in SAME} | {
    "list view": [(LIST_VIEW, (pa.list_(pa.int32()), [1]))],
    "metadata of columns": [(FIELD_PAIR, KEPT)],
}
AVRO = COMMON | {
    "int8, int16, uint8, uint16": [(pa.array([1], kind), (pa.int32(), 1))
                                   for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())],
    "uint32": [(pa.array([2**32 - 1], pa.uint32()), (pa.int64(), 2**32 - 1))],
    "uint64": [(pa.array([2**64 - 1], pa.uint64()), (pa.decimal128(20, 0), decimal.Decimal(2**64 - 1)))],
    "float16": [(pa.array([numpy.float16(1.5)], pa.float16()), (pa.float32(), 1.5))],
    "time in nanoseconds": [(counts(pa.time64("ns")), (pa.int64(), 1))],
    "metadata of the schema": [(SCHEMA_PAIR, DROPPED)],
    "interval": [(INTERVAL, 6)],
    "decimal with a scale below zero": [(BELOW, 6)],
    "two columns of one name": [(names(pa.array([1]), pa.array([2])), 2)],
}
DECIMAL, LOST = pa.array([HALF], pa.decimal128(9, 2)), pa.array([decimal.Decimal(LONG)], pa.decimal128(30, 2))
MAP, PAIRS = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), pa.array([[(3, 1)]], pa.map_(pa.int32(), pa.int32()))
UUID = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16))], pa.binary(16)))
UUID_TEXT, JSON_INTERVAL = "00010203-0405-0607-0809-0a0b0c0d0e0f", '{"months":1,"days":2,"nanoseconds":3000000}'
INTS = pa.list_(pa.field("element", pa.int64()))


def text(value):
    return pa.string(), value


BOTH = {
    "integers": [(pa.array([1], pa.int8()), (pa.int64(), 1)), (pa.array([2**64 - 1], pa.uint64()), (pa.uint64(), 2**64 - 1))],
    "float16, float": [(pa.array([numpy.float16(1.5)], pa.float16()), (pa.float64(), 1.5)),
                       (pa.array([1.5], pa.float32()), (pa.float64(), 1.5))],
    "decimal": [(DECIMAL, (pa.float64(), 1.5))],
    "decimal with digits that a double would lose": [(LOST, text(LONG))],
    "timestamp with parts of a microsecond": [(counts(pa.timestamp("ns")), text("1970-01-01T00:00:00.000000001"))],
    "time": [(TIME, text("00:00:01"))],
    "duration": [(DURATION, (pa.int64(), 1))],
    "bytes": [(pa.array([b"abc"]), text("YWJj"))],
    "UUID": [(UUID, text(UUID_TEXT))],
    "column without nulls": [(REQUIRED, (pa.int64(), 1))],
    "metadata of the schema": [(SCHEMA_PAIR, DROPPED)],
    "metadata of columns": [(FIELD_PAIR, DROPPED)],
}
CSV = BOTH | {
    "date": [(pa.array([DAY]), (pa.date32(), DAY))],
    "timestamp": [(SECONDS, (pa.timestamp("us"), EPOCH.replace(second=1)))],
    "instant with another zone than UTC": COMMON["instant with another zone than UTC"],
    "null": [(pa.nulls(1), text(None))],
    "list": [(pa.array([[1]]), text("[1]"))],
    "struct": [(pa.array([{"b": 1}]), text('{"b":1}'))],
    "map with text as keys": [(MAP, text('{"k":1}'))],
    "map with other keys": [(PAIRS, text("[[3,1]]"))],
    "interval": [(INTERVAL, text(JSON_INTERVAL))],
    "struct without members": [(MEMBERLESS, 6)],
    "two columns of one name": [(names(pa.array([1]), pa.array([2])), ["a", "a_2"])],
}
NDJSON = BOTH | {
    "date": [(pa.array([DAY]), text("2024-02-29"))],
    "timestamp": [(SECONDS, text("1970-01-01T00:00:01"))],
    "instant with another zone than UTC": [(INSTANT, text("1970-01-01T00:00:00.000001Z"))],
    "null": [(pa.nulls(1), (pa.null(), None))],
    "list": [(pa.array([[1]]), (INTS, [1]))],
    "struct": [(pa.array([{"b": 1}]), (pa.struct([("b", pa.int64())]), {"b": 1}))],
    "map with text as keys": [(MAP, (pa.struct([("k", pa.int64())]), {"k": 1}))],
    "map with other keys": [(PAIRS, (pa.list_(pa.field("element", INTS)), [[3, 1]]))],
    "interval": [(INTERVAL, (pa.struct([(part, pa.int64()) for part in PARTS]), PARTS))],
    "struct without members": [(MEMBERLESS, text("{}"))],
    "two columns of one name": [(names(pa.array([1]), pa.array([2])), 2)],
}
CLAIMS = {"parquet": ("Into Parquet", PARQUET), "bare.parquet": ("Into Parquet", BARE_PARQUET), "avro": ("Into Avro", AVRO),
          "csv": ("Into CSV and NDJSON, and back", CSV), "ndjson": ("Into CSV and NDJSON, and back", NDJSON)}
CASES = [(ending, what) for ending, (_, claims) in CLAIMS.items() for what in claims]


@pytest.mark.parametrize("ending", CLAIMS)
def test_page_has_these_lines(ending):
    title, claims = CLAIMS[ending]
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/convert.md").read_text()
    part = page.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.split("\n|---", 1)[1].splitlines()[1:] if line.startswith("|")]
    said = {row[0]: row[2] if ending in ("ndjson", "bare.parquet") else row[1] for row in rows}
    assert set(said) == set(claims)
    for what, cell in said.items():
        codes = {expected for _, expected in claims[what] if isinstance(expected, int)}
        assert codes == ({int(cell.split()[-1])} if cell.startswith("refused") else set()), what


@pytest.mark.parametrize("ending,what", CASES)
def test_line_of_the_page(tmp_path, ending, what):
    for number, (given, expected) in enumerate(CLAIMS[ending][1][what]):
        rows = given if isinstance(given, pa.Table) else pa.table({"a": given})
        write(tmp_path / "in.arrow", rows)
        out, back = tmp_path / f"out{number}.{ending}", tmp_path / f"back{number}.arrow"
        if isinstance(expected, int):
            convert(tmp_path / "in.arrow", out, check=expected)
            assert not out.exists()
            continue
        convert(tmp_path / "in.arrow", out, *(["--no-arrow-schema"] if ending == "bare.parquet" else []))
        convert(out, back)
        table = pa.ipc.open_file(back).read_all()
        if isinstance(expected, list):
            assert table.column_names == expected
        elif isinstance(expected, dict):
            assert {**(table.schema.metadata or {}), **(table.schema.field(0).metadata or {})} == expected
        else:
            assert (table.schema.field(0).type, table.column(0).to_pylist()) == (expected[0], [expected[1]])
            assert table.schema.field(0).nullable


@pytest.mark.parametrize("place", (0, 4), ids=("months", "days"))
def test_intervals_beyond_arrow(tmp_path, place):
    """Parquet's parts have no sign, Arrow's have."""
    path, parts = tmp_path / "in.parquet", (7).to_bytes(4, "little") + (9).to_bytes(4, "little") + bytes(4)
    duckdb.sql(f"copy (select interval '7 months 9 days' as a) to '{path}' (format parquet, compression uncompressed)")
    whole = path.read_bytes()
    assert parts in whole
    convert(path, tmp_path / "whole.arrow")
    changed = parts[:place + 3] + b"\x80" + parts[place + 4:]
    path.write_bytes(whole.replace(parts, changed))
    refused = convert(path, tmp_path / "out.arrow", check=2)
    assert "column a" in refused.stderr and not (tmp_path / "out.arrow").exists()
