#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Made test/fuzz/corpus/segment/server_*: small first segments of a server's logs, sealed with their footers,
active after a kill, and torn. By hand: SLUICE_BINARY=... build/venv/bin/python test/fuzz/make_segments.py"""
import concurrent.futures
import pathlib
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "test/support"))
import ledger  # noqa: E402
import sluice  # noqa: E402

CORPUS = TOP / "test/fuzz/corpus/segment"
ACTIVE, SEALED = 3, 4  # fuzz_segment.c's first byte
FIRST = "0000000000000001.seg"
BLOCK = 4096


def written(data):
    """Without the blanks behind what was written, but for one block."""
    return data[:(len(data.rstrip(b"\0")) + BLOCK - 1) // BLOCK * BLOCK + BLOCK]


def entry(kind, state, data):
    return bytes([kind]) + len(state).to_bytes(4, "little") + state + data


def segment(at, rounds, at_once, is_sealed):
    """(checkpoint, first segment) of a log with logs and spans, some of them numbered, some sent at once."""
    flags = ("--log-segment-bytes", "1MiB", "--publish-interval", "1h")
    server = sluice.Server(at, *flags, "--log-seal-after", "300ms" if is_sealed else "1h").start()

    def send(i):
        signal, make, _ = ledger.SIGNALS["spans" if i % 2 else "logs"]
        numbers = {"Sluice_Producer": f"p{i}", "Sluice_Sequence": "1"} if i % 4 > 1 else {}
        assert server.post(signal, make(f"r{i}", 1 + i % 3).SerializeToString(), **numbers).code == 200
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        list(pool.map(send, range(rounds)))
    found = lambda: next(pathlib.Path(at).glob(f"log/*/{FIRST}"))  # noqa: E731
    while is_sealed and found().parent.name == "active":
        pass
    server.kill()
    assert (found().parent.name == "active") != is_sealed
    return max(pathlib.Path(at).glob("log/state/*.state")).read_bytes(), found().read_bytes()


def main():
    with tempfile.TemporaryDirectory() as scratch:
        at = pathlib.Path(scratch)
        (state, one), (state_many, many) = (segment(at / f"sealed-{n}", n, n, True) for n in (1, 6))
        state_active, active = segment(at / "active", 4, 1, False)
        active = written(active)
        for name, data in (
                ("sealed", entry(SEALED, state, one)),
                ("sealed_many", entry(SEALED, state_many, many)),
                ("sealed_without_footer", entry(SEALED, state_many, many[:len(many) * 2 // 3 // BLOCK * BLOCK])),
                ("sealed_as_active", entry(ACTIVE, state, one)),
                ("active", entry(ACTIVE, state_active, active)),
                ("active_torn", entry(ACTIVE, state_active, active[:-3 * BLOCK - 1000])),
                # A block in the middle never reached the disk.
                ("active_with_a_hole", entry(ACTIVE, state_active,
                                             active[:4 * BLOCK] + bytes(BLOCK) + active[5 * BLOCK:]))):
            (CORPUS / f"server_{name}").write_bytes(data)
            print(f"server_{name}: {len(data)} bytes")


main()
