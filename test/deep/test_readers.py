# SPDX-License-Identifier: Apache-2.0
"""Spark and ClickHouse read the same rows as PyIceberg: every column, every value."""
import json
import subprocess

import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

import deep
import otlp_rows
import sluice

REQUESTS = {"logs": logs_service_pb2.ExportLogsServiceRequest,
            "traces": trace_service_pb2.ExportTraceServiceRequest,
            "metrics": metrics_service_pb2.ExportMetricsServiceRequest}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Messages with every field set, and several files of generated rows."""
    directory = tmp_path_factory.mktemp("readers") / "data"
    server = sluice.Server(directory, "--publish-interval", "100ms").start()
    try:
        for signal, make in REQUESTS.items():
            for variant in range(10):
                message = otlp_rows.fill(make(), variant)
                assert server.post(signal, message.SerializeToString()).code == 200
        for profile in ("wild", "logs", "metrics"):
            subprocess.run([str(sluice.BINARY), "gen", "--profile", profile, "--items", "2000",
                            "--otlp-http-port", str(server.otlp)], check=True, stdout=subprocess.DEVNULL)
        server.wait_published()
        server.stop()
    finally:
        server.kill()
    return directory


@pytest.mark.parametrize("table", otlp_rows.TABLES)
def test_spark_reads_whole_rows(stored, spark, table):
    ours = deep.sorted_rows(sluice.read_pyiceberg(stored, table).to_pylist())
    theirs = sorted(spark.open(sluice=stored).sql(f"select * from sluice.otel.{table}"), key=json.dumps)
    assert theirs == ours and ours


@pytest.mark.parametrize("table", otlp_rows.TABLES)
def test_clickhouse_reads_whole_rows(stored, table):
    ours = deep.sorted_rows(sluice.read_as_clickhouse(stored, table))
    theirs = deep.sorted_rows(sluice.read_clickhouse(stored, table))
    assert theirs == ours and ours


def test_spark_prunes_by_day_and_reads_old_snapshots(stored, spark):
    """Partition values, statistics and the snapshot log mean the same to Spark."""
    spark.open(sluice=stored)
    rows = sluice.read_pyiceberg(stored, "spans").to_pylist()
    day = sorted(r["time"].date() for r in rows)[len(rows) // 2]
    expected = sum(r["time"].date() == day for r in rows)
    within = f"time >= timestamp'{day} 00:00:00' and time < timestamp'{day} 00:00:00' + interval 1 day"
    assert spark.sql(f"select count(*) from sluice.otel.spans where {within}") == [[expected]]
    table = sluice.catalog(stored).load_table("otel.spans")
    for snapshot in table.snapshots():
        total = int(snapshot.summary["total-records"])
        assert spark.sql("select count(*) from sluice.otel.spans version as of "
                         f"{snapshot.snapshot_id}") == [[total]]
    files = spark.sql("select file_path, record_count, file_size_in_bytes from sluice.otel.spans.files")
    assert sum(count for _, count, _ in files) == len(rows)
    (low, high), = spark.sql("select min(readable_metrics.time.lower_bound), "
                             "max(readable_metrics.time.upper_bound) from sluice.otel.spans.files")
    assert (low, high) == (deep.plain(min(r["time"] for r in rows)), deep.plain(max(r["time"] for r in rows)))
