# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables written by our C code, read and continued by programs we did not write, and the reverse.

The C side is lake_tool (tools/lake_tool.c); it takes paths and metrics of Parquet files that pyarrow
writes here. SLUICE_LAKE_TOOL names the program.
"""
import datetime as dt
import glob
import json
import os
import sqlite3
import struct
import subprocess
import sys
import uuid

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import DayTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

TOOL = os.environ.get("SLUICE_LAKE_TOOL", "build/test/unit/iceberg/lake_tool")
UTC = dt.timezone.utc
DAY = 86_400_000_000

# Ids given by hand, so that the Parquet files below can carry them.
FIELDS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "time", "required": True, "type": "timestamptz"},
    {"id": 3, "name": "name", "required": False, "type": "string", "doc": "who said \"it\""},
    {"id": 4, "name": "value", "required": False, "type": "double"},
    {"id": 5, "name": "attributes", "required": False,
     "type": {"type": "map", "key-id": 6, "key": "string", "value-id": 7, "value": "string",
              "value-required": False}},
    {"id": 8, "name": "events", "required": False,
     "type": {"type": "list", "element-id": 9, "element-required": True,
              "element": {"type": "struct", "fields": [
                  {"id": 10, "name": "at", "required": False, "type": "timestamptz"},
                  {"id": 11, "name": "what", "required": False, "type": "string"}]}}},
]
SCHEMA = {"type": "struct", "schema-id": 0, "fields": FIELDS}


def field(name, kind, number, nullable=True):
    return pa.field(name, kind, nullable, {"PARQUET:field_id": str(number)})


INSTANT = pa.timestamp("us", "UTC")
ARROW = pa.schema([
    field("id", pa.int64(), 1, False),
    field("time", INSTANT, 2, False),
    field("name", pa.string(), 3),
    field("value", pa.float64(), 4),
    field("attributes", pa.map_(field("key", pa.string(), 6, False), field("value", pa.string(), 7)), 5),
    field("events", pa.list_(field("element", pa.struct([
        field("at", INSTANT, 10), field("what", pa.string(), 11)]), 9, False)), 8),
])


def rows(first, count, day):
    base = int(dt.datetime.combine(day, dt.time(), UTC).timestamp()) * 1_000_000
    step = (DAY - 1) // max(count, 1)
    stamps = [base + i * step for i in range(count)]
    return pa.table({
        "id": list(range(first, first + count)),
        "time": pa.array(stamps, pa.int64()).cast(INSTANT),
        "name": [None if i % 7 == 3 else f"näme {i % 5}" for i in range(count)],
        "value": [float("nan") if day.day % 2 and i == 1 else i / 3 for i in range(count)],
        "attributes": [[("k", str(i)), ("none", None)] for i in range(count)],
        "events": [[{"at": dt.datetime.fromtimestamp(i, UTC), "what": f"w{i}"}] * (i % 3)
                   for i in range(count)],
    }, schema=ARROW)


class Lake:
    def __init__(self, directory, name="sluice"):
        self.dir, self.name = str(directory), name
        self.db = self.dir + "/catalog.db"
        self.root = self.dir + "/warehouse"
        self.files = 0

    def run(self, command, given=None, table="t", ns="otel", check=True):
        argv = [TOOL, command, self.db, self.root, self.name, ns, table]
        if given is not None:
            path = self.dir + "/input.json"
            with open(path, "w") as out:
                json.dump(given, out)
            argv.append(path)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        if check:
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout) if done.stdout.strip() else None
        return done

    def pyiceberg(self, **more):
        return SqlCatalog(self.name, uri="sqlite:///" + self.db, warehouse="file://" + self.root, **more)

    def create(self, partition, **more):
        return self.run("create", {"schema": SCHEMA, "partition": partition, **more}, more.get("table", "t"))

    def write(self, data, partition):
        """A Parquet file and what the manifest says of it."""
        self.files += 1
        path = f"{self.root}/otel/t/data/f{self.files}-{uuid.uuid4()}.parquet"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pq.write_table(data, path, row_group_size=1000)
        meta = pq.ParquetFile(path).metadata
        columns = []
        for index, number in enumerate([1, 2, 3, 4, 6, 7, 10, 11]):
            chunks = [meta.row_group(g).column(index) for g in range(meta.num_row_groups)]
            column = {"id": number, "bytes": sum(c.total_compressed_size for c in chunks),
                      "values": sum(c.num_values for c in chunks)}
            if index < 4:
                values = data.column(index)
                column["nulls"] = values.null_count
                nans = pc.sum(pc.is_nan(values)).as_py() if index == 3 else 0
                if index == 3:
                    column["nans"] = nans
                if not nans:
                    low, high = pc.min(values), pc.max(values)
                    encode = {0: lambda v: struct.pack("<q", v.as_py()),
                              1: lambda v: struct.pack("<q", v.cast(pa.int64()).as_py()),
                              2: lambda v: v.as_py().encode(),
                              3: lambda v: struct.pack("<d", v.as_py())}[index]
                    column["lower"], column["upper"] = encode(low).hex(), encode(high).hex()
            columns.append(column)
        return {"path": path, "records": meta.num_rows, "size": os.path.getsize(path),
                "partition": partition, "columns": columns,
                "splits": [meta.row_group(g).column(0).dictionary_page_offset or 4
                           for g in range(meta.num_row_groups)]}


def days_of(day):
    return (day - dt.date(1970, 1, 1)).days


DAY_PARTITION = [{"source": "time", "name": "time_day", "transform": "day"}]
FIRST, SECOND = dt.date(2026, 11, 28), dt.date(2026, 11, 29)


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path)


@pytest.fixture
def filled(lake):
    """Two appends, the second with custom summary keys and properties."""
    lake.create(DAY_PARTITION, sort=[{"source": "time"}], properties={"owner": "us"})
    lake.expected = [rows(0, 2500, FIRST), rows(2500, 1500, SECOND), rows(4000, 500, FIRST)]
    lake.run("append", {"files": [lake.write(lake.expected[0], [days_of(FIRST)]),
                                  lake.write(lake.expected[1], [days_of(SECOND)])]})
    lake.last = lake.run("append", {"files": [lake.write(lake.expected[2], [days_of(FIRST)])],
                                    "summary": {"sluice.x": "7"}, "properties": {"sluice.p": "q"}})
    lake.table = pa.concat_tables(lake.expected).sort_by("id")
    return lake


def same(found, expected):
    found = found.sort_by("id")
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        # By text: NaN equals itself.
        assert str(found.column(name).to_pylist()) == str(expected.column(name).to_pylist()), name


def duck():
    connection = duckdb.connect()
    site = os.path.dirname(os.path.dirname(duckdb.__file__))
    for extension in ("avro", "iceberg"):
        (path,) = glob.glob(f"{site}/duckdb_extension_{extension}/extensions/*/*.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    connection.execute("SET TimeZone='UTC'")
    return connection


# ---- our tables, their readers ----

def test_pyiceberg_reads(filled):
    table = filled.pyiceberg().load_table("otel.t")
    same(table.scan().to_arrow(), filled.table)
    assert table.properties["owner"] == "us" and table.properties["sluice.p"] == "q"
    summary = table.current_snapshot().summary
    assert summary["sluice.x"] == "7" and summary["total-records"] == "4500"
    assert summary["total-data-files"] == "3" and summary["added-records"] == "500"
    sizes = sum(task.file.file_size_in_bytes for task in table.scan().plan_files())
    assert summary["total-files-size"] == str(sizes)
    assert len(table.history()) == 2
    # Pruning by partition and by bounds.
    day = table.scan(row_filter="time >= '2026-11-29T00:00:00+00:00'")
    assert len(list(day.plan_files())) == 1 and day.to_arrow().num_rows == 1500
    assert len(list(table.scan(row_filter="id > 4100").plan_files())) == 1
    # A column with a NaN has no bounds, so nothing of it is pruned away.
    assert table.scan(row_filter="value > 1000000").to_arrow().num_rows == 0
    assert table.scan(row_filter="value is nan").to_arrow().num_rows == \
        sum(pc.sum(pc.is_nan(t["value"])).as_py() for t in filled.expected)
    old = table.scan(snapshot_id=table.history()[0].snapshot_id).to_arrow()
    assert old.num_rows == 4000
    assert [str(f.transform) for f in table.spec().fields] == ["day"]


def test_duckdb_reads_metadata_and_directory(filled):
    connection = duck()
    for place in (filled.last["metadata-location"], filled.root + "/otel/t"):
        scan = f"iceberg_scan('{place}')"
        count, total = connection.execute(f"SELECT count(*), sum(id) FROM {scan}").fetchone()
        assert (count, total) == (4500, 4500 * 4499 // 2)
        found = connection.execute(f"SELECT * FROM {scan} ORDER BY id").to_arrow_table()
        assert found.column("name").to_pylist() == filled.table.column("name").to_pylist()
        assert str(found.column("attributes").to_pylist()) == str(filled.table.column("attributes").to_pylist())
        assert found.column("events").to_pylist()[5] == filled.table.column("events").to_pylist()[5]
        assert connection.execute(
            f"SELECT count(*) FROM {scan} WHERE time >= '2026-11-29 00:00:00+00'").fetchone()[0] == 1500
        assert connection.execute(f"SELECT count(*) FROM {scan} WHERE isnan(value)").fetchone()[0] == 1
    hint = open(filled.root + "/otel/t/metadata/version-hint.text").read()
    assert filled.last["metadata-location"].endswith(f"/{hint}.metadata.json") and "\n" not in hint


def test_polars_reads(filled):
    import polars
    frame = polars.scan_iceberg(filled.last["metadata-location"]).sort("id").collect()
    assert frame["id"].to_list() == list(range(4500))
    assert frame["name"].to_list() == filled.table["name"].to_pylist()


def test_clickhouse_reads(filled):
    table = f"icebergLocal('{filled.root}/otel/t')"
    ask = lambda what: sluice.clickhouse(f"SELECT {what}", filled.root).decode().split()  # noqa: E731
    assert ask(f"count(), sum(id), sum(length(mapKeys(attributes))) FROM {table}") == \
        ["4500", str(4500 * 4499 // 2), "9000"]
    assert ask(f"count() FROM {table} WHERE time >= toDateTime64('2026-11-29 00:00:00', 6, 'UTC')") == ["1500"]


def test_static_table_reads(filled):
    assert StaticTable.from_metadata(filled.last["metadata-location"]).scan().to_arrow().num_rows == 4500


def header(path):
    with open(path.removeprefix("file://"), "rb") as file:
        reader = fastavro.reader(file)
        return reader.metadata, list(reader), reader.writer_schema


def walk(schema, ids):
    """All Avro fields with their ids; TB2, TB3."""
    if isinstance(schema, list):
        for branch in schema:
            walk(branch, ids)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            for each in schema["fields"]:
                assert "field-id" in each, each
                ids[each["name"]] = each["field-id"]
                walk(each["type"], ids)
        elif schema["type"] == "array":
            items = schema["items"]
            is_map = schema.get("logicalType") == "map"
            assert is_map == (isinstance(items, dict) and items.get("name", "").startswith("k1"))
            assert is_map or "element-id" in schema
            walk(items, ids)


def test_headers_as_java_writes_them(filled):
    """TB3: bare primitive names, the table's schema with all its fields, the spec as a list; TB2."""
    table = filled.pyiceberg().load_table("otel.t")
    list_meta, manifests, list_schema = header(table.current_snapshot().manifest_list)
    assert list_meta["format-version"] == "2" and list_meta["avro.codec"] == "deflate"
    assert list_meta["snapshot-id"] == str(table.current_snapshot().snapshot_id)
    assert list_meta["parent-snapshot-id"] == str(table.history()[0].snapshot_id)
    assert list_meta["sequence-number"] == "2"
    assert len(manifests) == 2
    ids = {}
    walk(list_schema, ids)
    assert ids["manifest_path"] == 500 and ids["upper_bound"] == 511
    for row in manifests:
        assert row["manifest_length"] == os.path.getsize(row["manifest_path"].removeprefix("file://"))
        assert len(row["partitions"]) == 1 and row["partitions"][0]["contains_nan"] is False
        meta, entries, schema = header(row["manifest_path"])
        assert json.loads(meta["schema"])["fields"] == FIELDS
        assert json.loads(meta["partition-spec"]) == [
            {"name": "time_day", "transform": "day", "source-id": 2, "field-id": 1000}]
        assert (meta["content"], meta["format-version"], meta["partition-spec-id"], meta["schema-id"]) == \
            ("data", "2", "0", "0")
        ids = {}
        walk(schema, ids)
        assert ids["time_day"] == 1000 and ids["sort_order_id"] == 140
        # The first field of an int map's pair; plain names, no wrapped {"type": "long"}.
        text = json.dumps(json.loads(json.dumps(schema)))
        assert '{"type": "long"}' not in text and '{"type": "string"}' not in text
        low = struct.unpack("<i", row["partitions"][0]["lower_bound"])[0]
        assert low == min(days_of(e["data_file"]["partition"]["time_day"]) if isinstance(
            e["data_file"]["partition"]["time_day"], dt.date) else e["data_file"]["partition"]["time_day"]
            for e in entries)
        for entry in entries:
            assert entry["status"] == 1 and entry["sequence_number"] is None
            assert entry["data_file"]["file_size_in_bytes"] == os.path.getsize(
                entry["data_file"]["file_path"].removeprefix("file://"))
            assert entry["data_file"]["split_offsets"] and entry["data_file"]["sort_order_id"] == 1


def test_unpartitioned(lake):
    """TB5: the summaries of an unpartitioned table are an empty list."""
    lake.create([])
    data = rows(0, 10, FIRST)
    shown = lake.run("append", {"files": [lake.write(data, [])]})
    (snapshot,) = shown["metadata"]["snapshots"]
    _, (row,), _ = header(snapshot["manifest-list"])
    assert row["partitions"] == []
    assert shown["metadata"]["last-partition-id"] == 999
    same(lake.pyiceberg().load_table("otel.t").scan().to_arrow(), data)
    assert duck().execute(f"SELECT count(*) FROM iceberg_scan('{shown['metadata-location']}')").fetchone()[0] == 10


def test_hour_partitions_over_midnight(lake):
    """TB6: the tuple in the manifest is what counts."""
    lake.create([{"source": "time", "name": "time_hour", "transform": "hour"}])
    files = []
    for hour in (23, 24):
        start = dt.datetime(2026, 11, 28, tzinfo=UTC) + dt.timedelta(hours=hour)
        data = rows(hour * 100, 5, FIRST).set_column(
            1, ARROW.field("time"), pa.array([start + dt.timedelta(minutes=i) for i in range(5)], INSTANT))
        files.append(lake.write(data, [int(start.timestamp()) // 3600]))
    lake.run("append", {"files": files})
    table = lake.pyiceberg().load_table("otel.t")
    scan = table.scan(row_filter="time >= '2026-11-29T00:00:00+00:00'")
    assert len(list(scan.plan_files())) == 1 and scan.to_arrow()["id"].to_pylist() == list(range(2400, 2405))
    assert {p["partition"]["time_hour"] for p in table.inspect.partitions().to_pylist()} == {
        days_of(FIRST) * 24 + 23, days_of(FIRST) * 24 + 24}
    assert [p["partition"] for p in lake.run("plan")] == ["time_hour=2026-11-28-23", "time_hour=2026-11-29-00"]


def test_every_partition_type(lake):
    fields = [
        {"id": 1, "name": "b", "required": False, "type": "boolean"},
        {"id": 2, "name": "i", "required": False, "type": "int"},
        {"id": 3, "name": "l", "required": False, "type": "long"},
        {"id": 4, "name": "s", "required": False, "type": "string"},
        {"id": 5, "name": "d", "required": False, "type": "date"},
        {"id": 6, "name": "t", "required": False, "type": "timestamptz"},
        {"id": 7, "name": "f", "required": False, "type": "double"},
        {"id": 8, "name": "x", "required": False, "type": "binary"},
    ]
    partition = [{"source": f["name"], "name": f["name"], "transform": "identity"} for f in fields]
    partition += [{"source": "s", "name": "s_bucket", "transform": "bucket[16]"},
                  {"source": "l", "name": "l_trunc", "transform": "truncate[10]"},
                  {"source": "t", "name": "t_month", "transform": "month"},
                  {"source": "t", "name": "t_year", "transform": "year"},
                  {"source": "i", "name": "i_void", "transform": "void"}]
    lake.run("create", {"schema": {"type": "struct", "fields": fields}, "partition": partition})
    arrow = pa.schema([field(f["name"], kind, f["id"]) for f, kind in zip(fields, [
        pa.bool_(), pa.int32(), pa.int64(), pa.string(), pa.date32(), INSTANT, pa.float64(), pa.binary()])])
    data = pa.table({"b": [True], "i": [-5], "l": [-11], "s": ["iceberg"], "d": [dt.date(2017, 11, 16)],
                     "t": [dt.datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC)], "f": [1.5], "x": [b"\1\2"]},
                    schema=arrow)
    os.makedirs(lake.root + "/otel/t/data")
    files = []
    for number, (rows_, values) in enumerate([
            (data, [True, -5, -11, "iceberg", 17486, 1510871468000000, 1.5, "0102", 1210000089 % 16, -20,
                    47 * 12 + 10, 47, None]),
            (pa.table({n: pa.nulls(1, t) for n, t in zip(arrow.names, arrow.types)}, schema=arrow), [None] * 13)]):
        path = f"{lake.root}/otel/t/data/{number}.parquet"
        pq.write_table(rows_, path)
        files.append({"path": path, "records": 1, "size": os.path.getsize(path), "partition": values})
    shown = lake.run("append", {"files": files})
    table = lake.pyiceberg().load_table("otel.t")
    assert table.scan().to_arrow().num_rows == 2
    assert table.scan(row_filter="s == 'iceberg' and i == -5 and d == '2017-11-16' and b == true").to_arrow().num_rows == 1
    assert len(list(table.scan(row_filter="t > '2017-01-01T00:00:00+00:00'").plan_files())) == 1
    assert len(list(table.scan(row_filter="s is null").plan_files())) == 1
    scan = f"iceberg_scan('{shown['metadata-location']}')"
    assert duck().execute(f"SELECT count(*) FROM {scan} WHERE l = -11 AND s = 'iceberg'").fetchone()[0] == 1
    plan = lake.run("plan")
    assert plan[0]["partition"].startswith("b=true/i=-5/l=-11/s=iceberg/d=2017-11-16/t=1510871468000000/f=1.5/x=0102/s_bucket=9/l_trunc=-20/t_month=2017-11/t_year=2017/i_void=null")


def test_empty_snapshots_move_main(filled):
    """A takeover is an empty snapshot (E5); also as the first one of a table."""
    before = filled.run("show")["snapshot-id"]
    shown = filled.run("append", {"files": [], "summary": {"sluice.epoch": "3"}})
    assert shown["snapshot-id"] != before
    table = filled.pyiceberg().load_table("otel.t")
    same(table.scan().to_arrow(), filled.table)
    assert table.current_snapshot().summary["total-records"] == "4500"
    assert duck().execute(f"SELECT count(*) FROM iceberg_scan('{shown['metadata-location']}')").fetchone()[0] == 4500
    filled.run("create", {"schema": SCHEMA, "partition": DAY_PARTITION}, table="fresh")
    shown = filled.run("append", {"files": []}, table="fresh")
    assert filled.pyiceberg().load_table("otel.fresh").scan().to_arrow().num_rows == 0
    assert duck().execute(f"SELECT count(*) FROM iceberg_scan('{shown['metadata-location']}')").fetchone()[0] == 0


# ---- both ways ----

def test_pyiceberg_appends_and_we_go_on(filled):
    catalog = filled.pyiceberg()
    more = rows(5000, 100, SECOND)
    catalog.load_table("otel.t").append(more)
    plan = filled.run("plan")
    assert sum(f["records"] for f in plan) == 4600
    assert {f["partition"] for f in plan} == {"time_day=2026-11-28", "time_day=2026-11-29"}
    again = rows(6000, 50, FIRST)
    shown = filled.run("append", {"files": [filled.write(again, [days_of(FIRST)])]})
    table = catalog.load_table("otel.t")
    same(table.scan().to_arrow(), pa.concat_tables([filled.table, more, again]))
    assert table.current_snapshot().summary["total-records"] == "4650"
    assert shown["metadata"]["last-sequence-number"] == 4
    table.append(rows(7000, 1, FIRST))
    table.delete("id = 7000")
    assert table.scan().to_arrow().num_rows == 4650
    filled.run("append", {"files": [filled.write(rows(8000, 1, FIRST), [days_of(FIRST)])]})
    assert catalog.load_table("otel.t").scan().to_arrow().num_rows == 4651
    assert duck().execute(f"SELECT count(*) FROM iceberg_scan('{filled.root}/otel/t')").fetchone()[0] == 4651


@pytest.mark.parametrize("version", ["V0", "V1"])
def test_pyiceberg_tables_are_continued(lake, version):
    os.makedirs(lake.root)
    if version == "V0":
        with sqlite3.connect(lake.db) as connection:
            connection.executescript(
                "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255)"
                " NOT NULL, table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),"
                " previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name));"
                "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace"
                " VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL,"
                " PRIMARY KEY (catalog_name, namespace, property_key));")
    catalog = lake.pyiceberg()
    catalog.create_namespace("otel")
    schema = Schema(NestedField(1, "id", LongType(), required=False),
                    NestedField(2, "time", TimestamptzType(), required=False),
                    NestedField(3, "name", StringType(), required=False))
    table = catalog.create_table("otel.t", schema, partition_spec=PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "time_day")))
    small = pa.schema([pa.field("id", pa.int64()), pa.field("time", INSTANT), pa.field("name", pa.string())])
    table.append(rows(0, 10, FIRST).select(["id", "time", "name"]).cast(small))
    shown = lake.run("show")
    assert shown["sequence"] == 1
    assert lake.run("list") == {"otel": ["t"]}
    ids = pa.schema([field("id", pa.int64(), 1), field("time", INSTANT, 2), field("name", pa.string(), 3)])
    path = f"{lake.root}/otel/t/data/ours.parquet"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(rows(10, 5, SECOND).select(["id", "time", "name"]).cast(ids), path)
    lake.run("append", {"files": [{"path": path, "records": 5, "size": os.path.getsize(path),
                                   "partition": [days_of(SECOND)]}]})
    assert sorted(catalog.load_table("otel.t").scan().to_arrow()["id"].to_pylist()) == list(range(15))
    # One that we make, seen by them.
    lake.run("create", {"schema": SCHEMA, "partition": DAY_PARTITION}, table="ours")
    assert sorted(catalog.list_tables("otel")) == [("otel", "ours"), ("otel", "t")]
    columns = [row[1] for row in sqlite3.connect(lake.db).execute("PRAGMA table_info(iceberg_tables)")]
    if version == "V0":
        assert "iceberg_type" not in columns
    else:
        kinds = dict(sqlite3.connect(lake.db).execute("SELECT table_name, iceberg_type FROM iceberg_tables"))
        assert kinds["ours"] == "TABLE"


def test_schema_evolved_by_pyiceberg(filled):
    table = filled.pyiceberg().load_table("otel.t")
    with table.update_schema() as update:
        update.add_column("extra", StringType())
    shown = filled.run("append", {"files": [filled.write(rows(9000, 3, FIRST), [days_of(FIRST)])]})
    assert shown["metadata"]["current-schema-id"] == 1
    found = filled.pyiceberg().load_table("otel.t").scan().to_arrow()
    assert found.num_rows == 4503 and found["extra"].null_count == 4503


def test_we_change_schema_and_properties(filled):
    new = json.loads(json.dumps(SCHEMA))
    new["fields"].append({"id": 12, "name": "more", "required": False, "type": "int"})
    filled.run("change", {"updates": [
        {"action": "add-schema", "schema": new}, {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-properties", "updates": {"a": "b"}}, {"action": "remove-properties", "removals": ["owner"]}]})
    table = filled.pyiceberg().load_table("otel.t")
    assert table.schema().find_field("more").field_id == 12 and table.metadata.last_column_id == 12
    assert "owner" not in table.properties and table.properties["a"] == "b"
    assert table.scan().to_arrow()["more"].null_count == 4500
    table.append(rows(9000, 2, FIRST).append_column("more", pa.array([1, 2], pa.int32())))
    assert filled.run("show")["sequence"] == 3


def test_many_appends_merge_manifests(lake):
    """More than a hundred small manifests become one; every file stays, once, with its sequence number."""
    lake.create(DAY_PARTITION)
    for i in range(104):
        day = FIRST if i % 2 else SECOND
        lake.run("append", {"files": [lake.write(rows(i * 2, 2, day), [days_of(day)])]})
    table = lake.pyiceberg().load_table("otel.t")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(208))
    manifests = table.current_snapshot().manifests(table.io)
    assert len(manifests) < 10
    merged = [m for m in manifests if m.existing_files_count]
    assert len(merged) == 1 and merged[0].min_sequence_number == 1
    plan = lake.run("plan")
    assert len({f["path"] for f in plan}) == len(plan) == 104
    assert sorted(f["sequence"] for f in plan) == list(range(1, 105))
    assert len(list(table.scan(row_filter="id = 3").plan_files())) == 1  # metrics survived
    assert duck().execute(f"SELECT count(*) FROM iceberg_scan('{lake.root}/otel/t')").fetchone()[0] == 208
    log = lake.run("show")["metadata"]["metadata-log"]
    assert len(log) == 100 and len(lake.run("show")["metadata"]["snapshot-log"]) == 104


# ---- faults ----

def test_conflicts_and_requirements(filled):
    done = filled.run("append", {"files": [], "require": {"owner": "them"}}, check=False)
    assert done.returncode == 4 and done.stderr.startswith("CONFLICT")
    done = filled.run("append", {"files": [], "require": {"owner": "us", "none": None},
                                 "snapshot-id": 42}, check=False)
    assert done.returncode == 0
    done = filled.run("append", {"files": [], "snapshot-id": 42}, check=False)
    assert done.stderr.startswith("CONFLICT")
    done = filled.run("create", {"schema": SCHEMA, "partition": []}, check=False)
    assert done.stderr.startswith("EXISTS")
    assert filled.run("show", table="none", check=False).stderr.startswith("NOT_FOUND")


def test_damaged_metadata_is_named(filled):
    """E17: the catalog points at a file that is gone or no metadata."""
    path = filled.run("show")["metadata-location"].removeprefix("file://")
    whole = open(path, "rb").read()
    for damage in (b"", whole[:100], b"[]", b"{}", whole.replace(b'"format-version":2', b'"format-version":"2"')):
        open(path, "wb").write(damage)
        done = filled.run("show", check=False)
        assert done.stderr.startswith("CORRUPT") and os.path.basename(path)[:20] in done.stderr, done.stderr
    os.remove(path)
    assert filled.run("show", check=False).stderr.startswith("CORRUPT")


def test_locks_are_sqlites_own(filled):
    """Another program's lock makes us wait, and ours is seen by it."""
    other = sqlite3.connect(filled.db, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    process = subprocess.Popen([TOOL, "append", filled.db, filled.root, "sluice", "otel", "t", filled.dir + "/input.json"],
                               stdout=subprocess.DEVNULL)
    json.dump({"files": []}, open(filled.dir + "/input.json", "w"))
    import time
    time.sleep(1)
    assert process.poll() is None
    other.execute("COMMIT")
    assert process.wait(20) == 0
    other.execute("BEGIN EXCLUSIVE")
    done = filled.run("append", {"files": []}, check=False)
    assert done.stderr.startswith("BUSY") and done.returncode == 75
    other.execute("COMMIT")


def test_concurrent_writers_of_both_kinds(lake):
    """Four programs append at the same time; conflicts are retried; no row is lost or doubled."""
    lake.create(DAY_PARTITION)
    script = lake.dir + "/theirs.py"
    with open(script, "w") as out:
        out.write(f"""
import sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from test_iceberg_tables import *
from pyiceberg.exceptions import CommitFailedException
lake = Lake({lake.dir!r})
for i in range(4):
    data = rows(1000 + i * 10, 10, FIRST)
    while True:
        try:
            lake.pyiceberg().load_table("otel.t").append(data)
            break
        except CommitFailedException:
            pass
""")
    theirs = subprocess.Popen([sys.executable, script])
    pending = []
    for worker in range(3):
        data = rows(worker * 100, 10, SECOND)
        path = f"{lake.dir}/input-{worker}.json"
        json.dump({"files": [lake.write(data, [days_of(SECOND)])]}, open(path, "w"))
        pending.append([TOOL, "append", lake.db, lake.root, "sluice", "otel", "t", path])
    conflicts = 0
    running = [(argv, subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True))
               for argv in pending for _ in range(1)]
    while running:
        argv, process = running.pop(0)
        message = process.communicate(timeout=60)[1]
        if process.returncode != 0:
            assert message.startswith(("CONFLICT", "BUSY")), message
            conflicts += 1
            running.append((argv, subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)))
    assert theirs.wait(120) == 0
    found = sorted(lake.pyiceberg().load_table("otel.t").scan().to_arrow()["id"].to_pylist())
    assert found == sorted([w * 100 + i for w in range(3) for i in range(10)] + [1000 + i for i in range(40)])


def test_making_durable(filled):
    assert filled.run("durable")["snapshot-id"] == filled.run("foreign")["snapshot-id"]


def test_spellings_of_locations(filled):
    """Spark leaves "file:/p" in the catalog, others bare paths."""
    location = filled.run("show")["metadata-location"]
    for spelling in ("file:" + location.removeprefix("file://"), location.removeprefix("file://")):
        with sqlite3.connect(filled.db) as connection:
            connection.execute("UPDATE iceberg_tables SET metadata_location = ?", [spelling])
        connection.close()
        shown = filled.run("append", {"files": []})
        assert shown["metadata-location"].startswith("file:///")
        assert filled.pyiceberg().load_table("otel.t").scan().to_arrow().num_rows == 4500
        location = shown["metadata-location"]
