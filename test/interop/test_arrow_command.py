# SPDX-License-Identifier: Apache-2.0
"""sluice arrow: files and streams of pyarrow and Polars, value for value; what is damaged or not read."""
import datetime
import decimal
import itertools
import json
import os
import re
import struct
import subprocess
import sys
import time
import uuid

import polars
import pyarrow as pa
import pytest

from columnar_data import cases, make_nested_dictionary, sliced, stream_bytes

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402
from rows_json import arrow_rows, assert_row, parsed  # noqa: E402

# The build with sanitizers, where it stands beside the other.
ASAN = sluice.BINARY.parents[4] / "asan/src/app/cmd/sluice"
CAREFUL = ASAN if ASAN.exists() else sluice.BINARY


def arrow(*words, check=0, binary=sluice.BINARY):
    done = subprocess.run([str(binary), "arrow", *map(str, words)], capture_output=True)
    assert check is None or done.returncode == check, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def file_bytes(table, compression=None, max_chunksize=None, **options):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, **options)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=max_chunksize)
    return sink.getvalue().to_pybytes()


CONTAINERS = {"stream": stream_bytes, "file": file_bytes}


def foreign():
    """Types that no table of ours has."""
    some_id = uuid.UUID(int=2**127 + 5)
    texts = ["a" * 20, None, "", "short", "é" * 9, "twelve bytes", "b" * 5000]
    n = len(texts)

    def pad(values):
        return (list(values) + [None] * n)[:n]

    when = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)
    ends = {f"int{b}": pa.array(pad([-2**(b - 1), 2**(b - 1) - 1, 0]), f"int{b}") for b in (8, 16, 32, 64)}
    ends |= {f"uint{b}": pa.array(pad([2**b - 1, 0]), f"uint{b}") for b in (8, 16, 32, 64)}
    decimals = {f"decimal{b}": pa.array(pad([decimal.Decimal(f"-{'9' * (p - 2)}.99"),
                                             decimal.Decimal("0.05"), decimal.Decimal("-0.50"), None,
                                             decimal.Decimal("0.00")]), getattr(pa, f"decimal{b}")(p, 2))
                for b, p in ((32, 9), (64, 18), (128, 38), (256, 76))}
    times = {"time32_s": pa.time32("s"), "time32_ms": pa.time32("ms"), "time64_us": pa.time64("us"),
             "time64_ns": pa.time64("ns")}
    stamps = {f"stamp_{u}_{tz}": pa.array(pad([when, datetime.datetime(2024, 2, 29, 1, 2, 3)])).cast(
        pa.timestamp(u, tz), safe=False) for u in ("s", "ms", "us", "ns") for tz in (None, "UTC", "Asia/Tokyo")}
    return pa.table({
        **ends, **decimals, **stamps,
        **{k: pa.array(pad([datetime.time(1, 2, 3), datetime.time(23, 59, 59)]), t) for k, t in times.items()},
        "half": pa.array(pad([1.5, -0.0, float("nan"), float("-inf"), 6e-8]), pa.float16()),
        "date64": pa.array(pad([datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]), pa.date64()),
        **{f"duration_{u}": pa.array(pad([-1, 2**62]), pa.duration(u)) for u in ("s", "ms", "us", "ns")},
        "interval": pa.array(pad([(1, -2, 3), (0, 0, -2**62)]), pa.month_day_nano_interval()),
        "large_text": pa.array(texts, pa.large_utf8()),
        "large_bytes": pa.array([t and t.encode() for t in texts], pa.large_binary()),
        "text_view": pa.array(texts, pa.string_view()),
        "bytes_view": pa.array([t and t.encode() for t in texts], pa.binary_view()),
        "large_list": pa.array(pad([[1, None], [], None, [3] * 9]), pa.large_list(pa.int16())),
        "pairs": pa.array(pad([[1, 2], None, [None, 4]]), pa.list_(pa.uint8(), 2)),
        "of_none": pa.array(pad([[], None]), pa.list_(pa.uint8(), 0)),
        "deep": pa.array(pad([[{"v": "x" * 30, "f": [1.0, 2.0]}], None, [None, {"v": None, "f": None}]]),
                         pa.large_list(pa.struct([("v", pa.string_view()), ("f", pa.list_(pa.float16(), 2))]))),
        "by_number": pa.array(pad([[(1, "x"), (2, None)], []]), pa.map_(pa.int32(), pa.string_view())),
        "by_large": pa.array(pad([[("k", 1)], []]), pa.map_(pa.large_utf8(), pa.uint64())),
        "id": pa.array(pad([some_id.bytes]), pa.uuid()),
        "list_view": pa.ListViewArray.from_arrays(
            pa.array([4, 0, 1, 0, 5, 2, 0], pa.int32()), pa.array([2, 5, 0, 3, 0, 2, 1], pa.int32()),
            pa.array(["e", None, "cc" * 9, "dd", "", "f"]), mask=pa.array([False, False, True] + [False] * 4)),
        "large_list_view": pa.LargeListViewArray.from_arrays(
            pa.array([2, 2, 0, 0, 1, 3, 0], pa.int64()), pa.array([1, 2, 4, 0, 1, 1, 2], pa.int64()),
            pa.array([[1], None, [2, 3], []], pa.list_(pa.int16()))),
        **{f"runs_{b}": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7], f"int{b}"), v) for b, v in (
            (16, pa.array(["x" * 20, None, "y"])), (32, pa.array([1, 2, None], pa.uint16())),
            (64, pa.DictionaryArray.from_arrays([1, None, 0], pa.array(["p", "q"]))))},
        "runs_of_lists": pa.RunEndEncodedArray.from_arrays(pa.array([1, 4, 7]), pa.array([[{"a": 1.5}], None, []])),
        "lists_of_runs": pa.ListArray.from_arrays(pa.array([0, 1, 1, 5, 5, 6, 8, 9], pa.int32()),
                                                  pa.RunEndEncodedArray.from_arrays(
                                                      pa.array([4, 5, 9]), pa.array(["one", None, "two"]))),
        **{f"dict_{i}": pa.DictionaryArray.from_arrays(pa.array(pad([1, None, 0]), i), pa.array(["x", "y" * 40], v))
           for i, v in zip(("int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"),
                           itertools.cycle([pa.utf8(), pa.large_utf8()]))},
        "dict_of_views": pa.DictionaryArray.from_arrays(pa.array(pad([0, 1])), pa.array(["z" * 13, None], pa.string_view())),
    })


def chunked():
    table = foreign()
    return pa.concat_tables([table.slice(2, 3), table.slice(0, 0), table, table.slice(1, 1)])


TABLES = {**cases(), "foreign": foreign(), "foreign_chunks": chunked(), "slice": sliced(),
          "nested_dictionary": make_nested_dictionary(),
          "no_columns": pa.table({}), "one_null": pa.table({"n": pa.nulls(1)})}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("name", sorted(TABLES))
def test_rows(tmp_path, container, codec, name):
    table = TABLES[name]
    path = tmp_path / "in"
    path.write_bytes(CONTAINERS[container](table, codec))
    lines = arrow("cat", path).stdout.decode().splitlines()
    expected = arrow_rows(table)
    assert len(lines) == len(expected)
    for line, row in zip(lines, expected):
        assert_row(parsed(line), row)
    facts = json.loads(arrow("verify", path, "--json").stdout)
    assert facts == {"file": str(path), "ok": True, "container": container, "rows": table.num_rows, "columns": table.num_columns,
                     "record_batches": facts["record_batches"], "dictionaries": facts["dictionaries"],
                     "end_mark": True}
    opened = (pa.ipc.open_stream if container == "stream" else pa.ipc.open_file)(path.read_bytes())
    assert facts["record_batches"] == (len(list(opened)) if container == "stream" else opened.num_record_batches)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_rows_of_polars(tmp_path, container, compression):
    frame = polars.DataFrame({
        "s": ["a", None, "x" * 100], "n": [1, 2, None], "u": polars.Series([1, 2, 3], dtype=polars.UInt16),
        "d": [datetime.date(2024, 1, 1), None, None], "l": [[1, 2], [], None],
        "c": polars.Series(["p", "q", "p"], dtype=polars.Categorical), "b": [b"\x00\xff", None, b""],
        "t": polars.Series([datetime.datetime(2024, 1, 1), None, None], dtype=polars.Datetime("ms")),
        "st": [{"a": 1, "b": "t"}, {"a": None, "b": "u"}, {"a": 3, "b": None}]})
    path = tmp_path / "in"
    (frame.write_ipc if container == "file" else frame.write_ipc_stream)(path, compression=compression)
    read = pa.ipc.open_file if container == "file" else pa.ipc.open_stream
    expected = arrow_rows(read(path.read_bytes()).read_all())
    lines = arrow("cat", path).stdout.decode().splitlines()
    assert len(lines) == 3
    for line, row in zip(lines, expected):
        assert_row(parsed(line), row)
    assert json.loads(arrow("verify", path, "--json").stdout)["container"] == container


def test_dictionaries_that_change(tmp_path):
    schema = pa.schema([("d", pa.dictionary(pa.int8(), pa.utf8())), ("n", pa.int64())])
    for container, words_of in (("stream", [["a", "b"], ["a", "b", "c"], ["z"], ["z", "y"]]),
                                ("file", [["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]])):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        expected = []
        make = pa.ipc.new_stream if container == "stream" else pa.ipc.new_file
        with make(sink, schema, options=options) as writer:
            for words in words_of:
                column = pa.DictionaryArray.from_arrays(
                    pa.array([*range(len(words)), None], pa.int8()), pa.array(words))
                numbers = pa.array(range(len(words) + 1), pa.int64())
                writer.write_batch(pa.record_batch([column, numbers], schema=schema))
                expected += [{"d": w, "n": n} for n, w in enumerate([*words, None])]
        (tmp_path / "in").write_bytes(sink.getvalue().to_pybytes())
        got = [json.loads(line) for line in arrow("cat", tmp_path / "in").stdout.splitlines()]
        # In a file all deltas are in force from the start, so that the indices say the same.
        assert got == expected
        assert json.loads(arrow("verify", "--json", tmp_path / "in").stdout)["dictionaries"] == len(words_of)


def test_schema(tmp_path):
    path = tmp_path / "in"
    path.write_bytes(file_bytes(foreign()))
    text = arrow("schema", path).stdout.decode()
    for line in ("int8: int8\n", "uint64: uint64\n", "decimal256: decimal256[76, 2]\n", "half: float16\n",
                 "stamp_ms_Asia/Tokyo: timestamp[ms, Asia/Tokyo]\n", "stamp_us_UTC: timestamp[us, UTC]\n",
                 "time32_s: time32[s]\n", "pairs: list[2]\n  element: uint8\n", "large_text: large_utf8\n",
                 "text_view: utf8_view\n", "dict_uint16: dictionary[uint16, large_utf8]\n",
                 "by_number: map\n  key: int32 required\n  value: utf8_view\n", "id: fixed[16] (arrow.uuid)\n",
                 "interval: interval[month_day_nano]\n", "duration_ns: duration[ns]\n", "date64: date64\n"):
        assert line in text.replace("item:", "element:"), (line, text)
    fields = json.loads(arrow("schema", path, "--json").stdout)
    assert [f["name"] for f in fields] == foreign().column_names
    assert {"name": "id", "type": "fixed[16]", "nullable": True, "extension": "arrow.uuid"} in fields
    path.write_bytes(stream_bytes(cases()["everything"]))
    fields = json.loads(arrow("schema", path, "--json").stdout)
    assert fields[0] == {"name": "id", "type": "int64", "nullable": False, "field_id": 1}
    assert fields[14]["children"] == [{"name": "element", "type": "int64", "nullable": True, "field_id": 15}]


def test_words_and_many_files(tmp_path):
    (tmp_path / "a").write_bytes(stream_bytes(pa.table({"n": [1, 2]})))
    (tmp_path / "b").write_bytes(file_bytes(pa.table({"n": [3]})))
    (tmp_path / "bad").write_bytes(b"PAR1 and more")
    assert arrow("cat", tmp_path / "a", tmp_path / "b").stdout == b'{"n":1}\n{"n":2}\n{"n":3}\n'
    assert arrow("cat", "--rows", "1", tmp_path / "a").stdout == b'{"n":1}\n'
    done = arrow("cat", tmp_path / "bad", tmp_path / "b", check=2)
    assert done.stdout == b'{"n":3}\n' and b"bad: arrow: neither an Arrow file nor" in done.stderr
    assert b"file: 1 rows in 1 record batches and 1 columns are whole" in arrow("verify", tmp_path / "b").stdout
    arrow("cat", tmp_path / "nothing", check=3)
    arrow("cat", check=2)
    arrow("what", tmp_path / "a", check=2)
    (tmp_path / "empty").write_bytes(b"")
    arrow("verify", tmp_path / "empty", check=2)


@pytest.mark.parametrize("container", CONTAINERS)
def test_columns_are_chosen(tmp_path, container):
    rows = pa.table({"a": [1, 2, 3], "b": [[1], None, []], "ab": ["x", None, "z"],
                     "d": pa.array(["p", "q", "p"]).dictionary_encode()})
    (tmp_path / "in").write_bytes(CONTAINERS[container](rows, None, 2))
    assert arrow("cat", "--columns", "d,a", tmp_path / "in").stdout == \
        b'{"a":1,"d":"p"}\n{"a":2,"d":"q"}\n{"a":3,"d":"p"}\n'
    assert arrow("cat", "--columns", "ab", "--rows", "2", tmp_path / "in").stdout == b'{"ab":"x"}\n{"ab":null}\n'
    assert arrow("cat", "--columns", '"ab",a', "--rows", "1", tmp_path / "in").stdout == b'{"a":1,"ab":"x"}\n'
    for words in ("c", "a,c", "a,", "", "B"):
        done = arrow("cat", "--columns", words, tmp_path / "in", check=3)
        assert done.stdout == b"" and b"there is no column" in done.stderr


def test_streams_may_just_end(tmp_path):
    data = stream_bytes(pa.table({"n": [1, 2]}))
    (tmp_path / "in").write_bytes(data[:-8])
    assert not json.loads(arrow("verify", "--json", tmp_path / "in").stdout)["end_mark"]
    assert b"without a mark" in arrow("verify", tmp_path / "in").stdout
    (tmp_path / "in").write_bytes(data + b"x")
    assert b"bytes behind the end" in arrow("verify", tmp_path / "in", check=2).stderr


@pytest.mark.parametrize("array, name", [
    (pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]), "union"),
    (pa.UnionArray.from_dense(pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()),
                              [pa.array([1]), pa.array(["b"])]), "union"),
])
@pytest.mark.parametrize("container", CONTAINERS)
def test_types_that_are_not_read_are_named(tmp_path, container, array, name):
    (tmp_path / "in").write_bytes(CONTAINERS[container](pa.table({"the_column": array})))
    said = arrow("cat", tmp_path / "in", check=6).stderr.decode()
    assert "in: schema at byte" in said or "footer at byte" in said
    assert f"column the_column: type {name} is not read" in said


def spot(data, needle):
    assert data.count(needle) == 1
    return data.index(needle)


def slot_at(data, table, slot):
    """Where a field of a flatbuffer's table lies."""
    vtable = table - int.from_bytes(data[table:table + 4], "little", signed=True)
    return table + int.from_bytes(data[vtable + 4 + slot * 2:vtable + 6 + slot * 2], "little")


def follow(data, at):
    return at + int.from_bytes(data[at:at + 4], "little")


@pytest.mark.parametrize("container", CONTAINERS)
def test_big_endian_is_refused(tmp_path, container):
    """We write the byte order, which others leave to its default: turned around in the schema, and the footer."""
    (tmp_path / "in").write_bytes(CONTAINERS["stream"](pa.table({"n": [1, 2]}), None))
    os.rename(tmp_path / "in", tmp_path / "in.arrows")
    target = tmp_path / ("out.arrow" if container == "file" else "out.arrows")
    subprocess.run([str(sluice.BINARY), "convert", tmp_path / "in.arrows", target], check=True, stdout=subprocess.DEVNULL)
    data = bytearray(target.read_bytes())
    message = 8 + (8 if container == "file" else 0)
    roots = [(follow(data, message), 2)]
    if container == "file":
        footer = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
        roots.append((follow(data, footer), 1))
    arrow("cat", target)
    for root, slot in roots[::-1]:  # a file is read by its footer
        endianness = slot_at(data, follow(data, slot_at(data, root, slot)), 0)
        assert data[endianness:endianness + 2] == b"\0\0"
        changed = bytearray(data)
        changed[endianness] = 1
        target.write_bytes(changed)
        for word in ("cat", "schema", "verify"):
            assert b"big-endian data" in arrow(word, target, check=6).stderr


def test_flags_that_a_word_has_not(tmp_path):
    (tmp_path / "in").write_bytes(CONTAINERS["file"](pa.table({"a": [1]})))
    for word in ("schema", "verify"):
        for flag in (["--columns", "a"], ["--rows", "1"]):
            for json_too in ([], ["--json"]):
                done = arrow(word, *flag, *json_too, tmp_path / "in", check=2)
                assert f"arrow {word} has no {flag[0]}".encode() in done.stderr and not done.stdout
    assert arrow("cat", "--columns", "a", "--rows", "1", tmp_path / "in").stdout == b'{"a":1}\n'


@pytest.mark.parametrize("container", CONTAINERS)
def test_verify_says_where(tmp_path, container):
    """One wrong byte in what a buffer holds: verify names the column and exactly that byte."""
    table = pa.table({"text": ["abcdefgh" * 4, "ijklmnop" * 3], "other": pa.array([77, 78], pa.int64()),
                      "d": pa.DictionaryArray.from_arrays(pa.array([0x01, 0x00], pa.int32()), pa.array(["p", "q"])),
                      "large": pa.array(["Q" * 40, "R" * 21], pa.large_utf8()),
                      "view": pa.array(["S" * 40, "T" * 21], pa.string_view())})
    good = CONTAINERS[container](table)
    text_at = spot(good, b"ijklmnop" * 3)
    offsets_at = spot(good, struct.pack("<3i", 0, 32, 56))
    large_at = spot(good, struct.pack("<3q", 0, 40, 61))
    view_at = spot(good, struct.pack("<i4s", 21, b"TTTT"))
    for at, byte, expected in ((text_at, 0xff, ("column text: text that is not UTF-8 (slot 1)", text_at)),
                               (offsets_at + 7, 0x80, ("column text: offsets that fall (slot 1)", offsets_at + 4)),
                               (offsets_at + 10, 0x01, ("column text: offset past the data", offsets_at + 8)),
                               (view_at + 4, ord("U"), ("column view: a view that begins unlike its data", view_at)),
                               (view_at + 8, 0x09, ("column view: a view outside its data", view_at)),
                               (large_at + 8, 0x70, ("column large: offsets that fall", large_at + 16))):
        bad = bytearray(good)
        bad[at] = byte
        (tmp_path / "bad").write_bytes(bad)
        said = arrow("verify", tmp_path / "bad", check=2).stderr.decode()
        assert expected[0] in said and f"wrong at byte {expected[1]}:" in said, said
        assert "record batch 0 at byte " in said
    indices_at = good.index(struct.pack("<2i", 1, 0), text_at, large_at)
    bad = bytearray(good)
    bad[indices_at] = 2
    (tmp_path / "bad").write_bytes(bad)
    said = arrow("verify", tmp_path / "bad", check=2).stderr.decode()
    assert "column d: dictionary index out of range (slot 0)" in said and f"byte {indices_at}:" in said


@pytest.mark.parametrize("container", CONTAINERS)
def test_verify_says_where_slots_lie_elsewhere(tmp_path, container):
    table = pa.table({
        "view": pa.ListViewArray.from_arrays(pa.array([7, 5], pa.int32()), pa.array([2, 1], pa.int32()),
                                             pa.array([0] * 9, pa.int64())),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int64()), pa.array(["x", "y"]))})
    good = CONTAINERS[container](table)
    view_at, ends_at = spot(good, struct.pack("<2i", 7, 5)), spot(good, struct.pack("<2q", 1, 2))
    for at, byte, expected in ((view_at, 8, f"column view: a list outside its elements/{view_at}"),
                               (view_at + 7, 0xff, f"column view: a list outside its elements/{view_at + 4}"),
                               (ends_at + 8, 1, f"column runs: ends of runs that do not rise/{ends_at + 8}"),
                               (ends_at, 0, f"column runs: ends of runs that do not rise/{ends_at}"),
                               (ends_at + 7, 0x80, f"column runs: ends of runs that do not rise/{ends_at}")):
        bad = bytearray(good)
        bad[at] = byte
        (tmp_path / "bad").write_bytes(bad)
        said = arrow("verify", tmp_path / "bad", check=2, binary=CAREFUL).stderr.decode()
        what, place = expected.split("/")
        assert what in said and f"byte {place}" in said, (said, expected)
    short = pa.RunEndEncodedArray.from_arrays(pa.array([1, 9], pa.int32()), pa.array(["x", "y"]))
    bad = bytearray(CONTAINERS[container](pa.table({"runs": short})))
    bad[spot(bad, struct.pack("<2i", 1, 9)) + 4] = 8
    (tmp_path / "bad").write_bytes(bad)
    assert b"runs that end before their column" in arrow("verify", tmp_path / "bad", check=2).stderr


@pytest.mark.parametrize("array", [
    pa.RunEndEncodedArray.from_arrays(pa.array([10 ** 6], pa.int32()), pa.array(["x" * 10 ** 6])),
    pa.RunEndEncodedArray.from_arrays(pa.array([5000], pa.int32()), pa.array([[["x" * 10 ** 6]] * 3])),
    pa.ListViewArray.from_arrays(pa.array([0] * 10 ** 5, pa.int32()), pa.array([10 ** 5] * 10 ** 5, pa.int32()),
                                 pa.array([1.5] * 10 ** 5)),
    pa.ListViewArray.from_arrays(pa.array([0] * 15000, pa.int32()), pa.array([10 ** 5] * 15000, pa.int32()),
                                 pa.array([1.5] * 10 ** 5))],
    ids=["runs", "runs of lists", "more elements than there may be", "list views"])
def test_slots_that_multiply_are_bounded(tmp_path, array):
    """A megabyte that names a terabyte: refused, in bounded memory."""
    (tmp_path / "in").write_bytes(stream_bytes(pa.table({"many": array})))
    words = ["bash", "-c", 'ulimit -v 4000000; exec "$@"', "x", str(sluice.BINARY), "arrow", "verify", str(tmp_path / "in")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode > 0 and re.search(r"more than 2.31 - 1|expands to more than", done.stderr), (done.returncode, done.stderr)


def test_footers_are_held_against_the_file(tmp_path):
    table = pa.table({"n": pa.array(range(4), pa.int64())})
    good = file_bytes(table, None, 2)
    footer_bytes = struct.unpack("<i", good[-10:-6])[0]
    footer_at = len(good) - 10 - footer_bytes
    blocks = [i for i in range(footer_at, len(good) - 34)
              if struct.unpack("<qi", good[i:i + 12])[0] in range(8, footer_at, 8)
              and good[i + 12:i + 16] == bytes(4) and struct.unpack("<q", good[i + 16:i + 24])[0] in (16, 32)]
    assert len(blocks) == 2

    def verify(bad, expected):
        (tmp_path / "bad").write_bytes(bad)
        for word in ("verify", "cat"):
            said = arrow(word, tmp_path / "bad", check=2).stderr.decode()
            assert expected in said, said

    for field, value, expected in (("offset", -8, "a block that is no place for record batch 1"),
                                   ("offset", 1 << 40, "a block that is no place for record batch 1"),
                                   ("offset", 8, "message at byte 8"),
                                   ("body", 1 << 62, "a block that is no place"),
                                   ("meta", 1 << 30, "a block that is no place")):
        bad = bytearray(good)
        at = blocks[1] + {"offset": 0, "meta": 8, "body": 16}[field]
        bad[at:at + (4 if field == "meta" else 8)] = struct.pack("<i" if field == "meta" else "<q", value)
        verify(bad, expected)
    for end, expected in ((struct.pack("<i", -1), "does not fit"), (struct.pack("<i", footer_at + 9999), "does not fit")):
        bad = bytearray(good)
        bad[-10:-6] = end
        verify(bad, expected)
    bad = bytearray(good)
    at = good.index(b"n\0\0\0", 8, footer_at)  # the column's name in the leading schema
    bad[at] = ord("m")
    verify(bad, "another schema than the footer's")


def test_blocks_over_each_other_do_not_multiply_a_file(tmp_path):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.schema([("n", pa.int64())])) as writer:
        for rows in (1000, 1, 1, 1):
            writer.write_batch(pa.record_batch([pa.array([1 << 40] * rows)], names=["n"]))
    data = bytearray(sink.getvalue().to_pybytes())
    footer_at = len(data) - 10 - struct.unpack("<i", data[-10:-6])[0]
    first = next(i for i in range(footer_at, len(data)) if struct.unpack("<q", data[i + 16:i + 24])[0] == 8000)
    for i in range(1, 4):
        data[first + 24 * i:first + 24 * i + 24] = data[first:first + 24]
    (tmp_path / "in").write_bytes(data)
    assert b"a block that is no place for record batch 1" in arrow("verify", tmp_path / "in", check=2).stderr


def small():
    """A little of everything, so that each byte matters."""
    table = pa.table({
        "s": ["a", None, "é"], "l": [[1, 2], None, []], "m": pa.array([[("k", 1)], None, []], pa.map_(pa.utf8(), pa.int8())),
        "d": pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint8()), pa.array(["x", "y" * 13])),
        "v": pa.array(["z" * 14, None, "i"], pa.string_view()), "f": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
        "L": pa.array(["q", None, "r"], pa.large_utf8()), "t": pa.array([1, None, 2], pa.timestamp("ms"))})
    return table


def unharmed(command, directory, variants):
    """Runs them under the sanitizers, many files a process: each is an answer. The complaints, one a
    file, and what was printed."""
    paths, complaints, printed = [], [], []
    for i, data in enumerate(variants):
        paths.append(directory / f"v{i}")
        paths[-1].write_bytes(data)
    for at in range(0, len(paths), 2000):
        names = [p.name for p in paths[at:at + 2000]]
        done = subprocess.run([str(CAREFUL), *command, *names], cwd=directory, capture_output=True, timeout=600,
                              env={**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                                   "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:exitcode=99"})
        assert done.returncode in (0, 2, 3, 5, 6, 74), (done.returncode, done.stderr[-4000:].decode(errors="replace"))
        complaints += done.stderr.decode(errors="replace").splitlines()
        printed += done.stdout.splitlines()
    assert all(line.startswith("sluice: v") and "no memory" not in line for line in complaints), complaints[:20]
    for path in paths:
        path.unlink()
    return complaints, printed


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_cut_at_every_byte(tmp_path, container, codec):
    """An error, and before it nothing but rows that are right; a stream may end between messages."""
    data = CONTAINERS[container](small(), codec, 2)
    (tmp_path / "whole").write_bytes(data)
    lines = arrow("cat", tmp_path / "whole").stdout.splitlines()
    assert len(lines) == 3
    refused, printed = unharmed(["arrow", "cat"], tmp_path, (data[:n] for n in range(len(data))))
    if container == "file":
        assert len(refused) == len(data) and printed == []
    else:
        assert len(data) - 6 <= len(refused) < len(data) and set(printed) == set(lines)
    for length in range(0, len(data), 40):
        (tmp_path / "cut").write_bytes(data[:length])
        got = arrow("cat", tmp_path / "cut", check=None).stdout.splitlines()
        assert got == lines[:len(got)], length


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_flips_are_answered(tmp_path, container, codec):
    data = CONTAINERS[container](small(), codec, 2)

    def flipped():
        for at in range(len(data)):
            for bit in range(8) if codec is None else (0, 5, 7):
                yield data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1:]

    assert len(unharmed(["arrow", "cat"], tmp_path, flipped())[0]) > len(data) // 2


def test_memory_is_that_of_a_message(tmp_path):
    path = tmp_path / "in"
    schema = pa.schema([("b", pa.binary()), ("d", pa.dictionary(pa.int32(), pa.utf8()))])
    with pa.ipc.new_stream(str(path), schema) as writer:
        for i in range(40):
            words = pa.array([f"{i}{'x' * 1000}{j}" for j in range(2000)])  # another dictionary each time
            column = pa.DictionaryArray.from_arrays(pa.array(range(1000), pa.int32()), words)
            writer.write_batch(pa.record_batch([pa.array([os.urandom(2000)] * 1000), column], schema=schema))
    assert path.stat().st_size > 150 << 20
    limited = f"ulimit -v {60 << 10} && exec '{sluice.BINARY}' arrow verify '{path}'"
    done = subprocess.run(["bash", "-c", limited], capture_output=True)
    assert done.returncode == 0 and b"40000 rows" in done.stdout, done


def test_dictionaries_that_grow_a_thousand_times(tmp_path):
    """A large dictionary and a thousand deltas of one value: it grows in place, not by copies."""
    schema = pa.schema([("d", pa.dictionary(pa.int32(), pa.utf8()))])
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True, compression="zstd")
    words = pa.array(["0" * 900] * 30_000)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for i in range(3):
            column = pa.DictionaryArray.from_arrays(pa.array([i], pa.int32()), pa.concat_arrays([words, pa.array(["x"] * i)]) if i else words)
            writer.write_batch(pa.record_batch([column], schema=schema))
    data = sink.getvalue().to_pybytes()
    reader = pa.ipc.MessageReader.open_stream(data)
    messages = [message.serialize().to_pybytes() for message in reader]
    assert len(messages) == 7
    delta, batch = messages[3], messages[4]
    (tmp_path / "in").write_bytes(b"".join(messages[:3]) + (delta + batch) * 1000)
    began = time.monotonic()
    assert b"1001 rows in 1001 record batches" in arrow("verify", tmp_path / "in").stdout
    assert time.monotonic() - began < 10
