// SPDX-License-Identifier: Apache-2.0

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.KeyValue;
import io.opentelemetry.api.common.Value;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.sdk.common.InstrumentationScopeInfo;
import io.opentelemetry.sdk.logs.data.LogRecordData;
import io.opentelemetry.sdk.metrics.data.AggregationTemporality;
import io.opentelemetry.sdk.metrics.data.DoubleExemplarData;
import io.opentelemetry.sdk.metrics.data.DoublePointData;
import io.opentelemetry.sdk.metrics.data.ExemplarData;
import io.opentelemetry.sdk.metrics.data.ExponentialHistogramBuckets;
import io.opentelemetry.sdk.metrics.data.LongExemplarData;
import io.opentelemetry.sdk.metrics.data.LongPointData;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.metrics.data.PointData;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.data.SpanData;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The SDK's data as OTLP/JSON, written from its public interfaces and not by its exporters. */
final class OtlpJson {
    static String spans(Collection<SpanData> items) {
        return request("resourceSpans", "scopeSpans", "spans", items.stream().map(x ->
            new Item(x.getResource(), x.getInstrumentationScopeInfo(), span(x))).toList());
    }

    static String logs(Collection<LogRecordData> items) {
        return request("resourceLogs", "scopeLogs", "logRecords", items.stream().map(x ->
            new Item(x.getResource(), x.getInstrumentationScopeInfo(), log(x))).toList());
    }

    static String metrics(Collection<MetricData> items) {
        return request("resourceMetrics", "scopeMetrics", "metrics", items.stream().map(x ->
            new Item(x.getResource(), x.getInstrumentationScopeInfo(), metric(x))).toList());
    }

    record Item(Resource resource, InstrumentationScopeInfo scope, Object value) {}

    static String request(String outer, String inner, String name, List<Item> items) {
        List<Object> all = new ArrayList<>();
        for (Item item : items)
            all.add(map("resource", map("attributes", attributes(item.resource.getAttributes())),
                "schemaUrl", item.resource.getSchemaUrl(), inner, List.of(map(
                    "scope", map("name", item.scope.getName(), "version", item.scope.getVersion(),
                        "attributes", attributes(item.scope.getAttributes())),
                    "schemaUrl", item.scope.getSchemaUrl(), name, List.of(item.value)))));
        return json(map(outer, all));
    }

    static Object span(SpanData x) {
        SpanContext parent = x.getParentSpanContext();
        return map("traceId", x.getTraceId(), "spanId", x.getSpanId(),
            "parentSpanId", parent.isValid() ? parent.getSpanId() : null,
            "traceState", state(x.getSpanContext().getTraceState()),
            "flags", flags(x.getSpanContext(), parent), "name", x.getName(),
            "kind", x.getKind().ordinal() + 1, "startTimeUnixNano", nano(x.getStartEpochNanos()),
            "endTimeUnixNano", nano(x.getEndEpochNanos()), "attributes", attributes(x.getAttributes()),
            "droppedAttributesCount", x.getTotalAttributeCount() - x.getAttributes().size(),
            "events", x.getEvents().stream().map(e -> map("timeUnixNano", nano(e.getEpochNanos()),
                "name", e.getName(), "attributes", attributes(e.getAttributes()))).toList(),
            "links", x.getLinks().stream().map(l -> map("traceId", l.getSpanContext().getTraceId(),
                "spanId", l.getSpanContext().getSpanId(),
                "traceState", state(l.getSpanContext().getTraceState()),
                "flags", flags(l.getSpanContext(), l.getSpanContext()),
                "attributes", attributes(l.getAttributes()))).toList(),
            "status", map("code", switch (x.getStatus().getStatusCode()) {
                case UNSET -> 0;
                case OK -> 1;
                case ERROR -> 2;
            }, "message", x.getStatus().getDescription()));
    }

    static int flags(SpanContext context, SpanContext parent) {
        return 0x100 | (parent.isRemote() ? 0x200 : 0) | Byte.toUnsignedInt(context.getTraceFlags().asByte());
    }

    static String state(TraceState state) {
        return state.asMap().entrySet().stream().map(e -> e.getKey() + "=" + e.getValue())
            .collect(Collectors.joining(","));
    }

    static Object log(LogRecordData x) {
        SpanContext context = x.getSpanContext();
        return map("timeUnixNano", nano(x.getTimestampEpochNanos()),
            "observedTimeUnixNano", nano(x.getObservedTimestampEpochNanos()),
            "severityNumber", x.getSeverity().getSeverityNumber(), "severityText", x.getSeverityText(),
            "body", value(x.getBodyValue()), "attributes", attributes(x.getAttributes()),
            "eventName", x.getEventName(), "flags", Byte.toUnsignedInt(context.getTraceFlags().asByte()),
            "traceId", context.isValid() ? context.getTraceId() : null,
            "spanId", context.isValid() ? context.getSpanId() : null);
    }

    static Object metric(MetricData x) {
        Map<String, Object> metric = map("name", x.getName(), "description", x.getDescription(),
            "unit", x.getUnit());
        switch (x.getType()) {
            case LONG_GAUGE, DOUBLE_GAUGE ->
                metric.put("gauge", map("dataPoints", x.getData().getPoints().stream().map(OtlpJson::number).toList()));
            case LONG_SUM -> metric.put("sum", sum(x.getLongSumData().getPoints(),
                x.getLongSumData().getAggregationTemporality(), x.getLongSumData().isMonotonic()));
            case DOUBLE_SUM -> metric.put("sum", sum(x.getDoubleSumData().getPoints(),
                x.getDoubleSumData().getAggregationTemporality(), x.getDoubleSumData().isMonotonic()));
            case HISTOGRAM -> metric.put("histogram", map("aggregationTemporality",
                temporality(x.getHistogramData().getAggregationTemporality()), "dataPoints",
                x.getHistogramData().getPoints().stream().map(p -> with(point(p), "count", nano(p.getCount()),
                    "sum", p.getSum(), "min", p.hasMin() ? p.getMin() : null, "max", p.hasMax() ? p.getMax() : null,
                    "bucketCounts", p.getCounts().stream().map(OtlpJson::nano).toList(),
                    "explicitBounds", p.getBoundaries())).toList()));
            case EXPONENTIAL_HISTOGRAM -> metric.put("exponentialHistogram", map("aggregationTemporality",
                temporality(x.getExponentialHistogramData().getAggregationTemporality()), "dataPoints",
                x.getExponentialHistogramData().getPoints().stream().map(p -> with(point(p),
                    "count", nano(p.getCount()), "sum", p.getSum(), "min", p.hasMin() ? p.getMin() : null,
                    "max", p.hasMax() ? p.getMax() : null, "scale", p.getScale(),
                    "zeroCount", nano(p.getZeroCount()), "positive", buckets(p.getPositiveBuckets()),
                    "negative", buckets(p.getNegativeBuckets()))).toList()));
            default -> throw new IllegalStateException(x.toString());
        }
        return metric;
    }

    static Object sum(Collection<? extends PointData> points, AggregationTemporality temporality,
                      boolean isMonotonic) {
        return map("aggregationTemporality", temporality(temporality), "isMonotonic", isMonotonic,
            "dataPoints", points.stream().map(OtlpJson::number).toList());
    }

    static int temporality(AggregationTemporality temporality) {
        return temporality == AggregationTemporality.DELTA ? 1 : 2;
    }

    static Object buckets(ExponentialHistogramBuckets x) {
        return map("offset", x.getOffset(), "bucketCounts", x.getBucketCounts().stream().map(OtlpJson::nano).toList());
    }

    static Object number(PointData x) {
        Map<String, Object> point = point(x);
        return x instanceof LongPointData whole ? with(point, "asInt", nano(whole.getValue()))
            : with(point, "asDouble", ((DoublePointData) x).getValue());
    }

    static Map<String, Object> point(PointData x) {
        return map("startTimeUnixNano", nano(x.getStartEpochNanos()), "timeUnixNano", nano(x.getEpochNanos()),
            "attributes", attributes(x.getAttributes()),
            "exemplars", x.getExemplars().stream().map(OtlpJson::exemplar).toList());
    }

    static Object exemplar(ExemplarData x) {
        SpanContext context = x.getSpanContext();
        Map<String, Object> exemplar = map("timeUnixNano", nano(x.getEpochNanos()),
            "filteredAttributes", attributes(x.getFilteredAttributes()),
            "traceId", context.isValid() ? context.getTraceId() : null,
            "spanId", context.isValid() ? context.getSpanId() : null);
        return x instanceof LongExemplarData whole ? with(exemplar, "asInt", nano(whole.getValue()))
            : with(exemplar, "asDouble", ((DoubleExemplarData) x).getValue());
    }

    static List<Object> attributes(Attributes attributes) {
        List<Object> all = new ArrayList<>();
        attributes.forEach((key, value) -> all.add(map("key", key.getKey(), "value", attribute(key, value))));
        return all;
    }

    static Object attribute(AttributeKey<?> key, Object value) {
        if (value instanceof List<?> list)
            return map("arrayValue", map("values", list.stream().map(x -> attribute(key, x)).toList()));
        if (value instanceof Value<?> any)
            return value(any);
        return value instanceof String text ? map("stringValue", text)
            : value instanceof Boolean bool ? map("boolValue", bool)
            : value instanceof Long whole ? map("intValue", nano(whole)) : map("doubleValue", value);
    }

    static Object value(Value<?> x) {
        if (x == null)
            return null;
        return switch (x.getType()) {
            case STRING -> map("stringValue", x.getValue());
            case BOOLEAN -> map("boolValue", x.getValue());
            case LONG -> map("intValue", nano((Long) x.getValue()));
            case DOUBLE -> map("doubleValue", x.getValue());
            case ARRAY -> map("arrayValue", map("values",
                ((List<?>) x.getValue()).stream().map(v -> value((Value<?>) v)).toList()));
            case KEY_VALUE_LIST -> map("kvlistValue", map("values", ((List<?>) x.getValue()).stream().map(v ->
                map("key", ((KeyValue) v).getKey(), "value", value(((KeyValue) v).getValue()))).toList()));
            case BYTES -> {
                ByteBuffer bytes = (ByteBuffer) x.getValue();
                byte[] copy = new byte[bytes.remaining()];
                bytes.duplicate().get(copy);
                yield map("bytesValue", Base64.getEncoder().encodeToString(copy));
            }
            default -> map();
        };
    }

    static String nano(long value) {
        return Long.toString(value);
    }

    /** Pairs of a name and a value; without a value there is no pair. */
    static Map<String, Object> map(Object... pairs) {
        return with(new LinkedHashMap<>(), pairs);
    }

    static Map<String, Object> with(Map<String, Object> map, Object... pairs) {
        for (int i = 0; i < pairs.length; i += 2)
            if (pairs[i + 1] != null)
                map.put((String) pairs[i], pairs[i + 1]);
        return map;
    }

    static String json(Object x) {
        if (x instanceof Map<?, ?> map)
            return map.entrySet().stream().map(e -> json(e.getKey()) + ":" + json(e.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        if (x instanceof List<?> list)
            return list.stream().map(OtlpJson::json).collect(Collectors.joining(",", "[", "]"));
        if (!(x instanceof String text))
            return String.valueOf(x);
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray())
            out.append(c < ' ' || c == '"' || c == '\\' || c > '~' ? String.format("\\u%04x", (int) c) : c);
        return out.append('"').toString();
    }
}
