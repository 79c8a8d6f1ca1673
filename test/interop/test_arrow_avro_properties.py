# SPDX-License-Identifier: Apache-2.0
"""Random nested schemas and data: Arrow IPC between pyarrow, Polars and us, Avro between fastavro and us, both
ways. A few hundred cases in every run, 5,000 of each in the deep one."""
import datetime
import decimal
import itertools
import os
import pathlib
import random
import string
import struct
import subprocess
import sys

import fastavro
import polars
import pyarrow as pa
import pyarrow.ipc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

IS_DEEP = bool(os.environ.get("SLUICE_DEEP"))  # then other cases in every run
PROPERTY = settings(derandomize=not IS_DEEP, max_examples=5000 if IS_DEEP else 100, deadline=None, database=None,
                    suppress_health_check=list(HealthCheck))


def convert(source, target, *words):
    done = subprocess.run([sluice.BINARY, "convert", "--force", *words, source, target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- Arrow ----

PLAIN = [pa.null(), pa.bool_(), *(getattr(pa, f"{u}int{b}")() for u in ("", "u") for b in (8, 16, 32, 64)), pa.float32(),
         pa.float64(), pa.string(), pa.binary(), pa.large_string(), pa.large_binary(), pa.date32(), pa.decimal128(20, 3),
         *(pa.timestamp(u, z) for u in ("ms", "us", "ns") for z in (None, "UTC")), pa.duration("us")]
ODD = [pa.string_view(), pa.binary_view(), pa.binary(3), pa.date64(), pa.time32("s"), pa.time64("us"), pa.time64("ns"),
       pa.decimal256(60, 4), pa.duration("s"), pa.month_day_nano_interval(), pa.timestamp("s", "Europe/Berlin"),
       pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint16(), pa.large_string(), True),
       pa.dictionary(pa.int32(), pa.int64())]


def nestings(leaves, lists):
    def nest(inner):
        fields = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3)
        return st.one_of(st.builds(lambda make, kind: make(kind), st.sampled_from(lists), inner),
                         fields.map(lambda fs: pa.struct([pa.field(f"f{i}", k, n or pa.types.is_null(k)) for i, (k, n) in enumerate(fs)])),
                         *([inner.map(lambda kind: pa.map_(pa.string(), kind))] if pa.list_ in lists else []))
    return st.recursive(st.sampled_from(leaves), nest, max_leaves=5)


def value_of(kind, nullable, rnd):
    if pa.types.is_null(kind) or nullable and rnd.random() < .2:
        return None
    number = rnd.choice([0, 1, rnd.randrange(100), rnd.randrange(2**31)])
    if pa.types.is_dictionary(kind):
        return value_of(kind.value_type, False, random.Random(rnd.randrange(9)))
    if pa.types.is_struct(kind):
        return {f.name: value_of(f.type, f.nullable, rnd) for f in kind}
    if pa.types.is_map(kind):
        return [(f"key {i}", value_of(kind.item_type, True, rnd)) for i in range(rnd.randrange(3))]
    if pa.types.is_fixed_size_list(kind):
        return [value_of(kind.value_type, True, rnd) for _ in range(kind.list_size)]
    if hasattr(kind, "value_type"):
        return [value_of(kind.value_type, True, rnd) for _ in range(rnd.randrange(4))]
    if pa.types.is_boolean(kind):
        return number % 2 == 0
    if pa.types.is_integer(kind):
        low, high = (-2**(kind.bit_width - 1), 2**(kind.bit_width - 1)) if str(kind).startswith("int") else (0, 2**kind.bit_width)
        return rnd.choice([low, high - 1, 0, rnd.randrange(low, high)])
    if pa.types.is_floating(kind):
        return rnd.choice([0.5, -1.25, float("inf"), float(number % 1000)])
    if pa.types.is_decimal(kind):
        return decimal.Decimal(rnd.choice([number, -number])).scaleb(-kind.scale)
    if pa.types.is_fixed_size_binary(kind):
        return rnd.randbytes(kind.byte_width)
    if "binary" in str(kind):
        return rnd.randbytes(rnd.randrange(20))
    if "string" in str(kind):
        return "".join(rnd.choices(string.ascii_letters + "é😀", k=rnd.randrange(20)))
    if kind == pa.month_day_nano_interval():
        return pa.MonthDayNano([number % 50, -3, number])
    day = datetime.date(1901, 1, 1) + datetime.timedelta(number % 80000)
    if pa.types.is_date(kind):
        return day
    if pa.types.is_time(kind):
        return datetime.time(number % 24, number % 60, 7)
    if pa.types.is_duration(kind):
        return datetime.timedelta(seconds=rnd.choice([number, -number]))
    zone = datetime.timezone.utc if kind.tz else None
    return datetime.datetime.combine(day, datetime.time(1, 2, 3), zone)


def table_of(kinds, rows, seed):
    rnd = random.Random(seed)
    fields = [pa.field(f"c{i}", kind, nullable or pa.types.is_null(kind)) for i, (kind, nullable) in enumerate(kinds)]
    return pa.table([pa.array([value_of(f.type, f.nullable, rnd) for _ in range(rows)], f.type) for f in fields],
                    schema=pa.schema(fields))


def write(path, table, rnd):
    options = pa.ipc.IpcWriteOptions(compression=rnd.choice([None, "lz4", "zstd"]), unify_dictionaries=path.suffix == ".arrow")
    new = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
    with new(path, table.schema, options=options) as out:
        out.write_table(table, max_chunksize=rnd.choice([3, 20, 100]))


def read(path):
    with pa.OSFile(str(path)) as file:
        back = (pa.ipc.open_file if path.suffix == ".arrow" else pa.ipc.open_stream)(file.read()).read_all()
    back.validate(full=True)
    return back


def columns_of(kinds):
    return st.lists(st.tuples(kinds, st.booleans()), max_size=4)


@PROPERTY
@given(kinds=columns_of(nestings(PLAIN + ODD, [pa.list_, pa.large_list, lambda kind: pa.list_(kind, 2)])),
       rows=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_arrow_of_pyarrow_there_and_back(tmp_path, kinds, rows, seed):
    rnd, table = random.Random(seed), table_of(kinds, rows, seed)
    source, target = tmp_path / rnd.choice(["in.arrow", "in.arrows"]), tmp_path / rnd.choice(["out.arrow", "out.arrows"])
    write(source, table, rnd)
    convert(source, target, "--compression", rnd.choice(["none", "lz4", "zstd"]))
    back = read(target)
    assert back.to_pylist() == table.to_pylist()
    if (source.suffix, target.suffix) != (".arrows", ".arrow"):  # there dictionaries become int32's
        assert back.schema == table.schema


@PROPERTY
@given(kinds=columns_of(nestings(PLAIN, [pa.list_, pa.large_list])), rows=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_arrow_of_ours_for_polars(tmp_path, kinds, rows, seed):
    rnd = random.Random(seed)
    table = table_of([(k, True) for k, _ in kinds if "map" not in str(k)], rows, seed)
    write(tmp_path / "in.arrows", table, rnd)
    convert(tmp_path / "in.arrows", tmp_path / "out.arrow", "--compression", rnd.choice(["none", "lz4", "zstd"]))
    if table.num_columns:
        assert polars.read_ipc(tmp_path / "out.arrow").equals(polars.from_arrow(table), null_equal=True)


@PROPERTY
@given(kinds=columns_of(nestings(PLAIN, [pa.list_, pa.large_list])), rows=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_arrow_of_polars_for_us(tmp_path, kinds, rows, seed):
    rnd = random.Random(seed)
    table = table_of([(k, True) for k, _ in kinds if "map" not in str(k)], rows, seed)
    frame = polars.from_arrow(table) if table.num_columns else polars.DataFrame({"n": [1]})
    source = tmp_path / rnd.choice(["in.arrow", "in.arrows"])
    (frame.write_ipc if source.suffix == ".arrow" else frame.write_ipc_stream)(
        source, compression=rnd.choice(["uncompressed", "lz4", "zstd"]))
    convert(source, tmp_path / "out.arrow")
    back = read(tmp_path / "out.arrow")
    assert back.to_pylist() == frame.to_arrow().to_pylist()


# ---- Avro: the codecs that fastavro has without other packages ----

AVRO = [pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
        pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.decimal128(20, 3), pa.int8(), pa.uint32(), pa.large_string(), pa.null()]


def as_fastavro(kind, value):
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {k: as_fastavro(kind.item_type, v) for k, v in value}
    if pa.types.is_struct(kind):
        return {f.name: as_fastavro(f.type, value[f.name]) for f in kind}
    if hasattr(kind, "value_type"):
        return [as_fastavro(kind.value_type, v) for v in value]
    return value


@PROPERTY
@given(kinds=columns_of(nestings(AVRO, [pa.list_, pa.large_list])), rows=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_avro_of_ours(tmp_path, kinds, rows, seed):
    rnd, table = random.Random(seed), table_of(kinds, rows, seed)
    write(tmp_path / "in.arrows", table, rnd)
    convert(tmp_path / "in.arrows", tmp_path / "a.avro", "--compression", rnd.choice(["none", "deflate"]))
    with open(tmp_path / "a.avro", "rb") as file:
        got = list(fastavro.reader(file))
    assert got == [{f.name: as_fastavro(f.type, row[f.name]) for f in table.schema} for row in table.to_pylist()]
    convert(tmp_path / "a.avro", tmp_path / "out.arrow")
    assert read(tmp_path / "out.arrow").to_pylist() == table.to_pylist()


SIMPLE = ["boolean", "int", "long", "float", "double", "bytes", "string", "null"]
BITS = {"int": 31, "long": 63}


@st.composite
def avro_types(draw, depth=3):
    kind = draw(st.sampled_from(SIMPLE + ["fixed", "enum"] + ["array", "map", "record", "optional", "union"] * (depth > 0)))
    if kind == "fixed":
        return {"type": "fixed", "name": "", "size": draw(st.integers(1, 20))}
    if kind == "enum":
        return {"type": "enum", "name": "", "symbols": ["A", "B", "C"]}
    if kind in ("array", "map"):
        return {"type": kind, "items" if kind == "array" else "values": draw(avro_types(depth - 1))}
    if kind == "record":
        return {"type": "record", "name": "", "fields": [
            {"name": f"f{i}", "type": draw(avro_types(depth - 1))} for i in range(draw(st.integers(1, 3)))]}
    if kind == "optional":
        inner = draw(avro_types(depth - 1))
        return inner if inner == "null" or isinstance(inner, list) else draw(st.permutations(["null", inner]))
    if kind == "union":
        return draw(st.lists(st.sampled_from(SIMPLE), min_size=2, max_size=5, unique=True))
    return kind


def named(schema, numbers):
    """Each named type with a name of its own."""
    if isinstance(schema, list):
        return [named(branch, numbers) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    made = {**schema, **({"name": f"n{next(numbers)}"} if "name" in schema else {})}
    for key in ("items", "values"):
        if key in schema:
            made[key] = named(schema[key], numbers)
    if "fields" in schema:
        made["fields"] = [{**field, "type": named(field["type"], numbers)} for field in schema["fields"]]
    return made


def avro_value(schema, rnd):
    """A value for fastavro's writer, and what it becomes."""
    if isinstance(schema, list):
        number = rnd.randrange(len(schema))
        value, come = avro_value(schema[number], rnd)
        some = [branch for branch in schema if branch != "null"]
        if len(some) < 2:
            return value, come
        if schema[number] == "null":
            return None, None
        return (schema[number], value), {f"member{i}": come if branch == schema[number] else None for i, branch in enumerate(some)}
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "array":
        pairs = [avro_value(schema["items"], rnd) for _ in range(rnd.randrange(3))]
        return [p[0] for p in pairs], [p[1] for p in pairs]
    if kind == "map":
        pairs = {f"k{i}": avro_value(schema["values"], rnd) for i in range(rnd.randrange(3))}
        return {k: p[0] for k, p in pairs.items()}, [(k, p[1]) for k, p in pairs.items()]
    if kind == "record":
        pairs = {f["name"]: avro_value(f["type"], rnd) for f in schema["fields"]}
        return {k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}
    value = {"null": lambda: None, "boolean": lambda: rnd.random() < .5, "bytes": lambda: rnd.randbytes(rnd.randrange(9)),
             "string": lambda: "é" * rnd.randrange(5), "double": lambda: rnd.choice([.1, -5e300, float("inf")]),
             "float": lambda: struct.unpack("<f", struct.pack("<f", rnd.random()))[0],
             "fixed": lambda: rnd.randbytes(schema["size"]), "enum": lambda: rnd.choice("ABC"),
             "int": lambda: rnd.choice([0, -2**31, 2**31 - 1, rnd.randrange(100)]),
             "long": lambda: rnd.choice([0, -2**63, 2**63 - 1, rnd.randrange(2**40)])}[kind]()
    return value, value


@PROPERTY
@given(kinds=st.lists(avro_types(), min_size=1, max_size=4), rows=st.integers(0, 30), seed=st.integers(0, 2**32))
def test_avro_of_fastavro(tmp_path, kinds, rows, seed):
    rnd, numbers = random.Random(seed), itertools.count()
    schema = {"type": "record", "name": "top", "fields": [{"name": f"c{i}", "type": named(kind, numbers)} for i, kind in enumerate(kinds)]}
    pairs = [avro_value(schema, rnd) for _ in range(rows)]
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, schema, [p[0] for p in pairs], codec=rnd.choice(["null", "deflate"]),
                        sync_interval=rnd.choice([50, 16000]))
    convert(tmp_path / "a.avro", tmp_path / "out.arrow")
    assert read(tmp_path / "out.arrow").to_pylist() == [p[1] for p in pairs]
