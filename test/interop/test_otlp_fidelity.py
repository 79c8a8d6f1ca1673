# SPDX-License-Identifier: Apache-2.0
"""Everything that OTLP can say comes back from the tables as it was sent, read by programs that are not
ours, rebuilt by code that shares nothing with the server's."""
import datetime
import gzip
import json
import math
import os
import random
import struct
import subprocess
import sys
import time

import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "support"))
import otlp_rows  # noqa: E402
import otlp_wild  # noqa: E402
import sluice  # noqa: E402

REQUESTS = {"logs": logs_service_pb2.ExportLogsServiceRequest,
            "traces": trace_service_pb2.ExportTraceServiceRequest,
            "metrics": metrics_service_pb2.ExportMetricsServiceRequest}
# Fields that only the profiles signal gives a meaning to; columns cannot hold them, _sluice_raw does.
PROFILES_ONLY = ("key_strindex", "string_value_strindex")


def canonical(message):
    """Deterministic bytes; NaN-safe, and -0.0 is not 0.0."""
    return message.SerializeToString(deterministic=True)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Messages with every field set, in every variant, sent and published; the requests by receipt."""
    directory = tmp_path_factory.mktemp("fidelity") / "data"
    server = sluice.Server(directory, "--publish-interval", "200ms").start()
    sent = []
    for signal, make in REQUESTS.items():
        for skip in (PROFILES_ONLY, ()):
            for variant in range(10):
                request = otlp_rows.fill(make(), variant, skip=skip)
                body = request.SerializeToString()
                headers = {"Content-Encoding": "gzip"} if variant % 2 else {}
                if headers:
                    half = len(body) // 2  # two members: one stream to gzip
                    body = gzip.compress(body[:half]) + gzip.compress(body[half:])
                answer = server.post(signal, body, **headers)
                assert answer.code == 200, answer.body
                assert answer.headers["Sluice-Boundary"] == "durable"
                sent.append((request, answer))
    server.wait_published()
    server.stop()
    return directory, sent


READERS = {"PyIceberg": sluice.read_pyiceberg, "DuckDB": sluice.read_duckdb,
           "Polars": sluice.read_polars, "pyarrow": sluice.read_pyarrow}


def check_all(directory, sent, reader, check=None):
    """All rows of all tables are the items of these requests, each once, at its receipt's place and with
    equal values. `check` is given the table, the row and the item as well."""
    rows = {}
    for table in otlp_rows.TABLES:
        for row in READERS[reader](directory, table).to_pylist():
            key = (row["_sluice_group"], row["_sluice_seq"], row["_sluice_index"])
            assert (table, key) not in rows, "a row stands twice"
            rows[table, key] = row
    for request, answer in sent:
        places = {}
        for log, group, term, seq, first, count in answer.receipts:
            found = [t for t in otlp_rows.TABLES if (t, (group, seq, first)) in rows]
            assert len(found) == 1, found
            places[found[0]] = iter([(group, seq, first + i) for i in range(count)])
        for table, expected in otlp_rows.explode(request):
            row = rows.pop((table, next(places[table])))
            got = otlp_rows.enclose(table, row)
            assert canonical(got) == canonical(expected), (table, row, got, expected)
            if check:
                check(table, row, expected)
        assert all(next(left, None) is None for left in places.values())
    assert not rows, "rows that nobody sent"


@pytest.mark.parametrize("reader", READERS)
def test_every_field_comes_back(stored, reader):
    check_all(*stored, reader)


@pytest.fixture(scope="module")
def wild(tmp_path_factory):
    """The profile `wild`, made here: a few hundred items a signal, in requests of all sizes."""
    seed = int(os.environ.get("SLUICE_SEED", "0")) or 1
    source = otlp_wild.Wild(seed)
    directory = tmp_path_factory.mktemp("wild") / "data"
    server = sluice.Server(directory, "--publish-interval", "200ms").start()
    sent = []
    for items in (1, 20, 150, 60, 100, 3):
        for signal in REQUESTS:
            request = getattr(source, signal)(items)
            body = request.SerializeToString()
            answer = server.post(signal, gzip.compress(body), Content_Encoding="gzip") if items % 2 else \
                server.post(signal, body)
            assert answer.code == 200 and answer.body == b"", (seed, answer.body)
            sent.append((request, answer))
    server.wait_published()
    server.stop()
    return directory, sent


@pytest.mark.parametrize("reader", READERS)
def test_wild_comes_back(wild, reader):
    """Out of the columns alone: nothing in it has to be kept as bytes."""
    def check(table, row, item):
        assert row["_sluice_raw"] is None
        for name, value in otlp_wild.derived(table, item).items():
            assert row[name] == value, (table, name, row[name], value)
    check_all(*wild, reader, check)


def test_wild_is_wild(wild):
    """The profile holds what its description names, so that the tests above are of that."""
    _, sent = wild
    tables, kinds, spans = {}, set(), []
    for request, _ in sent:
        for table, item in otlp_rows.explode(request):
            tables[table] = tables.get(table, 0) + 1
            if table == "spans":
                spans.append(item.scope_spans[0].spans[0])
    for span in spans:
        kinds |= {x.value.WhichOneof("value") for x in span.attributes}
    assert set(tables) == set(otlp_rows.TABLES) and min(tables.values()) >= 30, tables
    assert len(spans) > 300 and all(len(span.attributes) == 30 for span in spans)
    assert kinds >= {"string_value", "int_value", "double_value", "bool_value", "bytes_value", "array_value",
                     "kvlist_value", None}
    assert len({span.trace_id for span in spans}) == len(spans)
    stacks = [a.value.string_value for span in spans for event in span.events for a in event.attributes
              if a.key == "exception.stacktrace"]
    assert stacks and min(map(len, stacks)) >= 4000
    assert any(span.links for span in spans) and any(len(span.events) > 1 for span in spans)
    starts = [span.start_time_unix_nano for span in spans]
    assert starts != sorted(starts) and max(starts) - min(starts) > 86400 * 10**9


def plain(value):
    """As test/java's Dump prints it."""
    if isinstance(value, float):
        return format(struct.unpack("<Q", struct.pack("<d", value))[0], "x")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // \
            datetime.timedelta(microseconds=1)
    if isinstance(value, dict):
        return [plain(x) for x in value.values()]
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    return value


@pytest.mark.parametrize("table", otlp_rows.TABLES)
def test_iceberg_java_reads_the_same_values(stored, table):
    directory, _ = stored
    home = sluice.TOP / "build/java"
    classpath = f"{home}/target/classes:{(home / 'classpath').read_text().strip()}"
    done = subprocess.run(["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp",
                           classpath, "Dump", f"{directory}/catalog.db", "sluice", "otel", table],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    theirs = sorted(json.loads(line) for line in done.stdout.splitlines())
    ours = sorted(plain(row) for row in sluice.read_pyiceberg(directory, table).to_pylist())
    assert theirs == ours and theirs


@pytest.mark.parametrize("table", otlp_rows.TABLES)
def test_clickhouse_reads_the_same_values(stored, table):
    directory, _ = stored
    theirs = sorted((plain(row) for row in sluice.read_clickhouse(directory, table)), key=json.dumps)
    ours = sorted((plain(row) for row in sluice.read_as_clickhouse(directory, table)), key=json.dumps)
    assert theirs == ours and ours


def test_columns_hold_what_otlp_defines(stored):
    """Only what columns cannot hold goes to _sluice_raw: messages without the profiles' fields do not."""
    directory, sent = stored
    for table in otlp_rows.TABLES:
        rows = sluice.read_pyiceberg(directory, table).to_pylist()
        assert {row["_sluice_raw"] is None for row in rows} == {True, False}


def one_log(**record):
    request = logs_service_pb2.ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(**record)
    return request


@pytest.fixture(scope="module")
def edge(tmp_path_factory):
    """A server, and rows(table, answer): the published rows of a request."""
    directory = tmp_path_factory.mktemp("edge") / "data"
    server = sluice.Server(directory, "--publish-interval", "50ms").start()

    class Edge:
        def send(self, signal, request):
            body = request if isinstance(request, bytes) else request.SerializeToString()
            return server.post(signal, body)

        def rows(self, table, answer):
            server.wait_published()
            wanted = {(seq, first + i) for _, _, _, seq, first, count in answer.receipts
                      for i in range(count)}
            rows = [r for r in sluice.read_pyiceberg(directory, table).to_pylist()
                    if (r["_sluice_seq"], r["_sluice_index"]) in wanted]
            return sorted(rows, key=lambda r: (r["_sluice_seq"], r["_sluice_index"]))

    yield Edge()
    server.stop()


def test_TA1_time_zero_takes_the_observed_time(edge):
    now = time.time_ns()
    answer = edge.send("logs", one_log(time_unix_nano=0, observed_time_unix_nano=now))
    row, = edge.rows("logs", answer)
    assert row["time_unix_nano"] == 0 and row["observed_time_unix_nano"] == now
    assert int(row["time"].timestamp() * 1e6) == now // 1000
    assert answer.headers["Content-Type"] == "application/x-protobuf"


def test_absurd_times_take_the_receipt_time(edge):
    for nano in (0, 1, 2**62, 2**64 - 1):
        answer = edge.send("logs", one_log(time_unix_nano=nano))
        row, = edge.rows("logs", answer)
        assert row["time"] == row["_sluice_received"]
        assert (row["_sluice_raw"] is not None) == (nano >= 2**63)


def test_TA5_bad_utf8_touches_one_item(edge):
    request = trace_service_pb2.ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for i in range(100):
        scope.spans.add(name=f"span-{i}", trace_id=bytes([i + 1]) * 16).attributes.add(key="k").value \
            .string_value = "good" if i != 50 else "MARK"
    body = request.SerializeToString().replace(b"MARK", b"\xc3\x28ok")
    answer = edge.send("traces", body)
    assert answer.code == 200 and answer.body == b""
    rows = edge.rows("spans", answer)
    assert len(rows) == 100
    for i, row in enumerate(rows):
        assert dict(row["attributes"])["k"] == ("good" if i != 50 else "\ufffd(ok")
        assert (row["_sluice_raw"] is not None) == (i == 50)
    assert b"\xc3\x28ok" in rows[50]["_sluice_raw"]


def test_TA8_exponential_histogram_is_lossless(edge):
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="h")
    point = metric.exponential_histogram.data_points.add(scale=2, zero_count=1, count=7, sum=21)
    point.positive.offset, point.negative.offset = 0, -3
    point.positive.bucket_counts.extend([2, 3])
    point.negative.bucket_counts.append(1)
    row, = edge.rows("metrics_exp_histogram", edge.send("metrics", request))
    assert row["zero_count"] + sum(row["positive_bucket_counts"] + row["negative_bucket_counts"]) == 7
    assert (row["negative_offset"], row["scale"]) == (-3, 2)


def test_TA9_attributes_never_collide_with_columns(edge):
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="g")
    names = ["count", "value", "sum", "time", "name"]
    for name in names:
        metric.gauge.data_points.add(as_int=1).attributes.add(key=name).value.string_value = "a"
    metric.gauge.data_points.add(as_int=2)
    rows = edge.rows("metrics_gauge", edge.send("metrics", request))
    assert [dict(r["attributes"]) for r in rows] == [{n: "a"} for n in names] + [{}]


def test_TA10_the_last_of_equal_keys_counts_and_raw_keeps_both(edge):
    for count in (2, 40):
        request = one_log()
        record = request.resource_logs[0].scope_logs[0].log_records[0]
        for i in range(count - 1):
            record.attributes.add(key="k").value.int_value = i
        record.attributes.add(key="other").value.bool_value = True
        record.attributes.add(key="k").value.string_value = "x"
        row, = edge.rows("logs", edge.send("logs", request))
        assert row["attributes"] == [("other", "true"), ("k", "x")]
        assert row["attributes_types"] == "bs"
        assert otlp_rows.enclose("logs", row).scope_logs[0].log_records[0] == record


def usual_and_unusual_values():
    """Of every kind, at the lengths where their encoding or their copying changes."""
    def value(**members):
        return common_pb2.AnyValue(**members)
    for length in (0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 97, 125, 126, 127, 128, 129, 300):
        yield value(string_value="x" * length)
        yield value(bytes_value=bytes(range(length % 256)))
    for length in (1, 14, 30, 31, 32, 33, 62, 63, 64):
        yield value(string_value="y" * length + "\u20ac" + "z" * (length % 3))
        yield value(string_value="y" * length + "BAD")  # see below
    for bits in range(64):
        yield value(int_value=2**bits - 1)
        yield value(int_value=-(2**bits))
    for double in (0.0, -0.0, 1.5, 1e300, 5e-324, -123456.789, math.inf, -math.inf):
        yield value(double_value=double)
    for bits in (0x7ff8 << 48, 0xfff8 << 48, (0x7ff8 << 48) + 1, (0x7ff0 << 48) + 1):  # NaNs
        yield value(double_value=struct.unpack("<d", struct.pack("<Q", bits))[0])
    yield from (value(bool_value=True), value(bool_value=False), value())
    yield value(array_value=common_pb2.ArrayValue(values=[value(string_value="a"), value(int_value=1)]))
    yield value(kvlist_value=common_pb2.KeyValueList(
        values=[common_pb2.KeyValue(key="k", value=value(bool_value=True))]))


def test_attributes_of_every_kind_beside_each_other(edge):
    """The same keys again and again, and now and then others, fewer, or none: each way that an attribute
    can take through the decoder is followed by each other one."""
    chance, values = random.Random(11), list(usual_and_unusual_values())
    keys = [f"key.{'n' * i}" for i in (0, 1, 5, 11, 12, 13, 27, 28, 29, 60, 121, 122, 123, 124, 200)]
    request = logs_service_pb2.ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    for number in range(3000):
        record = records.add(time_unix_nano=time.time_ns(), observed_time_unix_nano=number)
        here = keys if number % 7 else chance.sample(keys, chance.randrange(len(keys)))
        for key in here:
            attribute = record.attributes.add(key=key)
            if chance.random() < 0.98:
                attribute.value.CopyFrom(chance.choice(values))
        if number % 50 == 0:
            record.attributes.add(key=keys[3]).value.string_value = "again"
    answer = edge.send("logs", request.SerializeToString().replace(b"BAD", b"\xe2\x82("))
    assert answer.code == 200 and answer.body == b""
    rows = edge.rows("logs", answer)
    assert len(rows) == len(records)
    kinds = set()
    for row, record in zip(rows, records):
        kinds |= set(row["attributes_types"])
        raw = row["_sluice_raw"]
        if raw is not None:  # the columns hold what they can
            row = {**row, "_sluice_raw": raw.replace(b"\xe2\x82(", b"BAD")}
        got = otlp_rows.enclose("logs", row).scope_logs[0].log_records[0]
        for attribute in [*record.attributes, *got.attributes]:
            attribute.value.SetInParent()  # no value, and one of no kind: OTLP makes no difference
        assert canonical(got) == canonical(record), (row, record)
    assert kinds == set("sidbyakn")


def test_TA12_64_bit_integers_are_exact(edge):
    for value in (646586703926004764, 2**53 + 1, -2**63, 2**63 - 1):
        request = one_log()
        request.resource_logs[0].scope_logs[0].log_records[0].body.int_value = value
        row, = edge.rows("logs", edge.send("logs", request))
        assert (row["body"], row["body_type"]) == (str(value), "i")


def test_TA13_severity_is_stored_not_invented(edge):
    row, = edge.rows("logs", edge.send("logs", one_log(severity_number=17)))
    assert (row["severity_number"], row["severity_text"]) == (17, None)


def test_TA17_equal_requests_without_a_producer_are_two_rows(edge):
    body = one_log(severity_text="heartbeat").SerializeToString()
    first, second = edge.send("logs", body), edge.send("logs", body)
    assert len(edge.rows("logs", first)) == len(edge.rows("logs", second)) == 1
    assert first.receipts != second.receipts


def field(number, payload):
    """A length-delimited protobuf field, for what the library's own limits keep it from writing."""
    length, out = len(payload), bytes([number << 3 | 2])
    while length > 127:
        out, length = out + bytes([length & 127 | 128]), length >> 7
    return out + bytes([length]) + payload


def nested_record(depth):
    value = field(1, b"bottom")
    for _ in range(depth):
        value = field(5, field(1, value))
    return field(5, value)


def test_TA19_a_rejected_item_is_named_and_its_neighbours_stored(edge):
    records = [field(3, b"n%d" % i) for i in range(10)]
    records[3] = nested_record(90)
    records[5] = nested_record(40)
    body = field(1, field(2, b"".join(field(2, r) for r in records)))
    answer = edge.send("logs", body)
    partial = logs_service_pb2.ExportLogsServiceResponse.FromString(answer.body).partial_success
    assert answer.code == 200 and partial.rejected_log_records == 1
    assert "item 3" in partial.error_message and "64 levels" in partial.error_message
    rows = edge.rows("logs", answer)
    assert [r["severity_text"] for r in rows] == [f"n{i}" if i != 5 else None
                                                  for i in range(10) if i != 3]
    assert rows[4]["body"].count("arrayValue") == 40 and "bottom" in rows[4]["body"]
    letter, = edge.rows("dead_letters", answer)
    assert (letter["signal"], letter["item"]) == ("logs", 3) and "64 levels" in letter["reason"]
    assert letter["_sluice_raw"] == field(2, field(2, records[3])), "as sent, within its resource"
    assert letter["time"] == letter["_sluice_received"] == rows[0]["_sluice_received"]


GARBAGE = {"a length beyond the end": b"\x1a\x7fabc", "half a number": b"\x10\x80", "field 0": b"\x00\x00",
           "wire type 7": b"\x0f", "the end of no group": b"\x0c", "a group without end": b"\x9b\x06\x08\x01",
           "groups that cross": b"\x9b\x06\x13\x9c\x06\x14", "a broken value": field(5, b"\x0a\x7f"),
           "a broken attribute": field(6, field(1, b"k") + b"\x12\x05x"), "a varint of 11 bytes":
           b"\x10" + b"\xff" * 10 + b"\x01", "101 groups": b"\x13" * 101 + b"\x14" * 101}


@pytest.mark.parametrize("name", GARBAGE)
def test_TA19_an_item_that_is_no_message_leaves_its_neighbours(edge, name):
    """One of three framed records holds garbage: all were refused, and none was named."""
    records = [field(3, b"before"), field(3, b"x") + GARBAGE[name], field(3, b"behind")]
    answer = edge.send("logs", field(1, field(2, b"".join(field(2, r) for r in records))))
    partial = logs_service_pb2.ExportLogsServiceResponse.FromString(answer.body).partial_success
    assert answer.code == 200 and partial.rejected_log_records == 1
    assert "item 1: its bytes are not well-formed protobuf" == partial.error_message
    assert [r["severity_text"] for r in edge.rows("logs", answer)] == ["before", "behind"]
    letter, = edge.rows("dead_letters", answer)
    assert (letter["signal"], letter["item"]) == ("logs", 1)
    assert letter["_sluice_raw"] == field(2, field(2, records[1]))


def test_TA19_broken_spans_events_points_and_metrics(edge):
    spans = [field(5, b"a"), field(5, b"b") + field(11, b"\x12\x09short"), field(5, b"c")]
    answer = edge.send("traces", field(1, field(2, b"".join(field(2, s) for s in spans))))
    assert answer.code == 200 and b"item 1: its bytes" in answer.body
    assert [r["name"] for r in edge.rows("spans", answer)] == ["a", "c"]

    def gauge(name, *points):
        return field(2, field(1, name) + field(5, b"".join(field(1, p) for p in points)))
    good = b"\x31" + (7).to_bytes(8, "little")
    metrics = [gauge(b"one", good, b"\x31\x00", good), field(2, field(1, b"two") + b"\x2a\x7f"),
               field(2, field(1, b"three") + field(12, b"\x0a\x7f") + field(5, field(1, good) * 2)),
               field(2, field(1, b"four") + field(5, b"\x0a\x7f")), gauge(b"five", good)]
    answer = edge.send("metrics", field(1, field(2, b"".join(metrics))))
    partial = metrics_service_pb2.ExportMetricsServiceResponse.FromString(answer.body).partial_success
    assert partial.rejected_data_points == 5 and "item 1:" in partial.error_message
    rows = edge.rows("metrics_gauge", answer)
    assert [(r["name"], r["as_int"]) for r in rows] == [("one", 7), ("one", 7), ("five", 7)]
    letters = edge.rows("dead_letters", answer)
    assert [letter["item"] for letter in letters] == [1, 3, 4, 5, 6], "a Metric without points to tell is one"
    assert letters[1]["_sluice_raw"] == field(2, metrics[1]) and letters[4]["_sluice_raw"] == field(2, metrics[3])


def test_TA19_a_broken_resource_takes_its_own_items_alone(edge):
    good = field(1, field(2, field(2, field(3, b"good"))))
    bad = field(1, field(1, field(1, b"\x0a\x7f")) + field(2, field(2, field(3, b"bad")) * 2))
    answer = edge.send("logs", good + bad + good)
    assert answer.code == 200 and b"item 1: its bytes" in answer.body
    assert [r["severity_text"] for r in edge.rows("logs", answer)] == ["good", "good"]
    assert [letter["item"] for letter in edge.rows("dead_letters", answer)] == [1, 2]


@pytest.mark.parametrize("body, at", [
    (field(1, field(2, field(2, b"") * 3)) + b"\x0a\x7f", 10),
    (field(1, field(2, field(2, b"")) + b"\x12\x7f"), 6),
    (field(1, field(2, field(2, b"") + b"\x12\x02\x00")), 6)], ids=["request", "resource", "scope"])
def test_broken_framing_is_refused_with_its_place(edge, body, at):
    answer = edge.send("logs", body)
    assert answer.code == 400 and b"the field at byte %d is broken" % at in answer.body


def test_unknown_groups_are_skipped_and_kept(edge):
    """Every protobuf parser goes through them; here they were a malformed request."""
    group = b"\x9b\x06" + field(7, b"x") + b"\x13\x08\x96\x01\x14" + b"\x15abcd\x11abcdefgh" + b"\x9c\x06"
    record = field(3, b"kept") + group
    request = logs_service_pb2.ExportLogsServiceRequest.FromString
    for body in (field(1, field(2, field(2, record))), field(1, field(2, field(2, record) + group) + group) + group,
                 field(1, field(2, field(2, field(3, b"kept") + b"\x13" * 90 + b"\x14" * 90)))):
        assert request(body).resource_logs[0].scope_logs[0].log_records[0].severity_text == "kept"
        answer = edge.send("logs", body)
        assert answer.code == 200 and answer.body == b""
        row, = edge.rows("logs", answer)
        assert row["severity_text"] == "kept" and row["_sluice_raw"]
    assert group in edge.rows("logs", edge.send("logs", field(1, field(2, field(2, record)))))[0]["_sluice_raw"]


@pytest.mark.parametrize("tail", [b"", field(3, b"more than ten bytes behind it")], ids=["last", "among others"])
def test_upper_bits_of_a_long_varint_are_dropped(edge, tail):
    value = b"\x85" + b"\x80" * 8 + b"\x7e"  # 5, and bits that an uint64 does not have
    body = field(1, field(2, field(2, b"\x10" + value + tail)))
    theirs = logs_service_pb2.ExportLogsServiceRequest.FromString(body).resource_logs[0].scope_logs[0].log_records[0]
    row, = edge.rows("logs", edge.send("logs", body))
    assert row["severity_number"] == theirs.severity_number == 5


def test_damage_at_random_is_taken_as_protobuf_takes_it(edge):
    """Bytes of one record changed: stored or rejected as Google's parser accepts or refuses it, whatever it is."""
    chance = random.Random(5)
    record = logs_service_pb2.ExportLogsServiceRequest.FromString(
        otlp_rows.fill(logs_service_pb2.ExportLogsServiceRequest(), 3, skip=PROFILES_ONLY).SerializeToString()
    ).resource_logs[0].scope_logs[0].log_records[0]
    good, bodies, want = record.SerializeToString(), [], []
    for _ in range(2000):
        bad = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            bad[chance.randrange(len(bad))] = chance.choice([0, 1, 0x7f, 0x80, 0xff, 0x0b, 0x0c, chance.randrange(256)])
        bodies.append(bytes(bad))
        try:
            type(record).FromString(bodies[-1])
            want.append(True)
        except Exception as refused:
            want.append(None if "UTF-8" in str(refused) else False)  # it looked no further
    answer = edge.send("logs", field(1, field(2, b"".join(field(2, body) for body in bodies))))
    assert answer.code == 200
    letters = {letter["item"] for letter in edge.rows("dead_letters", answer)}
    differ = [bodies[i] for i in range(2000) if want[i] is not None and (i not in letters) != want[i]]
    assert len(edge.rows("logs", answer)) + len(letters) == 2000 and 100 < len(letters) < 1900
    assert not differ, (len(differ), differ[:3])


def test_a_request_of_rejected_items_alone_is_kept_once(edge):
    body = field(1, field(1, field(9, b"r")) + field(2, field(2, nested_record(80)) * 2))
    answer = edge.send("logs", body)
    partial = logs_service_pb2.ExportLogsServiceResponse.FromString(answer.body).partial_success
    assert partial.rejected_log_records == 2 and len(answer.receipts) == 1
    letters = edge.rows("dead_letters", answer)
    assert [letter["item"] for letter in letters] == [0, 1]
    for letter in letters:
        assert letter["_sluice_raw"] == field(1, field(9, b"r")) + field(2, field(2, nested_record(80)))


def test_many_items_of_a_refused_resource_take_time_by_their_number(edge):
    """Each went through all the others: 64,000 empty records took eleven seconds."""
    deep = field(1, b"bottom")
    for _ in range(80):
        deep = field(5, field(1, deep))
    resource = field(1, field(1, field(1, b"k") + field(2, deep)))
    began = time.monotonic()
    answer = edge.send("logs", field(1, resource + field(2, field(2, b"") * 64000)))
    assert time.monotonic() - began < 4
    partial = logs_service_pb2.ExportLogsServiceResponse.FromString(answer.body).partial_success
    assert partial.rejected_log_records == 64000


@pytest.mark.parametrize("bad", [b"\0", field(5, b"\x0a\x7f")], ids=["at once", "within"])
def test_many_broken_items_take_time_by_their_number(edge, bad):
    """To take one back, the nulls of all rows before were counted: a quarter of a million took 15 seconds."""
    began = time.monotonic()
    answer = edge.send("logs", field(1, field(2, (field(2, b"") + field(2, bad)) * 200000)))
    assert time.monotonic() - began < 6
    partial = logs_service_pb2.ExportLogsServiceResponse.FromString(answer.body).partial_success
    assert partial.rejected_log_records == 200000


def test_items_of_a_refused_resource_are_all_kept(edge):
    """What cannot be stored is the resource; each item goes with a copy of it."""
    deep = field(1, b"bottom")
    for _ in range(80):
        deep = field(5, field(1, deep))
    resource = field(1, field(1, field(1, b"k") + field(2, deep)))
    body = field(1, resource + field(2, b"".join(field(2, field(3, b"n%d" % i)) for i in range(3))))
    answer = edge.send("logs", body)
    partial = logs_service_pb2.ExportLogsServiceResponse.FromString(answer.body).partial_success
    assert partial.rejected_log_records == 3
    letters = edge.rows("dead_letters", answer)
    assert [letter["_sluice_raw"] for letter in letters] == [
        resource + field(2, field(2, field(3, b"n%d" % i))) for i in range(3)]


def test_ids_of_wrong_length_keep_their_bytes(edge):
    row, = edge.rows("logs", edge.send("logs", one_log(trace_id=b"\x01" * 15, span_id=b"\x02" * 8)))
    assert row["trace_id"] is None and row["span_id"] == "02" * 8
    assert otlp_rows.enclose("logs", row).scope_logs[0].log_records[0].trace_id == b"\x01" * 15


def test_special_doubles(edge):
    values = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 0.1]
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="g")
    for value in values:
        metric.gauge.data_points.add(as_double=value).attributes.add(key="d").value.double_value = value
    rows = edge.rows("metrics_gauge", edge.send("metrics", request))
    for row, value in zip(rows, values):
        for got in (row["as_double"], float(dict(row["attributes"])["d"])):
            assert repr(got) == repr(value)


def test_fields_in_any_order_and_split_messages(edge):
    """Protobuf lets scope_logs stand before the resource, and a message come in pieces."""
    request = one_log(severity_text="a")
    outer = request.resource_logs[0]
    outer.resource.attributes.add(key="service.name").value.string_value = "late"
    resource = outer.resource.SerializeToString()
    scope = outer.scope_logs[0].SerializeToString()
    half = len(resource)
    body = b"\x12" + bytes([len(scope)]) + scope + b"\x0a" + bytes([half]) + resource + \
        b"\x0a\x02\x10\x05"
    row, = edge.rows("logs", edge.send("logs", b"\x0a" + bytes([len(body)]) + body))
    assert row["service_name"] == "late" and row["resource_dropped_attributes_count"] == 5


def test_a_request_over_many_days_touches_32_partitions(edge):
    now, day = time.time_ns(), 86400 * 10**9
    request = one_log()
    records = request.resource_logs[0].scope_logs[0].log_records
    for i in range(100):
        for _ in range(2 if i < 20 else 1):
            records.add(time_unix_nano=now - i * 10 * day)
    rows = edge.rows("logs", edge.send("logs", request))
    assert len(rows) == 121
    assert len({r["time"].date() for r in rows}) <= 33
    kept = {r["time_unix_nano"] for r in rows if r["time"] != r["_sluice_received"]}
    assert {now - i * 10 * day for i in range(20)} <= kept, "the fullest days keep their time"
