# SPDX-License-Identifier: Apache-2.0
"""Parquet files of others, and our own, read by us and compared value for value: type x encoding x
codec x nesting x nulls, then random nested schemas."""
import decimal
import io
import json
import math
import os
import random
import struct

import duckdb
import numpy
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from columnar_data import cases, everything, make_nested_dictionary, stream_bytes
from parquet_bytes import with_footer

ROWS = 211


def read(tool, folder, path, *options, ok=True):
    done = tool("parquet_read", path, folder / "read", *options, ok=ok)
    if done.returncode:
        return done
    return pa.ipc.open_stream((folder / "read").read_bytes()).read_all(), json.loads(done.stdout)


# ---- values as they should come out ----

def walk(array, want, leaf):
    """An array as Python values; `leaf` sees the arrays without children and the wanted type."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_dictionary(want):
        want = want.value_type
    if pa.types.is_map(want):
        flat = list(zip(walk(array.keys, want.key_type, leaf), walk(array.items, want.item_type, leaf)))
    elif pa.types.is_list(want) or pa.types.is_large_list(want):
        flat = walk(array.values, want.value_type, leaf)
    elif pa.types.is_struct(want):
        fields = [(want.field(i).name, walk(array.field(i), want.field(i).type, leaf))
                  for i in range(want.num_fields)]
        return [{name: values[i] for name, values in fields} if array[i].is_valid else None
                for i in range(len(array))]
    else:
        return leaf(array, want)
    offsets = array.offsets.to_pylist()
    return [flat[offsets[i]:offsets[i + 1]] if array[i].is_valid else None
            for i in range(len(array))]


def leaf_wanted(array, want):
    if pa.types.is_decimal(want):
        return [None if v is None else int(v.scaleb(want.scale, decimal.Context(prec=80)))
                for v in array.to_pylist()]
    if want == pa.time32("s"):
        array = array.cast(pa.time32("ms"))
    if pa.types.is_time32(want):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_time64(want) or want in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        return array.cast(pa.int64()).to_pylist()
    if pa.types.is_timestamp(want):
        return array.cast(pa.timestamp("us", want.tz)).to_pylist()
    if pa.types.is_date64(want):
        return array.cast(pa.date32()).to_pylist()
    if want == pa.uint64():
        return [None if v is None else v - (v >> 63 << 64) for v in array.to_pylist()]
    if want == pa.float16():
        return [None if v is None else struct.pack("<e", v) for v in array.to_pylist()]
    return array.to_pylist()


def leaf_got(array, want):
    values = array.to_pylist()
    if pa.types.is_decimal(want):
        return [int.from_bytes(v, "big", signed=True) if isinstance(v, bytes) else v for v in values]
    return values


def compare(got, want, only=None):
    assert got.num_rows == want.num_rows
    for column in only or want.column_names:
        type_ = want.schema.field(column).type
        expected = walk(want[column], type_, leaf_wanted)
        assert repr(walk(got[column], type_, leaf_got)) == repr(expected), column


# ---- the matrix ----

def values_of(type_, count, rng):
    few = rng.random() < 0.5
    pick = (lambda make: [make(i % 7) for i in range(count)]) if few else (lambda make: [make(i) for i in range(count)])
    if pa.types.is_boolean(type_):
        return [rng.random() < 0.5 if i % 50 < 25 else i % 100 < 50 for i in range(count)]
    if pa.types.is_integer(type_):
        bits, signed = type_.bit_width, pa.types.is_signed_integer(type_)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        edge = [low, high, 0, 1]
        return pick(lambda i: edge[i] if i < 4 else rng.randint(low, high) if few else min(high, 5 * i))
    if pa.types.is_float16(type_):
        import numpy
        return [numpy.float16(i) for i in range(count)]
    if pa.types.is_floating(type_):
        special = [math.nan, math.inf, -math.inf, 0.0, -0.0]
        return pick(lambda i: special[i] if i < 5 else float(i) * 0.25)
    if pa.types.is_decimal(type_):
        top = 10 ** type_.precision - 1
        return pick(lambda i: decimal.Decimal([0, top, -top, 1, -1][i] if i < 5 else rng.randint(-top, top))
                    .scaleb(-type_.scale, decimal.Context(prec=80)))
    if pa.types.is_string(type_):
        return pick(lambda i: ["", "é", "x" * 100, "\U0001f600"][i] if i < 4 else f"prefix/{i // 10}/{i}")
    if pa.types.is_binary(type_):
        return pick(lambda i: rng.randbytes(i % 9))
    if pa.types.is_fixed_size_binary(type_):
        return pick(lambda i: bytes([i & 255] * (type_.byte_width - 1) + [i >> 8 & 255]))
    numbers = pick(lambda i: i * 1000 if not pa.types.is_date(type_) else i - 50)
    if pa.types.is_timestamp(type_):
        numbers = pick(lambda i: [0, -1, -1001, 10 ** 9][i] if i < 4 else i * 123457)
    if pa.types.is_date64(type_):
        numbers = [86400000 * n for n in numbers]
    if pa.types.is_time(type_):
        numbers = [n % 86400 for n in numbers]
    ints = pa.int32() if type_.bit_width == 32 else pa.int64()
    return pa.array(numbers, ints).cast(type_)


TYPES = {
    "bool": pa.bool_(), "i8": pa.int8(), "i16": pa.int16(), "i32": pa.int32(), "i64": pa.int64(),
    "u8": pa.uint8(), "u16": pa.uint16(), "u32": pa.uint32(), "u64": pa.uint64(),
    "half": pa.float16(), "float": pa.float32(), "double": pa.float64(),
    "d5": pa.decimal128(5, 2), "d15": pa.decimal128(15, 0), "d38": pa.decimal128(38, 10),
    "text": pa.utf8(), "binary": pa.binary(), "fixed": pa.binary(7),
    "date": pa.date32(), "date64": pa.date64(), "t_s": pa.time32("s"), "t_ms": pa.time32("ms"),
    "t_us": pa.time64("us"), "t_ns": pa.time64("ns"),
    "ts_s": pa.timestamp("s"), "ts_ms": pa.timestamp("ms"), "ts_us": pa.timestamp("us"),
    "ts_ns": pa.timestamp("ns"), "tz_ms": pa.timestamp("ms", "UTC"), "tz_us": pa.timestamp("us", "UTC"),
}
NULLS = {"none": 0.0, "some": 0.3, "all": 1.0}


def with_nulls(values, type_, share, rng):
    array = values if isinstance(values, pa.Array) else pa.array(values, type_)
    places = pa.array([None if rng.random() < share else i for i in range(len(array))], pa.int64())
    return array.take(places)


def random_offsets(rows, rng):
    offsets = [0]
    for _ in range(rows):
        offsets.append(offsets[-1] + rng.choice([0, 0, 1, 1, 2, 5]))
    return offsets


def mask(rows, share, rng):
    return pa.array([rng.random() < share for _ in range(rows)], pa.bool_())


def nest(how, type_, share, rng):
    """A column of ROWS rows around leaves of `type_`."""
    def leaves(count):
        return with_nulls(values_of(type_, count, rng), type_, share, rng)
    outer = min(share, 0.2)
    if how == "flat":
        return leaves(ROWS)
    if how == "list":
        offsets = random_offsets(ROWS, rng)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), leaves(offsets[-1]),
                                        mask=mask_of_empty(offsets, outer, rng))
    if how == "struct":
        return pa.StructArray.from_arrays([leaves(ROWS), leaves(ROWS)], ["a", "b"], mask=mask(ROWS, outer, rng))
    if how == "map":
        offsets = random_offsets(ROWS, rng)
        keys = pa.array([f"k{i}" for i in range(offsets[-1])])
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, leaves(offsets[-1]))
    if how == "list_list":
        outer_offsets = random_offsets(ROWS, rng)
        inner_offsets = random_offsets(outer_offsets[-1], rng)
        inner = pa.ListArray.from_arrays(pa.array(inner_offsets, pa.int32()), leaves(inner_offsets[-1]),
                                         mask=mask_of_empty(inner_offsets, outer, rng))
        return pa.ListArray.from_arrays(pa.array(outer_offsets, pa.int32()), inner,
                                        mask=mask_of_empty(outer_offsets, outer, rng))
    offsets = random_offsets(ROWS, rng)
    count = offsets[-1]
    inner = pa.StructArray.from_arrays([leaves(count), pa.array(range(count), pa.int32())], ["a", "b"],
                                       mask=mask(count, outer, rng))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner)


def mask_of_empty(offsets, share, rng):
    return pa.array([offsets[i] == offsets[i + 1] and rng.random() < share * 3
                     for i in range(len(offsets) - 1)], pa.bool_())


NESTINGS = ["flat", "list", "struct", "map", "list_list", "list_struct"]


def matrix_table(nesting):
    rng = random.Random(nesting)
    return pa.table({f"{name}_{nulls}": nest(nesting, type_, share, rng)
                     for name, type_ in TYPES.items() for nulls, share in NULLS.items()})


ENCODINGS = {
    "DELTA_BINARY_PACKED": ("INT32", "INT64"),
    "DELTA_LENGTH_BYTE_ARRAY": ("BYTE_ARRAY",),
    "DELTA_BYTE_ARRAY": ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"),
    "BYTE_STREAM_SPLIT": ("INT32", "INT64", "FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY"),
    "RLE": ("BOOLEAN",),
}
CODECS = ["none", "snappy", "gzip", "zstd", "lz4"]


def leaf_paths(table):
    out = io.BytesIO()
    pq.write_table(table.slice(0, 0), out, version="2.6")
    schema = pq.ParquetFile(out).schema
    return [(schema.column(i).path, schema.column(i).physical_type) for i in range(len(schema.names))]


def encoding_options(table, encoding):
    if encoding == "dictionary":
        return {"use_dictionary": True}
    if encoding == "PLAIN":
        return {"use_dictionary": False}
    if encoding == "fallback":
        return {"use_dictionary": True, "dictionary_pagesize_limit": 200}
    return {"use_dictionary": False,
            "column_encoding": {path: encoding for path, physical in leaf_paths(table)
                                if physical in ENCODINGS[encoding]}}


@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", ["dictionary", "fallback", "PLAIN", *ENCODINGS])
@pytest.mark.parametrize("nesting", NESTINGS)
def test_pyarrow_files(tool, tmp_path, nesting, encoding, page_version):
    table = matrix_table(nesting)
    number = NESTINGS.index(nesting) + len(encoding)
    pq.write_table(table, tmp_path / "f.parquet", version="2.6", compression=CODECS[number % 5],
                   data_page_version=page_version, data_page_size=300, row_group_size=100,
                   write_page_checksum=True, **encoding_options(table, encoding))
    got, about = read(tool, tmp_path, tmp_path / "f.parquet")
    compare(got, table)
    assert about["groups"] == 3
    used = {e for leaf in about["leaves"] for e in leaf["encodings"]}
    assert ("RLE_DICTIONARY" if encoding in ("dictionary", "fallback") else encoding) in used
    kept, _ = read(tool, tmp_path, tmp_path / "f.parquet", "dictionary")
    compare(kept, table)


@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", CODECS)
def test_codecs(tool, tmp_path, codec, page_version):
    table = everything(700)
    pq.write_table(table, tmp_path / "f.parquet", compression=codec, data_page_version=page_version,
                   data_page_size=2000, row_group_size=300)
    compare(read(tool, tmp_path, tmp_path / "f.parquet")[0], table)


def test_integer_decimals_and_int96(tool, tmp_path):
    rng = random.Random(3)
    table = pa.table({"d5": nest("flat", TYPES["d5"], 0.2, rng), "d15": nest("list", TYPES["d15"], 0.2, rng)})
    pq.write_table(table, tmp_path / "d.parquet", store_decimal_as_integer=True)
    got, about = read(tool, tmp_path, tmp_path / "d.parquet")
    compare(got, table)
    assert [leaf["physical"] for leaf in about["leaves"]] == ["INT32", "INT64"]
    assert [(leaf["precision"], leaf["scale"]) for leaf in about["leaves"]] == [(5, 2), (15, 0)]
    times = pa.table({"t": pa.array([0, None, -1, 1, -86400000001, 4102444800000000], pa.timestamp("us"))})
    pq.write_table(times, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    got, about = read(tool, tmp_path, tmp_path / "t.parquet")
    assert about["leaves"][0]["physical"] == "INT96"
    compare(got, times)


# ---- other writers ----

@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4"])
def test_polars_files(tool, tmp_path, codec):
    table = everything(700)
    frame = polars.from_arrow(table)
    frame.write_parquet(tmp_path / "f.parquet", compression=codec, row_group_size=300, data_page_size=2000)
    compare(read(tool, tmp_path, tmp_path / "f.parquet")[0], frame.to_arrow(compat_level=polars.CompatLevel.oldest()))


@pytest.mark.parametrize("version", ["V1", "V2"])
@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw"])
def test_duckdb_files(tool, tmp_path, codec, version):
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    con.register("t", everything(5000))
    con.execute("CREATE TABLE u AS SELECT *, (id * 1.25)::DECIMAL(9, 2) AS d9, "
                "(id * 1.25)::DECIMAL(18, 3) AS d18, id % 3 = 0 AS b, 'prefix ' || id AS s FROM t")
    con.execute(f"COPY u TO '{tmp_path}/f.parquet' (FORMAT parquet, CODEC {codec}, PARQUET_VERSION {version}, "
                "ROW_GROUP_SIZE 2048)")
    want = con.execute(f"SELECT * FROM '{tmp_path}/f.parquet'").to_arrow_table()
    got, about = read(tool, tmp_path, tmp_path / "f.parquet")
    compare(got, want)
    if version == "V2":
        assert "DELTA_BINARY_PACKED" in {e for leaf in about["leaves"] for e in leaf["encodings"]}


# ---- our own ----

SHAPES = [[], ["page_rows=7", "row_group_rows=100"], ["page_bytes=200", "row_group_rows=333"], ["dictionary=0"],
          ["dictionary=300", "page_rows=50"], ["zstd=0", "page_rows=100"]]


@pytest.mark.parametrize("shape", SHAPES, ids=" ".join)
@pytest.mark.parametrize("name", sorted(set(cases()) - {"null_type"}) + ["nested_dictionary"])
def test_our_files(tool, tmp_path, name, shape):
    table = make_nested_dictionary() if name == "nested_dictionary" else cases()[name]
    (tmp_path / "in").write_bytes(stream_bytes(table, max_chunksize=90))
    tool("parquet_write", tmp_path / "in", tmp_path / "f.parquet", *shape)
    for options in [[], ["dictionary"]]:
        compare(read(tool, tmp_path, tmp_path / "f.parquet", *options)[0], table)


# ---- old shapes: the levels of today's files under the footers of old ones ----

def read_edited(tool, folder, table, edit, **options):
    pq.write_table(table, folder / "new.parquet", **options)
    (folder / "old.parquet").write_bytes(with_footer((folder / "new.parquet").read_bytes(), edit))
    return read(tool, folder, folder / "old.parquet")[0]


def old(element, **changes):
    """A schema element with another name, repetition, ... and without a logical type."""
    numbers = {"repetition": 3, "name": 4, "children": 5, "converted": 6}
    return {**{k: v for k, v in element.items() if k != 10}, **{numbers[k]: v for k, v in changes.items()}}


LISTS = [[1, 2], [], [3], [4, 5, 6]]


def list_table(values, type_, nullable):
    return pa.table([pa.array(values, type_)], schema=pa.schema([pa.field("l", type_, nullable)]))


def test_lists_of_two_levels(tool, tmp_path):
    def edit(footer):
        root, outer, _, element = footer[2]
        footer[2] = [root, old(outer), old(element, repetition=2)]
    table = list_table(LISTS + [None], pa.list_(pa.field("element", pa.int32(), False)), True)
    assert read_edited(tool, tmp_path, table, edit).to_pydict() == table.to_pydict()


def test_lists_of_groups_in_two_levels(tool, tmp_path):
    def edit(footer):
        root, outer, _, element, *members = footer[2]
        footer[2] = [root, old(outer), old(element, repetition=2, name=b"array"), *members]
    inner = pa.struct([("a", pa.int64()), ("b", pa.utf8())])
    values = [[{"a": 1, "b": "x"}, {"a": None, "b": None}], None, []]
    table = list_table(values, pa.list_(pa.field("element", inner, False)), True)
    assert read_edited(tool, tmp_path, table, edit).to_pydict() == table.to_pydict()


def test_repeated_fields_without_annotation(tool, tmp_path):
    def edit(footer):
        root, outer, _, element = footer[2]
        footer[2] = [root, old(element, repetition=2, name=outer[4])]
    table = list_table(LISTS, pa.list_(pa.field("element", pa.int32(), False)), False)
    assert read_edited(tool, tmp_path, table, edit).to_pydict() == table.to_pydict()


def test_maps_of_old(tool, tmp_path):
    def edit(footer):
        root, outer, entries, key, value = footer[2]
        footer[2] = [root, old(outer, converted=2), old(entries, name=b"map"), key, value]
    table = list_table([[("a", 1), ("b", None)], None, []], pa.map_(pa.utf8(), pa.int64()), True)
    assert read_edited(tool, tmp_path, table, edit).to_pydict() == table.to_pydict()


def test_converted_types_alone(tool, tmp_path):
    def edit(footer):
        footer[2] = [old(element) for element in footer[2]]
    table = everything(200).drop_columns(["local"])
    compare(read_edited(tool, tmp_path, table, edit), table)


def test_lz4_of_old(tool, tmp_path):
    def edit(footer):
        for group in footer[4]:
            for chunk in group[1]:
                assert chunk[3][4] == 7
                chunk[3][4] = 5
    compare(read_edited(tool, tmp_path, everything(200), edit, compression="lz4"), everything(200))


def test_format_version_one(tool, tmp_path):
    table = everything(200)
    pq.write_table(table, tmp_path / "f.parquet", version="1.0", coerce_timestamps="us")
    got, about = read(tool, tmp_path, tmp_path / "f.parquet")
    compare(got, table)
    assert "PLAIN_DICTIONARY" in {e for leaf in about["leaves"] for e in leaf["encodings"]}


def test_files_that_are_refused(tool, tmp_path):
    table = pa.table({"a": ["x"] * 100, "b": [1] * 100})
    pq.write_table(table, tmp_path / "f.parquet", compression="brotli")
    done = read(tool, tmp_path, tmp_path / "f.parquet", ok=False)
    assert done.returncode == 6 and "column a, row group 0, byte 4: codec BROTLI" in done.stderr
    def fewer(footer):
        footer[3] = footer[4][0][3] = 99

    for edit in (fewer, lambda f: f.update({3: 99}), lambda f: f[4][0].update({3: 99}), lambda f: f.update({3: -1})):
        pq.write_table(table, tmp_path / "f.parquet")
        (tmp_path / "g.parquet").write_bytes(with_footer((tmp_path / "f.parquet").read_bytes(), edit))
        assert read(tool, tmp_path, tmp_path / "g.parquet", ok=False).returncode == 74


def test_columns_that_contradict_each_other(tool, tmp_path):
    """Two columns become the required members of one optional struct: their nulls are the struct's."""
    def edit(footer):
        root, a, b = footer[2]
        group = {3: 1, 4: b"g", 5: 2}
        footer[2] = [{**root, 5: 1}, group, old(a, repetition=0), old(b, repetition=0)]
    same = pa.table({"a": pa.array([1, None, 3]), "b": pa.array([4, None, 6])})
    assert read_edited(tool, tmp_path, same, edit).to_pydict() == {"g": [{"a": 1, "b": 4}, None, {"a": 3, "b": 6}]}
    other = pa.table({"a": pa.array([1, None, 3]), "b": pa.array([4, 5, None])})
    pq.write_table(other, tmp_path / "f.parquet")
    (tmp_path / "g.parquet").write_bytes(with_footer((tmp_path / "f.parquet").read_bytes(), edit))
    done = read(tool, tmp_path, tmp_path / "g.parquet", ok=False)
    assert done.returncode == 74 and "contradict" in done.stderr


# ---- projection ----

def as_schema(folder, schema):
    (folder / "schema").write_bytes(stream_bytes(schema.empty_table()))
    return f"schema={folder / 'schema'}"


def test_columns_by_name(tool, tmp_path):
    table = everything(300)
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=100)
    got, _ = read(tool, tmp_path, tmp_path / "f.parquet", "names=text,id")
    assert sorted(got.column_names) == ["id", "text"]
    compare(got, table, got.column_names)
    scope = next(f.name for f in table.schema if pa.types.is_struct(f.type))
    member = table.schema.field(scope).type.field(0).name
    got, _ = read(tool, tmp_path, tmp_path / "f.parquet", f"names={scope}.{member}")
    want = [None if v is None else {member: v[member]} for v in table[scope].to_pylist()]
    assert got.to_pydict() == {scope: want}
    missing = read(tool, tmp_path, tmp_path / "f.parquet", "names=nobody", ok=False)
    assert missing.returncode == 3 and "no column nobody" in missing.stderr


def test_columns_by_id_missing_ones_and_promotion(tool, tmp_path):
    def field(name, type_, id_, nullable=True):
        return pa.field(name, type_, nullable, {b"PARQUET:field_id": str(id_).encode()})
    inner = pa.struct([field("x", pa.int32(), 4), field("y", pa.utf8(), 5)])
    table = pa.table([pa.array([1, None, 3], pa.int32()), pa.array([0.5, 1.5, None], pa.float32()),
                      pa.array([[{"x": 1, "y": "a"}, None], None, []], pa.list_(field("element", inner, 6)))],
                     schema=pa.schema([field("a", pa.int32(), 1), field("b", pa.float32(), 2),
                                       field("c", pa.list_(field("element", inner, 6)), 3)]))
    pq.write_table(table, tmp_path / "f.parquet")
    new_inner = pa.struct([field("renamed", pa.int64(), 4), field("new", pa.utf8(), 9)])
    wanted = pa.schema([field("later", pa.list_(field("element", new_inner, 6)), 3), field("b", pa.float64(), 2),
                        field("b2", pa.int64(), 1), field("none", pa.timestamp("us"), 7), field("a", pa.binary(3), 8)])
    got, _ = read(tool, tmp_path, tmp_path / "f.parquet", as_schema(tmp_path, wanted), "ids")
    assert got.to_pydict() == {"later": [[{"renamed": 1, "new": None}, None], None, []], "b": [0.5, 1.5, None],
                               "b2": [1, None, 3], "none": [None] * 3, "a": [None] * 3}
    only_new = pa.schema([field("later", pa.list_(field("element", pa.struct([field("new", pa.utf8(), 9)]), 6)), 3)])
    got, _ = read(tool, tmp_path, tmp_path / "f.parquet", as_schema(tmp_path, only_new), "ids")
    assert got.to_pydict() == {"later": [[{"new": None}, None], None, []]}
    twice = pa.struct([field("x", pa.int32(), 4), field("x2", pa.int32(), 4)])
    wanted = pa.schema([field("c", pa.list_(field("element", twice, 6)), 3)])
    failed = read(tool, tmp_path, tmp_path / "f.parquet", as_schema(tmp_path, wanted), "ids", ok=False)
    assert failed.returncode == 2 and "wanted twice" in failed.stderr
    again = pa.schema([field("a", pa.int32(), 1), field("a2", pa.int64(), 1)])
    got, _ = read(tool, tmp_path, tmp_path / "f.parquet", as_schema(tmp_path, again), "ids")
    assert got.to_pydict() == {"a": [1, None, 3], "a2": [1, None, 3]}
    required = pa.schema([field("q", pa.int32(), 11, nullable=False)])
    failed = read(tool, tmp_path, tmp_path / "f.parquet", as_schema(tmp_path, required), "ids", ok=False)
    assert failed.returncode == 2 and "column q" in failed.stderr
    narrowed = pa.schema([field("a", pa.int32(), 1, nullable=False)])
    failed = read(tool, tmp_path, tmp_path / "f.parquet", as_schema(tmp_path, narrowed), "ids", ok=False)
    assert failed.returncode == 2 and "a null where none is wanted" in failed.stderr


# ---- random schemas ----

LEAVES = [pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.timestamp("us"),
          pa.timestamp("us", "UTC"), pa.utf8(), pa.binary(), pa.binary(5)]


def struct_of(members):
    return pa.struct([pa.field(f"f{i}", t, n) for i, (t, n) in enumerate(members)])


def nested(leaves, count):
    """Types of up to so many leaves."""
    return st.recursive(
        st.sampled_from(leaves),
        lambda inner: st.one_of(
            st.builds(lambda t, n: pa.list_(pa.field("element", t, n)), inner, st.booleans()),
            st.builds(struct_of, st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3)),
            st.builds(lambda t, n: pa.map_(pa.utf8(), pa.field("value", t, n)), inner, st.booleans())),
        max_leaves=count)


columns = st.lists(st.tuples(nested(LEAVES, 6), st.booleans()), min_size=1, max_size=4)


def random_value(type_, nullable, rng, few):
    if nullable and rng.random() < 0.2:
        return None
    if pa.types.is_map(type_):
        return [(f"k{i}", random_value(type_.item_type, type_.item_field.nullable, rng, few))
                for i in range(rng.choice([0, 1, 3]))]
    if pa.types.is_list(type_):
        return [random_value(type_.value_type, type_.value_field.nullable, rng, few)
                for _ in range(rng.choice([0, 1, 2, 5]))]
    if pa.types.is_struct(type_):
        return {f.name: random_value(f.type, f.nullable, rng, few) for f in type_}
    number = rng.randrange(5) if few else rng.randint(-2 ** 31, 2 ** 31 - 1)
    if pa.types.is_boolean(type_):
        return number % 2 == 0
    if pa.types.is_string(type_):
        return f"é{number}"
    if pa.types.is_fixed_size_binary(type_):
        return struct.pack(">q", number)[3:]
    if pa.types.is_binary(type_):
        return b"\xff" * (number % 7)
    if pa.types.is_float16(type_):
        return numpy.float16(number % 2048 / 4)
    if pa.types.is_floating(type_):
        return number / 4
    if pa.types.is_decimal(type_):
        return decimal.Decimal(abs(number) % 10 ** type_.precision).scaleb(-type_.scale)
    if pa.types.is_integer(type_):
        unsigned = number % 2 ** type_.bit_width
        return unsigned if pa.types.is_unsigned_integer(type_) else unsigned - 2 ** (type_.bit_width - 1)
    if pa.types.is_time(type_):
        number %= 86400
    return pa.scalar(number, pa.int32()).cast(pa.int32() if type_.bit_width == 32 else pa.int64()).cast(type_).as_py() \
        if not pa.types.is_date(type_) else pa.scalar(number % 20000, pa.int32()).cast(type_).as_py()


def random_table(columns, rows, seed):
    rng = random.Random(seed)
    few = rng.random() < 0.5
    schema = pa.schema([pa.field(f"c{i}", t, n) for i, (t, n) in enumerate(columns)])
    return pa.table([pa.array([random_value(f.type, f.nullable, rng, few) for _ in range(rows)], f.type)
                     for f in schema], schema=schema)


IS_DEEP = bool(os.environ.get("SLUICE_DEEP"))  # then other cases in every run
PROPERTY = settings(derandomize=not IS_DEEP, max_examples=5000 if IS_DEEP else 200, deadline=None, database=None,
                    suppress_health_check=list(HealthCheck))


@PROPERTY
@given(columns=columns, rows=st.integers(0, 70), seed=st.integers(0, 2 ** 32))
def test_random_schemas_of_pyarrow(tool, tmp_path, columns, rows, seed):
    table = random_table(columns, rows, seed)
    rng = random.Random(seed)
    pq.write_table(table, tmp_path / "f.parquet", data_page_version=rng.choice(["1.0", "2.0"]),
                   use_dictionary=rng.random() < 0.5, data_page_size=rng.choice([20, 200, 10000]),
                   row_group_size=rng.choice([7, 50, 1000]), compression=rng.choice(CODECS),
                   write_page_checksum=True, write_batch_size=8)
    got, _ = read(tool, tmp_path, tmp_path / "f.parquet", *rng.choice([[], ["dictionary"]]))
    compare(got, table)


@PROPERTY
@given(columns=columns, rows=st.integers(0, 70), seed=st.integers(0, 2 ** 32))
def test_random_schemas_of_ours(tool, tmp_path, columns, rows, seed):
    table = random_table(columns, rows, seed)
    rng = random.Random(seed)
    (tmp_path / "in").write_bytes(stream_bytes(table, max_chunksize=max(1, rows // 2)))
    tool("parquet_write", tmp_path / "in", tmp_path / "f.parquet", f"page_rows={rng.choice([1, 5, 1000])}",
         f"row_group_rows={rng.choice([7, 50, 1000])}", f"dictionary={rng.choice([0, 100, 10000])}",
         f"page_version={rng.choice([1, 2])}", f"values={rng.randrange(8)}", f"zstd={rng.choice([0, 1])}")
    compare(read(tool, tmp_path, tmp_path / "f.parquet")[0], table)
    compare(pq.read_table(tmp_path / "f.parquet"), table)
