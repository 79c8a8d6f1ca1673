# SPDX-License-Identifier: Apache-2.0
"""A second writer of the mirror's objects, from docs/format/mirror.md and segment.md alone; and a way to
spoil them. It copies what the log of a server that stands still, or was killed, has synced."""
import json
import pathlib
import re
import struct
import time


def _table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = _table()
END = 2 ** 64 - 1


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def units(data, start):
    """(number, floor, end) of the units that follow each other from `start` on."""
    at, number = start, 1
    while data[at:at + 4] == b"SLUN":
        _, found, floor, size = struct.unpack_from("<IQQQ", data, at + 4)
        if found != number or size == 0 or at + size > len(data):
            return
        at += size
        yield number, floor, at
        number += 1


class Mirror:
    def __init__(self, root, log_id, incarnation=1, groups=1):
        self.url, self.log_id, self.incarnation = f"file://{root}", log_id, incarnation
        self.root = pathlib.Path(root) / log_id
        self.root.mkdir(parents=True, exist_ok=True)
        self.put_head(log_id, incarnation, groups)

    def put_head(self, log_id, incarnation=1, groups=1, **other):
        (self.root / "head").write_text(json.dumps(
            {"format": "sluice mirror", "version": 0, "log_id": log_id, "incarnation": incarnation,
             "groups": groups, "made_ms": int(time.time() * 1000), **other}))

    def put_range(self, segment, at, body, floor, is_end):
        header = struct.pack("<8sIIII16sQQQQQqI", b"SLUICEMR", 0, 96, 1, int(is_end),
                             bytes.fromhex(self.log_id), segment, at, at + len(body), self.incarnation,
                             END if is_end else floor, time.time_ns(), crc32c(body))
        header += struct.pack("<I", crc32c(header))
        path = self.root / f"segments/{segment:020d}/{at:016d}-{at + len(body):016d}.{self.incarnation}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(header + body)
        return path

    def take(self, log, range_bytes=16384, with_proof=True):
        """All that is proven in the segments below `log`; or the same without what proves the last unit."""
        for folder in ("committed", "sealed", "active"):
            for path in sorted((pathlib.Path(log) / folder).glob("*.seg")):
                self.take_segment(path, folder != "active", range_bytes, with_proof)

    def take_segment(self, path, is_sealed, range_bytes, with_proof):
        data = path.read_bytes()
        assert data[:8] == b"SLUICESG"
        segment, = struct.unpack_from("<Q", data, 32)
        all_units = list(units(data, struct.unpack_from("<I", data, 12)[0]))
        floor = max((unit[1] for unit in all_units), default=0)
        end = len(data) if is_sealed else max((unit[2] for unit in all_units if unit[0] <= floor), default=0)
        for at in range(0, end, range_bytes):
            to = min(at + range_bytes, end)
            within = max((unit[0] for unit in all_units if unit[0] <= floor and unit[2] <= to), default=0)
            within = within if with_proof else 0
            self.put_range(segment, at, data[at:to], within, is_sealed and to == end)

    def objects(self):
        return sorted(p for p in self.root.glob("segments/*/*") if re.fullmatch(r"\d{16}-\d{16}\.\d+", p.name))
