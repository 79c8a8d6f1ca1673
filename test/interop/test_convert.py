# SPDX-License-Identifier: Apache-2.0
"""sluice convert: every Arrow type to Parquet with each codec and back, read by pyarrow, DuckDB and Polars;
what cannot be said is refused, and no half output is left."""
import datetime
import decimal
import json
import os
import random
import pathlib
import subprocess
import sys
import uuid

import duckdb
import numpy
import polars
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

ROWS, WIDE = 700, decimal.Context(prec=90)
# The build with sanitizers, where it stands beside the other.
ASAN = sluice.BINARY.parents[4] / "asan/src/app/cmd/sluice"
CAREFUL = ASAN if ASAN.exists() else sluice.BINARY


def convert(*words, check=0):
    done = subprocess.run([sluice.BINARY, "convert", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == check, done.stderr
    return done


def table(seed=5):
    rnd = random.Random(seed)

    def column(kind, make):
        return pa.array([None if rnd.random() < .2 else make() for _ in range(ROWS)], kind)

    def counts(kind, bound, null=.2):
        return pa.array([None if rnd.random() < null else rnd.randrange(*bound) for _ in range(ROWS)],
                        pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind)

    columns = {}
    for bits in (8, 16, 32, 64):
        columns[f"i{bits}"] = column(getattr(pa, f"int{bits}")(), lambda: rnd.randrange(-2**(bits - 1), 2**(bits - 1)))
        columns[f"u{bits}"] = column(getattr(pa, f"uint{bits}")(), lambda: rnd.randrange(2**bits))
    columns["half"] = column(pa.float16(), lambda: numpy.float16(rnd.choice([1.5, 65504, 1e-7, float("inf")])))
    columns["float"] = column(pa.float32(), rnd.random)
    columns["double"] = column(pa.float64(), lambda: rnd.gauss(0, 1e300))
    for precision, scale in ((1, 0), (5, 2), (9, 0), (12, 4), (18, 18), (20, 3), (38, 10), (60, 5)):
        kind = (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
        columns[f"decimal{precision}"] = column(kind, lambda: decimal.Decimal(
            rnd.randrange(-10**precision + 1, 10**precision)).scaleb(-scale, WIDE))
    day = datetime.date(1900, 1, 1)
    columns["date"] = column(pa.date32(), lambda: day + datetime.timedelta(rnd.randrange(90000)))
    columns["date64"] = column(pa.date64(), lambda: day + datetime.timedelta(rnd.randrange(90000)))
    for unit, a_day in (("s", 86400), ("ms", 86400 * 10**3), ("us", 86400 * 10**6), ("ns", 86400 * 10**9)):
        columns[f"time {unit}"] = counts((pa.time32 if unit in ("s", "ms") else pa.time64)(unit), (a_day,))
        for zone in (None, "UTC", "Europe/Berlin"):
            columns[f"timestamp {unit} {zone}"] = counts(pa.timestamp(unit, zone), (-10**9, 10**10))
    columns["bool"] = column(pa.bool_(), lambda: rnd.random() < .5)
    columns["text"] = column(pa.string(), lambda: "x" * rnd.randrange(20) + "é")
    columns["large text"] = column(pa.large_string(), lambda: str(rnd.randrange(50)))
    columns["text view"] = column(pa.string_view(), lambda: "v" * rnd.randrange(30))
    columns["bytes"] = column(pa.binary(), lambda: rnd.randbytes(rnd.randrange(9)))
    columns["fixed"] = column(pa.binary(5), lambda: rnd.randbytes(5))
    columns["dictionary"] = column(pa.string(), lambda: rnd.choice("abc")).dictionary_encode()
    columns["dictionary with null"] = pa.DictionaryArray.from_arrays(
        pa.array([rnd.randrange(3) for _ in range(ROWS)], pa.int8()), pa.array([7, None, 9], pa.int16()))
    columns["null"] = pa.nulls(ROWS)
    columns["list"] = column(pa.list_(pa.int8()), lambda: [rnd.choice([None, 1, -5])] * rnd.randrange(4))
    columns["large list"] = column(pa.large_list(pa.decimal128(20, 1)), lambda: [decimal.Decimal("1.5")] * rnd.randrange(3))
    columns["list of 2"] = column(pa.list_(pa.uint16(), 2), lambda: [rnd.randrange(65536), 3])
    columns["struct"] = column(pa.struct([("a", pa.uint32()), ("b", pa.list_(pa.time64("ns")))]),
                               lambda: {"a": rnd.randrange(2**32), "b": [datetime.time(1, 2, 3)]})
    columns["map"] = column(pa.map_(pa.string(), pa.uint8()), lambda: [("k", rnd.randrange(256))])
    columns["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), column(pa.binary(16), lambda: rnd.randbytes(16)))
    return pa.table(columns)


def values(column, unit_ms=None):
    """Counts of times and durations as integers, in milliseconds of microseconds where Parquet has no seconds."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        to_ns = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
        return [None if v is None else v * to_ns for v in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_float16(kind):
        return [None if v is None else float(v) for v in column.to_pylist()]
    return column.to_pylist()


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    directory = tmp_path_factory.mktemp("convert")
    rows = table()
    with pa.ipc.new_file(directory / "in.arrow", rows.schema) as file:
        file.write_table(rows, max_chunksize=300)
    return directory, rows


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "none"])
def test_every_type_to_parquet(given, codec):
    directory, rows = given
    out = directory / f"{codec}.parquet"
    assert convert(directory / "in.arrow", out, "--compression", codec).stdout == f"{ROWS} rows\n"
    back = pq.read_table(out)
    for name in rows.column_names:
        assert values(back[name]) == values(rows[name]), name
    metadata = pq.read_metadata(out).row_group(0)
    assert metadata.column(0).compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    common = [n for n in rows.column_names if n.split()[0] in (
        "i8", "u8", "i64", "u64", "double", "decimal1", "decimal12", "decimal38", "date", "text", "bool", "uuid", "list")]
    picked = ", ".join(f'"{name}"' for name in common)
    theirs = duckdb.sql(f"select {picked} from '{out}'").arrow().read_all()
    for name in common:
        assert [uuid.UUID(v) if name == "uuid" and isinstance(v, str) else v for v in values(theirs[name])] == \
            values(rows[name]), name
    assert polars.read_parquet(out, columns=["i8", "u64", "double", "text"]).to_dict(as_series=False) == \
        rows.select(["i8", "u64", "double", "text"]).to_pydict()


def test_statistics_are_in_the_order_of_the_type(given):
    directory, rows = given
    convert(directory / "in.arrow", directory / "bounds.parquet")
    metadata, checked = pq.read_metadata(directory / "bounds.parquet"), 0
    for i in range(metadata.num_columns):
        name = metadata.schema.column(i).path
        found = metadata.row_group(0).column(i).statistics
        if "." in name or name in ("uuid", "half") or not found or not found.has_min_max:
            continue
        seen = [v for v in pq.read_table(directory / "bounds.parquet", columns=[name])[name].to_pylist() if v is not None]
        assert (found.min, found.max) == (min(seen), max(seen)), name
        checked += 1
    assert checked > 30


@pytest.mark.parametrize("ending", ["arrow", "arrows"])
def test_parquet_to_arrow(given, ending):
    directory, rows = given
    convert(directory / "in.arrow", directory / f"{ending}.parquet")
    out = directory / f"out.{ending}"
    convert(directory / f"{ending}.parquet", out, "--compression", "lz4" if ending == "arrow" else "zstd")
    back = (pa.ipc.open_file if ending == "arrow" else pa.ipc.open_stream)(out).read_all()
    back.validate(full=True)
    if ending == "arrow":
        assert polars.read_ipc(out, columns=["i64", "text"]).to_dict(as_series=False) == \
            rows.select(["i64", "text"]).to_pydict()
    for name in rows.column_names:
        assert values(back[name]) == values(rows[name]), name
    for name in ("i8", "u16", "u32", "half", "decimal38", "decimal60", "time ns", "timestamp ns UTC", "uuid"):
        assert back[name].type == rows[name].type, name


def test_arrow_to_arrow_keeps_types_that_parquet_has_not(given):
    directory, _ = given
    rows = pa.table({"months": pa.array([1, None, -3], pa.int32()).cast(pa.int32()),
                     "interval": pa.array([None, (1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval()),
                     "duration": pa.array([1, None, -5], pa.duration("ms")),
                     "date64": pa.array([0, None, 86400000], pa.date64())})
    with pa.ipc.new_stream(directory / "more.arrows", rows.schema) as stream:
        stream.write_table(rows)
    convert(directory / "more.arrows", directory / "more.arrow")
    assert pa.ipc.open_file(directory / "more.arrow").read_all().equals(rows)
    refused = convert(directory / "more.arrows", directory / "more.parquet", check=2)
    assert "interval" in refused.stderr and not (directory / "more.parquet").exists()


@pytest.mark.parametrize("ending, other", [(".arrow", ".arrows"), (".arrows", ".arrow")])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_arrow_to_arrow_keeps_layouts(tmp_path, ending, other, codec):
    """Large offsets, views of text and of lists, lists of a fixed size, within each other, too."""
    texts = ["a", None, "", "é" * 40, "exactly12byt"]
    lists = [["x", None], None, [], ["y" * 13], ["z"]]
    pairs = [["p", None], None, ["q" * 20, ""], None, ["r", "s"]]
    kinds = {"large_utf8": (pa.large_utf8(), texts), "large_binary": (pa.large_binary(), [v and v.encode() for v in texts]),
             "utf8_view": (pa.string_view(), texts), "binary_view": (pa.binary_view(), [v and v.encode() for v in texts]),
             "short_views": (pa.string_view(), ["a", None, "b", "", "c"]), "null_views": (pa.string_view(), [None] * 5)}
    for name, kind in (("utf8", pa.utf8()), ("view", pa.string_view()), ("large", pa.large_utf8())):
        for list_name, make in (("large_list", pa.large_list), ("list_view", pa.list_view),
                                ("large_list_view", pa.large_list_view), ("list", pa.list_)):
            kinds[f"{list_name} of {name}"] = (make(kind), lists)
        kinds[f"pairs of {name}"] = (pa.list_(kind, 2), pairs)
        kinds[f"struct of {name}"] = (pa.struct([("s", kind)]), [v and {"s": v[0]} for v in pairs])
    kinds["pairs of pairs"] = (pa.list_(pa.list_(pa.int32(), 2), 1), [[[1, 2]], None, [None], [[3, None]], None])
    kinds["required pairs"] = (pa.list_(pa.field("item", pa.int16(), False), 2), [[1, 2], None, [3, 4], None, [5, 6]])
    kinds["lists of nothing"] = (pa.list_(pa.int8(), 0), [[], None, [], [], None])
    kinds["only nulls"] = (pa.list_(pa.utf8(), 3), [None] * 5)
    kinds["pairs of maps"] = (pa.list_(pa.map_(pa.utf8(), pa.large_binary()), 1), [[[("k", b"v")]], None, [None], [[]], None])
    kinds["sorted maps"] = (pa.map_(pa.utf8(), pa.int8(), keys_sorted=True), [[("k", 1)], None, [], [("a", 2), ("b", None)], None])

    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0, 2, 1, 0, 0, 2, 2], pa.uint8()),
                                           pa.array(["v" * 30, "w", None], pa.string_view()))
    dictionaries = {"dictionary of views": words.slice(0, 5), "pairs of dictionary": pa.FixedSizeListArray.from_arrays(
        words, 2, mask=pa.array([False, True, False, False, True]))}
    rows = pa.table({**{name: pa.array(values, kind) for name, (kind, values) in kinds.items()}, **dictionaries})
    source, target = tmp_path / f"in{ending}", tmp_path / f"out{other}"
    with (pa.ipc.new_file if ending == ".arrow" else pa.ipc.new_stream)(source, rows.schema) as file:
        file.write_table(rows)
        file.write_table(rows.slice(1, 3))
    convert("--compression", codec, source, target)
    back = (pa.ipc.open_stream if ending == ".arrow" else pa.ipc.open_file)(target).read_all()
    back.validate(full=True)
    for name in rows.column_names:
        if name not in dictionaries or other == ".arrows":  # small indices may change in a stream, not in a file
            assert back.schema.field(name).type == rows.schema.field(name).type, name
        assert back[name].to_pylist() == rows[name].to_pylist() + rows[name].slice(1, 3).to_pylist(), name
    subprocess.run([sluice.BINARY, "arrow", "verify", target], check=True, stdout=subprocess.DEVNULL)


def test_runs_become_plain(tmp_path):
    rows = pa.table({"r": pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array(["a", None]))})
    with pa.ipc.new_file(tmp_path / "in.arrow", rows.schema) as file:
        file.write_table(rows)
    convert(tmp_path / "in.arrow", tmp_path / "out.arrow")
    back = pa.ipc.open_file(tmp_path / "out.arrow").read_all()
    assert back.schema.field("r").type == pa.utf8() and back["r"].to_pylist() == rows["r"].to_pylist()


@pytest.mark.parametrize("ending, other", [(".arrow", ".arrows"), (".arrows", ".arrow")])
def test_metadata_of_schema_and_fields_stays(tmp_path, ending, other):
    """Any bytes, of every level of nesting, too."""
    inner = pa.field("x", pa.int8(), metadata={"deep": "1"})
    schema = pa.schema([pa.field("a", pa.int64(), metadata={b"\0k": b"\xff\0", "e": ""}), pa.field("s", pa.struct([inner])),
                        pa.field("u", pa.uuid()), pa.field("n", pa.string())],
                       metadata={"pandas": "{}" * 500, **{f"key {i}": str(i) for i in range(100)}})
    rows = pa.table([pa.array([1]), pa.array([{"x": 2}], schema.field("s").type), pa.array([b"0" * 16], pa.uuid()),
                     pa.array(["t"])], schema=schema)
    source, target = tmp_path / f"in{ending}", tmp_path / f"out{other}"
    with (pa.ipc.new_file if ending == ".arrow" else pa.ipc.new_stream)(source, schema) as file:
        file.write_table(rows)
    convert(source, target)
    back = (pa.ipc.open_stream if ending == ".arrow" else pa.ipc.open_file)(target).read_all()
    assert back.schema.equals(schema, check_metadata=True) and back.equals(rows)
    convert(source, tmp_path / "out.parquet")
    footer = pq.read_metadata(tmp_path / "out.parquet").metadata
    assert footer.pop(b"ARROW:schema") and footer == schema.metadata and pq.read_table(tmp_path / "out.parquet").schema.metadata == schema.metadata
    convert(tmp_path / "out.parquet", tmp_path / "again.arrow")
    assert pa.ipc.open_file(tmp_path / "again.arrow").schema.metadata == schema.metadata
    pq.write_table(rows, tmp_path / "theirs.parquet")  # has a key ARROW:schema of theirs
    convert(tmp_path / "theirs.parquet", tmp_path / "theirs.arrow")
    assert pa.ipc.open_file(tmp_path / "theirs.arrow").schema.metadata == schema.metadata
    many = schema.with_metadata({str(i): "" for i in range(5000)})
    with (pa.ipc.new_file if ending == ".arrow" else pa.ipc.new_stream)(source, many) as file:
        file.write_table(rows.cast(many))
    assert "more than 4096 pairs" in convert(source, tmp_path / f"many{other}", check=5).stderr


@pytest.mark.parametrize("ending", ["arrow", "arrows"])
@pytest.mark.parametrize("other", ["arrow", "arrows"])
def test_metadata_of_batches_and_footers_stays(tmp_path, ending, other):
    """Any bytes; a stream has no footer."""
    batch = pa.record_batch({"n": pa.array([1, 2]), "d": pa.array(["x", "y"]).dictionary_encode()})
    given = [{b"first": b"\xff\0", b"e": b""}, None, {b"k" * 300: b"v" * 5000, **{str(i).encode(): b"" for i in range(50)}}]
    footer = {b"of": b"the footer", b"\0": b"\xff"}
    source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{other}"
    with pa.ipc.new_file(source, batch.schema, metadata=footer) if ending == "arrow" else \
            pa.ipc.new_stream(source, batch.schema) as out:
        for metadata in given:
            out.write_batch(batch, custom_metadata=metadata)
    convert("--compression", "lz4", source, target)
    if other == "arrow":
        file = pa.ipc.open_file(target)
        back = [file.get_batch_with_custom_metadata(i) for i in range(file.num_record_batches)]
        assert (dict(file.metadata) if file.metadata else None) == (footer if ending == "arrow" else None)
    else:
        back = list(pa.ipc.open_stream(target).iter_batches_with_custom_metadata())
    assert [b.custom_metadata and dict(b.custom_metadata) for b in back] == given
    assert all(b.batch.to_pydict() == batch.to_pydict() for b in back)
    many = {str(i): "" for i in range(5000)}
    with pa.ipc.new_stream(source, batch.schema) as out:
        out.write_batch(batch, custom_metadata=many)
    assert "more than 4096 pairs" in convert("--force", source, target, check=5).stderr


def test_json_lines(given):
    directory, rows = given
    convert(directory / "in.arrow", directory / "out.ndjson")
    lines = [json.loads(line) for line in open(directory / "out.ndjson")]
    assert [line["i64"] for line in lines] == rows["i64"].to_pylist()
    assert [line["text"] for line in lines] == rows["text"].to_pylist()
    assert [line["struct"] and line["struct"]["a"] for line in lines] == \
        [v and v["a"] for v in rows["struct"].to_pylist()]


def test_text_to_columns(given):
    directory, _ = given
    lines = [{"a": 1, "b": "x", "c": {"d": [1.5, None], "e": True}}, {"b": None, "a": -2**63, "f": "2024-01-01"},
             {"a": None, "c": None, "mixed": 1}, {"mixed": "text", "c": {"d": []}}]
    (directory / "in.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    convert(directory / "in.ndjson", directory / "json.parquet")
    back = pq.read_table(directory / "json.parquet")
    assert back["a"].to_pylist() == [1, -2**63, None, None] and back["mixed"].to_pylist() == [None, None, "1", "text"]
    assert back["c"].to_pylist() == [{"d": [1.5, None], "e": True}, None, None, {"d": [], "e": None}]
    frame = polars.DataFrame({"n": [1, None, 3], "x": [0.1, 1e300, None], "s": ['a,"b"', None, "c\nd"],
                              "t": [datetime.datetime(2024, 2, 29, 1, 2, 3, 4), None, datetime.datetime(1900, 1, 1)],
                              "d": [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)], "b": [True, None, False]})
    frame.write_csv(directory / "in.csv")
    convert(directory / "in.csv", directory / "csv.parquet")
    assert polars.read_parquet(directory / "csv.parquet").equals(frame)
    convert(directory / "csv.parquet", directory / "out.csv")
    assert polars.read_csv(directory / "out.csv", try_parse_dates=True).equals(frame)
    assert duckdb.sql(f"select s from '{directory / 'out.csv'}'").fetchall() == [('a,"b"',), (None,), ("c\nd",)]
    (directory / "bad.csv").write_text("a,b\n1,2\n3\n")
    refused = convert(directory / "bad.csv", directory / "bad.parquet", check=2)
    assert "line 3" in refused.stderr and not (directory / "bad.parquet").exists()


def test_every_type_to_csv(given):
    directory, rows = given
    convert(directory / "in.arrow", directory / "all.csv")
    theirs = polars.read_csv(directory / "all.csv", infer_schema=False)
    assert theirs.height == ROWS and theirs.columns == rows.column_names
    assert theirs["decimal38"].to_list() == [None if v is None else str(v) for v in rows["decimal38"].to_pylist()]
    assert theirs["uuid"].to_list() == [None if v is None else str(v) for v in rows["uuid"].to_pylist()]
    assert [v and json.loads(v) for v in theirs["map"].to_list()] == [v and dict(v) for v in rows["map"].to_pylist()]
    assert theirs["u64"].to_list() == [None if v is None else str(v) for v in rows["u64"].to_pylist()]


def test_what_is_asked_wrongly_leaves_nothing(given):
    directory, _ = given
    whole = (directory / "in.arrow").read_bytes()
    (directory / "cut.arrow").write_bytes(whole[:len(whole) // 2])
    (directory / "there.parquet").write_bytes(b"mine")
    before = sorted(directory.iterdir())
    for words, code, message in [
            (("cut.arrow", "cut.parquet"), 2, "cut off"),
            (("in.arrow", "there.parquet"), 4, "--force"),
            (("in.arrow", "out.xlsx"), 2, ".parquet"),
            (("in.arrow", "other.parquet", "--compression", "brotli"), 2, "snappy"),
            (("missing.arrow", "other.parquet"), 3, "missing.arrow")]:
        done = subprocess.run([sluice.BINARY, "convert", *words], capture_output=True, text=True, cwd=directory)
        assert message in done.stderr, done
        assert done.returncode == code, done
    assert sorted(directory.iterdir()) == before and (directory / "there.parquet").read_bytes() == b"mine"
    convert(directory / "in.arrow", directory / "there.parquet", "--force")
    assert pq.read_metadata(directory / "there.parquet").num_rows == ROWS


def test_threads_write_the_same_file(tmp_path):
    rnd, rows = random.Random(11), 60000
    wide = pa.table({
        "id": [f"{rnd.getrandbits(128):032x}" for _ in range(rows)],
        "n": range(rows),
        "word": [rnd.choice(["a", "bb", "ccc", None]) for _ in range(rows)],
        "noise": [rnd.random() for _ in range(rows)],
        "list": [[rnd.randrange(9)] * rnd.randrange(4) for _ in range(rows)]})
    with pa.ipc.new_file(tmp_path / "in.arrow", wide.schema) as file:
        file.write_table(wide, max_chunksize=25000)
    files = []
    for words in ((), ("--threads", 1), ("--threads", 2), ("--threads", 5)):
        out = tmp_path / f"{'-'.join(map(str, words))}.parquet"
        convert(tmp_path / "in.arrow", out, "--row-group-rows", 22000, *words)
        files.append(out.read_bytes())
    assert pq.read_table(out).equals(wide) and pq.read_metadata(out).num_row_groups == 3
    assert all(file == files[0] for file in files)
    refused = convert(tmp_path / "in.arrow", tmp_path / "out.csv", "--threads", 2, check=2)
    assert "--threads: only Parquet has it" in refused.stderr


def carefully(directory, data):
    """What becomes of a hostile file: an answer, whatever it is."""
    (directory / "hostile.parquet").write_bytes(data)
    done = subprocess.run([CAREFUL, "convert", "hostile.parquet", "hostile.ndjson", "--force"], cwd=directory,
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"})
    assert done.returncode in (0, 2, 6) and "Sanitizer" not in done.stderr, done.stderr[:2000]
    return done


def test_widths_that_no_integer_has(tmp_path):
    rows = pa.table({"n": pa.array([1, None, -3], pa.int8()), "m": pa.array([1, 2, 3], pa.uint16())})
    with pa.ipc.new_file(tmp_path / "in.arrow", rows.schema) as file:
        file.write_table(rows)
    convert(tmp_path / "in.arrow", tmp_path / "out.parquet", "--compression", "none")
    data = (tmp_path / "out.parquet").read_bytes()
    for given in (b"\x13\x08", b"\x13\x10"):  # IntType.bitWidth: field 1, a byte
        assert data.count(given) == 1
        for width in (0, 1, 3, 7, 24, 31, 33, 64, 128, 248, 255):
            assert carefully(tmp_path, data.replace(given, bytes([0x13, width]))).returncode in (0, 2)


def test_footers_with_changed_bytes(tmp_path):
    rows, rnd = table().slice(0, 40), random.Random(11)
    with pa.ipc.new_file(tmp_path / "in.arrow", rows.schema) as file:
        file.write_table(rows)
    convert(tmp_path / "in.arrow", tmp_path / "out.parquet")
    data = (tmp_path / "out.parquet").read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    refused = 0
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(rnd.randrange(1, 4)):
            changed[rnd.randrange(footer, len(data) - 8)] = rnd.choice([0, 1, 2, 4, 0x0a, 0x15, 0x7f, 0x80, 0xff])
        refused += carefully(tmp_path, bytes(changed)).returncode != 0
    assert 20 < refused < 150
