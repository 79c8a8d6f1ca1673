# SPDX-License-Identifier: Apache-2.0
"""The log port, by a client written from docs/log_port.md: what it hands out is what stands in the tables, row
for row, whatever becomes of the server (L23, L31-L33)."""
import concurrent.futures
import json
import random
import shutil
import threading
import time

import pytest

import deep
import faults
import ledger
import log_client
import sluice

FLAGS = ("--publish-interval", "50ms")
SMALL = ("--log-segment-bytes", "1MiB", "--log-seal-after", "200ms", "--log-keep-committed", "0")


def started(directory, request, *flags):
    server = sluice.Server(directory, *FLAGS, *flags)
    server.fixed = deep.free_ports(2)
    server.flags += ("--log-port", str(server.fixed[0]), "--otlp-http-port", str(server.fixed[1]))
    request.addfinalizer(lambda: server.kill() if server.process else None)
    return server.start()


@pytest.fixture()
def server(tmp_path, request):
    server = started(tmp_path / "data", request)
    yield server
    if server.process.poll() is None:
        server.stop()


def send(server, count, table="logs", rows=3, pad=0):
    book = ledger.Ledger()
    return [book.must_send(server, book.new(table, rows=rows, pad=pad)) for _ in range(count)]


def end_of(server):
    return log_client.Port(server.log_port).json("GET", "/v1/log")["groups"][0]["end"]["seq"]


def place(row):
    return row["_sluice_log"], row["_sluice_group"], row["_sluice_seq"], row["_sluice_index"]


def refused(status, code, call, *args, **more):
    with pytest.raises(log_client.Refused) as caught:
        call(*args, **more)
    assert (caught.value.status, caught.value.code) == (status, code), caught.value.body
    return caught.value.body


def check_rows(found, directory, table="logs"):
    """In order, each once, and in every column what the table has."""
    places = [place(row) for row in found]
    assert places == sorted(set(places)), "rows out of order, or twice"
    expected = {place(row): row for row in sluice.read_pyiceberg(directory, table).to_pylist()}
    assert len(expected) == len(found), (len(expected), len(found))
    for row in found:
        assert row == expected[place(row)], place(row)


# ---- pages ----

def test_pages_have_the_rows_of_the_table(server):
    requests = send(server, 20, rows=7) + send(server, 3, "spans")
    port = log_client.Port(server.log_port)
    whole = port.page("otel.logs", 0)
    assert len(whole.rows) == 140 and whole.cursor == whole.end
    for more in ({"max_rows": 1}, {"max_bytes": 1}, {"max_rows": 20, "compression": "zstd"}, {"compression": "lz4"}):
        rows, cursor, pages = [], "0", 0
        while True:
            page = port.page("otel.logs", cursor, **more)
            if not page.rows:
                break
            rows, cursor, pages = rows + page.rows, page.cursor, pages + 1
        assert rows == whole.rows
        assert pages == (1 if "max_rows" not in more and "max_bytes" not in more else
                         len({r["_sluice_seq"] for r in rows}) if 1 in more.values() else pages)
    # Within an entry.
    for row in random.sample(whole.rows, 10):
        rest = port.page("otel.logs", f"{row['_sluice_seq']}.{row['_sluice_index']}").rows
        assert rest == whole.rows[whole.rows.index(row) + 1:]
    seen = {(r["_sluice_log"], r["_sluice_seq"], r["_sluice_index"]) for r in whole.rows}
    for one in requests[:20]:
        log, _, _, seq, first, rows = one.receipt
        assert {(log, seq, first + i) for i in range(rows)} <= seen
    server.stop()
    check_rows(whole.rows, server.directory)


def test_an_idle_tables_cursor_moves_on(server):
    """Else what others write would be reclaimed behind it, and it would look like a loss."""
    send(server, 2, "spans")
    port = log_client.Port(server.log_port)
    page = port.page("otel.logs", 0)
    assert not page.rows and page.cursor == page.end and int(page.cursor.split("/")[3]) >= 10
    began = time.monotonic()
    page = port.page("otel.logs", page.cursor, wait_ms=700)
    assert not page.rows and 0.6 < time.monotonic() - began < 3


def test_long_polls_hold_nobody_up(server):
    port = log_client.Port(server.log_port)
    start = port.page("otel.logs", 0).cursor

    def wait(_):
        return log_client.Port(server.log_port).page("otel.logs", start, wait_ms=30000)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        waits = [pool.submit(wait, i) for i in range(100)]
        faults.wait_for(lambda: "sluice_export_waiting 100\n" in server.get("/metrics")[1], what="100 long polls")
        began = time.monotonic()
        assert not port.page("otel.spans", 0).rows
        assert time.monotonic() - began < 2
        request, = send(server, 1)
        for one in waits:
            page = one.result(timeout=10)
            assert [r["severity_text"].split("#")[0] for r in page.rows] == [request.ident] * 3
        start = page.cursor
        waits = [pool.submit(wait, i) for i in range(20)]
        faults.wait_for(lambda: "sluice_export_waiting 20\n" in server.get("/metrics")[1], what="20 long polls")
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 8
        assert all(one.result(timeout=5).rows == [] for one in waits)


@pytest.mark.parametrize("method, path, body, status, code", [
    ("GET", "/v1/log/0/rows", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.none", None, 404, "NO_TABLE"),
    ("GET", "/v1/log/7/rows?table=otel.logs", None, 404, "NO_GROUP"),
    ("GET", "/v1/log/x/rows?table=otel.logs", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/columns", None, 404, "NO_PAGE"),
    ("GET", "/v1/log/0/rows?table=otel.logs&after=", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&after=-1", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&after=18446744073709551616", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&after=abc/0/1/1", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&after=0.1", None, 400, "BAD_REQUEST"),
    ("GET", f"/v1/log/0/rows?table=otel.logs&after={'0' * 32}/1/1/1", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&max_rows=0", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&max_bytes=99999999999", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&wait_ms=x", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&member=2/2", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&member=0/33", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&compression=gzip", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?table=otel.logs&limit=1", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/log/0/rows?consumer=nobody", None, 404, "NO_CONSUMER"),
    ("GET", f"/v1/log/0/rows?table={'x' * 300}", None, 400, "BAD_REQUEST"),
    ("GET", "/v1/consumers/nobody", None, 404, "NO_CONSUMER"),
    ("GET", "/v1/consumers/no%20body", None, 400, "BAD_REQUEST"),
    ("DELETE", "/v1/consumers/nobody", None, 404, "NO_CONSUMER"),
    ("PUT", f"/v1/consumers/{'x' * 65}", {"table": "otel.logs"}, 400, "BAD_REQUEST"),
    ("PUT", "/v1/consumers/a", {}, 400, "BAD_REQUEST"),
    ("PUT", "/v1/consumers/a", [], 400, "BAD_REQUEST"),
    ("PUT", "/v1/consumers/a", {"table": "otel.none"}, 404, "NO_TABLE"),
    ("PUT", "/v1/consumers/a", {"table": "otel.logs", "group": 1}, 404, "NO_GROUP"),
    ("PUT", "/v1/consumers/a", {"table": "otel.logs", "ttl_ms": 1}, 400, "BAD_REQUEST"),
    ("PUT", "/v1/consumers/a", {"table": "otel.logs", "start": "now"}, 400, "BAD_REQUEST"),
    ("PUT", "/v1/consumers/a", {"table": "otel.logs", "start": 999999}, 409, "AHEAD"),
    ("PUT", "/v1/consumers/a", {"table": "otel.logs", "member": "1/1x"}, 400, "BAD_REQUEST"),
    ("PUT", "/v1/consumers/a", {"table": "otel.logs", "owner": 7}, 400, "BAD_REQUEST"),
    ("PUT", "/v1/consumers/a", {"table": "otel.logs", "ttl": 1000}, 400, "BAD_REQUEST"),
    ("PUT", "/v1/consumers/a/ack", {"table": "otel.logs"}, 404, "NO_PAGE"),
    ("POST", "/v1/consumers/a/ack", {"term": 1, "seq": 1}, 404, "NO_CONSUMER"),
    ("POST", "/v1/consumers/a/ack", {"seq": 1}, 400, "BAD_REQUEST"),
    ("POST", "/v1/consumers/a/renew", {"term": 1}, 400, "BAD_REQUEST"),
    ("POST", "/v1/consumers/a/reset", {}, 404, "NO_PAGE"),
])
def test_bad_requests_are_named(server, method, path, body, status, code):
    port = log_client.Port(server.log_port)
    told = refused(status, f"ERR_EXPORT_{code}", port.ask, method, path, body)
    assert told["message"]
    assert port.json("GET", "/v1/consumers") == {"consumers": []}


def test_bodies_that_are_no_json(server):
    connection = log_client.http.client.HTTPConnection("127.0.0.1", server.log_port)
    for body in (b"", b"{", b"\xff", b'{"table":"otel.logs"} x', b"[" * 5000, b'{"a":' * 100):
        connection.request("PUT", "/v1/consumers/a", body)
        answer = connection.getresponse()
        assert answer.status == 400, (body, answer.status)
        assert json.loads(answer.read())["code"].startswith("ERR_EXPORT_")
    connection.request("PUT", "/v1/consumers/a", b" " * 100000)
    answer = connection.getresponse()
    assert answer.status == 413 and json.loads(answer.read())["code"] == "ERR_EXPORT_BAD_REQUEST"


# ---- crashes ----

@pytest.mark.parametrize("consumer", [None, "follower"])
def test_following_through_kills(tmp_path, request, consumer):
    """kill -9, again and again, while rows are written, published, handed out and acknowledged."""
    server = started(tmp_path / "data", request, *(SMALL if consumer else ()))
    book, is_over = ledger.Ledger(), threading.Event()
    follower = log_client.Follower(server.log_port, "otel.logs", consumer, max_rows=50)

    def write():
        for number in range(1, 10 ** 6):
            one = book.new(rows=5, producer="p", sequence=number, pad=2000)
            while not book.send(server, one):
                if is_over.is_set():
                    return
                time.sleep(0.02)
            if is_over.is_set():
                return
    writer = threading.Thread(target=write)
    writer.start()
    ends = 0
    try:
        for _ in range(6):
            until = time.monotonic() + random.uniform(0.2, 0.8)
            while time.monotonic() < until:
                if follower.step() and consumer and random.random() < 0.3:
                    follower.acknowledge()
            server.kill()
            follower.step()
            server.start()
            ends = max(ends, end_of(server))
    finally:
        is_over.set()
        writer.join()
    follower.follow_to(end_of(server))
    assert follower.lost >= 6 and follower.seq >= ends > 0 and not follower.flags
    server.wait_published()
    server.stop()
    check_rows(follower.rows, server.directory)
    book.check(server.directory)


def test_acks_outlive_kills_and_segments(tmp_path, request):
    server = started(tmp_path / "data", request, *SMALL)
    port = log_client.Port(server.log_port)
    port.put("a", table="otel.logs", ttl_ms=600000)
    send(server, 30, pad=50000)
    page = port.page("otel.logs", 0, max_rows=30)
    told = port.ack("a", page.cursor)
    assert told["cursor"] == page.cursor and told["flags"] == []
    for _ in range(3):
        server.kill()
        server.start()
        port.close()
        found = port.json("GET", "/v1/consumers/a")
        assert found["cursor"] == page.cursor and found["lag_rows"] == 90 - len(page.rows)
    rest = port.page(consumer="a")
    assert rest.rows[0]["_sluice_seq"] > page.rows[-1]["_sluice_seq"] and not rest.flags
    # What was acknowledged goes, and nothing else (L33).
    seq = int(page.cursor.split("/")[3])
    faults.wait_for(lambda: port.json("GET", "/v1/log")["tables"][0]["reclaimed_through"][0] > 0, what="reclaim")
    assert port.json("GET", "/v1/log")["tables"][0]["reclaimed_through"][0] <= seq
    assert port.page(consumer="a").rows == rest.rows[:len(port.page(consumer="a").rows)]


# ---- what is gone ----

def drain_holds(server, port, seconds=30):
    faults.wait_for(lambda: port.json("GET", "/v1/log")["tables"][0]["reclaimed_through"][0] > 0, what="reclaim",
                    seconds=seconds)
    time.sleep(1.5)


def test_L32_what_was_reclaimed_is_named_exactly(tmp_path, request):
    server = started(tmp_path / "data", request, *SMALL)
    port = log_client.Port(server.log_port)
    requests = send(server, 20, pad=50000)
    drain_holds(server, port)
    send(server, 1)
    log = port.json("GET", "/v1/log")
    floor, = log["tables"][0]["reclaimed_through"]
    assert floor in {one.receipt[3] for one in requests}
    for after in (0, 3, floor - 1):
        told = refused(410, "ERR_EXPORT_RANGE_RECLAIMED", port.page, "otel.logs", after)
        assert (told["group"], told["first"], told["last"]) == (0, after + 1, floor)
    found = {r["_sluice_seq"] for r in port.page("otel.logs", floor).rows}
    assert found and min(found) > floor
    assert port.page("otel.spans", 0).cursor == port.page("otel.spans", 0).end, "another table has lost nothing"
    told = refused(410, "ERR_EXPORT_RANGE_RECLAIMED", port.put, "late", table="otel.logs", start=2)
    assert (told["first"], told["last"]) == (3, floor)
    assert port.put("early", table="otel.logs")["held_from"] == floor


def test_a_lease_that_lapses_is_said(tmp_path, request):
    server = started(tmp_path / "data", request, *SMALL)
    port = log_client.Port(server.log_port)
    told = port.put("slow", table="otel.logs", ttl_ms=4000)
    send(server, 10, pad=50000)
    page = port.page(consumer="slow", max_rows=3)
    assert page.rows and not page.flags
    drain_holds(server, port)
    told = refused(410, "ERR_EXPORT_RANGE_RECLAIMED", port.page, consumer="slow", after=page.cursor)
    assert told["first"] == int(page.cursor.split("/")[3]) + 1
    assert port.json("GET", "/v1/consumers/slow")["flags"][0] == "EXPORT_HOLD_RELEASED"
    assert "sluice_export_holds_lapsed_total 1\n" in server.get("/metrics")[1]
    server.kill()
    server.start()
    port.close()
    port.put("slow", table="otel.logs", ttl_ms=600000)
    page = port.page(consumer="slow", after=told["last"])
    assert page.flags == ["EXPORT_HOLD_RELEASED", "LEASE_NOT_DURABLE"]
    send(server, 1)
    page = port.page(consumer="slow", after=page.cursor)
    assert page.rows
    answer = port.ack("slow", page.cursor)
    assert answer["flags"] == ["EXPORT_HOLD_RELEASED"], "it was, until this ack"
    assert port.page(consumer="slow").flags == []
    assert port.page("otel.logs", page.cursor, consumer="nobody").flags == ["NO_LEASE"]


def test_a_hold_does_not_fill_the_disk(tmp_path, request):
    """Ingest goes on; the consumer who does not keep up is told, the one who does keeps his hold."""
    server = started(tmp_path / "data", request, *SMALL, "--log-budget-bytes", "16MiB")
    port = log_client.Port(server.log_port)
    port.put("stuck", table="otel.logs", ttl_ms=600000)
    follower = log_client.Follower(server.log_port, "otel.logs", "current", ttl_ms=600000)
    book = ledger.Ledger()
    for _ in range(120):
        one, deadline = book.new(pad=60000), time.monotonic() + 30
        while not book.send(server, one):
            assert time.monotonic() < deadline, "ingest stands still"
            follower.step(wait_ms=0)
            follower.acknowledge()
            time.sleep(0.05)
        follower.step(wait_ms=0)
        follower.acknowledge()
    follower.follow_to(end_of(server))
    assert "EXPORT_HOLD_RELEASED" in port.json("GET", "/v1/consumers/stuck")["flags"]
    assert not follower.flags
    refused(410, "ERR_EXPORT_RANGE_RECLAIMED", port.page, consumer="stuck")
    assert int(server.status()["log"]["allocated_bytes"]) <= 16 << 20
    server.wait_published()
    server.stop()
    check_rows(follower.rows, server.directory)


# ---- other logs ----

def test_cursors_of_another_log_or_history_are_refused(tmp_path, request):
    server = started(tmp_path / "data", request)
    port = log_client.Port(server.log_port)
    send(server, 3)
    server.stop()
    copy = shutil.copytree(tmp_path / "data", tmp_path / "copy")
    server.start()
    port.close()
    send(server, 5)
    page = port.page("otel.logs", 0)
    end = int(page.cursor.split("/")[3])
    server.stop()
    older = started(copy, request)
    told = refused(409, "ERR_EXPORT_AHEAD", log_client.Port(older.log_port).page, "otel.logs", page.cursor)
    assert told["asked"] == end and told["end"] == end_of(older) < end
    port = log_client.Port(older.log_port)
    port.put("a", table="otel.logs")
    refused(409, "ERR_EXPORT_AHEAD", port.ack, "a", page.cursor)
    while end_of(older) < end:  # under higher terms: the copy was started twice
        older.stop()
        older.start()
        port.close()
        send(older, 1)
    told = refused(409, "ERR_EXPORT_OTHER_HISTORY", port.page, "otel.logs", page.cursor)
    assert told["seq"] == end and told["asked_term"] < told["term"]
    refused(409, "ERR_EXPORT_OTHER_HISTORY", port.ack, "a", page.cursor)
    other = started(tmp_path / "other", request)
    told = refused(409, "ERR_EXPORT_OTHER_LOG", log_client.Port(other.log_port).page, "otel.logs", page.cursor)
    assert told["asked"] == page.cursor.split("/")[0] and told["log"] == other.status()["log"]["id"]


def test_damage_is_named_and_repaired(tmp_path, request):
    server = started(tmp_path / "data", request, "--log-segment-bytes", "1MiB", "--publish-interval", "1h",
                     "--publish-bytes", "1GiB")
    requests = send(server, 30, pad=100000)
    server.kill()
    sealed = sorted((server.directory / "log/sealed").iterdir())[0]
    with open(sealed, "r+b") as file:
        file.seek(800000)
        byte = file.read(1)
        file.seek(800000)
        file.write(bytes([byte[0] ^ 0x10]))
    server.start()
    follower = log_client.Follower(server.log_port, "otel.logs")
    with pytest.raises(log_client.Refused) as caught:
        follower.follow_to(end_of(server))
    told = caught.value.body
    assert told["code"] == "ERR_EXPORT_DAMAGED" and told["first"] == told["last"] and "checksum" in told["where"]
    assert told["command"] == "sluice log repair --confirm"
    before = max(r["_sluice_seq"] for r in follower.rows)
    behind = follower.port.page("otel.logs", told["last"]).rows
    assert before < told["first"] < behind[0]["_sluice_seq"]
    server.stop(expect=None)
    server.command(*told["command"].split()[1:], check=0)
    server.start()
    follower.follow_to(end_of(server))
    found = {r["severity_text"].split("#")[0] for r in follower.rows}
    assert found == {one.ident for one in requests if one.receipt[3] != told["first"]}
    server.kill()


# ---- partition groups ----

def test_L33_a_partition_group_changes_its_members(tmp_path, request):
    server = started(tmp_path / "data", request, *SMALL)
    port = log_client.Port(server.log_port)
    members = [log_client.Follower(server.log_port, "otel.logs", "g", f"{i}/3", f"owner-{i}", ttl_ms=5000)
               for i in range(3)]
    members[0].step()
    told = refused(409, "ERR_EXPORT_GROUP_CONFLICT", port.page, consumer="g", member="1/3", owner="owner-1")
    assert told["sub_code"] == "absent_member"
    told = refused(409, "ERR_EXPORT_GROUP_CONFLICT", port.put, "g", table="otel.logs", member="0/2")
    assert told["sub_code"] == "size_mismatch" and told["members"] == 3
    told = refused(409, "ERR_EXPORT_GROUP_CONFLICT", port.put, "g", table="otel.logs", member="0/3", owner="x")
    assert told["sub_code"] == "member_taken"
    refused(409, "ERR_EXPORT_CONSUMER_EXISTS", port.put, "g", table="otel.spans", member="0/3")
    send(server, 10, pad=20000)
    end = end_of(server)
    for member in members[:2]:
        member.follow_to(end)
        member.acknowledge()
    assert port.json("GET", "/v1/consumers/g")["held_from"] == 0, "member 2 has not joined"
    members[2].step()
    for member in members:
        member.follow_to(end)
        member.acknowledge()
    assert port.json("GET", "/v1/consumers/g")["held_from"] >= end
    # Member 1 goes; the others go on, and nothing of what it has not taken is lost.
    send(server, 10, pad=20000)
    end = end_of(server)
    held = port.json("GET", "/v1/consumers/g")["held_from"]
    gone, until = members.pop(1), time.monotonic() + 6
    while time.monotonic() < until or any(m.seq < end for m in members):
        for member in members:
            member.step(wait_ms=100)
            member.acknowledge()
    told = port.json("GET", "/v1/consumers/g")
    assert [m["is_present"] for m in told["members"]] == [True, False, True]
    assert told["held_from"] == held and told["flags"] == []
    heir = log_client.Follower(server.log_port, "otel.logs", "g", "1/3", "heir", ttl_ms=60000)
    heir.follow_to(end)
    heir.acknowledge()
    for member in members:
        member.acknowledge()
    assert port.json("GET", "/v1/consumers/g")["held_from"] >= end
    told = refused(409, "ERR_EXPORT_GROUP_CONFLICT", gone.port.ack, "g", gone.cursor, **gone.who)
    assert told["sub_code"] == "member_taken"
    server.wait_published()
    server.stop()
    check_rows(sorted(sum((m.rows for m in (*members, gone, heir)), []), key=place), server.directory)


def test_consumers_are_limited(server):
    port = log_client.Port(server.log_port)
    for i in range(256):
        port.put(f"c{i}", table="otel.logs")
    refused(429, "ERR_EXPORT_LIMIT", port.put, "one-more", table="otel.logs")
    assert port.page("otel.logs", 0, consumer="one-more").flags == ["NO_LEASE"]
    port.json("DELETE", "/v1/consumers/c7")
    port.put("one-more", table="otel.logs")
    assert len(port.json("GET", "/v1/consumers")["consumers"]) == 256
    assert "sluice_export_consumers 256\n" in server.get("/metrics")[1]
