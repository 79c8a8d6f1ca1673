# SPDX-License-Identifier: Apache-2.0
"""Each program of examples/: what it writes is read by others, what it reads others wrote; and the README's words."""
import pathlib
import re
import subprocess
import sys

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def run(build):
    def call(name, *words, check=0):
        done = subprocess.run([build / "examples" / name, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == check, done.stderr
        return done.stdout if check == 0 else done.stderr

    return call


def test_arrow_write(run, tmp_path):
    run("arrow_write", tmp_path / "out.arrow")
    file = pa.ipc.open_file(tmp_path / "out.arrow")
    assert file.num_record_batches == 2
    assert file.read_all().to_pydict() == {
        "square": [i * i for i in range(20)],
        "name": [f"the square of {i}" for i in range(20)]}
    assert "exists" in run("arrow_write", tmp_path / "out.arrow", check=1)


def test_arrow_read(run, tmp_path):
    rows = pa.table({"n": pa.array([1, None, 3], pa.int8()), "t": pa.array([None, None, 0], pa.timestamp("ms", "UTC"))})
    for make in (pa.ipc.new_stream, pa.ipc.new_file):
        with make(tmp_path / "in", rows.schema) as writer:
            writer.write_table(rows, max_chunksize=2)
        assert run("arrow_read", tmp_path / "in") == \
            "n: int8\nt: timestamp[ms, UTC]\n2 rows, nulls: 1 2\n1 rows, nulls: 0 0\n"
    (tmp_path / "in").write_bytes((tmp_path / "in").read_bytes()[:-9])
    assert "arrow: " in run("arrow_read", tmp_path / "in", check=1)


def test_parquet_write(run, tmp_path):
    run("parquet_write", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {
        "id": [0, 1, 2], "name": ["sensor"] * 3, "readings": [[], [0.0], [0.0, 0.5]]}


def test_parquet_columns(run, tmp_path):
    rows = pa.table({"a": [1, None, 3], "b": ["x", "é", None], "c": [0.5, 1.0, None], "d": [[1], None, []]})
    pq.write_table(rows, tmp_path / "in.parquet", row_group_size=2)
    assert run("parquet_columns", tmp_path / "in.parquet", "b", "a") == "1\tx\t\n?\té\t\n3\t?\t\n"
    assert run("parquet_columns", tmp_path / "in.parquet", "c", "d") == "?\t?\t\n" * 3
    assert "nothing" in run("parquet_columns", tmp_path / "in.parquet", "nothing", check=1)
    assert "usage" in run("parquet_columns", tmp_path / "in.parquet", check=1)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro_read(run, tmp_path, codec):
    schema = {"type": "record", "name": "r", "fields": [
        {"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}, {"name": "x", "type": "double"},
        {"name": "ok", "type": "boolean"}, {"name": "l", "type": {"type": "array", "items": "int"}}]}
    with open(tmp_path / "in.avro", "wb") as out:
        fastavro.writer(out, schema, [{"n": -1, "s": None, "x": 0.25, "ok": True, "l": []},
                                      {"n": 2**62, "s": "é", "x": 1e300, "ok": False, "l": [1, 2]}], codec=codec)
    assert run("avro_read", tmp_path / "in.avro") == \
        f"n=-1 s=(0) x=0.25 ok=1 l=(0)\nn={2**62} s=é x=1e+300 ok=0 l=(2)\n"


def test_each_is_short():
    assert all(len(path.read_text().splitlines()) < 60 for path in EXAMPLES.glob("*.c"))


def test_the_readme(run, build, tmp_path):
    """Its Python, over what its shell makes; and all programs are in its table."""
    text = (EXAMPLES / "README.md").read_text()
    assert {name.split()[0] for name in re.findall(r"^\| `([^`]+)` \|", text, re.M)} == {p.stem for p in EXAMPLES.glob("*.c")}
    for words in re.findall(r"^build/dev/examples/(.+)$", text, re.M):
        name, *arguments = words.split()
        done = subprocess.run([build / "examples" / name, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "0\tsensor\t\n1\tsensor\t\n2\tsensor\t\n"
    program = re.search(r"```python\n(.*?)```", text, re.S).group(1).replace("build/dev", str(build))
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and '["sensor","sensor","sensor"]' in done.stdout, done
