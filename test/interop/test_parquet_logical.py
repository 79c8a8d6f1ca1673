# SPDX-License-Identifier: Apache-2.0
"""What annotations say: what a column may be read as, and that they stay from file to file."""
import datetime
import decimal
import json
import pathlib
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from columnar_data import stream_bytes
from parquet_bytes import with_footer
from test_convert import convert, sluice

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

D, TIME = decimal.Decimal, datetime.time(1, 2, 3)


def cell(value, kind):
    return pa.table({"c": pa.array([value, None], kind)})


def wanted_of(tool, folder, table, kind, ok=True, **options):
    """The column as the type that a table's schema has for it; None: it was refused."""
    pq.write_table(table, folder / "f.parquet", **options)
    schema = pa.schema([pa.field("c", kind)]).empty_table()
    (folder / "schema").write_bytes(stream_bytes(schema))
    done = tool("parquet_read", folder / "f.parquet", folder / "out", f"schema={folder / 'schema'}", ok=False)
    if done.returncode == 0:
        return pa.ipc.open_stream((folder / "out").read_bytes()).read_all()["c"].to_pylist()
    assert done.returncode == 2 and "another type in the file" in done.stderr, done.stderr
    return None


WIDENED = [
    (cell(-5, pa.int32()), pa.int64(), -5), (cell(1.5, pa.float32()), pa.float64(), 1.5),
    (cell(-5, pa.int8()), pa.int32(), -5), (cell(250, pa.uint8()), pa.int32(), 250),
    (cell(2 ** 32 - 1, pa.uint32()), pa.int64(), 2 ** 32 - 1), (cell("é", pa.utf8()), pa.binary(), "é".encode()),
]


@pytest.mark.parametrize("table, kind, value", WIDENED, ids=lambda v: str(getattr(v, "schema", v)))
def test_what_widens(tool, tmp_path, table, kind, value):
    assert wanted_of(tool, tmp_path, table, kind) == [value, None]


REFUSED = [
    (cell(5, pa.int64()), pa.int32()), (cell(1.5, pa.float64()), pa.float32()),
    (cell(5, pa.int32()), pa.float64()), (cell(datetime.date(2020, 1, 1), pa.date32()), pa.timestamp("us")),
    (cell(2 ** 64 - 1, pa.uint64()), pa.int64()), (cell(TIME, pa.time32("ms")), pa.int32()),
    (cell(TIME, pa.time64("us")), pa.int64()), (cell(5, pa.timestamp("ns")), pa.int64()),
    (cell(5, pa.timestamp("ns")), pa.timestamp("us")), (cell(5, pa.timestamp("us")), pa.timestamp("us", "UTC")),
    (cell(5, pa.timestamp("us", "UTC")), pa.timestamp("us")), (cell(5, pa.timestamp("ms", "UTC")), pa.timestamp("us")),
    (cell(D("1.25"), pa.decimal128(9, 2)), pa.int32()), (cell(D("1.25"), pa.decimal128(9, 2)), pa.int64()),
    (cell(D("1.25"), pa.decimal128(30, 2)), pa.binary(13)), (cell(b"ab", pa.binary(2)), pa.binary(3)),
    (cell(True, pa.bool_()), pa.int32()),
]


@pytest.mark.parametrize("table, kind", REFUSED, ids=lambda v: str(getattr(v, "schema", v)))
def test_what_is_no_such_type(tool, tmp_path, table, kind):
    assert wanted_of(tool, tmp_path, table, kind, store_decimal_as_integer=True) is None


def test_milliseconds_become_microseconds(tool, tmp_path):
    at = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)
    assert wanted_of(tool, tmp_path, cell(at, pa.timestamp("ms")), pa.timestamp("us")) == [at, None]


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("digits, wider", [(4, 9), (9, 18), (9, 38), (18, 38), (20, 38), (38, 60), (9, 76)])
def test_decimals_of_more_digits(tool, tmp_path, digits, wider, as_integer):
    def kind(count):
        return (pa.decimal128 if count <= 38 else pa.decimal256)(count, 2)
    given = [D(s).scaleb(-2, decimal.Context(prec=90)) for s in ("9" * digits, "-" + "9" * digits, "0", "-1")]
    table = pa.table({"c": pa.array([*given, None], kind(digits))})
    options = {"store_decimal_as_integer": as_integer}
    got = wanted_of(tool, tmp_path, table, kind(wider), **options)
    assert got == [*given, None]
    assert wanted_of(tool, tmp_path, table, kind(digits), **options) == [*given, None]
    assert wanted_of(tool, tmp_path, table, kind(digits - 1), **options) is None
    other_scale = (pa.decimal128 if wider <= 38 else pa.decimal256)(wider, 3)
    assert wanted_of(tool, tmp_path, table, other_scale, **options) is None


def element(path, column=0):
    return pq.ParquetFile(path).schema.column(column)


def kept(folder, name):
    """From Parquet to Parquet and by Arrow's file to Parquet; both must say the same."""
    convert(folder / name, folder / "again.parquet")
    convert(folder / name, folder / "between.arrow")
    convert(folder / "between.arrow", folder / "third.parquet")
    return [folder / "again.parquet", folder / "third.parquet"]


def kinds(path):
    """As `schema` names them."""
    done = subprocess.run([sluice.BINARY, "parquet", "schema", "--json", path], capture_output=True, check=True)
    return [leaf["kind"] for leaf in json.loads(done.stdout)]


@pytest.mark.parametrize("number, name", [(11, "null"), (17, "geometry"), (18, "geography"), (19, "other")])
def test_kinds_without_a_type_of_ours(tmp_path, number, name):
    pq.write_table(pa.table({"c": pa.array([None], pa.binary())}), tmp_path / "plain", store_schema=False)
    (tmp_path / "f").write_bytes(with_footer((tmp_path / "plain").read_bytes(), lambda f: f[2][1].__setitem__(10, {number: {}})))
    assert kinds(tmp_path / "f") == [name]


def test_json_and_intervals_of_duckdb(tmp_path):
    query = ("select '{\"a\": 1}'::json as j, interval '14 months 3 days 5 seconds' as i, 'x'::varchar as t "
             "union all select null, null, null")
    duckdb.sql(f"copy ({query}) to '{tmp_path / 'in.parquet'}'")
    want = duckdb.sql(f"select j, i, t from '{tmp_path / 'in.parquet'}'").fetchall()
    assert kinds(tmp_path / "in.parquet") == ["json", "interval", "string"]
    for path in kept(tmp_path, "in.parquet"):
        assert str(element(path, 0).logical_type) == "JSON" and element(path, 1).converted_type == "INTERVAL"
        assert duckdb.sql(f"select j, i, t from '{path}'").fetchall() == want
        assert duckdb.sql(f"select typeof(j), typeof(i) from '{path}' limit 1").fetchall() == [("JSON", "INTERVAL")]
        assert not pq.read_metadata(path).row_group(0).column(1).is_stats_set or \
            not pq.read_metadata(path).row_group(0).column(1).statistics.has_min_max
    back = pa.ipc.open_file(tmp_path / "between.arrow").read_all()
    assert back["i"].to_pylist() == [pa.MonthDayNano([14, 3, 5 * 10 ** 9]), None]
    assert back.schema.field("i").type == pa.month_day_nano_interval()


@pytest.mark.parametrize("logical, converted", [("ENUM", 4), ("JSON", 19), ("BSON", 20)])
@pytest.mark.parametrize("way", ["old", "new"])
def test_texts_with_an_annotation(tmp_path, logical, converted, way):
    kind = pa.binary() if logical == "BSON" else pa.utf8()
    value = b"\x05\0\0\0\0" if logical == "BSON" else "a"
    pq.write_table(pa.table({"c": pa.array([value, None], kind)}), tmp_path / "plain.parquet", store_schema=False)

    def annotate(meta):
        element = meta[2][1]
        element[6] = converted
        element.pop(10, None)
        if way == "new":
            element[10] = {{"ENUM": 4, "JSON": 12, "BSON": 13}[logical]: {}}
    (tmp_path / "in.parquet").write_bytes(with_footer((tmp_path / "plain.parquet").read_bytes(), annotate))
    assert kinds(tmp_path / "in.parquet") == [logical.lower()]
    for path in kept(tmp_path, "in.parquet"):
        assert element(path).converted_type == logical
        got = pq.read_table(path)["c"].cast(kind)  # ENUM is binary to pyarrow
        assert got.to_pylist() == [value, None]


def test_intervals_that_parquet_cannot_say(tmp_path):
    for bad in ([-1, 0, 0], [0, 0, 1], [0, 0, -10 ** 6], [0, -1, 0]):
        table = pa.table({"i": pa.array([pa.MonthDayNano(bad)], pa.month_day_nano_interval())})
        with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as out:
            out.write_table(table)
        done = convert(tmp_path / "in.arrow", tmp_path / "out.parquet", check=2)
        assert "column i: value 0 does not fit its type" in done.stderr
        assert not (tmp_path / "out.parquet").exists()


UNITS = [pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.time32("ms"), pa.time64("us"),
         pa.time64("ns"), pa.uint8(), pa.int16(), pa.uint64(), pa.float16(), pa.decimal128(7, 3)]


@pytest.mark.parametrize("kind", UNITS, ids=str)
def test_annotations_stay(tmp_path, kind):
    value = D("1.250") if pa.types.is_decimal(kind) else 7
    values = pa.array([value, None], kind) if pa.types.is_decimal(kind) or pa.types.is_floating(kind) else \
        pa.array([value, None], pa.int64()).cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    pq.write_table(pa.table({"c": values}), tmp_path / "in.parquet")
    for path in kept(tmp_path, "in.parquet"):
        assert str(element(path).logical_type) == str(element(tmp_path / "in.parquet").logical_type) or \
            pa.types.is_time(kind) and path.name == "third.parquet"  # Arrow's times have no zone to keep
        assert pq.read_table(path)["c"].to_pylist() == values.to_pylist()
        assert pq.read_table(path)["c"].type == kind
