# SPDX-License-Identifier: Apache-2.0
"""The mirror of a running server: what `remote` promises is there, whatever ends the server or the store."""
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import time

import pytest

import faults
import ledger
import mirror_files
import sluice

STILL = ("--publish-interval", "1h")
SMALL = ("--log-segment-bytes", "1MiB", "--log-seal-after", "300ms", "--publish-interval", "100ms")


@pytest.fixture()
def start(tmp_path, request):
    def start(*flags, name="data"):
        server = sluice.Server(tmp_path / name, "--mirror-url", str(tmp_path / "mirror"), *flags).start()
        request.addfinalizer(server.kill)
        return server
    return start


def remote(server, request, **headers):
    answer = server.post(ledger.SIGNALS[request.table][0], request.body, path="/v1/logs?commit=remote", **headers)
    assert answer.code == 200, (answer.code, answer.body)
    return answer


def metrics(server):
    lines = [line.rsplit(" ", 1) for line in server.get("/metrics")[1].splitlines() if not line.startswith("#")]
    return {name.removeprefix("sluice_"): float(value) for name, value in lines}


def mirror_of(server):
    return server.status()["mirror"]


def is_in(request_body_texts, entries, receipt):
    payload = entries.get((receipt[1], receipt[3]))
    return payload is not None and all(text.encode() in payload for text in request_body_texts)


def texts(request):
    """What can be found again in an uncompressed payload."""
    return [record.body.string_value for record in
            request.message.resource_logs[0].scope_logs[0].log_records]


def test_remote_is_in_the_mirror_when_it_is_answered(start, tmp_path):
    server, book = start(*STILL), ledger.Ledger()
    for i in range(10):
        request = book.new(pad=200)
        answer = remote(server, request)
        assert answer.headers["Sluice-Boundary"] == "remote"
        assert is_in(texts(request), mirror_files.Mirror(tmp_path / "mirror").entries(), answer.receipts[0])
        boundaries = json.loads(server.get("/v1/receipts/" + "/".join(map(str, answer.receipts[0][:4])))[1])["boundaries"]
        assert boundaries["remote"]["reached"] and not boundaries["visible"]["reached"]
        assert abs(boundaries["remote"]["at_ms"] / 1000 - time.time()) < 60
    status = mirror_of(server)
    assert status["state"] == "runs" and status["failures"] == 0 and status["uploads"] >= 10
    assert status["confirmed_seq"] >= answer.receipts[0][3]
    assert "mirror   runs" in server.command("status").stdout
    head = mirror_files.Mirror(tmp_path / "mirror").head
    assert head["incarnation"] == 1 and head["groups"] == 1


def test_many_share_a_copy_and_a_kill_loses_none(start, tmp_path):
    """kill -9 amid answers: each one that was `remote` is in the mirror alone."""
    server, book, stored = start(*STILL), ledger.Ledger(), []

    def send(i):
        request = book.new(pad=100 if i % 7 else 30000)
        try:
            answer = server.post("logs", request.body, path="/v1/logs?commit=remote")
        except OSError:
            return
        if answer.code == 200:
            assert answer.headers["Sluice-Boundary"] == "remote"
            stored.append((request, answer.receipts[0]))
            if len(stored) == 150:
                server.process.kill()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(send, range(400)))
    server.kill()
    shutil.rmtree(tmp_path / "data")
    assert len(stored) >= 150
    entries = mirror_files.Mirror(tmp_path / "mirror").entries()
    missing = [receipt for _, receipt in stored if (receipt[1], receipt[3]) not in entries]
    assert not missing


def test_without_a_mirror_remote_is_refused(tmp_path, request):
    server = sluice.Server(tmp_path / "data", *STILL).start()
    request.addfinalizer(server.kill)
    answer = server.post("logs", ledger.Ledger().new().body, path="/v1/logs?commit=remote")
    assert answer.code == 409 and b"no mirror" in answer.body
    assert "mirror" not in server.status() and not any("mirror" in name for name in metrics(server))


@pytest.fixture()
def outage(tmp_path):
    """Takes the store away and gives it back: a file stands where its directory was."""
    class Outage:
        def begin(self):
            os.rename(tmp_path / "mirror", tmp_path / "mirror.away")
            (tmp_path / "mirror").write_text("")

        def end(self):
            (tmp_path / "mirror").unlink()
            os.rename(tmp_path / "mirror.away", tmp_path / "mirror")
    return Outage()


def test_outage(start, tmp_path, outage):
    server, book = start(*STILL, "--otlp-force-timeout", "1s"), ledger.Ledger()
    remote(server, book.new())
    outage.begin()
    began = time.monotonic()
    answer = remote(server, late := book.new())
    assert answer.headers["Sluice-Boundary"] == "durable" and 0.9 < time.monotonic() - began < 10
    numbered = book.new()
    headers = {"Sluice_Producer": "p", "Sluice_Sequence": "1"}
    answer_504 = server.post("logs", numbered.body, path="/v1/logs?commit=remote", **headers)
    assert answer_504.code == 504 and b"not in the mirror" in answer_504.body
    status, found = mirror_of(server), metrics(server)
    assert status["state"] == "retries" and status["queue_bytes"] > 0 and status["reason"]
    assert status["waiting"] == 0, "who was answered waits no more"
    assert found["mirror_queue_bytes"] > 0 and found["mirror_waiting"] == 0
    assert sum(v for k, v in found.items() if k.startswith("mirror_failures_total")) > 0
    assert "the mirror is behind" in server.log()
    receipt = json.loads(server.get("/v1/receipts/" + "/".join(map(str, answer.receipts[0][:4])))[1])
    assert receipt["boundaries"]["remote"] == {"reached": False}
    assert server.post("logs", book.new().body).code == 200, "others are not concerned"
    assert server.get("/readyz")[0] == 200
    outage.end()
    repeat = server.post("logs", numbered.body, path="/v1/logs?commit=remote", **headers)
    while repeat.code == 504:
        repeat = server.post("logs", numbered.body, path="/v1/logs?commit=remote", **headers)
    assert repeat.code == 200 and repeat.headers["Sluice-Boundary"] == "remote"
    entries = mirror_files.Mirror(tmp_path / "mirror").entries()
    assert is_in(texts(late), entries, answer.receipts[0]) and is_in(texts(numbered), entries, repeat.receipts[0])
    faults.wait_for(lambda: mirror_of(server)["state"] == "runs" and mirror_of(server)["queue_bytes"] == 0)
    assert "the mirror goes on" in server.log()


def test_a_repeat_of_what_a_table_has(start, tmp_path):
    """After a start the mirror passes over what tables have: a producer's repeat was told 504 for ever."""
    server, book = start("--publish-interval", "50ms"), ledger.Ledger()
    request = book.new()
    headers = {"Sluice_Producer": "p", "Sluice_Sequence": "1"}
    first = remote(server, request, **headers)
    assert first.code == 200
    server.wait_published()
    for _ in range(2):
        server.kill()
        server.start()
        began = time.monotonic()
        answer = server.post("logs", request.body, path="/v1/logs?commit=remote", **headers)
        assert answer.code == 200 and answer.headers["Sluice-Boundary"] in ("remote", "visible"), answer
        assert answer.receipts == first.receipts and time.monotonic() - began < 10
    request.receipt, request.attempts = first.receipts[0], 1
    server.stop()
    book.check(server.directory, with_leftovers=True)


def test_a_stop_during_an_outage_answers(start, tmp_path, outage):
    server, book = start(*STILL), ledger.Ledger()
    remote(server, book.new())
    outage.begin()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(remote, server, book.new()) for _ in range(4)]
        faults.wait_for(lambda: mirror_of(server)["waiting"] == 4, what="waiting")
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 8
        assert [w.result().headers["Sluice-Boundary"] for w in waiting] == ["durable"] * 4
    outage.end()


@faults.needs_strace
def test_each_step_of_a_copy_may_fail(start, tmp_path):
    """One failed call after another, of the thread that copies: the answer comes late, and is true."""
    server, book = start(*STILL, "--mirror-uploads", "1"), ledger.Ledger()
    remote(server, book.new())
    trace = faults.Trace(server, tmp_path / "trace", thread="mirror")
    remote(server, book.new())
    trace.end()
    calls = collections.Counter(name for name, _ in trace.calls())
    assert calls["openat"] and calls["rename"] + calls["renameat2"] and calls["fsync"] + calls["fdatasync"]
    failed = 0
    for call, count in calls.items():
        for n in range(1, count + 1):
            trace = faults.Trace(server, tmp_path / "trace", call, f"error=EIO:when={n}", thread="mirror")
            answer = remote(server, request := book.new())
            trace.end()
            failed += trace.injected()
            assert answer.headers["Sluice-Boundary"] == "remote"
            assert is_in(texts(request), mirror_files.Mirror(tmp_path / "mirror").entries(), answer.receipts[0])
    assert failed >= len(calls) and mirror_of(server)["failures"] >= failed - 1


def test_catches_up_after_a_restart(start, tmp_path, outage):
    server, book = start(*STILL), ledger.Ledger()
    remote(server, book.new())
    outage.begin()
    sent = [(r := book.new(pad=20000), server.post("logs", r.body).receipts[0]) for _ in range(100)]
    server.kill()
    outage.end()
    before = sum(p.stat().st_size for p in (tmp_path / "mirror").rglob("*") if p.is_file())
    server.start()
    faults.wait_for(lambda: mirror_of(server)["confirmed_seq"] >= sent[-1][1][3], what="catching up")
    mirror = mirror_files.Mirror(tmp_path / "mirror")
    entries = mirror.entries()
    assert all((receipt[1], receipt[3]) in entries for _, receipt in sent)
    assert mirror_of(server)["uploaded_bytes"] >= sum(len(r.body) for r, _ in sent) / 2
    assert sum(len(o.body) for ranges in mirror.segments.values() for o in ranges) > before
    uploads = mirror_of(server)["uploads"]
    assert uploads < 20, "few and large ones"
    server.stop()
    server.start()
    remote(server, book.new())
    assert mirror_of(server)["uploaded_bytes"] < 100000, "what is there is not copied again"


def test_what_tables_have_goes(start, tmp_path):
    server, book = start(*SMALL), ledger.Ledger()
    for i in range(30):
        remote(server, book.new(pad=2000))
        time.sleep(0.05)
    server.wait_published()

    root = mirror_files.Mirror(tmp_path / "mirror").root
    first = root / "segments" / f"{1:020}"
    faults.wait_for(lambda: metrics(server)["mirror_swept_total"] > 0 and not first.exists(), 40, "sweeping")
    faults.wait_for(lambda: all(any(d.iterdir()) for d in (root / "segments").iterdir()), 40, "empty directories")
    remote(server, book.new())
    mirror = mirror_files.Mirror(tmp_path / "mirror")
    assert 1 <= len(mirror.states) <= 2 and min(mirror.segments) > 1
    assert mirror.states[-1].floor >= 1
    # What is not ours is left alone.
    other = mirror.root / "segments" / "notes.txt"
    other.write_text("keep")
    elsewhere = tmp_path / "mirror" / ("0" * 32) / "segments" / ("0" * 19 + "1")
    elsewhere.mkdir(parents=True)
    (elsewhere / f"{0:016}-{4096:016}.1").write_bytes(b"x" * 4192)
    swept = metrics(server)["mirror_swept_total"]
    for i in range(10):
        server.post("logs", book.new(pad=2000).body)
        time.sleep(0.05)
    faults.wait_for(lambda: metrics(server)["mirror_swept_total"] > swept, 40, "sweeping again")
    assert other.exists() and len(list(elsewhere.iterdir())) == 1


def test_an_old_copy_of_the_data_directory_is_refused(start, tmp_path):
    server, book = start(*STILL), ledger.Ledger()
    remote(server, book.new())
    server.stop()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    server.start()
    kept = [remote(server, book.new(pad=100)).receipts[0] for _ in range(5)]
    server.stop()
    shutil.rmtree(tmp_path / "data")
    os.rename(tmp_path / "copy", tmp_path / "data")
    server.start()
    faults.wait_for(lambda: mirror_of(server)["state"] == "refused", what="the refusal")
    answer = server.post("logs", book.new().body, path="/v1/logs?commit=remote")
    assert answer.code == 409 and b"old copy" in answer.body
    assert server.post("logs", book.new().body).code == 200
    assert metrics(server)["mirror_refused"] == 1 and "nothing is mirrored any more" in server.log()
    entries = mirror_files.Mirror(tmp_path / "mirror").entries()
    assert all((receipt[1], receipt[3]) in entries for receipt in kept)


def test_a_cleared_place_is_filled_again(start, tmp_path):
    server, book = start(*STILL), ledger.Ledger()
    receipts = [remote(server, book.new(pad=100)).receipts[0] for _ in range(5)]
    shutil.rmtree(tmp_path / "mirror")

    def is_back():
        if not list(pathlib.Path(tmp_path / "mirror").glob("*/head")):
            return False
        entries = mirror_files.Mirror(tmp_path / "mirror").entries()
        return all((r[1], r[3]) in entries for r in receipts)
    faults.wait_for(is_back, 30, "the second copy")


def test_doctor_and_settings(start, tmp_path):
    server = start(*STILL)
    words = lambda url: server.command("doctor", "--mirror-url", str(url), "--json").stdout  # noqa: E731
    find = lambda url: [f for f in json.loads(words(url)) if f["check"] == "mirror"]  # noqa: E731
    assert find(tmp_path / "mirror")[0]["is_good"]
    assert "lost with it" in find(tmp_path / "mirror")[1]["detail"]
    assert "publish.warehouse" in find(tmp_path / "mirror")[-1]["detail"] and "lost with it" in server.log()
    assert find(tmp_path / "new")[0]["is_good"] and not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    assert not find(tmp_path / "file")[0]["is_good"] and not find("s3://bucket")[0]["is_good"]
    bad = sluice.Server(tmp_path / "bad", "--mirror-url", "s3://bucket/x")
    with pytest.raises(RuntimeError, match="mirror.url.*only file"):
        bad.start()
