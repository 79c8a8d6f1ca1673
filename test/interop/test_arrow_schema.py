# SPDX-License-Identifier: Apache-2.0
"""ARROW:schema: what Parquet has no words for comes back in pyarrow, Polars, DataFusion and here; what
others wrote of it is read as they read it; and whatever it says, no value is read otherwise."""
import base64
import datetime
import decimal
import pathlib
import random
import subprocess
import sys

import datafusion
import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

ROWS = 300
# The build with sanitizers, where it stands beside the other.
ASAN = sluice.BINARY.parents[4] / "asan/src/app/cmd/sluice"
CAREFUL = ASAN if ASAN.exists() else sluice.BINARY


def convert(*words, check=0, binary=sluice.BINARY):
    done = subprocess.run([binary, "convert", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == check, done.stderr
    return done


def some(values, kind, null=.2):
    rnd = random.Random(str(kind))
    return pa.array([None if rnd.random() < null else rnd.choice(values) for _ in range(ROWS)], kind)


def counts(kind):
    return some([0, 1, 1000, 86399], pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


DAYS, TEXTS = [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)], ["", "a", "bé", "x" * 40]
LISTS = [[], ["a"], ["a", None, "b"]]
SMALL = pa.dictionary(pa.int8(), pa.string())


def of(kind, column):
    return column.cast(kind) if column.type != kind else column


# The column, what comes back here, in pyarrow, in DataFusion (None: the same type), and in Polars.
COLUMNS = {
    "zone us": (counts(pa.timestamp("us", "Europe/Berlin")), None, None, None, polars.Datetime("us", "Europe/Berlin")),
    "zone ns": (counts(pa.timestamp("ns", "Asia/Tokyo")), None, None, None, polars.Datetime("ns", "Asia/Tokyo")),
    "zone s": (counts(pa.timestamp("s", "Europe/Berlin")), None, pa.timestamp("ms", "Europe/Berlin"),
               pa.timestamp("ms", "UTC"), polars.Datetime("ms", "Europe/Berlin")),
    "seconds": (counts(pa.timestamp("s")), None, pa.timestamp("ms"), pa.timestamp("ms"), polars.Datetime("ms")),
    "time s": (counts(pa.time32("s")), None, pa.time32("ms"), pa.time32("ms"), polars.Time),
    "duration": (counts(pa.duration("us")), None, None, None, polars.Duration("us")),
    "duration s": (counts(pa.duration("s")), None, None, None, polars.Duration("ms")),
    "date64": (some(DAYS, pa.date64()), None, pa.date32(), None, polars.Datetime("ms")),
    "large": (some(TEXTS, pa.large_string()), None, None, pa.string_view(), polars.String),
    "large bytes": (some([b"", b"\xff"], pa.large_binary()), None, None, pa.binary_view(), polars.Binary),
    "view": (some(TEXTS, pa.string_view()), None, None, None, polars.String),
    "dictionary": (some(TEXTS, pa.string()).dictionary_encode(), None, None, None, polars.Categorical),
    "small dictionary": (of(SMALL, some(TEXTS, pa.string()).dictionary_encode()), pa.dictionary(pa.int32(), pa.string()),
                         "any", "any", polars.Categorical),
    "dictionary in lists": (some(LISTS, pa.list_(pa.dictionary(pa.int32(), pa.string()))), None, None, None,
                            polars.List(polars.Categorical)),
    "large dictionary": (some(TEXTS, pa.large_string()).dictionary_encode(), None, pa.dictionary(pa.int32(), pa.string()),
                         None, polars.Categorical),
    "dictionary of numbers": (some([5, 7], pa.int64()).dictionary_encode(), pa.int64(), pa.int64(), pa.int64(), polars.Int64),
    "large list": (some(LISTS, pa.large_list(pa.string())), None, None, "any", polars.List(polars.String)),
    "list of 2": (some([[1, 2], [None, 3]], pa.list_(pa.int16(), 2)), None, None, None, polars.Array(polars.Int16, 2)),
    "list of 2 of 2": (some([[[1, 2], [3, 4]], [[1, None], None]], pa.list_(pa.list_(pa.int32(), 2), 2)), None, None, None,
                       polars.Array(polars.Array(polars.Int32, 2), 2)),
    "list view": (some([[1], []], pa.list_view(pa.int32())), pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int32())),
                  pa.list_(pa.field("element", pa.int32())), polars.List(polars.Int32)),
    "name of elements": (some([[1]], pa.list_(pa.field("e", pa.int32()))), None, None, None, polars.List(polars.Int32)),
    "wide decimal": (some([decimal.Decimal("1.5")], pa.decimal256(9, 1)), None, None, None, polars.Decimal(9, 1)),
    "small decimal": (some([decimal.Decimal("1.5")], pa.decimal32(9, 1)), None, None, None, polars.Decimal(9, 1)),
    "struct": (some([{"d": datetime.timedelta(seconds=1), "t": "x"}], pa.struct([("d", pa.duration("ms")), ("t", pa.large_string())])),
               None, None, "any", None),
    "map": (some([[("k", datetime.timedelta(seconds=1))]], pa.map_(pa.string(), pa.duration("s"))), None, None, "any", None),
    "interval": (some([(1, 2, 3000000)], pa.month_day_nano_interval()), None, pa.binary(12), "any", "refuses"),
    "extension": (pa.ExtensionArray.from_storage(pa.opaque(pa.large_string(), "kind", "seller"), some(TEXTS, pa.large_string())),
                  None, None, "any", None),
}
PLAIN = {"id": pa.array(range(ROWS)), "text": some(TEXTS, pa.string())}


def write(path, rows):
    with pa.ipc.new_file(path, rows.schema) as file:
        file.write_table(rows, max_chunksize=100)


def read(path):
    return pa.ipc.open_file(path).read_all()


def listed(column):
    """Instants without the zone that they are shown in."""
    zoned = pa.types.is_timestamp(column.type) and column.type.tz
    return str((column.cast(pa.timestamp(column.type.unit, "UTC")) if zoned else column).to_pylist())


def same_values(ours, given):
    assert listed(ours) == listed(given)


@pytest.mark.parametrize("name", COLUMNS)
def test_column_comes_back(tmp_path, name):
    column, ours, arrow, rust, theirs = COLUMNS[name]
    rows = pa.table({**PLAIN, "c": column})
    write(tmp_path / "in.arrow", rows)
    for turn in ("once", "twice"):
        path = tmp_path / f"{turn}.parquet"
        convert(tmp_path / "in.arrow", path, "--row-group-rows", 120)
        subprocess.run([sluice.BINARY, "parquet", "verify", path], check=True, stdout=subprocess.DEVNULL)
        convert(path, tmp_path / "in.arrow", "--force")  # the second turn begins with this
        back = read(tmp_path / "in.arrow")
        back.validate(full=True)
        assert back["c"].type == (ours or column.type)
        same_values(back["c"], column)
        found = pq.read_table(path)
        assert arrow == "any" or found["c"].type == (arrow or column.type)
        if name != "interval":
            same_values(found["c"], column)
        found = datafusion.SessionContext().read_parquet(str(path)).to_arrow_table()
        assert rust == "any" or found["c"].type == (rust or column.type)
        if name != "interval":
            by_id = dict(zip(found["id"].to_pylist(), found["c"].to_pylist()))
            assert [by_id[i] for i in range(ROWS)] == column.to_pylist()
        if theirs != "refuses":  # Polars has no intervals
            found = polars.read_parquet(path)
            assert theirs is None or found["c"].dtype == theirs
            assert found["c"].null_count() == column.null_count
        assert duckdb.sql(f"select count(*), count(c) from '{path}'").fetchone() == (ROWS, ROWS - column.null_count)


def test_columns_go_together_and_not(tmp_path):
    rows = pa.table({**PLAIN, **{name: column for name, (column, *_) in COLUMNS.items()}})
    rows = rows.replace_schema_metadata({"k": "v"})
    write(tmp_path / "in.arrow", rows)
    convert(tmp_path / "in.arrow", tmp_path / "out.parquet")
    convert(tmp_path / "out.parquet", tmp_path / "again.parquet")
    for path in ("out", "again"):
        kept = pq.read_metadata(tmp_path / f"{path}.parquet").metadata
        assert kept[b"k"] == b"v" and list(kept).count(b"ARROW:schema") == 1
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(kept[b"ARROW:schema"])))
        assert schema.names == rows.column_names and schema.metadata == {b"k": b"v"}
        convert(tmp_path / f"{path}.parquet", tmp_path / f"{path}.arrow")
        back = read(tmp_path / f"{path}.arrow")
        assert back.schema.metadata == {b"k": b"v"}
        for name, (column, ours, *_) in COLUMNS.items():
            assert back[name].type == (ours or column.type), name
            same_values(back[name], column)
    for words in ([tmp_path / "out.parquet", tmp_path / "without.arrow"], [tmp_path / "in.arrow", tmp_path / "without.parquet"]):
        convert(*words, "--no-arrow-schema")
    assert b"ARROW:schema" not in pq.read_metadata(tmp_path / "without.parquet").metadata
    without = read(tmp_path / "without.arrow")
    assert without["duration"].type == pa.int64() and without["zone us"].type == pa.timestamp("us", "UTC")
    assert without["dictionary"].type == pa.string()


def test_rows_that_were_not_arrow_have_none(tmp_path):
    (tmp_path / "in.csv").write_text("a\n1\n")
    assert "only Parquet has it" in convert(tmp_path / "in.csv", tmp_path / "o.arrow", "--no-arrow-schema", check=2).stderr
    convert(tmp_path / "in.csv", tmp_path / "out.parquet")
    assert not pq.read_metadata(tmp_path / "out.parquet").metadata
    convert(tmp_path / "out.parquet", tmp_path / "again.parquet")
    assert not pq.read_metadata(tmp_path / "again.parquet").metadata


@pytest.mark.parametrize("writer", ("pyarrow", "polars", "datafusion"))
def test_what_others_kept(tmp_path, writer):
    names = [name for name, (*_, theirs) in COLUMNS.items() if theirs not in ("refuses", None)]
    names = [name for name in names if "view" not in name and "wide" not in name]
    rows, path = pa.table({name: COLUMNS[name][0] for name in names}), tmp_path / "in.parquet"
    if writer == "pyarrow":
        pq.write_table(rows, path, row_group_size=100)
    elif writer == "polars":
        polars.from_arrow(rows).write_parquet(path, row_group_size=100)
    else:
        datafusion.SessionContext().from_arrow(rows).write_parquet(str(path))
        path = next(path.glob("*.parquet")) if path.is_dir() else path
    assert b"ARROW:schema" in pq.read_metadata(path).metadata
    convert(path, tmp_path / "out.arrow")
    back, theirs = read(tmp_path / "out.arrow"), pq.read_table(path)
    restored = 0
    for name in names:
        same_values(back[name], theirs[name])
        restored += back[name].type == theirs[name].type
        if pa.types.is_duration(theirs[name].type) or pa.types.is_fixed_size_list(theirs[name].type):
            assert back[name].type == theirs[name].type, name
    assert restored > len(names) / 2


# ---- what lies ----

def forge(path, rows, schema):
    """`rows`, with a schema of others beside them."""
    text = schema if isinstance(schema, bytes) else base64.b64encode(schema.serialize().to_pybytes())
    with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({b"ARROX:schema": text})  # it reads what it knows
    path.write_bytes(path.read_bytes().replace(b"ARROX:schema", b"ARROW:schema"))


LIES = {
    "no base64": b"?" * 40, "no message": base64.b64encode(b"x" * 40), "nothing": b"", "padding alone": b"====",
    "a digit more": base64.b64encode(pa.schema([("i", pa.int64())]).serialize().to_pybytes()) + b"A",
    "too few columns": pa.schema([("i", pa.duration("s"))]),
    "other names": pa.schema([("x", pa.duration("s")), ("y", pa.large_string()), ("z", pa.list_(pa.int32(), 2))]),
    "other types": pa.schema([("i", pa.dictionary(pa.int8(), pa.string())), ("t", pa.duration("s")), ("l", pa.struct([("a", pa.int32())]))]),
    "other widths": pa.schema([("i", pa.timestamp("s", "Europe/Berlin")), ("t", pa.binary(4)), ("l", pa.map_(pa.int32(), pa.int32()))]),
    "unions": pa.schema([("i", pa.sparse_union([pa.field("a", pa.int64())])), ("t", pa.string()), ("l", pa.list_(pa.int32()))]),
    "deeper lists": pa.schema([("i", pa.int64()), ("t", pa.string()), ("l", pa.list_(pa.list_(pa.int32(), 1)))]),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_passed_over(tmp_path, lie):
    rows = pa.table({"i": [1, None], "t": ["a", "b"], "l": pa.array([[1, 2, 3], None], pa.list_(pa.int32()))})
    forge(tmp_path / "in.parquet", rows, LIES[lie])
    convert(tmp_path / "in.parquet", tmp_path / "out.arrow", binary=CAREFUL)
    back = read(tmp_path / "out.arrow")
    assert back.to_pydict() == rows.to_pydict()
    assert [field.type.id for field in back.schema] == [field.type.id for field in rows.schema]


def test_an_extension_of_another_name_is_passed_over(tmp_path):
    """With what it says of itself: Parquet's own has none of it."""
    rows = pa.table({"u": pa.array([bytes(16), None], pa.uuid())})
    said = {"ARROW:extension:name": "some.other", "ARROW:extension:metadata": "z"}
    forge(tmp_path / "in.parquet", rows, pa.schema([pa.field("u", pa.binary(16), metadata=said)]))
    convert(tmp_path / "in.parquet", tmp_path / "out.arrow", binary=CAREFUL)
    back = read(tmp_path / "out.arrow")
    assert back.schema.field("u").type == pa.uuid() and back.equals(rows)


@pytest.mark.parametrize("rows,kind,said", [
    (pa.array([[1, 2], [1]], pa.list_(pa.int32())), pa.list_(pa.int32(), 2), "a list of another size"),
    (pa.array([None, None], pa.list_(pa.int32())), pa.list_(pa.int32(), 2**31 - 1), "more than a batch may"),
    (pa.array([[None] * 9, None], pa.list_(pa.list_(pa.int32()))), pa.list_(pa.list_(pa.int32(), 2**27), 9), "more than a batch may"),
    (pa.array([1001], pa.timestamp("ms")), pa.timestamp("s"), "row 0: more than its type can hold"),
    (pa.array([1001], pa.time32("ms")), pa.time32("s"), "row 0: more than its type can hold"),
    (pa.array([decimal.Decimal(2**31 - 1)], pa.decimal128(12, 0)), pa.decimal32(9, 0), None),  # another type: passed over
])
def test_lies_about_values_are_named(tmp_path, rows, kind, said):
    forge(tmp_path / "in.parquet", pa.table({"c": rows}), pa.schema([("c", kind)]))
    done = subprocess.run([CAREFUL, "convert", tmp_path / "in.parquet", tmp_path / "out.arrow"], capture_output=True, text=True)
    if said:
        assert done.returncode in (2, 5) and "column c" in done.stderr and said in done.stderr, done.stderr
    else:
        assert done.returncode == 0 and read(tmp_path / "out.arrow")["c"].type == rows.type
    convert(tmp_path / "in.parquet", tmp_path / "without.arrow", "--no-arrow-schema")
    assert read(tmp_path / "without.arrow")["c"].to_pylist() == rows.to_pylist()


def test_changed_bytes(tmp_path):
    """None of them reads a value otherwise, but by a unit or a zone."""
    rows = pa.table({"i": [1, None], "d": pa.array([5, 6], pa.duration("s")), "l": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
                     "t": pa.array(["a", None]).dictionary_encode()})
    message, rnd = rows.schema.serialize().to_pybytes(), random.Random(11)
    for _ in range(150):
        changed = bytearray(message)
        for _ in range(rnd.choice((1, 1, 2, 8))):
            changed[rnd.randrange(len(changed))] = rnd.choice((0, 1, 4, 0x7f, 0xff, rnd.randrange(256)))
        forge(tmp_path / "in.parquet", rows, base64.b64encode(changed[:rnd.choice((len(changed), rnd.randrange(len(changed))))]))
        done = subprocess.run([CAREFUL, "convert", tmp_path / "in.parquet", tmp_path / "out.arrow", "--force"],
                              capture_output=True, text=True)
        assert done.returncode in (0, 2, 5) and "ERROR" not in done.stderr, done.stderr
        if done.returncode == 0:
            back = read(tmp_path / "out.arrow")
            back.validate(full=True)
            assert back["i"].to_pylist() == [1, None] and back["l"].to_pylist() == [[1, 2], None]
            assert back["t"].to_pylist() == ["a", None] and back["d"].cast(pa.int64()).to_pylist() == [5, 6]
