# SPDX-License-Identifier: Apache-2.0
"""The machine is gone, its mirror is not: `sluice log recover` makes the log anew, the tables hold every row
once, and the old machine, should it come back, is fenced until `sluice log adopt` (L25, L30, L35, L36)."""
import http.client
import json
import re
import shutil
import subprocess
import threading
import time

import pytest

import faults
import ledger
import log_client
import mirror
import sluice

STILL = ("--publish-interval", "1h", "--publish-halt-confirm", "1s", "--publish-threads", "1")
GOES = ("--publish-interval", "50ms", "--publish-halt-confirm", "1s", "--publish-threads", "1")
CALLS = ("openat", "pwritev", "pwrite64", "fdatasync", "fsync", "rename", "renameat2", "unlink", "fallocate",
         "mkdir", "ftruncate", "rmdir")


class Place:
    """A lake that outlives its machines."""

    def __init__(self, path, request):
        self.path, self.request = path, request
        self.lake = path / "lake"
        self.lake.mkdir()
        self.flags = ("--publish-catalog-path", str(self.lake / "catalog.db"),
                      "--publish-warehouse", f"file://{self.lake}/warehouse")
        self.book = ledger.Ledger()

    def server(self, name, *flags):
        server = sluice.Server(self.path / name, *self.flags, *flags).start()
        self.request.addfinalizer(server.kill)
        return server

    def recover(self, name, *words, check=0):
        done = subprocess.run([str(sluice.BINARY), "log", "recover", "--data-dir", str(self.path / name),
                               *self.flags, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
        return done.stdout if check == 0 else done.stderr

    def adopt(self, name, *words, check=0):
        done = subprocess.run([str(sluice.BINARY), "log", "adopt", "--data-dir", str(self.path / name),
                               *self.flags, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
        return done.stdout if check == 0 else done.stderr

    def force(self, server, table="logs"):
        request = self.book.new(table)
        signal = ledger.SIGNALS[table][0]
        answer = server.post(signal, request.body, path=f"/v1/{signal}?commit=force")
        assert answer.code == 200 and answer.headers["Sluice-Boundary"] == "visible"
        (request.receipt,), request.attempts = answer.receipts, 1

    def send(self, server, count=3, **more):
        sent = [self.book.must_send(server, self.book.new(table, **more))
                for _ in range(count) for table in ("logs", "spans")]
        return sent

    def forget(self, requests):
        for request in requests:
            self.book.requests.remove(request)

    def mirrored(self, server, **more):
        """Kills the server; its mirror has all that was acknowledged."""
        time.sleep(0.1)  # a floor follows (L9)
        server.kill()
        copy = mirror.Mirror(self.path / "mirror", self.log_id(server))
        copy.take(server.directory / "log", **more)
        return copy

    @staticmethod
    def log_id(server):
        data = next((server.directory / "log").glob("*/*.seg")).read_bytes()
        return data[16:32].hex()

    def finish(self, server, **more):
        server.wait_published()
        assert server.get("/readyz")[0] == 200, server.get("/readyz")
        server.stop()
        self.book.check(self.lake, with_leftovers=True, **more)


@pytest.fixture()
def place(tmp_path, request):
    return Place(tmp_path, request)


def properties(place, table="logs"):
    found = sluice.catalog(place.lake).load_table(("otel", table)).properties
    return {key.split(".", 3)[3]: value for key, value in found.items() if key.startswith("sluice.")}


def test_recovered(place):
    old = place.server("old", *STILL)
    place.force(old)
    place.send(old)
    copy = place.mirrored(old)
    shutil.rmtree(old.directory)
    plan = place.recover("new", "--mirror", copy.url)
    assert "nothing was changed" in plan and not (place.path / "new").exists()
    told = json.loads(place.recover("new", "--mirror", copy.url, "--json"))
    assert told["log"] == copy.log_id and told["incarnation"] == 2 and not told["damaged"]
    assert told["missing"] == [] and not (place.path / "new").exists()
    place.recover("new", "--mirror", copy.url, "--apply")
    assert json.loads((copy.root / "head").read_text())["incarnation"] == 2
    assert "already" in place.recover("new", "--mirror", copy.url, "--apply")
    new = place.server("new", *GOES)
    faults.wait_for(lambda: properties(place)["epoch"] == "2.2", what="the takeover")
    said = properties(place)
    assert said["recovered-2"].split(":")[1] == str(told["groups"][0]["last"])
    assert said["taken-over-2"].split(":")[1] == str(place.book.requests[0].receipt[3])
    place.send(new)
    place.finish(new)


def test_the_log_alone_is_lost(place):
    """What the lanes keep is still there, a range under way among it: it is the lost log's, and given up."""
    old = place.server("old", *STILL)
    place.force(old)
    place.send(old)
    copy = place.mirrored(old)
    old.flags = (*place.flags, *GOES)
    data, aside = (place.lake / "warehouse/otel/logs" / name for name in ("data", "aside"))
    data.rename(aside)
    data.write_text("")  # its files cannot be written
    old.start()
    lost = place.send(old)
    faults.wait_for(lambda: old.lane("otel.logs")["state"] == "retrying", what="the lane's trouble")
    assert (old.directory / "publish/otel.logs.journal").exists()
    faults.wait_for(lambda: old.lane("otel.spans")["lag_rows"] == 0, what="the spans")
    old.kill()
    data.unlink()
    aside.rename(data)
    place.forget(r for r in lost if r.table == "logs")
    shutil.rmtree(old.directory / "log")
    place.recover("old", "--mirror", copy.url, "--apply")
    old.start()
    faults.wait_for(lambda: properties(place)["epoch"].startswith("2."), what="the takeover")
    place.send(old)
    place.finish(old)


def test_consumers_ahead_of_the_mirror(place):
    """A consumer's acknowledgement is never behind what comes: numbers go on above it (L25)."""
    mirrored = ("--mirror-url", str(place.path / "mirror"), "--mirror-interval", "50ms")
    old = place.server("old", *STILL, *mirrored)
    place.send(old)
    old.command("export", "otel.logs", "--to", str(place.path / "rows.ndjson"), "--consumer", "c", "--log-port",
                str(old.log_port), check=0)
    acked = max(r.receipt[3] for r in place.book.requests if r.table == "logs")
    old.stop()  # publishes; a state is put that has the lease
    old.start()
    place.forget(place.send(old, 1))
    faults.wait_for(lambda: old.status()["mirror"]["queue_bytes"] == 0, what="the mirror")
    log = old.status()["log"]["id"]
    old.kill()
    segments = place.path / "mirror" / log / "segments"
    for segment in segments.iterdir():
        shutil.rmtree(segment)
    plan = place.recover("new", *mirrored[:2], "--without-tables")
    assert "consumer    c has acknowledged" in plan, plan
    place.recover("new", *mirrored[:2], "--apply")
    new = place.server("new", *GOES)
    assert all(r.receipt[3] > acked for r in place.send(new))
    new.command("export", "otel.logs", "--to", str(place.path / "more.ndjson"), "--consumer", "c", "--log-port",
                str(new.log_port), check=0)
    assert len((place.path / "more.ndjson").read_text().splitlines()) == 9
    place.finish(new)


def test_takes_over_without_rows(place):
    old = place.server("old", *STILL)
    place.force(old)
    copy = place.mirrored(old)
    place.recover("new", "--mirror", copy.url, "--apply")
    new = place.server("new", *STILL)
    faults.wait_for(lambda: properties(place)["epoch"] == "2.2", what="the takeover")
    place.finish(new)


def test_tables_ahead_of_the_mirror(place):
    old = place.server("old", *STILL)
    place.force(old)
    place.send(old)
    copy = place.mirrored(old)
    old.start()
    place.force(old)  # and all that was sent to logs before; spans stand where they were
    lost = place.send(old, 2)
    place.force(old, "spans")
    place.forget(r for r in lost if r.table == "logs")
    old.kill()
    told = json.loads(place.recover("new", "--mirror", copy.url, "--json"))
    (hole,) = [m for m in told["missing"] if m["last"] == told["groups"][0]["next"] - 1] or [None]
    assert hole and told["groups"][0]["next"] > place.book.requests[-1].receipt[3]
    place.recover("new", "--mirror", copy.url, "--apply")
    new = place.server("new", *GOES)
    place.send(new)
    place.finish(new)


def test_the_old_machine_comes_back(place):
    old = place.server("old", *STILL)
    place.force(old)
    place.send(old)
    copy = place.mirrored(old)
    old.start()
    place.send(old)  # acknowledged, and not in the mirror
    old.kill()
    place.recover("new", "--mirror", copy.url, "--apply")
    new = place.server("new", *GOES)
    place.send(new)
    new.wait_published()
    old.flags = (*place.flags, *GOES)
    old.start()
    faults.wait_for(lambda: old.get("/readyz")[0] == 503 and "log adopt" in old.get("/readyz")[1], what="the fence")
    answer = old.post("logs", place.book.new().body)
    place.book.requests.pop()
    assert answer.code == 503 and b"log adopt" in answer.body
    faults.wait_for(lambda: all(x["state"] == "stood_down" for x in old.status()["lanes"]), what="the lanes")
    old.stop(expect=None)
    old.start()
    assert old.post("logs", b"").code in (503, 200)
    assert old.get("/readyz")[0] == 503
    old.stop(expect=None)
    for words in (["log", "fork", "--confirm"], ["clear-halt", "otel.logs", "--confirm", "--accept"]):
        done = subprocess.run([str(sluice.BINARY), *words, "--data-dir", str(old.directory), "--api-port", "1",
                               *place.flags], capture_output=True, text=True)
        assert done.returncode == 86 and "adopt" in done.stderr, (words, done)
    plan = place.adopt("old")
    assert "9 rows in 3 entries would go on" in plan, plan
    done = place.adopt("old", "--confirm")
    assert "this log goes on as " in done
    fresh = done.split()[-1]
    old.start()
    place.send(old)
    old.wait_published()
    assert old.get("/readyz")[0] == 200
    old.stop()
    place.finish(new, logs={copy.log_id: [fresh]})


@pytest.mark.parametrize("runs", [True, False], ids=["the new one runs later", "the new one never runs"])
def test_the_old_machine_comes_back_first(place, runs):
    """Before the recovered log was started, no table tells of it; the mirror does (L36)."""
    mirrored = ("--mirror-url", f"file://{place.path}/mirror")
    old = place.server("old", *STILL, *mirrored)
    place.send(old)
    faults.wait_for(lambda: old.status()["mirror"]["queue_bytes"] == 0, what="the copy")
    old.kill()
    place.recover("new", *mirrored, "--mirror", mirrored[1], "--apply")
    log = Place.log_id(old)
    old.flags = (*place.flags, "--publish-interval", "3s", *mirrored)
    old.start()
    faults.wait_for(lambda: old.get("/readyz")[0] == 503 and "log adopt" in old.get("/readyz")[1], what="the fence")
    assert old.post("logs", place.book.new().body).code == 503
    place.book.requests.pop()
    faults.wait_for(lambda: all(x["state"] == "stood_down" for x in old.status()["lanes"]), what="the lanes")
    old.stop(expect=None)
    assert not list(place.lake.glob("warehouse/otel/*")), "nothing was published"
    told = place.adopt("old", "--confirm", check=3)
    assert "start the server on the recovered one first" in told and "--alone" in told, told
    if runs:
        new = place.server("new", *GOES, *mirrored)
        place.send(new)
        new.wait_published()
    fresh = place.adopt("old", "--confirm", *([] if runs else ["--alone"])).split()[-1]
    old.start()
    place.send(old)
    if runs:
        old.wait_published()
        old.stop()
    place.finish(new if runs else old, logs={log: [fresh]})


@pytest.mark.parametrize("remembers", [True, False])
def test_adopts_what_the_table_was_ahead_by(place, remembers):
    """Rows that the old machine published behind the mirror's end stand once, by its hand; though its directory be
    put back to what it was before that."""
    old = place.server("old", *STILL)
    place.send(old)
    copy = place.mirrored(old)
    old.start()
    place.force(old)
    place.send(old, 2)
    old.kill()
    if not remembers:
        kept = place.path / "kept"
        shutil.copytree(old.directory, kept)
        subprocess.run([str(sluice.BINARY), "publish", "--data-dir", str(old.directory), *place.flags], check=True,
                       stdout=subprocess.DEVNULL)
        shutil.rmtree(old.directory)
        kept.rename(old.directory)
    place.recover("new", "--mirror", copy.url, "--apply")
    new = place.server("new", *GOES)
    place.send(new)
    new.wait_published()
    fresh = place.adopt("old", "--confirm").split()[-1]
    old.flags = (*place.flags, *GOES)
    old.start()
    place.send(old)
    old.wait_published()
    old.stop()
    place.finish(new, logs={copy.log_id: [fresh]})


@faults.needs_strace
def test_adopts_what_the_mirror_lost(place):
    """Entries that the recovered log lacks are copied behind the others, once, though adopt is killed (L36)."""
    old = place.server("old", *STILL)
    for _ in range(4):
        place.send(old, rows=1, pad=6000)
    copy = place.mirrored(old, range_bytes=12288)
    victims = copy.objects()
    victims[len(victims) // 2].unlink()
    told = json.loads(place.recover("new", "--mirror", copy.url, "--apply", "--json"))
    lost = [r for r in place.book.requests
            if any(m["first"] <= r.receipt[3] <= m["last"] for m in told["missing"])]
    assert 0 < len(lost) < 8
    new = place.server("new", *GOES)
    place.send(new)
    new.wait_published()
    plan = place.adopt("old")
    assert sum(int(n) for n in re.findall(r"(\d+) rows", plan)) == len(lost), plan
    words = [str(sluice.BINARY), "log", "adopt", "--confirm", "--data-dir", str(old.directory), *place.flags]
    kept, kills = place.path / "kept", 0
    shutil.copytree(old.directory, kept)
    for call in ("fdatasync", "pwritev", "pwrite64", "renameat2", "rename"):
        nth = 0
        for _ in range(60):
            nth += 1 + nth // 2
            shutil.rmtree(old.directory)
            shutil.copytree(kept, old.directory)  # the same place, as far as lanes can tell: they stand down anyhow
            done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                   f"inject={call}:signal=SIGKILL:when={nth}", *words],
                                  capture_output=True, text=True, timeout=60)
            if done.returncode == 0:
                break
            kills += 1
            again = subprocess.run(words, capture_output=True, text=True, timeout=60)
            # Over, but for the last words: the log has its new id.
            assert again.returncode == 0 or "no table says" in again.stderr, again
            if call == "fdatasync":
                count = sum(json.loads(line)["rows"] for line in subprocess.run(
                    [str(sluice.BINARY), "log", "cat", "--json", "--data-dir", str(old.directory)],
                    capture_output=True, text=True).stdout.splitlines() if '"otel.' in line)
                assert count == 24 + len(lost), (call, nth, count)
        else:
            pytest.fail(f"{nth} {call} are not enough")
    assert kills > 10, kills
    old.flags = (*place.flags, *GOES)
    old.start()
    old.wait_published()
    old.stop()
    new.stop()
    for request in lost:
        request.receipt = None  # they stand under the new id, behind the others
    place.book.check(place.lake, with_leftovers=True)
    for request in lost:
        rows = sluice.read_pyiceberg(place.lake, request.table).column(ledger.SIGNALS[request.table][2]).to_pylist()
        assert rows.count(f"{request.ident}#0") == 1


def test_wrong_roots(place):
    old = place.server("old", *STILL)
    place.send(old)
    copy = place.mirrored(old)
    root = place.path / "mirror"
    assert "no mirror" in place.recover("new", "--mirror", f"file://{place.lake}", check=3)
    assert "nothing is there" in place.recover("new", "--mirror", f"file://{place.path}/nowhere", check=3)
    assert "mirror of one log" in place.recover("new", "--mirror", f"{copy.url}/{copy.log_id}", check=2)
    assert "never recovered" in place.recover("old", "--mirror", copy.url, "--apply", check=4)
    other = mirror.Mirror(root, "ab" * 16)
    assert "one is to be named" in place.recover("new", "--mirror", copy.url, check=2)
    assert copy.log_id in place.recover("new", "--mirror", copy.url, "--log-id", copy.log_id)
    other.put_head(copy.log_id)
    assert "says that it is of log" in place.recover("new", "--mirror", copy.url, "--log-id", other.log_id, check=88)
    other.put_head(other.log_id, format="another")
    place.recover("new", "--mirror", copy.url, "--log-id", other.log_id, check=74)
    (other.root / "head").unlink()
    (other.root / "state").mkdir()
    (other.root / "state" / "x").write_text("x")
    assert "no head" in place.recover("new", "--mirror", copy.url, "--log-id", other.log_id, check=3)
    assert not (place.path / "new").exists()
    stranger = place.server("stranger", *STILL)
    stranger.stop()
    assert "not the one of the mirror" in place.recover("stranger", "--mirror", copy.url, "--log-id", copy.log_id,
                                                        "--apply", check=88)
    place.recover("new", "--mirror", copy.url, "--log-id", copy.log_id, "--apply")
    new = place.server("new", *GOES)
    assert "using" in place.recover("new", "--mirror", copy.url, "--log-id", copy.log_id, "--apply", check=75)
    place.finish(new)


def test_recoveries_that_begin_together(place):
    """Each that comes to its end has an incarnation of its own; the one that gives up does so once, and another
    that begins later is above all of them."""
    old = place.server("old", *STILL)
    place.send(old)
    copy = place.mirrored(old)
    taken, gave_up = [], 0

    def result(name, process):
        nonlocal gave_up
        told, why = process.communicate(timeout=60)
        assert process.returncode in (0, 75), (process.returncode, why)
        if process.returncode == 0:
            taken.append(json.loads(told)["incarnation"])
            return
        gave_up += 1
        assert "began meanwhile" in why and not (place.path / name / "log").exists()

    for round_number in range(4):
        pairs = []
        for side in "ab":
            name = f"{side}{round_number}"
            words = [str(sluice.BINARY), "log", "recover", "--data-dir", str(place.path / name), *place.flags,
                     "--mirror", copy.url, "--apply", "--json"]
            pairs.append((name, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
        for name, process in pairs:
            result(name, process)
    assert taken and gave_up and len(set(taken)) == len(taken), (taken, gave_up)
    # One that claimed a number and never came back costs that number.
    claims = copy.root / "claims"
    (claims / str(max(taken) + 1)).write_text("0" * 32)
    told = json.loads(place.recover("new", "--mirror", copy.url, "--apply", "--json"))
    assert told["incarnation"] == max(taken) + 2
    # One that finds its number taken is told so, and then takes another.
    (place.path / "later").mkdir()
    (place.path / "later" / "log.recover").mkdir()
    (place.path / "later" / "log.recover" / "began").write_text(f"{copy.log_id} {max(taken) + 3} {'1' * 32}\n")
    (claims / str(max(taken) + 3)).write_text("0" * 32)
    assert "began meanwhile" in place.recover("later", "--mirror", copy.url, "--apply", check=75)
    told = json.loads(place.recover("later", "--mirror", copy.url, "--apply", "--json"))
    assert told["incarnation"] == max(taken) + 4


@pytest.mark.parametrize("fault", ["missing", "damaged", "foreign"])
def test_an_object_is_lost(place, fault):
    """What it held is named, and given up; what is behind it is kept (TD4)."""
    old = place.server("old", *STILL)
    for _ in range(4):
        place.send(old, rows=1, pad=6000)
    copy = place.mirrored(old, range_bytes=12288)
    victims = copy.objects()
    victim = victims[len(victims) // 2]
    if fault == "missing":
        victim.unlink()
    elif fault == "damaged":
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
    else:
        victim.write_bytes(victims[0].read_bytes())
    told = json.loads(place.recover("new", "--mirror", copy.url, "--apply", "--json"))
    assert any(victim.name in text or "missing" in text for text in told["damaged"])
    lost = [r for r in place.book.requests
            if any(m["first"] <= r.receipt[3] <= m["last"] for m in told["missing"])]
    assert 0 < len(lost) < 8, told["missing"]
    assert all(m["not_in"] for m in told["missing"])
    place.forget(lost)
    new = place.server("new", *GOES)
    place.send(new)
    place.finish(new)


def test_what_no_floor_proves_is_ignored(place):
    """A whole unit at the end of the mirror: neither a range's floor nor a unit's says that it was synced (L35)."""
    old = place.server("old", *STILL)
    place.send(old)
    copy = place.mirrored(old, with_proof=False)
    last = max(r.receipt[3] for r in place.book.requests)
    told = json.loads(place.recover("new", "--mirror", copy.url, "--apply", "--json"))
    assert told["groups"][0]["last"] == last - 1 and told["damaged"] == []
    place.forget([r for r in place.book.requests if r.receipt[3] == last])
    new = place.server("new", *GOES)
    place.send(new)
    place.finish(new)


@faults.needs_strace
def test_killed_at_every_step(place):
    old = place.server("old", *STILL)
    place.force(old)
    place.send(old)
    copy = place.mirrored(old)
    shutil.rmtree(old.directory)
    words = [str(sluice.BINARY), "log", "recover", "--data-dir", str(place.path / "new"), *place.flags, "--mirror",
             copy.url, "--apply", "--json"]
    first = json.loads(place.recover("new", "--mirror", copy.url, "--json"))
    kills = 0
    for call in CALLS:
        nth = 0
        for _ in range(60):
            nth += 1 + nth // 3
            shutil.rmtree(place.path / "new", ignore_errors=True)
            shutil.rmtree(copy.root / "claims", ignore_errors=True)
            copy.put_head(copy.log_id)
            done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                   f"inject={call}:signal=SIGKILL:when={nth}", *words],
                                  capture_output=True, text=True, timeout=60)
            if done.returncode == 0:
                break
            assert done.returncode in (-9, 137), (call, nth, done)
            kills += 1
            again = json.loads(place.recover("new", "--mirror", copy.url, "--apply", "--json"))
            assert again["groups"] == first["groups"] or again["is_applied"], (call, nth)
            assert again["incarnation"] == 2, (call, nth, again)
        else:
            pytest.fail(f"{nth} {call} are not enough")
    assert kills > 30, kills
    new = place.server("new", *GOES)
    place.finish(new)


def test_producers_are_uncertain(place):
    old = place.server("old", *STILL)
    book = place.book
    for n in (1, 2):
        book.must_send(old, book.new(producer="known", sequence=n))
    copy = place.mirrored(old)
    old.start()
    lost = [book.must_send(old, book.new(producer="known", sequence=3)),
            book.must_send(old, book.new(producer="late", sequence=1))]
    old.kill()
    place.forget(lost)
    place.recover("new", "--mirror", copy.url, "--apply")
    new = place.server("new", *GOES)

    def post(request, **more):
        return new.post("logs", request.body, Sluice_Producer=request.producer,
                        Sluice_Sequence=str(request.sequence))

    for producer, sequence, expected in (("known", 4, 3), ("late", 2, 1)):
        request = book.new(producer=producer, sequence=sequence)
        answer = post(request)
        assert answer.code == 409 and b"producer_uncertain" in answer.body
        assert f"below {expected}".encode() in answer.body
        answer = post(request)
        assert answer.code == 200, answer.body
        (request.receipt,), request.attempts = answer.receipts, 2
        gap = book.new(producer=producer, sequence=sequence + 5)
        assert b"producer_gap" in post(gap).body
        book.requests.pop()
    repeat = post(book.requests[1])
    assert repeat.code == 200 and repeat.receipts[0][3] == book.requests[1].receipt[3]
    new.kill()
    new.start()
    for producer, sequence in (("known", 5), ("late", 3)):
        book.must_send(new, book.new(producer=producer, sequence=sequence))
    place.finish(new)


def write(place, server, stop, failures):
    """Requests of both modes, each once; what was acknowledged as `durable` alone may be lost with the machine."""
    n = 0
    while not stop.is_set():
        n += 1
        request = place.book.new(("logs", "spans")[n % 2], rows=1 + n % 5, pad=n % 3 * 400)
        signal, mode = ledger.SIGNALS[request.table][0], ("remote", "wait_for")[n % 4 == 0]
        request.attempts = 1
        try:
            answer = server.post(signal, request.body, path=f"/v1/{signal}?commit={mode}")
        except (OSError, http.client.HTTPException):
            return
        if answer.code != 200:
            failures.append((answer.code, answer.body))
        elif answer.headers["Sluice-Boundary"] == "remote":
            (request.receipt,) = answer.receipts


@pytest.mark.parametrize("interval", ["50ms", "1h"])
def test_machines_go_one_after_another(place, interval):
    """kill -9 under load, the data directory is gone, the next machine goes on: what was `remote` is there, once."""
    flags = ("--mirror-url", str(place.path / "mirror"), "--mirror-interval", "100ms", "--publish-interval", interval,
             "--publish-threads", "1", "--log-segment-bytes", "1MiB", "--log-seal-after", "500ms",
             "--publish-halt-confirm", "1s")
    for life in range(3):
        name = f"machine{life}"
        if life:
            told = json.loads(place.recover(name, *flags[:2], "--apply", "--json"))
            assert told["incarnation"] == life + 1 and told["damaged"] == [], told
        server, stop, failures = place.server(name, *flags), threading.Event(), []
        writers = [threading.Thread(target=write, args=(place, server, stop, failures)) for _ in range(4)]
        for writer in writers:
            writer.start()
        time.sleep(2 + 0.37 * life)
        server.kill()
        for writer in writers:
            writer.join()
        assert not failures, failures[:3]
        shutil.rmtree(server.directory)
    remote = [r for r in place.book.requests if r.receipt]
    assert len(remote) > 60 and len({r.receipt[2] for r in remote}) == 3
    place.recover("last", *flags[:2], "--apply")
    last = place.server("last", *flags[:2], *GOES)
    place.finish(last)


def test_recovered_while_the_old_one_runs(place):
    """Nobody stopped it: what it answers `remote` after the list was taken would be nowhere."""
    flags = ("--mirror-url", str(place.path / "mirror"), "--mirror-interval", "100ms", *STILL)
    old, stop, failures = place.server("old", *flags), threading.Event(), []
    writers = [threading.Thread(target=write, args=(place, old, stop, failures)) for _ in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(1.5)
    place.recover("new", *flags[:2], "--apply")
    time.sleep(1)
    stop.set()
    for writer in writers:
        writer.join()
    assert failures and all(b"recovered" in body for _, body in failures), failures[:3]
    old.kill()
    shutil.rmtree(old.directory)
    assert len([r for r in place.book.requests if r.receipt]) > 20
    new = place.server("new", *flags[:2], *GOES)
    place.finish(new)


def test_without_a_catalog(place):
    url = f"file://{place.path}/mirror"
    old = place.server("old", *GOES, "--log-seal-after", "300ms", "--mirror-url", url)
    place.force(old)
    faults.wait_for(lambda: "sluice_mirror_swept_total 0" not in old.get("/metrics")[1], 30, "the first deletion")
    place.send(old)
    faults.wait_for(lambda: old.status()["mirror"]["queue_bytes"] == 0, what="the copy")
    aside = place.lake / "aside"
    old.kill()
    (place.lake / "catalog.db").rename(aside)
    plan = place.recover("new", "--mirror", url)
    assert "there is no catalog" in plan and "otel.logs held up to 0/" in plan, plan
    assert "holds rows of this log" in place.recover("new", "--mirror", url, "--apply", check=2)
    head, = (place.path / "mirror").glob("*/head")
    assert json.loads(head.read_text())["incarnation"] == 1, "what came to nothing has not stopped the old server"
    aside.rename(place.lake / "catalog.db")
    place.recover("new", "--mirror", url, "--apply")
    new = place.server("new", *GOES)
    place.finish(new)


def test_backup(place):
    """A copy taken under load starts in the place of the original, and every row of before it stands once."""
    flags = ("--publish-interval", "50ms", "--publish-threads", "1", "--log-segment-bytes", "1MiB",
             "--log-seal-after", "300ms", "--publish-halt-confirm", "1s", "--log-keep-committed", "0")
    server = sluice.Server(place.path / "data", *flags).start()
    place.request.addfinalizer(server.kill)
    log_client.Port(server.log_port).put("slow", table="otel.logs")  # it holds the log from its begin
    stop, failures, before = threading.Event(), [], []

    def write():
        while not stop.is_set():
            request = place.book.new(("logs", "spans")[len(before) % 2], pad=2000)
            try:
                if place.book.send(server, request):
                    before.append(request)
            except AssertionError as wrong:
                failures.append(wrong)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    time.sleep(2)
    kept = list(before)
    told = server.command("backup", "--to", str(place.path / "copy"), check=0)
    assert " segments, the catalog" in told.stdout
    time.sleep(1)
    stop.set()
    for writer in writers:
        writer.join()
    assert not failures and len(kept) > 20
    assert server.command("backup", "--to", str(place.path / "copy")).returncode == 4
    server.kill()
    shutil.rmtree(server.directory)
    (place.path / "copy").rename(server.directory)
    for request in place.book.requests:
        if request not in kept:
            request.receipt = None  # acknowledged behind the cut, or while it was made
    server.start()
    follower = log_client.Follower(server.log_port, "otel.logs", "slow")
    wanted = {r.receipt[3] for r in kept if r.table == "logs"}
    follower.follow_to(max(wanted))
    assert wanted <= {row["_sluice_seq"] for row in follower.rows}
    assert not follower.flags & {"EXPORT_HOLD_RELEASED"}
    place.book.must_send(server, place.book.new())
    server.wait_published()
    assert server.get("/readyz")[0] == 200
    server.stop()
    place.book.check(server.directory, with_leftovers=True)
