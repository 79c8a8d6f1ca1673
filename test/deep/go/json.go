// SPDX-License-Identifier: Apache-2.0

package main

// The SDK's data as OTLP/JSON, written from its public interfaces and not by its exporters.

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

type object = map[string]any

func spansJSON(items []sdktrace.ReadOnlySpan) object {
	all := []object{}
	for _, x := range items {
		all = append(all, enclose(x.Resource(), x.InstrumentationScope(), "scopeSpans", "spans", spanJSON(x)))
	}
	return object{"resourceSpans": all}
}

func logsJSON(items []sdklog.Record) object {
	all := []object{}
	for i := range items {
		scope := items[i].InstrumentationScope()
		all = append(all, enclose(items[i].Resource(), scope, "scopeLogs", "logRecords", logJSON(&items[i])))
	}
	return object{"resourceLogs": all}
}

func metricsJSON(items *metricdata.ResourceMetrics) object {
	all := []object{}
	for _, scope := range items.ScopeMetrics {
		for _, x := range scope.Metrics {
			all = append(all, enclose(items.Resource, scope.Scope, "scopeMetrics", "metrics", metricJSON(x)))
		}
	}
	return object{"resourceMetrics": all}
}

func enclose(about *resource.Resource, scope instrumentation.Scope, inner, name string, item object) object {
	return object{
		"resource":  object{"attributes": attributes(about.Attributes())},
		"schemaUrl": about.SchemaURL(),
		inner: []object{{
			"scope": object{"name": scope.Name, "version": scope.Version,
				"attributes": attributes(scope.Attributes.ToSlice())},
			"schemaUrl": scope.SchemaURL, name: []object{item},
		}},
	}
}

func spanJSON(x sdktrace.ReadOnlySpan) object {
	events, links := []object{}, []object{}
	for _, e := range x.Events() {
		events = append(events, object{"timeUnixNano": nano(e.Time), "name": e.Name,
			"attributes": attributes(e.Attributes), "droppedAttributesCount": e.DroppedAttributeCount})
	}
	for _, l := range x.Links() {
		// This SDK's exporter leaves out a link's trace state.
		links = append(links, object{"traceId": l.SpanContext.TraceID().String(),
			"spanId": l.SpanContext.SpanID().String(), "flags": flags(l.SpanContext, l.SpanContext), "attributes": attributes(l.Attributes),
			"droppedAttributesCount": l.DroppedAttributeCount})
	}
	span := object{"traceId": x.SpanContext().TraceID().String(), "spanId": x.SpanContext().SpanID().String(),
		"traceState": x.SpanContext().TraceState().String(), "flags": flags(x.SpanContext(), x.Parent()),
		"name": x.Name(), "kind": int(x.SpanKind()), "startTimeUnixNano": nano(x.StartTime()),
		"endTimeUnixNano": nano(x.EndTime()), "attributes": attributes(x.Attributes()),
		"droppedAttributesCount": x.DroppedAttributes(), "events": events, "links": links,
		"status": object{"code": map[codes.Code]int{codes.Unset: 0, codes.Ok: 1, codes.Error: 2}[x.Status().Code],
			"message": x.Status().Description}}
	if x.Parent().IsValid() {
		span["parentSpanId"] = x.Parent().SpanID().String()
	}
	return span
}

func flags(span, parent trace.SpanContext) int {
	bits := int(span.TraceFlags()) | 0x100
	if parent.IsRemote() {
		bits |= 0x200
	}
	return bits
}

func logJSON(x *sdklog.Record) object {
	all := []attribute.KeyValue{}
	x.WalkAttributes(func(pair attribute.KeyValue) bool {
		all = append(all, pair)
		return true
	})
	record := object{"timeUnixNano": nano(x.Timestamp()), "observedTimeUnixNano": nano(x.ObservedTimestamp()),
		"severityNumber": int(x.Severity()), "severityText": x.SeverityText(), "body": value(x.Body()),
		"attributes": attributes(all), "droppedAttributesCount": x.DroppedAttributes(),
		"flags": int(x.TraceFlags()), "eventName": x.EventName()}
	if x.TraceID().IsValid() {
		record["traceId"], record["spanId"] = x.TraceID().String(), x.SpanID().String()
	}
	return record
}

func metricJSON(x metricdata.Metrics) object {
	metric := object{"name": x.Name, "description": x.Description, "unit": x.Unit}
	switch data := x.Data.(type) {
	case metricdata.Gauge[float64]:
		metric["gauge"] = object{"dataPoints": numbers(data.DataPoints, "asDouble")}
	case metricdata.Sum[int64]:
		metric["sum"] = object{"dataPoints": numbers(data.DataPoints, "asInt"), "isMonotonic": data.IsMonotonic,
			"aggregationTemporality": temporality(data.Temporality)}
	case metricdata.Sum[float64]:
		metric["sum"] = object{"dataPoints": numbers(data.DataPoints, "asDouble"), "isMonotonic": data.IsMonotonic,
			"aggregationTemporality": temporality(data.Temporality)}
	case metricdata.Histogram[float64]:
		points := []object{}
		for _, p := range data.DataPoints {
			point := pointJSON(p.StartTime, p.Time, p.Attributes, exemplars(p.Exemplars))
			point["count"], point["sum"] = strconv.FormatUint(p.Count, 10), p.Sum
			extrema(point, p.Min, p.Max)
			point["bucketCounts"], point["explicitBounds"] = counts(p.BucketCounts), p.Bounds
			points = append(points, point)
		}
		metric["histogram"] = object{"dataPoints": points, "aggregationTemporality": temporality(data.Temporality)}
	case metricdata.ExponentialHistogram[float64]:
		points := []object{}
		for _, p := range data.DataPoints {
			point := pointJSON(p.StartTime, p.Time, p.Attributes, exemplars(p.Exemplars))
			point["count"], point["sum"] = strconv.FormatUint(p.Count, 10), p.Sum
			extrema(point, p.Min, p.Max)
			point["scale"], point["zeroCount"] = p.Scale, strconv.FormatUint(p.ZeroCount, 10)
			point["zeroThreshold"] = p.ZeroThreshold
			point["positive"] = object{"offset": p.PositiveBucket.Offset, "bucketCounts": counts(p.PositiveBucket.Counts)}
			point["negative"] = object{"offset": p.NegativeBucket.Offset, "bucketCounts": counts(p.NegativeBucket.Counts)}
			points = append(points, point)
		}
		metric["exponentialHistogram"] = object{"dataPoints": points,
			"aggregationTemporality": temporality(data.Temporality)}
	default:
		panic(fmt.Sprintf("%T", data))
	}
	return metric
}

func numbers[N int64 | float64](points []metricdata.DataPoint[N], name string) []object {
	all := []object{}
	for _, p := range points {
		point := pointJSON(p.StartTime, p.Time, p.Attributes, exemplars(p.Exemplars))
		point[name] = p.Value
		all = append(all, point)
	}
	return all
}

func pointJSON(start, at time.Time, set attribute.Set, exemplars []object) object {
	return object{"startTimeUnixNano": nano(start), "timeUnixNano": nano(at),
		"attributes": attributes(set.ToSlice()), "exemplars": exemplars}
}

func exemplars[N int64 | float64](points []metricdata.Exemplar[N]) []object {
	all := []object{}
	for _, e := range points {
		exemplar := object{"timeUnixNano": nano(e.Time), "filteredAttributes": attributes(e.FilteredAttributes),
			"traceId": fmt.Sprintf("%x", e.TraceID), "spanId": fmt.Sprintf("%x", e.SpanID)}
		if whole, is := any(e.Value).(int64); is {
			exemplar["asInt"] = whole
		} else {
			exemplar["asDouble"] = e.Value
		}
		all = append(all, exemplar)
	}
	return all
}

func extrema(point object, low, high metricdata.Extrema[float64]) {
	if value, is := low.Value(); is {
		point["min"] = value
	}
	if value, is := high.Value(); is {
		point["max"] = value
	}
}

func counts(values []uint64) []string {
	all := []string{}
	for _, value := range values {
		all = append(all, strconv.FormatUint(value, 10))
	}
	return all
}

func temporality(x metricdata.Temporality) int {
	if x == metricdata.DeltaTemporality {
		return 1
	}
	return 2
}

func nano(at time.Time) string {
	if at.IsZero() {
		return "0"
	}
	return strconv.FormatInt(at.UnixNano(), 10)
}

func attributes(pairs []attribute.KeyValue) []object {
	all := []object{}
	for _, pair := range pairs {
		all = append(all, object{"key": string(pair.Key), "value": value(pair.Value)})
	}
	return all
}

func value(x attribute.Value) object {
	switch x.Type() {
	case attribute.BOOL:
		return object{"boolValue": x.AsBool()}
	case attribute.INT64:
		return object{"intValue": strconv.FormatInt(x.AsInt64(), 10)}
	case attribute.FLOAT64:
		return object{"doubleValue": x.AsFloat64()}
	case attribute.STRING:
		return object{"stringValue": x.AsString()}
	case attribute.BYTESLICE:
		return object{"bytesValue": base64.StdEncoding.EncodeToString(x.AsByteSlice())}
	case attribute.MAP:
		return object{"kvlistValue": object{"values": attributes(x.AsMap())}}
	case attribute.SLICE:
		return list(x.AsSlice(), value)
	case attribute.STRINGSLICE:
		return list(x.AsStringSlice(), func(v string) object { return value(attribute.StringValue(v)) })
	case attribute.INT64SLICE:
		return list(x.AsInt64Slice(), func(v int64) object { return value(attribute.Int64Value(v)) })
	case attribute.EMPTY:
		return object{}
	}
	panic(fmt.Sprint("a value of type ", x.Type()))
}

func list[V any](values []V, each func(V) object) object {
	all := []object{}
	for _, v := range values {
		all = append(all, each(v))
	}
	return object{"arrayValue": object{"values": all}}
}
