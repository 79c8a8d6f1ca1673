# SPDX-License-Identifier: Apache-2.0
"""The load generator tells the truth about what it measured."""
import contextlib
import http.server
import json
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

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


class Refusing(http.server.BaseHTTPRequestHandler):
    """Puts every request off."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(503)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def refusing_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def gen_at(port, *words):
    return subprocess.run([str(sluice.BINARY), "gen", "--otlp-http-port", str(port), *words],
                          capture_output=True, text=True, timeout=60)


def unused_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.parametrize("producer", [(), ("--producer", "p")], ids=["alone", "producer"])
def test_a_server_that_puts_everything_off_is_no_success(producer):
    """It gave up after 200 tries, and ended with 0."""
    with refusing_server() as port:
        done = gen_at(port, "--items", "1000", *producer)
    assert done.returncode == 75, done.stderr
    assert "0 of 1000 items are stored: given up after 200 retries" in done.stderr


@pytest.mark.parametrize("words", [("--producer", "p", "--retries", "2"), (), ("--items", "18446744073709551615")],
                         ids=" ".join)
def test_no_server_is_no_success(words):
    """With a producer, and where the number of requests overflowed, it ended with 0."""
    done = gen_at(unused_port(), *words)
    assert done.returncode == 74, (done.stdout, done.stderr)
    assert "sluice: 0 of " in done.stderr and done.stdout == ""


@pytest.mark.parametrize("producer", [(), ("--producer", "p", "--retries", "3")], ids=["alone", "producer"])
def test_a_server_that_dies_is_named_as_lost(tmp_path, producer):
    server = sluice.Server(tmp_path / "data").start()
    process = gen(server, "--items", "100000", "--request-items", "10", "--rate", "1000", *producer)
    time.sleep(1)
    server.kill()
    out, told = process.communicate(timeout=60)
    assert process.returncode == 74 and out == "", (out, told)
    assert " of 100000 items are stored" in told and "sluice: 0 of" not in told


def test_force_says_what_was_durable_only(tmp_path):
    """The server answers 200 after its time-out; that was counted as committed."""
    server = sluice.Server(tmp_path / "data", "--otlp-force-timeout", "300ms").start()
    with contextlib.closing(sqlite3.connect(server.directory / "catalog.db", isolation_level=None)) as catalog:
        catalog.execute("BEGIN EXCLUSIVE")
        process = gen(server, "--items", "20", "--request-items", "10", "--commit", "force")
        out, told = process.communicate(timeout=60)
        catalog.execute("ROLLBACK")
    assert process.returncode == 0 and json.loads(out)["uncommitted_requests"] == 2
    assert "2 of 2 requests are durable, but no table had them" in told
    server.wait_published()
    process = gen(server, "--items", "20", "--request-items", "10", "--commit", "force")
    out, told = process.communicate(timeout=60)
    assert process.returncode == 0 and json.loads(out)["uncommitted_requests"] == 0 and told == ""
    server.stop()
