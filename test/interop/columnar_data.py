# SPDX-License-Identifier: Apache-2.0
"""Tables that the columnar tests share: every type, and what is awkward about each."""
import datetime
import functools
import math
import random

import pyarrow as pa


def stream_bytes(table, compression=None, max_chunksize=None):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=max_chunksize)
    return sink.getvalue().to_pybytes()


def field(name, type_, field_id, nullable=True):
    return pa.field(name, type_, nullable, metadata={"PARQUET:field_id": str(field_id)})


def map_type(field_id, value_nullable=True):
    return pa.map_(field("key", pa.utf8(), field_id, False),
                   field("value", pa.utf8(), field_id + 1, value_nullable))


WORDS = ["", "a", "GET /api/v1/items", "naïve", "日本語", "x" * 70, "y" * 63 + "é", "😀" * 20,
         "\x00\x01", "z" * 5000]


def everything(rows=1000, seed=1):
    """All types, with nulls in every place that may have one."""
    rng = random.Random(seed)

    def some(make, nulls=0.2):
        return [None if rng.random() < nulls else make() for _ in range(rows)]

    def text():
        return rng.choice(WORDS)

    def attributes():
        return [(f"key{i}", rng.choice([None, text()])) for i in range(rng.randrange(4))]

    def number():
        return rng.choice([0.0, -0.0, 1.5, -2.5, 1e300, math.inf, -math.inf, 5e-324])

    utc = datetime.timezone.utc
    epoch = datetime.datetime(1970, 1, 1)
    event = pa.struct([
        field("time", pa.timestamp("us", tz="UTC"), 31),
        field("name", pa.utf8(), 32),
        field("attributes", map_type(33), 35),
    ])

    def one_event():
        return {"time": rng.choice([None, epoch.replace(tzinfo=utc)]), "name": rng.choice([None, text()]),
                "attributes": rng.choice([None, [], attributes()])}

    columns = [
        (field("id", pa.int64(), 1, False), list(range(rows))),
        (field("flag", pa.bool_(), 2), some(lambda: rng.random() < 0.5)),
        (field("small", pa.int32(), 3), some(lambda: rng.randrange(-2**31, 2**31))),
        (field("big", pa.int64(), 4), some(lambda: rng.choice([-2**63, 2**63 - 1, 0, 7, -1]))),
        (field("single", pa.float32(), 5), some(lambda: rng.choice([0.0, -0.0, 1.5, -2.5]))),
        (field("double", pa.float64(), 6), some(number)),
        (field("day", pa.date32(), 7),
         some(lambda: datetime.date(1970, 1, 1) + datetime.timedelta(rng.randrange(-9999, 9999)))),
        (field("instant", pa.timestamp("us", tz="UTC"), 8, False),
         [datetime.datetime.fromtimestamp(i / 3, utc) for i in range(rows)]),
        (field("local", pa.timestamp("us"), 9),
         some(lambda: epoch + datetime.timedelta(microseconds=rng.randrange(-10**15, 10**15)))),
        (field("text", pa.utf8(), 10), some(text)),
        (field("bytes", pa.binary(), 11), some(lambda: text().encode() + b"\xff")),
        (field("fixed", pa.binary(4), 12), some(lambda: rng.randbytes(4))),
        (field("constant", pa.utf8(), 13, False), ["always"] * rows),
        (field("nothing", pa.utf8(), 14), [None] * rows),
        (field("longs", pa.list_(field("element", pa.int64(), 15)), 16),
         some(lambda: [rng.choice([None, 1, 2**40]) for _ in range(rng.randrange(4))])),
        (field("doubles", pa.list_(field("element", pa.float64(), 17, False)), 18, False),
         [[number() for _ in range(rng.randrange(4))] for _ in range(rows)]),
        (field("attributes", map_type(19), 21), some(attributes)),
        (field("pairs", map_type(22, False), 24, False),
         [[("a", "1"), ("b", str(i))][:i % 3] for i in range(rows)]),
        (field("scope", pa.struct([field("name", pa.utf8(), 25), field("count", pa.int32(), 26),
                                   field("tags", map_type(27), 29)]), 30),
         some(lambda: {"name": rng.choice([None, text()]), "count": rng.choice([None, 3]),
                       "tags": rng.choice([None, attributes()])})),
        (field("events", pa.list_(field("element", event, 36)), 37),
         some(lambda: [rng.choice([None, one_event()]) for _ in range(rng.randrange(3))])),
    ]
    schema = pa.schema([f for f, _ in columns])
    return pa.table([pa.array(values, f.type) for f, values in columns], schema=schema)


def make_nested_dictionary(rows=500):
    rng = random.Random(2)
    keys = ["service.name", "host", "pod", ""]
    count = 20
    maps = [[(rng.choice(range(4)), rng.choice(WORDS + [None]))][:i % 2] +
            [(j, f"v{i}") for j in range(i % 4)] for i in range(count)]
    offsets = [0]
    flat = []
    for entry in maps:
        flat += entry
        offsets.append(len(flat))
    map_array = pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.DictionaryArray.from_arrays(pa.array([k for k, _ in flat], pa.int32()), pa.array(keys)),
        pa.array([v for _, v in flat], pa.utf8()))
    indices = pa.array([None if rng.random() < 0.1 else rng.randrange(count) for _ in range(rows)],
                       pa.int32())
    resource = pa.DictionaryArray.from_arrays(indices, map_array)
    service = pa.DictionaryArray.from_arrays(indices, pa.array([f"service{i % 7}" for i in range(count)]))
    return pa.table({"resource": resource, "service": service,
                     "n": pa.array(range(rows), pa.int64())})


def sliced():
    return everything(300).slice(77, 130)


@functools.lru_cache
def cases():
    every = everything()
    return {
        "everything": every,
        "one_row": every.slice(3, 1),
        "no_rows": every.slice(0, 0),
        "no_batches": every.schema.empty_table(),
        "many_batches": pa.concat_tables([everything(100, seed) for seed in range(5)]),
        "null_type": pa.table({"n": pa.nulls(10), "i": pa.array(range(10), pa.int64())}),
    }
