# SPDX-License-Identifier: Apache-2.0
"""GET /v1/receipts: which boundaries a write has passed, and when, held against the table itself."""
import json
import time

import pytest

import faults
import ledger
import sluice

SLOW = ("--publish-interval", "1h", "--publish-threads", "1")


@pytest.fixture()
def server(tmp_path):
    server = sluice.Server(tmp_path / "data", *SLOW).start()
    yield server
    server.kill()


def ask(server, *parts):
    code, body = server.get("/v1/receipts/" + "/".join(map(str, parts)))
    return code, json.loads(body) if code == 200 else body


def told(server, receipt):
    code, answer = ask(server, *receipt[:4])
    assert code == 200, answer
    return answer


def snapshots(server):
    table = sluice.catalog(server.directory).load_table("otel.logs")
    return {s.snapshot_id: s.timestamp_ms for s in table.metadata.snapshots}


def test_boundaries_of_a_write(server):
    book = ledger.Ledger()
    before = int(time.time() * 1000)
    first, second = book.must_send(server, book.new()), book.must_send(server, book.new(rows=5))
    after = int(time.time() * 1000) + 1
    for request, rows in ((first, 3), (second, 5)):
        log, group, term, seq = request.receipt[:4]
        answer = told(server, request.receipt)
        assert (answer["log"], answer["group"], answer["term"], answer["seq"]) == (log, group, term, seq)
        assert answer["table"] == "otel.logs" and answer["rows"] >= rows  # others may share the entry
        boundaries = answer["boundaries"]
        assert before <= boundaries["durable"]["at_ms"] <= after and boundaries["durable"]["reached"]
        assert [boundaries[b] for b in ("remote", "visible", "released")] == [{"reached": False}] * 3
        assert ask(server, group, seq) == (200, answer)
    force = book.new()
    answer = server.post("logs", force.body, path="/v1/logs?commit=force")
    (force.receipt,), force.attempts = answer.receipts, 1
    (snapshot, at_ms), = snapshots(server).items()
    for request in (first, second, force):
        answer = told(server, request.receipt)
        assert answer["snapshot_id"] == snapshot and answer["boundaries"]["visible"] == {"reached": True, "at_ms": at_ms}
    faults.wait_for(lambda: told(server, force.receipt)["boundaries"]["released"]["reached"], what="the ack")
    later = server.post("logs", book.new().body, path="/v1/logs?commit=force").receipts[0]
    known = snapshots(server)
    assert told(server, later)["snapshot_id"] == max(known, key=known.get) != snapshot
    assert told(server, first.receipt)["snapshot_id"] == snapshot
    server.kill()
    server.start()
    assert told(server, first.receipt)["snapshot_id"] == snapshot and told(server, later)["boundaries"]["visible"]["reached"]


def test_what_history_no_longer_tells(server):
    """Others expire the snapshot of the commit: the write is visible, and nobody says since when."""
    book, receipts = ledger.Ledger(), []
    for _ in range(3):
        receipts += server.post("logs", book.new().body, path="/v1/logs?commit=force").receipts
    ledger.Foreign(server.directory).expire()
    kept = snapshots(server)
    for receipt in receipts:
        answer = told(server, receipt)
        assert answer["boundaries"]["visible"]["reached"]
        assert ("snapshot_id" in answer) == ("at_ms" in answer["boundaries"]["visible"])
        assert "snapshot_id" not in answer or answer["snapshot_id"] in kept
    assert "snapshot_id" not in told(server, receipts[0])


def test_what_the_log_no_longer_holds(tmp_path, request):
    small = ("--log-segment-bytes", "1MiB", "--log-keep-committed", "1ms", "--log-seal-after", "50ms",
             "--publish-interval", "50ms")
    server = sluice.Server(tmp_path / "data", *small).start()
    request.addfinalizer(server.kill)
    book = ledger.Ledger()
    first = book.must_send(server, book.new())

    def is_reclaimed():
        book.must_send(server, book.new())
        server.wait_published()
        return "table" not in told(server, first.receipt)
    faults.wait_for(is_reclaimed, what="reclaim")
    answer = told(server, first.receipt)
    assert all(answer["boundaries"][b] == {"reached": True} for b in ("durable", "visible", "released"))


def test_receipts_that_are_none(server):
    book = ledger.Ledger()
    log, group, term, seq = book.must_send(server, book.new()).receipt[:4]
    assert ask(server, "0" * 32, group, term, seq)[0] == 404
    assert "another log" in ask(server, "0" * 32, group, term, seq)[1]
    assert ask(server, log, group, term + 1, seq)[0] == 404 and f"term {term}" in ask(server, log, group, 9, seq)[1]
    for parts in ((0, 0), (0, seq + 100), (1, 1), (0, 2**64 - 1), (4294967295, 1)):
        assert ask(server, *parts)[0] == 404, parts
    for path in ("", "0", "0/", "/0/1", "0/1/", "0/1/2", "a/b", "-1/1", "0/1e3", f"{log}/0/1/2/3", "0/18446744073709551616",
                 "4294967296/1", f"{log}/0/x/1", "%30/1"):
        assert ask(server, path)[0] == (400 if path else 404), path
    assert server.get("/v1/receipts")[0] == 404
