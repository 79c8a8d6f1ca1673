# SPDX-License-Identifier: Apache-2.0
"""sluice convert at its limits: what is as deep or as wide as allowed is read back by us from every format,
what is more is refused before anything is written."""
import subprocess
import sys
import pathlib
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

ENDINGS = ("avro", "arrow", "arrows", "ndjson", "csv", "parquet")
DEPTH_MAX, COLUMNS_MAX, LIMIT = 32, 16384, 5
SECONDS_MAX = 30  # of the slowest conversion of the widest file, with room for a busy machine


def run(*words):
    return subprocess.run([sluice.BINARY, *map(str, words)], capture_output=True, text=True)


def convert(*words):
    done = run("convert", *words)
    assert done.returncode == 0, done.stderr
    return done


def nested(levels, wrap):
    """A column `c` that lies so many levels deep, and its value."""
    kind, value = pa.int32(), 7
    for _ in range(levels - 1):
        kind, value = wrap(kind, value)
    return pa.table({"c": pa.array([value, None, value], kind)})


WRAPS = {"struct": lambda kind, value: (pa.struct([("s", kind)]), {"s": value}),
         "list": lambda kind, value: (pa.list_(kind), [value, value] if isinstance(value, int) else [value]),
         "map": lambda kind, value: (pa.map_(pa.int32(), kind), [(1, value)])}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("levels", (15, 20, 31, DEPTH_MAX))
def test_as_deep_as_allowed(tmp_path, wrap, levels):
    rows = nested(levels, WRAPS[wrap])
    with pa.ipc.new_file(tmp_path / "in.arrow", rows.schema) as file:
        file.write_table(rows)
    for ending in ENDINGS:
        convert(tmp_path / "in.arrow", tmp_path / f"out.{ending}")
        convert(tmp_path / f"out.{ending}", tmp_path / f"{ending}.arrow")
        back = pa.ipc.open_file(tmp_path / f"{ending}.arrow").read_all()
        if ending in ("avro", "arrow", "arrows", "parquet"):
            assert back.to_pylist() == rows.to_pylist(), ending
        else:
            assert back.num_rows == rows.num_rows, ending


@pytest.mark.parametrize("levels", (DEPTH_MAX + 1, 60))
def test_deeper_is_refused(tmp_path, levels):
    pq.write_table(nested(levels, WRAPS["struct"]), tmp_path / "in.parquet")
    for ending in ENDINGS:
        done = run("convert", tmp_path / "in.parquet", tmp_path / f"out.{ending}")
        assert done.returncode == LIMIT, done.stderr
        assert f"column c: nested deeper than {DEPTH_MAX} levels" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_ten_thousand_columns(tmp_path):
    count = 10000
    pq.write_table(pa.table({f"column{i}": pa.array([i, None, i + 1], pa.int32()) for i in range(count)}),
                   tmp_path / "in.parquet")
    for ending in ENDINGS:
        began = time.monotonic()
        convert(tmp_path / "in.parquet", tmp_path / f"out.{ending}")
        convert(tmp_path / f"out.{ending}", tmp_path / f"{ending}.parquet")
        assert time.monotonic() - began < SECONDS_MAX, ending
        back = pq.read_table(tmp_path / f"{ending}.parquet")
        assert back.num_columns == count
        assert back[f"column{count - 1}"].to_pylist() == [count - 1, None, count], ending


def test_more_columns_are_refused(tmp_path):
    names = [f"c{i}" for i in range(COLUMNS_MAX + 1)]
    pq.write_table(pa.table({name: pa.array([1], pa.int8()) for name in names}), tmp_path / "in.parquet")
    for ending in ENDINGS[:-1]:
        done = run("convert", tmp_path / "in.parquet", tmp_path / f"out.{ending}")
        assert done.returncode == LIMIT and f"no more than {COLUMNS_MAX}" in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_names_as_long_as_allowed(tmp_path, ending):
    (tmp_path / "in.csv").write_text("b" * 4096 + ",c\n1,2\n")
    convert(tmp_path / "in.csv", tmp_path / f"out.{ending}")
    convert(tmp_path / f"out.{ending}", tmp_path / "back.arrow")
    assert pa.ipc.open_file(tmp_path / "back.arrow").read_all().to_pylist() == [{"b" * 4096: 1, "c": 2}]


def test_longer_names_are_refused(tmp_path):
    table = pa.table({"b" * 4097: [1]})
    pq.write_table(table, tmp_path / "in.parquet")
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as file:
        file.write_table(table)
    (tmp_path / "in.csv").write_text("b" * 4097 + "\n1\n")
    for name in ("in.parquet", "in.arrow", "in.csv"):
        done = run("convert", tmp_path / name, tmp_path / "out.ndjson")
        assert done.returncode == LIMIT and "4096" in done.stderr.replace(",", ""), (name, done.stderr)


def write(path, rows):
    with pa.ipc.new_file(path, rows.schema) as file:
        file.write_table(rows)


@pytest.mark.parametrize("ending", ("avro", "csv", "ndjson"))
def test_long_rows(tmp_path, ending):
    """What is written is read again: a row of 250 MiB is, one of 257 MiB is not."""
    rows = pa.table({"a": [1, 2], "s": ["short", "x" * (250 << 20)]})
    write(tmp_path / "in.arrow", rows)
    convert(tmp_path / "in.arrow", tmp_path / f"out.{ending}")
    convert(tmp_path / f"out.{ending}", tmp_path / "back.arrow")
    assert pa.ipc.open_file(tmp_path / "back.arrow").read_all().equals(rows)
    write(tmp_path / "in.arrow", pa.table({"a": [1, 2], "s": ["short", "x" * (257 << 20)]}))
    done = run("convert", tmp_path / "in.arrow", tmp_path / f"more.{ending}")
    assert done.returncode == LIMIT and "row 2" in done.stderr and not (tmp_path / f"more.{ending}").exists(), done.stderr
    assert ending == "avro" or "column s" in done.stderr


MANY = 12_000_000


@pytest.mark.parametrize("values", (pa.array([7], pa.int64()).take(pa.array([0] * MANY)), pa.nulls(MANY, pa.int64())),
                         ids=("longs", "nulls"))
def test_long_lists(tmp_path, values):
    rows = pa.table({"l": pa.ListArray.from_arrays([0, MANY], values)})
    write(tmp_path / "in.arrow", rows)
    convert(tmp_path / "in.arrow", tmp_path / "out.avro")
    convert(tmp_path / "out.avro", tmp_path / "back.arrow")
    assert pa.ipc.open_file(tmp_path / "back.arrow").read_all()["l"].combine_chunks().values.equals(values)


def test_values_without_bytes(tmp_path):
    """Nulls of nothing but nulls take no bytes in Avro: rows of them are many blocks, in a row they are limited."""
    write(tmp_path / "in.arrow", pa.table({"n": pa.nulls(300_000)}))
    convert(tmp_path / "in.arrow", tmp_path / "out.avro")
    convert(tmp_path / "out.avro", tmp_path / "back.arrow")
    assert pa.ipc.open_file(tmp_path / "back.arrow").read_all().num_rows == 300_000
    for count in (100_000, 101_000):
        write(tmp_path / "in.arrow", pa.table({"l": pa.ListArray.from_arrays([0, count], pa.nulls(count))}))
        done = run("convert", "--force", tmp_path / "in.arrow", tmp_path / "list.avro")
        assert done.returncode == (0 if count == 100_000 else LIMIT), done.stderr
        if count == 100_000:
            convert("--force", tmp_path / "list.avro", tmp_path / "back.arrow")
    assert "row 1" in done.stderr and "101002 values" in done.stderr
