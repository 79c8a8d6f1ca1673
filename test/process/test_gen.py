# SPDX-License-Identifier: Apache-2.0
"""The load generator tells the truth about what it measured."""
import json
import signal
import subprocess
import time

import sluice


def gen(server, *words):
    return subprocess.Popen([str(sluice.BINARY), "gen", "--json", "--otlp-http-port", str(server.otlp), *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_stall_counts_for_all_whom_it_kept_waiting(tmp_path):
    """40 requests, one each 50 ms on one connection, the server stopped for a second among them: counted
    from when they were sent one would be slow, counted from when they were due near half of them."""
    server = sluice.Server(tmp_path / "data").start()
    process = gen(server, "--items", "400", "--request-items", "10", "--connections", "1", "--rate", "200")
    time.sleep(0.5)
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    server.process.send_signal(signal.SIGCONT)
    report = json.loads(process.communicate(timeout=60)[0])
    server.stop()
    assert report["items"] == 400
    assert report["ack_p90_us"] > 500_000 and report["ack_max_us"] < 5_000_000
    assert report["ack_p99_us"] <= report["ack_p999_us"] <= report["ack_max_us"]


def test_distinct_bodies_in_turn(tmp_path):
    """Bodies made beforehand, and a last request that is smaller."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "100ms").start()
    for more in ((), ("--gzip",)):
        process = gen(server, "--profile", "logs", "--items", "1005", "--request-items", "10",
                      "--distinct", "3", *more)
        assert json.loads(process.communicate(timeout=60)[0])["items"] == 1005
    server.wait_published()
    server.stop()
    bodies = sluice.read_pyiceberg(server.directory, "logs")["body"].to_pylist()
    assert len(bodies) == 2010
    refused = gen(server, "--distinct", "3", "--receipts", str(tmp_path / "r"))
    assert "--distinct" in refused.communicate(timeout=20)[1] and refused.returncode == 2
