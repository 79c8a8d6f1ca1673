# SPDX-License-Identifier: Apache-2.0
"""Faults at chosen system calls of the running binary, by strace on one of its threads: the binary knows
nothing of it. A point is (system call, n): the nth such call of that thread from now on."""
import collections
import functools
import pathlib
import re
import shutil
import subprocess
import time

import pytest

# What can change a file, a directory or the catalog.
CALLS = ("openat", "pwritev", "pwrite64", "fdatasync", "fsync", "rename", "renameat2", "unlink",
         "fallocate", "mkdir")


@functools.cache
def can_trace():
    return bool(shutil.which("strace")) and subprocess.run(
        ["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


needs_strace = pytest.mark.skipif(not can_trace(), reason="strace, or its ptrace, is not to be had")


def thread_of(server, name="publish"):
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return task.name
    raise AssertionError(f"the server has no thread {name}")


class Trace:
    """strace on one thread, from the constructor's return on. `more`: {call: what else to inject}."""

    def __init__(self, server, output, call=None, inject=None, thread="publish", more=None):
        self.output = pathlib.Path(output)
        self.output.write_text("")
        faults = {**({call: inject} if inject else {}), **(more or {})}
        words = ["-e", f"trace={','.join(faults) or call or ','.join(CALLS)}"]
        for name, what in faults.items():
            words += ["-e", f"inject={name}:{what}"]
        self.process = subprocess.Popen(
            ["strace", "-s", "256", "-p", thread_of(server, thread), "-o", str(output), *words],
            stderr=subprocess.PIPE)
        while b"attached" not in (line := self.process.stderr.readline()):
            assert line, "strace did not attach"

    def calls(self):
        """(call, its line), in order; what is under way included."""
        found = re.findall(r"^(\w+)\((.*)", self.output.read_text(errors="replace"), re.M)
        return [(name, line) for name, line in found if name in CALLS]

    def injected(self):
        return "(INJECTED)" in self.output.read_text(errors="replace")

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.process.stderr.close()


def points_of(calls):
    """[(call, n, line)] of a trace."""
    seen = collections.Counter()
    points = []
    for name, line in calls:
        seen[name] += 1
        points.append((name, seen[name], line))
    return points


def wait_for(condition, seconds=20, what="it"):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.005)
    return result
