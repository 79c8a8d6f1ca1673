# SPDX-License-Identifier: Apache-2.0
"""Makes the data of B3 and B4, the same from run to run: `data.py DIRECTORY` writes what is missing there.

spans       1,000,000 rows of 17 columns (19 leaves), like what `sluice gen --profile shop` becomes
logs        1,000,000 rows; bodies of about 110 bytes, 11 attributes, trace context on 30 %
wild        200,000 spans of unlike attributes: 30 each, a third of them unique, nulls, and a list of
            events with stack traces of 4 KB on a tenth
lineitem    3,000,000 rows in the shape of TPC-H lineitem
spans_10k, spans_100k   the first rows of spans
lookup      10,000,000 rows of spans sorted by trace_id, Parquet by pyarrow; lookup.txt: ids to look for

Arrow IPC files in batches of 65,536 rows without dictionaries, and NAME.json: rows and bytes in memory.
"""
import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

BATCH_ROWS = 65536
GROUP_ROWS = 122880
DAY_NS = 86400 * 10 ** 9
BEGIN_NS = 1767225600 * 10 ** 9  # 2026-01-01
WORDS = ("carefully quickly slyly furiously blithely fluffily silent ironic final express special pending regular "
         "bold even unusual close deposits packages requests accounts theodolites instructions foxes ideas pinto "
         "beans platelets dependencies excuses asymptotes courts dolphins sleep wake nag haggle cajole boost "
         "integrate detect engage use about above among across along after the of for to at in on").split()
HEX = np.array([f"{i:02x}".encode() for i in range(256)])


def texts(values, index):
    return pa.array(values, pa.string()).take(pa.array(index))


def hex_texts(ids, valid=None):
    """Text of the rows of a matrix of bytes; null where not valid."""
    if valid is None:
        valid = np.ones(len(ids), bool)
    offsets = np.zeros(len(ids) + 1, np.int32)
    np.cumsum(valid * ids.shape[1] * 2, out=offsets[1:])
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(ids), [
        bits, pa.py_buffer(offsets), pa.py_buffer(HEX[ids[valid]].tobytes())])


def attribute_map(columns):
    """A map of the same keys in every row; columns: key -> (its values, an index a row)."""
    rows, pool, index = len(next(iter(columns.values()))[1]), [], []
    for values, which in columns.values():
        index.append(np.asarray(which, np.int32) + len(pool))
        pool += values
    items = texts(pool, np.stack(index, 1).ravel())
    keys = texts(list(columns), np.tile(np.arange(len(columns), dtype=np.int32), rows))
    return pa.MapArray.from_arrays(np.arange(rows + 1, dtype=np.int32) * len(columns), keys, items)


def numbered(before, count, after=""):
    return [f"{before}{i}{after}" for i in range(count)]


def resource_map(service):
    every = np.arange(50)
    return attribute_map({
        "service.name": (numbered("service-", 50), service),
        "service.version": (["1.4.2"], service * 0),
        "host.name": (numbered("host-", 120, ".example.net"), (every * 7 % 120)[service]),
        "deployment.environment": (["staging", "production"], (service % 5 != 0).astype(int)),
        "telemetry.sdk.language": (["go", "java"], service % 2),
        "k8s.pod.name": (numbered("pod-", 50, "-7f9c"), service)})


def shop_attributes(random, rows):
    route = random.integers(0, 20, rows)
    return attribute_map({
        "http.request.method": (["POST", "GET"], (route % 3 != 0).astype(int)),
        "http.route": (numbered("/api/v1/resource-", 20, "/{id}"), route),
        "http.response.status_code": (["200", "500"], (random.integers(0, 50, rows) == 0).astype(int)),
        "tenant.id": (numbered("tenant-", 200), random.integers(0, 200, rows)),
        "server.address": (numbered("10.0.0.", 250), random.integers(0, 250, rows)),
        "server.port": (["8080"], np.zeros(rows, int)),
        "network.protocol.version": (["1.1"], np.zeros(rows, int)),
        "user.id": (numbered("user-", 100000), random.integers(0, 100000, rows)),
        "http.request.body.size": (numbered("", 65536), random.integers(0, 65536, rows)),
        "url.scheme": (["https"], np.zeros(rows, int))})


def times(ns):
    return pa.array(ns // 1000).cast(pa.timestamp("us", "UTC"))


def spans(random, trace_ids):
    """Five spans a trace, the traces in order of time over a day, 20 spans a service in turn."""
    rows = len(trace_ids) * 5
    place = np.arange(rows)
    trace = np.repeat(trace_ids, 5, axis=0)
    ids = random.integers(0, 256, (rows, 8), np.uint8)
    parents = np.roll(ids, 1, axis=0)
    start = BEGIN_NS + place // 5 * (DAY_NS // max(1, len(trace_ids))) + random.integers(0, 2 * 10 ** 9, rows)
    took = random.integers(0, 2 * 10 ** 9, rows)
    service = random.integers(0, 50, rows // 20 + 1)[place // 20]
    failed = (random.integers(0, 50, rows) == 0).astype(int)
    kinds = ["INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]
    return pa.table({
        "trace_id": hex_texts(trace),
        "span_id": hex_texts(ids),
        "parent_span_id": hex_texts(parents, place % 5 != 0),
        "name": texts(numbered("GET /api/v1/resource-", 20), random.integers(0, 20, rows)),
        "kind": texts(kinds, random.integers(0, 5, rows)),
        "start_time": times(start),
        "end_time": times(start + took),
        "start_ns": pa.array(start),
        "end_ns": pa.array(start + took),
        "duration_ns": pa.array(took),
        "service_name": texts(numbered("service-", 50), service),
        "scope_name": texts(["io.example.instrumentation"], place * 0),
        "scope_version": texts(["2.3.0"], place * 0),
        "status_code": texts(["UNSET", "ERROR"], failed),
        "status_message": texts(["", "upstream timed out"], failed),
        "attributes": shop_attributes(random, rows),
        "resource_attributes": resource_map(service)})


def make_spans(rows=1000000):
    random = np.random.default_rng(42)
    return spans(random, random.integers(0, 256, (rows // 5, 16), np.uint8))


def make_logs(rows=1000000):
    random = np.random.default_rng(43)
    place = np.arange(rows)
    at = BEGIN_NS + place * (DAY_NS // rows) + random.integers(0, 10 ** 6, rows)
    has_trace = random.integers(0, 10, rows) < 3
    service = random.integers(0, 50, rows // 20 + 1)[place // 20]
    severity = random.integers(0, 5, rows)
    order, user = random.integers(0, 10 ** 7, rows), random.integers(0, 10 ** 5, rows)
    bodies = [f"order {a:07d} of user-{b:05d} was taken by warehouse {b % 7} and is on its way; "
              f"the customer was told about it, step {a % 9}" for a, b in zip(order.tolist(), user.tolist())]
    attributes = {f"app.field.{i}": (numbered(f"value {i} ", 10 ** (i % 4)),
                                     random.integers(0, 10 ** (i % 4), rows)) for i in range(9)}
    attributes["user.id"] = (numbered("user-", 10 ** 5), user)
    attributes["log.file"] = (numbered("/var/log/app/", 20, ".log"), random.integers(0, 20, rows))
    return pa.table({
        "time": times(at),
        "observed_time": times(at + random.integers(0, 10 ** 9, rows)),
        "severity_number": pa.array((severity * 4 + 5).astype(np.int32)),
        "severity_text": texts(["DEBUG", "INFO", "WARN", "ERROR", "FATAL"], severity),
        "body": pa.array(bodies, pa.string()),
        "trace_id": hex_texts(random.integers(0, 256, (rows, 16), np.uint8), has_trace),
        "span_id": hex_texts(random.integers(0, 256, (rows, 8), np.uint8), has_trace),
        "service_name": texts(numbered("service-", 50), service),
        "scope_name": texts(["io.example.logger"], place * 0),
        "attributes": attribute_map(attributes),
        "resource_attributes": resource_map(service)})


def wild_attributes(random, rows):
    """30 keys, some of which differ from row to row; values of few, of many and of one row, and of none."""
    columns = {}
    for i in range(10):
        columns[f"wild.few.{i}"] = (numbered(f"value {i} Zürich 東京 ", 3 ** (i % 5) + 1),
                                    random.integers(0, 3 ** (i % 5) + 1, rows))
    for i in range(10):
        columns[f"wild.number.{i}"] = (numbered("-" if i % 2 else "", 10 ** (3 + i % 3)),
                                       random.integers(0, 10 ** (3 + i % 3), rows))
    unique = [f"{'https://example.com/' if i % 4 else ''}{random.integers(0, 1 << 60):x}" for i in range(rows)]
    for i in range(9):
        columns[f"wild.unique.{i}"] = (unique, random.permutation(rows))
    columns["wild.key"] = (unique[:1000], random.integers(0, 1000, rows))
    pool, index = [], []
    for values, which in columns.values():
        index.append(np.asarray(which, np.int32) + len(pool))
        pool += values
    index = np.stack(index, 1).ravel()
    items = texts(pool, index)
    items = pc.if_else(pa.array(random.integers(0, 20, len(index)) == 0), pa.scalar(None, pa.string()), items)
    odd = numbered("wild.key.", 5000)
    which = np.tile(np.arange(len(columns), dtype=np.int32), rows).reshape(rows, -1)
    which[:, -1] = len(columns) + random.integers(0, len(odd), rows)
    keys = texts(list(columns) + odd, which.ravel())
    return pa.MapArray.from_arrays(np.arange(rows + 1, dtype=np.int32) * len(columns), keys, items)


def wild_events(random, rows, start):
    """None on most spans, one to three on a tenth."""
    count = np.where(random.integers(0, 10, rows) == 0, random.integers(1, 4, rows), 0)
    total = int(count.sum())
    frames = [f"\n\tat com.example.p{i % 50}.Type${i % 9}.method{i}(Type.java:{i * 7 % 3000})" for i in range(5000)]
    traces = ["java.lang.IllegalStateException: " + "".join(frames[j] for j in random.integers(0, 5000, 70))
              for _ in range(min(total, 5000))]
    which = random.integers(0, len(traces), total)
    fields = [pa.array(np.repeat(start, count) + random.integers(0, 10 ** 6, total)),
              texts(["exception", "retry"], random.integers(0, 2, total)),
              pc.binary_join_element_wise(texts(traces, which), pa.array(numbered("#", total)), "\n")]
    structs = pa.StructArray.from_arrays(fields, ["time_ns", "name", "stack_trace"])
    return pa.ListArray.from_arrays(np.concatenate(([0], np.cumsum(count))).astype(np.int32), structs)


def make_wild(rows=200000):
    random = np.random.default_rng(46)
    late = np.where(random.integers(0, 10, rows) == 0, random.integers(0, 3 * DAY_NS, rows), 0)
    start = BEGIN_NS + 4 * DAY_NS + np.arange(rows) * 10 ** 6 + random.integers(0, 10 ** 9, rows) - late
    took = random.integers(0, 2 * 10 ** 9, rows)
    has_parent = random.integers(0, 5, rows) > 0
    urls = [f"https://shop.example/{random.integers(0, 1 << 50):x}?q={i}" for i in range(rows)]
    return pa.table({
        "trace_id": hex_texts(random.integers(0, 256, (rows, 16), np.uint8)),
        "span_id": hex_texts(random.integers(0, 256, (rows, 8), np.uint8)),
        "parent_span_id": hex_texts(random.integers(0, 256, (rows, 8), np.uint8), has_parent),
        "name": pa.array(urls, pa.string()),
        "start_time": times(start), "start_ns": pa.array(start), "duration_ns": pa.array(took),
        "service_name": texts(numbered("service-", 50), random.integers(0, 50, rows)),
        "ratio": pa.array(random.normal(0, 1e6, rows)),
        "dropped": pa.array(random.integers(0, 4, rows).astype(np.int32)),
        "attributes": wild_attributes(random, rows),
        "events": wild_events(random, rows, start)})


def decimals(values):
    """decimal(15, 2) of integers in hundredths."""
    words = np.zeros((len(values), 2), np.int64)
    words[:, 0], words[:, 1] = values, values >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(values), [None, pa.py_buffer(words)])


def make_lineitem(rows=3000000):
    random = np.random.default_rng(44)
    order = np.repeat(np.arange(rows, dtype=np.int64), random.integers(1, 8, rows))[:rows]
    first = np.concatenate(([True], order[1:] != order[:-1]))
    line = np.arange(rows) - np.maximum.accumulate(np.where(first, np.arange(rows), 0)) + 1
    quantity, part = random.integers(1, 51, rows), random.integers(1, 200001, rows)
    ship = random.integers(8036, 10562, rows).astype(np.int32)
    pairs = [f"{a} {b}" for a in WORDS for b in WORDS]
    comments = [texts(pairs, random.integers(0, len(pairs), rows)) for _ in range(2)]
    return pa.table({
        "l_orderkey": pa.array(order // 8 * 32 + order % 8 + 1),
        "l_partkey": pa.array(part),
        "l_suppkey": pa.array((part + random.integers(0, 4, rows) * 2501) % 10000 + 1),
        "l_linenumber": pa.array(line.astype(np.int32)),
        "l_quantity": decimals(quantity * 100),
        "l_extendedprice": decimals(quantity * (90000 + part // 10 % 20001 + 100 * (part % 1000))),
        "l_discount": decimals(random.integers(0, 11, rows)),
        "l_tax": decimals(random.integers(0, 9, rows)),
        "l_returnflag": texts(["A", "N", "R"], random.integers(0, 3, rows)),
        "l_linestatus": texts(["F", "O"], (ship > 9298).astype(int)),
        "l_shipdate": pa.array(ship).cast(pa.date32()),
        "l_commitdate": pa.array(ship + random.integers(-60, 60, rows).astype(np.int32)).cast(pa.date32()),
        "l_receiptdate": pa.array(ship + random.integers(1, 31, rows).astype(np.int32)).cast(pa.date32()),
        "l_shipinstruct": texts(["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"],
                                random.integers(0, 4, rows)),
        "l_shipmode": texts(["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"],
                            random.integers(0, 7, rows)),
        "l_comment": pc.binary_join_element_wise(*comments, " ")})


def save(directory, name, table):
    """The facts come last: where they are, the file is whole."""
    table = table.combine_chunks()
    with pa.ipc.new_file(directory / f"{name}.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=BATCH_ROWS)
    (directory / f"{name}.json").write_text(json.dumps({"rows": table.num_rows, "arrow_bytes": table.nbytes}))


def make_lookup(directory, rows=10000000):
    """Made a few row groups at a time, since the whole takes 8 GB as Arrow."""
    random = np.random.default_rng(45)
    ids = random.integers(0, 256, (rows // 5, 16), np.uint8)
    halves = ids.view(">u8")
    ids = ids[np.lexsort((halves[:, 1], halves[:, 0]))]
    step, writer = GROUP_ROWS * 8 // 5, None
    for at in range(0, len(ids), step):
        table = spans(random, ids[at:at + step])
        if writer is None:
            writer = pq.ParquetWriter(directory / "lookup.parquet", table.schema, compression="zstd",
                                      compression_level=1, write_page_index=True)
        writer.write_table(table, row_group_size=GROUP_ROWS)
    writer.close()
    wanted = [ids[i].tobytes().hex() for i in np.linspace(1000, len(ids) - 1000, 12).astype(int)]
    (directory / "lookup.txt").write_text("\n".join(wanted) + "\n")
    (directory / "lookup.json").write_text(json.dumps({"rows": rows}))


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, make in (("spans", make_spans), ("logs", make_logs), ("wild", make_wild),
                       ("lineitem", make_lineitem)):
        if not (directory / f"{name}.json").exists():
            save(directory, name, make())
    for name, rows in (("spans_10k", 10000), ("spans_100k", 100000)):
        if not (directory / f"{name}.json").exists():
            whole = pa.ipc.open_file(directory / "spans.arrow").read_all()
            save(directory, name, whole.slice(0, rows))
    if "lookup" in sys.argv[2:] and not (directory / "lookup.json").exists():
        make_lookup(directory)


if __name__ == "__main__":
    main()
