# SPDX-License-Identifier: Apache-2.0
"""What a mirror holds, read as docs/format/mirror.md and segment.md say and with nothing of ours: objects,
segments put together from ranges, and which entries in them are proven."""
import json
import pathlib
import re
import struct

ALL = 2**64 - 1
RANGE, STATE = 1, 2


def _table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Object:
    """One range or state; fails on what is not as it should be."""

    def __init__(self, path, log_id):
        self.path, data = path, path.read_bytes()
        magic, version, header_bytes, self.kind, self.flags, log, self.id, self.start, self.end, self.incarnation, \
            self.floor, self.made_ns, body_crc, header_crc = struct.unpack_from("<8sIIII16sQQQQQqII", data)
        assert (magic, version, header_bytes, log.hex()) == (b"SLUICEMR", 0, 96, log_id)
        assert crc32c(data[:92]) == header_crc and crc32c(data[96:]) == body_crc, path
        self.body = data[96:]
        assert len(self.body) == self.end - self.start
        if self.kind == STATE:
            assert path.name == f"{self.id:020}.{self.incarnation}" and path.parent.name == "state"
        else:
            assert path.name == f"{self.start:016}-{self.end:016}.{self.incarnation}"
            assert path.parent.name == f"{self.id:020}" and path.parent.parent.name == "segments"
            assert 0 < len(self.body) <= 8 << 20


class Mirror:
    def __init__(self, url):
        self.root, = [p for p in pathlib.Path(url).iterdir() if re.fullmatch(r"[0-9a-f]{32}", p.name)]
        self.head = json.loads((self.root / "head").read_text())
        assert self.head["format"] == "sluice mirror" and self.head["log_id"] == self.root.name
        objects = list(filter(None, map(self.read, sorted(self.root.glob("s*/**/*")))))
        self.states = sorted((o for o in objects if o.kind == STATE), key=lambda o: (o.incarnation, o.id))
        self.segments = {}  # id: its ranges that follow each other from 0
        for o in sorted((o for o in objects if o.kind == RANGE), key=lambda o: (o.id, o.start)):
            ranges = self.segments.setdefault(o.id, [])
            if o.start == (ranges[-1].end if ranges else 0):
                ranges.append(o)

    def read(self, path):
        """None: not ours, or gone meanwhile."""
        name = str(path.relative_to(self.root))
        if not re.fullmatch(r"state/\d{20}\.\d+|segments/\d{20}/\d{16}-\d{16}\.\d+", name):
            return None
        try:
            return Object(path, self.root.name)
        except FileNotFoundError:
            return None

    def is_whole(self, segment_id):
        return bool(self.segments[segment_id][-1].flags & 1)

    def data(self, segment_id):
        return b"".join(o.body for o in self.segments[segment_id])

    def entries(self):
        """{(group, seq): payload} of what is proven."""
        found = {}
        for segment_id, ranges in self.segments.items():
            if ranges:
                found.update(entries_of(self.data(segment_id), max(o.floor for o in ranges)))
        return found


def entries_of(data, floor):
    """Of a segment's bytes; a unit above `floor` counts if a later one says that it was synced."""
    assert data[:8] == b"SLUICESG"
    at, = struct.unpack_from("<I", data, 12)
    units, number = [], 0
    while at + 72 <= len(data) and data[at:at + 4] == b"SLUN":
        unit, said, length, records, kind = struct.unpack_from("<QQQII", data, at + 8)
        if unit != number + 1 or at + length > len(data):
            break
        floor, number = max(floor, said), unit
        units.append((unit, at, records, kind))
        at += length
    found = {}
    for unit, at, records, kind in units:
        if unit > floor or kind != 1:
            continue
        for i in range(records):
            offset, header_bytes, payload_bytes, _, crc, kind_of_record = struct.unpack_from("<IIIIII", data, at + 72 + 24 * i)
            start = at + offset * 64
            if kind_of_record >= 32:
                continue
            group, = struct.unpack_from("<I", data, start + 32)
            seq, = struct.unpack_from("<Q", data, start + 40)
            payload_at = (start + header_bytes + 63) // 64 * 64
            payload = data[payload_at:payload_at + payload_bytes]
            assert crc32c(payload) == crc
            found[group, seq] = payload
    return found
