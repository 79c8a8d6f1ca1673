# SPDX-License-Identifier: Apache-2.0
"""Idempotent producers over HTTP (L28-L30, TC11): what a repeat gets, over kills and over the reclaim of every
segment; what a refused body costs; how a producer expires, and what each refusal says to do about it."""
import http.client
import random
import re
import threading
import time

import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

import sluice

FLAGS = ("--publish-interval", "100ms", "--log-segment-bytes", "1MiB", "--log-seal-after", "200ms",
         "--log-keep-committed", "0")


@pytest.fixture()
def server(tmp_path):
    server = sluice.Server(tmp_path / "data", *FLAGS).start()
    yield server
    server.kill()


def field(number, payload):
    length, out = len(payload), bytes([number << 3 | 2])
    while length > 127:
        out, length = out + bytes([length & 127 | 128]), length >> 7
    return out + bytes([length]) + payload


def logs(texts, broken=0):
    records = b"".join(field(2, field(3, text.encode())) for text in texts) + field(2, b"\0\0") * broken
    return field(1, field(2, records)) if records else b""


def metrics(name):
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    scope = request.resource_metrics.add().scope_metrics.add()
    for kind in ("gauge", "sum"):
        getattr(scope.metrics.add(name=f"{name}-{kind}"), kind).data_points.add(as_int=1)
    return request.SerializeToString()


def send(server, producer, sequence, body, signal="logs", **headers):
    return server.post(signal, body, Sluice_Producer=producer, Sluice_Sequence=str(sequence), **headers)


def rejected(answer):
    partial = logs_service_pb2.ExportLogsServiceResponse.FromString(answer.body).partial_success
    return partial.rejected_log_records


def wait_for(what, seconds=20):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def segments(server):
    return {path.name for folder in ("active", "sealed", "committed")
            for path in (server.directory / "log" / folder).glob("*.seg")}


def reclaim_all(server):
    """Until no segment is left of those that are there now."""
    server.wait_published()
    before = segments(server)
    wait_for(lambda: not before & segments(server))


def texts(server):
    rows = sluice.read_pyiceberg(server.directory, "logs").to_pylist()
    return sorted(row["severity_text"] for row in rows)


def test_the_last_eight_answers_outlive_kills_and_their_segments(server):
    sent = {}
    for sequence in range(1, 13):
        body = {0: logs([]), 1: logs([], broken=2)}.get(sequence % 4, logs([f"{sequence}"], broken=sequence % 3))
        answer = send(server, "p", sequence, body)
        assert answer.code == 200, answer.body
        sent[sequence] = body, answer
    send(server, "m", 1, metrics("n"), "metrics")

    def held():
        for sequence, (body, first) in sent.items():
            again = send(server, "p", sequence, body)
            assert again.code == 200
            if sequence <= 4:
                assert again.headers["Sluice-Duplicate"] == "true" and not again.receipts
                continue
            assert "Sluice-Duplicate" not in again.headers
            assert again.receipts == first.receipts and rejected(again) == rejected(first)
        assert len(send(server, "m", 1, metrics("n"), "metrics").receipts) == 2
    held()
    server.kill()
    server.start()
    held()
    for turn in range(2):
        reclaim_all(server)
        held()
        server.kill()
        server.start()
        held()
    assert send(server, "p", 13, logs(["last"])).code == 200
    server.wait_published()
    assert texts(server) == sorted([str(n) for n in range(1, 13) if n % 4 > 1] + ["last"])


def test_a_refused_request_consumes_no_number(server):
    assert send(server, "p", 1, b"\xff").code == 400
    assert send(server, "p", 1, logs(["a"]), Content_Encoding="gzip").code == 400
    assert send(server, "p", 1, logs(["a"]), Content_Encoding="br").code == 415
    assert send(server, "p", 1, logs(["a"])).code == 200
    assert send(server, "p", 2, b"\xff").code == 400
    assert send(server, "p", 2, logs(["b"])).code == 200


def test_each_conflict_says_what_to_do(server):
    first = send(server, "p", 3, logs(["early"]))
    assert first.code == 409 and re.search(rb"producer_gap.*send the next body with Sluice-Sequence: 1\b", first.body)
    assert send(server, "p", 1, logs(["a"])).code == 200
    gap = send(server, "p", 4, logs(["b"]))
    wanted = re.search(rb"producer_gap.*Sluice-Sequence: (\d+)", gap.body)
    assert gap.code == 409 and send(server, "p", int(wanted[1]), logs(["b"])).code == 200
    other = send(server, "p", 2, logs(["c"]))
    wanted = re.search(rb"producer_mismatch.*new Sluice-Sequence, next (\d+)", other.body)
    assert other.code == 409 and send(server, "p", int(wanted[1]), logs(["c"])).code == 200
    server.wait_published()
    assert texts(server) == ["a", "b", "c"]


def test_an_idle_producer_expires_for_good(tmp_path):
    server = sluice.Server(tmp_path / "data", *FLAGS, "--log-keep-producers", "2s").start()
    try:
        assert send(server, "p", 1, logs(["a"])).code == send(server, "p", 2, logs(["b"])).code == 200
        for n in range(30):  # another is busy meanwhile
            assert send(server, "busy", n + 1, logs([f"n{n:02}"])).code == 200
            time.sleep(0.15)
        wait_for(lambda: server.status()["log"]["producers_expired"] == 1)
        for turn in range(3):
            for sequence, body in ((1, "a"), (2, "b"), (3, "c")):
                answer = send(server, "p", sequence, logs([body]))
                assert answer.code == 409 and "Retry-After" not in answer.headers
                assert re.search(rb"producer_expired.*log\.keep_producers.*below 3 were stored.*"
                                 rb"another Sluice-Producer, from Sluice-Sequence: 1", answer.body)
            if turn == 1:
                reclaim_all(server)
            server.kill()
            server.start()
            assert send(server, "busy", 30, logs(["n29"])).code == 200
        assert send(server, "p-2", 1, logs(["c"])).code == 200
        server.wait_published()
        assert texts(server) == ["a", "b", "c"] + [f"n{n:02}" for n in range(30)]
        server.stop()
    finally:
        server.kill()


def test_TC11_number_and_rows_last_together(server):
    """Killed while a producer sends, again and again: what got no answer is sent again under its number, what got
    one gets it again, and in the end each row is there once."""
    chance, sequence, want, lost = random.Random(11), 0, [], 0
    for _ in range(8):
        killer = threading.Timer(0.2 + chance.random() / 2, server.kill)
        killer.start()
        is_alive = True
        while is_alive:
            sequence += 1
            want.append(f"s{sequence:05}")
            body, answers = logs([want[-1]], broken=sequence % 2), []
            while len(answers) < 2:
                try:
                    answers.append(send(server, "p", sequence, body))
                except (OSError, http.client.HTTPException):
                    killer.join()
                    is_alive, lost = False, lost + 1
                    server.start()
            first, again = answers
            assert first.code == again.code == 200 and again.receipts == first.receipts
            assert rejected(again) == rejected(first) == sequence % 2
    assert lost >= 8
    server.wait_published()
    assert texts(server) == want
