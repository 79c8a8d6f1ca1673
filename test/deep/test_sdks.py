# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's SDKs with their http/protobuf exporters: what a client says that it sent is what stands in
the tables, value for value."""
import collections
import subprocess

import pytest

import deep
import otlp_json
import otlp_rows
import sluice

COUNT = 700


def send(language, compression, tmp_path):
    """Runs a client to its end; the heads of its requests, what it says that it sent, and the directory."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "100ms").start()
    relay = deep.Relay(server.otlp)
    witness = tmp_path / "witness.json"
    try:
        done = subprocess.run([*deep.client(language), f"http://127.0.0.1:{relay.port}", compression, witness],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        server.wait_published()
        server.stop()
    finally:
        server.kill()
        relay.end()
    return relay.heads(), otlp_json.read(witness), server.directory


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("language", ["js", "java", "go"])
def test_sdk_delivers_all_three_signals(language, compression, tmp_path):
    heads, sent, directory = send(language, compression, tmp_path)
    assert {path for path, _ in heads} == {"/v1/logs", "/v1/traces", "/v1/metrics"}
    for _, fields in heads:
        assert fields["content-type"] == "application/x-protobuf"
        assert fields.get("content-encoding", "none") == compression
        # Java and Go know the length of a body that they do not compress.
        is_chunked = fields.get("transfer-encoding") == "chunked"
        assert is_chunked == (language == "js" or compression == "gzip"), fields
    otlp_json.check(otlp_json.rows(directory), otlp_json.items(sent))
    check_content(language, directory)


def check_content(language, directory):
    """That the client sent what its source says, so that a witness that says nothing is noticed."""
    def table(name):
        return sluice.read_pyiceberg(directory, name).to_pylist()

    def of(row):
        return dict(otlp_rows.pairs(row["attributes"]))
    spans = {int(of(row)["i"]): row for row in table("spans")}
    assert sorted(spans) == list(range(COUNT))
    for i, row in spans.items():
        got = of(row)
        assert (row["service_name"], row["scope_name"], row["name"], row["kind"]) == \
            (f"{language}-client", "tracer", f"op-{i % 7}", 1 + i % 5)
        assert (got["half"], got["even"], got["text"]) == (f"{i}.5", ("true", "false")[i % 2], f"t{i}\u20ac")
        assert (row["trace_id"], row["parent_span_id"]) == ("ab" * 16, "cd" * 8) if i % 5 == 0 \
            else row["parent_span_id"] is None
        assert [e["name"] for e in row["events"]] == ["event"]
        assert len(row["links"]) == (i % 10 == 0)
        assert (row["status_message"] or None) == (f"failed {i}" if i % 7 == 0 else None)
    logs = {int(of(row)["i"]): row for row in table("logs")}
    assert sorted(logs) == list(range(COUNT))
    for i, row in logs.items():
        assert (row["severity_number"], row["severity_text"]) == (1 + i % 24, f"level {i % 24}")
        assert row["body_type"] == "skiy"[i % 4]
        assert row["body"] == {0: f"body {i}", 1: row["body"], 2: str(i), 3: "AP+A"}[i % 4]
        assert row["span_id"] == (spans[i]["span_id"] if i % 3 == 0 else None)
        assert row["event_name"] == (f"event-{i}" if i % 4 == 0 else None)
    sums = collections.defaultdict(dict)
    for row in table("metrics_sum"):
        sums[row["name"]][of(row).get("route")] = row
    assert {k: r["as_int"] for k, r in sums["requests"].items()} == {"/0": 234, "/1": 233, "/2": 233}
    assert sums["balance"][None]["as_double"] == 87.5 and not sums["balance"][None]["is_monotonic"]
    assert [(row["as_double"], of(row)) for row in table("metrics_gauge")] == [(-2.5, {"tank": "a"})]
    latency = {of(row)["route"]: row for row in table("metrics_histogram")}
    assert {k: (r["count"], r["min"], r["max"], sum(r["bucket_counts"])) for k, r in latency.items()} == \
        {"/0": (350, 0, 69.8, 350), "/1": (350, 0.1, 69.9, 350)}
    sizes, = table("metrics_exp_histogram")
    # OpenTelemetry's histograms take no negative values; how many are left is the SDK's affair.
    assert sizes["count"] == sizes["zero_count"] + sum(sizes["positive_bucket_counts"]) + \
        sum(sizes["negative_bucket_counts"] or [])
