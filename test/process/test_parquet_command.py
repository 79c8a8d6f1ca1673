# SPDX-License-Identifier: Apache-2.0
"""sluice parquet: what it prints of files that others wrote."""
import base64
import datetime
import decimal
import json
import math
import subprocess
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sluice

sys.path.insert(0, str(sluice.TOP / "test/interop"))
from parquet_bytes import Cursor, footer  # noqa: E402


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
    assert "no column nope" in parquet("cat", path, "--columns", "text,nope", check=3).stderr


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
    assert leaves[-1] == {"path": "nested.list.element.x.list.element", "type": "INT32", "kind": "", "field_id": None,
                          "max_definition": 6, "max_repetition": 2}
    meta = json.loads(parquet("meta", path, "--json").stdout)
    theirs = pq.ParquetFile(path).metadata
    assert (meta["rows"], len(meta["row_groups"]), meta["created_by"]) == (2, 2, theirs.created_by)
    for i, column in enumerate(meta["row_groups"][1]["columns"]):
        chunk = theirs.row_group(1).column(i)
        assert (column["path"], column["codec"], column["bytes"], column["values"]) == \
            (chunk.path_in_schema, chunk.compression, chunk.total_compressed_size, chunk.num_values)
    text = parquet("meta", path).stdout
    assert "row group 1: 1 rows" in text and "min \"2024-02-29\"" in text
    named = {c["path"]: c for c in meta["row_groups"][1]["columns"]}
    assert (named["date"]["min"], named["date"]["nulls"], named["time"]["nulls"]) == ("2024-02-29", 0, 1)
    assert named["dec"]["max"] == 123.40 and named["u64"]["min"] == 0 and named["ns"]["min"] == "1969-12-31T23:59:59.999999999"
    assert "min" not in named["big"]
    some = json.loads(parquet("meta", path, "--json", "--columns", "nested,date").stdout)
    assert [c["path"] for c in some["row_groups"][0]["columns"]] == ["date", "nested.list.element.x.list.element"]


def test_rows_of_cat(path):
    lines = parquet("cat", path[0]).stdout.splitlines(True)
    for rows in (0, 1, 2, 3):
        assert parquet("cat", path[0], "--rows", rows).stdout == "".join(lines[:rows])
    for word in ("cat", "head"):
        assert parquet(word, path[0], "--rows", 0).stdout == ""
        parquet(word, f"{path[0]}.missing", "--rows", 0, check=3)
        assert "no column nope" in parquet(word, path[0], "--rows", 0, "--columns", "nope", check=3).stderr
    assert json.loads(parquet("explain", path[0], "--json", "--rows", 0).stdout)["rows_looked_at"] == 0


def test_flags_that_a_word_does_not_have(path):
    flags = {"--columns": ("b",), "--where": ("i8 = 1",), "--rows": ("1",), "--no-pruning": ()}
    has = {"schema": (), "verify": (), "meta": ("--columns",), "pages": ("--columns",),
           "cat": flags, "head": flags, "explain": flags}
    for word, known in has.items():
        for flag, value in flags.items():
            if flag in known:
                parquet(word, path[0], flag, *value)
            else:
                assert parquet(word, path[0], flag, *value, check=2).stderr == f"sluice: parquet {word} has no {flag}\n"


def test_metadata_of_ours(tmp_path):
    """What the footer and the indexes have, against pyarrow's reading of them."""
    rows = 3000
    table = pa.table({"i": range(rows), "t": [f"k{i % 7}" for i in range(rows)],
                      "l": [[1] * (i % 3) for i in range(rows)]})
    pq.write_table(table, tmp_path / "f.parquet", write_page_index=True, max_rows_per_page=1000, row_group_size=2000,
                   bloom_filter_options={"t": {"ndv": 10, "fpp": 0.01}}, use_dictionary=["t"],
                   sorting_columns=[pq.SortingColumn(0)], store_schema=False, write_page_checksum=True,
                   compression="zstd")
    meta = json.loads(parquet("meta", tmp_path / "f.parquet", "--json").stdout)
    theirs = pq.ParquetFile(tmp_path / "f.parquet").metadata
    data = (tmp_path / "f.parquet").read_bytes()
    for number, group in enumerate(footer(data)[4]):
        ours = meta["row_groups"][number]
        assert ours["sorted_by"] == [{"path": "i", "descending": False, "nulls_first": False}]
        assert (ours["plain_bytes"], ours["bytes"]) == (group[2], group[6])
        for column, chunk in zip(ours["columns"], group[1]):
            assert column["plain_bytes"] == chunk[3][6] and column["data_offset"] == chunk[3][9]
            assert column["offset_index"] == {"offset": chunk[4], "bytes": chunk[5]}
            assert column["column_index"] == {"offset": chunk[6], "bytes": chunk[7]}
            if 14 in chunk[3]:
                assert column["bloom_filter"] == {"offset": chunk[3][14], "bytes": chunk[3][15]}
        first = theirs.row_group(number).column(0).statistics
        assert (ours["columns"][0]["min"], ours["columns"][0]["max"]) == (first.min, first.max)
        assert ours["columns"][0]["min_exact"] and ours["columns"][1]["unencoded_bytes"] == group[3] * 2
        assert ours["columns"][2]["repetition_levels"] == group[1][2][3][16][2]
    text = parquet("meta", tmp_path / "f.parquet").stdout
    assert "sorted by i" in text and "Bloom filter at" in text and "column index at" in text and 'min "k0"' in text
    pages = [json.loads(line) for line in parquet("pages", tmp_path / "f.parquet", "--json").stdout.splitlines()]
    assert [p["column"] for p in pages if p["row_group"] == 1] == ["i", "t", "t", "l.list.element"]
    of_i = [p for p in pages if p["column"] == "i"]
    assert [(p["row_group"], p["first_row"], p["min"], p["max"], p["nulls"], p["values"], p["crc"], p["codec"]) for p in of_i] == \
        [(0, 0, 0, 999, 0, 1000, "ok", "ZSTD"), (0, 1000, 1000, 1999, 0, 1000, "ok", "ZSTD"),
         (1, 0, 2000, 2999, 0, 1000, "ok", "ZSTD")]
    assert [p["kind"] for p in pages if p["column"] == "t"] == ["dictionary", "data", "data", "dictionary", "data"]
    for group, leaf, name in ((g, c, n) for g in range(2) for c, n in enumerate(("i", "t", "l.list.element"))):
        mine = [p for p in pages if p["row_group"] == group and p["column"] == name]
        places = page_places(data, group, leaf)
        assert [(p["offset"], p["header_bytes"] + p["bytes"], p["first_row"]) for p in mine if p["kind"] == "data"] == places
    some = parquet("pages", tmp_path / "f.parquet", "--columns", "l").stdout.splitlines()
    assert len(some) == 3 and all(" l.list.element data " in line and line.endswith("crc ok") for line in some)
    damaged = bytearray(data)
    damaged[of_i[1]["offset"] + of_i[1]["header_bytes"]] ^= 1
    (tmp_path / "bad.parquet").write_bytes(damaged)
    lines = parquet("pages", tmp_path / "bad.parquet", "--columns", "i").stdout.splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["ok", "wrong", "ok"]
    parquet("pages", tmp_path / "f.parquet", "--columns", "nope", check=3)


def page_places(data, group, leaf):
    """(offset, bytes, first row) of each page, by the offset index."""
    chunk = footer(data)[4][group][1][leaf]
    return [(p[1], p[2], p[3]) for p in Cursor(data, chunk[4]).struct()[1]]


def test_columns_within_columns(tmp_path):
    """--columns leads into structs, lists and maps; names with dots, commas and quotes are reached in quotes."""
    table = pa.table({
        "s": pa.array([{"p": 1, "q": {"r": 2, "t": 3}}]),
        "l": pa.array([[{"a": 1, "b": 2}, None]]),
        "m": pa.array([[("k", {"c": 1, "d": 2})]], pa.map_(pa.utf8(), pa.struct([("c", pa.int64()), ("d", pa.int64())]))),
        "x.y": [5], "u,v": [6], 'w"z': [7], "e.f": pa.array([{"g": 8, "h": 9}]), "x": pa.array([{"y": 10, "z": 11}])})
    pq.write_table(table, tmp_path / "f.parquet")

    def cat(columns):
        return json.loads(parquet("cat", tmp_path / "f.parquet", "--columns", columns).stdout)

    assert cat("s.p") == {"s": {"p": 1}}
    assert cat("s.q.t,s.p") == {"s": {"p": 1, "q": {"t": 3}}}
    assert cat("s") == {"s": {"p": 1, "q": {"r": 2, "t": 3}}} == cat("s,s.p")
    assert cat("l.element.a") == {"l": [{"a": 1}, None]} == cat("l.list.element.a")
    assert cat("m.value.d") == {"m": {"k": {"d": 2}}}
    assert cat("m.key") == {"m": {"k": {"c": 1, "d": 2}}} == cat("m") == cat("m.value")
    assert cat('"x.y"') == {"x.y": 5} and cat("x.y") == {"x": {"y": 10}} and cat('x."y"') == {"x": {"y": 10}}
    assert cat('"u,v",s.p') == {"s": {"p": 1}, "u,v": 6}
    assert cat('"w""z"') == {'w"z': 7} == cat('w"z')
    assert cat('"e.f".h') == {"e.f": {"h": 9}} and cat("e.f") == {"e.f": {"g": 8, "h": 9}}
    for columns in ("s.nope", "nope", "s.p.q", "l.a", "m.value.e", "", "s.", ".s", '"s', '"s"p', "s,", '"x.y".z', "s..p"):
        assert "no column" in parquet("cat", tmp_path / "f.parquet", "--columns", columns, check=3).stderr, columns


def test_verify(path, tmp_path):
    path, _ = path
    assert json.loads(parquet("verify", path, "--json").stdout) == {
        "file": str(path), "ok": True, "rows": 2, "row_groups": 2, "columns": len(pq.ParquetFile(path).schema)}
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(11)
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    (tmp_path / "bad").write_bytes(data)
    said = parquet("verify", tmp_path / "bad", check=2).stderr
    assert "column text, row group 1, byte" in said
    answer = json.loads(parquet("verify", "--json", tmp_path / "bad", check=2).stdout)
    assert answer["ok"] is False and answer["status"] == "CORRUPT" and answer["error"] in said
    assert f"byte {answer['offset']}: " in said
    answer = json.loads(parquet("verify", "--json", tmp_path / "nothing", check=3).stdout)
    assert answer["ok"] is False and answer["offset"] is None
    (tmp_path / "bad.parquet").write_bytes(data)
    done = subprocess.run([sluice.BINARY, "convert", tmp_path / "bad.parquet", tmp_path / "out.arrow"], capture_output=True)
    assert done.returncode == 2 and not (tmp_path / "out.arrow").exists()
    (tmp_path / "short").write_bytes(data[:-1])
    assert "no magic" in parquet("meta", tmp_path / "short", check=2).stderr
    parquet("meta", tmp_path / "nothing", check=3)
    parquet("what", path, check=2)
    parquet("cat", check=2)
