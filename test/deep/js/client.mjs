// SPDX-License-Identifier: Apache-2.0
// OpenTelemetry's JS SDK: client.mjs BASE none|gzip WITNESS. Sends what test_sdks.py knows of, and writes
// each request that was answered as OTLP/JSON to the file WITNESS.
import { appendFileSync } from 'node:fs';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, ValueType, trace } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { JsonLogsSerializer, JsonMetricsSerializer, JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import { AggregationType, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';

const [base, compression, witness] = process.argv.slice(2);

// An exporter that also says what it sent.
function witnessed(exporter, serializer) {
  const send = exporter.export.bind(exporter);
  exporter.export = (items, done) => send(items, result => {
    if (result.code !== 0) {
      console.error('export failed', result.error);
      process.exitCode = 1;
    } else {
      appendFileSync(witness, Buffer.from(serializer.serializeRequest(items)).toString() + '\n');
    }
    done(result);
  });
  return exporter;
}

const options = signal => ({ url: `${base}/v1/${signal}`, compression });
const resource = resourceFromAttributes({
  'service.name': 'js-client', 'deep.int': 7, 'deep.double': 0.1, 'deep.bool': true, 'deep.list': ['x', 'y\u00e9'],
});
const tracers = new BasicTracerProvider({
  resource,
  spanProcessors: [new BatchSpanProcessor(witnessed(new OTLPTraceExporter(options('traces')), JsonTraceSerializer))],
});
const loggers = new LoggerProvider({
  resource,
  processors: [new BatchLogRecordProcessor(
    { exporter: witnessed(new OTLPLogExporter(options('logs')), JsonLogsSerializer) })],
});
const meters = new MeterProvider({
  resource,
  views: [{ instrumentName: 'sizes', aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } }],
  readers: [new PeriodicExportingMetricReader({
    exporter: witnessed(new OTLPMetricExporter(options('metrics')), JsonMetricsSerializer),
    exportIntervalMillis: 3600000,
  })],
});

const tracer = tracers.getTracer('tracer', '1.0');
const logger = loggers.getLogger('logger', '2.0');
const meter = meters.getMeter('meter', '3.0');
const requests = meter.createCounter('requests', {
  unit: '1', description: 'how many', valueType: ValueType.INT,
});
const balance = meter.createUpDownCounter('balance');
const latency = meter.createHistogram('latency', { unit: 'ms' });
const sizes = meter.createHistogram('sizes');
meter.createObservableGauge('level').addCallback(result => result.observe(-2.5, { tank: 'a' }));

const remote = { traceId: 'ab'.repeat(16), spanId: 'cd'.repeat(8), traceFlags: TraceFlags.SAMPLED, isRemote: true };
const bodies = [
  i => `body ${i}`,
  i => ({ text: `b${i}`, nested: { list: [1, 2.5, 'three', true] } }),
  i => i,
  () => new Uint8Array([0, 255, 128]),
];
const kinds = [SpanKind.INTERNAL, SpanKind.SERVER, SpanKind.CLIENT, SpanKind.PRODUCER, SpanKind.CONSUMER];
for (let i = 0; i < 700; i++) {
  const parent = i % 5 === 0 ? trace.setSpanContext(ROOT_CONTEXT, remote) : ROOT_CONTEXT;
  const span = tracer.startSpan(`op-${i % 7}`, {
    kind: kinds[i % kinds.length],
    attributes: { i, half: i + 0.5, even: i % 2 === 0, text: `t${i}\u20ac`, tags: ['a', 'b'], numbers: [1, 2, 3] },
    links: i % 10 === 0 ? [{ context: remote, attributes: { why: 'link' } }] : [],
  }, parent);
  span.addEvent('event', { n: i, x: 1.5 });
  if (i % 7 === 0) span.setStatus({ code: SpanStatusCode.ERROR, message: `failed ${i}` });
  const inside = trace.setSpan(parent, span);
  logger.emit({
    severityNumber: 1 + i % 24, severityText: `level ${i % 24}`, body: bodies[i % bodies.length](i),
    attributes: { i, tags: ['a', 'b'], map: { k: 'v', n: 1 } }, context: i % 3 === 0 ? inside : ROOT_CONTEXT,
    eventName: i % 4 === 0 ? `event-${i}` : undefined,
  });
  requests.add(1, { route: `/${i % 3}` }, inside);
  balance.add(i % 2 ? 0.5 : -0.25, {}, inside);
  latency.record(i / 10, { route: `/${i % 2}` }, inside);
  sizes.record(i * i - 1000, {}, inside);
  span.end();
  if (i % 250 === 249) { // no queue of the SDK overflows
    await tracers.forceFlush();
    await loggers.forceFlush();
  }
}
await tracers.shutdown();
await loggers.shutdown();
await meters.shutdown();
