# SPDX-License-Identifier: Apache-2.0
"""Others change a table, or the data directory is not what it was: that lane alone halts, ingest goes on,
and the command that the halt names resolves it (E12, E15, E16). TC2, TC9, TE9."""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time

import pyarrow as pa
import pytest

import faults
import ledger
import sluice

FLAGS = ("--publish-interval", "50ms", "--publish-halt-confirm", "1s", "--publish-threads", "1")


@pytest.fixture()
def server(tmp_path):
    server = sluice.Server(tmp_path / "data", *FLAGS).start()
    yield server
    server.kill()


@pytest.fixture()
def book(server):
    book = ledger.Ledger()
    for _ in range(3):
        book.must_send(server, book.new())
        book.must_send(server, book.new("spans"))
        server.wait_published()
    return book


def load(server, name="logs"):
    return sluice.catalog(server.directory).load_table(("otel", name))


def wait_halted(server, book, table="otel.logs", state="halted"):
    """The lane halts; the others and ingest go on. Returns the lane."""
    book.must_send(server, book.new())
    faults.wait_for(lambda: server.lane(table)["state"] == state, what="the halt")
    book.must_send(server, book.new())
    force = book.new("spans")
    answer = server.post("traces", force.body, path="/v1/traces?commit=force")
    assert answer.code == 200 and answer.headers["Sluice-Boundary"] == "visible"
    (force.receipt,), force.attempts = answer.receipts, 1
    for lane in server.status()["lanes"]:
        assert (lane["table"] == table) == (lane["state"] in ("halted", "stood_down")), lane
    lane = server.lane(table)
    code, why = server.get("/readyz")
    assert code == 503 and lane["reason"] in why and lane["remedy"] in why
    assert f'sluice_lane_halted{{table="{table}"}} 1' in server.get("/metrics")[1]
    assert f"{table} {state.replace('_', ' ')}: {lane['reason']}" in server.log()
    return lane


def outlives_the_process(server, lane):
    server.stop()
    server.start()
    assert server.lane(lane["table"])["reason"] == lane["reason"]


def obey(server, lane, *instead):
    """Runs the command that the halt names, or with another of its choices."""
    words = sluice.commands_of(lane["remedy"])[0]
    if instead:
        words = [w for w in words if w not in ("--accept", "--republish")] + list(instead)
    done = server.command(*words, check=0)
    return done.stdout


def finish(server, book, **more):
    server.wait_published()
    assert server.get("/readyz")[0] == 200
    server.stop()
    book.check(server.directory, **more)


def gone(book, count):
    """The rows of the last `count` requests for logs that were published are meant to be gone."""
    logs = [r for r in book.requests if r.table == "logs"]
    for request in logs[len(logs) - count:]:
        book.requests.remove(request)


@pytest.mark.parametrize("choice", ["--republish", "--accept"])
def test_rolled_back(server, book, choice):
    table = load(server)
    first = table.metadata.snapshots[0].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    if choice == "--accept":
        gone(book, 2)
    lane = wait_halted(server, book)
    assert "rolled back" in lane["reason"]
    outlives_the_process(server, lane)
    obey(server, lane, choice)
    book.must_send(server, book.new())
    finish(server, book)


@faults.needs_strace
def test_rolled_back_while_the_record_of_it_is_still_there(server, book, tmp_path):
    """The process dies between steps 7 and 8 of E8; main goes back behind that commit, and our properties are
    removed: the record is no reason to commit the range again (it was tried for ever)."""
    trace = faults.Trace(server, tmp_path / "trace")
    book.must_send(server, book.new())
    server.wait_published()
    time.sleep(0.1)
    trace.end()
    call, n, _ = next(point for point in faults.points_of(trace.calls())
                      if point[0] == "unlink" and "/publish/" in point[2])
    trace = faults.Trace(server, tmp_path / "trace", call, f"signal=KILL:when={n}")
    book.must_send(server, book.new())
    server.process.wait(timeout=20)
    trace.end()
    server.kill()
    assert (server.directory / "publish/otel.logs.journal").exists()
    table = load(server)
    table.manage_snapshots().rollback_to_snapshot(table.current_snapshot().parent_snapshot_id).commit()
    with load(server).transaction() as transaction:
        transaction.remove_properties(*(k for k in table.properties if k.startswith("sluice.")))
    server.start()
    lane = wait_halted(server, book)
    assert "committed" in lane["reason"] and "--republish" in lane["remedy"]  # what the table lacks is in the log
    obey(server, lane)
    finish(server, book)


def test_replaced_under_its_uuid(server, book):
    from pyiceberg.table.update import RemoveSnapshotRefUpdate
    table = load(server)
    table.catalog.commit_table(table, (), (RemoveSnapshotRefUpdate(ref_name="main"),))
    foreign = ledger.Foreign(server.directory)
    assert foreign.append()
    gone(book, 3)
    lane = wait_halted(server, book)
    assert "replaced" in lane["reason"]
    obey(server, lane)
    book.must_send(server, book.new())
    finish(server, book, foreign=foreign)


def test_a_snapshot_before_ours_may_be_expired(server, book):
    """PyIceberg takes the parent away from the children of what it expires: no reason to halt."""
    foreign = ledger.Foreign(server.directory)
    foreign.append()
    foreign.expire()
    assert load(server).current_snapshot().parent_snapshot_id is None
    for _ in range(2):
        book.must_send(server, book.new())
        server.wait_published()
        foreign.append()
        foreign.append()
        foreign.expire()
    finish(server, book, foreign=foreign)


def test_dropped_and_created_again(server, book):
    table = load(server)
    catalog, schema, spec = table.catalog, table.schema(), table.spec()
    catalog.drop_table(("otel", "logs"))
    catalog.create_table(("otel", "logs"), schema, location=table.location() + "2",
                         partition_spec=spec)
    gone(book, 3)
    lane = wait_halted(server, book)
    assert "rebind" in lane["remedy"]
    outlives_the_process(server, lane)
    obey(server, lane, "--accept")
    book.must_send(server, book.new())
    server.wait_published()
    server.stop()
    shutil.rmtree(server.directory / "warehouse/otel/logs")  # what the dropped table left
    os.rename(server.directory / "warehouse/otel/logs2", server.directory / "warehouse/otel/logs3")
    os.symlink("logs3", server.directory / "warehouse/otel/logs2")
    book.check(server.directory)


@pytest.mark.parametrize("choice", ["--republish", "--accept"])
def test_dropped(server, book, choice):
    """The halt names both ways, and first the one that gives nothing up."""
    load(server).catalog.drop_table(("otel", "logs"))
    if choice == "--accept":
        gone(book, 3)
    lane = wait_halted(server, book)
    assert "dropped" in lane["reason"] and choice in lane["remedy"]
    shutil.rmtree(server.directory / "warehouse/otel/logs")
    obey(server, lane, *([choice] if choice == "--accept" else []))
    book.must_send(server, book.new())
    finish(server, book)


def too_deep():
    """Two log records, of which the first can be stored by nobody."""
    def field(number, payload):
        length = len(payload)
        size = bytes([length & 127 | 128, length >> 7]) if length > 127 else bytes([length])
        return bytes([number << 3 | 2]) + size + payload

    value = b"\x0a\x01x"
    for _ in range(80):
        value = field(5, field(1, value))
    return field(1, field(2, field(2, field(5, value)) + field(2, field(3, b"good"))))


@pytest.mark.parametrize("limit", ["64MiB", "2KiB"])
def test_L27_a_halted_lane_of_dead_letters_refuses_nobody(tmp_path, limit):
    server = sluice.Server(tmp_path / "data", *FLAGS, "--otlp-dead-letter-bytes", limit).start()
    body = too_deep()
    assert len(server.post("logs", body).receipts) == 2
    server.wait_published()
    load(server, "dead_letters").catalog.drop_table(("otel", "dead_letters"))
    assert len(server.post("logs", body).receipts) == 2
    faults.wait_for(lambda: server.lane("otel.dead_letters")["state"] == "halted", what="the halt")
    answer = server.post("logs", body, path="/v1/logs?commit=force")
    assert answer.code == 200 and answer.headers["Sluice-Boundary"] == "visible"
    assert b"64 levels" in answer.body and len(answer.receipts) == 1
    assert server.status()["ingest"]["rejected_items"] == 3

    # Its bytes are in a file, which is a request of all that was rejected.
    kept, = (server.directory / "deadletter").iterdir()
    for sent in range(9):
        server.post("logs", body)
    again = server.post("logs", kept.read_bytes())
    assert again.code == 200 and not again.receipts and b"64 levels" in again.body
    ingest = server.status()["ingest"]
    size = sum(path.stat().st_size for path in kept.parent.iterdir())
    if limit == "64MiB":
        assert ingest["dead_letters_lost"] == 0 and ingest["rejected_items"] == 3 + 9 + 10
    else:
        assert ingest["dead_letters_lost"] > 9 and size <= 2048
    server.stop()
    server.start()  # what lies there counts on
    server.post("logs", body)
    assert server.status()["ingest"]["dead_letters_lost"] == (0 if limit == "64MiB" else 1)
    server.kill()


def test_our_properties_and_summaries_removed(server, book):
    table = load(server)
    with table.transaction() as change:
        change.remove_properties(*[k for k in table.properties if k.startswith("sluice.")])
    book.must_send(server, book.new())  # the summary still tells
    server.wait_published()
    table = load(server)
    assert any(k.startswith("sluice.") for k in table.properties), "restored with the next commit"
    foreign = ledger.Foreign(server.directory)
    foreign.append()
    foreign.expire()
    table = load(server)
    with table.transaction() as change:
        change.remove_properties(*[k for k in table.properties if k.startswith("sluice.")])
    lane = wait_halted(server, book)
    assert "no longer knows" in lane["reason"]
    obey(server, lane)
    book.must_send(server, book.new())
    finish(server, book, foreign=foreign)


def test_ids_and_names_of_the_process_mean_nothing(server, book):
    """TC4: another port, another process, another place of the same directory."""
    server.kill()
    moved = sluice.Server(server.directory.parent / "moved", *FLAGS)
    # The log and the publisher's state move; catalog and warehouse keep their place.
    shutil.copytree(server.directory / "log", moved.directory / "log")
    shutil.copytree(server.directory / "publish", moved.directory / "publish")
    swap(server.directory, moved.directory)
    server.start()
    book.must_send(server, book.new())
    book.must_send(server, book.new("spans"))
    server.wait_published()
    epochs = [lane["epoch"] for lane in server.status()["lanes"] if lane["commits"]]
    assert epochs == [2, 2], "the copy has taken the tables over (E5)"
    server.stop()
    book.check(server.directory)


# ---- copies of the data directory ----

def swap(directory, copy, names=("log", "publish")):
    """The log and the publisher's state of `copy` come in the place of the directory's own."""
    for name in names:
        os.rename(directory / name, directory / (name + ".away"))
        os.rename(copy / name, directory / name)
        os.rename(directory / (name + ".away"), copy / name)


def take_copy(directory, to):
    to.mkdir()
    # Before the segments, for it says how far they are synced, and the server may be running.
    shutil.copytree(directory / "log/state", to / "log/state")
    for name in ("log", "publish"):
        shutil.copytree(directory / name, to / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("state"))
    return to


def halt_on_disk(server):
    """As the file of the halt has it, while no server runs."""
    return (server.directory / "publish/otel.logs.halt").read_text()


def fork(server, lane, times=1):
    """Obeys `sluice log fork`, which wants the server stopped; returns {old id: [new ids]}."""
    old = server.status()["log"]["id"]
    assert server.command(*sluice.commands_of(lane["remedy"])[0]).returncode == 75, "the server runs"
    server.stop()
    server.command("publish", "--once", check=88 if "log fork" in halt_on_disk(server) else 86)  # E15
    new = [re.search(r"goes on as ([0-9a-f]{32})", obey(server, lane))[1] for _ in range(times)]
    server.start()
    assert server.status()["log"]["id"] == new[-1]
    return {old: new}


@pytest.mark.parametrize("grown, pending", [(0, True), (1, True), (20, False), (20, True)])
@pytest.mark.parametrize("names", [("log", "publish"), ("log",)])
def test_an_older_copy_of_the_data_directory(server, book, tmp_path, grown, pending, names):
    """What the copy knows of and the table holds by the other's hand is not published again; what came
    later is, under a new log id. The copy's end lies below or past the table's position; where the log
    alone was put back, also that of the lane's checkpoint, which is of the other history."""
    if pending:  # rows that the copy has not published, and the other has
        server.stop()
        server.flags = FLAGS + ("--publish-interval", "1h")
        server.start()
        book.must_send(server, book.new())
        book.must_send(server, book.new("spans"))
    server.kill()
    copy = take_copy(server.directory, tmp_path / "copy")
    server.flags = FLAGS
    server.start()
    for _ in range(2):
        book.must_send(server, book.new())
        server.wait_published()
    server.stop()
    swap(server.directory, copy, names)
    server.start()
    for _ in range(grown):
        book.must_send(server, book.new())
    lane = wait_halted(server, book)
    assert "this log" in lane["reason"] and "fork" in lane["remedy"]
    logs = fork(server, lane, times=2 if grown == 20 else 1)
    book.must_send(server, book.new())
    finish(server, book, logs=logs)
    shutil.rmtree(copy)


def test_a_copy_made_while_the_original_ran(server, book, tmp_path):
    """The same without a restart of the original in between: the copy alone has a new start, within the
    range of one commit of the original."""
    server.stop()
    server.flags = FLAGS + ("--publish-interval", "1h")
    server.start()
    book.must_send(server, book.new())
    copy = take_copy(server.directory, tmp_path / "copy")
    for _ in range(5):
        book.must_send(server, book.new())
    server.stop()  # publishes all of it in one commit
    swap(server.directory, copy)
    server.flags = FLAGS
    server.start()
    for _ in range(3):
        book.must_send(server, book.new())
    lane = wait_halted(server, book)
    logs = fork(server, lane)
    server.kill()
    server.start()
    finish(server, book, logs=logs)


@faults.needs_strace
def test_E14_a_backup_taken_while_files_were_written(server, book, tmp_path):
    """The intent in it is of files that have been committed since: they stay, and nothing stands twice."""
    trace = faults.Trace(server, tmp_path / "trace")
    book.must_send(server, book.new())
    server.wait_published()
    trace.end()
    nth = next(n for call, n, line in faults.points_of(trace.calls()) if call == "openat" and ".parquet" in line)
    trace = faults.Trace(server, tmp_path / "trace", "openat", f"signal=STOP:when={nth}")
    request = book.new()
    book.must_send(server, request)
    task = pathlib.Path(f"/proc/{server.process.pid}/status")
    faults.wait_for(lambda: "State:\tT" in task.read_text() or "State:\tt" in task.read_text(), what="the stop")
    backup = tmp_path / "backup"
    shutil.copytree(server.directory / "publish", backup)
    os.kill(server.process.pid, signal.SIGCONT)
    trace.end()
    server.wait_published()
    book.must_send(server, book.new())
    server.wait_published()
    server.stop()
    intent = json.loads((backup / "otel.logs.journal").read_text().split("\n", 1)[1])
    assert intent["state"] == "intent", intent
    shutil.rmtree(server.directory / "publish")
    backup.rename(server.directory / "publish")
    server.start()
    faults.wait_for(lambda: not (server.directory / "publish/otel.logs.journal").exists(), what="the end of the intent")
    server.wait_published()
    finish(server, book)


@faults.needs_strace
def test_E14_a_copy_commits_nothing_that_the_original_deletes(server, book, tmp_path):
    """Copied between a kill and a power cut: in the copy the record of a publication is a descriptor, in the
    original it has become an intent again, whose files the next start deletes. The copy then runs against the
    table as both knew it, and may not commit those files."""
    trace = faults.Trace(server, tmp_path / "trace")
    book.must_send(server, book.new())
    server.wait_published()
    trace.end()
    nth = next(n for call, n, line in faults.points_of(trace.calls()) if call == "openat" and ".parquet" in line)
    trace = faults.Trace(server, tmp_path / "trace", more={
        "openat": f"signal=STOP:when={nth}", "renameat2": "signal=KILL:when=1"})  # of the metadata's name
    book.must_send(server, book.new())
    task = pathlib.Path(f"/proc/{server.process.pid}/status")
    faults.wait_for(lambda: "State:\tT" in task.read_text() or "State:\tt" in task.read_text(), what="the stop")
    journal = server.directory / "publish/otel.logs.journal"
    intent = journal.read_text()
    os.kill(server.process.pid, signal.SIGCONT)
    server.process.wait()
    trace.end()
    server.kill()
    states = [json.loads(text.split("\n", 1)[1])["state"] for text in (intent, journal.read_text())]
    assert states == ["intent", "descriptor"], states
    copy = take_copy(server.directory, tmp_path / "copy")
    prefix = json.loads(intent.split("\n", 1)[1])["prefix"]
    files = list((server.directory / "warehouse/otel/logs/data").rglob(f"{prefix}*"))
    assert files
    for file in files:
        file.unlink()  # as the original's next start does, which dies before it commits anything
    swap(server.directory, copy)
    server.start()
    server.wait_published()
    finish(server, book)
    shutil.rmtree(copy)


def files_below(directory):
    return {str(path): path.stat().st_size for path in directory.rglob("*") if path.is_file()}


def test_a_copy_of_the_data_directory_leaves_the_tables_of_the_original_alone(server, book, tmp_path):
    """Its catalog names the original's warehouse by absolute paths: both would write there, each for a catalog
    of its own."""
    server.stop()
    shutil.copytree(server.directory, tmp_path / "copy")
    before = files_below(server.directory)
    second, other = sluice.Server(tmp_path / "copy", *FLAGS).start(), ledger.Ledger()
    try:
        other.must_send(second, other.new())
        faults.wait_for(lambda: second.lane("otel.logs")["state"] == "halted", what="the halt")
        lane = second.lane("otel.logs")
        assert str(server.directory) in lane["reason"] and "was copied" in lane["reason"]
        assert second.command("watermark", check=1).stdout.count("halted") == 1
        assert files_below(server.directory) == before
        second.command(*sluice.commands_of(lane["remedy"])[0], check=0)  # no other server publishes there
        second.wait_published()
    finally:
        second.kill()
    rows = sluice.read_pyiceberg(second.directory, "logs")
    assert rows.num_rows == sum(len(r.rows) for r in book.requests if r.table == "logs") + 3


def test_a_data_directory_that_was_moved(server, book, tmp_path):
    """Named as that, and mended by moving it back."""
    server.stop()
    os.rename(server.directory, tmp_path / "moved")
    second = sluice.Server(tmp_path / "moved", *FLAGS).start()
    try:
        book.must_send(second, book.new())
        faults.wait_for(lambda: second.lane("otel.logs")["state"] == "halted", what="the halt")
        assert "was the data directory moved?" in second.lane("otel.logs")["reason"]
        second.stop()
    finally:
        second.kill()
    os.rename(tmp_path / "moved", server.directory)
    server.start()
    for table in ("otel.logs", "otel.spans"):
        lane = server.lane(table)
        assert lane["state"] == "halted"
        server.command(*sluice.commands_of(lane["remedy"])[-1], check=0)
    finish(server, book)


def can_mount():
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


needs_mount = pytest.mark.skipif(not can_mount(), reason="mount namespaces are not to be had")


def over(directory, copy, **more):
    """A server that sees the copy's log and state in the place of the directory's own."""
    mounts = " && ".join(f"mount --bind {copy}/{n} {directory}/{n}" for n in ("log", "publish"))
    second = sluice.Server(directory, *FLAGS, **more)
    second.wrapper = ("unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh")
    return second


@needs_mount
def test_TC2_two_servers_on_one_table(server, book, tmp_path):
    """A copy started while the first runs takes over; the first stands down; after its fork both publish
    into the same table."""
    copy = take_copy(server.directory, tmp_path / "copy")
    second = over(server.directory, copy)
    try:
        second.start()
        for _ in range(3):
            book.must_send(second, book.new())
            second.wait_published()
        lane = wait_halted(server, book, state="stood_down")
        assert "taken the table over" in lane["reason"]
        book.must_send(second, book.new())
        second.wait_published()
        lane["remedy"] = "sluice log fork --confirm"
        logs = fork(server, lane)
        for one in (server, second, server):
            book.must_send(one, book.new())
            one.wait_published()
        second.stop()
    finally:
        second.kill()
    finish(server, book, logs=logs)


@needs_mount
@faults.needs_strace
def test_TC2_a_commit_that_comes_late(server, book, tmp_path):
    """The first is paused within its commit, the second takes over meanwhile; the late commit fails on
    its condition and the first stands down."""
    copy = take_copy(server.directory, tmp_path / "copy")
    trace = faults.Trace(server, tmp_path / "trace", "renameat2", "delay_enter=3000000:when=1")
    book.must_send(server, book.new())
    faults.wait_for(lambda: "renameat2(" in trace.output.read_text(), what="the pause")
    second = over(server.directory, copy)
    try:
        second.start()
        book.must_send(second, book.new())
        second.wait_published()
        faults.wait_for(lambda: server.lane("otel.logs")["state"] == "stood_down")
        trace.end()
        second.stop()
    finally:
        second.kill()
    logs = fork(server, {"remedy": "sluice log fork --confirm"})
    server.wait_published()
    server.stop()
    # The files of the record that the fork gave up are left to `orphans`.
    book.check(server.directory, logs=logs, with_leftovers=True)


# ---- damage ----

def test_a_flipped_byte_is_resolved_by_the_commands_that_the_halt_names(tmp_path, request):
    """In the payload of one entry of a sealed segment, which no start reads: that entry alone is lost."""
    server = sluice.Server(tmp_path / "data", *FLAGS, "--log-segment-bytes", "1MiB", "--publish-interval", "1h",
                           "--publish-bytes", "1GiB").start()
    request.addfinalizer(server.kill)
    book = ledger.Ledger()
    for _ in range(30):
        book.must_send(server, book.new(pad=100000))
    server.kill()
    sealed = sorted((server.directory / "log/sealed").iterdir())[0]
    with open(sealed, "r+b") as file:
        file.seek(300000)
        byte = file.read(1)
        file.seek(300000)
        file.write(bytes([byte[0] ^ 0x10]))
    server.flags = FLAGS
    server.start()
    lane = wait_halted(server, book)
    assert "checksum" in lane["reason"]
    repair, resume = sluice.commands_of(lane["remedy"])
    refused = server.command(*resume, check=86).stderr
    assert "damaged still" in refused and "sluice log repair --confirm" in refused
    assert server.lane("otel.logs")["state"] == "halted"
    server.stop()
    assert "nothing was changed" in server.command(*repair[:-1], check=0).stdout
    report = server.command(*repair, check=0).stdout
    first, last = map(int, re.search(r"entries (\d+) to (\d+): ", report).groups())
    assert first == last and "1 entries are void now" in report
    server.start()
    server.command(*resume, check=0)
    book.requests = [r for r in book.requests if r.receipt[3] != first or r.table != "logs"]
    finish(server, book)


@pytest.mark.parametrize("how", ["wiped", "gone"])
def test_L20_a_segment_that_cannot_be_read_halts_every_lane_that_it_may_hold(tmp_path, request, how):
    """Nothing says any more which tables had rows in it: no lane may take them for never written."""
    long = ("--publish-interval", "1h", "--publish-bytes", "1GiB", "--log-segment-bytes", "1MiB",
            "--log-seal-after", "300ms")
    server = sluice.Server(tmp_path / "data", *FLAGS, *long).start()
    request.addfinalizer(server.kill)
    book, lost = ledger.Ledger(), []
    sealed = server.directory / "log/sealed"

    def send_and_seal(count):
        before = len(list(sealed.iterdir()))
        sent = [book.new(table) for table in ("logs", "spans") for _ in range(count)]
        for one in sent:
            book.must_send(server, one)
        faults.wait_for(lambda: len(list(sealed.iterdir())) > before, what="the seal")
        return sent

    send_and_seal(3)
    before = set(sealed.iterdir())
    lost = send_and_seal(3)
    victim, = set(sealed.iterdir()) - before
    send_and_seal(2)
    server.kill()
    kept = victim.read_bytes()
    if how == "wiped":
        victim.write_bytes(kept[:4096] + bytes(len(kept) - 4096))
    else:
        victim.unlink()
    server.flags = FLAGS
    server.start()
    faults.wait_for(lambda: all(lane["state"] == "halted" for lane in server.status()["lanes"]), what="the halts")
    damage, = server.status()["log"]["damage"]
    assert "log_damaged_ranges 1" in server.get("/metrics")[1]
    assert server.get("/readyz")[0] == 503 and "damaged" in server.command("status", check=0).stdout
    assert server.command("watermark").returncode == 1
    book.must_send(server, book.new())  # ingest goes on
    lane = server.lane("otel.logs")
    assert f"{damage['seq_first']} to {damage['seq_last']} are damaged" in lane["reason"]
    server.stop()
    victim = next((path for path in (server.directory / "log").rglob(victim.name)), None)
    assert how == "gone" or victim.stat().st_size == len(kept), "what is damaged is kept"
    if how == "wiped":  # the disk gives the bytes back: nothing was lost, and nothing is repaired
        victim.write_bytes(kept)
        server.start()
    else:
        assert "are void now" in server.command("log", "repair", "--confirm", check=0).stdout
        server.start()
        for one in lost:
            book.requests.remove(one)
    for lane in server.status()["lanes"]:
        server.command("clear-halt", lane["table"], "--confirm", "--accept", check=0)
    finish(server, book)


@pytest.mark.parametrize("how", ["cut", "zeroed", "emptied", "gone"])
def test_L20_the_newest_segment_loses_what_was_synced(tmp_path, request, how):
    """What looks like the end of the log is none: the checkpoint's mark, a second old at most, knows of more."""
    server = sluice.Server(tmp_path / "data", *FLAGS, "--publish-interval", "1h", "--publish-bytes", "1GiB").start()
    request.addfinalizer(server.kill)
    book = ledger.Ledger()
    kept = [book.new(table) for table in ("logs", "spans")]
    for one in kept:
        book.must_send(server, one)
    (active,) = (server.directory / "log/active").iterdir()
    end = active.read_bytes().rstrip(b"\0")
    first_lost = -(-len(end) // 4096) * 4096
    lost = [book.new(table) for table in ("logs", "spans") for _ in range(20)]
    for one in lost:
        book.must_send(server, one)
    time.sleep(2.5)
    server.kill()
    if how == "cut":
        os.truncate(active, first_lost)
    elif how == "zeroed":
        with open(active, "r+b") as file:
            file.seek(first_lost)
            file.write(bytes(active.stat().st_size - first_lost))
    elif how == "emptied":
        os.truncate(active, 0)
    else:
        active.unlink()
    server.flags = FLAGS
    server.start()
    faults.wait_for(lambda: all(lane["state"] == "halted" for lane in server.status()["lanes"]), what="the halts")
    damage, = server.status()["log"]["damage"]
    assert server.get("/readyz")[0] == 503 and damage["seq_last"] >= lost[-1].receipt[3]
    later = book.new()
    book.must_send(server, later)  # ingest goes on, under numbers that nobody was given before
    assert later.receipt[3] > damage["seq_last"]
    server.stop()
    assert "are void now" in server.command("log", "repair", "--confirm", check=0).stdout
    server.start()
    for one in lost + (kept if how in ("emptied", "gone") else []):
        book.requests.remove(one)
    for lane in server.status()["lanes"]:
        server.command("clear-halt", lane["table"], "--confirm", "--accept", check=0)
    finish(server, book)


# ---- one-job commands, and what they and a running server answer ----

def with_rows_in_the_log(server, book, count=2):
    """Stopped, with rows that are not published. True: one of the lanes had begun to; what an intent of a lane
    that halts had written is left to `orphans` (E14)."""
    server.stop()
    server.flags = FLAGS + ("--publish-interval", "1h")
    server.start()
    for _ in range(count):
        book.must_send(server, book.new())
    server.kill()
    return (server.directory / "publish/otel.logs.journal").exists()


def once(server, check, *flags):
    return server.command("publish", "--once", *(flags or ("--publish-halt-confirm", "1s")), check=check)


def printed(done):
    """The command that `publish --once` prints for a halted lane."""
    return shlex.split(re.search(r"^otel.logs +is halted, .*; to resolve it: sluice (.*)$", done.stdout, re.M)[1])


def test_E12_publish_once_confirms_a_halt_by_itself(server, book):
    """It answered 75 for ever: each process made one round, and began to doubt anew."""
    had_begun = with_rows_in_the_log(server, book)
    table = load(server)
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    began = time.monotonic()
    done = once(server, 86)
    assert 1 <= time.monotonic() - began < 10
    assert "rolled back" in done.stderr and "otel.logs halted: " in done.stderr
    again = once(server, 86, "--publish-halt-confirm", "1h")
    assert "rolled back" in again.stderr and printed(again) == printed(done)
    words = [w for w in printed(done) if w != "--accept"] + ["--republish"]
    assert "otel.logs goes on" in server.command(*words, check=0).stdout
    once(server, 0)
    book.check(server.directory, with_leftovers=had_begun)


def test_E12_publish_once_goes_on_when_the_doubt_ends(server, book):
    with_rows_in_the_log(server, book)
    table = load(server)
    newest = table.current_snapshot().snapshot_id
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    process = subprocess.Popen([sluice.BINARY, "publish", "--once", "--publish-halt-confirm", "1m", "--data-dir",
                                str(server.directory)], stdout=subprocess.PIPE, text=True)
    faults.wait_for(lambda: list((server.directory / "publish").glob("*.doubt")), what="the doubt")
    load(server).manage_snapshots().set_current_snapshot(newest).commit()
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and "6 rows in 1 files" in out
    book.check(server.directory)


def test_E16_from_after_a_fork_that_cannot_tell(server, book, tmp_path):
    """The other copy's commits that would tell are expired. The operator knows which entry both have: the
    last one from before the copy was made."""
    server.stop()
    copy = take_copy(server.directory, tmp_path / "copy")
    server.start()
    last = max(r.receipt[3] for r in book.requests if r.table == "logs")
    for _ in range(2):
        book.must_send(server, book.new())
        server.wait_published()
    server.stop()
    foreign = ledger.Foreign(server.directory)
    foreign.append()
    foreign.expire()
    swap(server.directory, copy)
    server.start()
    for _ in range(3):
        book.must_send(server, book.new())
    lane = wait_halted(server, book)
    assert lane["remedy"] == "stop the server, sluice log fork --confirm, start the server"
    assert "sluice log fork" in server.command("clear-halt", "otel.logs", "--confirm", "--accept", check=86).stderr
    server.stop()
    refused = server.command(*sluice.commands_of(lane["remedy"])[0], check=86)
    words = shlex.split(re.search(r"decide with sluice (clear-halt .*)", refused.stderr)[1])
    assert words == ["clear-halt", "otel.logs", "--confirm", "--from", "GROUP=SEQ"]
    words[-1] = f"0={last}"
    seqs = [json.loads(x)["seq"] for x in server.command("log", "cat", "--json", check=0).stdout.splitlines()]
    assert last in seqs
    assert "ends at" in server.command(*words[:-1], "0=999999", check=2).stderr
    assert "otel.logs goes on" in server.command(*words, check=0).stdout
    server.start()
    server.wait_published()
    server.stop()
    got = sorted(sluice.read_pyiceberg(server.directory, "logs")["severity_text"].to_pylist(), key=str)
    want = [f"{r.ident}#{i}" for r in book.requests if r.table == "logs" for i in range(3)]
    assert [t for t in got if t in want] == sorted(want) and len(got) == len(want) + 2


def test_E15_what_the_log_no_longer_holds_is_87(tmp_path, request):
    """Rolled back below what was reclaimed: neither choice that needs those rows, the server running or not;
    --from the newest entry that the log still has is taken."""
    small = ("--log-segment-bytes", "1MiB", "--log-keep-committed", "1ms", "--log-seal-after", "50ms")
    server = sluice.Server(tmp_path / "data", *FLAGS, *small).start()
    request.addfinalizer(server.kill)
    book = ledger.Ledger()
    first = book.must_send(server, book.new())
    server.wait_published()
    second = book.must_send(server, book.new())

    def is_reclaimed():
        book.must_send(server, book.new())
        server.wait_published()
        held = [json.loads(x)["seq"] for x in server.command("log", "cat", "--json").stdout.splitlines()]
        return not held or held[0] > second.receipt[3] + 1
    faults.wait_for(is_reclaimed, what="reclaim")
    table = load(server)
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    last = max(r.receipt[3] for r in book.requests)
    book.requests = [first]
    lane = wait_halted(server, book)
    words = [w for w in sluice.commands_of(lane["remedy"])[0] if w != "--accept"]
    asked = [server.command(*words, *how, check=87).stderr for how in (("--republish",), ("--from", "0=1"))]
    server.stop()
    for how, said in zip((("--republish",), ("--from", "0=1")), asked):
        assert server.command(*words, *how, check=87).stderr == said
    assert "otel.logs goes on" in server.command(*words, "--from", f"0={last}", check=0).stdout
    once(server, 0)
    book.check(server.directory, with_leftovers=True)


def test_E15_more_groups_than_the_log_has_is_88(server, book):
    had_begun = with_rows_in_the_log(server, book)
    name, positions = next((k, v) for k, v in load(server).properties.items() if k.endswith(".positions"))
    with load(server).transaction() as change:
        change.set_properties({name: positions + ";" + positions.replace("0:", "1:", 1)})
    assert "groups of this log" in server.command("log", "fork", "--confirm", check=88).stderr
    done = once(server, 86)
    assert "groups of this log" in done.stderr
    server.command(*printed(done), check=0)
    once(server, 0)
    book.check(server.directory, with_leftovers=had_begun)


@pytest.mark.parametrize("runs", [True, False])
def test_refused_decisions_exit_the_same_with_and_without_a_server(server, book, runs):
    """With one all of them were 86, and a space in the name was a malformed request."""
    if not runs:
        server.stop()
    snapshot = load(server).current_snapshot().snapshot_id
    for words, code, says in [
            (("clear-halt", "otel.logs", "--accept"), 2, "otel.logs is not halted"),
            (("tables", "rebind", "otel.logs", "--accept"), 2, "otel.logs is not halted"),
            (("clear-halt", "otel.lgos", "--accept"), 3, "no lane publishes otel.lgos"),
            (("clear-halt", "otel.logs x", "--accept"), 3, "no lane publishes otel.logs x"),
            (("tables", "rebind", "otel.logs&table=otel.spans%", "--accept"), 3, "otel.logs&table=otel.spans%"),
            (("clear-halt", "t" * 500, "--accept"), 3, "no lane publishes ttt"),
            (("clear-halt", "otel.logs", "--from", "abc"), 2, "from=GROUP=SEQ")]:
        done = server.command(*words, "--confirm", check=code)
        assert done.stderr.startswith("sluice: ") and says in done.stderr, words
        assert done.stderr.count("\n") == 1
    assert load(server).current_snapshot().snapshot_id == snapshot


@faults.needs_strace
def test_stopping_is_bounded_with_a_backlog(server, book):
    """Whoever published went through all of the backlog first, and only then did the 10 s begin."""
    server.stop()
    server.flags = FLAGS + ("--publish-interval", "1h")
    server.start()
    for _ in range(40):
        book.must_send(server, book.new(pad=50000))
    server.kill()
    server.flags = FLAGS + ("--publish-range-bytes", "64KiB")  # a request each
    server.wrapper = ("strace", "-f", "-o", "/dev/null", "-e", "trace=renameat2", "-e",
                      "inject=renameat2:delay_enter=700000")  # within each commit
    server.start()
    faults.wait_for(lambda: server.lane("otel.logs")["commits"], what="a commit")
    child, = map(int, open(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read().split())
    began = time.monotonic()
    os.kill(child, signal.SIGTERM)
    assert server.process.wait(timeout=60) == 0
    took = time.monotonic() - began
    assert took < 13, took
    server.kill()
    server.wrapper = ()
    assert sluice.read_pyiceberg(server.directory, "logs").num_rows < 3 * 43, "no backlog: nothing was tested"
    server.start()
    finish(server, book)


# ---- retention ----

def test_TE9_what_is_not_published_is_not_trimmed(tmp_path, request):
    """Nothing can be published until the log is full: requests are refused, nothing is trimmed; then all of it
    is published and writes are taken again."""
    small = ("--log-segment-bytes", "1MiB", "--log-budget-bytes", "24MiB", "--log-keep-committed", "0s",
             "--publish-halt-confirm", "1s")
    server = sluice.Server(tmp_path / "data", *small, "--publish-interval", "1h", "--publish-bytes",
                           "1GiB").start()
    request.addfinalizer(server.kill)
    warehouse = server.directory / "warehouse"
    warehouse.write_text("")  # a full log is published whatever the interval
    book, sent = ledger.Ledger(), 0
    while book.send(server, book.new(pad=100000)):
        sent += 1
        assert sent < 500
    assert sent > 20 and server.lane("otel.logs")["lag_rows"] == 3 * sent
    assert "requests are refused (1 so far): log: " in server.log()
    server.kill()
    warehouse.unlink()
    server.flags = small + ("--publish-interval", "50ms")
    server.start()
    server.wait_published()
    faults.wait_for(lambda: book.send(server, book.new(pad=100000)), what="room in the log")
    finish(server, book)


def small_and_halted(tmp_path, request):
    """A server with little room, and its lane of logs at a standstill."""
    small = ("--log-segment-bytes", "1MiB", "--log-budget-bytes", "24MiB", "--log-keep-committed", "0s")
    server = sluice.Server(tmp_path / "data", *FLAGS, *small).start()
    request.addfinalizer(server.kill)
    book = ledger.Ledger()
    for _ in range(2):
        book.must_send(server, book.new())
        server.wait_published()
    table = load(server)
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    faults.wait_for(lambda: book.send(server, book.new()) and server.lane("otel.logs")["state"] == "halted",
                    what="the halt")
    return server, book


def test_L27_a_table_that_stands_still_leaves_room_for_the_others(tmp_path, request):
    """It filled the log, and then nobody could write."""
    server, book = small_and_halted(tmp_path, request)
    for _ in range(500):
        one = book.new(pad=100000)
        answer = server.post("logs", one.body)
        if answer.code != 200:
            break
        (one.receipt,), one.attempts = answer.receipts, 1
    book.requests.remove(one)
    assert answer.code == 503 and "Retry-After" in answer.headers
    assert b"half of the log is used: otel.logs is halted: " in answer.body
    for _ in range(120):  # more than the whole budget; it is given back as spans are published
        faults.wait_for(lambda: book.send(server, book.new("spans", pad=100000)), what="room for spans")
    assert server.get("/readyz")[0] == 503 and server.lane("otel.spans")["state"] != "halted"
    server.command("clear-halt", "otel.logs", "--confirm", "--republish", check=0)
    faults.wait_for(lambda: book.send(server, book.new()), what="room in the log")
    finish(server, book)


def test_L26_a_table_that_stands_still_keeps_no_rows_of_others(tmp_path, request):
    """The others flow, by several times the budget: what is left of each segment is the rows of the table that
    stands still, which is written to all the time. Nobody is refused, it neither."""
    server, book = small_and_halted(tmp_path, request)
    for i in range(240):
        if i == 120:
            server.kill()
            server.start()
        if i % 4 == 0:
            assert book.send(server, book.new()), (i, server.status()["log"])
        assert book.send(server, book.new("spans", pad=100000)), (i, server.status()["log"])
        if i % 6 == 5:
            faults.wait_for(lambda: server.lane("otel.spans")["lag_rows"] == 0, what="the spans")
    log, lane = server.status()["log"], server.lane("otel.logs")
    assert lane["state"] == "halted" and lane["lag_rows"] >= 3 * 60
    assert log["segments_compacted"] > 10 and log["bytes_written"] > 24 << 20
    assert lane["lag_bytes"] < lane["pinned_bytes"] < log["allocated_bytes"] < 12 << 20
    faults.wait_for(lambda: f'sluice_lane_pinned_bytes{{table="otel.logs"}} {server.lane("otel.logs")["pinned_bytes"]}'
                    in server.get("/metrics")[1], what="the metric")  # once compaction has come to rest
    server.stop()
    listed = server.command("log", "ls")
    assert listed.stdout.count("(compacted)") > 10
    assert "entries are whole" in server.command("log", "repair").stdout
    server.start()
    server.command("clear-halt", "otel.logs", "--confirm", "--republish", check=0)
    finish(server, book)


# ---- concurrent committers ----

@faults.needs_strace
def test_TC8_others_commit_between_reading_and_committing(server, book, tmp_path):
    """Every commit of ours meets a table that has moved since it was read."""
    foreign = ledger.Foreign(server.directory)
    for call in ("renameat2", "fdatasync"):
        trace = faults.Trace(server, tmp_path / "trace", call, "delay_enter=400000:when=1")
        book.must_send(server, book.new())
        faults.wait_for(lambda: f"{call}(" in trace.output.read_text(), what="the pause")
        foreign.append()
        server.wait_published()
        trace.end()
    assert server.lane("otel.logs")["rebases"] >= 1
    finish(server, book, foreign=foreign)


def test_TC9_four_others_and_us(server, book):
    """Sums are exact, and the table that conflicts delays only itself."""
    foreigns = [ledger.Foreign(server.directory) for _ in range(4)]
    end = time.monotonic() + (60 if os.environ.get("SLUICE_DEEP") == "1" else 5)
    for i, foreign in enumerate(foreigns):
        foreign.numbers = iter(range(i * 100000, (i + 1) * 100000))

    def commit(foreign):
        while time.monotonic() < end:
            foreign.append()
    threads = [threading.Thread(target=commit, args=(f,)) for f in foreigns]
    [t.start() for t in threads]
    slowest = 0
    while time.monotonic() < end:
        book.must_send(server, book.new())
        one = book.new("spans")
        began = time.monotonic()
        answer = server.post("traces", one.body, path="/v1/traces?commit=force")
        slowest = max(slowest, time.monotonic() - began)
        (one.receipt,), one.attempts = answer.receipts, 1
        assert answer.headers["Sluice-Boundary"] == "visible"
        time.sleep(0.05)
    [t.join() for t in threads]
    merged = foreigns[0]
    for other in foreigns[1:]:
        merged.certain |= other.certain
        merged.possible |= other.possible
    # One SQLite file serves both tables: a commit may wait 5 s for the lock of others.
    assert merged.certain and slowest < 7, slowest
    print(len(merged.certain), "appends of others,", slowest, "s at most for the other table")
    finish(server, book, foreign=merged)


@pytest.mark.parametrize("how", ["gone", "noise"])
@pytest.mark.parametrize("way", ["put back", "rolled back"])
@pytest.mark.parametrize("when", ["while it runs", "between two runs", "between two runs of others"])
def test_E17_the_manifest_list_of_the_current_snapshot_is_damaged(server, book, how, way, when):
    """Its commits failed for ever, with a lane that was ready."""
    if when == "between two runs of others":
        ledger.Foreign(server.directory).append()
    if when != "while it runs":
        server.stop()
    table = load(server)
    current, before = table.current_snapshot(), table.metadata.snapshots[-2].snapshot_id
    path = pathlib.Path(current.manifest_list.removeprefix("file://"))
    kept = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(b"\xa5" * len(kept))
    if when != "while it runs":
        server.start()
    lane = wait_halted(server, book)
    assert path.name in lane["reason"]
    outlives_the_process(server, lane)
    accept, republish = sluice.commands_of(lane["remedy"])
    if way == "put back":
        path.write_bytes(kept)
        server.command(*accept, check=0)
    else:
        load(server).manage_snapshots().rollback_to_snapshot(before).commit()
        server.command(*republish, check=0)
        path.write_bytes(kept)  # for the ledger, which reads all snapshots
    book.must_send(server, book.new())
    finish(server, book, with_leftovers=True)  # what was written before the halt: `orphans`


def test_E17_the_warehouse_is_lost(server, book):
    """The command that the halt names cannot mend it, and says what does; the others say why they cannot."""
    server.stop()
    shutil.rmtree(server.directory / "warehouse")
    server.start()
    lane = server.lane("otel.logs")
    faults.wait_for(lambda: server.lane("otel.logs")["state"] == "halted", what="the halt")
    server.stop()
    for choice in ("--republish", "--accept"):
        assert "metadata file" in server.command("clear-halt", "otel.logs", "--confirm", choice, check=86).stderr
    refused = server.command("tables", "repair", "otel.logs", "--confirm").stderr
    rebind = re.search(r"drop the table from the catalog, then (sluice tables rebind otel.logs .*?) makes", refused)[1]
    for name in ("logs", "spans"):
        sluice.catalog(server.directory).drop_table(("otel", name))
    for name in ("logs", "spans"):
        server.command(*shlex.split(rebind.replace("logs", name))[1:], check=0)
    server.start()
    book.must_send(server, book.new())
    finish(server, book)
