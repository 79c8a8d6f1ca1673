# SPDX-License-Identifier: Apache-2.0
"""sluice parquet: what it prints of files that others wrote."""
import base64
import datetime
import decimal
import json
import math
import subprocess
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sluice


def parquet(*words, check=0):
    done = subprocess.run([str(sluice.BINARY), "parquet", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.fixture
def path(tmp_path):
    some_id = uuid.uuid4()
    table = pa.table({
        "b": pa.array([True, None]), "i8": pa.array([-1, 127], pa.int8()),
        "u64": pa.array([2 ** 64 - 1, 0], pa.uint64()), "d": pa.array([math.nan, -0.5]),
        "half": pa.array([1.5, None], pa.float16()),
        "dec": pa.array([decimal.Decimal("-0.05"), decimal.Decimal("123.40")], pa.decimal128(9, 2)),
        "big": pa.array([decimal.Decimal(-10 ** 37), None], pa.decimal128(38, 0)),
        "date": pa.array([datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]),
        "time": pa.array([datetime.time(1, 2, 3, 4), None], pa.time64("us")),
        "ms": pa.array([-1, 0], pa.timestamp("ms", "UTC")), "ns": pa.array([1, -1], pa.timestamp("ns")),
        "text": ['"é\n', ""], "bytes": [b"\xff\x00", None],
        "id": pa.array([some_id.bytes, None], pa.uuid()),
        "map": pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.utf8(), pa.int64())),
        "map2": pa.array([[(1, "x")], []], pa.map_(pa.int32(), pa.utf8())),
        "nested": pa.array([[{"x": [1, None]}, None], []], pa.list_(pa.struct([("x", pa.list_(pa.int32()))]))),
    })
    pq.write_table(table, tmp_path / "f.parquet", write_page_checksum=True, row_group_size=1)
    return tmp_path / "f.parquet", some_id


def test_rows(path):
    path, some_id = path
    lines = parquet("cat", path).stdout.splitlines()
    first, second = (json.loads(line, parse_float=decimal.Decimal) for line in lines)
    assert first == {
        "b": True, "i8": -1, "u64": 2 ** 64 - 1, "d": "NaN", "half": decimal.Decimal("1.5"),
        "dec": decimal.Decimal("-0.05"), "big": -10 ** 37, "date": "1969-12-31", "time": "01:02:03.000004",
        "ms": "1969-12-31T23:59:59.999000Z", "ns": "1970-01-01T00:00:00.000000001", "text": '"é\n',
        "bytes": base64.b64encode(b"\xff\x00").decode(), "id": str(some_id), "map": {"a": 1, "b": None},
        "map2": [[1, "x"]], "nested": [{"x": [1, None]}, None]}
    assert second["date"] == "2024-02-29" and second["dec"] == decimal.Decimal("123.40")
    assert second["ns"] == "1969-12-31T23:59:59.999999999" and second["half"] is None
    assert parquet("head", path, "--rows", "1").stdout == lines[0] + "\n"
    assert parquet("head", path, "--rows", "1", "--columns", "text,i8").stdout == '{"i8":-1,"text":"\\"é\\n"}\n'
    assert "not all of the columns" in parquet("cat", path, "--columns", "text,nope", check=3).stderr


def test_times_at_the_ends_of_their_range(tmp_path):
    ends = [-2 ** 63, 2 ** 63 - 1]
    table = pa.table({u: pa.array(ends).cast(pa.timestamp(u)) for u in ("us", "ns")})
    pq.write_table(table, tmp_path / "f.parquet")
    low, high = map(json.loads, parquet("cat", tmp_path / "f.parquet").stdout.splitlines())
    assert low == {"us": "-290308-12-21T19:59:05.224192", "ns": "1677-09-21T00:12:43.145224192"}
    assert high == {"us": "294247-01-10T04:00:54.775807", "ns": "2262-04-11T23:47:16.854775807"}


def test_schema_and_metadata(path):
    path, _ = path
    text = parquet("schema", path).stdout
    assert "dec: FIXED_LEN_BYTE_ARRAY(4) decimal(9,2)" in text and "ms: INT64 timestamp(ms,utc)" in text
    assert "nested: list\n  element: struct\n    x: list\n      element: INT32\n" in text
    leaves = json.loads(parquet("schema", path, "--json").stdout)
    assert leaves[-1] == {"path": "nested.list.element.x.list.element", "type": "INT32", "kind": "", "field_id": 0,
                          "max_definition": 6, "max_repetition": 2}
    meta = json.loads(parquet("meta", path, "--json").stdout)
    theirs = pq.ParquetFile(path).metadata
    assert (meta["rows"], len(meta["row_groups"]), meta["created_by"]) == (2, 2, theirs.created_by)
    for i, column in enumerate(meta["row_groups"][1]["columns"]):
        chunk = theirs.row_group(1).column(i)
        assert (column["path"], column["codec"], column["bytes"], column["values"]) == \
            (chunk.path_in_schema, chunk.compression, chunk.total_compressed_size, chunk.num_values)
    assert "row group 1: 1 rows" in parquet("meta", path).stdout


def test_verify(path, tmp_path):
    path, _ = path
    assert json.loads(parquet("verify", path, "--json").stdout)["rows"] == 2
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(11)
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    (tmp_path / "bad").write_bytes(data)
    said = parquet("verify", tmp_path / "bad", check=2).stderr
    assert "column text, row group 1, byte" in said
    (tmp_path / "bad.parquet").write_bytes(data)
    done = subprocess.run([sluice.BINARY, "convert", tmp_path / "bad.parquet", tmp_path / "out.arrow"], capture_output=True)
    assert done.returncode == 2 and not (tmp_path / "out.arrow").exists()
    (tmp_path / "short").write_bytes(data[:-1])
    assert "no magic" in parquet("meta", tmp_path / "short", check=2).stderr
    parquet("meta", tmp_path / "nothing", check=3)
    parquet("what", path, check=2)
    parquet("cat", check=2)
