// SPDX-License-Identifier: Apache-2.0

// OpenTelemetry's Go SDK: client BASE none|gzip WITNESS. Sends what test_sdks.py knows of, and writes each
// request that was answered as OTLP/JSON to the file WITNESS.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type witness struct {
	lock sync.Mutex
	file *os.File
}

func (w *witness) note(err error, request object) error {
	must(err)
	text, err := json.Marshal(request)
	must(err)
	w.lock.Lock()
	defer w.lock.Unlock()
	_, err = w.file.Write(append(text, '\n'))
	must(err)
	return nil
}

type spans struct {
	sdktrace.SpanExporter
	*witness
}

func (s spans) ExportSpans(ctx context.Context, items []sdktrace.ReadOnlySpan) error {
	return s.note(s.SpanExporter.ExportSpans(ctx, items), spansJSON(items))
}

type logs struct {
	sdklog.Exporter
	*witness
}

func (l logs) Export(ctx context.Context, items []sdklog.Record) error {
	return l.note(l.Exporter.Export(ctx, items), logsJSON(items))
}

type metrics struct {
	sdkmetric.Exporter
	*witness
}

func (m metrics) Export(ctx context.Context, items *metricdata.ResourceMetrics) error {
	return m.note(m.Exporter.Export(ctx, items), metricsJSON(items))
}

func body(i int) attribute.Value {
	switch i % 4 {
	case 0:
		return attribute.StringValue(fmt.Sprint("body ", i))
	case 1:
		return attribute.MapValue(attribute.String("text", fmt.Sprint("b", i)), attribute.KeyValue{
			Key: "nested", Value: attribute.SliceValue(attribute.Int64Value(1), attribute.Float64Value(2.5),
				attribute.StringValue("three"), attribute.BoolValue(true))})
	case 2:
		return attribute.IntValue(i)
	}
	return attribute.ByteSliceValue([]byte{0, 255, 128})
}

func main() {
	ctx, base, isGzip := context.Background(), os.Args[1], os.Args[2] == "gzip"
	file, err := os.Create(os.Args[3])
	must(err)
	w := &witness{file: file}
	host := strings.TrimPrefix(base, "http://")

	traceOptions := []otlptracehttp.Option{otlptracehttp.WithEndpoint(host), otlptracehttp.WithInsecure()}
	metricOptions := []otlpmetrichttp.Option{otlpmetrichttp.WithEndpoint(host), otlpmetrichttp.WithInsecure()}
	logOptions := []otlploghttp.Option{otlploghttp.WithEndpoint(host), otlploghttp.WithInsecure()}
	if isGzip {
		traceOptions = append(traceOptions, otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
		metricOptions = append(metricOptions, otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression))
		logOptions = append(logOptions, otlploghttp.WithCompression(otlploghttp.GzipCompression))
	}
	toTraces, err := otlptracehttp.New(ctx, traceOptions...)
	must(err)
	toMetrics, err := otlpmetrichttp.New(ctx, metricOptions...)
	must(err)
	toLogs, err := otlploghttp.New(ctx, logOptions...)
	must(err)

	about := resource.NewWithAttributes("https://example.test/schema", attribute.String("service.name", "go-client"),
		attribute.Int("deep.int", 7), attribute.Float64("deep.double", 0.1), attribute.Bool("deep.bool", true),
		attribute.StringSlice("deep.list", []string{"x", "y\u00e9"}))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(spans{toTraces, w}))
	loggers := sdklog.NewLoggerProvider(sdklog.WithResource(about),
		sdklog.WithProcessor(sdklog.NewBatchProcessor(logs{toLogs, w})))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithResource(about),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics{toMetrics, w}, sdkmetric.WithInterval(time.Hour))),
		sdkmetric.WithView(sdkmetric.NewView(sdkmetric.Instrument{Name: "sizes"}, sdkmetric.Stream{
			Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}})))

	tracer := tracers.Tracer("tracer", trace.WithInstrumentationVersion("1.0"))
	logger := loggers.Logger("logger", log.WithInstrumentationVersion("2.0"))
	meter := meters.Meter("meter", metric.WithInstrumentationVersion("3.0"))
	requests, err := meter.Int64Counter("requests", metric.WithUnit("1"), metric.WithDescription("how many"))
	must(err)
	balance, err := meter.Float64UpDownCounter("balance")
	must(err)
	latency, err := meter.Float64Histogram("latency", metric.WithUnit("ms"))
	must(err)
	sizes, err := meter.Float64Histogram("sizes")
	must(err)
	_, err = meter.Float64ObservableGauge("level", metric.WithFloat64Callback(
		func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(-2.5, metric.WithAttributes(attribute.String("tank", "a")))
			return nil
		}))
	must(err)

	traceID, _ := trace.TraceIDFromHex(strings.Repeat("ab", 16))
	spanID, _ := trace.SpanIDFromHex(strings.Repeat("cd", 8))
	state, _ := trace.ParseTraceState("vendor=state")
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID,
		TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	for i := 0; i < 700; i++ {
		parent := ctx
		if i%5 == 0 {
			parent = trace.ContextWithRemoteSpanContext(ctx, remote)
		}
		var links []trace.Link
		if i%10 == 0 {
			links = []trace.Link{{SpanContext: remote, Attributes: []attribute.KeyValue{attribute.String("why", "link")}}}
		}
		inside, span := tracer.Start(parent, fmt.Sprint("op-", i%7), trace.WithLinks(links...),
			trace.WithSpanKind(trace.SpanKind(1+i%5)), trace.WithAttributes(attribute.Int("i", i),
				attribute.Float64("half", float64(i)+0.5), attribute.Bool("even", i%2 == 0),
				attribute.String("text", fmt.Sprint("t", i, "\u20ac")), attribute.StringSlice("tags", []string{"a", "b"}),
				attribute.IntSlice("numbers", []int{1, 2, 3})))
		span.AddEvent("event", trace.WithAttributes(attribute.Int("n", i), attribute.Float64("x", 1.5)))
		if i%7 == 0 {
			span.SetStatus(codes.Error, fmt.Sprint("failed ", i))
		}
		var record log.Record
		record.SetTimestamp(time.Now())
		record.SetSeverity(log.Severity(1 + i%24))
		record.SetSeverityText("level " + strconv.Itoa(i%24))
		record.SetBody(body(i))
		record.AddAttributes(attribute.Int("i", i), attribute.StringSlice("tags", []string{"a", "b"}),
			attribute.KeyValue{Key: "map", Value: attribute.MapValue(attribute.String("k", "v"), attribute.Int("n", 1))})
		if i%4 == 0 {
			record.SetEventName(fmt.Sprint("event-", i))
		}
		if i%3 == 0 {
			logger.Emit(inside, record)
		} else {
			logger.Emit(ctx, record)
		}
		route := func(n int) metric.MeasurementOption {
			return metric.WithAttributes(attribute.String("route", fmt.Sprint("/", i%n)))
		}
		requests.Add(inside, 1, route(3))
		if i%2 == 1 {
			balance.Add(inside, 0.5)
		} else {
			balance.Add(inside, -0.25)
		}
		latency.Record(inside, float64(i)/10, route(2))
		sizes.Record(inside, float64(i*i-1000))
		span.End()
		if i%250 == 249 { // no queue of the SDK overflows
			must(tracers.ForceFlush(ctx))
			must(loggers.ForceFlush(ctx))
		}
	}
	must(tracers.Shutdown(ctx))
	must(loggers.Shutdown(ctx))
	must(meters.Shutdown(ctx))
}
