# SPDX-License-Identifier: Apache-2.0
"""The power goes, on a real file system: ext4 on a loop device is shut down without flushing its journal,
so that what was not synced is gone at the next mount. Rows are sent and PyIceberg commits meanwhile. TC12,
E10."""
import fcntl
import gc
import os
import pathlib
import random
import sqlite3
import struct
import subprocess
import threading
import time

import pytest

import ledger
import sluice

DEEP = os.environ.get("SLUICE_DEEP") == "1"
SEED = int(os.environ.get("SLUICE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
FS_IOC_SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, 2
FLAGS = ("--publish-interval", "30ms", "--log-segment-bytes", "1MiB", "--log-budget-bytes", "100MiB",
         "--publish-halt-confirm", "2s")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


class Disk:
    """An ext4 in a file, mounted at `at`."""

    def __init__(self, image, at, mebibytes=512):
        self.at, self.device = at, None
        at.mkdir()
        with open(image, "wb") as file:
            file.truncate(mebibytes << 20)
        try:
            run("mkfs.ext4", "-q", "-F", str(image))
            self.device = run("losetup", "--find", "--show", str(image)).strip()
            run("mount", "-t", "ext4", self.device, str(at))
        except (AssertionError, FileNotFoundError) as refused:
            self.close()
            pytest.skip(f"a loop device with ext4 is not to be had: {refused}")
        os.sync()  # mkfs alone

    def cut(self):
        handle = os.open(self.at, os.O_RDONLY)
        fcntl.ioctl(handle, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        os.close(handle)

    def mount_again(self):
        self.unmount()
        run("mount", "-t", "ext4", self.device, str(self.at))

    def unmount(self):
        deadline = time.monotonic() + 10
        while True:
            gc.collect()  # clients' handles
            done = subprocess.run(["umount", str(self.at)], capture_output=True, text=True)
            if done.returncode == 0:
                return
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.05)

    def close(self):
        subprocess.run(["umount", "-l", str(self.at)], capture_output=True)
        if self.device:
            subprocess.run(["losetup", "-d", self.device], capture_output=True)


@pytest.fixture()
def disk(tmp_path):
    disk = Disk(tmp_path / "image", tmp_path / "data")
    yield disk
    disk.close()


class Others:
    """PyIceberg, which syncs nothing: its rows are certain once a commit of ours stands on them."""

    def __init__(self, server, book, foreign):
        self.server, self.book, self.foreign = server, book, foreign
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.stop.wait(0.02):
            before = set(self.foreign.certain)
            try:
                if not self.foreign.append():
                    continue
            except Exception:
                pass  # the disk is gone
            fresh = self.foreign.certain - before
            self.foreign.certain -= fresh
            self.foreign.possible |= fresh
            one = self.book.new()
            try:
                one.attempts = 1
                answer = self.server.post("logs", one.body, path="/v1/logs?commit=force", timeout=20)
            except OSError:
                continue
            if answer.code == 200:
                (one.receipt,) = answer.receipts
            if answer.code == 200 and answer.headers["Sluice-Boundary"] == "visible":
                self.foreign.certain |= fresh
                self.foreign.possible -= fresh

    def end(self):
        self.stop.set()
        self.thread.join()


def is_readable(directory):
    try:
        sluice.read_pyiceberg(directory, "logs")
        return True
    except Exception:
        return False


def put_back_what_others_did_not_sync(directory):
    """Where PyIceberg's were the last commits, their metadata may be gone; the one before is ours (E17), and the books
    tell if it is not."""
    if is_readable(directory):
        return 0
    database = sqlite3.connect(directory / "catalog.db")
    (location,) = database.execute("SELECT metadata_location FROM iceberg_tables WHERE table_name = 'logs'").fetchone()
    known = pathlib.Path(location.removeprefix("file://"))
    older = sorted((p for p in known.parent.glob("*.metadata.json") if p.name < known.name), reverse=True)
    for path in older:
        database.execute("UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = 'logs'", (f"file://{path}",))
        database.commit()
        if is_readable(directory):
            break
    database.close()
    assert is_readable(directory), "a committed table is gone"
    return 1


def test_TC12_power_cut_loses_nothing_synced(disk, tmp_path):
    print(f"SLUICE_SEED={SEED}")
    chance = random.Random(SEED)
    server, book = sluice.Server(disk.at, *FLAGS), ledger.Ledger()
    foreign = None
    put_back = acked = 0
    for cut in range(40 if DEEP else 6):
        server.start()
        if not foreign:
            book.must_send(server, book.new())
            server.wait_published()
            ledger.Foreign(server.directory).append()  # loads PyIceberg
            foreign = ledger.Foreign(server.directory)
            foreign.possible.add(next(foreign.numbers))
        others = Others(server, book, foreign)
        end = time.monotonic() + chance.uniform(0.2, 1.4)
        while time.monotonic() < end:
            acked += bool(book.send(server, book.new(chance.choice(["logs", "spans"]),
                                                     chance.randrange(1, 200))))
            time.sleep(0.01)
        disk.cut()
        server.kill()
        others.end()
        disk.mount_again()
        put_back += put_back_what_others_did_not_sync(disk.at)
        server.start()
        server.wait_published()
        server.stop()
        book.check(server.directory, foreign, with_leftovers=True)  # a deletion is not promised to last (store.h)
        disk.mount_again()
    print(f"{acked} acknowledged; {len(foreign.certain)} appends of others; the table was put back "
          f"{put_back} times")
    assert acked and foreign.certain

