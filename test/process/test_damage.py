# SPDX-License-Identifier: Apache-2.0
"""A file of ours is damaged while no server runs: what may depend on it halts and says what, where and what to
do; ingest and the other lanes go on; the command that the halt names, as it is printed, ends it, and every
row stands once (E12, E15, E17)."""
import os
import shlex
import shutil

import pytest

import faults
import sluice
from test_halts import (FLAGS, book, finish, fork, load, obey, outlives_the_process, server, swap,  # noqa: F401
                        take_copy, wait_halted)

GARBAGE = {
    "empty": lambda old: b"",
    "noise": lambda old: b"\xa5" * len(old),
    "a bit": lambda old: old[:-9] + bytes([old[-9] ^ 4]) + old[-8:],
    "cut": lambda old: old[:len(old) // 2],
}


def damage(path, how):
    path.write_bytes(GARBAGE[how](path.read_bytes()))


def own_file(server, kind):
    return server.directory / "publish" / f"otel.logs.{kind}"


def halted_for(server, book, path, **more):
    lane = wait_halted(server, book, **more)
    assert str(path) in lane["reason"] and "damaged" in lane["reason"], lane
    return lane


# ---- a lane's own files ----

@pytest.mark.parametrize("how", GARBAGE)
def test_checkpoint(server, book, how):
    server.stop()
    damage(own_file(server, "checkpoint"), how)
    server.start()
    lane = halted_for(server, book, own_file(server, "checkpoint"))
    outlives_the_process(server, lane)
    obey(server, lane)
    book.must_send(server, book.new())
    finish(server, book)
    server.start()
    assert server.get("/readyz")[0] == 200
    server.stop()


@faults.needs_strace
@pytest.mark.parametrize("also", [(), ("checkpoint",)])
@pytest.mark.parametrize("call, where", [("unlink", "/publish/"), ("renameat2", ".metadata.json"), ("rename", "")])
def test_journal(server, book, tmp_path, call, where, also):
    """The process dies with a record on disk, before the commit or behind it; nobody knows what it held."""
    trace = faults.Trace(server, tmp_path / "trace")
    book.must_send(server, book.new())
    server.wait_published()
    trace.end()
    points = [p for p in faults.points_of(trace.calls()) if p[0] == call and where in p[2]]
    assert points, f"no {call} of {where}"
    trace = faults.Trace(server, tmp_path / "trace", call, f"signal=KILL:when={points[-1][1]}")
    book.must_send(server, book.new())
    server.process.wait(timeout=20)
    trace.end()
    server.kill()
    assert own_file(server, "journal").exists()
    for kind in ("journal",) + also:
        damage(own_file(server, kind), "noise")
    server.start()
    lane = halted_for(server, book, own_file(server, "journal"))
    obey(server, lane)
    book.must_send(server, book.new())
    server.wait_published()
    server.stop()
    book.check(server.directory, with_leftovers=True)  # the lost record's files: `orphans`


def test_checkpoint_beside_a_good_record(server, book, tmp_path):
    server.stop()
    server.flags = FLAGS + ("--publish-interval", "1h")
    server.start()
    book.must_send(server, book.new())
    (server.directory / "catalog.db").rename(tmp_path / "aside.db")
    server.stop()
    (tmp_path / "aside.db").rename(server.directory / "catalog.db")
    server.flags = FLAGS
    damage(own_file(server, "checkpoint"), "noise")
    server.start()
    obey(server, halted_for(server, book, own_file(server, "checkpoint")))
    finish(server, book)


@pytest.mark.parametrize("kind", ["halt", "doubt"])
def test_halt_and_doubt(server, book, kind):
    server.stop()
    own_file(server, kind).write_bytes(b"sluice-halt 0 12 00000000\n{}")
    server.start()
    lane = halted_for(server, book, own_file(server, kind))
    outlives_the_process(server, lane)
    obey(server, lane)
    finish(server, book)


@pytest.mark.parametrize("kind", ["halt", "doubt", "checkpoint"])
def test_what_the_lost_file_stood_for_is_found_again(server, book, kind):
    """Main was rolled back; no damaged file hides that for longer than a command takes."""
    table = load(server)
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    wait_halted(server, book)
    server.stop()
    damage(own_file(server, kind), "noise")
    server.start()
    lane = halted_for(server, book, own_file(server, kind))
    outlives_the_process(server, lane)
    if kind == "halt":  # what there was to be decided is lost too
        refused = server.command(*sluice.commands_of(lane["remedy"])[0], check=86)
        assert "rolled back" in refused.stderr, refused
        lane = server.lane("otel.logs")
    assert lane["state"] == "halted" and "rolled back" in lane["reason"]
    obey(server, lane, "--republish")
    finish(server, book)


def test_a_checkpoint_of_a_table_that_was_replaced(server, book):
    """Another table under the name, which knows nothing of us: not from zero into it without being told."""
    server.stop()
    damage(own_file(server, "checkpoint"), "noise")
    table = load(server)
    catalog, schema, spec = table.catalog, table.schema(), table.spec()
    catalog.drop_table(("otel", "logs"))
    catalog.create_table(("otel", "logs"), schema, location=table.location() + "2", partition_spec=spec)
    server.start()
    lane = halted_for(server, book, own_file(server, "checkpoint"))
    refused = server.command(*sluice.commands_of(lane["remedy"])[0], check=86)
    assert "no longer knows of this log" in refused.stderr, refused
    lane = server.lane("otel.logs")
    assert lane["state"] == "halted" and "no longer knows" in lane["reason"]
    server.kill()


def test_a_checkpoint_that_was_below_the_acknowledged(server, book):
    """The operator has decided to republish, and the log has not yet seen it: it is not skipped."""
    table = load(server)
    table.manage_snapshots().rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id).commit()
    lane = wait_halted(server, book)
    server.kill()
    server.flags = FLAGS + ("--publish-interval", "1h")
    server.start()
    obey(server, lane, "--republish")
    server.kill()
    damage(own_file(server, "checkpoint"), "noise")
    server.flags = FLAGS
    server.start()
    lane = halted_for(server, book, own_file(server, "checkpoint"))
    refused = server.command(*sluice.commands_of(lane["remedy"])[0], check=86)
    assert "below the" in refused.stderr and "--republish" in refused.stderr
    obey(server, server.lane("otel.logs"))
    finish(server, book)


def test_an_older_copy_with_a_damaged_checkpoint(server, book, tmp_path):
    server.kill()
    copy = take_copy(server.directory, tmp_path / "copy")
    server.start()
    for _ in range(2):
        book.must_send(server, book.new())
        server.wait_published()
    server.stop()
    swap(server.directory, copy)
    damage(own_file(server, "checkpoint"), "noise")
    server.start()
    book.must_send(server, book.new())
    lane = halted_for(server, book, own_file(server, "checkpoint"))
    refused = server.command(*sluice.commands_of(lane["remedy"])[0], check=86)
    assert "sluice log fork" in refused.stderr
    logs = fork(server, server.lane("otel.logs"))
    book.must_send(server, book.new())
    finish(server, book, logs=logs)


# ---- the catalog ----

def garble(offset, length):
    def change(path):
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(b"\x5a" * length)
    return change


CATALOG_DAMAGE = {
    "header": garble(0, 100),
    "pages 2 and 3": garble(4096, 8192),
    "cut": lambda path: os.truncate(path, 5000),
    "page 3": garble(8192, 4096),
}


def catalog_halt(server, book, how):
    """Every lane halts on its own account, and ingest goes on."""
    path = server.directory / "catalog.db"
    server.stop()
    shutil.copy(path, server.directory.parent / "backup.db")
    CATALOG_DAMAGE[how](path)
    server.start()
    book.must_send(server, book.new())
    book.must_send(server, book.new("spans"))
    faults.wait_for(lambda: all(x["state"] == "halted" for x in server.status()["lanes"]), what="the halts")
    book.must_send(server, book.new())
    lanes = server.status()["lanes"]
    code, why = server.get("/readyz")
    metrics = server.get("/metrics")[1]
    for lane in lanes:
        assert f"catalog {path}: " in lane["reason"] and "PRAGMA" not in lane["reason"], lane
        assert lane["remedy"].startswith("put a good copy of catalog.db back")
        assert code == 503 and lane["reason"] in why and lane["remedy"] in why
        assert f'sluice_lane_halted{{table="{lane["table"]}"}} 1' in metrics
    assert all(line.startswith("  resolve: ") or " is halted: " in line for line in why.splitlines()), why
    assert all(line[:2] == "20" for line in server.log().splitlines()), "one message, one line"
    assert lanes[0]["remedy"] in server.command("status", check=0).stdout
    for words in (("tables", "list"), ("doctor",)):
        done = server.command(*words)
        assert done.returncode and f"{path}: " in done.stdout + done.stderr, done
    return lanes


def end_halts(server, lanes, check=0):
    for lane in lanes:
        done = server.command(*sluice.commands_of(lane["remedy"])[0], check=check)
    return done


@pytest.mark.parametrize("how", CATALOG_DAMAGE)
def test_catalog(server, book, how):
    lanes = catalog_halt(server, book, how)
    refused = end_halts(server, lanes, check=74)
    assert str(server.directory / "catalog.db") in refused.stderr
    assert server.lane("otel.logs")["remedy"] == lanes[0]["remedy"]
    if how in ("header", "page 3"):
        server.stop()
        server.start()
        assert server.status()["lanes"][0]["reason"] == lanes[0]["reason"]
    shutil.copy(server.directory.parent / "backup.db", server.directory / "catalog.db")
    end_halts(server, lanes)
    finish(server, book)


def test_catalog_while_the_server_runs(server, book):
    path = server.directory / "catalog.db"
    shutil.copy(path, server.directory.parent / "backup.db")
    CATALOG_DAMAGE["pages 2 and 3"](path)
    with open(path, "r+b") as file:  # the change counter: what we keep of the file is not looked at otherwise
        file.seek(24)
        file.write(b"\x00\x01\x00\x00")
    book.must_send(server, book.new())
    faults.wait_for(lambda: server.lane("otel.logs")["state"] == "halted", what="the halt")
    lane = server.lane("otel.logs")
    assert f"catalog {path}: " in lane["reason"]
    book.must_send(server, book.new())
    shutil.copy(server.directory.parent / "backup.db", path)
    end_halts(server, [lane])
    finish(server, book)


def test_an_older_catalog_is_put_back(server, book):
    """What it lacks is published again from the log, by the command that the next halt names."""
    old = server.directory.parent / "old.db"
    shutil.copy(server.directory / "catalog.db", old)
    for _ in range(2):
        book.must_send(server, book.new())
        server.wait_published()
    lanes = catalog_halt(server, book, "header")
    shutil.copy(old, server.directory / "catalog.db")
    by_name = {lane["table"]: lane for lane in lanes}
    refused = end_halts(server, [by_name.pop("otel.logs")], check=86)
    assert "committed" in refused.stderr and "--republish" in refused.stderr
    end_halts(server, by_name.values())
    obey(server, server.lane("otel.logs"))
    server.wait_published()
    server.stop()
    book.check(server.directory, with_leftovers=True)  # the files of the commits that the old one lacks


def test_without_a_copy_the_tables_are_registered_again(server, book):
    lanes = catalog_halt(server, book, "header")
    path = server.directory / "catalog.db"
    path.rename(server.directory.parent / "damaged.db")
    catalog = sluice.catalog(server.directory)
    catalog.create_namespace("otel")
    for name in ("logs", "spans"):
        folder = server.directory / "warehouse/otel" / name / "metadata"
        newest = (folder / "version-hint.text").read_text() + ".metadata.json"
        catalog.register_table(("otel", name), f"file://{folder / newest}")
    end_halts(server, lanes)
    finish(server, book)


# ---- the log's checkpoints ----

def test_both_checkpoints_of_the_log(server, book, tmp_path):
    """Without them nobody can say what the log is: the server does not start, and says what helps."""
    state = server.directory / "log/state"
    shutil.copytree(state, tmp_path / "state")
    for _ in range(3):
        book.must_send(server, book.new())
    server.stop()
    server.start()
    book.must_send(server, book.new("spans"))
    server.kill()
    files = sorted(state.glob("*.state"))
    for path in files:
        path.write_bytes(b"\xa5" * path.stat().st_size)
    server.start(wait=False)
    assert server.process.wait(timeout=20) == 74
    for path in files:
        assert str(path) in server.log()
    assert "copy of this data directory" in server.log()
    server.kill()
    for path in files:
        path.rename(tmp_path / path.name)
    for path in (tmp_path / "state").iterdir():
        shutil.copy(path, state)
    server.start()
    book.must_send(server, book.new())
    finish(server, book)
