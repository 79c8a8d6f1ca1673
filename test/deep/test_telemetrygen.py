# SPDX-License-Identifier: Apache-2.0
"""telemetrygen straight to the server: as many items as it was told, with the attributes it was told."""
import collections
import subprocess

import pytest

import deep
import otlp_rows
import sluice

WORKERS, EACH = 3, 1000
TRACES = 200  # of three spans: its queue drops what is above 2,048 spans without a word
ABOUT = ("--service", "gen", "--otlp-attributes", 'deployment.environment="deep"',
         "--otlp-attributes", "replicas=3", "--telemetry-attributes", 'color="red"',
         "--telemetry-attributes", "hot=true")


@pytest.fixture
def generate(tmp_path):
    """generate(signal, words...): what the tables hold of it."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "100ms").start()

    def run(signal, table, *words):
        done = subprocess.run(
            [deep.TELEMETRYGEN, signal, "--otlp-http", "--otlp-insecure", "--rate", "0", "--workers",
             str(WORKERS), "--otlp-endpoint", f"127.0.0.1:{server.otlp}", *ABOUT, *words],
            capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        server.wait_published()
        server.stop()
        rows = sluice.read_pyiceberg(server.directory, table).to_pylist()
        for row in rows:
            assert row["service_name"] == "gen"
            about = dict(zip((k for k, _ in otlp_rows.pairs(row["resource_attributes"])),
                             zip((v for _, v in otlp_rows.pairs(row["resource_attributes"])),
                                 row["resource_attributes_types"])))
            assert about["deployment.environment"] == ("deep", "s") and about["replicas"] == ("3", "i")
            mine = dict(otlp_rows.pairs(row["attributes"]))
            assert (mine["color"], mine["hot"]) == ("red", "true"), mine
        return rows

    yield run
    server.kill()


def test_logs(generate):
    rows = generate("logs", "logs", "--logs", str(EACH), "--body", "h\u00e9llo", "--severity-number", "17",
                    "--severity-text", "Bad", "--trace-id", "ab" * 16, "--span-id", "cd" * 8)
    assert len(rows) == WORKERS * EACH
    assert {(r["body"], r["body_type"], r["severity_number"], r["severity_text"], r["trace_id"],
             r["span_id"]) for r in rows} == {("h\u00e9llo", "s", 17, "Bad", "ab" * 16, "cd" * 8)}


def test_traces(generate):
    rows = generate("traces", "spans", "--traces", str(TRACES), "--child-spans", "2", "--span-links", "1",
                    "--status-code", "Error", "--span-duration", "5ms")
    assert len(rows) == WORKERS * TRACES * 3
    traces = collections.defaultdict(list)
    for row in rows:
        assert row["status_code"] == 2
        length = row["end_time_unix_nano"] - row["start_time_unix_nano"]
        assert length == (10_000_000 if row["parent_span_id"] is None else 5_000_000)
        traces[row["trace_id"]].append(row)
    assert len(traces) == WORKERS * TRACES
    for spans in traces.values():
        root, = [s for s in spans if s["parent_span_id"] is None]
        assert root["name"] == "lets-go"
        assert {s["parent_span_id"] for s in spans} == {None, root["span_id"]}
        assert {s["name"] for s in spans} == {"lets-go", "okey-dokey-0", "okey-dokey-1"}


@pytest.mark.parametrize("kind, table, value", [
    ("Gauge", "metrics_gauge", "as_int"), ("Sum", "metrics_sum", "as_int"),
    ("Histogram", "metrics_histogram", "count"), ("ExponentialHistogram", "metrics_exp_histogram", "count")])
def test_metrics(generate, kind, table, value):
    rows = generate("metrics", table, "--metrics", str(EACH), "--metric-type", kind,
                    "--otlp-metric-name", "level", "--aggregation-temporality", "delta")
    assert len(rows) == WORKERS * EACH
    assert {r["name"] for r in rows} == {"level"}
    assert all(r[value] is not None and r["time_unix_nano"] > 0 for r in rows)
    if table != "metrics_gauge":
        assert {r["aggregation_temporality"] for r in rows} == {1}
    if table == "metrics_histogram":
        assert all(r["count"] == sum(r["bucket_counts"]) for r in rows)
