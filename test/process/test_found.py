# SPDX-License-Identifier: Apache-2.0
"""Failures that were found by using and abusing the server; each test failed before its fix."""
import json
import os
import pathlib
import resource
import socket
import sqlite3
import subprocess
import threading
import time

import pyarrow.parquet as pq
import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

import faults
import sluice


def log_body(count=1, text="x"):
    request = logs_service_pb2.ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for i in range(count):
        scope.log_records.add(severity_text=f"{text}{i}")
    return request.SerializeToString()


def test_clients_that_take_every_file_leave_some_to_the_log(tmp_path):
    """Idle connections took the last open file; the log could not seal, and the process ended."""
    server = sluice.Server(tmp_path / "data", "--log-seal-after", "300ms", "--publish-interval",
                           "100ms", wrapper=("/bin/sh", "-c", 'ulimit -n 96; exec "$0" "$@"'))
    server.start()
    assert server.post("logs", log_body()).code == 200
    held = []
    for _ in range(200):
        held.append(socket.create_connection(("127.0.0.1", server.otlp), timeout=5))
    time.sleep(1.5)  # the segment of the first request is due to be sealed
    assert server.process.poll() is None, server.log()
    assert server.get("/healthz")[0] == 200, "the API has connections of its own"
    for s in held:
        s.close()
    assert server.post("logs", log_body(), timeout=20).code == 200
    server.wait_published()
    server.stop()


def test_a_server_without_files_left_does_not_spin(tmp_path):
    """Its listener was taken up again in each round, and found ready again."""
    server = sluice.Server(tmp_path / "data", "--otlp-workers", "1").start()
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used, hard))
    held = [socket.create_connection(("127.0.0.1", server.otlp), timeout=5) for _ in range(3)]

    def cpu():
        words = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    time.sleep(0.5)
    before = cpu()
    time.sleep(2)
    assert cpu() - before < 0.4
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    for s in held:
        s.close()
    assert server.post("logs", log_body(), timeout=20).code == 200
    server.stop()


def test_the_soft_limit_of_files_is_raised(tmp_path):
    server = sluice.Server(tmp_path / "data",
                           wrapper=("/bin/sh", "-c", 'ulimit -S -n 100; exec "$0" "$@"')).start()
    with open(f"/proc/{server.process.pid}/limits") as limits:
        line = next(x for x in limits if x.startswith("Max open files"))
    soft, hard = line.split()[3:5]
    server.stop()
    assert soft == hard


@pytest.mark.parametrize("flags", [
    ("--otlp-workers", "4294967296"),  # was cut to 32 bits: a server without a listener
    ("--otlp-workers", "5000"),
    ("--otlp-force-timeout", "200000000d"),  # overflowed in nanoseconds
    ("--publish-interval", "200000000d"),
    ("--otlp-body-bytes-max", "0"),
    ("--otlp-body-bytes-max", "1000000000000000000"),
    ("--otlp-expanded-bytes-max", "0"),
], ids=" ".join)
def test_values_that_cannot_work_are_refused(tmp_path, flags):
    server = sluice.Server(tmp_path / "data", *flags)
    server.start(wait=False)
    try:
        assert server.process.wait(timeout=10) == 2
    finally:
        server.kill()
    assert flags[0][2:].split("-")[0] in server.log()


def test_log_cat_begins_behind_what_was_reclaimed(tmp_path):
    """It answered "1 to 40 reclaimed" and nothing else on every log older than its retention."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "50ms", "--log-segment-bytes",
                           "1MiB", "--log-keep-committed", "1ms", "--log-seal-after", "50ms").start()
    deadline = time.monotonic() + 30
    while server.command("log", "ls", check=0).stdout.count("0000000000000001.seg"):
        assert server.post("logs", log_body(200)).code == 200
        assert time.monotonic() < deadline, "nothing is reclaimed"
        time.sleep(0.05)
    server.stop()
    server.flags = ()
    server.start()
    seqs = [server.post("logs", log_body(2)).receipts[0][3] for _ in range(3)]
    server.kill()
    lines = [json.loads(x) for x in server.command("log", "cat", "--json",
                                                   check=0).stdout.splitlines()]
    assert all(b["seq"] == a["seq"] + 1 for a, b in zip(lines, lines[1:]))
    assert lines[0]["seq"] > 1 and set(seqs[:2]) <= {x["seq"] for x in lines}, \
        "all but the last write, whose sync no later one proves"


def test_log_commands_beside_a_busy_server_see_no_damage(tmp_path):
    """They read files in motion: "No such file", or damage that was an entry being written."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "50ms", "--log-segment-bytes",
                           "1MiB", "--log-budget-bytes", "8MiB", "--log-keep-committed", "1ms",
                           "--log-seal-after", "100ms").start()
    stop = threading.Event()

    def load(n):
        while not stop.is_set():
            if server.post("logs", log_body(200, f"{n}-")).code != 200:
                time.sleep(0.05)
    threads = [threading.Thread(target=load, args=(n,)) for n in range(3)]
    [t.start() for t in threads]
    try:
        until = time.monotonic() + 6
        while time.monotonic() < until:
            server.command("log", "ls", check=0)
            assert server.command("log", "repair", check=0).stdout.startswith("nothing was changed")
    finally:
        stop.set()
        [t.join() for t in threads]
    server.stop()


def test_a_repeat_at_another_worker_goes_on_when_the_first_is_written(tmp_path):
    """It was looked at again at the worker's next event or half-second tick."""
    server = sluice.Server(tmp_path / "data", "--otlp-workers", "4").start()
    slow = 0
    for n in range(1, 25):
        began = time.monotonic()
        threads = [threading.Thread(target=server.post, args=("logs", log_body(1, f"{n}-")), kwargs={
            "Sluice_Producer": "p", "Sluice_Sequence": str(n)}) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        slow += time.monotonic() - began > 0.4
    server.stop()
    assert slow <= 2


def test_a_forced_repeat_waits_for_the_table_too(tmp_path):
    """After its 504 the same request was answered 200 although no row was visible."""
    server = sluice.Server(tmp_path / "data", "--otlp-force-timeout", "1s", "--publish-interval",
                           "600s").start()
    forced = dict(path="/v1/logs?commit=force", Sluice_Producer="p", Sluice_Sequence="1")
    catalog = sqlite3.connect(server.directory / "catalog.db", isolation_level=None)
    catalog.execute("BEGIN EXCLUSIVE")
    assert server.post("logs", log_body(3), **forced).code == 504
    assert server.post("logs", log_body(3), **forced).code == 504
    plain = {**forced, "path": "/v1/logs"}
    durable = server.post("logs", log_body(3), **plain)
    assert durable.code == 200 and durable.headers["Sluice-Boundary"] == "durable"
    catalog.execute("ROLLBACK")
    deadline = time.monotonic() + 30
    while (answer := server.post("logs", log_body(3), **forced)).code == 504:
        assert time.monotonic() < deadline
    assert answer.code == 200 and answer.headers["Sluice-Boundary"] == "visible"
    assert answer.receipts == durable.receipts
    again = server.post("logs", log_body(3), **forced)
    assert again.code == 200, "its lane is idle: nobody else wakes whoever waits there"
    assert sluice.read_pyiceberg(server.directory, "logs").num_rows == 3
    assert server.status()["ingest"]["repeats"] >= 3
    server.stop()


def test_old_metadata_files_go(tmp_path):
    """Where the table says so. Each commit leaves one behind, and they grow with the table's history."""
    server = sluice.Server(tmp_path / "data").start()
    assert server.post("logs", log_body(1), path="/v1/logs?commit=force").code == 200
    table = sluice.catalog(server.directory).load_table("otel.logs")
    with table.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "3",
                               "write.metadata.delete-after-commit.enabled": "true"})
    for _ in range(6):
        assert server.post("logs", log_body(1), path="/v1/logs?commit=force").code == 200
    kept = {entry.metadata_file for entry in table.refresh().metadata.metadata_log} | {table.metadata_location}
    found = {f"file://{path}" for path in (server.directory / "warehouse/otel/logs/metadata").glob("*.metadata.json")}
    assert len(kept) == 4 and found == kept
    assert table.scan().count() == 7
    server.stop()


def test_busy_lanes_leave_the_thread_to_others(tmp_path):
    """A lane that always had new rows kept its thread, and the interval meant nothing."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "1s", "--publish-threads", "1").start()
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    request.resource_metrics.add().scope_metrics.add().metrics.add(name="s").summary.data_points.add(count=1)
    stop = threading.Event()

    def load():
        while not stop.is_set():
            server.post("logs", log_body(20))
    thread = threading.Thread(target=load)
    thread.start()
    try:
        time.sleep(3)
        before = server.lane("otel.logs")["commits"]
        assert server.post("metrics", request.SerializeToString()).code == 200
        faults.wait_for(lambda: server.lane("otel.metrics_summary")["commits"] == 1, 10, "its commit")
        assert "not halted" in server.command("clear-halt", "otel.logs", "--confirm", "--accept").stderr
        time.sleep(3)
        assert server.lane("otel.logs")["commits"] - before < 20, "one an interval, not one after another"
    finally:
        stop.set()
        thread.join()
    server.wait_published()
    server.stop()


def test_a_histogram_with_too_many_buckets_is_rejected_for_good(tmp_path):
    """It was called out of memory, 503: an exporter sends that again for ever."""
    server = sluice.Server(tmp_path / "data").start()
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    points = request.resource_metrics.add().scope_metrics.add().metrics.add(name="h").histogram
    points.data_points.add(bucket_counts=[1] * 100000, explicit_bounds=list(range(99999)))
    points.data_points.add(bucket_counts=[1, 2], explicit_bounds=[1.0])
    answer = server.post("metrics", request.SerializeToString())
    assert answer.code == 200 and b"65536" in answer.body
    assert server.status()["ingest"]["rejected_items"] == 1
    server.wait_published()
    rows = sluice.read_pyiceberg(server.directory, "metrics_histogram").to_pylist()
    assert [r["bucket_counts"] for r in rows] == [[1, 2]]
    server.stop()


@pytest.mark.parametrize("words", [
    ("publish", "--once"), ("tables", "list"), ("log", "fork", "--confirm"), ("log", "repair"), ("log", "repair", "--confirm"),
    ("clear-halt", "otel.logs", "--confirm", "--accept")], ids=" ".join)
def test_one_job_commands_make_no_data_directory(tmp_path, words):
    """A mistyped --data-dir got an empty log, and `publish --once` reported success."""
    done = subprocess.run([sluice.BINARY, *words, "--data-dir", str(tmp_path / "typo"),
                           "--api-port", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "typo" in done.stderr
    assert not (tmp_path / "typo").exists()


def test_a_large_attribute_that_many_rows_share_stays_readable(tmp_path):
    """It stands once in the log and in the file; a reader that lays it out for every row of a row group ran past
    2 GiB, and with it every scan of the table."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "100ms").start()
    request = logs_service_pb2.ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    resource.resource.attributes.add(key="command").value.string_value = "v" * 200_000
    records = resource.scope_logs.add()
    for i in range(4_000):  # 800 MB, row by row
        records.log_records.add(severity_number=1 + i % 24)
    answer = server.post("logs", request.SerializeToString(), path="/v1/logs?commit=force", timeout=60)
    assert answer.headers["Sluice-Boundary"] == "visible"
    table = sluice.catalog(server.directory).load_table(("otel", "logs"))
    some = table.scan(limit=5, selected_fields=("resource_attributes",)).to_arrow()
    assert [len(v) for row in some["resource_attributes"].to_pylist() for _, v in row] == [200_000] * 5
    file, = (f for f in server.directory.rglob("*.parquet"))
    parts = pq.ParquetFile(file).metadata
    rows = [parts.row_group(i).num_rows for i in range(parts.num_row_groups)]
    assert sum(rows) == 4_000 and max(rows) * 200_000 < 512 << 20 and len(rows) == 2
    server.stop()


@pytest.mark.parametrize("which", ["--otlp-http-port", "--api-port", "--log-port"])
def test_a_taken_port_leaves_no_directory(tmp_path, which):
    """The log was made first, and stayed behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        flags = {"--otlp-http-port": "0", "--api-port": "0", "--log-port": "0", which: str(taken.getsockname()[1])}
        done = subprocess.run([sluice.BINARY, "serve", "--data-dir", str(tmp_path / "new"), *sum(flags.items(), ())],
                              capture_output=True, text=True, timeout=60)
    assert done.returncode == 4 and "something listens there" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:db8::1"])
@pytest.mark.parametrize("port", ["0", "53"])
def test_an_address_of_others_is_named_as_that(tmp_path, address, port):
    """It was asked whether something listens there, and something did."""
    done = subprocess.run([sluice.BINARY, "serve", "--data-dir", str(tmp_path / "new"), "--listen-address", address,
                           "--otlp-http-port", port, "--api-port", "0", "--log-port", "0"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 2 and f"{address}: it is no address of this machine" in done.stderr
    assert not (tmp_path / "new").exists()


def test_doctor_beside_the_server_of_the_directory(tmp_path):
    """It called both ports bad; those of a stranger still are."""
    server = sluice.Server(tmp_path / "data").start()
    ports = ("--otlp-http-port", str(server.otlp), "--api-port", str(server.api),
             "--log-port", str(server.log_port))

    def doctor(directory):
        done = subprocess.run([sluice.BINARY, "doctor", "--json", "--data-dir", str(directory), *ports],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, {x["check"]: (x["is_good"], x["detail"]) for x in json.loads(done.stdout)}
    code, found = doctor(server.directory)
    for name, port in (("otlp port", server.otlp), ("api port", server.api)):
        assert found[name] == (True, f"127.0.0.1 port {port} is in use by the server of this directory, "
                                     f"pid {server.process.pid}")
    assert code == 0
    code, found = doctor(tmp_path / "other")
    assert code == 1 and not found["otlp port"][0] and "something listens there" in found["api port"][1]
    server.stop()


READ_ONLY = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"']


def test_data_that_cannot_be_written_can_be_read(tmp_path):
    """`doctor` found nothing wrong with the warehouse; `tables list` and `gen --verify` could not open the catalog."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "100ms").start()
    assert subprocess.run([sluice.BINARY, "gen", "--otlp-http-port", str(server.otlp), "--profile", "logs", "--items",
                           "100", "--receipts", tmp_path / "r"], capture_output=True).returncode == 0
    server.wait_published()
    server.stop()

    def run(*words):
        return subprocess.run([*READ_ONLY, str(server.directory), sluice.BINARY, *words, "--data-dir",
                               str(server.directory), "--otlp-http-port", "0", "--api-port", "0", "--log-port", "0"],
                              capture_output=True, text=True, timeout=60)
    done = run("tables", "list")
    if done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip("this machine lets nobody mount")
    assert done.returncode == 0 and "otel.logs" in done.stdout.split(), done.stderr
    done = run("gen", "--verify", str(tmp_path / "r"))
    assert done.returncode == 0 and "100 equal" in done.stdout, done.stderr
    done = run("doctor")
    bad = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("BAD")]
    assert done.returncode == 1 and bad == ["data", "warehouse"], done.stdout
