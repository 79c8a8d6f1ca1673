# SPDX-License-Identifier: Apache-2.0
"""Our Parquet files, read value for value by pyarrow, DuckDB and Polars, and their metadata checked
against the bytes."""
import json
import math
import random
import struct
import zlib

import datafusion
import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from columnar_data import cases, everything, make_nested_dictionary, sliced, stream_bytes
from parquet_bytes import Cursor, footer

# Small pages and groups, so that every boundary falls somewhere; and the defaults.
SHAPES = {
    "default": [],
    "tiny_pages": ["page_rows=7", "row_group_rows=100"],
    "byte_pages": ["page_bytes=200", "row_group_rows=333"],
    "plain": ["dictionary=0"],
    "fallback": ["dictionary=300", "page_rows=50"],
    "raw": ["zstd=0", "page_rows=100"],
    "plain_bytes": ["row_group_plain_bytes=20000"],
    "v2": ["page_version=2", "page_rows=100"],
    "v2_raw": ["page_version=2", "zstd=0", "page_rows=50"],
    "smallest": ["values=1", "page_rows=100", "page_version=2"],
    "smallest_plain": ["values=1", "dictionary=0", "row_group_rows=300"],
}


def write(tool, folder, table, *options, max_chunksize=None, name="out.parquet"):
    (folder / "in").write_bytes(stream_bytes(table, max_chunksize=max_chunksize))
    done = tool("parquet_write", folder / "in", folder / name, *options)
    return folder / name, json.loads(done.stdout)


def plain(table):
    """The same table without dictionaries, as any reader gives it back."""
    def type_of(t):
        if pa.types.is_dictionary(t):
            return type_of(t.value_type)
        if pa.types.is_map(t):
            return pa.map_(t.key_field.with_type(type_of(t.key_type)),
                           t.item_field.with_type(type_of(t.item_type)))
        return t
    return pa.schema([f.with_type(type_of(f.type)) for f in table.schema])


def read(path):
    return pq.ParquetFile(path, page_checksum_verification=True).read()


def check_pyarrow(path, table):
    got = read(path)
    got.validate(full=True)
    assert got.schema.equals(plain(table), check_metadata=False)
    assert [repr(r) for r in got.to_pylist()] == [repr(r) for r in table.to_pylist()]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", sorted(set(cases()) - {"null_type"}))
def test_pyarrow_reads_it_back(tool, tmp_path, name, shape):
    table = cases()[name]
    path, metrics = write(tool, tmp_path, table, *SHAPES[shape], max_chunksize=90)
    check_pyarrow(path, table)
    assert metrics["rows"] == table.num_rows
    assert metrics["bytes"] == path.stat().st_size


@pytest.mark.parametrize("shape", SHAPES)
def test_dictionaries_of_maps(tool, tmp_path, shape):
    table = make_nested_dictionary()
    path, _ = write(tool, tmp_path, table, *SHAPES[shape])
    check_pyarrow(path, table)


@pytest.mark.parametrize("shape", SHAPES)
def test_duckdb_reads_it_back(tool, tmp_path, shape):
    table = everything(700)
    path, _ = write(tool, tmp_path, table, *SHAPES[shape])
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    for column in table.column_names:
        got = con.execute(f"SELECT {column} FROM read_parquet('{path}', file_row_number=true) "
                          "ORDER BY file_row_number").to_arrow_table()
        want = con.from_arrow(table.select([column])).to_arrow_table()
        assert repr(got.column(0).to_pylist()) == repr(want.column(0).to_pylist()), column


@pytest.mark.parametrize("shape", SHAPES)
def test_polars_reads_it_back(tool, tmp_path, shape):
    table = everything(700).drop_columns(["local"])
    path, _ = write(tool, tmp_path, everything(700), *SHAPES[shape])
    got = polars.read_parquet(path, columns=table.column_names)
    want = polars.from_arrow(table)
    for column in table.column_names:
        assert repr(got[column].to_list()) == repr(want[column].to_list()), column


def test_polars_scan_and_pyarrow_filters(tool, tmp_path):
    """Pruning by our statistics and page index loses nothing."""
    table = everything(1000)
    path, _ = write(tool, tmp_path, table, "page_rows=10", "row_group_rows=100")
    con = duckdb.connect()
    for value in [0, 5, 99, 100, 555, 999]:
        assert pq.read_table(path, filters=[("id", "=", value)]).num_rows == 1
        assert polars.scan_parquet(path).filter(polars.col("id") == value).select("id").collect().height == 1
        assert con.execute(f"SELECT count(*) FROM '{path}' WHERE id = {value}").fetchone() == (1,)
    for text in set(t for t in table["text"].to_pylist() if t is not None and "\0" not in t):
        want = sum(1 for t in table["text"].to_pylist() if t == text)
        assert pq.read_table(path, filters=[("text", "=", text)]).num_rows == want
        assert polars.scan_parquet(path).filter(polars.col("text") == text).select("id").collect().height == want
        assert con.execute(f"SELECT count(*) FROM '{path}' WHERE text = ?", [text]).fetchone() == (want,)


# ---- rows that repeat ----

def repeating(rows, chance):
    """Rows of which many are as the one before them, of lengths that change; the values differ little."""
    rng = random.Random(f"{rows} {chance}")

    def runs(make):
        column = [make()]
        while len(column) < rows:
            column.append(column[-1] if rng.random() < chance else make())
        return column

    def text():
        return f"value {rng.randrange(30)}" if rng.random() < 0.9 else rng.choice(["", "v", None])
    texts = [[t or "" for t in row] for row in runs(lambda: [text() for _ in range(rng.choice([3, 3, 3, 0, 4]))])]
    return pa.table({
        "lists": pa.array(texts, pa.list_(pa.string())),
        "holes": pa.array(runs(lambda: [text() for _ in range(4)]), pa.list_(pa.string())),
        "maps": pa.array([[(f"key {i}", t) for i, t in enumerate(row)] for row in texts], pa.map_(pa.string(), pa.string())),
        "numbers": pa.array([[len(t) for t in row] for row in texts], pa.list_(pa.int64())),
        "doubles": pa.array([[len(t) or math.nan for t in row] for row in texts], pa.list_(pa.float64())),
        "flat": pa.array(runs(text)),
        "required": pa.array(runs(lambda: text() or "")),
        "int": pa.array(runs(lambda: rng.randrange(40)), pa.int32())})


@pytest.mark.parametrize("shape", ["default", "tiny_pages", "byte_pages", "fallback", "v2", "smallest"])
@pytest.mark.parametrize("chance", [0.0, 0.5, 0.95, 1.0])
def test_rows_that_repeat(tool, tmp_path, chance, shape):
    table = repeating(6000, chance)
    path, metrics = write(tool, tmp_path, table, *SHAPES[shape], max_chunksize=999)
    check_pyarrow(path, table)
    nans = sum(math.isnan(value) for row in table["doubles"].to_pylist() for value in row)
    assert sum(column["nans"] for column in metrics["columns"] if column["nans"] > 0) == nans


# ---- zstd frames of our own ----

def shaped(rows, has_nulls):
    """Columns whose pages have a shape for them, and some that nearly have."""
    rng = random.Random(rows)
    hexes = [f"{rng.getrandbits(128):032x}" for _ in range(rows)]
    columns = {
        "time": pa.array([1767225600000000 + i * 500 + rng.randrange(2000) for i in range(rows)], pa.timestamp("us")),
        "number": pa.array([rng.choice([rng.randrange(40000), -1, 2**63 - 1] if i % 50 == 0 else [rng.randrange(40000)])
                            for i in range(rows)], pa.int64()),
        "any": pa.array([rng.getrandbits(64) - 2**63 for _ in range(rows)], pa.int64()),
        "trace": pa.array(hexes),
        "span": pa.array([h[:16] for h in hexes]),
        "upper": pa.array([h.upper() for h in hexes]),
        "mixed": pa.array([h[:rng.choice([16, 32])] if i > rows // 2 else h for i, h in enumerate(hexes)]),
        "spans": pa.array([[h[:16]] * (i % 3) for i, h in enumerate(hexes)], pa.list_(pa.string()))}
    if has_nulls:
        holes = pa.array([rng.randrange(5) == 0 for _ in range(rows)])
        columns = {name: column if name == "spans" else pc.if_else(holes, None, column)
                   for name, column in columns.items()}
    return pa.table(columns)


@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize("options", [[], ["page_version=2"], ["page_rows=100"], ["dictionary=0", "row_group_rows=4096"]],
                         ids=" ".join)
def test_own_zstd_frames_are_read_by_all(tool, tmp_path, has_nulls, options):
    table = shaped(9000, has_nulls)
    path, metrics = write(tool, tmp_path, table, *options)
    assert read(path).equals(table)
    con = duckdb.connect()
    assert con.execute(f"SELECT * FROM read_parquet('{path}', file_row_number=true) "
                       "ORDER BY file_row_number").to_arrow_table().select(table.column_names).equals(table)
    assert polars.read_parquet(path).equals(polars.from_arrow(table))
    session = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    session.register_parquet("t", path)
    got = session.sql("SELECT * FROM t").to_arrow_table()
    assert [repr(column.to_pylist()) for column in got.columns] == [repr(c.to_pylist()) for c in table.columns]
    _, without = write(tool, tmp_path, table, *options, "own_frames=0", name="without")
    assert read(tmp_path / "without").equals(table)
    sizes = {name: (ours["bytes"], theirs["bytes"]) for name, ours, theirs in
             zip(table.column_names, metrics["columns"], without["columns"])}
    for name in ("any", "upper"):
        assert sizes[name][0] == sizes[name][1]
    if "page_rows=100" not in options:
        for name in ("trace", "span"):
            assert sizes[name][0] < sizes[name][1] * 0.97, sizes


# ---- floats (TB8) ----

FLOATS = {
    "nan": [3.0, math.nan, 3.0],
    "all_nan": [math.nan] * 3,
    "zeros": [0.0, -0.0, 0.0],
    "plus_zero": [0.0, 1.0],
    "minus_zero": [-1.0, -0.0],
    "infinite": [-math.inf, math.inf, None],
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("dictionary", [0, 1000])
def test_floats_hide_nothing(tool, tmp_path, name, dictionary):
    values = FLOATS[name] * 3000
    table = pa.table({"d": pa.array(values, pa.float64()), "f": pa.array(values, pa.float32())})
    path, metrics = write(tool, tmp_path, table, f"dictionary={dictionary}")
    check_pyarrow(path, table)
    nans = sum(1 for v in values if v is not None and math.isnan(v))
    con = duckdb.connect()
    con.register("arrow_table", table)
    con.execute("CREATE TABLE wanted AS SELECT * FROM arrow_table")
    for column, stats in zip(["d", "f"], metrics["columns"]):
        assert stats["nans"] == nans
        assert stats["nulls"] == values.count(None)
        assert ("lower" in stats, "upper" in stats) == (nans == 0, nans == 0)
        chunk = pq.ParquetFile(path).metadata.row_group(0).column(column == "f")
        assert chunk.statistics.has_min_max == (nans == 0)
        assert chunk.has_column_index == (nans == 0)
        for predicate in ["!= 3", "= 'nan'::double", "= 0", "> 5", "< 0"]:
            count = f"SELECT count(*) FROM {{}} WHERE {column} {predicate}"
            assert con.execute(count.format(f"'{path}'")).fetchone() == \
                con.execute(count.format("wanted")).fetchone()
    if name == "plus_zero":
        assert bytes.fromhex(metrics["columns"][0]["lower"]) == struct.pack("<d", -0.0)
    if name == "minus_zero":
        assert bytes.fromhex(metrics["columns"][0]["upper"]) == struct.pack("<d", 0.0)


# ---- bounds ----

def bounds_of(tool, folder, values, type_=pa.utf8()):
    path, metrics = write(tool, folder, pa.table({"c": pa.array(values, type_)}))
    column = metrics["columns"][0]
    stats = pq.ParquetFile(path).metadata.row_group(0).column(0).statistics
    return (bytes.fromhex(column["lower"]) if "lower" in column else None,
            bytes.fromhex(column["upper"]) if "upper" in column else None, stats)


@pytest.mark.parametrize("value, lower, upper", [
    ("short", b"short", b"short"),
    ("x" * 16, b"x" * 16, b"x" * 16),
    ("x" * 17, b"x" * 16, b"x" * 15 + b"y"),
    ("é" * 17, "é".encode() * 16, ("é" * 15 + "ê").encode()),
    ("a" * 15 + "\U0010ffff" * 2, ("a" * 15 + "\U0010ffff").encode(), b"a" * 14 + b"b"),
    ("\U0010ffff" * 17, "\U0010ffff".encode() * 16, None),
    ("a" * 15 + "\ud7ff" + "z", ("a" * 15 + "\ud7ff").encode(), ("a" * 15 + "\ue000").encode()),
    ("a" * 15 + "\x7f" + "z", b"a" * 15 + b"\x7f", ("a" * 15 + "\x80").encode()),
])
def test_iceberg_text_bounds(tool, tmp_path, value, lower, upper):
    assert bounds_of(tool, tmp_path, [value])[:2] == (lower, upper)


@pytest.mark.parametrize("value, lower, upper", [
    (b"\xff" * 16, b"\xff" * 16, b"\xff" * 16),
    (b"a" + b"\xff" * 20, b"a" + b"\xff" * 15, b"b"),
    (b"\xff" * 17, b"\xff" * 16, None),
])
def test_iceberg_binary_bounds(tool, tmp_path, value, lower, upper):
    assert bounds_of(tool, tmp_path, [value], pa.binary())[:2] == (lower, upper)


def test_chunk_bounds_say_whether_they_are_exact(tool, tmp_path):
    def bounds(value):
        # A name for each: DuckDB remembers files.
        path, _ = write(tool, tmp_path, pa.table({"c": [value]}), name=f"{len(value.encode())}{value[-1]}")
        return duckdb.execute("SELECT stats_min_value, min_is_exact, stats_max_value, max_is_exact "
                              f"FROM parquet_metadata('{path}')").fetchone()
    assert bounds("y" * 64) == ("y" * 64, True, "y" * 64, True)
    assert bounds("y" * 65) == ("y" * 64, False, "y" * 63 + "z", False)
    # Cut between code points: 63 bytes and a letter of two.
    assert bounds("y" * 63 + "é") == ("y" * 63, False, "y" * 62 + "z", False)


def test_bounds_of_every_type(tool, tmp_path):
    table = everything(1000)
    path, metrics = write(tool, tmp_path, table, "row_group_rows=300")
    by_id = {c["id"]: c for c in metrics["columns"]}
    for f in table.schema:
        id_ = int(f.metadata[b"PARQUET:field_id"])
        if pa.types.is_nested(f.type):
            continue
        column = by_id[id_]
        values = [v for v in table[f.name].to_pylist() if v is not None]
        assert column["values"] == 1000 and column["nulls"] == 1000 - len(values)
        if not values:
            assert "lower" not in column and "upper" not in column
            continue
        code = {pa.int32(): "<i", pa.int64(): "<q", pa.float32(): "<f", pa.float64(): "<d",
                pa.bool_(): "<?"}.get(f.type)
        if code:
            assert struct.unpack(code, bytes.fromhex(column["lower"])) == (min(values),)
            assert struct.unpack(code, bytes.fromhex(column["upper"])) == (max(values),)
        elif pa.types.is_timestamp(f.type) or pa.types.is_date(f.type):
            ints = table[f.name].drop_null().cast(pa.int64() if pa.types.is_timestamp(f.type) else pa.int32()).to_pylist()
            code = "<q" if pa.types.is_timestamp(f.type) else "<i"
            assert struct.unpack(code, bytes.fromhex(column["lower"])) == (min(ints),)
            assert struct.unpack(code, bytes.fromhex(column["upper"])) == (max(ints),)
        elif f.type == pa.utf8():
            raw = [v.encode() for v in values]
            assert bytes.fromhex(column["lower"]) <= min(raw)
            assert bytes.fromhex(column["upper"]) >= max(raw)
    nested = [c for c in metrics["columns"] if c["id"] in (15, 17, 19, 20, 22, 23, 27, 28, 31, 32, 33, 34)]
    assert len(nested) == 12
    assert not any("lower" in c or "upper" in c for c in nested)
    # A struct without lists has bounds: its leaves are columns like others.
    assert "lower" in by_id[26]


# ---- structure (TB1, TB15) ----

def test_ids_are_on_every_element(tool, tmp_path):
    table = everything(10)
    path, metrics = write(tool, tmp_path, table)

    def ids(f):
        yield f.name, f.metadata and f.metadata.get(b"PARQUET:field_id")
        if pa.types.is_map(f.type):
            yield from ids(f.type.key_field)
            yield from ids(f.type.item_field)
        elif pa.types.is_nested(f.type):
            for i in range(f.type.num_fields):
                yield from ids(f.type.field(i))
    got = pq.read_schema(path)
    assert [list(ids(f)) for f in got] == [list(ids(f)) for f in table.schema]
    leaves = [c["id"] for c in metrics["columns"]]
    assert len(set(leaves)) == len(leaves) == pq.ParquetFile(path).metadata.num_columns


def test_offsets_and_sizes_match_the_bytes(tool, tmp_path):
    table = everything(1000)
    path, metrics = write(tool, tmp_path, table, "row_group_rows=400", "page_rows=60", "sort=1")
    data = path.read_bytes()
    meta = pq.ParquetFile(path).metadata
    assert meta.num_row_groups == 3 and meta.num_rows == 1000
    assert meta.created_by.startswith("sluice version")
    assert meta.metadata[b"purpose"] == b"test"
    at = 4
    sums = [0] * meta.num_columns
    for g in range(3):
        group = meta.row_group(g)
        assert metrics["splits"][g] == at
        assert [(s.column_index, s.descending, s.nulls_first) for s in group.sorting_columns] == [(0, False, True)]
        total = 0
        for c in range(meta.num_columns):
            chunk = group.column(c)
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            assert start == at
            at += chunk.total_compressed_size
            sums[c] += chunk.total_compressed_size
            total += chunk.total_uncompressed_size
            assert chunk.has_offset_index
        assert group.total_byte_size == total
    assert [c["bytes"] for c in metrics["columns"]] == sums
    footer = struct.unpack("<I", data[-8:-4])[0]
    assert data[:4] == data[-4:] == b"PAR1" and at < len(data) - 8 - footer
    # Groups can be read one by one, from their place alone.
    file = pq.ParquetFile(path)
    parts = pa.concat_tables([file.read_row_group(g) for g in range(3)])
    assert [repr(r) for r in parts.to_pylist()] == [repr(r) for r in table.to_pylist()]


def test_duckdb_reads_the_metadata(tool, tmp_path):
    path, _ = write(tool, tmp_path, everything(1000), "row_group_rows=400")
    rows = duckdb.execute(f"SELECT path_in_schema, encodings, num_values FROM parquet_metadata('{path}')").fetchall()
    assert len(rows) == 3 * pq.ParquetFile(path).metadata.num_columns
    assert all("PLAIN" in r[1] for r in rows)


def test_dictionary_is_tried_and_left(tool, tmp_path):
    rows = 50000
    table = pa.table({
        "few": [f"word {i % 100}" for i in range(rows)],
        "unique": [f"word {i}" for i in range(rows)],
        "later": [f"word {i % 100 if i < 5000 else i}" for i in range(rows)],
    })
    path, _ = write(tool, tmp_path, table, "dictionary=20000", "page_rows=5000")
    check_pyarrow(path, table)
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert "RLE_DICTIONARY" in group.column(0).encodings
    assert "RLE_DICTIONARY" not in group.column(1).encodings
    assert set(group.column(2).encodings) >= {"RLE_DICTIONARY", "PLAIN"}


def test_long_values(tool, tmp_path):
    """Values larger than a page, alone and among short ones, in columns and in maps."""
    big = "z" * 3_000_000
    values = ["a", big, None, "b", big + "1", ""] * 3
    table = pa.table({"t": values,
                      "m": pa.array([[("k", v)] for v in values], pa.map_(pa.utf8(), pa.utf8()))})
    for options in [[], ["dictionary=0"]]:
        path, metrics = write(tool, tmp_path, table, *options)
        assert read(path).to_pydict() == table.to_pydict()
    entries = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0] * 500, pa.int32()), ["s", big])
    table = pa.table({"d": entries})
    path, metrics = write(tool, tmp_path, table, "dictionary=0")
    assert read(path)["d"].to_pylist() == table["d"].to_pylist()


def test_dictionaries_of_numbers_where_they_pay(tool, tmp_path):
    """Measured on the first page: what repeats at random is smaller with one, what rises without."""
    rng = random.Random(4)
    few = [rng.randrange(2**62) for _ in range(500)]
    columns = {"few": [rng.choice(few) for _ in range(100000)], "rising": [i // 4 for i in range(100000)],
               "unique": [rng.randrange(2**62) for _ in range(100000)]}
    path, _ = write(tool, tmp_path, pa.table(columns))
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert ["RLE_DICTIONARY" in group.column(i).encodings for i in range(3)] == [True, False, False]
    assert read(path).to_pydict() == columns


def test_wide_dictionary_indices(tool, tmp_path):
    """Index widths from 1 to 24 bits, and runs among them."""
    for distinct in [1, 2, 3, 9, 33, 300, 70000]:
        values = ["0"] * 5000 + [str(i % distinct) for i in range(100000)]
        table = pa.table({"c": values})
        path, _ = write(tool, tmp_path, table)
        assert "RLE_DICTIONARY" in pq.ParquetFile(path).metadata.row_group(0).column(0).encodings
        assert read(path)["c"].to_pylist() == values
        assert polars.read_parquet(path)["c"].to_list() == values
        assert duckdb.sql(f"SELECT c FROM '{path}'").fetchall() == [(v,) for v in values]


def test_row_group_bytes_close_a_group(tool, tmp_path):
    table = pa.table({"t": [f"{i:0100}" for i in range(30000)]})
    path, metrics = write(tool, tmp_path, table, "row_group_bytes=500000", "zstd=0")
    assert len(metrics["splits"]) > 3
    check_pyarrow(path, table)


def test_slices_and_pieces(tool, tmp_path):
    table = sliced()
    path, _ = write(tool, tmp_path, table, "page_rows=13", max_chunksize=3)
    check_pyarrow(path, table)


def test_nulls_without_a_type(tool, tmp_path):
    rows = cases()["null_type"]
    (tmp_path / "in").write_bytes(stream_bytes(rows))
    tool("parquet_write", tmp_path / "in", tmp_path / "out")
    back = pq.read_table(tmp_path / "out")
    assert back.num_rows == rows.num_rows and all(pa.types.is_null(f.type) for f in back.schema
                                                  if pa.types.is_null(rows.schema.field(f.name).type))


def test_a_flipped_bit_is_seen(tool, tmp_path):
    path, _ = write(tool, tmp_path, pa.table({"n": list(range(1000))}), "zstd=0")
    data = bytearray(path.read_bytes())
    at = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    data[at + 500] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match="CRC"):
        read(path)


# ---- the page index, byte by byte (TB15) ----

def page_headers(data, chunk):
    """(offset, header, size with header, stored body) of all pages of a chunk."""
    at = chunk[3].get(11, chunk[3][9])
    end = at + chunk[3][7]
    while at < end:
        cursor = Cursor(data, at)
        header = cursor.struct()
        body = data[cursor.at:cursor.at + header[3]]
        yield at, header, cursor.at + header[3] - at, body
        at = cursor.at + header[3]
    assert at == end


def decode(f, raw):
    if f.type == pa.utf8():
        return raw.decode()
    codes = {pa.int32(): "<i", pa.int64(): "<q", pa.float32(): "<f", pa.float64(): "<d", pa.bool_(): "<?"}
    return struct.unpack(codes[f.type], raw)[0] if f.type in codes else raw


@pytest.mark.parametrize("shape", ["tiny_pages", "byte_pages", "fallback", "default"])
def test_page_index_matches_the_pages(tool, tmp_path, shape):
    table = everything(1000)
    path, _ = write(tool, tmp_path, table, *SHAPES[shape], max_chunksize=300)
    data = path.read_bytes()
    meta = footer(data)
    index_at = {"column": [], "offset": []}
    assert meta[1] == 1 and meta[3] == 1000
    assert all(order == {1: {}} for order in meta[7])
    first = 0
    for ordinal, group in enumerate(meta[4]):
        assert group[7] == ordinal
        assert group[5] == group[1][0][3].get(11, group[1][0][3][9])
        assert len(meta[7]) == len(group[1])
        assert group[2] == sum(c[3][6] for c in group[1]) and group[6] == sum(c[3][7] for c in group[1])
        for chunk in group[1]:
            column = chunk[3]
            name = column[3][0].decode()
            pages = list(page_headers(data, chunk))
            assert sum(size - len(body) + header[2] for _, header, size, body in pages) == column[6]
            for _, header, _, body in pages:
                assert header[4] & 0xFFFFFFFF == zlib.crc32(body)
            kinds = [(header[1], header.get(5, header.get(7))[2]) for _, header, _, _ in pages]
            assert {(s[1], s[2]): s[3] for s in column[13]} == {k: kinds.count(k) for k in kinds}
            assert (11 in column) == (pages[0][1][1] == 2)
            assert set(column[2]) >= {encoding for _, encoding in kinds}
            data_pages = pages[1:] if 11 in column else pages
            cursor = Cursor(data, chunk[4])
            offset_index = cursor.struct()
            assert cursor.at == chunk[4] + chunk[5]
            index_at["offset"].append(chunk[4])
            assert [(p[1], p[2]) for p in offset_index[1]] == [(at, size) for at, _, size, _ in data_pages]
            assert column[5] == sum(header[5][1] for _, header, _, _ in data_pages)
            starts = [p[3] for p in offset_index[1]] + [group[3]]
            assert starts[0] == 0 and sorted(set(starts)) == starts
            sizes = column[16]
            if column[1] == 6:
                assert sum(offset_index[2]) == sizes[1]
            for histogram in (sizes.get(2), sizes.get(3)):
                assert histogram is None or sum(histogram) == column[5]
            if 2 in sizes:
                assert sizes[2][0] == group[3]
            if 3 in sizes:
                assert column[5] - sizes[3][-1] == column[12][3]
            if 6 in chunk:
                cursor = Cursor(data, chunk[6])
                column_index = cursor.struct()
                assert cursor.at == chunk[6] + chunk[7]
                index_at["column"].append(chunk[6])
                check_column_index(table, name, column, column_index, starts, first)
            elif column[1] not in (4, 5):
                raise AssertionError(f"{name} has no column index")
        first += group[3]
    # All column indexes, then all offset indexes, then the footer.
    assert index_at["column"] == sorted(index_at["column"])
    assert max(index_at["column"]) < min(index_at["offset"])


def check_column_index(table, name, column, index, starts, first):
    pages = len(starts) - 1
    assert [len(index[i]) for i in (1, 2, 3, 5)] == [pages] * 4
    assert sum(index[5]) == column[12][3]
    f = table.schema.field(name)
    if pa.types.is_nested(f.type):
        return
    storage = f
    if pa.types.is_timestamp(f.type):
        storage = f.with_type(pa.int64())
    elif pa.types.is_date(f.type):
        storage = f.with_type(pa.int32())
    values = table[name].combine_chunks().cast(storage.type)
    bounds = []
    for page in range(pages):
        rows = values.slice(first + starts[page], starts[page + 1] - starts[page]).to_pylist()
        some = [v for v in rows if v is not None]
        assert index[1][page] == (not some)
        assert index[5][page] == len(rows) - len(some)
        if not some:
            assert index[2][page] == index[3][page] == b""
            continue
        least, greatest = decode(storage, index[2][page]), decode(storage, index[3][page])
        if f.type in (pa.utf8(), pa.binary()):
            least, greatest = index[2][page], index[3][page]
            some = [v.encode() if isinstance(v, str) else v for v in some]
            assert len(least) <= 64 and len(greatest) <= 68
            assert least == min(some)[:len(least)]
            assert least <= min(some) and greatest >= max(some)
            if len(max(some)) <= 64:
                assert greatest == max(some)
        else:
            assert (least, greatest) == (min(some), max(some))
        bounds.append((least, greatest))
    rises = all(a[0] <= b[0] and a[1] <= b[1] for a, b in zip(bounds, bounds[1:]))
    falls = all(a[0] >= b[0] and a[1] >= b[1] for a, b in zip(bounds, bounds[1:]))
    assert index[4] == (1 if rises else 2 if falls else 0)
