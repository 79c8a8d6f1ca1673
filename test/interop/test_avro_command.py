# SPDX-License-Identifier: Apache-2.0
"""sluice avro: container files of fastavro, PyIceberg, DuckDB and Polars, value for value; what is damaged."""
import datetime
import decimal
import glob
import io
import json
import pathlib
import subprocess
import sys
import uuid
import zlib

import duckdb
import fastavro
import polars
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402
from rows_json import assert_row, base64_text, days_text, parsed, real, time_text, timestamp_text  # noqa: E402
from test_arrow_command import unharmed  # noqa: E402

STAMPS = {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns",
          "local-timestamp-millis": "ms", "local-timestamp-micros": "us", "local-timestamp-nanos": "ns"}


def avro(*words, check=0):
    done = subprocess.run([str(sluice.BINARY), "avro", *map(str, words)], capture_output=True)
    assert check is None or done.returncode == check, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


SCHEMA = {
    "type": "record", "name": "row", "namespace": "a.b", "fields": [
        {"name": "nothing", "type": "null"}, {"name": "flag", "type": "boolean"},
        {"name": "int", "type": "int"}, {"name": "long", "type": "long", "field-id": 7},
        {"name": "float", "type": "float"}, {"name": "double", "type": "double"},
        {"name": "bytes", "type": "bytes"}, {"name": "text", "type": ["null", "string"]},
        {"name": "either", "type": ["null", "long", "string", "boolean", {"type": "array", "items": "int"}]},
        {"name": "fixed", "type": {"type": "fixed", "name": "four", "size": 4}},
        {"name": "again", "type": ["null", "four"]},
        {"name": "suit", "type": {"type": "enum", "name": "suit", "symbols": ["SPADES", "HEARTS"]}},
        {"name": "list", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "nulls", "type": {"type": "array", "items": "null"}},
        {"name": "map", "type": {"type": "map", "values": {"type": "map", "values": "double"}}},
        {"name": "inner", "type": ["null", {"type": "record", "name": "node", "fields": [
            {"name": "value", "type": "int"}, {"name": "next", "type": ["null", "node"]}]}]},
        {"name": "nobody", "type": {"type": "record", "name": "empty", "fields": []}},
        {"name": "date", "type": {"type": "int", "logicalType": "date"}},
        {"name": "t_ms", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "t_us", "type": {"type": "long", "logicalType": "time-micros"}},
        *({"name": name.replace("-", "_"), "type": {"type": "long", "logicalType": name}} for name in STAMPS),
        {"name": "iceberg_local", "type": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False}},
        {"name": "dec", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 4}},
        {"name": "dec_fixed", "type": {"type": "fixed", "name": "d16", "size": 16, "logicalType": "decimal",
                                       "precision": 38, "scale": 0}},
        {"name": "uuid_text", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "uuid_fixed", "type": {"type": "fixed", "name": "u16", "size": 16, "logicalType": "uuid"}},
        {"name": "duration", "type": {"type": "fixed", "name": "u12", "size": 12, "logicalType": "duration"}},
        {"name": "unknown", "type": {"type": "string", "logicalType": "of-nobody"}},
    ]}

# Logical types go in as what stands behind them, so that nothing is lost on the way.
PLAIN = json.loads(json.dumps(SCHEMA).replace('"logicalType"', '"was"'))


def rows():
    some_id = uuid.UUID(int=2**127 + 5)
    for i in range(60):
        sign = -1 if i % 2 else 1
        yield {
            "nothing": None, "flag": i % 2 == 0, "int": sign * (2**31 - 1), "long": sign * (2**63 - 1) - i % 2,
            "float": [1.5, float("nan"), float("-inf"), -0.0][i % 4], "double": [1e300, 5e-324, float("inf"), 0.1][i % 4],
            "bytes": bytes(range(i)), "text": [None, "", "é\n\"", "x" * 3000][i % 4],
            "either": [None, 5, "five", True, [1, 2]][i % 5], "fixed": b"\x00\xff" * 2, "again": [None, b"abcd"][i % 2],
            "suit": ["SPADES", "HEARTS"][i % 2], "list": [None, 1, -2**40][:i % 4], "nulls": [None] * (i % 5),
            "map": {f"k{j}": {"": 1.5, "ü": float(j)} for j in range(i % 3)},
            "inner": [None, {"value": 1, "next": {"value": 2, "next": {"value": 3, "next": None}}}][i % 2],
            "nobody": {}, "date": sign * 719163, "t_ms": i * 1000003, "t_us": i * 1000000007,
            **{name.replace("-", "_"): sign * (10**15 + i) for name in STAMPS}, "iceberg_local": -1,
            "dec": (sign * (10**29 + i)).to_bytes(i % 3 + 13, "big", signed=True) if i % 5 else b"\x00",
            "dec_fixed": (sign * (10**37 + i)).to_bytes(16, "big", signed=True),
            "uuid_text": str(some_id), "uuid_fixed": some_id.bytes,
            "duration": b"".join(n.to_bytes(4, "little") for n in (i, 2**32 - 1, 0)), "unknown": "u"}


def expected(kind, value):
    """What must be printed for a value that fastavro read without its logical types."""
    if isinstance(kind, list):
        if value is None:
            return None
        names = {bool: "boolean", int: "long", str: "string", list: "array", dict: "record", bytes: "fixed", float: "double"}
        fits = [k for k in kind if (k if isinstance(k, str) else k["type"]) in (
            names[type(value)], "int" if isinstance(value, int) and not isinstance(value, bool) else "-",
            "bytes" if isinstance(value, bytes) else "-", "float" if isinstance(value, float) else "-",
            "map" if isinstance(value, dict) else "-", "enum" if isinstance(value, str) else "-")]
        others = [k for k in kind if isinstance(k, str) and k not in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")]
        return expected((fits or others)[0], value)
    if isinstance(kind, str):
        if isinstance(value, bytes):
            return base64_text(value)
        if isinstance(value, dict):  # a name: the node within itself
            return {"value": value["value"], "next": value["next"] and expected("node", value["next"])}
        return real(value) if isinstance(value, float) else value
    logical, name = kind.get("logicalType"), kind["type"]
    if logical == "date":
        return days_text(value)
    if logical in ("time-millis", "time-micros"):
        return time_text(value, "ms" if logical == "time-millis" else "us")
    if logical in STAMPS:
        return timestamp_text(value, STAMPS[logical], not logical.startswith("local") and kind.get("adjust-to-utc", True))
    if logical == "decimal":
        return decimal.Decimal(f"{int.from_bytes(value, 'big', signed=True)}E-{kind['scale']}")
    if logical == "uuid" and isinstance(value, bytes):
        return str(uuid.UUID(bytes=value))
    if logical == "duration":
        return {part: int.from_bytes(value[at:at + 4], "little")
                for part, at in (("months", 0), ("days", 4), ("milliseconds", 8))}
    if name == "record":
        return {f["name"]: expected(f["type"], value[f["name"]]) for f in kind["fields"]}
    if name == "array":
        return [expected(kind["items"], v) for v in value]
    if name == "map":
        return {k: expected(kind["values"], v) for k, v in value.items()}
    return expected(name, value)


def zigzag(value):
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def container(schema, blocks, codec="null", sync=b"0123456789abcdef"):
    """A file of blocks (count, data) that are stored by a codec that fastavro has not here."""
    store = {"null": lambda d: d, "deflate": lambda d: zlib.compress(d, wbits=-15),
             "snappy": lambda d: pa.Codec("snappy").compress(d).to_pybytes() + zlib.crc32(d).to_bytes(4, "big"),
             "zstandard": lambda d: pa.Codec("zstd").compress(d).to_pybytes(), "xz": lambda d: d}[codec]
    header = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode(), "note": b"\xff"}
    out = b"Obj\x01" + zigzag(len(header))
    for key, value in header.items():
        out += zigzag(len(key)) + key.encode() + zigzag(len(value)) + value
    out += zigzag(0) + sync
    for count, data in blocks:
        stored = store(data)
        out += zigzag(count) + zigzag(len(stored)) + stored + sync
    return out


def encoded(schema, records):
    out = io.BytesIO()
    for record in records:
        fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def everything(codec, size=None):
    records = list(rows())[:size]
    plain = fastavro.parse_schema(json.loads(json.dumps(PLAIN)))
    half = len(records) // 2
    return container(SCHEMA, [(half, encoded(plain, records[:half])), (0, b""),
                              (len(records) - half, encoded(plain, records[half:]))], codec), records


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_rows(tmp_path, codec):
    path = tmp_path / "in.avro"
    data, records = everything(codec)
    path.write_bytes(data)
    lines = avro("cat", path).stdout.decode().splitlines()
    assert len(lines) == len(records)
    for line, record in zip(lines, records):
        assert_row(parsed(line), expected(SCHEMA, record))
    assert avro("cat", path, "--rows", "2").stdout.decode().splitlines() == lines[:2]
    names = [f["name"] for f in SCHEMA["fields"]]
    some = avro("cat", path, "--columns", f'{names[3]},"{names[1]}"', "--rows", "2").stdout.decode().splitlines()
    assert [parsed(line) for line in some] == [{n: parsed(line)[n] for n in (names[1], names[3])} for line in lines[:2]]
    assert b"there is no column nope" in avro("cat", path, "--columns", f"nope,{names[0]}", check=3).stderr


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_rows_of_fastavro(tmp_path, codec):
    """Its own writer, with many blocks, and a file that is larger than what is read at once."""
    path = tmp_path / "in.avro"
    records = list(rows()) * 20
    with open(path, "wb") as out:
        fastavro.writer(out, json.loads(json.dumps(PLAIN)), records, codec=codec, sync_interval=3000)
    assert path.stat().st_size > 200_000 or codec == "deflate"
    lines = avro("cat", path).stdout.decode().splitlines()
    assert len(lines) == len(records)
    for line, record in zip(lines, records):
        assert_row(parsed(line), expected(PLAIN, record))


@pytest.mark.parametrize("schema, records", [
    ("long", [1, -2**63]), ("null", [None] * 5), (["null", "string"], [None, "x"]),
    ({"type": "array", "items": {"type": "map", "values": "bytes"}}, [[{"k": b"v"}], []]),
    ({"type": "record", "name": "r", "fields": []}, [{}] * 3),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["B", "A"])])
def test_schemas_that_are_no_records(tmp_path, schema, records):
    (tmp_path / "in").write_bytes(container(schema, [(len(records), encoded(fastavro.parse_schema(schema), records))]))
    lines = avro("cat", tmp_path / "in").stdout.decode().splitlines()
    assert [parsed(line) for line in lines] == [expected(schema, r) for r in records]
    assert json.loads(avro("schema", "--json", tmp_path / "in").stdout) == schema
    assert avro("schema", tmp_path / "in").stdout or schema["type"] == "record"


def test_flags_that_a_schema_has_not(tmp_path):
    (tmp_path / "in").write_bytes(container("long", [(1, b"\2")]))
    for flag in (["--columns", "a"], ["--rows", "1"]):
        assert f"avro schema has no {flag[0]}".encode() in avro("schema", *flag, tmp_path / "in", check=2).stderr


def test_arrays_of_many_runs(tmp_path):
    """As Java's blocking encoder writes them: short runs, with or without their size."""
    data = b"".join(zigzag(-1) + zigzag(1) + zigzag(i % 50) for i in range(0, 30000)) + zigzag(2) + zigzag(1) * 2 + b"\0"
    (tmp_path / "in").write_bytes(container({"type": "array", "items": "int"}, [(1, data)]))
    assert json.loads(avro("cat", tmp_path / "in").stdout) == [i % 50 for i in range(30000)] + [1, 1]


def test_long_headers(tmp_path):
    """A header that is longer than what is read at first."""
    fields = [{"name": f"column_{i}", "type": "int", "doc": "d" * 90} for i in range(2000)]
    schema = {"type": "record", "name": "r", "fields": fields}
    record = {f["name"]: i for i, f in enumerate(fields)}
    (tmp_path / "in").write_bytes(container(schema, [(1, encoded(fastavro.parse_schema(schema), [record]))]))
    assert json.loads(avro("cat", tmp_path / "in").stdout) == record
    assert len(avro("schema", tmp_path / "in").stdout.splitlines()) == 2000


def test_schema(tmp_path):
    (tmp_path / "in").write_bytes(everything("null")[0])
    assert json.loads(avro("schema", "--json", tmp_path / "in").stdout) == SCHEMA
    text = avro("schema", tmp_path / "in").stdout.decode()
    for line in ("long: long #7\n", "text: null | string\n", "fixed: fixed four\n", "again: null | four\n",
                 "suit: enum suit\n  SPADES, HEARTS\n", "list: array\n  element: null | long\n",
                 "map: map\n  value: map\n    value: double\n",
                 "inner: null | record node\n  value: int\n  next: null | node\n", "date: date as int\n",
                 "dec: decimal(30, 4) as bytes\n", "dec_fixed: decimal(38, 0) as fixed d16\n",
                 "either: null | long | string | boolean | array\n  element: int\n"):
        assert line in text, (line, text)


def test_manifests_of_pyiceberg(tmp_path):
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("n")
    table = pa.table({"id": [1, 2, 3], "at": pa.array([datetime.datetime(2024, 1, 1)] * 3, pa.timestamp("us", "UTC"))})
    made = catalog.create_table("n.t", schema=table.schema)
    for _ in range(3):
        made.append(table)
    check_manifests(f"{tmp_path}/w/n/t/metadata", 6)


def test_manifests_of_duckdb(tmp_path):
    """Its Iceberg extension's, with bounds, of rows in several files."""
    connection = duckdb.connect()
    site = pathlib.Path(duckdb.__file__).parents[1]
    for extension in ("avro", "iceberg"):
        (path,) = site.glob(f"duckdb_extension_{extension}/extensions/*/*.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    connection.execute(f"COPY (SELECT i AS id, 'text ' || i AS t, i / 7 AS x, TIMESTAMPTZ '2024-01-01' AS at, [i, null] AS l "
                       f"FROM range(5000) r(i)) TO '{tmp_path}/t' (FORMAT ICEBERG)")
    check_manifests(f"{tmp_path}/t/metadata", 2)
    (manifest,) = glob.glob(f"{tmp_path}/t/metadata/*-m0.avro")
    entries = [json.loads(line) for line in avro("cat", manifest).stdout.decode().splitlines()]
    assert sum(entry["data_file"]["record_count"] for entry in entries) == 5000


def check_manifests(directory, count):
    paths = glob.glob(f"{directory}/*.avro")
    assert len(paths) == count
    for path in paths:
        with open(path, "rb") as file:
            reader = fastavro.reader(file)
            schema = json.loads(reader.metadata["avro.schema"])
            # Read again as what stands behind the logical types.
            file.seek(0)
            records = list(fastavro.reader(file, reader_schema=None))
        lines = avro("cat", path).stdout.decode().splitlines()
        assert len(lines) == len(records)
        for line, record in zip(lines, records):
            assert_row(parsed(line), comparable(record))
        assert json.loads(avro("schema", path, "--json").stdout) == schema
        assert avro("schema", path).stdout


def comparable(value):
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [comparable(v) for v in value]
    return base64_text(value) if isinstance(value, bytes) else value


@pytest.mark.parametrize("compression", ["uncompressed", "deflate", "snappy"])
def test_rows_of_polars(tmp_path, compression):
    frame = polars.DataFrame({"s": ["a", None, "x" * 100], "n": [1, 2, None], "l": [[1, 2], [], None],
                              "d": [datetime.date(2024, 1, 1), None, None], "b": [b"\x00\xff", None, b""]})
    frame.write_avro(tmp_path / "in", compression=compression)
    assert [json.loads(line) for line in avro("cat", tmp_path / "in").stdout.splitlines()] == [
        {"s": "a", "n": 1, "l": [1, 2], "d": "2024-01-01", "b": "AP8="},
        {"s": None, "n": 2, "l": [], "d": None, "b": None}, {"s": "x" * 100, "n": None, "l": None, "d": None, "b": ""}]


def test_words_and_many_files(tmp_path):
    (tmp_path / "a").write_bytes(container("long", [(1, zigzag(1))]))
    (tmp_path / "bad").write_bytes(b"Obj\x02")
    (tmp_path / "xz").write_bytes(container("long", [(1, zigzag(1))], "xz"))
    done = avro("cat", tmp_path / "bad", tmp_path / "a", check=2)
    assert done.stdout == b"1\n" and b"bad: not an Avro container file" in done.stderr
    assert b'Avro codec "xz"' in avro("cat", tmp_path / "xz", check=6).stderr
    avro("cat", tmp_path / "nothing", check=3)
    avro("cat", check=2)
    avro("verify", tmp_path / "a", check=2)


def test_damage_is_placed(tmp_path):
    path = tmp_path / "in"
    good = container("string", [(1, zigzag(3) + b"abc"), (2, zigzag(1) + b"a" + zigzag(5) + b"abcde")])
    path.write_bytes(good)
    assert avro("cat", path).stdout == b'"abc"\n"a"\n"abcde"\n'
    second = good.index(b"0123456789abcdef", good.index(b"abc") + 3) + 16
    bad = bytearray(good)
    bad[second + 4] = 0x0c  # the second string, whose bytes begin at 3, is longer than the block
    path.write_bytes(bad)
    assert f"block at byte {second}, data byte 3: ".encode() in avro("cat", path, check=2).stderr
    path.write_bytes(good[:-1])
    assert f"block at byte {second}, ".encode() in avro("cat", path, check=2).stderr
    snappy = bytearray(container("string", [(1, zigzag(60) + b"abc" * 20)], "snappy"))
    snappy[-17] ^= 1
    path.write_bytes(snappy)
    assert b"checksum does not match" in avro("cat", path, check=2).stderr


def test_counts_without_weight(tmp_path):
    """What takes no bytes may not come in any number."""
    for schema, blocks in (("null", [(2**62, b"")]), ({"type": "array", "items": "null"}, [(1, zigzag(2**61) + b"\0")])):
        (tmp_path / "in").write_bytes(container(schema, blocks))
        avro("cat", tmp_path / "in", check=2)


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_damage_is_answered(tmp_path, codec):
    data, records = everything(codec, 2)
    first = data.index(b"avro.codec") - 1
    header = data.index(b"0123456789abcdef")

    def flipped():
        for at in range(len(data)):
            if first < at or at % 7 == 0:  # the schema's text is long
                for bit in range(8) if at > header else (0, 5):
                    yield data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1:]

    lines = avro("cat", _write(tmp_path / "whole", data)).stdout.splitlines()
    assert len(lines) == 2
    assert len(unharmed(["avro", "cat"], tmp_path, flipped())[0]) > 100
    complete = {header + 16}  # a file may end between blocks
    at = header + 16
    while (at := data.find(b"0123456789abcdef", at) + 16) > 16:
        complete.add(at)
    cuts = [n for n in range(len(data)) if n not in complete]
    refused, printed = unharmed(["avro", "cat"], tmp_path, (data[:n] for n in cuts))
    assert len(refused) == len(cuts) and set(printed) <= set(lines)
    for length in range(header, len(data), 5):
        done = avro("cat", _write(tmp_path / "cut", data[:length]), check=None)
        got = done.stdout.splitlines()
        assert got == lines[:len(got)] and done.returncode == (0 if length in complete else done.returncode or 1)


def _write(path, data):
    path.write_bytes(data)
    return path
