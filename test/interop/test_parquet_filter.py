# SPDX-License-Identifier: Apache-2.0
"""sluice parquet cat --where on files of pyarrow, DuckDB, Polars and our own: exactly the rows that
pyarrow.compute finds in the whole file, with pruning and without it, and not more read than that takes."""
import datetime
import decimal
import hashlib
import json
import math
import os
import random
import struct
import subprocess
import sys
import uuid

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from columnar_data import stream_bytes
from parquet_bytes import Cursor, footer, thrift, with_footer

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

ROWS = 3000
PREDICATES = 24  # a writer
EPOCH = datetime.datetime(1970, 1, 1)
COMPARE = {"=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater,
           ">=": pc.greater_equal}


def parquet(*words, check=0, text=True):
    done = subprocess.run([str(sluice.BINARY), "parquet", *map(str, words)], capture_output=True, text=text)
    assert done.returncode == check, (words, done.returncode, done.stdout[-500:], done.stderr)
    return done


def cat(path, where, *more):
    return parquet("cat", path, "--where", where, *more).stdout.splitlines()


def explain(path, where, *more):
    return json.loads(parquet("explain", path, "--where", where, "--json", *more).stdout)


# ---- rows whose values lie close together, so that there is something to rule out ----

def column(make, type_, rng, nulls=0.1):
    """Values that rise with the row, some way around it; stretches of nothing but nulls, or of one value."""
    values = []
    for i in range(ROWS):
        block = i // 100 % 10
        near = i + rng.randrange(-20, 20)
        value = make(near if block != 3 else i // 100 * 100)
        values.append(None if block == 7 or (block != 3 and rng.random() < nulls) else value)
    return pa.array(values, type_)


def real(i, rng):
    if rng.random() < 0.1:
        return rng.choice([math.nan, math.nan, math.inf, -math.inf, 0.0, -0.0])
    return (i - ROWS / 2) / 4


def every_column(seed):
    rng = random.Random(seed)
    prefix = "a prefix that is longer than the sixty-four bytes after which bounds are cut, " * 2
    middle = ROWS // 2
    numbers = {"i8": (pa.int8(), lambda i: (i - middle) // 16 % 128 - 64), "i16": (pa.int16(), lambda i: i - middle),
               "i32": (pa.int32(), lambda i: (i - middle) * 100000), "i64": (pa.int64(), lambda i: (i - middle) << 40),
               "u8": (pa.uint8(), lambda i: max(0, i) // 16 % 256), "u16": (pa.uint16(), lambda i: 2 * max(0, i)),
               "u32": (pa.uint32(), lambda i: max(0, i) * 1400000), "u64": (pa.uint64(), lambda i: max(0, i) << 52)}
    columns = {name: column(make, type_, rng) for name, (type_, make) in numbers.items()}
    for digits, scale in [(5, 2), (15, 3), (38, 10)]:
        columns[f"d{digits}"] = column(lambda i: decimal.Decimal((i - middle) * 5).scaleb(-scale),
                                       pa.decimal128(digits, scale), rng)
    columns |= {
        "f32": column(lambda i: real(i, rng), pa.float32(), rng), "f64": column(lambda i: real(i, rng), pa.float64(), rng),
        "same": column(lambda i: math.nan if rng.random() < 0.1 else float(i // 300), pa.float64(), rng),
        "text": column(lambda i: f"name{i // 7:05}", pa.utf8(), rng),
        "long": column(lambda i: f"{prefix}{i:05}é" if i % 10 else "\U0010ffff" * 20, pa.utf8(), rng),
        "word": column(lambda i: rng.choice(["", "it's", "naïve", "z"]), pa.utf8(), rng),
        "bytes": column(lambda i: struct.pack(">i", i * 1000) + b"\xff" * (i % 3), pa.binary(), rng),
        "fixed": column(lambda i: struct.pack(">i", i), pa.binary(4), rng),
        "flag": column(lambda i: i // 500 % 2 == 0, pa.bool_(), rng),
        "date": column(lambda i: datetime.date(1970, 1, 1) + datetime.timedelta(i - middle), pa.date32(), rng),
        "local": column(lambda i: EPOCH + datetime.timedelta(seconds=i - middle, microseconds=i), pa.timestamp("us"), rng),
        "utc": column(lambda i: EPOCH + datetime.timedelta(hours=i - middle, milliseconds=i), pa.timestamp("ms", "UTC"), rng),
        "time": column(lambda i: datetime.time(i // 3600 % 24, i // 60 % 60, i % 60, 7), pa.time64("us"), rng),
    }
    columns["s"] = pa.StructArray.from_arrays(
        [column(lambda i: i, pa.int32(), rng), column(lambda i: f"m{i:06}", pa.utf8(), rng)], ["a", "b"],
        mask=pa.array([rng.random() < 0.1 for _ in range(ROWS)]))
    columns["list"] = pa.array([None if i % 11 == 0 else [f"{i}.{j}" for j in range(i % 5)] for i in range(ROWS)])
    columns["map"] = pa.array([[(f"k{j}", i) for j in range(rng.randrange(4))] for i in range(ROWS)],
                              pa.map_(pa.utf8(), pa.int64()))
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), **columns})


FOREIGN = {"half": lambda: pa.array([math.nan if i % 50 == 0 else (i - 1500) / 8 for i in range(ROWS)], pa.float16()),
           "ns": lambda: pa.array([(i - 1500) * 1_000_000_007 for i in range(ROWS)]).cast(pa.timestamp("ns")),
           "id16": lambda: pa.array([uuid.UUID(int=i << 100).bytes for i in range(ROWS)], pa.binary(16))}


def with_foreign(table, *names):
    for name in names:
        table = table.append_column(name, FOREIGN[name]())
    return table


# ---- writers ----

def by_pyarrow(version, foreign=tuple(FOREIGN), **options):
    def write(tool, folder, path):
        table = with_foreign(every_column(1), *foreign)
        flat = [f.name for f in table.schema if f.name not in ("s", "list", "map", "half", "flag")]
        pq.write_table(table, path, data_page_version=version, row_group_size=900, data_page_size=700,
                       write_batch_size=50, bloom_filter_options={name: {"ndv": 900, "fpp": 0.05} for name in flat},
                       **options)
    return write


def by_duckdb(version):
    def write(tool, folder, path):
        con = duckdb.connect()
        con.execute("SET TimeZone='UTC'; SET threads=1; SET preserve_insertion_order=false")  # row groups as told
        con.register("t", with_foreign(every_column(2), "ns"))
        con.execute(f"COPY t TO '{path}' (FORMAT parquet, PARQUET_VERSION {version}, ROW_GROUP_SIZE 1024)")
    return write


def by_polars(tool, folder, path):
    polars.from_arrow(every_column(3).drop_columns(["map"])).write_parquet(path, row_group_size=700, data_page_size=900)


def by_us(*options):
    def write(tool, folder, path):
        ours = every_column(4).drop_columns(["i8", "i16", "u8", "u16", "u32", "u64", "d5", "d15", "d38", "time", "utc"])
        (folder / "in").write_bytes(stream_bytes(ours, max_chunksize=450))
        tool("parquet_write", folder / "in", path, "row_group_rows=1000", *options)
    return write


def by_convert(tool, folder, path):
    table = with_foreign(every_column(5), "half", "ns")
    (folder / "in.arrows").write_bytes(stream_bytes(table, max_chunksize=1000))
    blooms = [word for name in ("i32", "u64", "f32", "f64", "text", "bytes", "date", "utc") for word in ("--bloom", name)]
    subprocess.run([sluice.BINARY, "convert", folder / "in.arrows", path, *blooms], check=True)


WRITERS = {
    "pyarrow-v1": by_pyarrow("1.0", write_page_index=True),
    "pyarrow-v2": by_pyarrow("2.0", write_page_index=True, use_dictionary=False),
    "pyarrow-int96": by_pyarrow("1.0", [], write_page_index=True, use_deprecated_int96_timestamps=True),
    "pyarrow-no-index": by_pyarrow("1.0", store_decimal_as_integer=True),
    "duckdb-v1": by_duckdb("V1"), "duckdb-v2": by_duckdb("V2"), "polars": by_polars,
    "ours": by_us("page_rows=60"), "ours-plain": by_us("page_rows=33", "dictionary=0"), "convert": by_convert,
}


def read_by_duckdb(path):
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    return con.execute(f"SELECT * FROM '{path}' ORDER BY id").to_arrow_table()


@pytest.fixture(scope="module")
def written(tool, tmp_path_factory):
    """Of a writer: the path, the table as pyarrow reads it (or DuckDB, of its own files, not all of which pyarrow
    does), its rows as we print them."""
    made = {}

    def get(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            path = folder / "f.parquet"
            WRITERS[name](tool, folder, path)
            table = read_by_duckdb(path) if name.startswith("duckdb") else pq.read_table(path)
            made[name] = path, table, parquet("cat", path).stdout.splitlines()
        return made[name]

    return get


# ---- predicates: as we write them, and as pyarrow computes them ----

def literal(value, type_):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if pa.types.is_timestamp(type_):
        ns = value
        whole, fraction = divmod(ns, 10 ** 9)
        text = (EPOCH + datetime.timedelta(seconds=whole)).isoformat()
        return f"'{text}.{fraction:09}{'Z' if type_.tz else ''}'"
    if isinstance(value, (datetime.date, datetime.time)):
        return f"'{value.isoformat()}'"
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    return str(value)


def in_type(array):
    """Floats are compared as doubles, timestamps by nanoseconds."""
    if pa.types.is_floating(array.type):
        return array.cast(pa.float64())
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp("ns")).cast(pa.int64()) if not array.type.tz else \
            array.cast(pa.timestamp("ns", array.type.tz)).cast(pa.int64())
    return array


def random_value(array, type_, rng):
    """A value of the column, or one between or beside its values."""
    present = array.drop_null()
    if len(present) == 0 or pa.types.is_floating(array.type) and rng.random() < 0.15:
        return rng.choice([math.nan, 0.0, -0.0, math.inf, 0.1])
    value = present[rng.randrange(len(present))].as_py()
    if rng.random() < 0.6:
        return value
    if isinstance(value, str):
        return rng.choice([value[:-1], value + "!", value[:70], ""])
    if isinstance(value, bytes) and not pa.types.is_fixed_size_binary(type_):
        return rng.choice([value[:-1], value + b"\0"])
    if isinstance(value, decimal.Decimal):
        return value + decimal.Decimal(1).scaleb(-type_.scale)
    if isinstance(value, float):
        return value + 0.0625
    if isinstance(value, int) and not isinstance(value, bool):
        unit = type_.unit if pa.types.is_timestamp(type_) else "ns"
        if pa.types.is_timestamp(type_) and value % 1000 == 0 and unit == "ns":
            unit = "us"  # INT96, which has no finer literals
        step = rng.choice([-1, 1]) * {"s": 10 ** 9, "ms": 10 ** 6, "us": 1000, "ns": 1}[unit]
        low, high = (0, 2 ** 64 - 1) if pa.types.is_unsigned_integer(type_) else (-2 ** 63, 2 ** 63 - 1)
        return min(max(value + step, low), high)
    return value


def compare(op, array, value):
    if isinstance(value, int) and not isinstance(value, bool) and pa.types.is_integer(array.type):
        array = array.cast(pa.uint64() if value > 2 ** 63 - 1 or pa.types.is_uint64(array.type) else pa.int64())
    return COMPARE[op](array, pa.scalar(value, array.type)).fill_null(False)


def condition(table, path, rng):
    name, _, member = path.partition(".")
    array = table[name].combine_chunks()
    array = pc.struct_field(array, member) if member else array
    type_, array = array.type, in_type(array)
    how = rng.random()
    if how < 0.08:
        return f"{path} is null", pc.is_null(array)
    if how < 0.16:
        return f"{path} is not null", pc.is_valid(array)
    if how < 0.3:
        values = [random_value(array, type_, rng) for _ in range(rng.randrange(1, 5))]
        found = compare("=", array, values[0])
        for value in values[1:]:
            found = pc.or_(found, compare("=", array, value))
        return f"{path} in ({', '.join(literal(v, type_) for v in values)})", found
    op, value = rng.choice(list(COMPARE)), random_value(array, type_, rng)
    return f"{path} {op} {literal(value, type_)}", compare(op, array, value)


def joined(parts, rng):
    """Conditions joined by "and" and "or", in brackets where that is needed and sometimes where it is not."""
    if len(parts) == 1:
        return parts[0] if rng.random() < 0.9 else (f"({parts[0][0]})", parts[0][1])
    at = rng.randrange(1, len(parts))
    (left, one), (right, other) = joined(parts[:at], rng), joined(parts[at:], rng)
    if rng.random() < 0.5:
        return f"{left} or {right}", pc.or_(one, other)
    return " and ".join(f"({side})" if " or " in side else side for side in (left, right)), pc.and_(one, other)


def paths_of(table):
    flat = [f.name for f in table.schema if not pa.types.is_nested(f.type)]
    return flat + (["s.a", "s.b"] if "s" in table.column_names else [])


def check(path, lines, text, found, *more):
    want = [line for line, is_there in zip(lines, found.to_pylist()) if is_there]
    assert cat(path, text, *more) == want, text
    assert cat(path, text, "--no-pruning", *more) == want, text
    return len(want)


@pytest.mark.parametrize("name", WRITERS)
def test_random_predicates(written, name):
    path, table, lines = written(name)
    assert [json.loads(line)["id"] for line in lines] == table["id"].to_pylist() == list(range(ROWS))
    rng, found_some = random.Random(name), 0
    paths = paths_of(table)
    for i in range(PREDICATES):
        parts = [condition(table, paths[i % len(paths)] if j == 0 else rng.choice(paths), rng)
                 for j in range(rng.choice([1, 1, 1, 2, 3, 4]))]
        text, found = joined(parts, rng)
        found_some += check(path, lines, text, found) > 0
        if i % 10 == 0:
            facts = explain(path, text)
            assert facts["rows_matching"] == pc.sum(found).as_py(), text
    assert found_some > PREDICATES / 4
    parquet("verify", path)
    assert explain(path, "id < 20")["rows_looked_at"] < ROWS or name == "convert"  # whose rows are one page


@pytest.mark.parametrize("name", WRITERS)
def test_every_column_and_operator(written, name):
    """In stretches of one value, of nulls, and with NaN: what bounds say least about."""
    path, table, lines = written(name)
    rng = random.Random(7)
    for column_path in ("same", "f64", "long"):
        for op in COMPARE:
            array = table[column_path].combine_chunks()
            value = array[rng.choice([330, 1315, 2390])].as_py()
            value = 1.0 if value is None and column_path in ("same", "f64") else value
            if value is None:
                continue
            check(path, lines, f"{column_path} {op} {literal(value, array.type)}", compare(op, array, value))


def test_columns_and_limit_go_with_it(written):
    path, table, lines = written("ours")
    where = "i64 is null and id > 100"
    found = pc.and_(pc.is_null(table["i64"].combine_chunks()), pc.greater(table["id"].combine_chunks(), 100))
    want = [json.loads(line) for line, is_there in zip(lines, found.to_pylist()) if is_there]
    some = [json.loads(line) for line in cat(path, where, "--columns", "list,map,s")]
    assert some == [{k: row[k] for k in ("s", "list", "map")} for row in want]
    head = parquet("head", path, "--where", where, "--rows", "5").stdout.splitlines()
    assert [json.loads(line) for line in head] == want[:5]
    assert parquet("head", path, "--rows", "12").stdout.splitlines() == lines[:12]
    assert parquet("head", path, "--rows", "0").stdout == ""


def page_of(levels):
    """A v1 page of (repetition, definition, value or None); each level a run of its own."""
    sections = b""
    for kind in (0, 1):
        runs = b"".join(bytes([2, level[kind]]) for level in levels)
        sections += struct.pack("<I", len(runs)) + runs
    body = sections + b"".join(struct.pack("<q", value) for _, _, value in levels if value is not None)
    return thrift({1: 0, 2: len(body), 3: len(body), 5: {1: len(levels), 2: 0, 3: 3, 4: 3}})[1] + body


@pytest.mark.parametrize("size", [1, 7, 50])
def test_rows_that_cross_pages(tmp_path, size):
    """Old writers begin a page in the middle of a row."""
    rows = 60
    lists = [None if i % 9 == 4 else [i * 100 + j for j in range(i % 12)] for i in range(rows)]
    table = pa.table({"id": range(rows), "l": lists})
    pq.write_table(table, tmp_path / "f", compression="none")
    levels = []
    for values in lists:
        levels += [(j > 0, 3, value) for j, value in enumerate(values)] if values else [(0, values is not None, None)]
    chunk = b"".join(page_of(levels[i:i + size]) for i in range(0, len(levels), size))
    data = (tmp_path / "f").read_bytes()
    front = data[:-8 - struct.unpack("<I", data[-8:-4])[0]]

    def move(footer_):
        about = footer_[4][0][1][1][3]
        about.pop(11, None)
        about.update({6: len(chunk), 7: len(chunk), 9: len(front)})
    path = tmp_path / "g"
    path.write_bytes(with_footer(front + chunk + data[len(front):], move))
    lines = parquet("cat", path).stdout.splitlines()
    assert [json.loads(line) for line in lines] == table.to_pylist()
    for i in range(0, rows, 5):
        assert cat(path, f"id = {i}") == lines[i:i + 1]
    odd = ", ".join(str(i) for i in range(1, rows, 2))
    assert cat(path, f"id in ({odd})") == lines[1::2]


# ---- what is read ----

# ---- dictionaries of which a few pages need the front ----

def dictionaries(rows=120_000):
    """Many entries, in the order of the rows or against it; long ones behind short ones, so that the front is longer
    than an even share; hot ones; with nulls; in a list."""
    rng = random.Random(7)
    rising = [hashlib.md5(str(i // 3).encode()).hexdigest() for i in range(rows)]
    columns = {
        "id": pa.array(range(rows)), "rising": pa.array(rising),
        "lengths": pa.array(["x" * (1 + i // 1500) + str(i // 2) for i in range(rows)]),
        "shrinking": pa.array(["x" * (80 - i // 1500) + str(i // 2) for i in range(rows)]),
        "mixed": pa.array([None if rng.random() < 0.1 else f"user-{int(rng.expovariate(1e-4))}" for _ in range(rows)]),
        "bytes": pa.array([struct.pack(">Q", i // 2 * 0x9E3779B97F4A7C15 % 2**64) * 2 for i in range(rows)]),
        "number": pa.array([i // 2 * 0x9E3779B97F4A7C15 % 2**63 for i in range(rows)]),
        "list": pa.array([[f"{i % 977}-{j}-{i // 4}" for j in range(i % 3)] for i in range(rows)]),
    }
    return pa.table(columns)


@pytest.mark.parametrize("codec", ["zstd", "none", "snappy"])
@pytest.mark.parametrize("size", [3000, 100_000])
def test_rows_of_large_dictionaries(tmp_path, codec, size):
    table = dictionaries()
    path = tmp_path / "f.parquet"
    pq.write_table(table, path, compression=codec, row_group_size=100_000, data_page_size=size, write_page_index=True,
                   write_batch_size=500, dictionary_pagesize_limit=1 << 26)
    everything = parquet("cat", path).stdout.splitlines()
    rng = random.Random(codec + str(size))
    for _ in range(12):
        rows = sorted({rng.randrange(table.num_rows) for _ in range(rng.choice([1, 1, 2, 40]))})
        found = cat(path, " or ".join(f"id = {row}" for row in rows))
        assert found == [everything[row] for row in rows]
    for row in (0, 20_001, 70_001, 99_999, 119_997):
        assert cat(path, f"rising = '{table['rising'][row].as_py()}'") == everything[row // 3 * 3:][:3]
    for rows in ((10, 40_000), (40_000, 70_000), (5000, 20_000, 99_000)):
        wanted = " or ".join(f"lengths = '{table['lengths'][row].as_py()}'" for row in rows)
        assert cat(path, wanted) == [line for row in rows for line in everything[row:row + 2]]


def test_what_is_wrong_behind_the_front_of_a_dictionary(tmp_path):
    """It does not matter to rows that do not refer to it, and is said to those that do."""
    table = dictionaries(60_000).select(["id", "rising"])
    path = tmp_path / "f.parquet"
    pq.write_table(table, path, compression="zstd", write_page_index=True, data_page_size=4000, write_batch_size=500,
                   dictionary_pagesize_limit=1 << 26, use_dictionary=["rising"], write_page_checksum=False)
    chunk = pq.read_metadata(path).row_group(0).column(1)
    data, end = bytearray(path.read_bytes()), chunk.data_page_offset
    data[end - 40_000:end] = b"\xff" * 40_000
    path.write_bytes(data)
    assert len(cat(path, "id = 100")) == 1
    error = parquet("cat", path, "--where", "id = 59000", check=2).stderr
    assert f"column rising, row group 0, byte {chunk.dictionary_page_offset}" in error


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_an_entry_that_ends_behind_its_dictionary(tmp_path, codec):
    """The first page needs what is in front of it, the second one what would be behind it."""
    rng = random.Random(4)
    entries = [rng.randbytes(16) for _ in range(12)]
    table = pa.table({"id": range(3000), "text": [entries[i // 250] for i in range(3000)]})
    path = tmp_path / "f.parquet"
    pq.write_table(table, path, compression=codec, write_page_index=True, max_rows_per_page=1000, use_dictionary=["text"],
                   write_batch_size=250)
    data = bytearray(path.read_bytes())
    at = data.index(entries[5]) - 4
    assert data[at:at + 4] == struct.pack("<I", 16)
    data[at:at + 4] = struct.pack("<I", 1 << 30)
    path.write_bytes(data)
    dictionary_at = pq.read_metadata(path).row_group(0).column(1).dictionary_page_offset
    assert len(cat(path, "id = 100")) == 1
    for where in ("id = 100 or id = 1900", "id = 100 or id = 2900", "id in (1, 100, 2999)"):
        error = parquet("cat", path, "--where", where, check=2).stderr
        assert f"column text, row group 0, byte {dictionary_at}: a value that ends behind the page" in error


def test_bytes_that_are_read(tmp_path):
    """One row of many: a page a column; the other columns are not read for rows that do not match."""
    rng = random.Random(3)
    rows = 50000
    table = pa.table({"key": [f"{i:08}" for i in range(rows)], "hash": [rng.randbytes(16).hex() for _ in range(rows)],
                      "body": [rng.randbytes(40) for _ in range(rows)]})
    path = tmp_path / "f.parquet"
    pq.write_table(table, path, write_page_index=True, use_dictionary=False, max_rows_per_page=500, row_group_size=10000,
                   bloom_filter_options={"hash": {"ndv": 10000, "fpp": 0.01}}, compression="none")
    size = path.stat().st_size
    facts = explain(path, "key = '00031234'")
    assert (facts["rows_matching"], facts["rows_looked_at"], facts["pages_decoded"]) == (1, 500, 4)
    assert facts["row_groups_ruled_out_by_statistics"] == 4 and facts["page_bytes"] < size / 50
    one = table["hash"][31234].as_py()
    facts = explain(path, f"hash = '{one}'")
    assert facts["rows_matching"] == 1 and facts["row_groups_ruled_out_by_bloom_filters"] == 4
    assert facts["page_bytes"] < size / 5 / 2
    facts = explain(path, f"hash = '{one}' and key < '00031000'")
    assert facts["rows_matching"] == 0 and facts["page_bytes"] < size / 10
    facts = explain(path, "key = 'nobody'")
    assert facts["page_bytes"] == 0 and facts["index_bytes"] == 0
    whole = explain(path, "key = '00031234'", "--no-pruning")
    assert whole["rows_looked_at"] == rows and whole["page_bytes"] > 50000 * 8
    said = parquet("explain", path, "--where", "key = '00031234'").stdout
    assert said.startswith("1 of 50000 rows match; 500 were looked at\n5 row groups, of which 4 were ruled out")


def test_zeros_of_both_signs_in_bloom_filters(tmp_path):
    path = tmp_path / "f.parquet"
    for dtype in (pa.float32(), pa.float64()):
        table = pa.table({"a": pa.array([-0.0, 5.0], dtype), "b": pa.array([0.0, 5.0], dtype)})
        pq.write_table(table, path, write_statistics=False, bloom_filter_options={"a": {"ndv": 10, "fpp": 0.01},
                                                                                  "b": {"ndv": 10, "fpp": 0.01}})
        for where in ("a = 0", "a = -0", "b = 0", "b = -0.0", "a in (7, 0)"):
            assert len(cat(path, where)) == 1, where
        assert cat(path, "a = 7") == [] and explain(path, "a = 7")["row_groups_ruled_out_by_bloom_filters"] == 1


@pytest.mark.parametrize("encoding", ["auto", "plain"])
def test_others_find_zeros_of_both_signs_in_our_bloom_filters(tmp_path, encoding):
    """A filter that has one of the two has the other: a reader that hashes what it is asked for finds both."""
    path = tmp_path / "f.parquet"
    for zero, dtype in ((0.0, pa.float64()), (-0.0, pa.float64()), (0.0, pa.float32()), (-0.0, pa.float32())):
        table = pa.table({"f": pa.array([zero] * 5, dtype)})
        (tmp_path / "in.arrows").write_bytes(stream_bytes(table))
        subprocess.run([sluice.BINARY, "convert", tmp_path / "in.arrows", path, "--bloom", "f", "--force", "--encoding",
                        encoding], check=True)
        for asked in (0.0, -0.0):
            theirs = duckdb.execute(f"SELECT count(*) FROM '{path}' WHERE f = ?", [asked]).fetchone()
            rules_out = duckdb.execute("SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, 'f', ?)",
                                       [str(path), asked]).fetchone()
            assert (theirs, rules_out) == ((5,), (False,)), (zero, dtype, asked)
            assert len(cat(path, f"f = {asked}")) == 5


# ---- what a file says of itself ----

def page_index(data, chunk):
    """The column and the offset index of a chunk."""
    return [Cursor(data, chunk[at]).struct() for at in (6, 4)]


def with_index(data, column_index=None, offset_index=None, group=0, leaf=0):
    """The file with new indexes of one chunk, put in front of its footer."""
    fields = footer(data)
    chunk = fields[4][group][1][leaf]
    indexes = page_index(data, chunk)
    length = struct.unpack("<I", data[-8:-4])[0]
    out = data[:-8 - length]
    for edit, index, at in ((column_index, indexes[0], 6), (offset_index, indexes[1], 4)):
        if not edit:
            continue
        new = edit(index)
        if not isinstance(new, bytes):
            new = thrift(index)[1]
        chunk[at], chunk[at + 1] = len(out), len(new)
        out += new
    new = thrift(fields)[1]
    return out + new + struct.pack("<I", len(new)) + b"PAR1"


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    path = tmp_path_factory.mktemp("indexed") / "f.parquet"
    table = pa.table({"a": pa.array(range(1000), pa.int64()), "b": [[i] * (i % 3) for i in range(1000)]})
    pq.write_table(table, path, write_page_index=True, max_rows_per_page=100, use_dictionary=False, compression="none")
    return path.read_bytes()


def lies():
    def places(edit):
        return {"offset_index": lambda index: edit(index[1])}

    def lists(edit):
        return {"column_index": edit}

    yield "a page less", places(lambda p: p.pop()), "the offset index has 9"
    yield "rows that fall", places(lambda p: p[4].update({3: 90})), "the first row of page 3 is none"
    yield "a first row behind the first", places(lambda p: p[0].update({3: 1})), "the first rows are in no page"
    yield "rows behind the group", places(lambda p: p[9].update({3: 1001})), "is none"
    yield "another first row", places(lambda p: p[5].update({3: 499})), "the offset index says"
    yield "a place in front of the chunk", places(lambda p: p[0].update({1: 0})), "not in its chunk"
    yield "a place behind the chunk", places(lambda p: p[9].update({1: 10 ** 9})), "not in its chunk"
    yield "pages over each other", places(lambda p: p[3].update({2: 10 ** 4})), "behind the one after it, or not"
    yield "a length of nothing", places(lambda p: p[4].update({2: 0})), "0 rows in a page"
    yield "two pages as one", places(lambda p: p.pop(5)), "the offset index has 9"
    yield "no places", {"offset_index": lambda index: b"\0"}, "a damaged offset index"
    yield "bounds of another width", lists(lambda i: i[2].__setitem__(3, b"abc")), "bounds of page 3 are none of its type"
    yield "bounds that cross", lists(lambda i: i[2].__setitem__(3, i[3][5])), "lower bound of page 3 is above"
    yield "a bound less", lists(lambda i: i.update({2: i[2][:-1]})), "lists of different lengths"
    yield "no column index", {"column_index": lambda index: b"\x19"}, "a damaged column index"


@pytest.mark.parametrize("lie", list(lies()), ids=lambda lie: lie[0])
def test_indexes_that_lie_are_refused(indexed, tmp_path, lie):
    _, edits, said = lie
    (tmp_path / "bad").write_bytes(with_index(indexed, **edits))
    done = parquet("cat", tmp_path / "bad", "--where", "a in (450, 520)", check=2)
    assert said in done.stderr and "column a, row group 0, byte " in done.stderr


def quiet_lies():
    """What contradicts the values, and nothing else: only verify can tell."""
    def raised(index):
        index[2][3] = struct.pack("<q", 301)

    def lowered(index):
        index[3][3] = struct.pack("<q", 398)

    def rising(index):
        index[4] = 2

    def moved(index):
        for page, rows in ((4, 399), (5, 499)):
            index[1][page][3] = rows

    yield "a lower bound", {"column_index": raised}, "a value that is not within the page's bounds"
    yield "an upper bound", {"column_index": lowered}, "a value that is not within the page's bounds"
    yield "a null count", {"column_index": lambda i: i[5].__setitem__(2, 1)}, "0 nulls, not 1"
    yield "a null page", {"column_index": lambda i: i[1].__setitem__(2, True)}, "values where the column index says"
    yield "an order", {"column_index": rising}, "bounds in another order"
    yield "first rows", {"offset_index": moved}, "400 is the page's first row, not 399"
    yield "a place", {"offset_index": lambda i: i[1][9].update({2: i[1][9][2] - 1})}, "at another place"


@pytest.mark.parametrize("lie", list(quiet_lies()), ids=lambda lie: lie[0])
def test_verify_finds_what_contradicts_the_values(indexed, tmp_path, lie):
    _, edits, said = lie
    edits = {name: (lambda index, edit=edit: edit(index) and None) for name, edit in edits.items()}
    (tmp_path / "bad").write_bytes(with_index(indexed, **edits))
    done = parquet("verify", tmp_path / "bad", check=2)
    assert said in done.stderr and "column a, row group 0, byte " in done.stderr


def test_verify_finds_wrong_statistics_and_filters(tmp_path):
    table = pa.table({"f": [1.5, math.nan, 2.5, None], "t": ["a", "b", "c", "d"]})
    pq.write_table(table, tmp_path / "f", bloom_filter_options={"t": {"ndv": 4, "fpp": 0.01}}, use_dictionary=False)
    data = (tmp_path / "f").read_bytes()
    parquet("verify", tmp_path / "f")

    def statistics(leaf, **changes):
        numbers = {"nulls": 3, "max": 5, "min": 6, "max_exact": 7, "min_exact": 8, "nans": 9}
        new = {numbers[name]: value for name, value in changes.items()}
        return lambda f: f[4][0][1][leaf][3][12].update(new)

    for edit, said in [(statistics(0, nulls=2), "column f, row group 0, byte 4: 1 nulls, not 2"),
                       (statistics(0, nans=0), "1 NaN, not 0"),
                       (statistics(0, max=struct.pack("<d", 2)), "not within the column's bounds"),
                       (statistics(0, min=struct.pack("<d", 1), min_exact=True), "said to be exact"),
                       (statistics(1, max=b"c"), "column t, row group 0, byte "),
                       (statistics(1, max=b"dd", max_exact=True), "said to be exact")]:
        (tmp_path / "g").write_bytes(with_footer(data, edit))
        assert said in parquet("verify", tmp_path / "g", check=2).stderr
    chunk = footer(data)[4][0][1][1][3]
    end = chunk[14] + chunk[15]
    (tmp_path / "g").write_bytes(data[:end - 32] + bytes(32) + data[end:])
    assert "a value that the Bloom filter has not" in parquet("verify", tmp_path / "g", check=2).stderr


def test_the_same_file_with_true_indexes(indexed, tmp_path):
    (tmp_path / "good").write_bytes(with_index(indexed, column_index=lambda i: None, offset_index=lambda i: None))
    assert len(cat(tmp_path / "good", "a in (450, 520)")) == 2
    assert explain(tmp_path / "good", "a in (450, 520)")["rows_looked_at"] == 200


def test_bounds_without_the_order_of_their_type_are_not_believed(tmp_path):
    """Text bounds under no order, or another one: the file is read, and nothing ruled out by them."""
    table = pa.table({"t": [f"{i:04}" for i in range(1000)]})
    pq.write_table(table, tmp_path / "f", write_page_index=True, max_rows_per_page=100)
    data = (tmp_path / "f").read_bytes()
    for edit in (lambda f: f.pop(7), lambda f: f.update({7: [{2: {}}]}), lambda f: f.update({7: [{1: {}}, {1: {}}]})):
        (tmp_path / "g").write_bytes(with_footer(data, edit))
        facts = explain(tmp_path / "g", "t = '0001'")
        assert (facts["rows_matching"], facts["rows_looked_at"]) == (1, 1000)
    assert explain(tmp_path / "f", "t = '0001'")["rows_looked_at"] == 100


def test_nan_that_nobody_counts(tmp_path):
    """Bounds of one value beside NaN rule out neither != nor anything else that NaN answers."""
    table = pa.table({"f": [1.5, math.nan, 1.5, None]})
    pq.write_table(table, tmp_path / "f", write_page_index=True)
    assert cat(tmp_path / "f", "f != 1.5") == ['{"f":"NaN"}']
    assert cat(tmp_path / "f", "f != nan") == ['{"f":1.5}', '{"f":"NaN"}', '{"f":1.5}']
    for where in ("f > 1.5", "f < 1.5", "f = nan", "f >= nan", "f in (nan, 2)"):
        assert cat(tmp_path / "f", where) == [], where

    def counted(footer_, count):
        footer_[4][0][1][0][3][12][9] = count
    for count, looked_at in ((1, 4), (0, 0)):  # a file that says there is none is believed
        (tmp_path / "g").write_bytes(with_footer((tmp_path / "f").read_bytes(), lambda f: counted(f, count)))
        assert explain(tmp_path / "g", "f != 1.5")["rows_looked_at"] == looked_at


def test_filters_that_are_none(written):
    path, _, _ = written("pyarrow-v1")
    for where, code, said in [
            ("nobody = 1", 3, "filter, byte 0: parquet: no column nobody"),
            ("id = 1 and list.list.element = 'x'", 2, "filter, byte 11: parquet: column list.list.element lies in a list"),
            ("id = 1.5", 2, "filter, byte 5: column id wants an integer"),
            ("u64 = -1", 2, "column u64 wants an integer from 0 on"),
            ("d5 = 1.005", 2, "no more digits behind the point"),
            ("utc = '2020-01-01T00:00:00.0001Z'", 2, "not finer than the column's"),
            ("local = '2020-01-01T00:00:00Z'", 2, "without a zone"),
            ("date = '2021-02-29'", 2, "a date such as"),
            ("text = 5", 2, "wants a text"), ("bytes = 'a'", 2, "wants bytes"), ("flag = 1", 2, "true or false"),
            ("id = null", 2, "write is null"), ("id", 2, "an operator is missing"), ("", 2, "name of a column"),
            ("id = 1 id = 2", 2, "filter, byte 7: \"and\", \"or\" or the end"), ("(id = 1 or id = 2", 2, ") is missing"),
            ("id in (1, 2", 2, ") is missing"),
            ("text = 'a", 2, "filter, byte 7: a quote that is not closed"), ("bytes = x'0'", 2, "even number")]:
        assert said in parquet("cat", path, "--where", where, check=code).stderr, where
