# SPDX-License-Identifier: Apache-2.0
"""Rows of the OTLP tables back into protobuf messages: the inverse of ingest, written from docs/tables.md
alone, so that what comes back can be compared with what was sent."""
import base64

from google.protobuf import json_format
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2


def any_value(text, kind):
    value = common_pb2.AnyValue()
    if kind == "s":
        value.string_value = text
    elif kind == "i":
        value.int_value = int(text)
    elif kind == "d":
        value.double_value = float(text)
    elif kind == "b":
        value.bool_value = {"true": True, "false": False}[text]
    elif kind == "y":
        value.bytes_value = base64.b64decode(text)
    elif kind in "ak":
        json_format.Parse(text, value)
    else:
        assert kind == "n" and text is None, (kind, text)
    return value


def pairs(value):
    """A map as readers hand it over: pairs, a dict, or a list of structs."""
    if value is None:
        return []
    if isinstance(value, dict):
        return list(value.items())
    return [(x["key"], x["value"]) if isinstance(x, dict) else tuple(x) for x in value]


def attributes(to, value, types):
    value = pairs(value)
    assert len(value) == len(types or ""), (value, types)
    for (key, text), kind in zip(value, types or ""):
        pair = to.add(key=key)
        if kind != "n" or text is not None:
            pair.value.CopyFrom(any_value(text, kind))
        else:
            pair.value.SetInParent()


def hex_bytes(text):
    return bytes.fromhex(text) if text else b""


def resource(row):
    import json
    message = resource_pb2.Resource(dropped_attributes_count=row["resource_dropped_attributes_count"])
    attributes(message.attributes, row["resource_attributes"], row["resource_attributes_types"])
    for ref in json.loads(row["resource_entity_refs"] or "[]"):
        message.entity_refs.add(schema_url=ref.get("schemaUrl", ""), type=ref.get("type", ""),
                                id_keys=ref.get("idKeys", []),
                                description_keys=ref.get("descriptionKeys", []))
    return message


def scope(row):
    message = common_pb2.InstrumentationScope(
        name=row["scope_name"] or "", version=row["scope_version"] or "",
        dropped_attributes_count=row["scope_dropped_attributes_count"])
    attributes(message.attributes, row["scope_attributes"], row["scope_attributes_types"])
    return message


def log_record(row):
    message = logs_pb2.LogRecord(
        time_unix_nano=row["time_unix_nano"], observed_time_unix_nano=row["observed_time_unix_nano"],
        severity_number=row["severity_number"], severity_text=row["severity_text"] or "",
        dropped_attributes_count=row["dropped_attributes_count"], flags=row["flags"],
        trace_id=hex_bytes(row["trace_id"]), span_id=hex_bytes(row["span_id"]),
        event_name=row["event_name"] or "")
    if row["body_type"] is not None:
        message.body.CopyFrom(any_value(row["body"], row["body_type"]))
        message.body.SetInParent()
    attributes(message.attributes, row["attributes"], row["attributes_types"])
    return message


def span(row):
    message = trace_pb2.Span(
        trace_id=hex_bytes(row["trace_id"]), span_id=hex_bytes(row["span_id"]),
        parent_span_id=hex_bytes(row["parent_span_id"]), trace_state=row["trace_state"] or "",
        flags=row["flags"], name=row["name"] or "", kind=row["kind"],
        start_time_unix_nano=row["start_time_unix_nano"],
        end_time_unix_nano=row["end_time_unix_nano"],
        dropped_attributes_count=row["dropped_attributes_count"],
        dropped_events_count=row["dropped_events_count"],
        dropped_links_count=row["dropped_links_count"])
    attributes(message.attributes, row["attributes"], row["attributes_types"])
    for event in row["events"]:
        to = message.events.add(time_unix_nano=event["time_unix_nano"], name=event["name"] or "",
                                dropped_attributes_count=event["dropped_attributes_count"])
        attributes(to.attributes, event["attributes"], event["attributes_types"])
    for link in row["links"]:
        to = message.links.add(trace_id=hex_bytes(link["trace_id"]),
                               span_id=hex_bytes(link["span_id"]),
                               trace_state=link["trace_state"] or "", flags=link["flags"],
                               dropped_attributes_count=link["dropped_attributes_count"])
        attributes(to.attributes, link["attributes"], link["attributes_types"])
    if row["status_code"] is not None:
        message.status.code = row["status_code"]
        message.status.message = row["status_message"] or ""
        message.status.SetInParent()
    return message


def exemplars(to, row):
    for exemplar in row["exemplars"]:
        message = to.add(time_unix_nano=exemplar["time_unix_nano"],
                         span_id=hex_bytes(exemplar["span_id"]),
                         trace_id=hex_bytes(exemplar["trace_id"]))
        if exemplar["as_double"] is not None:
            message.as_double = exemplar["as_double"]
        if exemplar["as_int"] is not None:
            message.as_int = exemplar["as_int"]
        attributes(message.filtered_attributes, exemplar["filtered_attributes"],
                   exemplar["filtered_attributes_types"])


def optional(message, row, *names):
    for name in names:
        if row[name] is not None:
            setattr(message, name, row[name])


def metric(table, row):
    message = metrics_pb2.Metric(name=row["name"] or "", description=row["description"] or "",
                                 unit=row["unit"] or "")
    attributes(message.metadata, row["metadata"], row["metadata_types"])
    kind = table.removeprefix("metrics_")
    data = getattr(message, {"exp_histogram": "exponential_histogram"}.get(kind, kind))
    point = data.data_points.add(start_time_unix_nano=row["start_time_unix_nano"],
                                 time_unix_nano=row["time_unix_nano"], flags=row["flags"])
    attributes(point.attributes, row["attributes"], row["attributes_types"])
    if kind in ("gauge", "sum"):
        optional(point, row, "as_double", "as_int")
    if kind in ("histogram", "exp_histogram"):
        point.count = row["count"]
        optional(point, row, "sum", "min", "max")
    if kind == "histogram":
        point.bucket_counts.extend(row["bucket_counts"])
        point.explicit_bounds.extend(row["explicit_bounds"])
    if kind == "exp_histogram":
        point.scale, point.zero_count = row["scale"], row["zero_count"]
        point.zero_threshold = row["zero_threshold"]
        for side in ("positive", "negative"):
            if row[side + "_offset"] is not None:
                getattr(point, side).offset = row[side + "_offset"]
                getattr(point, side).bucket_counts.extend(row[side + "_bucket_counts"])
                getattr(point, side).SetInParent()
    if kind == "summary":
        point.count, point.sum = row["count"], row["sum"]
        for value in row["quantile_values"]:
            point.quantile_values.add(quantile=value["quantile"], value=value["value"])
    else:
        if kind != "summary":
            exemplars(point.exemplars, row)
    if kind in ("sum", "histogram", "exp_histogram"):
        data.aggregation_temporality = row["aggregation_temporality"]
    if kind == "sum":
        data.is_monotonic = row["is_monotonic"]
    return message


TABLES = ("logs", "spans", "metrics_gauge", "metrics_sum", "metrics_histogram",
          "metrics_exp_histogram", "metrics_summary")


def enclose(table, row):
    """The row as a ResourceLogs, ResourceSpans or ResourceMetrics with that one item."""
    if table == "logs":
        message, raw = logs_pb2.ResourceLogs(), logs_pb2.ResourceLogs
    elif table == "spans":
        message, raw = trace_pb2.ResourceSpans(), trace_pb2.ResourceSpans
    else:
        message, raw = metrics_pb2.ResourceMetrics(), metrics_pb2.ResourceMetrics
    if row["_sluice_raw"] is not None:
        return raw.FromString(row["_sluice_raw"])
    message.resource.CopyFrom(resource(row))
    message.resource.SetInParent()
    message.schema_url = row["resource_schema_url"] or ""
    inner = {"logs": "scope_logs", "spans": "scope_spans"}.get(table, "scope_metrics")
    inner = getattr(message, inner).add(schema_url=row["scope_schema_url"] or "")
    inner.scope.CopyFrom(scope(row))
    inner.scope.SetInParent()
    if table == "logs":
        inner.log_records.append(log_record(row))
    elif table == "spans":
        inner.spans.append(span(row))
    else:
        inner.metrics.append(metric(table, row))
    return message


def explode(request):
    """A request as (table, enclosing message with one item), in the order of its items."""
    for field, value in request.ListFields():
        for outer in value:
            yield from _explode_resource(field.name, outer)


def _explode_resource(name, outer):
    inner_name = name.replace("resource_", "scope_")
    item_name = {"resource_logs": "log_records", "resource_spans": "spans"}.get(name, "metrics")
    shell = type(outer)()
    shell.CopyFrom(outer)
    shell.ClearField(inner_name)
    shell.resource.SetInParent()
    for inner in getattr(outer, inner_name):
        inner_shell = type(inner)()
        inner_shell.CopyFrom(inner)
        inner_shell.ClearField(item_name)
        inner_shell.scope.SetInParent()
        for item in getattr(inner, item_name):
            if item_name != "metrics":
                yield ("logs" if item_name == "log_records" else "spans",
                       _wrap(shell, inner_name, inner_shell, item_name, item))
                continue
            kind = item.WhichOneof("data")
            if not kind:
                continue
            table = "metrics_" + {"exponential_histogram": "exp_histogram"}.get(kind, kind)
            for point in getattr(item, kind).data_points:
                one = type(item)()
                one.CopyFrom(item)
                del getattr(one, kind).data_points[:]
                getattr(one, kind).data_points.append(point)
                yield table, _wrap(shell, inner_name, inner_shell, item_name, one)


def _wrap(shell, inner_name, inner_shell, item_name, item):
    outer = type(shell)()
    outer.CopyFrom(shell)
    inner = getattr(outer, inner_name).add()
    inner.CopyFrom(inner_shell)
    getattr(inner, item_name).append(item)
    return outer


def fill(message, variant=0, depth=0, skip=()):
    """Sets every field of a message to something that is not its default, from the descriptor alone: a
    field that a new version of the .proto files adds is set too. Of a oneof, member number `variant`."""
    descriptor = message.DESCRIPTOR
    for field in descriptor.fields:
        if field.name in skip:
            continue
        one = field.containing_oneof
        if one and len(one.fields) > 1:
            members = [x for x in one.fields if x.name not in skip]
            if depth > 6:
                members = [x for x in members if x.message_type is None]
            if members[(variant + depth) % len(members)] is not field:
                continue
        if field.message_type:
            if field.is_repeated:
                for i in range(2):
                    fill(getattr(message, field.name).add(), variant + i, depth + 1, skip)
            else:
                getattr(message, field.name).SetInParent()
                fill(getattr(message, field.name), variant, depth + 1, skip)
            continue
        value = _scalar(field, variant, depth)
        if field.is_repeated:
            getattr(message, field.name).extend([value, _scalar(field, variant + 1, depth)])
        else:
            setattr(message, field.name, value)
    return message


_counter = [0]


def _scalar(field, variant, depth):
    _counter[0] += 1
    n = _counter[0]
    if field.type == field.TYPE_STRING:
        return f"{field.name} \u00e9\u20ac {n}"
    if field.type == field.TYPE_BYTES:
        width = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}.get(field.name, 11)
        return (n * 2654435761 % 2**60).to_bytes(8, "big") * 2 if width == 16 else \
            ((n * 2654435761 % 2**60).to_bytes(8, "big") + b"\x00\xff\x80")[:width]
    if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
        return [0.1, -0.0, 1e300, 5e-324, -1 / 3][n % 5]
    if field.type == field.TYPE_BOOL:
        return True
    if field.type == field.TYPE_ENUM:
        return field.enum_type.values[-1].number
    if field.type in (field.TYPE_INT64, field.TYPE_SFIXED64, field.TYPE_SINT64):
        return [646586703926004764, 2**53 + 1, -2**63, 2**63 - 1, -1][n % 5]
    if field.type in (field.TYPE_FIXED64, field.TYPE_UINT64):
        return [1795882011596044971, 2**63 - 1, 646586703926004764][n % 3]
    if field.type in (field.TYPE_FIXED32, field.TYPE_UINT32):
        return [2**32 - 1, 7, 2**31][n % 3]
    return [2**31 - 1, -2**31, 3][n % 3]
