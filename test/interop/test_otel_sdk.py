# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's own Python SDK with its http/protobuf exporters."""
import logging
import sys

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "support"))
import otlp_rows  # noqa: E402
import sluice  # noqa: E402


def test_sdk_delivers_all_three_signals(tmp_path):
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    server = sluice.Server(tmp_path / "data", "--publish-interval", "100ms").start()
    base = f"http://127.0.0.1:{server.otlp}/v1/"
    resource = Resource.create({"service.name": "sdk-test"})

    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(
        OTLPSpanExporter(endpoint=base + "traces", compression=Compression.Gzip)))
    tracer = traces.get_tracer("t", "1.0")
    spans = []
    for i in range(500):
        with tracer.start_as_current_span(f"op-{i % 7}", attributes={"i": i, "tags": ["a", "b"]}) as s:
            s.add_event("hello", {"x": 1.5})
            spans.append(s.get_span_context())
    assert traces.force_flush()

    logs = LoggerProvider(resource=resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=base + "logs")))
    logger = logging.getLogger("sdk-test")
    logger.addHandler(LoggingHandler(logger_provider=logs))
    for i in range(300):
        logger.warning("message %d", i)
    assert logs.force_flush()

    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=base + "metrics"),
                                           export_interval_millis=3600000)
    meter = MeterProvider(metric_readers=[reader], resource=resource)
    counter = meter.get_meter("m").create_counter("requests")
    histogram = meter.get_meter("m").create_histogram("latency")
    for i in range(100):
        counter.add(1, {"route": f"/{i % 3}"})
        histogram.record(i / 10)
    assert meter.force_flush()
    for provider in (traces, logs, meter):
        provider.shutdown()

    server.wait_published()
    server.stop()
    data = tmp_path / "data"
    rows = sluice.read_pyiceberg(data, "spans").to_pylist()
    assert {r["span_id"] for r in rows} == {format(s.span_id, "016x") for s in spans}
    assert {r["service_name"] for r in rows} == {"sdk-test"}
    assert all(len(r["events"]) == 1 and r["_sluice_raw"] is None for r in rows)
    logged = sluice.read_duckdb(data, "logs").to_pylist()
    assert sorted(r["body"] for r in logged) == sorted(f"message {i}" for i in range(300))
    sums = sluice.read_polars(data, "metrics_sum").to_pylist()
    assert {dict(otlp_rows.pairs(r["attributes"]))["route"]: r["as_int"]
            for r in sums if r["name"] == "requests"} == {"/0": 34, "/1": 33, "/2": 33}
    one = [r for r in sluice.read_pyiceberg(data, "metrics_histogram").to_pylist()
           if r["name"] == "latency"][0]  # cumulative: the shutdown sends it again
    assert one["count"] == 100 and sum(one["bucket_counts"]) == 100
