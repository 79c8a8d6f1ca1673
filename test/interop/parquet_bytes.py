# SPDX-License-Identifier: Apache-2.0
"""A reader of Parquet's Thrift structures, so that tests see what libraries do not show. Structs become
dicts by field id, unions too."""
import struct


class Cursor:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def binary(self):
        length = self.varint()
        self.at += length
        return self.data[self.at - length:self.at]

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self.byte()
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 7:
            self.at += 8
            return struct.unpack("<d", self.data[self.at - 8:self.at])[0]
        if kind == 8:
            return self.binary()
        if kind == 9:
            header = self.byte()
            count = header >> 4 if header >> 4 < 15 else self.varint()
            element = header & 15
            if element in (1, 2):
                return [self.byte() == 1 for _ in range(count)]
            return [self.value(element) for _ in range(count)]
        assert kind == 12, kind
        return self.struct()

    def struct(self):
        fields, last = {}, 0
        while True:
            header = self.byte()
            if header == 0:
                return fields
            last = last + (header >> 4) if header >> 4 else self.zigzag()
            assert last not in fields
            fields[last] = self.value(header & 15)


def footer(data):
    length = struct.unpack("<I", data[-8:-4])[0]
    cursor = Cursor(data, len(data) - 8 - length)
    fields = cursor.struct()
    assert cursor.at == len(data) - 8
    return fields


def thrift(value):
    """The reverse of Cursor.struct for readers that take any width of integer: (type, bytes)."""
    def varint(n):
        out = b""
        while n >= 0x80:
            out += bytes([n & 0x7F | 0x80])
            n >>= 7
        return out + bytes([n])
    if isinstance(value, bool):
        return (1 if value else 2), b""
    if isinstance(value, int):
        return 6, varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if isinstance(value, (bytes, bytearray)):
        return 8, varint(len(value)) + value
    if isinstance(value, list):
        parts = [(2, b"\x01" if v else b"\x02") if isinstance(v, bool) else thrift(v) for v in value]
        return 9, bytes([0xF0 | (parts[0][0] if parts else 12)]) + varint(len(parts)) + b"".join(b for _, b in parts)
    out = b""
    for number, member in sorted(value.items()):
        kind, data = thrift(member)
        out += bytes([kind]) + varint(number << 1) + data
    return 12, out + b"\0"


def with_footer(data, edit):
    """The file with its footer changed by `edit`."""
    fields = footer(data)
    edit(fields)
    new = thrift(fields)[1]
    length = struct.unpack("<I", data[-8:-4])[0]
    return data[:-8 - length] + new + struct.pack("<I", len(new)) + b"PAR1"
