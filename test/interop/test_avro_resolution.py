# SPDX-License-Identifier: Apache-2.0
"""Avro's schema resolution: a file read by another schema, beside what fastavro makes of it; what does not fit
is refused."""
import datetime
import io
import json
import time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.ipc
import pytest



def record(*fields, name="r", **more):
    return {"type": "record", "name": name, "fields": [dict(zip(("name", "type", "default"), f)) if isinstance(f, tuple) else f
                                                       for f in fields], **more}


def read(tmp_path, tool, written, rows, wanted, ok=True):
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, written, rows)
    return read_as(tmp_path, tool, wanted, ok)


def read_as(tmp_path, tool, wanted, ok=True):
    (tmp_path / "wanted.json").write_text(json.dumps(wanted))
    done = tool("avro_read", tmp_path / "a.avro", tmp_path / "out", f"as={tmp_path / 'wanted.json'}", ok=ok)
    if not ok:
        return done
    with pa.OSFile(str(tmp_path / "out")) as file:
        return pa.ipc.open_stream(file.read()).read_all().to_pylist()


def theirs(path, wanted):
    return list(fastavro.reader(io.BytesIO(path.read_bytes()), reader_schema=wanted))


SUIT = {"type": "enum", "name": "suit", "symbols": ["SPADES", "HEARTS", "CLUBS"]}
FEWER = {"type": "enum", "name": "suit", "symbols": ["CLUBS", "OTHER"], "default": "OTHER"}
INNER = record(("x", "int"), ("y", "string"), name="inner")
WIDER = record(("y", "string"), ("x", "double"), ("z", "long", 7), name="inner")
CASES = {  # the writer's schema, rows, the reader's schema
    "aliases of fields": (record(("old", "int"), ("older", "string")), [{"old": 4, "older": "t"}], record(
        {"name": "newer", "type": "string", "aliases": ["other", "older"]}, {"name": "new", "type": "long", "aliases": ["old"]})),
    "aliases of types": (record(("a", {**INNER, "name": "before", "namespace": "some"})), [{"a": {"x": 1, "y": "t"}}],
                         record(("a", {**WIDER, "aliases": ["some.before"]}))),
    "order and promotions": (record(("i", "int"), ("l", "long"), ("f", "float"), ("s", "string"), ("gone", "bytes")),
                             [{"i": 5, "l": 6, "f": .5, "s": "x", "gone": b""}],
                             record(("s", "bytes"), ("f", "double"), ("l", "float"), ("i", "double"))),
    "nested": (record(("list", {"type": "array", "items": INNER}), ("one", "inner")),
               [{"list": [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}], "one": {"x": 3, "y": "c"}}],
               record(("one", WIDER), ("list", {"type": "array", "items": "inner"}))),
    "into a union": (record(("a", "int"), ("b", ["null", "int"])), [{"a": 1, "b": 2}, {"a": 2, "b": None}],
                     record(("b", ["null", "long"]), ("a", ["null", "double"]))),
    "out of a union": (record(("a", ["null", "int", "long"])), [{"a": 1}, {"a": 2**40}], record(("a", "long"))),
    "symbols": (record(("a", {"type": "array", "items": SUIT})), [{"a": ["CLUBS", "SPADES", "HEARTS"]}],
                record(("a", {"type": "array", "items": FEWER}))),
    "a record within itself": (record(("a", record(("v", "int"), ("next", ["null", "node"]), name="node"))),
                               [{"a": {"v": 1, "next": {"v": 2, "next": None}}}],
                               record(("a", record(("v", "long"), name="node")))),
}


@pytest.mark.parametrize("case", CASES)
def test_as_fastavro_resolves(tmp_path, tool, case):
    written, rows, wanted = CASES[case]
    got = read(tmp_path, tool, written, rows, wanted)
    assert got == theirs(tmp_path / "a.avro", wanted) and len(got) == len(rows)


def test_every_default(tmp_path, tool):
    """By the specification: fastavro hands bytes out as text, and leaves a record's own defaults out."""
    wanted = record(
        ("a", "int"), ("null", ["null", "int"], None), ("int", "int", -5), ("long", "long", 2**62), ("real", "double", 1.5),
        ("whole", "double", 3), ("flag", "boolean", True), ("text", "string", "dé\0f"), ("bytes", "bytes", "\u00ff\u0000a"),
        ("fixed", {"type": "fixed", "name": "f2", "size": 2}, "\u0080z"), ("suit", SUIT, "HEARTS"),
        ("list", {"type": "array", "items": ["null", "int"]}, []), ("list2", {"type": "array", "items": "int"}, [1, 2]),
        ("inner", record(("p", "int", 3), ("q", "string"), name="new"), {"q": "t"}))
    assert read(tmp_path, tool, record(("a", "int")), [{"a": 1}], wanted) == [{
        "a": 1, "null": None, "int": -5, "long": 2**62, "real": 1.5, "whole": 3.0, "flag": True, "text": "d\u00e9\0f",
        "bytes": b"\xff\0a", "fixed": b"\x80z", "suit": "HEARTS", "list": [], "list2": [1, 2], "inner": {"p": 3, "q": "t"}}]


def test_maps_by_default(tmp_path, tool):
    wanted = record(("m", {"type": "map", "values": "long"}, {"k": 1, "l": 2}))
    assert read(tmp_path, tool, record(("a", "int")), [{"a": 1}], wanted) == [{"m": [("k", 1), ("l", 2)]}]


REFUSED = {
    "no default": (record(("a", "int")), [{"a": 1}], record(("b", "int")), "without a default: b"),
    "narrower": (record(("a", "long")), [{"a": 1}], record(("a", "int")), "another type"),
    "other name": (record(("a", INNER)), [{"a": {"x": 1, "y": ""}}], record(("a", {**INNER, "name": "other"})), "another type"),
    "other size": (record(("a", {"type": "fixed", "name": "f", "size": 2})), [{"a": b"ab"}],
                   record(("a", {"type": "fixed", "name": "f", "size": 3})), "another type"),
    "null": (record(("a", ["null", "int"])), [{"a": None}], record(("a", "int")), "another type"),
    "no branch": (record(("a", "string")), [{"a": "x"}], record(("a", ["null", "int"])), "another type"),
    "no symbol": (record(("a", SUIT)), [{"a": "HEARTS"}], record(("a", {**SUIT, "symbols": ["CLUBS"]})), "no symbol HEARTS"),
    "a default of another type": (record(("a", "int")), [{"a": 1}], record(("b", "int", "x")), "default of another type"),
    "a default out of range": (record(("a", "int")), [{"a": 1}], record(("b", "int", 2**31)), "default out of range"),
    "a fixed of another size": (record(("a", "int")), [{"a": 1}],
                                record(("b", {"type": "fixed", "name": "f", "size": 3}, "xy")), "default of another size"),
    "bytes that are none": (record(("a", "int")), [{"a": 1}], record(("b", "bytes", "\u0100")), "beyond U+00FF"),
    "no such symbol": (record(("a", "int")), [{"a": 1}], record(("b", SUIT, "DIAMONDS")), "no symbol of suit"),
}


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


def decimal(precision, scale, **more):
    return logical("bytes", "decimal", precision=precision, scale=scale, **more)


def stamp(unit, prefix=""):
    return logical("long", f"{prefix}timestamp-{unit}")


MILLIS, MICROS = logical("int", "time-millis"), logical("long", "time-micros")
ONE_AND_A_QUARTER = Decimal("1.25")
AT = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000)
FINER = {  # the type as written, as read, the value
    "more digits": (decimal(9, 2), decimal(38, 2), ONE_AND_A_QUARTER),
    "no more digits": (decimal(9, 2), decimal(9, 2), -ONE_AND_A_QUARTER),
    "into a union": (decimal(9, 2), ["null", decimal(9, 4), decimal(10, 2)], ONE_AND_A_QUARTER),
    "micros of millis": (stamp("millis"), stamp("micros"), AT.replace(tzinfo=datetime.UTC)),
    "local micros of millis": (stamp("millis", "local-"), stamp("micros", "local-"), AT),
    "time": (MILLIS, MICROS, AT.time()),
}


@pytest.mark.parametrize("case", FINER)
def test_decimals_and_times_keep_their_value(tmp_path, tool, case):
    written, wanted, value = FINER[case]
    got = read(tmp_path, tool, record(("a", written)), [{"a": value}] * 3, record(("a", wanted)))
    assert [row["a"].get("member1", row["a"]) if isinstance(row["a"], dict) else row["a"] for row in got] == [value] * 3


@pytest.mark.parametrize("written, wanted, value", [
    (decimal(9, 2), decimal(9, 4), ONE_AND_A_QUARTER), (decimal(9, 2), decimal(8, 2), ONE_AND_A_QUARTER),
    (decimal(9, 2), decimal(12, 1), ONE_AND_A_QUARTER), (stamp("micros"), stamp("millis"), AT), (MILLIS, stamp("millis"), AT.time()),
    (logical("int", "date"), stamp("micros"), AT.date()), (logical("int", "date"), MILLIS, AT.date())])
def test_other_scales_and_kinds_of_time_are_refused(tmp_path, tool, written, wanted, value):
    for kind in (wanted, ["null", wanted]):
        done = read(tmp_path, tool, record(("a", written)), [{"a": value}], record(("a", kind)), ok=False)
        assert done.returncode == 2 and "another type" in done.stderr, done.stderr


def test_a_time_out_of_range_of_its_unit(tmp_path, tool):
    done = read(tmp_path, tool, record(("a", stamp("millis"))), [{"a": 2**60}], record(("a", stamp("micros"))), ok=False)
    assert done.returncode == 2 and "out of range of its unit: timestamp-micros" in done.stderr, done.stderr


def test_many_fields_and_symbols_in_another_order(tmp_path, tool):
    """They are looked for once, not for each record and value."""
    names = [f"c{i}" for i in range(4000)]
    symbols = [f"s{i}" for i in range(500)]
    suit = {"type": "enum", "name": "e", "symbols": symbols}
    ints = [(name, "int") for name in names]
    rows = [{**{name: i for i, name in enumerate(names)}, "e": symbols[-5:] * 20} for _ in range(200)]
    written = record(*ints, ("e", {"type": "array", "items": suit}))
    wanted = record(("e", {"type": "array", "items": {**suit, "symbols": symbols[::-1]}}), *reversed(ints))
    with open(tmp_path / "a.avro", "wb") as file:
        fastavro.writer(file, written, rows)
    began = time.monotonic()
    got = read_as(tmp_path, tool, wanted)
    assert time.monotonic() - began < 4
    assert list(got[-1]) == ["e", *names[::-1]] and got[-1] == rows[-1]


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(tmp_path, tool, case):
    written, rows, wanted, message = REFUSED[case]
    done = read(tmp_path, tool, written, rows, wanted, ok=False)
    assert done.returncode == 2 and message in done.stderr, done.stderr


def test_defaults_without_end(tmp_path, tool):
    """A record whose default is itself, with everything left out."""
    wanted = record(("b", record(("c", "int", 1), ("next", ["node", "null"], {}), name="node"), {}))
    done = read(tmp_path, tool, record(("a", "int")), [{"a": 1}], wanted, ok=False)
    assert done.returncode in (5, 6), done.stderr


def test_a_manifest_that_lacks_fields_with_defaults(tmp_path, tool):
    """As of a table of format 1: what later versions added comes from the reader's schema."""
    file_v1 = record(("file_path", "string"), ("record_count", "long"), name="r2")
    written = record(("status", "int"), ("snapshot_id", ["null", "long"]), ("data_file", file_v1), name="manifest_entry")
    file_v2 = record(("content", "int", 0), ("file_path", "string"), ("record_count", "long"),
                     ("sort_order_id", ["null", "int"], None), name="r2")
    wanted = record(("status", "int"), ("snapshot_id", ["null", "long"], None), ("sequence_number", ["null", "long"], None),
                    ("data_file", file_v2), name="manifest_entry")
    rows = [{"status": 1, "snapshot_id": 9, "data_file": {"file_path": "a", "record_count": 3}}]
    got = read(tmp_path, tool, written, rows, wanted)
    assert got == theirs(tmp_path / "a.avro", wanted)
    assert got[0]["data_file"] == {"content": 0, "file_path": "a", "record_count": 3, "sort_order_id": None}
