# SPDX-License-Identifier: Apache-2.0
"""kill -9, at every step of a publication and at random moments, while rows are sent and PyIceberg appends
to the same table and expires its snapshots. TC1, TC4, TC6, TC12, TE6; the crash table behind E14."""
import collections
import json
import os
import pathlib
import random
import socket
import threading
import time

import pytest

import faults
import ledger
import sluice
from senders import Senders

DEEP = os.environ.get("SLUICE_DEEP") == "1"
SEED = int(os.environ.get("SLUICE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
FLAGS = ("--publish-interval", "50ms", "--log-segment-bytes", "1MiB", "--publish-halt-confirm", "2s",
         "--log-keep-committed", "1s")


@pytest.fixture(autouse=True)
def seed():
    print(f"SLUICE_SEED={SEED}")


def publish_state(directory, name="otel.logs"):
    """What the lane's files say: (intent | descriptor | none, seq that the checkpoint holds)."""
    folder = pathlib.Path(directory) / "publish"

    def read(kind):
        try:
            return json.loads((folder / f"{name}.{kind}").read_text().split("\n", 1)[1])
        except FileNotFoundError:
            return {}
    return read("journal"), read("checkpoint")


def line_of_the_crash_table(directory):
    journal, checkpoint = publish_state(directory)
    if not journal:
        return "between"
    if journal["state"] == "intent":
        return "in 2-3, before 4 is synced"
    if checkpoint.get("committed") == journal["to"]:
        return "between 7 and 8, in 8"
    return "after 4, in 5, before 7"


def settle(server, book, foreign):
    """Starts what was killed, publishes the rest, stops; then the books must balance."""
    try:
        server.start()
        server.wait_published()
        server.stop()
    finally:
        server.kill()
    book.check(server.directory, foreign)


@pytest.fixture()
def started(tmp_path):
    """A server with both tables made."""
    server = sluice.Server(tmp_path / "data", *FLAGS, "--publish-threads", "1").start()
    book = ledger.Ledger()
    book.must_send(server, book.new())
    book.must_send(server, book.new("spans"))
    server.wait_published()
    yield server, book, ledger.Foreign(server.directory)
    server.kill()


def watch_one_publication(server, book, tmp_path):
    """The points of a publication of otel.logs."""
    trace = faults.Trace(server, tmp_path / "trace")
    book.must_send(server, book.new())
    server.wait_published()
    time.sleep(0.1)
    trace.end()
    return faults.points_of(trace.calls())


@faults.needs_strace
def test_kill_at_every_step_of_a_publication(started, tmp_path):
    """Every system call that changes anything is the last one once (deep: many times)."""
    server, book, foreign = started
    chance = random.Random(SEED)
    points = watch_one_publication(server, book, tmp_path)
    assert len(points) > 40
    reached = collections.Counter()
    checkpoint = max(i for i, (call, _, line) in enumerate(points)
                     if call == "rename" and "checkpoint" in line)
    points += points[checkpoint + 1:]  # few calls lie in 8
    for call, n, _ in points * (8 if DEEP else 1):
        trace = faults.Trace(server, tmp_path / "trace", call, f"signal=KILL:when={n}")
        request = book.new(rows=chance.randrange(1, 40))
        book.send(server, request)
        try:
            server.process.wait(timeout=2)
        except Exception:
            pass  # this publication had fewer such calls
        trace.end()
        server.kill()
        reached[line_of_the_crash_table(server.directory)] += 1
        what_others_do_meanwhile(foreign, chance)
        server.start()
        server.wait_published()
    server.stop()
    book.check(server.directory, foreign)
    print(dict(reached))
    for line in ("in 2-3, before 4 is synced", "after 4, in 5, before 7", "between 7 and 8, in 8"):
        assert reached[line] >= 5, reached


def what_others_do_meanwhile(foreign, chance):
    what = chance.randrange(5)
    if what >= 3:
        foreign.append()
    if what == 4:
        foreign.expire()


@faults.needs_strace
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_every_call_of_a_publication_fails_once(started, tmp_path, error):
    """Where the catalog's reply is an error after the commit stands, it is not repeated (TC6); a failed
    sync of log or journal ends the process with 74, everything else is tried again (L24)."""
    server, book, foreign = started
    points = [p for p in watch_one_publication(server, book, tmp_path)
              if error == "EIO" or p[0] in ("openat", "pwritev", "rename", "renameat2", "fallocate")]
    ended = 0
    for call, n, line in points:
        trace = faults.Trace(server, tmp_path / "trace", call, f"error={error}:when={n}")
        book.send(server, book.new())
        faults.wait_for(lambda: trace.injected() or is_published(server) or
                        server.process.poll() is not None)
        trace.end()
        if server.process.poll() is None and not is_ended(server):
            server.wait_published()
        if server.process.poll() is not None:
            assert server.process.returncode == 74, (call, n, line, server.log())
            ended += 1
            server.kill()
            server.start()
            server.wait_published()
        ledger.check_files(server.directory, "logs")
    server.stop()
    book.check(server.directory, foreign)
    print(f"{len(points)} failures, {ended} ended the process")
    assert ended < len(points) / 2


def is_published(server):
    try:
        return all(x["lag_rows"] == 0 and x["state"] == "idle" for x in server.status()["lanes"])
    except OSError:
        return False


def is_ended(server):
    time.sleep(0.05)
    if "ending: " in server.log():  # it still answers those in flight
        server.process.wait(timeout=10)
    return server.process.poll() is not None


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def test_kill_at_random_while_others_commit(tmp_path):
    kills = 1000 if DEEP else 60
    chance = random.Random(SEED)
    server = sluice.Server(tmp_path / "data", *FLAGS)
    server.otlp, server.api = free_ports(2)
    server.flags += ("--otlp-http-port", str(server.otlp), "--api-port", str(server.api))
    server.start()
    book, foreign = ledger.Ledger(), ledger.Foreign(server.directory)
    book.must_send(server, book.new())
    book.must_send(server, book.new("spans"))
    server.wait_published()
    senders = Senders(server, book, 4, chance)
    others = threading.Event()

    def others_commit():
        while not others.wait(0.05):
            foreign.append()
            if foreign.certain and max(foreign.certain) % 5 == 0:
                foreign.expire()
    thread = threading.Thread(target=others_commit)
    thread.start()
    reached = collections.Counter()
    try:
        for _ in range(kills):
            server.kill()
            reached[line_of_the_crash_table(server.directory)] += 1
            server.start(wait=False)  # may die while it recovers
            time.sleep(chance.uniform(0, 0.3 if chance.random() < 0.8 else 1.0))
            assert server.process.poll() is None, server.log()
    finally:
        others.set()
        thread.join()
        senders.end()
        server.kill()
    settle(server, book, foreign)
    acked = [r for r in book.requests if r.receipt]
    print(f"{kills} kills, {len(acked)} of {len(book.requests)} requests acknowledged, "
          f"{len(foreign.certain)} appends, {foreign.expiries} expiries and {foreign.conflicts} "
          f"conflicts of others; {dict(reached)}")
    assert len(acked) > kills and foreign.certain and foreign.expiries
