# SPDX-License-Identifier: Apache-2.0
"""Bad input over real sockets: a clear answer, neighbours stored, memory bounded."""
import gzip
import json
import os
import socket
import threading
import time

import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2

import sluice

MiB = 1 << 20


def log_body(count=1, text="x"):
    request = logs_service_pb2.ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for i in range(count):
        scope.log_records.add(severity_text=f"{text}{i}")
    return request.SerializeToString()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = sluice.Server(tmp_path_factory.mktemp("http") / "data", "--publish-interval", "100ms",
                           "--otlp-body-bytes-max", "1MiB", "--otlp-expanded-bytes-max", "2MiB",
                           "--otlp-workers", "1").start()
    yield server
    assert server.post("logs", log_body()).code == 200, "the server no longer stores"
    server.stop()


def talk(server, data, half_close=False, seconds=5, pieces=False):
    """Sends raw bytes and returns everything that comes back until the peer closes or is silent."""
    with socket.create_connection(("127.0.0.1", server.otlp), timeout=seconds) as s:
        if pieces:
            for i in range(len(data)):
                s.sendall(data[i:i + 1])
        else:
            s.sendall(data)
        if half_close:
            s.shutdown(socket.SHUT_WR)
        received = b""
        s.settimeout(0.7)
        try:
            while part := s.recv(65536):
                received += part
        except TimeoutError:
            pass
    return received


def head(*lines):
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


POST = "POST /v1/logs HTTP/1.1"
TYPE = "Content-Type: application/x-protobuf"

MALFORMED = {
    "bare CR in a header": (b"GET / HTTP/1.1\r\nHost: a\r\nX: \rTransfer-Encoding: chunked\r\n\r\n", 400),
    "bare LF": (b"GET / HTTP/1.1\nHost: a\n\n", 400),
    "folded header": (b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", 400),
    "space before colon": (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "length and chunked": (head(POST, "Host: a", TYPE, "Content-Length: 3",
                                "Transfer-Encoding: chunked"), 400),
    "two lengths": (head(POST, "Host: a", TYPE, "Content-Length: 3", "Content-Length: 3"), 400),
    "signed length": (head(POST, "Host: a", TYPE, "Content-Length: +3"), 400),
    "list of lengths": (head(POST, "Host: a", TYPE, "Content-Length: 3, 3"), 400),
    "unknown coding": (head(POST, "Host: a", TYPE, "Transfer-Encoding: gzip, chunked"), 501),
    "bad chunk": (head(POST, "Host: a", TYPE, "Transfer-Encoding: chunked") + b"zz\r\n", 400),
    "chunk longer than said": (head(POST, "Host: a", TYPE, "Transfer-Encoding: chunked") +
                               b"2\r\nabc\r\n0\r\n\r\n", 400),
    "HTTP/2.0": (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    "no version": (b"GET /\r\n\r\n", 400),
    "control byte in target": (b"GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "control byte in a host": (b"GET http://a\x00b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "unknown expectation": (head(POST, "Host: a", TYPE, "Expect: 42", "Content-Length: 1"), 417),
    "head too large": (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 20000 + b"\r\n\r\n", 431),
    "too many headers": (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 200 + b"\r\n", 431),
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "by byte"])
def test_malformed_requests_are_refused_and_the_connection_closed(server, name, pieces):
    data, code = MALFORMED[name]
    if pieces and len(data) > 5000:
        data, pieces = data[:-4], False  # large ones: the limit, before the head is complete
    received = talk(server, data, pieces=pieces)
    assert received.startswith(b"HTTP/1.1 %d " % code), received[:200]
    assert b"Connection: close" in received


def status_of(received):
    """(code, gRPC code, message) of an answer whose body is a google.rpc.Status."""
    top, _, body = received.partition(b"\r\n\r\n")
    assert b"Content-Type: application/x-protobuf" in top, received
    assert body[0] == 0x08 and body[2] == 0x12 and body[3] == len(body) - 4, body
    return int(top.split()[1]), body[1], body[4:].decode()


@pytest.mark.parametrize("data, code, grpc, word", [
    (head(POST, "Host: a", TYPE, f"Content-Length: {2 * MiB}"), 413, 8, "1048576"),
    (head(POST, "Host: a", f"Content-Length: {2 * MiB}"), 413, 8, "1048576"),
    (head(POST, "Host: a", TYPE, "Transfer-Encoding: chunked") + b"100001\r\n" + b"\0" * 0x100001, 413, 8, "large"),
    (head(POST, "Host: a", TYPE, "Transfer-Encoding: chunked") + b"zz\r\n", 400, 3, "chunk"),
    (head("POST /v1/traces HTTP/1.1", TYPE), 400, 3, "Host"),
    (b"POST /v1/metrics HTTP/1.1\nHost: a\n\n", 400, 3, "line feed"),
    (head(POST, "Host: a", TYPE, "Expect: 42", "Content-Length: 1"), 417, 3, "expectation"),
    (b"POST /v1/logs?a=b HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 20000, 431, 8, "head too large"),
    (head(POST, "Host: a", TYPE, "Transfer-Encoding: gzip, chunked"), 501, 12, "chunked"),
    (head("PUT /v1/logs HTTP/1.1", "Host: a", TYPE, "Content-Length: 1") + b"x", 405, 12, "method"),
], ids=["413", "413 no type", "413 chunked", "400 chunk", "400 head", "400 line", "417", "431", "501", "405"])
def test_refusals_of_the_http_server_are_in_the_encoding_of_otlp(server, data, code, grpc, word):
    """They were plain text, which an SDK cannot read."""
    received = talk(server, data)
    assert status_of(received)[:2] == (code, grpc) and word in status_of(received)[2]
    elsewhere = data.replace(b"/v1/logs", b"/elsewhere", 1).replace(b"/v1/traces", b"/elsewhere").replace(
        b"/v1/metrics", b"/elsewhere")
    assert b"Content-Type: text/plain" in talk(server, elsewhere)


def test_errors_to_json_are_json(server):
    answer = server.post("logs", b"{}", Content_Type="application/json; charset=utf-8")
    assert answer.code == 415 and answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.body) == {"code": 3, "message": "Content-Type must be application/x-protobuf"}


@pytest.mark.parametrize("lines, code", [
    (["Content-Encoding: identity", "Content-Encoding: gzip"], 415),
    (["Content-Encoding: gzip", "Content-Encoding: identity"], 415),
    (["Content-Encoding: gzip", "Content-Encoding: gzip"], 415), (["Content-Encoding: gzip, gzip"], 415),
    (["Content-Encoding: identity, gzip"], 415), (["Content-Encoding: gzip, br"], 415),
    (["Content-Encoding: identity, identity"], 200), (["Content-Encoding: , identity"], 200),
    (["Content-Type: application/json"], 400), (["Content-Type: application/x-protobuf"], 200),
    (["Sluice-Commit: auto", "Sluice-Commit: force"], 400),
    (["Sluice-Producer: a", "Sluice-Producer: b", "Sluice-Sequence: 1"], 400),
    (["Sluice-Producer: a", "Sluice-Sequence: 1", "Sluice-Sequence: 2"], 400)],
    ids=lambda x: x if isinstance(x, int) else " ".join(x))
def test_headers_that_contradict_are_refused(server, lines, code):
    """The first one counted, whatever came after it."""
    body = log_body()
    received = talk(server, head(POST, "Host: a", TYPE, f"Content-Length: {len(body)}", *lines) + body)
    assert received.startswith(b"HTTP/1.1 %d " % code), received


@pytest.mark.parametrize("trailer, code", [
    (b"no colon", 400), (b": no name", 400), (b"na me: x", 400), (b"X : x", 400), (b"X: \x01", 400),
    (b"X: 1\r\nno colon", 400), (b"X: 1\r\nY: a: b", 200), (b"X:", 200)])
def test_chunk_trailers_are_header_fields(server, trailer, code):
    body = log_body()
    chunked = head(POST, "Host: a", TYPE, "Transfer-Encoding: chunked") + \
        b"%x\r\n%s\r\n0\r\n%s\r\n\r\n" % (len(body), body, trailer)
    assert talk(server, chunked).startswith(b"HTTP/1.1 %d " % code)


def test_methods_paths_and_types(server):
    assert server.post("logs", b"", path="/v1/nothing").code == 404
    assert talk(server, head("GET /v1/logs HTTP/1.1", "Host: a")).startswith(b"HTTP/1.1 405 ")
    assert b"Allow: POST" in talk(server, head("DELETE /v1/logs HTTP/1.1", "Host: a"))
    assert server.post("logs", b"{}", Content_Type="application/json").code == 415
    assert server.post("logs", b"", Content_Encoding="br").code == 415
    answer = server.post("logs", b"\xff\xff", )
    assert answer.code == 400 and answer.headers["Content-Type"] == "application/x-protobuf"
    assert b"protobuf" in answer.body and answer.headers["Retry-After"] is None
    answer = server.post("logs", log_body(), path="/v1/logs?commit=sometimes")
    assert answer.code == 400 and b"the modes are auto, wait_for, remote and force" in answer.body
    assert server.post("logs", log_body(), Sluice_Commit="remote").code == 409
    assert server.post("logs", b"").code == 200, "an empty request is a good one"


def test_truncated_protobuf_at_every_byte(server):
    body = log_body(3)
    codes = {server.post("logs", body[:i]).code for i in range(len(body))}
    assert codes == {200, 400}  # only the empty prefix is a message


def test_TA14_too_large_is_permanent_and_stores_nothing(server):
    before = server.status()["ingest"]["items"]
    for size, code in ((MiB, 400), (MiB + 1, 413)):  # zeros are no message, but within the limit
        answer = server.post("logs", b"\x00" * size)
        assert answer.code == code and answer.headers["Retry-After"] is None
    big = log_body(1, "y" * (2 * MiB))
    assert server.post("logs", gzip.compress(big), Content_Encoding="gzip").code == 413
    chunked = head(POST, "Host: a", TYPE, "Transfer-Encoding: chunked") + \
        (b"10000\r\n" + b"\x00" * 65536 + b"\r\n") * 20
    assert talk(server, chunked).startswith(b"HTTP/1.1 413 ")
    assert server.status()["ingest"]["items"] == before


def test_TA15_gzip_bombs_stop_at_the_limit(server):
    bomb = gzip.compress(b"\x00" * (256 * MiB), 9)
    before = server.status()["resident_bytes"]
    for _ in range(4):
        assert server.post("logs", bomb, Content_Encoding="gzip").code == 413
    assert server.status()["resident_bytes"] < before + 64 * MiB


def test_damaged_gzip(server):
    good = gzip.compress(log_body(5))
    for bad in (good[:-1], good[:10], b"", good[:20] + b"\xff" + good[21:], good + b"trailing"):
        assert server.post("logs", bad, Content_Encoding="gzip").code == 400
    assert server.post("logs", good + gzip.compress(log_body(2)), Content_Encoding="gzip").code == 200


def test_pipelined_chunked_and_expecting_requests(server):
    body = log_body()
    one = head(POST, "Host: a", TYPE, f"Content-Length: {len(body)}") + body
    chunked = head(POST, "Host: a", TYPE, "Transfer-Encoding: chunked") + b"".join(
        b"1;x=y\r\n" + body[i:i + 1] + b"\r\n" for i in range(len(body))) + b"0\r\nTrailer: 1\r\n\r\n"
    get = head("GET /nothing HTTP/1.1", "Host: a")
    received = talk(server, one * 10 + chunked + one + get)
    assert received.count(b"HTTP/1.1 200 OK") == 12 and received.count(b"HTTP/1.1 404 ") == 1
    with socket.create_connection(("127.0.0.1", server.otlp), timeout=5) as s:
        s.sendall(head(POST, "Host: a", TYPE, "Expect: 100-continue", f"Content-Length: {len(body)}"))
        assert s.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(body)
        assert s.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_pipelined_requests_follow_each_other(server):
    """The second of two that came in one piece was taken up half a second after the first was answered."""
    body = log_body()
    one = head(POST, "Host: a", TYPE, f"Content-Length: {len(body)}") + body
    with socket.create_connection(("127.0.0.1", server.otlp), timeout=20) as s:
        began = time.monotonic()
        s.sendall(one * 20)
        answers = b""
        while answers.count(b"HTTP/1.1 200 OK") < 20:
            answers += s.recv(65536)
    assert time.monotonic() - began < 5


def test_half_closed_sockets_get_their_answer(server):
    body = log_body()
    request = head(POST, "Host: a", TYPE, f"Content-Length: {len(body)}") + body
    assert talk(server, request, half_close=True).startswith(b"HTTP/1.1 200 OK")
    for part in (request[:-1], request[:60]):  # of the body, of the head
        received = talk(server, part, half_close=True)
        assert received.startswith(b"HTTP/1.1 400 ") and b"ended before it was whole" in received
    chunked = head(POST, "Host: a", TYPE, "Transfer-Encoding: chunked") + b"5\r\nabc"
    assert talk(server, chunked, half_close=True).startswith(b"HTTP/1.1 400 ")
    assert talk(server, b"", half_close=True) == b"" and talk(server, b"\r\n", half_close=True) == b""


def test_what_comes_while_a_request_is_being_answered(server):
    """The next request, the end of the client's half, or a hang-up: each while the handler waits."""
    body = log_body()
    waits = head("POST /v1/logs?commit=force HTTP/1.1", "Host: a", TYPE, f"Content-Length: {len(body)}") + body
    get = head("GET /nothing HTTP/1.1", "Host: a")
    for behind in (b"", get, get * 50, get[:20]):
        with socket.create_connection(("127.0.0.1", server.otlp), timeout=10) as s:
            s.sendall(waits)
            time.sleep(0.03)  # rows are published each 100 ms
            for i in range(0, len(behind), 100):
                s.sendall(behind[i:i + 100])
            time.sleep(0.01)
            s.shutdown(socket.SHUT_WR)
            answers = b""
            while part := s.recv(65536):
                answers += part
        assert answers.startswith(b"HTTP/1.1 200 OK"), answers
        assert answers.count(b"HTTP/1.1 404 ") == behind.count(get)
        assert answers.count(b"HTTP/1.1 400 ") == (behind == get[:20])
    for linger in (b"\1\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\0"):  # a reset; both halves at once
        s = socket.create_connection(("127.0.0.1", server.otlp))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        s.sendall(waits)
        time.sleep(0.03)
        s.close()
    deadline = time.monotonic() + 20
    while not server.get("/metrics")[1].count("\nsluice_http_connections 0\n"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_thousand_idle_and_vanishing_clients_cost_little(server):
    sockets = [socket.create_connection(("127.0.0.1", server.otlp)) for _ in range(500)]
    for i, s in enumerate(sockets):
        s.sendall(b"POST /v1/logs HTTP/1.1\r\nHost: a\r\nX: " + b"a" * (i % 50))
    assert server.post("logs", log_body()).code == 200
    for s in sockets:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        s.close()
    deadline = time.monotonic() + 5
    while "sluice_http_connections 0" not in server.get("/metrics")[1]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_slow_loris_is_cut_off(server):
    with socket.create_connection(("127.0.0.1", server.otlp), timeout=20) as s:
        began = time.monotonic()
        s.sendall(b"POST /v1/logs HTTP/1.1\r\n")
        received = b""
        stop = threading.Event()

        def drip():
            while not stop.wait(0.5):
                try:
                    s.sendall(b"X: 1\r\n")
                except OSError:
                    return
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            received = s.recv(1000)
        finally:
            stop.set()
            thread.join()
        assert received.startswith(b"HTTP/1.1 408 ") and time.monotonic() - began < 15


@pytest.mark.parametrize("sent", [b"POST /v1/logs HTTP/1.1\r\nX: ", b"", b"POST /v1/logs HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\nContent-Length: 100\r\n\r\nx"], ids=["half a head", "nothing", "half a body"])
def test_whoever_only_stands_there_makes_room(tmp_path, sent):
    """Four times as many as there are places: a request behind them does not wait for their time-outs."""
    server = sluice.Server(tmp_path / "data", "--otlp-workers", "1",
                           wrapper=("/bin/sh", "-c", 'ulimit -n 200; exec "$0" "$@"')).start()
    held = []
    for _ in range(400):
        held.append(socket.create_connection(("127.0.0.1", server.otlp), timeout=10))
        held[-1].sendall(sent)
    began = time.monotonic()
    assert server.post("logs", b"", timeout=30).code == 200
    assert time.monotonic() - began < 8
    for s in held:
        s.close()
    server.stop()


def test_memory_of_bodies_is_bounded(tmp_path):
    server = sluice.Server(tmp_path / "data", "--otlp-memory-bytes", "4MiB", "--otlp-workers",
                           "1").start()
    held = []
    refused = 0
    for _ in range(8):
        s = socket.create_connection(("127.0.0.1", server.otlp), timeout=5)
        s.sendall(head(POST, "Host: a", TYPE, f"Content-Length: {MiB}") + b"\x00" * (MiB - 1))
        s.settimeout(0.3)
        try:
            answer = s.recv(1000)
            assert answer.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in answer
            assert status_of(answer)[1] == 14 and "memory" in status_of(answer)[2]
            refused += 1
        except TimeoutError:
            held.append(s)
    assert len(held) == 4 and refused == 4
    for s in held:
        s.close()
    time.sleep(0.2)
    assert server.post("logs", log_body()).code == 200
    server.stop()


def test_a_lone_body_may_be_larger_than_all_memory_for_bodies(tmp_path):
    server = sluice.Server(tmp_path / "data", "--otlp-memory-bytes", "1MiB", "--otlp-workers", "1").start()
    body = log_body(150000)
    assert len(body) > MiB and server.post("logs", body).code == 200
    server.stop()


@pytest.mark.parametrize("part", [1, 200000], ids=["a byte", "some"])
def test_bodies_that_do_not_come_take_nothing_from_others(tmp_path, part):
    """Many times the memory is announced: whoever sends a whole body is served at once, or after the stalled
    ones were cut off."""
    server = sluice.Server(tmp_path / "data", "--otlp-memory-bytes", "4MiB", "--otlp-workers", "1").start()
    held = []
    for _ in range(12):
        held.append(socket.create_connection(("127.0.0.1", server.otlp), timeout=5))
        held[-1].sendall(head(POST, "Host: a", TYPE, f"Content-Length: {4 * MiB}") + b"\x00" * part)
    began = time.monotonic()
    while server.post("logs", log_body(20000)).code != 200:
        assert time.monotonic() - began < 5
        time.sleep(0.1)
    for s in held:
        s.close()
    server.stop()


def test_a_second_server_on_the_same_directory_is_refused(server):
    second = sluice.Server(server.directory)
    second.start(wait=False)
    assert second.process.wait(timeout=20) == 75
    assert f"another sluice process, pid {server.process.pid}, is using {server.directory}" in second.log()


def test_producers_are_idempotent(server):
    body, other = log_body(4, "p"), log_body(1, "q")
    send = lambda n, b: server.post("logs", b, Sluice_Producer="t1", Sluice_Sequence=str(n))  # noqa
    first = send(1, body)
    assert first.code == 200 and send(1, body).receipts == first.receipts
    assert send(1, other).code == 409 and b"producer_mismatch" in send(1, other).body
    for path in ("traces", "metrics"):  # the same bytes mean something else there
        elsewhere = server.post(path, body, Sluice_Producer="t1", Sluice_Sequence="1")
        assert elsewhere.code == 409 and b"producer_mismatch" in elsewhere.body
    gap = send(3, other)
    assert gap.code == 409 and b"expected 2" in gap.body
    assert send(2, b"\xff").code == 400, "a refused body consumes no number (L29)"
    second = send(2, other)
    assert second.code == 200
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(send(3, body))) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert {a.code for a in answers} == {200} and len({tuple(a.receipts) for a in answers}) == 1
    for headers in ({"Sluice_Producer": "x"}, {"Sluice_Sequence": "1"},
                    {"Sluice_Producer": "x", "Sluice_Sequence": "0"},
                    {"Sluice_Producer": "x" * 65, "Sluice_Sequence": "1"},
                    {"Sluice_Producer": "x", "Sluice_Sequence": "1", "Sluice_Session": "y"}):
        assert server.post("logs", body, **headers).code == 400
    server.wait_published()
    rows = sluice.read_pyiceberg(server.directory, "logs").to_pylist()
    stored = sorted(r["severity_text"] for r in rows if (r["severity_text"] or "")[0] in "pq")
    assert stored == sorted(["p0", "p1", "p2", "p3"] * 2 + ["q0"])


def test_force_answers_when_the_rows_are_visible(server):
    answer = server.post("logs", log_body(3, "forced"), path="/v1/logs?commit=force")
    assert answer.code == 200 and answer.headers["Sluice-Boundary"] == "visible"
    texts = sluice.read_pyiceberg(server.directory, "logs")["severity_text"].to_pylist()
    assert {"forced0", "forced1", "forced2"} <= set(texts)


def test_auto_answers_before_the_sync(server):
    answer = server.post("logs", log_body(), Sluice_Commit="auto")
    assert answer.code == 200 and answer.headers["Sluice-Boundary"] == "written"


def test_web_pages_take_no_decisions(server):
    request = head("POST /v1/lanes/clear-halt?table=otel.logs&decision=accept HTTP/1.1", "Host: a",
                   "Origin: http://evil.example")
    with socket.create_connection(("127.0.0.1", server.api), timeout=5) as s:
        s.sendall(request)
        assert s.recv(100).startswith(b"HTTP/1.1 403 ")


def test_health_and_metrics(server):
    assert server.get("/healthz")[0] == 200 and server.get("/readyz") == (200, "ready\n")
    text = server.get("/metrics")[1]
    for name in ("sluice_ingest_requests_total", "sluice_ack_seconds_bucket",
                 "sluice_lane_halted{table=\"otel.logs\"}", "sluice_log_budget_bytes"):
        assert name in text
    assert os.path.exists(server.directory)
