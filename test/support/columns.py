# SPDX-License-Identifier: Apache-2.0
"""Columns of every type, nesting and kind of null for the tests of file formats, and one form for what any
reader makes of them."""
import decimal
import random
import struct
import uuid

import numpy
import pyarrow as pa

ROWS = 60
WIDE = decimal.Context(prec=90)
NESTINGS = ("flat", "list", "struct", "map", "list of struct", "list of list")
NULLS = ("none", "some", "all")
DAY_NS = 86400 * 10**9


def integers(bits, is_signed):
    low, high = (-2**(bits - 1), 2**(bits - 1)) if is_signed else (0, 2**bits)
    return lambda rnd: rnd.choice([low, high - 1, 0, 1, rnd.randrange(low, high), 7])


def decimals(precision, scale):
    return lambda rnd: decimal.Decimal(rnd.choice([0, 10**precision - 1, 1 - 10**precision, rnd.randrange(10**precision)])
                                       ).scaleb(-scale, WIDE)


def counts(low, high, step=1):
    return lambda rnd: rnd.choice([low, high - 1, rnd.randrange(low, high)]) // step * step


def types():
    """Name -> (Arrow type, maker of a value, Arrow type that the values are made in)."""
    made = {"bool": (pa.bool_(), lambda rnd: rnd.random() < .5)}
    for bits in (8, 16, 32, 64):
        made[f"int{bits}"] = (getattr(pa, f"int{bits}")(), integers(bits, True))
        made[f"uint{bits}"] = (getattr(pa, f"uint{bits}")(), integers(bits, False))
    made["float16"] = (pa.float16(), lambda rnd: numpy.float16(rnd.choice([0.0, -1.5, 65504, float("inf")])))
    floats = (0.0, -0.0, 1.5, -2.25, float("inf"), float("nan"))
    made["float32"] = (pa.float32(), lambda rnd: rnd.choice([*floats, 3.25]))
    made["float64"] = (pa.float64(), lambda rnd: rnd.choice([*floats, 5e-324, rnd.random()]))
    for precision, scale in ((9, 2), (18, 4), (38, 10)):
        made[f"decimal({precision}, {scale})"] = (pa.decimal128(precision, scale), decimals(precision, scale))
    made["decimal(76, 5)"] = (pa.decimal256(76, 5), decimals(76, 5))
    made["utf8"] = (pa.string(), lambda rnd: rnd.choice(["", "naïve", "😀" * 20, "key" * rnd.randrange(9), "z" * 99]))
    made["binary"] = (pa.binary(), lambda rnd: rnd.choice([b"", b"\xff" * 70, rnd.randbytes(rnd.randrange(9))]))
    made["fixed(5)"] = (pa.binary(5), lambda rnd: rnd.randbytes(5))
    made["uuid"] = (pa.uuid(), lambda rnd: uuid.UUID(bytes=rnd.randbytes(16)).bytes)
    made["date32"] = (pa.date32(), counts(-100000, 100000))
    made["time32[ms]"] = (pa.time32("ms"), counts(0, 86400 * 1000))
    made["time64[us]"] = (pa.time64("us"), counts(0, DAY_NS // 1000))
    made["time64[ns]"] = (pa.time64("ns"), counts(0, DAY_NS))
    for unit, scale in (("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        for zone in (None, "UTC"):
            made[f"timestamp[{unit}{', UTC' if zone else ''}]"] = (
                pa.timestamp(unit, zone), counts(-3 * 10**9 * scale, 4 * 10**9 * scale))
    made["null"] = (pa.null(), lambda rnd: None)
    return made


def leaf_array(kind, values):
    if pa.types.is_temporal(kind):
        wide = kind.bit_width == 64
        return pa.array(values, pa.int64() if wide else pa.int32()).cast(kind)
    if kind == pa.uuid():
        return pa.ExtensionArray.from_storage(kind, pa.array(values, pa.binary(16)))
    return pa.array(values, kind)


def nest(nesting, kind, leaf, offsets, validity):
    """Puts a leaf's values below a list, map or struct; `validity` is of the rows."""
    mask = pa.array([not v for v in validity])
    if nesting == "struct":
        return pa.StructArray.from_arrays([leaf, pa.array([f"n{i}" for i in range(len(leaf))])], ["x", "n"], mask=mask)
    if nesting == "map":
        keys = pa.array([f"k{i}" for i in range(len(leaf))])
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, leaf, mask=mask)
    if nesting == "list of struct":
        leaf = pa.StructArray.from_arrays([leaf], ["x"])
    if nesting == "list of list":
        leaf = pa.ListArray.from_arrays(pa.array(range(len(leaf) + 1), pa.int32()), leaf)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), leaf, mask=mask)


def column(kind, make, nesting, nulls, seed):
    rnd = random.Random(seed)
    share = {"none": 0, "some": .3, "all": 1}[nulls]
    lengths = [1] * ROWS if nesting in ("flat", "struct") else [rnd.randrange(4) for _ in range(ROWS)]
    validity = [rnd.random() >= share / 2 for _ in range(ROWS)]
    if nesting == "flat" or nulls == "none":
        validity = [True] * ROWS
    offsets = [0]
    for length, is_valid in zip(lengths, validity):
        offsets.append(offsets[-1] + (length if is_valid or nesting == "struct" else 0))
    leaf = leaf_array(kind, [None if rnd.random() < share else make(rnd) for _ in range(offsets[-1])])
    return leaf if nesting == "flat" else nest(nesting, kind, leaf, offsets, validity)


def table_of(names, nestings=NESTINGS, seed=1):
    """Columns "type/nesting/nulls" of those types."""
    columns = {}
    for name in names:
        kind, make = types()[name]
        for nesting in nestings:
            for nulls in ("all",) if name == "null" else NULLS:
                columns[f"{name}/{nesting}/{nulls}"] = column(kind, make, nesting, nulls, f"{seed}{name}{nesting}{nulls}")
    return pa.table(columns)


# ---- one form for all readers ----

SCALES = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def temporal(array):
    kind = array.type
    if pa.types.is_date(kind):
        return [None if v is None else ("date", v) for v in array.cast(pa.date32()).view(pa.int32()).to_pylist()]
    ints = array.view(pa.int64() if kind.bit_width == 64 else pa.int32()).to_pylist()
    word = "time" if pa.types.is_time(kind) else "instant" if kind.tz else "local"
    return [None if v is None else (word, v * SCALES[kind.unit]) for v in ints]


def canonical(array):
    """The values as Python objects that compare equal where they mean the same."""
    if isinstance(array, pa.ChunkedArray):
        return [v for chunk in array.chunks for v in canonical(chunk)]
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return canonical(array.storage)
    if pa.types.is_dictionary(kind):
        return canonical(array.dictionary_decode())
    if pa.types.is_map(kind):
        keys, items = canonical(array.keys), canonical(array.items)
        return [None if not array[i].is_valid else
                [{"key": keys[j], "value": items[j]}
                 for j in range(array.offsets[i].as_py(), array.offsets[i + 1].as_py())] for i in range(len(array))]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = canonical(array.values)
        offsets = array.offsets.to_pylist()
        valid = array.is_valid().to_pylist()
        return [values[offsets[i]:offsets[i + 1]] if valid[i] else None for i in range(len(array))]
    if pa.types.is_struct(kind):
        valid = array.is_valid().to_pylist()
        children = [canonical(array.field(i)) for i in range(kind.num_fields)]
        return [dict(zip(kind.names, row)) if valid[i] else None
                for i, row in enumerate(zip(*children))]
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        return temporal(array)
    if pa.types.is_floating(kind):
        return [None if v is None else struct.pack("<d", float(v)) for v in array.to_pylist()]
    return array.to_pylist()


