# SPDX-License-Identifier: Apache-2.0
"""`sluice tail` and `sluice export`: what they give is what stands in the table, each row once, whatever ends
the command or the server."""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

import pyarrow.parquet
import pytest

import faults
import ledger
import log_client
import sluice
from test_log_port import SMALL, check_rows, end_of, place, send, server, started  # noqa: F401

# What a killed export may stop in front of, and behind.
CALLS = ("pwrite64", "fdatasync", "fsync", "rename", "ftruncate", "unlink", "openat", "sendto")


def words(server, to, *more, table="otel.logs"):
    return [str(sluice.BINARY), "export", table, "--to", str(to), "--log-port", str(server.log_port), *more]


def export(server, to, *more, check=0, table="otel.logs"):
    done = subprocess.run(words(server, to, *more, table=table), capture_output=True, text=True, timeout=120)
    assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
    return done


def state_of(to):
    path = to / "_export.state" if to.suffix == "" else pathlib.Path(f"{to}.state")
    return json.loads(path.read_text()) if path.exists() else None


def exported(to):
    """Rows that count; everything else is to be of no account to whoever reads the output."""
    if to.suffix == "":
        parts = sorted(p for p in to.iterdir() if p.name[0] != "_")
        return [row for p in parts for row in pyarrow.parquet.ParquetFile(p).read().to_pylist()]
    return [json.loads(line) for line in to.read_text().splitlines()]


def check_export(to, directory, table="logs"):
    found = exported(to)
    if to.suffix == "":
        check_rows(found, directory, table)
        return
    places = [place(row) for row in found]
    assert places == sorted(set(places)), "rows out of order, or twice"
    expected = {place(row): row for row in sluice.read_pyiceberg(directory, table).to_pylist()}
    assert set(places) == set(expected)
    for row in found:
        for name in ("severity_text", "body", "time_unix_nano", "service_name"):
            assert row[name] == expected[place(row)][name]
        assert row["attributes"] == dict(expected[place(row)]["attributes"])


@pytest.mark.parametrize("to", ["rows.ndjson", "rows"])
def test_export_goes_on_where_it_was(server, tmp_path, to):
    to = tmp_path / "out" / to
    to.parent.mkdir()
    for _ in range(3):
        send(server, 4)
        export(server, to)
    assert "\n0 rows" in "\n" + export(server, to).stdout
    assert state_of(to)["cursor"].endswith(f"/{end_of(server)}")
    server.stop()
    check_export(to, server.directory)


@faults.needs_strace
@pytest.mark.parametrize("to", ["rows.ndjson", "rows"])
def test_export_killed_at_every_step(tmp_path, request, to):
    """Killed at the nth of each call that changes something, until there is no nth; then it goes on to the end."""
    server = started(tmp_path / "data", request)
    to, kills = tmp_path / to, 0
    for call in CALLS:
        for nth in range(1, 40):
            send(server, 1, pad=1000)
            done = subprocess.run(
                ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                 f"inject={call}:signal=SIGKILL:when={nth}", *words(server, to, "--consumer", "c")],
                capture_output=True, text=True, timeout=60)
            if done.returncode == 0:
                break
            assert done.returncode in (-9, 137), (call, nth, done)
            kills += 1
            if to.suffix == "" and to.exists():
                for part in to.glob("part-*"):  # whole, whenever it is there
                    pyarrow.parquet.ParquetFile(part).read()
        else:
            pytest.fail(f"40 {call} are not enough")
    assert kills > 20
    export(server, to, "--consumer", "c")
    server.wait_published()
    server.stop()
    check_export(to, server.directory)


@pytest.mark.parametrize("to", ["rows.ndjson", "rows"])
def test_export_killed_at_random_beside_a_server_that_is(tmp_path, request, to):
    """Both die, the log is reclaimed meanwhile, and the consumer's lease keeps what is not exported."""
    server = started(tmp_path / "data", request, *SMALL)
    to, book, is_over = tmp_path / to, ledger.Ledger(), threading.Event()

    def write():
        number = 0
        while not is_over.is_set():
            number += 1
            one = book.new(rows=5, producer="p", sequence=number, pad=20000)
            while not book.send(server, one) and not is_over.is_set():
                time.sleep(0.02)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for i in range(24):
            process = subprocess.Popen(words(server, to, "--consumer", "c", *(("--follow",) if i % 2 else ())),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(random.uniform(0.005, 0.4))
            if i % 6 == 5:
                server.kill()
                server.start()
                time.sleep(random.uniform(0.1, 0.5))
            process.send_signal(signal.SIGKILL)
            assert process.wait() in (-9, 0), process.stderr.read()
    finally:
        is_over.set()
        writer.join()
    book.must_send(server, book.new())
    export(server, to, "--consumer", "c")
    told = log_client.Port(server.log_port).json("GET", "/v1/consumers/c")
    assert told["cursor"] == state_of(to)["cursor"] and told["lag_rows"] == 0 and told["flags"] == []
    server.wait_published()
    faults.wait_for(lambda: log_client.Port(server.log_port).json("GET", "/v1/log")["tables"][0]["reclaimed_through"]
                    [0] > 0, what="reclaim")
    server.stop()
    check_export(to, server.directory)
    book.check(server.directory)


def test_exports_that_share_a_consumer(tmp_path, request):
    """Three have a part each, are killed and come back; together they have every row once. Nobody else gets a part,
    nor does one go on as another."""
    server = started(tmp_path / "data", request, *SMALL)
    book = ledger.Ledger()
    parts = [tmp_path / f"part{i}" for i in range(3)]
    ends = time.monotonic() + (60 if os.environ.get("SLUICE_DEEP") == "1" else 8)
    running = [None] * 3
    while time.monotonic() < ends:
        book.send(server, book.new(rows=5, pad=20000))
        i = random.randrange(3)
        if running[i] and (random.random() < 0.3 or running[i].poll() is not None):
            running[i].send_signal(signal.SIGKILL)
            assert running[i].wait() == -9, running[i].stderr.read()
            running[i] = None
        elif not running[i]:
            running[i] = subprocess.Popen(words(server, parts[i], "--consumer", "c", "--member", f"{i}/3", "--follow"),
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if random.random() < 0.02:
            server.kill()
            server.start()
    for process in filter(None, running):
        process.kill()
        process.wait()
    book.must_send(server, book.new())
    assert "member_taken" in export(server, tmp_path / "other", "--consumer", "c", "--member", "0/3", check=88).stderr
    assert "is of member 0/3" in export(server, parts[0], "--consumer", "c", "--member", "1/3", check=2).stderr
    assert "size_mismatch" in export(server, tmp_path / "four", "--consumer", "c", "--member", "0/4", check=88).stderr
    for i, to in enumerate(parts):
        export(server, to, "--consumer", "c", "--member", f"{i}/3")
        assert all(row["_sluice_seq"] % 3 == i for row in exported(to))
    told = log_client.Port(server.log_port).json("GET", "/v1/consumers/c")
    assert told["lag_rows"] == 0 and all(member["is_present"] for member in told["members"])
    server.wait_published()
    server.stop()
    check_rows(sorted((row for to in parts for row in exported(to)), key=place), server.directory, "logs")
    book.check(server.directory)


@pytest.mark.parametrize("member", ["3/3", "0/1", "0/33", "1", "a/2", "1/2/3", ""])
def test_members_that_are_none(tmp_path, member):
    done = subprocess.run([str(sluice.BINARY), "export", "otel.logs", "--to", str(tmp_path / "x"), "--consumer", "c",
                           "--member", member], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--member is I/N" in done.stderr


def test_an_export_of_a_log_whose_end_is_gone_ends(tmp_path, request):
    """The last entry is reclaimed, so that nobody knows its term any more: that is the end all the same."""
    server = started(tmp_path / "data", request, "--log-keep-committed", "0s", "--log-seal-after", "100ms")
    book = ledger.Ledger()
    last = book.must_send(server, book.new())
    for more in ((), ("--consumer", "c")):
        export(server, tmp_path / f"rows{len(more)}.ndjson", *more)
    port = log_client.Port(server.log_port)
    faults.wait_for(lambda: port.json("GET", "/v1/log")["groups"][0]["end"]["seq"] == max(
        t["reclaimed_through"][0] for t in port.json("GET", "/v1/log")["tables"]) >= last.receipt[3], what="reclaim")
    for more in ((), ("--consumer", "c")):
        assert export(server, tmp_path / f"rows{len(more)}.ndjson", *more).stdout.startswith("0 rows")


def test_export_follows_through_restarts(tmp_path, request):
    server = started(tmp_path / "data", request)
    to = tmp_path / "rows.ndjson"
    process = subprocess.Popen(words(server, to, "--follow"))
    try:
        for _ in range(4):
            send(server, 3)
            server.kill()
            time.sleep(0.3)
            server.start()
        end = end_of(server)
        faults.wait_for(lambda: (state_of(to) or {"cursor": "0"})["cursor"].endswith(f"/{end}"), what="the end")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    server.wait_published()
    server.stop()
    check_export(to, server.directory)


def test_exports_that_cannot_be(server, tmp_path, request):
    send(server, 2)
    to = tmp_path / "rows.ndjson"
    export(server, to)
    assert "is of table otel.logs" in export(server, to, table="otel.spans", check=2).stderr
    assert "says where to go on" in export(server, to, "--from", "earliest", check=2).stderr
    assert "no table otel.none" in export(server, tmp_path / "none.ndjson", table="otel.none", check=3).stderr
    (tmp_path / "other.ndjson").write_text("{}\n")
    assert "is there" in export(server, tmp_path / "other.ndjson", check=4).stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "part-00000000.parquet").write_text("")
    assert "holds other files" in export(server, tmp_path / "full", check=4).stderr
    assert os.listdir(tmp_path / "full").count("part-00000000.parquet") == 1
    os.truncate(to, 10)
    assert "put one of them back" in export(server, to, check=2).stderr
    follower = subprocess.Popen(words(server, tmp_path / "held", "--follow"))
    try:
        faults.wait_for(lambda: state_of(tmp_path / "held"), what="the state")
        assert "another process exports" in export(server, tmp_path / "held", check=75).stderr
    finally:
        follower.kill()
        follower.wait()
    other = started(tmp_path / "data2", request)
    send(other, 1)
    assert "ERR_EXPORT_OTHER_LOG" in export(other, tmp_path / "held", check=88).stderr


def test_files_of_others_stay(server, tmp_path):
    """What does not count is removed at a start: by its whole name, which others' files do not have."""
    send(server, 1)
    to = tmp_path / "rows"
    export(server, to)
    others = ["part-12345678.csv.bak", "_part-notes", "part-9.parquet.old", "part-x.parquet"]
    for name in others:
        (to / name).write_text("")
    (to / "part-00000099.parquet").write_text("")  # of ours, and above what counts
    (to / "_part-00000099.parquet.tmp").write_text("")
    export(server, to)
    left = {path.name for path in to.iterdir()}
    assert left.issuperset(others) and not {name for name in left if "00000099" in name}


def test_export_says_what_was_reclaimed(tmp_path, request):
    server = started(tmp_path / "data", request, *SMALL)
    to = tmp_path / "rows"
    export(server, to)
    send(server, 20, pad=50000)
    port = log_client.Port(server.log_port)
    faults.wait_for(lambda: port.json("GET", "/v1/log")["tables"][0]["reclaimed_through"][0] > 0, what="reclaim")
    time.sleep(1.5)
    told = export(server, to, check=87).stderr
    last, = port.json("GET", "/v1/log")["tables"][0]["reclaimed_through"]
    first = int(state_of(to)["cursor"].split("/")[3]) + 1
    assert f"entries {first} to {last} are no longer on the log" in told and "; --skip-reclaimed goes on" in told
    before = len(exported(to))
    end = send(server, 1)[0].receipt[3]
    told = export(server, to, "--skip-reclaimed").stderr
    assert told.count("are no longer on the log; skipped") == 1, told
    behind = exported(to)[before:]
    assert {row["_sluice_seq"] for row in behind} == set(range(last + 1, end + 1)), (last, end)
    assert export(server, to).stdout.startswith("0 rows")


def tail(server, *more, check=0):
    done = subprocess.run([str(sluice.BINARY), "tail", "otel.logs", "--log-port", str(server.log_port), *more],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == check, (done.returncode, done.stderr)
    return done.stdout.splitlines()


def test_tail(server):
    requests = send(server, 5)
    rows = [json.loads(line) for line in tail(server, "--json")]
    assert [r["severity_text"] for r in rows] == [f"{one.ident}#{i}" for one in requests for i in range(3)]
    lines = tail(server)
    assert len(lines) == 15
    for row, line in zip(rows, lines):
        assert line.startswith(f"0/{row['_sluice_seq']}.{row['_sluice_index']} time=")
        assert f' severity_text="{row["severity_text"]}"' in line and "event_name" not in line
    assert tail(server, "--rows", "4") == lines[:4]
    assert tail(server, "--from", f"{rows[7]['_sluice_seq']}.{rows[7]['_sluice_index']}") == lines[8:]
    assert tail(server, "--from", "latest") == []
    tail(server, "--from", "999999", check=88)
    tail(server, "--from", "yesterday", check=2)


def test_tail_follows_through_a_restart(tmp_path, request):
    server = started(tmp_path / "data", request)
    process = subprocess.Popen([str(sluice.BINARY), "tail", "otel.logs", "--follow", "--from", "earliest", "--json",
                                "--log-port", str(server.log_port)], stdout=subprocess.PIPE, text=True)
    try:
        sent = []
        for _ in range(3):
            sent += send(server, 2)
            server.kill()
            server.start()
        sent += send(server, 1)
        for one in sent:
            for i in range(3):
                assert json.loads(process.stdout.readline())["severity_text"] == f"{one.ident}#{i}"
    finally:
        process.kill()
        process.wait()
