# SPDX-License-Identifier: Apache-2.0
"""The profile `wild` as the benchmarks describe it, for all three signals, made with OpenTelemetry's own
protobuf classes and sharing nothing with `sluice gen`: unique ids and urls, 30 attributes of mixed and nested
types, a tenth of the items with events, links or a stack trace of 4 KB, late and out-of-order times."""
import datetime
import math
import random
import time

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

ATTRIBUTES, ITEMS_A_SCOPE = 30, 20
DAY_NS = 86400 * 10**9
WORDS = ("checkout", "Zürich", "東京", "🛒 cart", "line\nbreak", "tab\tquote\"\\", "nul\0inside", "", " ", "a" * 400)
DOUBLES = (0.1, -0.0, 1 / 3, 1e300, 5e-324, -123456.789, math.inf, -math.inf, math.nan, 2.0**53)
INTEGERS = (0, 1, -1, 2**31, -2**31 - 1, 2**53 + 1, 2**63 - 1, -2**63, 646586703926004764)


class Wild:
    """A seeded source; each request that it makes has `items` log records, spans or points."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.now = time.time_ns()

    # ---- values ----

    def when(self):
        """Around now, in no order; one in ten is late by up to three days."""
        late = self.chance.randrange(3 * DAY_NS) if self.chance.random() < 0.1 else 0
        return self.now - late - self.chance.randrange(10**9)

    def ident(self, length):
        return self.chance.getrandbits(8 * length - 1).to_bytes(length, "big")[:-1] + b"\x01"

    def text(self):
        return f"{self.chance.choice(WORDS)}{self.chance.getrandbits(40):x}" if self.chance.random() < 0.7 \
            else self.chance.choice(WORDS)

    def value(self, value, depth=0):
        """Sets an AnyValue to one of any kind; one in five is nested, up to four levels."""
        kind = self.chance.randrange(10 if depth < 4 else 8)
        if kind < 3:
            value.string_value = self.text()
        elif kind < 5:
            value.int_value = self.chance.choice(INTEGERS) if kind == 3 else self.chance.getrandbits(50)
        elif kind == 5:
            value.double_value = self.chance.choice(DOUBLES) if self.chance.random() < 0.5 \
                else self.chance.gauss(0, 1e6)
        elif kind == 6:
            value.bool_value = self.chance.random() < 0.5
        elif kind == 7:
            if self.chance.random() < 0.8:
                value.bytes_value = self.chance.randbytes(self.chance.randrange(40))
            else:
                value.SetInParent()  # of no kind
        elif kind == 8:
            value.array_value.SetInParent()
            for _ in range(self.chance.randrange(4)):
                self.value(value.array_value.values.add(), depth + 1)
        else:
            value.kvlist_value.SetInParent()
            for i in range(self.chance.randrange(4)):
                pair = value.kvlist_value.values.add(key=f"{self.text()}.{i}")
                pair.value.SetInParent()
                self.value(pair.value, depth + 1)

    def attributes(self, to, count=ATTRIBUTES):
        """Every key once; most keys are those of the neighbours, with a value of a kind of its own."""
        for i in range(count):
            key = f"wild.{i}" if self.chance.random() < 0.9 else f"wild.{i}.{self.chance.getrandbits(32):x}"
            pair = to.add(key=key)
            pair.value.SetInParent()
            self.value(pair.value)

    def stack_trace(self):
        """About 4 KB."""
        lines = [f"java.lang.IllegalStateException: {self.text()}"]
        while sum(map(len, lines)) < 4000:
            lines.append(f"\tat com.example.p{self.chance.randrange(50)}.Type${self.chance.randrange(9)}"
                         f".method{self.chance.randrange(1000)}(Type.java:{self.chance.randrange(3000)})")
        return "\n".join(lines)

    # ---- what surrounds the items ----

    def resources(self, add_resource, scopes, items):
        """Scopes to put items into, each with how many, below resources of their own."""
        while items:
            outer = add_resource()
            outer.schema_url = self.chance.choice(("", "https://opentelemetry.io/schemas/1.26.0"))
            resource = outer.resource
            resource.SetInParent()
            if self.chance.random() < 0.9:
                resource.attributes.add(key="service.name").value.string_value = \
                    f"service-{self.chance.randrange(50)}"
            self.attributes(resource.attributes, self.chance.randrange(7))
            resource.dropped_attributes_count = self.chance.choice((0, 0, 3))
            for _ in range(self.chance.randrange(1, 4)):
                inner = getattr(outer, scopes).add(schema_url=self.chance.choice(("", "https://example.com/s")))
                inner.scope.SetInParent()
                inner.scope.name, inner.scope.version = self.text(), self.chance.choice(("", "1.2.3"))
                inner.scope.dropped_attributes_count = self.chance.choice((0, 2**32 - 1))
                self.attributes(inner.scope.attributes, self.chance.randrange(3))
                count = min(items, self.chance.randrange(1, ITEMS_A_SCOPE))
                items -= count
                yield inner, count
                if not items:
                    return

    # ---- signals ----

    def traces(self, items):
        request = trace_service_pb2.ExportTraceServiceRequest()
        for scope, count in self.resources(request.resource_spans.add, "scope_spans", items):
            for _ in range(count):
                self._span(scope.spans.add())
        return request

    def _span(self, span):
        chance = self.chance
        span.trace_id, span.span_id = self.ident(16), self.ident(8)
        if chance.random() < 0.7:
            span.parent_span_id = self.ident(8)
        span.name, span.kind = f"GET {self.text()}", chance.randrange(6)
        span.trace_state = chance.choice(("", "vendor=a1,other=b2"))
        span.flags = chance.choice((0, 1, 0x101, 2**32 - 1))
        span.start_time_unix_nano = self.when()
        span.end_time_unix_nano = span.start_time_unix_nano + chance.randrange(10**10)
        span.attributes.add(key="url.full").value.string_value = \
            f"https://example.com/{chance.getrandbits(64):x}?q={chance.getrandbits(64):x}"
        self.attributes(span.attributes, ATTRIBUTES - 1)
        span.dropped_attributes_count = chance.choice((0, 0, 7))
        what = chance.randrange(30)  # a tenth: events, links, or a stack trace
        if what == 0:
            for _ in range(chance.randrange(1, 5)):
                event = span.events.add(time_unix_nano=self.when(), name=self.text(),
                                        dropped_attributes_count=chance.choice((0, 1)))
                self.attributes(event.attributes, chance.randrange(5))
            span.dropped_events_count = chance.choice((0, 2))
        elif what == 1:
            for _ in range(chance.randrange(1, 5)):
                link = span.links.add(trace_id=self.ident(16), span_id=self.ident(8), flags=chance.choice((0, 1)),
                                      trace_state=chance.choice(("", "k=v")),
                                      dropped_attributes_count=chance.choice((0, 5)))
                self.attributes(link.attributes, chance.randrange(5))
            span.dropped_links_count = chance.choice((0, 9))
        elif what == 2:
            event = span.events.add(time_unix_nano=span.end_time_unix_nano, name="exception")
            for key, text in (("exception.type", "java.lang.IllegalStateException"),
                              ("exception.message", self.text()), ("exception.stacktrace", self.stack_trace())):
                event.attributes.add(key=key).value.string_value = text
        if chance.random() < 0.5:
            span.status.SetInParent()
            span.status.code = chance.randrange(3)
            span.status.message = self.text() if span.status.code == 2 else ""

    def logs(self, items):
        request = logs_service_pb2.ExportLogsServiceRequest()
        for scope, count in self.resources(request.resource_logs.add, "scope_logs", items):
            for _ in range(count):
                self._record(scope.log_records.add())
        return request

    def _record(self, record):
        chance = self.chance
        record.time_unix_nano = self.when()
        record.observed_time_unix_nano = chance.choice((0, record.time_unix_nano + chance.randrange(10**9)))
        record.severity_number = chance.randrange(25)
        record.severity_text, record.event_name = chance.choice(("", "WARN")), chance.choice(("", "device.start"))
        if chance.random() < 0.95:
            record.body.SetInParent()
            self.value(record.body)
        if chance.random() < 0.3:
            record.trace_id, record.span_id, record.flags = self.ident(16), self.ident(8), 1
        self.attributes(record.attributes, ATTRIBUTES - 1)
        record.attributes.add(key="last").value.string_value = \
            self.stack_trace() if chance.random() < 0.1 else self.text()
        record.dropped_attributes_count = chance.choice((0, 0, 7))

    def metrics(self, items):
        request = metrics_service_pb2.ExportMetricsServiceRequest()
        kinds = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
        for scope, count in self.resources(request.resource_metrics.add, "scope_metrics", items):
            while count:
                kind = self.chance.choice(kinds)
                metric = scope.metrics.add(name=f"{kind}.{self.text()}", unit=self.chance.choice(("", "ms")),
                                           description=self.text())
                self.attributes(metric.metadata, self.chance.randrange(3))
                data = getattr(metric, kind)
                if kind not in ("gauge", "summary"):
                    data.aggregation_temporality = self.chance.randrange(3)
                if kind == "sum":
                    data.is_monotonic = self.chance.random() < 0.5
                points = min(count, self.chance.randrange(1, 6))
                for _ in range(points):
                    self._point(kind, data.data_points.add())
                count -= points
        return request

    def _point(self, kind, point):
        chance = self.chance
        point.time_unix_nano = self.when()
        point.start_time_unix_nano = chance.choice((0, point.time_unix_nano - 60 * 10**9))
        point.flags = chance.choice((0, 1))
        self.attributes(point.attributes)
        if kind in ("gauge", "sum"):
            if chance.random() < 0.5:
                point.as_int = chance.choice(INTEGERS)
            elif chance.random() < 0.9:
                point.as_double = chance.choice(DOUBLES)
        else:
            point.count = chance.getrandbits(40)
        if kind == "summary":
            point.sum = chance.choice(DOUBLES)
            for i in range(chance.randrange(6)):
                point.quantile_values.add(quantile=i / 5, value=chance.choice(DOUBLES))
            return
        if kind in ("histogram", "exponential_histogram"):
            for name in ("sum", "min", "max"):
                if chance.random() < 0.7:
                    setattr(point, name, chance.choice(DOUBLES))
        if kind == "histogram" and chance.random() < 0.9:
            point.explicit_bounds.extend(sorted(chance.uniform(0, 1e6) for _ in range(15)))
            point.bucket_counts.extend(chance.getrandbits(chance.choice((1, 20, 60))) for _ in range(16))
        if kind == "exponential_histogram":
            point.scale, point.zero_count = chance.randrange(-10, 21), chance.getrandbits(20)
            point.zero_threshold = chance.choice((0.0, 5e-324, 0.25))
            for side in (point.positive, point.negative):
                if chance.random() < 0.8:
                    side.SetInParent()
                    side.offset = chance.choice((0, -2**31, 2**31 - 1, -7))
                    side.bucket_counts.extend(chance.getrandbits(chance.choice((1, 20, 60)))
                                              for _ in range(chance.randrange(160)))
        for _ in range(chance.randrange(3)):
            exemplar = point.exemplars.add(time_unix_nano=self.when())
            if chance.random() < 0.5:
                exemplar.as_int = chance.choice(INTEGERS)
            else:
                exemplar.as_double = chance.choice(DOUBLES)
            if chance.random() < 0.7:
                exemplar.trace_id, exemplar.span_id = self.ident(16), self.ident(8)
            self.attributes(exemplar.filtered_attributes, chance.randrange(4))


# ---- what the tables must hold beside the items themselves ----

def derived(table, message):
    """The columns that are made from others: event time in whole microseconds, the service's name."""
    inner = getattr(message, {"logs": "scope_logs", "spans": "scope_spans"}.get(table, "scope_metrics"))[0]
    if table == "logs":
        nano = inner.log_records[0].time_unix_nano
    elif table == "spans":
        nano = inner.spans[0].start_time_unix_nano
    else:
        metric = inner.metrics[0]
        nano = getattr(metric, metric.WhichOneof("data")).data_points[0].time_unix_nano
    names = [x.value.string_value for x in message.resource.attributes if x.key == "service.name"]
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return {"time": epoch + datetime.timedelta(microseconds=nano // 1000),
            "service_name": names[0] if names else None}
