// SPDX-License-Identifier: Apache-2.0

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.KeyValue;
import io.opentelemetry.api.common.Value;
import io.opentelemetry.api.logs.Severity;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Context;
import io.opentelemetry.exporter.otlp.http.logs.OtlpHttpLogRecordExporter;
import io.opentelemetry.exporter.otlp.http.metrics.OtlpHttpMetricExporter;
import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.logs.SdkLoggerProvider;
import io.opentelemetry.sdk.logs.data.LogRecordData;
import io.opentelemetry.sdk.logs.export.BatchLogRecordProcessor;
import io.opentelemetry.sdk.logs.export.LogRecordExporter;
import io.opentelemetry.sdk.metrics.Aggregation;
import io.opentelemetry.sdk.metrics.InstrumentSelector;
import io.opentelemetry.sdk.metrics.InstrumentType;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.View;
import io.opentelemetry.sdk.metrics.data.AggregationTemporality;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.metrics.export.MetricExporter;
import io.opentelemetry.sdk.metrics.export.PeriodicMetricReader;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.io.FileWriter;
import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * OpenTelemetry's Java SDK: Client BASE none|gzip WITNESS. Sends what test_sdks.py knows of, and writes each
 * request that was answered as OTLP/JSON to the file WITNESS.
 */
public class Client {
    static FileWriter witness;
    static boolean isGood = true;

    static CompletableResultCode note(CompletableResultCode result, String json) {
        return result.whenComplete(() -> {
            synchronized (Client.class) {
                isGood &= result.isSuccess();
                try {
                    if (result.isSuccess())
                        witness.append(json).append('\n').flush();
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            }
        });
    }

    record Spans(SpanExporter to) implements SpanExporter {
        public CompletableResultCode export(Collection<SpanData> items) {
            return note(to.export(items), OtlpJson.spans(items));
        }

        public CompletableResultCode flush() {
            return to.flush();
        }

        public CompletableResultCode shutdown() {
            return to.shutdown();
        }
    }

    record Logs(LogRecordExporter to) implements LogRecordExporter {
        public CompletableResultCode export(Collection<LogRecordData> items) {
            return note(to.export(items), OtlpJson.logs(items));
        }

        public CompletableResultCode flush() {
            return to.flush();
        }

        public CompletableResultCode shutdown() {
            return to.shutdown();
        }
    }

    record Metrics(MetricExporter to) implements MetricExporter {
        public CompletableResultCode export(Collection<MetricData> items) {
            return note(to.export(items), OtlpJson.metrics(items));
        }

        public AggregationTemporality getAggregationTemporality(InstrumentType type) {
            return to.getAggregationTemporality(type);
        }

        public CompletableResultCode flush() {
            return to.flush();
        }

        public CompletableResultCode shutdown() {
            return to.shutdown();
        }
    }

    static Value<?> body(int i) {
        return switch (i % 4) {
            case 0 -> Value.of("body " + i);
            case 1 -> Value.of(KeyValue.of("text", Value.of("b" + i)),
                KeyValue.of("nested",
                    Value.of(Value.of(1), Value.of(2.5), Value.of("three"), Value.of(true))));
            case 2 -> Value.of(i);
            default -> Value.of(new byte[] {0, (byte) 255, (byte) 128});
        };
    }

    public static void main(String[] args) throws IOException {
        String base = args[0], compression = args[1];
        witness = new FileWriter(args[2]);
        Resource resource = Resource.create(Attributes.builder().put("service.name", "java-client")
            .put("deep.int", 7).put("deep.double", 0.1).put("deep.bool", true)
            .put("deep.list", "x", "y\u00e9").build());
        SdkTracerProvider tracers = SdkTracerProvider.builder().setResource(resource)
            .addSpanProcessor(BatchSpanProcessor.builder(new Spans(OtlpHttpSpanExporter.builder()
                .setEndpoint(base + "/v1/traces").setCompression(compression).build())).build()).build();
        SdkLoggerProvider loggers = SdkLoggerProvider.builder().setResource(resource)
            .addLogRecordProcessor(BatchLogRecordProcessor.builder(new Logs(OtlpHttpLogRecordExporter.builder()
                .setEndpoint(base + "/v1/logs").setCompression(compression).build())).build()).build();
        SdkMeterProvider meters = SdkMeterProvider.builder().setResource(resource)
            .registerView(InstrumentSelector.builder().setName("sizes").build(),
                View.builder().setAggregation(Aggregation.base2ExponentialBucketHistogram()).build())
            .registerMetricReader(PeriodicMetricReader.builder(new Metrics(OtlpHttpMetricExporter.builder()
                .setEndpoint(base + "/v1/metrics").setCompression(compression).build()))
                .setInterval(Duration.ofHours(1)).build()).build();

        var tracer = tracers.tracerBuilder("tracer").setInstrumentationVersion("1.0").build();
        var logger = loggers.loggerBuilder("logger").setInstrumentationVersion("2.0").build();
        var meter = meters.meterBuilder("meter").setInstrumentationVersion("3.0").build();
        var requests = meter.counterBuilder("requests").setUnit("1").setDescription("how many").build();
        var balance = meter.upDownCounterBuilder("balance").ofDoubles().build();
        var latency = meter.histogramBuilder("latency").setUnit("ms").build();
        var sizes = meter.histogramBuilder("sizes").build();
        meter.gaugeBuilder("level").buildWithCallback(
            result -> result.record(-2.5, Attributes.builder().put("tank", "a").build()));
        var remote = SpanContext.createFromRemoteParent("ab".repeat(16), "cd".repeat(8), TraceFlags.getSampled(),
            TraceState.builder().put("vendor", "state").build());
        AttributeKey<String> route = AttributeKey.stringKey("route");
        for (int i = 0; i < 700; i++) {
            Context parent = i % 5 == 0 ? Context.root().with(Span.wrap(remote)) : Context.root();
            var builder = tracer.spanBuilder("op-" + i % 7).setParent(parent)
                .setSpanKind(SpanKind.values()[i % 5]).setAttribute("i", i).setAttribute("half", i + 0.5)
                .setAttribute("even", i % 2 == 0).setAttribute("text", "t" + i + "\u20ac")
                .setAttribute(AttributeKey.stringArrayKey("tags"), List.of("a", "b"))
                .setAttribute(AttributeKey.longArrayKey("numbers"), List.of(1L, 2L, 3L));
            if (i % 10 == 0)
                builder.addLink(remote, Attributes.builder().put("why", "link").build());
            Span span = builder.startSpan();
            span.addEvent("event", Attributes.builder().put("n", i).put("x", 1.5).build());
            if (i % 7 == 0)
                span.setStatus(StatusCode.ERROR, "failed " + i);
            Context inside = parent.with(span);
            var record = logger.logRecordBuilder().setSeverity(Severity.values()[1 + i % 24])
                .setSeverityText("level " + i % 24).setBody(body(i))
                .setAttribute(AttributeKey.longKey("i"), (long) i)
                .setAttribute(AttributeKey.stringArrayKey("tags"), List.of("a", "b"))
                .setContext(i % 3 == 0 ? inside : Context.root())
                .setTimestamp(System.currentTimeMillis(), TimeUnit.MILLISECONDS);
            if (i % 4 == 0)
                record.setEventName("event-" + i);
            record.emit();
            requests.add(1, Attributes.of(route, "/" + i % 3), inside);
            balance.add(i % 2 == 1 ? 0.5 : -0.25, Attributes.empty(), inside);
            latency.record(i / 10.0, Attributes.of(route, "/" + i % 2), inside);
            sizes.record((double) i * i - 1000, Attributes.empty(), inside);
            span.end();
        }
        for (var result : List.of(tracers.shutdown(), loggers.shutdown(), meters.shutdown()))
            isGood &= result.join(30, TimeUnit.SECONDS).isSuccess();
        witness.close();
        System.exit(isGood ? 0 : 1);
    }
}
