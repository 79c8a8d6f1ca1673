# SPDX-License-Identifier: Apache-2.0
"""Publication from another machine: a log on one server, its lanes on another, and between them a network that
fails. What is acknowledged stands in the table once, whatever is killed or lost (E1-E18; L20, L32, L34)."""
import http.server
import json
import os
import pathlib
import random
import shutil
import threading
import time

import pytest

import elsewhere
import faults
import ledger
import log_client
import sluice
from senders import Senders

DEEP = os.environ.get("SLUICE_DEEP") == "1"
SEED = int(os.environ.get("SLUICE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
ACK = b"POST /v1/publication/"


@pytest.fixture(autouse=True)
def seed():
    print(f"SLUICE_SEED={SEED}")


@pytest.fixture()
def pair(tmp_path):
    pair = elsewhere.Pair(tmp_path)
    yield pair
    pair.close()


def finish(pair, book, **more):
    """All that was acknowledged is published; then the books must balance."""
    pair.network.fault = lambda request: None
    pair.publisher.wait_all(pair.log)
    pair.publisher.stop()
    book.check(pair.publisher.directory, **more)


# ---- where all goes well ----

def test_rows_are_as_a_server_publishes_its_own(tmp_path, pair):
    here = sluice.Server(tmp_path / "here", *elsewhere.FAST).start()
    book = ledger.Ledger()
    pair.start()
    try:
        for i in range(20):
            request = book.new("spans" if i % 3 == 0 else "logs", rows=1 + 7 * i)
            book.must_send(here, request)
            book.must_send(pair.log, request)
        here.wait_published()
        here.stop()
        finish(pair, book)

        def rows(directory, table):
            left_out = ("_sluice_log", "_sluice_received", "_sluice_seq", "_sluice_index")
            found = sluice.read_pyiceberg(directory, table).drop_columns(left_out).to_pylist()
            return sorted(map(repr, found))
        for table in ("logs", "spans"):
            there = rows(pair.publisher.directory, table)
            assert len(there) > 100 and there == rows(here.directory, table)
    finally:
        here.kill()


def test_what_both_say_of_themselves(pair):
    book = ledger.Ledger()
    book.must_send(pair.log, book.new())
    pair.start()
    finish_state = pair.publisher.wait_all(pair.log)
    assert finish_state["source"]["url"] == pair.network.url and "log" not in finish_state
    log = pair.log.status()
    assert finish_state["source"]["log"] == log["log"]["id"] and log["published_from"] == "log_port"
    lane = pair.log.lane("otel.logs")
    assert lane["state"] == "elsewhere" and lane["lag_rows"] == 0 and lane["last_ack_ms"] > 0
    assert lane["committed_seq"] == pair.publisher.lane("otel.logs")["committed_seq"] > 0
    assert pair.log.get("/readyz")[0] == pair.publisher.get("/readyz")[0] == 200
    assert "sluice_source_answering 1" in pair.publisher.get("/metrics")[1]
    assert "sluice_lane_last_ack_seconds" in pair.log.get("/metrics")[1]
    assert "another server publishes this log" in pair.log.command("status", check=0).stdout
    assert pair.network.url in pair.publisher.command("status", check=0).stdout
    words = ("doctor", "--publish-from", "log_port", "--log-port", str(pair.log.log_port))
    assert "let go of rows" in pair.log.command(*words).stdout
    doctor = pair.publisher.command("doctor", "--source", pair.network.url, check=0).stdout
    assert f"source     {pair.network.url}" in doctor and "otlp port" not in doctor
    assert not (pair.log.directory / "catalog.db").exists() and not (pair.publisher.directory / "log").exists()
    # What is to be done where the lanes are is refused where they are not, and the other way round.
    for words in (("publish", "--once"), ("log", "fork", "--confirm")):
        pair.publisher.stop()
        done = pair.publisher.command(*words, "--source", pair.network.url)
        assert done.returncode == (0 if words[0] == "publish" else 6), done.stderr
        pair.publisher.start()
    done = pair.log.command("clear-halt", "otel.logs", "--confirm", "--accept")
    assert done.returncode == 6 and "published from elsewhere" in done.stderr
    done = pair.log.command("log", "trim", "--table", "otel.logs", "--force")
    assert done.returncode == 6 and "published from elsewhere" in done.stderr


def test_who_waits_for_the_table(pair):
    """commit=force is answered once the other server has committed; receipts follow its acknowledgements."""
    pair.publisher = elsewhere.Publisher(pair.path / "publisher", pair.network.url, "--publish-interval", "1h")
    pair.start()
    book = ledger.Ledger()
    request = book.new()
    answer = pair.log.post("logs", request.body, path="/v1/logs?commit=force")
    assert answer.code == 200 and answer.headers["Sluice-Boundary"] == "visible"
    (request.receipt,), request.attempts = answer.receipts, 1
    assert sluice.read_pyiceberg(pair.publisher.directory, "logs").num_rows == 3
    waiting = book.must_send(pair.log, book.new())

    def boundaries(server, receipt):
        code, body = server.get("/v1/receipts/" + "/".join(map(str, receipt[:4])))
        assert code == 200, body
        return json.loads(body)
    there = boundaries(pair.log, request.receipt)
    assert there["boundaries"]["visible"]["reached"] and there["boundaries"]["released"]["reached"]
    assert "snapshot_id" not in there and boundaries(pair.publisher, request.receipt)["snapshot_id"] > 0
    for server in (pair.log, pair.publisher):
        told = boundaries(server, waiting.receipt)
        assert told["rows"] == 3 and told["table"] == "otel.logs"
        assert not told["boundaries"]["visible"]["reached"] and not told["boundaries"]["released"]["reached"]
    pair.publisher.stop()  # its last round publishes the rest
    faults.wait_for(lambda: boundaries(pair.log, waiting.receipt)["boundaries"]["released"]["reached"])
    book.check(pair.publisher.directory)


def test_force_without_a_publisher_says_durable(tmp_path):
    pair = elsewhere.Pair(tmp_path, "--otlp-force-timeout", "500ms")
    try:
        answer = pair.log.post("logs", ledger.Ledger().new().body, path="/v1/logs?commit=force")
        assert answer.code == 200 and answer.headers["Sluice-Boundary"] == "durable"
    finally:
        pair.close()


# ---- kills, and a network that fails ----

def test_either_is_killed_at_random(tmp_path):
    kills = 300 if DEEP else 40
    chance = random.Random(SEED)
    pair = elsewhere.Pair(tmp_path).start()
    book = ledger.Ledger()
    senders = None
    try:
        for table in ("logs", "spans"):
            book.must_send(pair.log, book.new(table))
        pair.publisher.wait_all(pair.log)
        senders = Senders(pair.log, book, 4, chance)
        for _ in range(kills):
            server = pair.log if chance.random() < 0.5 else pair.publisher
            server.kill()
            server.start(wait=server is pair.log)  # its ports are others now
            time.sleep(chance.uniform(0, 0.3 if chance.random() < 0.8 else 1.0))
            assert server.process.poll() is None, server.log()
        senders.end()
        senders = None
        pair.publisher.wait_ready()
        state = pair.publisher.wait_all(pair.log)
        finish(pair, book)
        acked = [r for r in book.requests if r.receipt]
        print(f"{kills} kills, {len(acked)} of {len(book.requests)} requests acknowledged, "
              f"{state['lanes'][0]['commits']} commits since the last start")
        assert len(acked) > kills
    finally:
        if senders:
            senders.end()
        pair.close()


def test_a_network_that_fails(tmp_path):
    chance = random.Random(SEED)
    lock = threading.Lock()

    def fault(request):
        with lock:
            return chance.choice(("cut", "lose", "half", "flip", "slow", "late")) if chance.random() < 0.3 else None
    pair = elsewhere.Pair(tmp_path, fault=None).start()
    book = ledger.Ledger()
    senders = None
    try:
        book.must_send(pair.log, book.new())
        book.must_send(pair.log, book.new("spans"))
        pair.publisher.wait_all(pair.log)
        pair.network.fault = fault
        senders = Senders(pair.log, book, 3, chance)
        deadline = time.monotonic() + (120 if DEEP else 8)
        while time.monotonic() < deadline:
            time.sleep(chance.uniform(0.2, 1))
            if chance.random() < 0.3:
                pair.publisher.kill()
                pair.publisher.start(wait=False)
            assert pair.publisher.process.poll() is None, pair.publisher.log()
        senders.end()
        senders = None
        pair.publisher.wait_ready()
        print(pair.network.counts)
        assert all(pair.network.counts[what] > 3 for what in ("cut", "lose", "half", "flip", "slow", "late"))
        lanes = pair.publisher.status()["lanes"]
        assert not [x for x in lanes if x["state"] in ("halted", "stood_down")], lanes
        finish(pair, book)
    finally:
        if senders:
            senders.end()
        pair.close()


def test_an_acknowledgement_is_repeated_until_it_is_answered(pair):
    """E8, step 8: the commit stands, its acknowledgement or the answer to it is lost."""
    book = ledger.Ledger()
    pair.start()
    book.must_send(pair.log, book.new())
    pair.publisher.wait_all(pair.log)
    for what in ("lose", "cut"):
        left = [4]

        def fault(request, what=what, left=left):
            if not request.startswith(ACK + b"otel.logs") or left[0] == 0:
                return None
            left[0] -= 1
            return what
        pair.network.fault = fault
        request = book.must_send(pair.log, book.new())
        faults.wait_for(lambda left=left: left[0] < 3, what="an acknowledgement")
        table = sluice.catalog(pair.publisher.directory).load_table("otel.logs")
        assert table.scan().to_arrow().num_rows == 3 * len(book.requests)
        if what == "cut":
            assert pair.log.lane("otel.logs")["committed_seq"] < request.receipt[3]
        pair.publisher.kill()  # its record says what was under way
        pair.network.fault = lambda request: None
        pair.publisher.start()
        pair.publisher.wait_all(pair.log)
        assert pair.log.lane("otel.logs")["committed_seq"] == request.receipt[3]
    finish(pair, book)


def test_no_answer_halts_nobody(pair):
    book = ledger.Ledger()
    pair.start()
    book.must_send(pair.log, book.new())
    pair.publisher.wait_all(pair.log)
    pair.network.is_down = True
    book.must_send(pair.log, book.new())
    faults.wait_for(lambda: pair.publisher.get("/readyz")[0] == 503)
    assert pair.network.url in pair.publisher.get("/readyz")[1]
    lane = pair.publisher.wait_state("retrying")
    assert "does not answer" in lane["reason"] and "remedy" not in lane
    time.sleep(3)  # longer than a halt is doubted
    assert pair.publisher.lane("otel.logs")["state"] in ("retrying", "working")
    pair.publisher.kill()
    pair.publisher.start()  # it knows which log it is, and starts without
    assert pair.publisher.get("/readyz")[0] == 503
    pair.network.is_down = False
    finish(pair, book)


def test_pages_with_flipped_bits(pair):
    """L10: the next hop looks at the checksums, and asks again."""
    book = ledger.Ledger()
    left = [12]

    def fault(request):
        if b"/entries?" not in request[:80] or left[0] == 0:
            return None
        left[0] -= 1
        return "flip"
    pair.network.fault = fault
    pair.publisher = elsewhere.Publisher(pair.path / "publisher", pair.network.url, "--publish-interval", "10ms")
    pair.start()
    deadline = time.monotonic() + 60
    while left[0] and time.monotonic() < deadline:
        book.must_send(pair.log, book.new(rows=30, pad=2000))
        assert pair.publisher.lane("otel.logs")["state"] != "halted", pair.publisher.lane("otel.logs")
        time.sleep(0.05)
    assert pair.network.counts["flip"] == 12
    pair.publisher.wait_all(pair.log)
    assert pair.publisher.lane("otel.logs")["retries"] > 5
    finish(pair, book)


def test_a_question_without_an_answer_decides_nothing(tmp_path, pair):
    """E12: whose the table's position is, nobody says; that is no other history."""
    book = ledger.Ledger()
    flags = (*elsewhere.FAST, *shared_lake(tmp_path))
    pair.start()
    pair.network.fault = lambda request: "cut" if request.startswith(ACK) else None
    for _ in range(2):
        book.must_send(pair.log, book.new())
    faults.wait_for(lambda: pair.publisher.lane("otel.logs")["retries"] > 1)
    pair.publisher.kill()  # the table is ahead of what the log has heard
    pair.network.fault = lambda request: "cut" if b"/position?" in request[:80] else None
    pair.network.counts.clear()
    second = elsewhere.Publisher(tmp_path / "second", pair.network.url, *flags).start()
    try:
        book.must_send(pair.log, book.new())
        faults.wait_for(lambda: pair.network.counts.get("cut", 0) > 5)
        time.sleep(3)  # longer than a halt is doubted
        assert second.lane("otel.logs")["state"] in ("retrying", "working"), second.lane("otel.logs")
        pair.network.fault = lambda request: None
        second.wait_all(pair.log)
        second.stop()
        book.check(pair.publisher.directory, with_leftovers=True)
    finally:
        second.kill()


def crc32c(content):
    crc = 0xffffffff
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Nonsense(http.server.BaseHTTPRequestHandler):
    """Answers everything with what `body` and `headers` say."""
    body, headers_out, code = b"{}", {}, 200
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.code)
        checksum = {"Sluice-Crc32c": f"{crc32c(self.body):08x}"}
        for name, value in {**checksum, **self.headers_out, "Content-Length": str(len(self.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.body)
    do_POST = do_GET

    def log_message(self, *words):
        pass


def test_answers_that_are_none(pair):
    """Anything else at that place, and a log port that says too little, is no log without rows."""
    book = ledger.Ledger()
    pair.start()
    book.must_send(pair.log, book.new())
    pair.publisher.wait_all(pair.log)
    port = log_client.Port(pair.log.log_port)
    answer, whole = port.ask("GET", "/v1/log")
    assert answer.headers["Sluice-Crc32c"] == f"{crc32c(whole):08x}"
    document = json.loads(whole)

    def without(change):
        copy = json.loads(whole)
        change(copy)
        return json.dumps(copy).encode()
    logs = next(i for i, t in enumerate(document["tables"]) if t["name"] == "otel.logs")
    said = {"Sluice-Log": answer.headers["Sluice-Log"]}
    cases = [
        (b"<html>welcome</html>", {}, 200), (b"{}", {}, 200), (b"{}", said, 200), (b"[]", said, 200), (b"", said, 200),
        (whole[:-20], said, 200), (whole, {}, 200), (whole, {"Sluice-Log": "x/1/1/1"}, 200), (whole, {**said, "Sluice-Crc32c": "00000000"}, 200), (b"none", {}, 404),
        (b'{"code":"ERR_EXPORT_NO_TABLE","message":"gone"}', said, 404), (whole, said, 500),
        (without(lambda d: d["tables"][logs]["groups"][0].pop("pending")), said, 200),
        (without(lambda d: d["tables"][logs]["groups"][0].pop("through")), said, 200),
        (without(lambda d: d["tables"][logs].update(groups=[])), said, 200),
        (without(lambda d: d["groups"][0].pop("end")), said, 200),
        (without(lambda d: d["groups"][0]["end"].update(seq=-1)), said, 200),
        (without(lambda d: d["groups"][0]["end"].update(term=99)), said, 200),
        (without(lambda d: d["groups"][0]["end"].update(chain="9")), said, 200),
        (without(lambda d: d.update(groups=[])), said, 200), (without(lambda d: d.pop("recovered_without")), said, 200),
    ]
    before = sluice.catalog(pair.publisher.directory).load_table("otel.logs").metadata_location
    request = book.new()
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nonsense)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    try:
        kept = pair.log.log_port
        pair.log.log_port = httpd.server_address[1]
        book.must_send(pair.log, request)
        for Nonsense.body, Nonsense.headers_out, Nonsense.code in cases:
            failures = pair.publisher.status()["source"]["failures"]
            faults.wait_for(lambda failures=failures: pair.publisher.status()["source"]["failures"] > failures + 1)
            status = pair.publisher.status()
            assert not status["source"]["is_answering"], Nonsense.body
            assert all(x["state"] in ("idle", "retrying", "working") for x in status["lanes"]), status
        assert sluice.catalog(pair.publisher.directory).load_table("otel.logs").metadata_location == before
        pair.log.log_port = kept
        finish(pair, book)
    finally:
        httpd.shutdown()


# ---- owners and identities ----

def shared_lake(path):
    return ("--publish-catalog-path", f"{path}/publisher/catalog.db", "--publish-warehouse",
            f"file://{path}/publisher/warehouse")


def test_two_publishers(tmp_path, pair):
    """E5, E6: the later one takes over when it first has rows, the earlier one stands down, and both never
    publish the same."""
    chance = random.Random(SEED)
    book = ledger.Ledger()
    flags = (*elsewhere.FAST, *shared_lake(tmp_path))
    (tmp_path / "publisher").mkdir()
    pair.publisher = elsewhere.Publisher(tmp_path / "publisher", pair.network.url, *flags)
    second = elsewhere.Publisher(tmp_path / "second", pair.network.url, *flags)
    pair.start()
    senders = None
    try:
        book.must_send(pair.log, book.new())
        book.must_send(pair.log, book.new("spans"))
        pair.publisher.wait_all(pair.log)
        second.start()
        time.sleep(0.5)  # nothing to publish, nothing to take
        faults.wait_for(lambda: pair.publisher.lane("otel.logs")["state"] == "idle")
        senders = Senders(pair.log, book, 3, chance)
        owners = (pair.publisher, second)
        for _ in range(6 if DEEP else 3):
            faults.wait_for(lambda: "stood_down" in [x.lane("otel.logs")["state"] for x in owners], seconds=60)
            loser = next(x for x in owners if x.lane("otel.logs")["state"] == "stood_down")
            assert "another owner" in loser.lane("otel.logs")["reason"] and loser.get("/readyz")[0] == 503
            for table in ("otel.logs", "otel.spans"):
                if loser.lane(table)["state"] == "stood_down":  # the owner's commits may come between
                    faults.wait_for(lambda loser=loser, table=table: loser.command(
                        "clear-halt", table, "--confirm", "--accept").returncode == 0)
        senders.end()
        senders = None
        for server in owners:  # some lanes are one's, some the other's
            server.kill()
        tables = ("otel.logs", "otel.spans")
        for table in tables:
            pair.publisher.command("clear-halt", table, "--confirm", "--accept", "--source", pair.network.url, *flags)
        pair.publisher.start()

        def is_done():  # who was overtaken just before his end finds it out only now
            lanes = [pair.publisher.lane(table) for table in tables]
            for lane in lanes:
                if lane["state"] == "stood_down":
                    pair.publisher.command("clear-halt", lane["table"], "--confirm", "--accept")
            return all(lane["state"] == "idle" and lane["lag_rows"] == 0 for lane in lanes)

        faults.wait_for(is_done, seconds=60)
        finish(pair, book, with_leftovers=True)  # a decision gives up what a loser had begun
    finally:
        if senders:
            senders.end()
        second.kill()


def test_rows_reclaimed_by_another_publishers_acks(tmp_path):
    """E6: whom a newer owner has overtaken stands down, though what he was to read is gone."""
    pair = elsewhere.Pair(tmp_path, "--log-seal-after", "200ms", "--log-keep-committed", "0")
    flags = (*elsewhere.FAST, *shared_lake(tmp_path))
    book, gate, asked = ledger.Ledger(), threading.Event(), threading.Event()
    beside = elsewhere.Network(pair.log)
    second = elsewhere.Publisher(tmp_path / "second", beside.url, *flags)
    port = log_client.Port(pair.log.log_port)

    def fault(request):
        if b"/entries?" in request[:80] and b"otel.logs" in request[:200]:
            asked.set()
            gate.wait(9)
    try:
        pair.start()
        book.must_send(pair.log, book.new(rows=20, pad=100000))
        pair.publisher.wait_all(pair.log)
        pair.network.fault = fault
        request = book.must_send(pair.log, book.new(rows=20, pad=100000))
        assert asked.wait(10)
        second.start()
        book.must_send(pair.log, book.new())

        def reclaimed():
            document = port.json("GET", "/v1/log")
            return next(t for t in document["tables"] if t["name"] == "otel.logs")["reclaimed_through"][0]
        faults.wait_for(lambda: reclaimed() >= request.receipt[3], seconds=8, what="a reclaimed segment")
        gate.set()
        deadline = time.monotonic() + 30
        while (lane := pair.publisher.lane("otel.logs"))["state"] != "stood_down":
            assert lane["state"] != "halted" and time.monotonic() < deadline, lane
            book.must_send(pair.log, book.new())  # whoever has nothing to publish looks at no table
            time.sleep(0.1)
        assert "another owner" in lane["reason"]
        second.wait_all(pair.log)
        second.stop()
        book.check(pair.publisher.directory, with_leftovers=True)
    finally:
        gate.set()
        beside.close()
        second.kill()
        pair.close()


def test_publication_moves_there_and_back(tmp_path):
    """E4, E5, E6: each move is a takeover; who comes back after one is asked first."""
    book = ledger.Ledger()
    here = (*elsewhere.FAST, *shared_lake(tmp_path))
    pair = elsewhere.Pair(tmp_path)
    pair.publisher.flags = here
    pair.publisher.directory.mkdir()
    try:
        pair.log.stop()
        pair.log.flags = here
        pair.log.start()
        book.must_send(pair.log, book.new())
        pair.log.wait_published()
        pair.log.kill()
        pair.log.flags = elsewhere.LEFT
        pair.log.start()
        book.must_send(pair.log, book.new())
        pair.start()
        pair.publisher.wait_all(pair.log)
        assert pair.publisher.lane("otel.logs")["epoch"] == 2
        pair.publisher.stop()
        pair.log.stop()
        pair.log.flags = here
        pair.log.start()
        book.must_send(pair.log, book.new())
        faults.wait_for(lambda: pair.log.lane("otel.logs")["state"] == "stood_down")
        pair.log.command("clear-halt", "otel.logs", "--confirm", "--accept", check=0)
        pair.log.wait_published()
        pair.log.stop()
        book.check(pair.publisher.directory)
    finally:
        pair.close()


def test_another_log_at_the_same_place(tmp_path, pair):
    book = ledger.Ledger()
    pair.start()
    book.must_send(pair.log, book.new())
    pair.publisher.wait_all(pair.log)
    pair.log.stop()
    other = sluice.Server(tmp_path / "other", *elsewhere.LEFT).start()
    try:
        stranger = ledger.Ledger()
        stranger.must_send(other, stranger.new())
        pair.network.log = other
        faults.wait_for(lambda: "what is published from here is log" in pair.publisher.get("/readyz")[1])
        pair.publisher.wait_state("retrying")
        time.sleep(2.5)
        assert other.lane("otel.logs")["last_ack_ms"] == 0 and other.lane("otel.logs")["lag_rows"] == 3
        pair.publisher.kill()
        with pytest.raises(RuntimeError, match="ended with 88.*what is published from here is log"):
            pair.publisher.start()
        pair.network.log = pair.log.start()
        pair.publisher.start()
        book.must_send(pair.log, book.new())
        finish(pair, book)
    finally:
        other.kill()


def test_directories_are_of_one_kind(tmp_path, pair):
    pair.start()
    pair.publisher.wait_all(pair.log)
    pair.publisher.stop()
    with pytest.raises(RuntimeError, match="ended with 88.*--source is needed"):
        sluice.Server(pair.publisher.directory).start()
    pair.log.stop()
    with pytest.raises(RuntimeError, match="ended with 88.*holds a log of its own"):
        elsewhere.Publisher(pair.log.directory, pair.network.url).start()
    kept = pair.publisher.directory / "source"
    kept.write_bytes(kept.read_bytes().replace(b'"groups":1', b'"groups":2'))
    with pytest.raises(RuntimeError, match="ended with 74.*source is damaged"):
        pair.publisher.start()
    here = sluice.Server(tmp_path / "here").start()
    try:
        with pytest.raises(RuntimeError, match="ended with 6.*publishes its log itself"):
            elsewhere.Publisher(tmp_path / "eager", f"http://127.0.0.1:{here.log_port}").start()
    finally:
        here.kill()
    for flags in (("--source", "localhost:7800"), ("--source", "http://nobody.invalid:1"),
                  ("--source", "http://127.0.0.1"), ("--publish-from", "there"),
                  ("--source", "http://[::1]:7800", "--publish-from", "log_port"),
                  ("--source", "http://127.0.0.1:7800/", "--mirror-url", "file:///tmp/m")):
        pair.log.command("config", "check", *flags, check=2)
    pair.log.command("config", "check", "--source", "http://[::1]:7800/", check=0)


def test_a_new_catalog_never_starts_from_zero(tmp_path, pair):
    """E12: the log's acknowledgement knows of commits that the table does not know of."""
    book = ledger.Ledger()
    pair.start()
    book.must_send(pair.log, book.new())
    pair.publisher.wait_all(pair.log)
    pair.publisher.stop()
    fresh = elsewhere.Publisher(tmp_path / "fresh", pair.network.url).start()
    try:
        book.must_send(pair.log, book.new())
        lane = fresh.wait_state("halted")
        assert "no longer knows of this log" in lane["reason"]
        # The log has let go of nothing yet: all of it can be published once more.
        fresh.command("clear-halt", "otel.logs", "--confirm", "--republish", check=0)
        fresh.wait_all(pair.log)
        fresh.stop()
        book.check(fresh.directory)
    finally:
        fresh.kill()


def test_an_older_copy_of_the_log(tmp_path, pair):
    """E7: the table holds what this log never wrote; log fork, run where the log is, resolves it."""
    book = ledger.Ledger()
    pair.start()
    first = book.must_send(pair.log, book.new())
    pair.publisher.wait_all(pair.log)
    pair.log.stop()
    shutil.copytree(pair.log.directory, tmp_path / "older")
    pair.log.start()
    lost = book.must_send(pair.log, book.new())
    pair.publisher.wait_all(pair.log)
    pair.log.kill()
    shutil.rmtree(pair.log.directory)
    shutil.copytree(tmp_path / "older", pair.log.directory)
    pair.log.start()
    later = book.must_send(pair.log, book.new())
    lane = pair.publisher.wait_state("halted")
    assert "older copy" in lane["reason"] or "different histories" in lane["reason"]
    assert "where the log is" in lane["remedy"] and "log fork" in lane["remedy"]
    pair.publisher.stop()
    pair.log.stop()
    pair.log.command("log", "fork", "--confirm", "--publish-from", "here", *shared_lake(tmp_path), check=0)
    pair.log.start()
    with pytest.raises(RuntimeError, match="ended with 88"):
        pair.publisher.start()
    fresh = elsewhere.Publisher(tmp_path / "fresh", pair.network.url, *elsewhere.FAST, *shared_lake(tmp_path)).start()
    try:
        last = book.must_send(pair.log, book.new())
        fresh.wait_all(pair.log)
        fresh.stop()
        old, new = first.receipt[0], last.receipt[0]
        assert old == lost.receipt[0] == later.receipt[0] != new
        book.check(pair.publisher.directory, logs={old: (new,)}, with_leftovers=True)
    finally:
        fresh.kill()


# ---- what the log lets go of ----

def test_segments_go_when_they_are_acknowledged(tmp_path):
    pair = elsewhere.Pair(tmp_path, "--log-seal-after", "200ms", "--log-keep-committed", "0")
    book = ledger.Ledger()
    port = log_client.Port(pair.log.log_port)

    def reclaimed():
        document = port.json("GET", "/v1/log")
        return next(t for t in document["tables"] if t["name"] == "otel.logs")["reclaimed_through"][0]
    try:
        first = book.must_send(pair.log, book.new(rows=20, pad=100000))
        time.sleep(1)
        for _ in range(3):
            book.must_send(pair.log, book.new(rows=20, pad=100000))
        time.sleep(1.5)
        assert pair.log.status()["log"]["segments_sealed"] >= 2 and reclaimed() == 0
        pair.start()
        pair.publisher.wait_all(pair.log)
        faults.wait_for(lambda: reclaimed() >= first.receipt[3], what="a reclaimed segment")
        # What is gone nobody can publish again: 87.
        pair.publisher.stop()
        fresh = elsewhere.Publisher(tmp_path / "fresh", pair.network.url).start()
        book.must_send(pair.log, book.new())
        fresh.wait_state("halted")
        done = fresh.command("clear-halt", "otel.logs", "--confirm", "--republish")
        assert done.returncode == 87, done
        fresh.kill()
        pair.publisher.start()
        finish(pair, book)
    finally:
        pair.close()


def test_L26_what_a_stuck_table_has_is_not_called_visible(tmp_path):
    """Others flow by, and their rows leave the log between its own."""
    pair = elsewhere.Pair(tmp_path, "--log-budget-bytes", "24MiB", "--log-keep-committed", "0s")
    book = ledger.Ledger()
    try:
        pair.start()
        for _ in range(2):
            book.must_send(pair.log, book.new())
            pair.publisher.wait_all(pair.log)
        table = sluice.catalog(pair.publisher.directory).load_table(("otel", "logs"))
        table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
        book.must_send(pair.log, book.new())
        pair.publisher.wait_state("halted")
        stuck = []

        def send(one):  # a publisher that is slow now and then is waited for
            faults.wait_for(lambda: book.send(pair.log, one), what="room in the log")
            return one
        for i in range(160):
            if i % 4 == 0:
                stuck.append(send(book.new()))
            send(book.new("spans", pad=100000))
            if i % 6 == 5:
                faults.wait_for(lambda: pair.publisher.lane("otel.spans")["lag_rows"] == 0, what="the spans")
        assert pair.log.status()["log"]["segments_compacted"] > 5
        for request in stuck:
            for server in (pair.log, pair.publisher):
                told = json.loads(server.get("/v1/receipts/" + "/".join(map(str, request.receipt[:4])))[1])
                assert told["table"] == "otel.logs" and not told["boundaries"]["visible"]["reached"], told
        pair.publisher.command("clear-halt", "otel.logs", "--confirm", "--republish", check=0)
        finish(pair, book)
    finally:
        pair.close()


def test_what_is_given_up_where_it_is_published(pair):
    """TE9 over the network: the log lets go, and nobody calls the rows visible."""
    pair.publisher = elsewhere.Publisher(pair.path / "publisher", pair.network.url, "--publish-interval", "1h")
    pair.start()
    book = ledger.Ledger()
    request = book.must_send(pair.log, book.new())
    faults.wait_for(lambda: pair.publisher.lane("otel.logs")["lag_rows"] == 3)
    done = pair.publisher.command("log", "trim", "--table", "otel.logs", "--force", check=0)
    assert "3 rows in 1 entries are given up" in done.stdout
    assert pair.log.lane("otel.logs")["lag_rows"] == 0
    for server in (pair.log, pair.publisher):
        told = json.loads(server.get("/v1/receipts/" + "/".join(map(str, request.receipt[:4])))[1])["boundaries"]
        assert told["released"]["reached"] and not told["visible"]["reached"], told
    book.requests.clear()
    later = book.new()
    assert pair.log.post("logs", later.body, path="/v1/logs?commit=force").headers["Sluice-Boundary"] == "visible"
    table = sluice.catalog(pair.publisher.directory).load_table("otel.logs")
    seq = request.receipt[3]
    trimmed = [s.summary.additional_properties.get(f"sluice.{request.receipt[0]}.0.trimmed")
               for s in table.metadata.snapshots]
    assert [x.partition("-")[2] for x in trimmed if x] == [str(seq)] and table.scan().to_arrow().num_rows == 3


def test_starts_of_the_log_stand_in_the_commits(pair):
    """What log fork goes by: a commit names the starts within its range, though they were another server's."""
    book = ledger.Ledger()
    pair.start()
    book.must_send(pair.log, book.new())
    pair.publisher.wait_all(pair.log)
    pair.publisher.stop()
    for _ in range(3):
        book.must_send(pair.log, book.new())
        pair.log.kill()
        pair.log.start()
    book.must_send(pair.log, book.new())
    pair.publisher.start()
    pair.publisher.wait_all(pair.log)
    table = sluice.catalog(pair.publisher.directory).load_table("otel.logs")
    log = pair.log.status()["log"]["id"]
    starts = [s.summary.additional_properties.get(f"sluice.{log}.0.starts", "") for s in table.metadata.snapshots]
    assert sum(len(x.split(";")) for x in starts if x) == 4, starts
    finish(pair, book)


def test_damage_of_the_log_halts_the_lane(tmp_path, pair):
    """L20: rows that may be lost are no rows that were not there."""
    book = ledger.Ledger()
    for _ in range(3):
        book.must_send(pair.log, book.new(rows=20, pad=20000))
    pair.log.stop()
    mark = b"body of r1 "
    segment, = [p for p in (pair.log.directory / "log").rglob("*.seg") if mark in p.read_bytes()]
    with open(segment, "r+b") as file:
        file.seek(segment.read_bytes().index(mark))
        file.write(bytes(64))
    pair.log.start()
    pair.start()
    lane = pair.publisher.wait_state("halted")
    assert "damaged" in lane["reason"] or "checksum" in lane["reason"], lane
    assert "where the log is" in lane["remedy"] and "log repair" in lane["remedy"]
    pair.log.stop()
    pair.log.command("log", "repair", "--confirm", check=0)
    pair.log.start()
    faults.wait_for(lambda: pair.publisher.status()["source"]["is_answering"])
    pair.publisher.command("clear-halt", "otel.logs", "--confirm", "--accept", check=0)
    pair.publisher.wait_all(pair.log)
    kept = sluice.read_pyiceberg(pair.publisher.directory, "logs")
    assert kept.num_rows == 40
    pair.publisher.stop()


# ---- the protocol ----

def test_who_may_let_go_of_rows(tmp_path, pair):
    book = ledger.Ledger()
    request = book.must_send(pair.log, book.new())
    here = sluice.Server(tmp_path / "here", "--publish-interval", "1h").start()
    try:
        port = log_client.Port(here.log_port)
        with pytest.raises(log_client.Refused) as refused:
            port.json("POST", "/v1/publication/otel.logs", {})
        assert (refused.value.status, refused.value.code) == (409, "ERR_EXPORT_PUBLISHED_HERE")
        assert port.json("GET", "/v1/log")["published_from"] == "here"
    finally:
        here.kill()
    port = log_client.Port(pair.log.log_port)
    log = port.json("GET", "/v1/log")
    end, zero = log["groups"][0]["end"], {"seq": 0, "chain": "0" * 16}
    good = {"seq": end["seq"], "chain": end["chain"]}

    def told(committed=zero, through=zero, log_id=log["log"], group=0):
        return {"log": log_id, "groups": [{"group": group, "committed": committed, "through": through}]}
    wrong = [
        (400, "ERR_EXPORT_BAD_REQUEST", {}), (400, "ERR_EXPORT_BAD_REQUEST", {"log": log["log"]}),
        (400, "ERR_EXPORT_BAD_REQUEST", told(group=1)), (400, "ERR_EXPORT_BAD_REQUEST", told(committed={"seq": 1})),
        (400, "ERR_EXPORT_BAD_REQUEST", told(committed={"seq": -1, "chain": "0" * 16})),
        (409, "ERR_EXPORT_OTHER_LOG", told(log_id="0" * 32)),
        (409, "ERR_EXPORT_AHEAD", told(through={"seq": end["seq"] + 1, "chain": end["chain"]})),
        (409, "ERR_EXPORT_OTHER_HISTORY", told(through={"seq": end["seq"], "chain": "1" * 16})),
        (409, "ERR_EXPORT_OTHER_HISTORY", told(committed={"seq": end["seq"], "chain": "1" * 16}, through=good)),
        (409, "ERR_EXPORT_OTHER_HISTORY", told(through={"seq": end["seq"], "chain": "0" * 16})),
    ]
    for status, code, body in wrong:
        with pytest.raises(log_client.Refused) as refused:
            port.json("POST", "/v1/publication/otel.logs", body)
        assert (refused.value.status, refused.value.code) == (status, code), body
    with pytest.raises(log_client.Refused) as refused:
        port.json("POST", "/v1/publication/otel.nothing", told())
    assert (refused.value.status, refused.value.code) == (404, "ERR_EXPORT_NO_TABLE")
    for incarnation, code in ((0, 400), (1, 409), ("2", 400)):
        with pytest.raises(log_client.Refused) as refused:
            port.json("POST", "/v1/publication/fence", {"log": log["log"], "incarnation": incarnation})
        assert refused.value.status == code
    assert pair.log.lane("otel.logs")["lag_rows"] == 3 and pair.log.get("/readyz")[0] == 200
    # A good one is taken, is durable, and an older one changes nothing.
    port.json("POST", "/v1/publication/otel.logs", told(committed=good, through=good))
    assert pair.log.lane("otel.logs")["lag_rows"] == 0
    after = port.json("POST", "/v1/publication/otel.logs", told())
    logs = next(t for t in after["tables"] if t["name"] == "otel.logs")
    assert logs["groups"][0]["committed"] == good == logs["groups"][0]["through"]
    pair.log.kill()
    pair.log.start()
    assert pair.log.lane("otel.logs")["lag_rows"] == 0 and request.receipt[3] <= end["seq"]


def test_acknowledgements_that_are_not_taken(pair):
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", pair.log.log_port)
    connection.request("POST", "/v1/publication/otel.logs", "{}", {"Origin": "http://example.org"})
    answer = connection.getresponse()
    assert answer.status == 403 and answer.read()
    connection.request("POST", "/v1/publication/otel.logs", "{}", {"Sluice-Crc32c": "00000000"})
    answer = connection.getresponse()
    assert answer.status == 400 and b"Sluice-Crc32c" in answer.read()


def test_a_recovered_log_is_taken_over(tmp_path):
    """L36: the log comes back from its mirror as the next incarnation, behind the same place."""
    pair = elsewhere.Pair(tmp_path, "--mirror-url", f"file://{tmp_path}/mirror").start()
    book = ledger.Ledger()
    try:
        for _ in range(3):
            request = book.new()
            answer = pair.log.post("logs", request.body, path="/v1/logs?commit=remote")
            assert answer.code == 200, answer.body
            (request.receipt,), request.attempts = answer.receipts, 1
        pair.publisher.wait_all(pair.log)
        log = pair.log.status()["log"]["id"]
        pair.log.kill()
        old = pair.log.directory
        pair.log.directory = tmp_path / "recovered"
        pair.log.directory.mkdir()
        done = pair.log.command("log", "recover", "--apply", "--mirror", f"file://{tmp_path}/mirror",
                                "--publish-catalog-path", str(pair.publisher.directory / "catalog.db"),
                                "--publish-warehouse", f"file://{pair.publisher.directory}/warehouse")
        assert done.returncode == 0, done.stderr
        pair.log.start()
        book.must_send(pair.log, book.new())
        pair.publisher.wait_all(pair.log)
        status = pair.publisher.status()["source"]
        assert status["log"] == log and status["incarnation"] == 2
        table = sluice.catalog(pair.publisher.directory).load_table("otel.logs")
        assert table.properties[f"sluice.{log}.0.epoch"].startswith("2.")
        assert f"sluice.{log}.0.recovered-2" in table.properties
        finish(pair, book)
        assert pathlib.Path(old).exists()
    finally:
        pair.close()
