# SPDX-License-Identifier: Apache-2.0
"""The C data and stream interfaces: batches of pyarrow through our structs and back, slot for slot, without a
copy where the layout allows; our streams read by pyarrow, Polars, DuckDB and nanoarrow."""
import ctypes
import gc
import pathlib
import random
import struct
import sys

import duckdb
import nanoarrow
from nanoarrow.c_array_stream import allocate_c_array_stream
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from columnar_data import cases, make_nested_dictionary, stream_bytes
from test_arrow_command import file_bytes, foreign
from test_convert import table as convert_table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from columns import canonical, table_of, types  # noqa: E402


class Struct:
    """Room for one of the structs, none in it yet."""

    def __init__(self, pointers):
        self.words = (ctypes.c_void_p * pointers)()
        self.address = ctypes.addressof(self.words)


def schema_struct():
    return Struct(9)


def array_struct():
    return Struct(10)


def stream_struct():
    return Struct(5)


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


@pytest.fixture(scope="module")
def library(build):
    loaded = ctypes.CDLL(str(next(build.glob("test/**/libarrow_c_library.so"))))

    def call(name, *arguments):
        message = ctypes.create_string_buffer(512)
        given = [ctypes.c_void_p(a.address) if isinstance(a, Struct) else str(a).encode() for a in arguments]
        code = getattr(loaded, name)(*given, message)
        if code:
            raise Refused(code, message.value.decode())

    return call


def release(room, kind):
    """Releases what was exported and not taken, by importing it."""
    if room.words[-2]:
        kind._import_from_c(room.address)


def copy_schema(library, schema):
    given, made = schema_struct(), schema_struct()
    schema._export_to_c(given.address)
    try:
        library("copy_schema", given, made)
    finally:
        release(given, pa.Schema)
    return pa.Schema._import_from_c(made.address)


def copy_batch(library, batch):
    given, rows, made = schema_struct(), array_struct(), array_struct()
    batch.schema._export_to_c(given.address)
    batch._export_to_c(rows.address)
    schema = copy_schema(library, batch.schema)
    try:
        library("copy_batch", given, rows, made)
    finally:
        release(given, pa.Schema)
        if rows.words[8]:
            pa.RecordBatch._import_from_c(rows.address, batch.schema)
    copied = pa.RecordBatch._import_from_c(made.address, schema)
    copied.validate(full=True)
    return copied


def reader_of(stream):
    return pa.RecordBatchReader._import_from_c(stream.address)


def copy_stream(library, reader):
    given, made = stream_struct(), stream_struct()
    reader._export_to_c(given.address)
    library("copy_stream", given, made)
    return reader_of(made)


def become(kind):
    """What a type is after it went through ours."""
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if pa.types.is_large_binary(kind) or kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), become(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return become(kind.value_type)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return pa.list_(pa.field(kind.value_field.name, become(kind.value_type), kind.value_field.nullable))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field(kind.value_field.name, become(kind.value_type), kind.value_field.nullable))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, become(f.type), f.nullable) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(become(kind.key_type), pa.field("value", become(kind.item_type), kind.item_field.nullable),
                       kind.keys_sorted)
    return kind


def values(column):
    """As Python's, with NaN that equals itself, and counts where Python's types are too coarse."""
    kind = column.type
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return column.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).to_pylist()
    return [repr(v) for v in column.to_pylist()]


def check_batch(library, batch):
    copied = copy_batch(library, batch)
    assert copied.num_rows == batch.num_rows and copied.schema.names == batch.schema.names
    for i, name in enumerate(batch.schema.names):
        assert copied.schema.field(i).type == become(batch.schema.field(i).type), name
        assert copied.schema.field(i).nullable == batch.schema.field(i).nullable, name
        assert values(copied.column(i)) == values(batch.column(i)), name
    return copied


def batch_of(table):
    return table.combine_chunks().to_batches()[0] if table.num_rows else \
        pa.RecordBatch.from_arrays([pa.array([], f.type) for f in table.schema], schema=table.schema)


def tables():
    made = {f"cases/{name}": rows for name, rows in cases().items()}
    made |= {"convert": convert_table(), "foreign": foreign(), "nested dictionary": make_nested_dictionary(),
             "months": pa.table({"interval": pa.array([None, (1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval())}),
             "sorted maps": pa.table({"m": pa.array([[("k", 1)], None, []], pa.map_(pa.utf8(), pa.int8(), keys_sorted=True))})}
    made |= {f"columns/{name}": table_of([name]) for name in types()}
    return made


TABLES = tables()


@pytest.mark.parametrize("name", TABLES)
def test_batches_there_and_back(library, name):
    check_batch(library, batch_of(TABLES[name]))


@pytest.mark.parametrize("name", TABLES)
def test_slices(library, name):
    batch = batch_of(TABLES[name])
    for offset, length in ((1, 5), (3, 0), (7, 10**6), (8, 16), (64, 3)):
        check_batch(library, batch.slice(offset, length))


def test_slices_of_slices(library):
    """Offsets at every level: of the rows, of a struct, of its child, of the elements."""
    numbers = pa.array([None if i % 5 == 0 else i for i in range(100)], pa.int16())
    flags = pa.array([None if i % 7 == 0 else i % 3 == 0 for i in range(100)])
    pairs_of = pa.StructArray.from_arrays([numbers[3:90], flags[5:92]], ["n", "f"])[2:]
    lists = pa.ListArray.from_arrays(pa.array(range(0, 80, 2), pa.int32())[4:], pairs_of[1:])[3:]
    pairs = pa.FixedSizeListArray.from_arrays(numbers[10:], 3)[2:]
    maps = pa.MapArray.from_arrays(pa.array(range(0, 60, 2), pa.int32())[3:], pa.array(range(70))[2:], flags[1:71][2:])[1:]
    words = pa.array([f"word {i}" for i in range(50)], pa.large_string())[9:]
    views = pa.array([f"a text of many bytes {i}" for i in range(50)], pa.string_view())[9:]
    picked = pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in range(40)], pa.uint8())[5:], words[30:])
    for column in (pairs_of, lists, pairs, maps, words, views, picked):
        for start in (0, 1, 4):
            check_batch(library, pa.record_batch([column[start:start + 20]], ["c"]))
            check_batch(library, pa.record_batch([column, column], ["c", "d"]).slice(start, 9))


def test_a_map_whose_entries_are_a_slice(library):
    """pyarrow's own maps look past the offset of their entries, its lists of structs do not."""
    entries = pa.StructArray.from_arrays([pa.array(range(70), pa.int32())[2:],
                                          pa.array([i % 7 == 3 for i in range(68)])], ["key", "value"])[3:]
    offsets = pa.array(range(0, 60, 2), pa.int32()).buffers()[1]
    of_structs = pa.Array.from_buffers(pa.list_(entries.type), 25, [None, offsets], children=[entries], offset=1)
    maps = pa.Array.from_buffers(pa.map_(pa.int32(), pa.bool_()), 25, [None, offsets], children=[entries], offset=1)
    copied = copy_batch(library, pa.record_batch([maps], ["m"])).column("m")
    assert copied.to_pylist() == [[(e["key"], e["value"]) for e in row] for row in of_structs.to_pylist()]
    assert copied[0].as_py()[0][0] == 7


def addresses(array):
    return [b.address for b in array.buffers() if b and b.size]


def test_nothing_is_copied_that_is_laid_out_as_ours(library):
    rows = 5000
    columns = {"i": pa.array(range(rows), pa.int64()), "u": pa.array(range(rows), pa.uint16()),
               "s": pa.array([f"text {i}" for i in range(rows)]), "b": pa.array([i % 3 == 0 for i in range(rows)]),
               "l": pa.array([list(range(i % 4)) for i in range(rows)], pa.list_(pa.int32())),
               "n": pa.array([None if i % 3 else f"{i}" for i in range(rows)]),
               "m": pa.array([[("k", i)] for i in range(rows)], pa.map_(pa.string(), pa.int64())),
               "t": pa.array([{"a": i, "b": str(i)} for i in range(rows)]),
               "d": pa.array([f"{i % 7}" for i in range(rows)]).dictionary_encode()}
    batch = pa.record_batch(columns)
    before = pa.total_allocated_bytes()
    copied = check_batch(library, batch)
    for name in columns:
        assert addresses(copied.column(name)) == addresses(batch.column(name)), name
    assert addresses(copied.column("d").dictionary) == addresses(batch.column("d").dictionary)
    address = copied.column("i").buffers()[1].address
    del batch, columns
    gc.collect()
    kept = copied.column("i")
    del copied
    gc.collect()
    assert kept.buffers()[1].address == address and kept.to_pylist() == list(range(rows))
    del kept
    gc.collect()
    assert pa.total_allocated_bytes() < before  # everything was given back


def test_what_is_copied_lets_go(library):
    before = pa.total_allocated_bytes()
    copied = check_batch(library, batch_of(convert_table()).slice(3))
    column = copied.column(0)
    del copied
    gc.collect()
    assert column.to_pylist() is not None
    del column
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_metadata_of_fields(library):
    schema = pa.schema([pa.field("a", pa.int64(), False, {"PARQUET:field_id": "7", "other": "kept", b"\0": b"\xff"}),
                        pa.field("b", pa.list_(pa.field("element", pa.string(), True, {"PARQUET:field_id": "9"}))),
                        pa.field("c", pa.uuid()), pa.field("", pa.int8()),
                        pa.field("d", pa.dictionary(pa.int8(), pa.string()), True, {"of": "a dictionary"}),
                        pa.field("r", pa.run_end_encoded(pa.int32(), pa.string()), True, {"of": "runs"})],
                       {"of": "the schema", "empty": ""})
    copied = copy_schema(library, schema)
    assert copied.field("a").metadata == {b"PARQUET:field_id": b"7", b"other": b"kept", b"\0": b"\xff"}
    assert copied.field("d").metadata == {b"of": b"a dictionary"} and copied.field("r").metadata == {b"of": b"runs"}
    assert copied.field("b").type.value_field.metadata == {b"PARQUET:field_id": b"9"}
    assert copied.field("c").type == pa.uuid() and copied.field("a").nullable is False
    assert copied.names == schema.names and copied.metadata == schema.metadata
    assert copy_schema(library, pa.schema([])).names == []


@pytest.mark.parametrize("index", [getattr(pa, f"{u}int{b}")() for u in ("", "u") for b in (8, 16, 32, 64)])
def test_dictionaries(library, index):
    indices = pa.array([2, None, 0, 1, 2, 0, None, 1], index)
    for words in (pa.array(["a", None, "é" * 20]), pa.array([1, 2, 3], pa.int16()), pa.array(["x", "y", "z"], pa.string_view()),
                  pa.array([[1], None, [2, 3]]), pa.array(["p", "q", "r", "s"], pa.large_string())[1:]):
        column = pa.DictionaryArray.from_arrays(indices, words)
        check_batch(library, pa.record_batch([column], ["d"]))
        check_batch(library, pa.record_batch([column[3:]], ["d"]))
    nested = pa.StructArray.from_arrays([pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c"]))], ["x"])
    check_batch(library, pa.record_batch([nested], ["s"]).slice(1))


@pytest.mark.parametrize("kind, name", [
    (pa.sparse_union([pa.field("a", pa.int8())]), "union"), (pa.dense_union([pa.field("a", pa.int8())]), "union"),
])
def test_types_that_are_not_read_are_named(library, kind, name):
    for schema in (pa.schema([("the_column", kind)]), pa.schema([("s", pa.struct([("the_column", kind)]))])):
        with pytest.raises(Refused, match=f"column the_column: type {name} is not read") as raised:
            copy_schema(library, schema)
        assert raised.value.code == 6


def test_wrong_values_are_refused(library):
    def buffer(kind, numbers):
        return pa.array(numbers, kind).buffers()[1]

    def refused(column, message):
        batch = pa.record_batch([pa.array([0] * len(column)), column], ["n", "the_column"])
        with pytest.raises(Refused, match=f"column the_column: {message}") as raised:
            copy_batch(library, batch)
        assert raised.value.code == 2

    text = pa.py_buffer(b"abc\xff")
    refused(pa.Array.from_buffers(pa.string(), 2, [None, buffer(pa.int32(), [0, 1, 4]), text]), "text that is not UTF-8")
    refused(pa.Array.from_buffers(pa.string(), 3, [None, buffer(pa.int32(), [0, 3, 1, 3]), text]), "offsets that fall")
    refused(pa.Array.from_buffers(pa.large_string(), 3, [None, buffer(pa.int64(), [0, 3, 1, 3]), text]), "offsets that fall")
    refused(pa.Array.from_buffers(pa.list_(pa.int8()), 3, [None, buffer(pa.int32(), [0, 3, 1, 3])],
                                  children=[pa.array([1, 2, 3], pa.int8())]), "offsets that fall")
    views = b"".join(struct.pack("<i4sii", 20, b"abcd", where, 5) for where in (0, 1))
    refused(pa.Array.from_buffers(pa.string_view(), 2, [None, pa.py_buffer(views), pa.py_buffer(b"-----" + b"abcd" * 5)]),
            "a view outside its data")
    for index in (pa.int8(), pa.int32(), pa.uint64()):
        refused(pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], index), pa.array(["a", "b"]), safe=False),
                "dictionary index out of range")


def test_streams(library):
    rows = pa.concat_tables([cases()["everything"].slice(i * 100, 100) for i in range(4)])
    back = copy_stream(library, pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
    read = back.read_all()
    assert read.num_rows == 400 and [len(c) for c in read.column(0).chunks] == [100] * 4
    assert canonical(read["events"]) == canonical(rows["events"])
    assert copy_stream(library, pa.RecordBatchReader.from_batches(rows.schema, [])).read_all().num_rows == 0
    half = copy_stream(library, pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
    first = half.read_next_batch()
    half.close()
    assert first.column(0).to_pylist() == list(range(100))  # outlives its stream


def test_what_a_producer_says_when_it_fails(library):
    schema = pa.schema([("n", pa.int64())])

    def batches(error):
        yield pa.record_batch([pa.array([1])], schema=schema)
        raise error

    for given, taken in ((ValueError("bad luck"), pa.ArrowInvalid), (OSError("no disk"), OSError),
                         (pa.ArrowNotImplementedError("not yet"), NotImplementedError)):
        reader = copy_stream(library, pa.RecordBatchReader.from_batches(schema, batches(given)))
        assert reader.read_next_batch().num_rows == 1
        with pytest.raises(taken, match=str(given)):
            reader.read_next_batch()


class Capsule:
    """Any object with a stream of ours, as the PyCapsule interface has it."""

    def __init__(self, stream):
        self.stream = stream

    def __arrow_c_stream__(self, requested_schema=None):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(self.stream.address, b"arrow_array_stream", None)


def opened(library, build, path, data):
    path.write_bytes(data)
    stream = stream_struct()
    if path.suffix == ".parquet":
        example = ctypes.CDLL(str(build / "examples/libparquet_stream.so"))
        assert example.parquet_stream_open(str(path).encode(), ctypes.c_void_p(stream.address)) == 0
    else:
        library("open_arrow", path, stream)
    return stream


def plain_rows():
    rnd = random.Random(8)
    return pa.table({"n": pa.array([rnd.choice([None, i]) for i in range(3000)], pa.int64()),
                     "x": pa.array([rnd.random() for _ in range(3000)]),
                     "s": pa.array([rnd.choice([None, "é" * (i % 30), "a"]) for i in range(3000)]),
                     "l": pa.array([[i, None][:i % 3] for i in range(3000)], pa.list_(pa.int32())),
                     "t": pa.array([{"a": i, "b": str(i)} for i in range(3000)])})


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows"])
def test_files_as_streams(library, build, tmp_path, ending):
    rows = plain_rows()
    if ending == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, row_group_size=700)
        data = sink.getvalue().to_pybytes()
    else:
        data = {"arrow": file_bytes, "arrows": stream_bytes}[ending](rows, "zstd", 700)

    def stream():
        return opened(library, build, tmp_path / f"rows.{ending}", data)

    theirs = reader_of(stream())
    assert repr(theirs.read_all().to_pydict()) == repr(rows.to_pydict())
    assert pa.table(Capsule(stream())).column("n").to_pylist() == rows["n"].to_pylist()
    frame = polars.DataFrame(Capsule(stream()))
    assert frame.to_dict(as_series=False) == rows.to_pydict()
    reader = reader_of(stream())
    with duckdb.connect() as con:
        assert con.from_arrow(reader).aggregate("count(*), count(n), sum(n), count(s), sum(len(l))").fetchall() == [
            (3000, 3000 - rows["n"].null_count, sum(v or 0 for v in rows["n"].to_pylist()),
             3000 - rows["s"].null_count, sum(len(v) for v in rows["l"].to_pylist()))]
        capsule = Capsule(stream())  # noqa: F841: by its name in the query
        assert con.sql("select max(n), max(t.a) from capsule").fetchall() == [
            (max(v or 0 for v in rows["n"].to_pylist()), 2999)]


def stream_of(thing):
    """The struct within what an object answers to __arrow_c_stream__, moved to where it is ours to give."""
    capsule = thing.__arrow_c_stream__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    moved, old = stream_struct(), (ctypes.c_void_p * 5).from_address(pointer_of(capsule, b"arrow_array_stream"))
    moved.words[:] = old[:]
    old[3] = None
    return moved


def test_frames_of_polars_come_in(library):
    """Its own layouts: views, 64-bit lists, lists of a fixed size, categories, decimals."""
    frame = polars.DataFrame({
        "s": ["a", None, "a text that is no longer inline"], "l": [[1, None], None, []], "n": [1, 2, None],
        "t": [{"a": 1, "b": "x" * 20}, {"a": None, "b": None}, {"a": 3, "b": ""}], "b": [True, None, False],
        "e": [b"", None, b"\xff" * 30]}).with_columns(
            polars.col("s").cast(polars.Categorical).alias("c"), polars.col("n").cast(polars.Decimal(20, 3)).alias("d"),
            polars.col("n").cast(polars.Datetime("ns", "UTC")).alias("w"), polars.col("n").cast(polars.Time).alias("h"),
            polars.Series("f", [[1, 2], None, [3, None]], dtype=polars.Array(polars.Int16, 2)))
    for rows in (frame, frame.slice(1), frame.slice(0, 0), polars.concat([frame, frame.reverse()], rechunk=False)):
        made = stream_struct()
        library("copy_stream", stream_of(rows), made)
        read = reader_of(made).read_all()
        read.validate(full=True)
        theirs = rows.to_arrow()
        for name in rows.columns:
            assert values(read[name]) == values(theirs[name]), name


# What nanoarrow has Python values for; of maps it has none, and views of text end its process.
NANOARROW = {
    "bool": pa.array([True, None, False]), "i8": pa.array([-128, None, 5], pa.int8()), "u64": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "half": pa.array([1.5, None, -2.0], pa.float16()), "float": pa.array([0.5, None, float("inf")], pa.float32()),
    "double": pa.array([5e-324, None, -1.0]), "text": pa.array(["a", None, "é" * 30]), "large": pa.array(["", "x", None], pa.large_string()),
    "bytes": pa.array([b"\xff", None, b""]),
    "fixed": pa.array([b"abc", None, b"xyz"], pa.binary(3)), "date": pa.array([0, None, -5], pa.date32()),
    "time": pa.array([1, None, 86399], pa.time32("s")), "stamp": pa.array([1, None, -1], pa.timestamp("us", "UTC")),
    "nanos": pa.array([10**18 + 1000, None, 0], pa.timestamp("ns")), "duration": pa.array([1, None, -7], pa.duration("ms")),
    "decimal": pa.array([1, None, -5], pa.decimal128(20, 2)),
    "list": pa.array([[1, None], None, []]), "large list": pa.array([["p"], None, []], pa.large_list(pa.string())),
    "pairs": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int16(), 2)), "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}]),
    "dictionary": pa.array(["x", None, "y"]).dictionary_encode(), "null": pa.nulls(3),
}


def test_nanoarrow_there_and_back(library):
    """Its streams through us into its own reader, which checks buffers against lengths, and its builders' into ours."""
    rows = pa.table(NANOARROW)
    for given in (rows, rows.slice(1), rows.slice(3), pa.concat_tables([rows, rows.slice(0, 2)])):
        made = stream_struct()
        library("copy_stream", stream_of(nanoarrow.ArrayStream(given)), made)
        stream = allocate_c_array_stream()
        (ctypes.c_void_p * 5).from_address(stream._addr())[:] = made.words[:]
        theirs = nanoarrow.ArrayStream(stream).read_all()
        assert len(theirs) == given.num_rows
        places = pa.array(range(given.num_rows), pa.int64())  # its own reader of halves looks past offsets
        for number, name in enumerate(given.column_names):
            straight = nanoarrow.Array(given[name].take(places))
            assert theirs.child(number).to_pylist() == straight.to_pylist(), name
    built = nanoarrow.Array([1, None, 3], nanoarrow.int64())
    column = nanoarrow.c_array(built)
    batch = nanoarrow.c_array_from_buffers(nanoarrow.struct({"n": nanoarrow.int64()}), 3, [None], children=[column])
    back = copy_batch(library, pa.RecordBatch._import_from_c_capsule(*batch.__arrow_c_array__()))
    assert back.to_pydict() == {"n": [1, None, 3]}


def test_results_of_duckdb_come_in(library):
    with duckdb.connect() as con:
        rows = con.sql("select i, 'text ' || i as s, [i, null] as l, {'a': i} as t, map {i: 'x'} as m, i / 4 as x, "
                       "(i % 3)::varchar::enum('0', '1', '2') as e, date '2000-01-01' + i::int as d, "
                       "i::decimal(30, 2) as n, if(i % 2 = 0, null, interval (i) day) as v from range(5000) r(i)")
        made = stream_struct()
        library("copy_stream", stream_of(rows), made)
        read = reader_of(made).read_all()
        read.validate(full=True)
        theirs = rows.to_arrow_table() if hasattr(rows, "to_arrow_table") else rows.arrow()
    for name in theirs.schema.names:
        assert values(read[name]) == values(theirs[name]), name


def test_dictionaries_of_a_file_outlive_it(library, build, tmp_path):
    """Each batch brings another dictionary, and is looked at when the file is closed."""
    schema = pa.schema([("d", pa.dictionary(pa.int8(), pa.string())), ("l", pa.list_(pa.dictionary(pa.int32(), pa.string())))])

    def words(i, mark):
        return pa.array([f"{i}{mark}{j % 3}" for j in range(9)]).dictionary_encode()

    batches = [pa.record_batch([words(i, "-").cast(schema.field(0).type),
                                pa.ListArray.from_arrays(list(range(10)), words(i, "/"))], schema=schema) for i in range(4)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    stream = opened(library, build, tmp_path / "in.arrows", sink.getvalue().to_pybytes())
    reader = reader_of(stream)
    read = list(reader)
    del reader
    gc.collect()
    for ours, theirs in zip(read, batches, strict=True):
        ours.validate(full=True)
        assert ours.to_pylist() == theirs.to_pylist()


def test_damage_in_a_file_is_an_error_of_the_stream(library, build, tmp_path):
    data = stream_bytes(plain_rows(), None, 700)
    stream = opened(library, build, tmp_path / "in.arrows", data[:len(data) // 2])
    reader = reader_of(stream)
    with pytest.raises(pa.ArrowInvalid, match="cut off"):
        reader.read_all()
