# SPDX-License-Identifier: Apache-2.0
"""Dictionaries from Arrow to Arrow: they stay such, with the type of their indices and their order, whatever
becomes of them from batch to batch; and dictionaries of nested values to every format."""
import json
import pathlib
import random
import subprocess
import sys
import time

import polars
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402
from columnar_data import make_nested_dictionary  # noqa: E402

ENDINGS = ("arrow", "arrows")


def run(*words, check=0):
    done = subprocess.run([sluice.BINARY, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == check, done.stderr
    return done


def write(path, batches, **options):
    new = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
    with new(path, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        for batch in batches:
            out.write_batch(batch)


def read(path):
    if path.suffix == ".arrow":
        file = pa.ipc.open_file(path)
        batches = [file.get_batch(i) for i in range(file.num_record_batches)]
    else:
        with pa.OSFile(str(path)) as file:
            batches = list(pa.ipc.open_stream(file.read()))
    for batch in batches:
        batch.validate(full=True)
    return batches


def messages_of_dictionaries(path):
    return json.loads(run("arrow", "verify", "--json", path).stdout)["dictionaries"]


def column(words, values, index=pa.int8(), ordered=False):
    at = {word: i for i, word in enumerate(words)}
    kind = pa.dictionary(index, words.type if isinstance(words, pa.Array) else pa.utf8(), ordered)
    words = words if isinstance(words, pa.Array) else pa.array(words, pa.utf8())
    return pa.DictionaryArray.from_arrays(pa.array([None if v is None else at[v] for v in values], index), words,
                                          ordered=ordered), kind


def batches_of(dictionaries, index=pa.int8(), ordered=False):
    made = []
    for number, words in enumerate(dictionaries):
        values = [words[i * 7 % len(words)] for i in range(9)] + [None]
        made.append(pa.RecordBatch.from_arrays(
            [column(words, values, index, ordered)[0], pa.array(range(number, number + 10))], ["d", "n"]))
    return made


SAME = [["a", "b", "c"]] * 3
GROWING = [["a"], ["a", "b"], ["a", "b", "c", "d"]]
SHRINKING = [["a", "b", "c"], ["a"], ["a", "b"]]
CHANGING = [["a", "b"], ["b", "c", "a"], ["x"], ["", "a", "y"]]


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()])
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_a_dictionary_was_stays(tmp_path, ending, index):
    for ordered in (False, True):
        source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
        batches = batches_of(SAME, index, ordered)
        write(source, batches)
        for codec in ("none", "lz4", "zstd"):
            run("convert", "--force", "--compression", codec, source, target)
            back = read(target)
            assert [b.schema for b in back] == [batches[0].schema] * 3
            assert back[0].schema.field("d").type.ordered == ordered
            assert back == batches and back[2]["d"].dictionary.to_pylist() == ["a", "b", "c"]
            assert messages_of_dictionaries(target) == 1  # it is written once


@pytest.mark.parametrize("dictionaries, messages", [(GROWING, 3), (SHRINKING, 1), (CHANGING, 4)])
@pytest.mark.parametrize("deltas", [False, True])
def test_streams_follow(tmp_path, dictionaries, messages, deltas):
    batches = batches_of(dictionaries, ordered=True)
    write(tmp_path / "in.arrows", batches, emit_dictionary_deltas=deltas)
    run("convert", tmp_path / "in.arrows", tmp_path / "out.arrows")
    back = read(tmp_path / "out.arrows")
    assert [b.to_pydict() for b in back] == [b.to_pydict() for b in batches]
    assert [b.schema for b in back] == [b.schema for b in batches]
    assert messages_of_dictionaries(tmp_path / "out.arrows") == messages


@pytest.mark.parametrize("dictionaries, words", [(GROWING, "abcd"), (SHRINKING, "abc"), (CHANGING, ["a", "b", "c", "x", "", "y"])])
def test_files_hold_what_a_stream_had(tmp_path, dictionaries, words):
    """One dictionary with each value once: a file cannot replace it."""
    batches = batches_of(dictionaries, ordered=True)
    write(tmp_path / "in.arrows", batches)
    run("convert", tmp_path / "in.arrows", tmp_path / "out.arrow")
    back = read(tmp_path / "out.arrow")
    assert [b.to_pydict() for b in back] == [b.to_pydict() for b in batches]
    assert back[0].schema.field("d").type == pa.dictionary(pa.int32(), pa.utf8())
    assert back[-1]["d"].dictionary.to_pylist() == list(words)
    assert polars.read_ipc(tmp_path / "out.arrow", use_pyarrow=True)["n"].len() == sum(b.num_rows for b in batches)
    run("arrow", "verify", tmp_path / "out.arrow")


def test_many_changes_in_a_file(tmp_path):
    """Of every layout; with nulls among the values, and more of them than a byte can name."""
    rnd = random.Random(4)
    kinds = {"text": (pa.utf8(), lambda i: f"word {i}"), "int": (pa.int64(), lambda i: i - 500),
             "small": (pa.uint16(), lambda i: i), "fixed": (pa.binary(3), lambda i: i.to_bytes(3, "big")),
             "bool": (pa.bool_(), lambda i: i % 2 == 0), "list": (pa.list_(pa.utf8()), lambda i: [str(i), None])}
    made = []
    for _ in range(30):
        arrays = []
        for kind, make in kinds.values():
            words = [None if rnd.random() < .1 else make(i) for i in rnd.sample(range(1000), 50)]
            indices = [None if rnd.random() < .1 else rnd.randrange(50) for _ in range(80)]
            arrays.append(pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(words, kind)))
        made.append(pa.RecordBatch.from_arrays(arrays, list(kinds)))
    write(tmp_path / "in.arrows", made)
    for name in ("out.arrow", "out.arrows"):
        run("convert", tmp_path / "in.arrows", tmp_path / name)
        assert [b.to_pydict() for b in read(tmp_path / name)] == [b.to_pydict() for b in made], name
    words = read(tmp_path / "out.arrow")[-1]["text"].dictionary.to_pylist()
    assert len(words) - words.count(None) == len(set(words) - {None}) > 500
    run("convert", tmp_path / "out.arrow", tmp_path / "again.arrow")
    assert [b.to_pydict() for b in read(tmp_path / "again.arrow")] == [b.to_pydict() for b in made]


def test_a_new_dictionary_in_each_of_thousands_of_batches(tmp_path):
    """What is written once is not copied for each batch, and comes back; nested values and bools are there once."""
    kind = pa.dictionary(pa.int32(), pa.utf8())
    lists, bools = pa.dictionary(pa.int32(), pa.list_(pa.int32())), pa.dictionary(pa.int32(), pa.bool_())
    schema = pa.schema([("d", kind), ("l", lists), ("b", bools)])

    def batch(number):
        words = pa.array([f"{number} {i}" for i in range(40)])
        numbers = pa.array([[number % 7, i] for i in range(40)], pa.list_(pa.int32()))
        indices = pa.array([39, 0, None], pa.int32())
        flags = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array([number % 2 > 0, number % 2 < 1]))
        return pa.record_batch([pa.DictionaryArray.from_arrays(indices, words),
                                pa.DictionaryArray.from_arrays(indices, numbers), flags], schema=schema)

    made = [batch(number) for number in range(5000)]
    write(tmp_path / "in.arrows", made)
    began = time.monotonic()
    run("convert", tmp_path / "in.arrows", tmp_path / "out.arrow")
    run("arrow", "verify", tmp_path / "out.arrow")
    assert time.monotonic() - began < 10
    assert (tmp_path / "out.arrow").stat().st_size < 2 * (tmp_path / "in.arrows").stat().st_size
    file = pa.ipc.open_file(tmp_path / "out.arrow")
    assert [file.get_batch(i).to_pydict() for i in (0, 1, 4999)] == [made[i].to_pydict() for i in (0, 1, 4999)]
    last = file.get_batch(4999)
    assert [len(last[name].dictionary) for name in "dlb"] == [200000, 280, 2]


@pytest.mark.parametrize("ending", ENDINGS)
def test_dictionaries_within_others_and_within_lists(tmp_path, ending):
    words = pa.array(["x", "y", None])
    leaf = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 1], pa.int16()), words)
    table = pa.table({"list": pa.ListArray.from_arrays(pa.array([0, 2, 2, 5]), leaf),
                      "struct": pa.StructArray.from_arrays([leaf.slice(0, 3), pa.array([1, 2, 3])], ["d", "n"])})
    for given in (table, make_nested_dictionary()):
        source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
        write(source, given.to_batches())
        run("convert", "--force", source, target)
        back = pa.Table.from_batches(read(target))
        assert back.to_pylist() == given.to_pylist()
        assert sum(pa.types.is_dictionary(kind) for kind in back.schema.types) == \
            sum(pa.types.is_dictionary(kind) for kind in given.schema.types)
    assert pa.types.is_dictionary(pa.Table.from_batches(table.to_batches()).schema.field("list").type.value_type)


NESTED = {
    "struct": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None, {"a": 3, "b": None}],
                       pa.struct([("a", pa.int32()), ("b", pa.utf8())])),
    "list": pa.array([["p", None], [], None, ["q"] * 5], pa.list_(pa.utf8())),
    "map": pa.array([[("k", 1)], [], None, [("l", None), ("m", 2)]], pa.map_(pa.utf8(), pa.int64())),
}


@pytest.mark.parametrize("kind", NESTED)
def test_dictionaries_of_nested_values(tmp_path, kind):
    indices = [3, 0, None, 1, 2, 0, 0]
    for number, (values, at) in enumerate([(NESTED[kind], indices), (NESTED[kind].slice(0, 0), [None, None])]):
        rows = pa.table({"d": pa.DictionaryArray.from_arrays(pa.array(at, pa.int32()), values)})
        source = tmp_path / f"in{number}.arrows"
        write(source, rows.to_batches())
        cat = run("arrow", "cat", source).stdout
        for ending in ("parquet", "avro", "ndjson", "arrow"):
            target = tmp_path / f"out{number}.{ending}"
            run("convert", source, target)
            words = {"parquet": ("parquet", "cat"), "avro": ("avro", "cat"), "arrow": ("arrow", "cat")}
            assert (run(*words[ending], target).stdout if ending in words else target.read_text()) == cat, ending
        assert pq.read_table(tmp_path / f"out{number}.parquet")["d"].to_pylist() == rows["d"].to_pylist()


def test_a_dictionary_that_expands_without_end_is_refused(tmp_path):
    """A value of a megabyte, named a hundred thousand times."""
    value = pa.array([list(range(1 << 17))], pa.list_(pa.int64()))
    rows = pa.table({"d": pa.DictionaryArray.from_arrays(pa.array([0] * 100000, pa.int8()), value)})
    write(tmp_path / "in.arrows", rows.to_batches())
    assert "d" in run("convert", tmp_path / "in.arrows", tmp_path / "out.parquet", check=5).stderr
    run("convert", tmp_path / "in.arrows", tmp_path / "out.arrow")
    assert (tmp_path / "out.arrow").stat().st_size < 3 << 20


# ---- slots below a null struct, which say nothing ----

@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint16()])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("hidden, words", [(0, []), (5, ["a", "b"])])
def test_indices_below_null_structs_may_be_any(tmp_path, index, ending, hidden, words):
    """Also where the dictionary has no entry that they could be of, and two structs further up."""
    kind = pa.dictionary(index, pa.utf8())
    indices = pa.array([hidden, 0 if words else hidden, hidden], index)
    inner = pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.utf8()), safe=False)
    nulls = pa.array([True, not words, True])
    one = pa.StructArray.from_arrays([inner], fields=[pa.field("v", kind, False)], mask=nulls)
    two = pa.StructArray.from_arrays(
        [pa.StructArray.from_arrays([inner], fields=[pa.field("v", kind, False)])], names=["s"], mask=nulls)
    batch = pa.record_batch({"one": one, "two": two})
    write(tmp_path / f"in.{ending}", [batch])
    for out in ENDINGS:
        run("convert", "--force", tmp_path / f"in.{ending}", tmp_path / f"out.{out}")
        assert [b.to_pylist() for b in read(tmp_path / f"out.{out}")] == [batch.to_pylist()]


@pytest.mark.parametrize("index", [pa.int8(), pa.int32()])
def test_indices_of_nothing_are_refused(tmp_path, index):
    """In a list below the null struct too: its slots are not the struct's."""
    inner = pa.DictionaryArray.from_arrays(pa.array([0, 5], index), pa.array(["a"]), safe=False)
    struct = pa.StructArray.from_arrays([inner], names=["v"], mask=pa.array([True, False]))
    lists = pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 2, 2], inner)], names=["v"],
                                       mask=pa.array([False, True]))
    for column in (struct, lists):
        write(tmp_path / "in.arrow", [pa.record_batch({"c": column})])
        assert "dictionary index out of range" in run("arrow", "verify", tmp_path / "in.arrow", check=2).stderr


def test_a_null_entry_is_no_value_of_a_required_column(tmp_path):
    for used, code in (([0, 0], 0), ([0, 1], 2)):
        values = pa.DictionaryArray.from_arrays(pa.array(used, pa.int32()), pa.array(["a", None]))
        schema = pa.schema([pa.field("c", values.type, False)])
        write(tmp_path / "in.arrow", [pa.record_batch([values], schema=schema)])
        done = run("convert", "--force", tmp_path / "in.arrow", tmp_path / "out.arrows", check=code)
        assert code == 0 or "column c: null in a column that has none (slot 1)" in done.stderr
    assert read(tmp_path / "out.arrows")[0].to_pylist() == [{"c": "a"}, {"c": "a"}]
