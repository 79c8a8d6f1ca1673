# SPDX-License-Identifier: Apache-2.0
"""Limits of single tables and groups (L37): who is refused, who is not, and when to come back."""
import subprocess
import threading
import time

import pytest

import elsewhere
import faults
import ledger
import sluice

PAD = 20000  # bytes of a request; each limit below takes a dozen


def start(request, directory, *flags):
    server = sluice.Server(directory, "--publish-interval", "50ms", "--publish-halt-confirm", "1s",
                           "--publish-threads", "1", *flags).start()
    request.addfinalizer(server.kill)
    return server


def halt_logs(server, book):
    """Its lane stands still: nothing of the table is published from here on."""
    for _ in range(2):
        book.must_send(server, book.new())
        server.wait_published()
    table = sluice.catalog(server.directory).load_table(("otel", "logs"))
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    book.must_send(server, book.new())
    faults.wait_for(lambda: server.lane("otel.logs")["state"] == "halted", what="the halt")


def fill(server, book, most=100):
    """Sends logs until one is refused; returns that answer."""
    for _ in range(most):
        one = book.new(pad=PAD)
        answer = server.post("logs", one.body)
        if answer.code != 200:
            book.requests.remove(one)
            return answer
        (one.receipt,), one.attempts = answer.receipts, 1
    raise AssertionError("nothing was refused")


def metric(server, name):
    lines = [line for line in server.get("/metrics")[1].splitlines() if line.startswith(name + " ")]
    return int(lines[0].split()[-1])


def finish(server, book):
    server.command("clear-halt", "otel.logs", "--confirm", "--republish", check=0)
    faults.wait_for(lambda: book.send(server, book.new()), what="room in the log")
    server.wait_published()
    server.stop()
    book.check(server.directory, with_leftovers=True)  # of the kill


def test_a_full_log_is_published_whatever_the_interval(tmp_path, request):
    """Refused for want of room until the interval was over, an hour later."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "1h", "--log-segment-bytes", "1MiB",
                           "--log-budget-bytes", "8MiB", "--log-keep-committed", "0").start()
    request.addfinalizer(server.kill)
    book, refused, deadline = ledger.Ledger(), 0, time.monotonic() + 90
    for _ in range(800):
        one = book.new(pad=PAD)
        while (answer := server.post("logs", one.body)).code == 503:
            refused += 1
            assert time.monotonic() < deadline, answer.body
            time.sleep(0.05)
        assert answer.code == 200
        (one.receipt,), one.attempts = answer.receipts, 1
    assert refused > 0, "the log was never full"
    server.stop()
    book.check(server.directory)


@pytest.mark.parametrize("flags", [("--log-table-bytes", "256KiB"),
                                   ("--log-table-bytes", "1KiB", "--log-table-limits",
                                    "otel.logs = 256KiB, otel.spans=0")])
def test_a_table_at_its_limit_is_refused_alone(tmp_path, request, flags):
    server = start(request, tmp_path / "data", *flags)
    book = ledger.Ledger()
    halt_logs(server, book)
    answer = fill(server, book)
    assert answer.code == 503 and 1 <= int(answer.headers["Retry-After"]) <= 60
    assert b"otel.logs has " in answer.body and b"its limit is 262144" in answer.body
    lane = server.lane("otel.logs")
    assert lane["limit_bytes"] == 262144 and 200000 < lane["backlog_bytes"] <= 262144
    assert metric(server, 'sluice_table_refused_total{table="otel.logs"}') >= 1
    assert metric(server, 'sluice_table_backlog_bytes{table="otel.logs"}') == lane["backlog_bytes"]
    for _ in range(30):  # they have a limit, too, and are published
        one = book.new("spans", pad=PAD)
        faults.wait_for(lambda: book.send(server, one), what="room for spans")
    # What it counts is what is there, after a start too.
    server.kill()
    server.start()
    assert server.lane("otel.logs")["backlog_bytes"] == lane["backlog_bytes"]
    assert fill(server, book, most=2).code == 503
    book.must_send(server, book.new("spans"))
    finish(server, book)


def test_a_group_at_its_limit_is_refused_whole(tmp_path, request):
    server = start(request, tmp_path / "data", "--log-group-bytes", "256KiB")
    book = ledger.Ledger()
    halt_logs(server, book)
    answer = fill(server, book)
    assert answer.code == 503 and b"group 0 has " in answer.body
    refused = server.post("traces", book.new("spans", pad=PAD).body)
    del book.requests[-1]
    assert refused.code == 503 and 1 <= int(refused.headers["Retry-After"]) <= 60
    assert metric(server, "sluice_log_group_refused_total") >= 2
    finish(server, book)


def test_who_comes_back_when_told_gets_through(tmp_path, request):
    """Four clients send faster than the limit lets them; the wait that they are told is what publication takes,
    and one beside them who sends to another table is never refused."""
    server = start(request, tmp_path / "data", "--log-table-limits", "otel.logs=512KiB", "--otlp-workers", "1",
                   "--publish-interval", "1h")
    book, waits, lock = ledger.Ledger(), [], threading.Lock()
    ends = time.monotonic() + 6

    def send():
        while time.monotonic() < ends:
            with lock:
                one = book.new(pad=4 * PAD)
            for _ in range(20):
                answer = server.post("logs", one.body)
                if answer.code == 200:
                    (one.receipt,), one.attempts = answer.receipts, 1
                    break
                assert answer.code == 503 and b"its limit is 524288" in answer.body, answer.body
                with lock:
                    waits.append(int(answer.headers["Retry-After"]))
                time.sleep(min(waits[-1], 2))
            else:
                raise AssertionError("20 times refused")

    failures = []

    def guarded():
        try:
            send()
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(4)]
    for thread in threads:
        thread.start()
    others = ledger.Ledger()
    while time.monotonic() < ends:
        others.must_send(server, others.new("spans"))
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert not failures and waits and max(waits) <= 10, (failures, waits)
    server.stop()
    book.requests += others.requests
    book.check(server.directory)


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_what_is_in_the_way_is_published_at_once(tmp_path, is_elsewhere):
    """A request that does not fit behind a small one need not wait for the interval, wherever publication runs."""
    flags = ("--log-table-limits", "otel.logs=512KiB", "--publish-interval", "1h")
    book = ledger.Ledger()
    pair = elsewhere.Pair(tmp_path, *flags[:2], publisher=flags[2:]).start() if is_elsewhere else None
    server = pair.log if pair else sluice.Server(tmp_path / "data", *flags).start()
    try:
        book.must_send(server, book.new(pad=30000))
        large = book.new(pad=170000)
        assert not book.send(server, large)
        faults.wait_for(lambda: book.send(server, large), seconds=10, what="room")
        if pair:
            assert not pair.log.lane("otel.logs")["lag_rows"] or pair.publisher.lane("otel.logs")["commits"] == 1
        assert book.must_send(server, book.new("spans"))
    finally:
        (pair.close if pair else server.kill)()


@pytest.mark.parametrize("value, why", [
    ("otel.nothing=1MiB", "there is no table otel.nothing"),
    ("otel.logs", "otel.logs: not NAME=SIZE"),
    ("otel.logs=much", "otel.logs=much: not NAME=SIZE"),
    ("otel.logs=1MiB,,otel.spans=1MiB", "there is no table "),
    ("otel.logs=1MiB, otel.logs=2MiB", "otel.logs twice"),
])
def test_limits_that_are_none(tmp_path, value, why):
    words = [str(sluice.BINARY), "serve", "--data-dir", str(tmp_path / "data"), "--log-table-limits", value]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and why in done.stderr, done
