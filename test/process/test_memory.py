# SPDX-License-Identifier: Apache-2.0
"""Memory has a bound that neither load nor a catalog that stands still moves: 512 MiB for `wild` over 64
connections. Ten minutes in the deep run, the catalog locked for two of them; seconds in every run."""
import concurrent.futures
import gzip
import os
import pathlib
import re
import sqlite3
import subprocess
import time

import sluice

DEEP = os.environ.get("SLUICE_DEEP") == "1"
SECONDS, LOCKED, RATE = (600, 120, 15000) if DEEP else (10, 3, 15000)


def memory_mib(server, what):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) / 1024


def test_memory_stays_bounded_while_the_catalog_stands_still(tmp_path):
    server = sluice.Server(tmp_path / "data", "--publish-interval", "2s", "--log-keep-committed", "1s").start()
    items = SECONDS * RATE
    load = subprocess.Popen([sluice.BINARY, "gen", "--profile", "wild", "--items", str(items), "--rate",
                             str(RATE), "--connections", "64", "--otlp-http-port", str(server.otlp), "--json"],
                            stdout=subprocess.PIPE, text=True)
    time.sleep(SECONDS / 3)
    catalog = sqlite3.connect(server.directory / "catalog.db", timeout=30, isolation_level=None)
    catalog.execute("BEGIN EXCLUSIVE")
    time.sleep(LOCKED)
    lag = server.lane("otel.spans")["lag_rows"]
    assert lag > RATE * LOCKED / 2, "nothing is published meanwhile, and all of it is in the log"
    catalog.execute("ROLLBACK")
    catalog.close()
    report, _ = load.communicate(timeout=SECONDS * 3 + 120)
    assert load.returncode == 0 and f'"items":{items}' in report.replace(" ", ""), report
    server.wait_published(300)
    rows = sum(lane["rows"] for lane in server.status()["lanes"])
    assert rows == items and memory_mib(server, "VmHWM") <= 512, memory_mib(server, "VmHWM")
    server.stop()


def test_rows_that_hold_nothing_are_bounded_too(tmp_path):
    """A kilobyte on the wire may be half a million empty records, which are large in memory alone."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "1s").start()
    records = b"\x12\x00" * 499_999  # ScopeLogs.log_records
    scope = b"\x12" + varint(len(records)) + records
    body = gzip.compress(b"\x0a" + varint(len(scope)) + scope)
    assert len(body) < 2048

    def send(_):
        deadline = time.monotonic() + 120
        while (answer := server.post("logs", body, Content_Encoding="gzip")).code == 503:
            assert answer.headers["Retry-After"] and time.monotonic() < deadline
            time.sleep(0.2)
        assert answer.code == 200, answer.body

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(send, range(16)))
    server.wait_published(300)
    assert server.lane("otel.logs")["rows"] == 16 * 499_999
    assert memory_mib(server, "VmHWM") <= 512, memory_mib(server, "VmHWM")
    server.stop()


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])
