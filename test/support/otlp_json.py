# SPDX-License-Identifier: Apache-2.0
"""OTLP/JSON, as the Collector's file exporter and SDKs write it, into protobuf messages; and whether tables
hold exactly the items of such messages."""
import base64
import collections
import json

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

import otlp_rows
import sluice

REQUESTS = {"resourceLogs": logs_service_pb2.ExportLogsServiceRequest,
            "resourceSpans": trace_service_pb2.ExportTraceServiceRequest,
            "resourceMetrics": metrics_service_pb2.ExportMetricsServiceRequest}
HEX = ("traceId", "spanId", "parentSpanId")  # OTLP's one departure from protobuf's own JSON


def _without_hex(value):
    if isinstance(value, list):
        return [_without_hex(x) for x in value]
    if not isinstance(value, dict):
        return value
    return {name: base64.b64encode(bytes.fromhex(x)).decode() if name in HEX else _without_hex(x)
            for name, x in value.items()}


def parse(text):
    """One request; a field that OTLP does not know is an error."""
    value = json.loads(text)
    (name,) = value
    return json_format.ParseDict(_without_hex(value), REQUESTS[name]())


def read(path):
    """The requests of a file with one a line; a line still being written is left out."""
    with open(path, encoding="utf-8") as file:
        return [parse(line) for line in file if line.endswith("\n")]


def items(requests):
    """How often each item stands in them, as (table, bytes of the enclosing message)."""
    return collections.Counter((table, message.SerializeToString(deterministic=True))
                               for request in requests
                               for table, message in otlp_rows.explode(request))


def rows(directory):
    """How often each item stands in the tables."""
    found = collections.Counter()
    for _, name in sluice.catalog(directory).list_tables("otel"):
        if name not in otlp_rows.TABLES:
            assert not len(sluice.read_pyiceberg(directory, name)), f"rows in {name}"
            continue
        for row in sluice.read_pyiceberg(directory, name).to_pylist():
            message = otlp_rows.enclose(name, row)
            found[name, message.SerializeToString(deterministic=True)] += 1
    return found


def _shown(difference, like):
    text = []
    for (table, data), count in list(difference.items())[:3]:
        kind = {"logs": "resourceLogs", "spans": "resourceSpans"}.get(table, "resourceMetrics")
        message = next(iter(REQUESTS[kind]().DESCRIPTOR.fields)).message_type._concrete_class
        text.append(f"{count} times in {table}: {message.FromString(data)}")
    return f"{sum(difference.values())} {like}:\n" + "\n".join(text)


def check(found, sent):
    """The tables hold every item, with equal values, and nothing else."""
    assert not sent - found, _shown(sent - found, "items are not in the tables")
    assert not found - sent, _shown(found - sent, "rows were not sent")
    assert sent


def check_at_least(found, sent):
    """As check; but an item may stand more often than it was sent."""
    assert not sent - found, _shown(sent - found, "items are not in the tables")
    others = collections.Counter({item: found[item] for item in found if item not in sent})
    assert not others, _shown(others, "rows were never sent")
    assert sent
