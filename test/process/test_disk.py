# SPDX-License-Identifier: Apache-2.0
"""Full disks and failing syncs under the real binary: what was acknowledged stays, what cannot be kept is
refused in time (L24, L37, TD6)."""
import os
import subprocess
import threading
import time

import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2

import sluice


def body(tag, count=20, size=20000):
    request = logs_service_pb2.ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for i in range(count):
        scope.log_records.add(severity_text=f"{tag}.{i}").body.string_value = os.urandom(size // 2).hex()
    return request.SerializeToString()


def stored(directory):
    return sorted(sluice.read_pyiceberg(directory, "logs")["severity_text"].to_pylist())


@pytest.fixture
def volume(tmp_path):
    mount = tmp_path / "volume"
    mount.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(mount)],
                          capture_output=True, text=True)
    if made.returncode:
        pytest.skip("mounting needs privileges that this machine does not give")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def test_TD6_a_full_volume_refuses_and_recovers_without_a_restart(volume):
    server = sluice.Server(volume / "data", "--log-segment-bytes", "4MiB", "--publish-interval",
                           "1h").start()
    acknowledged = []
    refused = 0
    for n in range(400):
        answer = server.post("logs", body(n))
        if answer.code == 200:
            acknowledged.append(n)
        else:
            assert answer.code == 503 and int(answer.headers["Retry-After"]) >= 1
            refused += 1
            if refused > 5:
                break
    assert refused > 5 and len(acknowledged) > 20
    assert server.get("/readyz")[0] == 503 and server.get("/healthz")[0] == 200
    # A ballast of somebody else, then gone: publication has room again, and acknowledgements resume.
    code = 0
    deadline = time.monotonic() + 30
    forced = server.post("logs", body("f"), path="/v1/logs?commit=force")
    assert forced.code in (200, 503)
    server.stop(expect=None)
    subprocess.run(["mount", "-o", "remount,size=256m", str(volume)], check=True)
    server.start()
    while code != 200 and time.monotonic() < deadline:
        code = server.post("logs", body("after")).code
        time.sleep(0.1)
    assert code == 200
    server.stop()
    got = stored(volume / "data")
    want = [f"{n}.{i}" for n in acknowledged for i in range(20)] + [f"after.{i}" for i in range(20)]
    if forced.code == 200:
        want += [f"f.{i}" for i in range(20)]
    assert got == sorted(want)


def test_others_fill_the_volume_and_free_it_while_we_run(volume):
    server = sluice.Server(volume / "data", "--log-segment-bytes", "4MiB", "--publish-interval",
                           "200ms").start()
    acknowledged = [n for n in range(20) if server.post("logs", body(n)).code == 200]
    ballast = volume / "ballast"
    with open(ballast, "wb") as f:
        try:
            while True:
                f.write(b"\0" * 65536)
                f.flush()
        except OSError:
            pass
    codes = []  # what is preallocated still takes some
    while 503 not in codes and len(codes) < 100:
        codes.append(server.post("logs", body(f"x{len(codes)}")).code)
    assert set(codes) <= {503, 200} and 503 in codes
    acknowledged += [f"x{i}" for i, code in enumerate(codes) if code == 200]
    assert server.process.poll() is None, "the process lives on"
    ballast.unlink()
    deadline = time.monotonic() + 30
    while server.post("logs", body("late", 1)).code != 200:
        assert time.monotonic() < deadline, "writes did not resume"
        time.sleep(0.2)
    server.wait_published()
    server.stop()
    texts = stored(volume / "data")
    assert {f"{n}.{i}" for n in acknowledged for i in range(20)} <= set(texts)
    assert len(texts) == len(set(texts)), "a row stands twice"


@pytest.mark.parametrize("nth", [1, 3, 10])
def test_a_failed_sync_of_the_log_ends_the_process_with_74(tmp_path, nth):
    data = tmp_path / "data"
    sluice.Server(data, "--log-segment-bytes", "4MiB").start().stop()
    server = sluice.Server(data, "--log-segment-bytes", "4MiB", "--publish-interval", "1h", wrapper=(
        # Where a unit is one direct write, that is the sync which fails.
        "strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync,pwritev", "-e",
        f"inject=fdatasync,pwritev:error=EIO:when={80 + nth}+"))
    server.start()
    acknowledged = []
    for n in range(300):
        try:
            answer = server.post("logs", body(n, 3, 50))
        except OSError:
            break
        if answer.code != 200:
            assert answer.code == 503
            break
        acknowledged.append(n)
    assert server.process.wait(timeout=20) == 74, server.log()
    server.log_file.close()
    again = sluice.Server(data, "--log-segment-bytes", "4MiB").start()
    again.stop()
    got = stored(data) if acknowledged else []
    for n in acknowledged:
        assert all(got.count(f"{n}.{i}") == 1 for i in range(3)), n


def test_L24_a_failed_sync_is_answered_to_all_in_flight(tmp_path):
    """The process ended with the answers written by nobody: most clients saw a closed connection."""
    data = tmp_path / "data"
    server = sluice.Server(data, "--log-segment-bytes", "4MiB", "--publish-interval", "1h", wrapper=(
        "strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync,pwritev", "-e",
        "inject=fdatasync,pwritev:error=EIO:when=150+")).start()
    ends, acknowledged = [], []

    def client(k):
        for n in range(1000):
            try:
                answer = server.post("logs", body(f"{k}-{n}", 3, 50))
            except OSError as error:
                ends.append(repr(error))
                return
            if answer.code != 200:
                ends.append(answer.code)
                return
            acknowledged.append(f"{k}-{n}")
    threads = [threading.Thread(target=client, args=(k,)) for k in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert ends == [503] * 16
    assert server.process.wait(timeout=20) == 74, server.log()
    server.log_file.close()
    sluice.Server(data).start().stop()
    got = stored(data) if acknowledged else []
    for tag in acknowledged:
        assert all(got.count(f"{tag}.{i}") == 1 for i in range(3)), tag
