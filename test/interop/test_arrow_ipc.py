# SPDX-License-Identifier: Apache-2.0
"""Arrow streams of pyarrow through our reader and writer, value for value, and the reverse."""
import datetime

import pyarrow as pa
import pytest

from columnar_data import cases, sliced, make_nested_dictionary, stream_bytes


def read(path):
    return pa.ipc.open_stream(path.read_bytes()).read_all()


@pytest.mark.parametrize("name", sorted(cases()))
@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("sent", [None, "lz4", "zstd"])
def test_copy_is_equal(tool, tmp_path, name, codec, sent):
    table = cases()[name]
    (tmp_path / "in").write_bytes(stream_bytes(table, sent))
    tool("arrow_copy", tmp_path / "in", tmp_path / "out", codec, "copy")
    got = read(tmp_path / "out")
    got.validate(full=True)
    assert got.schema.equals(table.schema, check_metadata=False)
    assert repr(got.to_pydict()) == repr(table.to_pydict())


@pytest.mark.parametrize("name", sorted(n for n, table in cases().items() if table.to_batches()))
def test_gather_reverses(tool, tmp_path, name):
    table = cases()[name]
    (tmp_path / "in").write_bytes(stream_bytes(table))
    tool("arrow_copy", tmp_path / "in", tmp_path / "out", "none", "reverse")
    got = read(tmp_path / "out")
    got.validate(full=True)
    assert [repr(row) for row in got.to_pylist()] == [repr(row) for row in table.to_pylist()][::-1]


def test_unusual_arrays_are_mended(tool, tmp_path):
    """Bytes behind null slots: legal in Arrow, not in our batches."""
    validity = pa.py_buffer(bytes([0b101]))
    offsets = pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in [0, 1, 3, 4]))
    strings = pa.Array.from_buffers(pa.utf8(), 3, [validity, offsets, pa.py_buffer(b"abcd")])
    numbers = pa.Array.from_buffers(
        pa.int64(), 3, [validity, pa.py_buffer(b"".join(n.to_bytes(8, "little") for n in [7, 8, 9]))])
    lists = pa.Array.from_buffers(
        pa.list_(pa.int64()), 3, [validity, offsets], children=[pa.array([1, 2, 3, 4], pa.int64())])
    table = pa.table({"s": strings, "n": numbers, "l": lists})
    (tmp_path / "in").write_bytes(stream_bytes(table))
    tool("arrow_copy", tmp_path / "in", tmp_path / "out", "none", "copy")
    got = read(tmp_path / "out")
    assert got.to_pydict() == table.to_pydict()
    column = got.column("s").chunk(0)
    assert column.buffers()[2].to_pybytes()[:2] == b"ad"


def test_dictionary_deltas_and_replacements(tool, tmp_path):
    schema = pa.schema([("d", pa.dictionary(pa.int32(), pa.utf8()))])
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    expected = []
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for words in [["a", "b"], ["a", "b", "c"], ["z"]]:
            column = pa.DictionaryArray.from_arrays(
                pa.array(list(range(len(words))) + [None], pa.int32()), pa.array(words))
            writer.write_batch(pa.record_batch([column], schema=schema))
            expected += words + [None]
    (tmp_path / "in").write_bytes(sink.getvalue().to_pybytes())
    for mode in ["copy", "reverse"]:
        tool("arrow_copy", tmp_path / "in", tmp_path / "out", "none", mode)
        got = read(tmp_path / "out").column("d").to_pylist()
        assert got == (expected if mode == "copy" else expected[::-1])


def test_slices_of_pyarrow(tool, tmp_path):
    table = sliced()
    (tmp_path / "in").write_bytes(stream_bytes(table))
    tool("arrow_copy", tmp_path / "in", tmp_path / "out", "none", "copy")
    assert repr(read(tmp_path / "out").to_pydict()) == repr(table.to_pydict())


@pytest.mark.parametrize("array", [
    pa.array([1, 2], pa.int8()),
    pa.array([1, 2], pa.uint64()),
    pa.array(["a"], pa.large_utf8()),
    pa.array([datetime.time(1)], pa.time64("us")),
    pa.array([1], pa.timestamp("ns")),
    pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["a"])),
])
def test_types_we_lack_are_named(tool, tmp_path, array):
    (tmp_path / "in").write_bytes(stream_bytes(pa.table({"the_column": array})))
    done = tool("arrow_copy", tmp_path / "in", tmp_path / "out", "none", "copy", ok=False)
    assert done.returncode == 6
    assert "the_column" in done.stderr


def test_bad_text_is_refused(tool, tmp_path):
    bad = pa.Array.from_buffers(pa.utf8(), 1, [None, pa.py_buffer(bytes([0, 0, 0, 0, 2, 0, 0, 0])),
                                               pa.py_buffer(b"\xc3\x28")])
    (tmp_path / "in").write_bytes(stream_bytes(pa.table({"the_column": bad})))
    done = tool("arrow_copy", tmp_path / "in", tmp_path / "out", "none", "copy", ok=False)
    assert done.returncode == 2 and "UTF-8" in done.stderr


def test_nested_dictionary(tool, tmp_path):
    """The shape of resource attributes: a dictionary of maps whose keys are a dictionary."""
    table = make_nested_dictionary()
    (tmp_path / "in").write_bytes(stream_bytes(table))
    for mode in ["copy", "reverse"]:
        tool("arrow_copy", tmp_path / "in", tmp_path / "out", "none", mode)
        got = read(tmp_path / "out").to_pylist()
        assert got == (table.to_pylist() if mode == "copy" else table.to_pylist()[::-1])


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_shared_indices_are_written_once(tool, tmp_path, codec):
    table = make_nested_dictionary(20000)
    (tmp_path / "in").write_bytes(stream_bytes(table))
    tool("arrow_copy", tmp_path / "in", tmp_path / "apart", codec, "copy")
    tool("arrow_copy", tmp_path / "in", tmp_path / "shared", codec, "share")
    assert read(tmp_path / "shared").to_pylist() == table.to_pylist()
    saved = (tmp_path / "apart").stat().st_size - (tmp_path / "shared").stat().st_size
    assert saved >= (20000 * 4 if codec == "none" else 5000)
    # And read by us it is one buffer again, compressed or not: writing it once more saves as much.
    tool("arrow_copy", tmp_path / "shared", tmp_path / "again", codec, "copy")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "shared").read_bytes()
    tool("arrow_copy", tmp_path / "shared", tmp_path / "reversed", codec, "reverse")
    assert read(tmp_path / "reversed").to_pylist() == table.to_pylist()[::-1]
