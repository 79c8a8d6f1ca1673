# SPDX-License-Identifier: Apache-2.0
"""Avro as Arrow, both ways: every type in every nesting to fastavro, ClickHouse, DuckDB and Polars, and
back; schema evolution beside fastavro's; what is refused."""
import datetime
import decimal
import json
import pathlib
import struct
import subprocess
import sys
import time

import chdb
import fastavro
import polars
import pyarrow as pa
import pyarrow.ipc
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import columns  # noqa: E402
import sluice  # noqa: E402
from test_avro_command import PLAIN, SCHEMA, everything  # noqa: E402

CODECS = {"none": "null", "deflate": "deflate", "snappy": "snappy", "zstd": "zstandard"}


def convert(*words, check=0):
    done = subprocess.run([sluice.BINARY, "convert", "--force", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == check, done.stderr
    return done


def write_arrow(path, table):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def read_arrow(path):
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


def through_avro(tmp_path, table, codec="deflate"):
    write_arrow(tmp_path / "in.arrow", table)
    convert("--compression", codec, tmp_path / "in.arrow", tmp_path / "a.avro")
    convert(tmp_path / "a.avro", tmp_path / "out.arrow")
    return read_arrow(tmp_path / "out.arrow")


def weakened(kind, values):
    """What Avro has no type for comes back as the nearest: numbers without their unit."""
    if isinstance(values, list):
        return [weakened(kind, v) for v in values]
    if isinstance(values, dict):
        return {k: weakened(kind, v) for k, v in values.items()}
    if kind == "time64[ns]" and isinstance(values, tuple):
        return values[1]
    return decimal.Decimal(values) if kind == "uint64" and isinstance(values, int) else values


@pytest.mark.parametrize("codec", CODECS)
def test_every_type_there_and_back(tmp_path, codec):
    table = columns.table_of(columns.types())
    got = through_avro(tmp_path, table, codec)
    assert got.column_names == table.column_names
    for name in table.column_names:
        assert columns.canonical(got[name]) == weakened(name.split("/")[0], columns.canonical(table[name])), name
    with open(tmp_path / "a.avro", "rb") as file:
        assert fastavro.reader(file).codec == CODECS[codec] if codec in ("none", "deflate") else True


def test_fields_keep_their_ids(tmp_path):
    def field(name, kind, number, nullable=True):
        return pa.field(name, kind, nullable, metadata={"PARQUET:field_id": str(number)})
    kinds = [field("a b", pa.list_(field("element", pa.struct([field("x", pa.int32(), 3)]), 2)), 1),
             field("m", pa.map_(field("key", pa.string(), 5, False), field("value", pa.int64(), 6)), 4),
             field("odd", pa.map_(field("key", pa.int32(), 8, False), field("value", pa.bool_(), 9, False)), 7, False)]
    table = pa.table([[[{"x": 1}, None], None], [[("k", 1)], []], [[(5, True)], []]], schema=pa.schema(kinds))
    got = through_avro(tmp_path, table)
    assert got.schema.remove_metadata() == table.schema and got.to_pydict() == table.to_pydict()
    for ours, theirs in zip(got.schema, table.schema):
        assert ours.metadata == theirs.metadata
    schema = json.loads(subprocess.run([sluice.BINARY, "avro", "schema", "--json", tmp_path / "a.avro"],
                                       capture_output=True, text=True, check=True).stdout)
    assert [(f["name"], f.get("iceberg-field-name"), f["field-id"]) for f in schema["fields"]] == \
        [("a_x20b", "a b", 1), ("m", None, 4), ("odd", None, 7)]


# ---- others read what we write ----

def simple(name):
    """Column names that Avro has as they are."""
    return "".join(c if c.isalnum() else "_" for c in name)


def witness_table():
    kinds = [k for k in columns.types() if k not in ("null",)]
    table = columns.table_of(kinds)
    return table.rename_columns([simple(n) for n in table.column_names]), \
        {simple(n): n.split("/")[0] for n in table.column_names}


def python_values(kind, values):
    """canonical() as fastavro gives it."""
    utc = datetime.timezone.utc
    if isinstance(values, list):
        return [python_values(kind, v) for v in values]
    if isinstance(values, dict):
        return {k: python_values(kind, v) for k, v in values.items()}
    if not isinstance(values, tuple):
        if kind.startswith("float") and isinstance(values, bytes):
            return repr(struct.unpack("<d", values)[0])
        return decimal.Decimal(values) if kind == "uint64" and isinstance(values, int) else values
    word, number = values
    return (word, number)


def fastavro_values(kind, value, map_names=("key", "value")):
    if isinstance(value, list):
        return [fastavro_values(kind, v) for v in value]
    if isinstance(value, dict):
        return {k: fastavro_values(kind, v) for k, v in value.items()}
    if isinstance(value, float):
        return repr(value)
    if hasattr(value, "bytes") and kind == "uuid":
        return value.bytes
    epoch = datetime.datetime(1970, 1, 1)
    if isinstance(value, datetime.datetime):
        word = "instant" if value.tzinfo else "local"
        return word, (value.replace(tzinfo=None) - epoch) // datetime.timedelta(microseconds=1) * 1000
    if isinstance(value, datetime.date):
        return "date", (value - epoch.date()).days
    if isinstance(value, datetime.time):
        return "time", ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    return value


def test_fastavro_reads_every_type(tmp_path):
    """Years beyond Python's and nanoseconds, which it has no values for, stand in the tests above."""
    table, kinds = witness_table()
    write_arrow(tmp_path / "in.arrow", table)
    convert("--compression", "none", tmp_path / "in.arrow", tmp_path / "a.avro")
    with open(tmp_path / "a.avro", "rb") as file:
        rows = list(fastavro.reader(file))
    assert len(rows) == table.num_rows
    for name, kind in kinds.items():
        if "ns" in kind or kind == "date32":
            continue
        want = python_values(kind, columns.canonical(table[name]))
        got = [fastavro_values(kind, row[name]) for row in rows]
        if "_map_" in name:  # Avro's maps are dicts
            got = [None if v is None else [{"key": k, "value": x} for k, x in v.items()] for v in got]
        assert got == want, name


@pytest.mark.parametrize("codec", CODECS)
def test_other_programs_read_it(tmp_path, codec):
    """Zstandard is unknown to DuckDB and Polars."""
    table = pa.table({"i": pa.array([1, None, 3], pa.int64()), "s": ["a", None, "é"], "f": [1.5, None, -0.0],
                      "l": [[1, None], None, []], "b": [b"\xff", b"", None], "t": [True, False, None],
                      "r": [{"x": 1, "y": "z"}, {"x": None, "y": None}, {"x": 3, "y": ""}]})
    write_arrow(tmp_path / "in.arrow", table)
    convert("--compression", codec, tmp_path / "in.arrow", tmp_path / "a.avro")
    if codec != "zstd":
        assert sluice.duckdb_connection().execute(f"SELECT * FROM read_avro('{tmp_path / 'a.avro'}')").to_arrow_table().to_pylist() == table.to_pylist()
        assert polars.read_avro(tmp_path / "a.avro").to_dicts() == table.to_pylist()
    lines = str(chdb.query(f"SELECT i, s, f, t, hex(b) AS b FROM file('{tmp_path / 'a.avro'}', Avro)", "JSONEachRow"))
    assert [json.loads(line) for line in lines.splitlines()] == [
        {**{k: row[k] for k in "isft"}, "b": None if row["b"] is None else row["b"].hex().upper()}
        for row in table.to_pylist()]


# ---- what others write ----

@pytest.mark.parametrize("codec", CODECS.values())
def test_files_of_fastavro(tmp_path, tool, codec):
    """All but the column that is a record within itself and the union of several types, which stands below."""
    left_out = ("either", "inner")
    schema = {**SCHEMA, "fields": [f for f in SCHEMA["fields"] if f["name"] not in left_out]}
    _, records = everything("null")
    data = [{k: v for k, v in r.items() if k not in left_out} for r in records]
    plain = json.loads(json.dumps({**PLAIN, "fields": [f for f in PLAIN["fields"] if f["name"] not in left_out]}))
    from test_avro_command import container, encoded
    (tmp_path / "a.avro").write_bytes(container(schema, [(len(data), encoded(fastavro.parse_schema(plain), data))], codec))
    tool("avro_read", tmp_path / "a.avro", tmp_path / "out.arrows", "rows=7")
    with pa.OSFile(str(tmp_path / "out.arrows")) as file:
        got = pa.ipc.open_stream(file).read_all()
    assert got.num_rows == len(data) and got.column("t_us").type == pa.time64("us")
    assert got.column("dec").type == pa.decimal128(30, 4) and got.column("uuid_fixed").type == pa.uuid()
    for field in schema["fields"]:
        name, values = field["name"], columns.canonical(got[field["name"]])
        for row, value in zip(data, values):
            want = row[name]
            if name in ("float", "double"):
                want = struct.pack("<d", struct.unpack("<f", struct.pack("<f", want))[0] if name == "float" else want)
            elif name == "map":
                want = [{"key": k, "value": [{"key": x, "value": struct.pack("<d", y)} for x, y in v.items()]}
                        for k, v in want.items()]
            elif isinstance(value, tuple):
                scale = {"date": 1, "t_ms": 10**6, "t_us": 10**3}.get(name) or \
                    (10**3 if "micros" in name or name == "iceberg_local" else 10**6 if "millis" in name else 1)
                value, want = value[1], want * scale
            elif isinstance(value, decimal.Decimal):
                want = decimal.Decimal(int.from_bytes(want, "big", signed=True)).scaleb(
                    -4 if name == "dec" else 0, columns.WIDE)
            assert value == want, name


EVOLUTIONS = [  # the writer's type, its values, Arrow's wanted type, what comes
    ("int", [1, -2**31], pa.int64(), [1, -2**31]), ("int", [1, -7], pa.float32(), [1.0, -7.0]),
    ("int", [2**31 - 1], pa.float64(), [2.0**31 - 1]), ("long", [2**53], pa.float64(), [2.0**53]),
    ("float", [1.5], pa.float64(), [1.5]), ("string", ["é"], pa.binary(), ["é".encode()]),
    ("bytes", [b"x"], pa.string(), ["x"]), (["null", "int"], [None, 4], pa.int64(), [None, 4]),
    ({"type": "array", "items": "int"}, [[1, 2], []], pa.list_(pa.int64()), [[1, 2], []]),
    ({"type": "map", "values": "int"}, [{"k": 1}], pa.map_(pa.string(), pa.int64()), [[("k", 1)]]),
]


@pytest.mark.parametrize("kind, values, wanted, come", EVOLUTIONS)
def test_types_grow(tmp_path, tool, kind, values, wanted, come):
    schema = {"type": "record", "name": "r", "fields": [{"name": "gone", "type": "string"}, {"name": "c", "type": kind}]}
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, schema, [{"gone": "x", "c": v} for v in values])
    wants = pa.schema([pa.field("new", pa.int32()), pa.field("c", wanted)])
    assert read_as(tmp_path, tool, wants).to_pydict() == {"new": [None] * len(values), "c": come}


def read_as(tmp_path, tool, wants, *words, ok=True):
    with pa.OSFile(str(tmp_path / "wants"), "wb") as file, pa.ipc.new_stream(file, wants):
        pass
    done = tool("avro_read", tmp_path / "a.avro", tmp_path / "out", f"schema={tmp_path / 'wants'}", *words, ok=ok)
    if not ok:
        return done
    with pa.OSFile(str(tmp_path / "out")) as file:
        return pa.ipc.open_stream(file).read_all()


def test_fields_by_id(tmp_path, tool):
    inner = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int", "field-id": 3},
                                                           {"name": "y", "type": "int", "field-id": 4}]}
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "field-id": 1},
                                                        {"name": "s", "type": ["null", inner], "field-id": 2}]}
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, schema, [{"a": 1, "s": {"x": 5, "y": 6}}, {"a": 2, "s": None}])

    def field(name, kind, number, nullable=True):
        return pa.field(name, kind, nullable, metadata={"PARQUET:field_id": str(number)})
    wants = pa.schema([field("t", pa.struct([field("z", pa.int64(), 4), field("n", pa.string(), 9)]), 2),
                       field("s", pa.int64(), 1)])
    assert read_as(tmp_path, tool, wants, "ids").to_pydict() == {"t": [{"z": 6, "n": None}, None], "s": [1, 2]}
    required = read_as(tmp_path, tool, pa.schema([field("q", pa.int32(), 8, False)]), "ids", ok=False)
    assert required.returncode == 2 and "column q: required, and not in the file" in required.stderr
    other = read_as(tmp_path, tool, pa.schema([field("a", pa.string(), 1)]), "ids", ok=False)
    assert other.returncode == 2 and "column a: another type" in other.stderr


# ---- what is refused ----

def multiplied(levels):
    """A record of two records of two records: few types, and 2 to the power of the levels columns."""
    kind = {"type": "record", "name": f"n{levels}", "fields": [{"name": "x", "type": "int"}]}
    for level in range(levels - 1, -1, -1):
        kind = {"type": "record", "name": f"n{level}", "fields": [
            {"name": "a", "type": kind}, {"name": "b", "type": f"n{level + 1}"}]}
    return kind


ITSELF = {"type": "record", "name": "n", "fields": [{"name": "next", "type": ["null", "n"]}]}
REFUSED = [
    (ITSELF, 6, "column next: a record within itself"),
    ({"type": "array", "items": {"type": "record", "name": "n", "fields": [
        {"name": "branches", "type": {"type": "array", "items": "n"}}]}}, 6, "a record within itself"),
    (["null", "int", ITSELF], 6, "column next: a record within itself"),
    ([{"type": "fixed", "name": f"f{i}", "size": 1} for i in range(257)], 6, "column c: a union of more than 256 types"),
    (multiplied(28), 5, "more than 16384 columns"),
]


@pytest.mark.parametrize("kind, code, message", REFUSED)
def test_schemas_that_are_refused(tmp_path, kind, code, message):
    from test_avro_command import container
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]}
    (tmp_path / "a.avro").write_bytes(container(schema, []))
    assert message in convert(tmp_path / "a.avro", tmp_path / "out.arrow", check=code).stderr
    assert not (tmp_path / "out.arrow").exists()


def test_many_names_take_no_quadratic_time(tmp_path):
    """20,000 types with names, and each referred to again."""
    from test_avro_command import container
    count = 10000
    schema = {"type": "record", "name": "r", "namespace": "some.space", "fields": [
        *({"name": f"a{i}", "type": {"type": "fixed", "name": f"f{i}", "size": 1}} for i in range(count)),
        *({"name": f"b{i}", "type": ["null", f"f{i}"]} for i in range(count))]}
    (tmp_path / "a.avro").write_bytes(container(schema, [(1, bytes(2 * count))]))
    began = time.monotonic()
    assert "more than 16384 columns" in convert(tmp_path / "a.avro", tmp_path / "out.arrow", check=5).stderr
    assert time.monotonic() - began < 10


# ---- unions ----

def test_unions_become_members(tmp_path):
    one = {"type": "record", "name": "one", "fields": [{"name": "x", "type": "int"}]}
    two = {"type": "record", "name": "two", "fields": [{"name": "x", "type": ["null", "long"]}]}
    schema = {"type": "record", "name": "r", "fields": [
        {"name": "c", "type": ["long", "null", "string", {"type": "array", "items": ["int", "string"]}]},
        {"name": "d", "type": [one, two], "field-id": 7}, {"name": "e", "type": {"type": "map", "values": ["one", "two"]}}]}
    rows = [{"c": 5, "d": ("one", {"x": 1}), "e": {"k": ("two", {"x": 4})}},
            {"c": "text", "d": ("two", {"x": None}), "e": {}},
            {"c": None, "d": ("two", {"x": 2}), "e": {"k": ("one", {"x": 4}), "l": ("two", {"x": None})}},
            {"c": [1, "b"], "d": ("one", {"x": 3}), "e": {}}]
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, schema, rows)
    for ending in ("arrow", "parquet", "avro"):
        convert(tmp_path / "a.avro", tmp_path / f"out.{ending}")
        convert(tmp_path / f"out.{ending}", tmp_path / "back.arrow")
        got = read_arrow(tmp_path / "back.arrow")

        def member(i, value, count=2):
            return {f"member{at}": value if at == i else None for at in range(count)}
        assert got["c"].to_pylist() == [member(0, 5, 3), member(1, "text", 3), None,
                                        member(2, [member(0, 1), member(1, "b")], 3)]
        assert got["d"].to_pylist() == [member(0, {"x": 1}), member(1, {"x": None}), member(1, {"x": 2}), member(0, {"x": 3})]
        assert [dict(v) for v in got["e"].to_pylist()] == [
            {"k": member(1, {"x": 4})}, {}, {"k": member(0, {"x": 4}), "l": member(1, {"x": None})}, {}]
    # Spark's Avro reader names them so: member0 for the first type that is not null.
    assert not got.schema.field("d").nullable and got.schema.field("c").nullable


def test_members_are_chosen_by_name(tmp_path, tool):
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": ["null", "int", "string"]}]}
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, schema, [{"c": 5}, {"c": "t"}, {"c": None}])
    wants = pa.schema([("c", pa.struct([("member1", pa.string()), ("other", pa.int32()), ("member0", pa.int64())]))])
    assert read_as(tmp_path, tool, wants)["c"].to_pylist() == [
        {"member1": None, "other": None, "member0": 5}, {"member1": "t", "other": None, "member0": None}, None]


def test_columns_that_are_refused(tmp_path):
    write_arrow(tmp_path / "a.arrow", pa.table({"c": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}))
    assert "column c" in convert(tmp_path / "a.arrow", tmp_path / "out.avro", check=6).stderr
    write_arrow(tmp_path / "a.arrow", pa.table([[1], [2]], names=["c", "c"]))
    assert "two columns named c" in convert(tmp_path / "a.arrow", tmp_path / "out.avro", check=2).stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.arrow"]


def test_bad_text_is_refused(tmp_path):
    from test_avro_command import container
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": "string"}]}
    (tmp_path / "a.avro").write_bytes(container(schema, [(1, b"\x04\xff\xfe")]))
    assert "column c: text that is no UTF-8" in convert(tmp_path / "a.avro", tmp_path / "out.arrow", check=2).stderr
