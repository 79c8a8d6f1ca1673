# SPDX-License-Identifier: Apache-2.0
"""Files of unusual measures, by others: read, converted and verified, or refused by name, in bounded memory."""
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

BOUND_KB = 4 << 20


def run(*words, check=0):
    bounded = ["bash", "-c", f'ulimit -v {BOUND_KB}; exec "$@"', "x", str(sluice.BINARY), *map(str, words)]
    done = subprocess.run(bounded, capture_output=True, text=True)
    assert done.returncode == check, (words, done.returncode, done.stderr[:500])
    return done


def test_no_columns_and_no_rows(tmp_path):
    pq.write_table(pa.table({}), tmp_path / "columns.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "rows.parquet")
    for name, columns in (("columns", 0), ("rows", 1)):
        source = tmp_path / f"{name}.parquet"
        assert f"and {columns} columns are whole" in run("parquet", "verify", source).stdout
        assert run("parquet", "cat", source).stdout == ""
        run("convert", source, tmp_path / f"{name}.arrow")
        assert pa.ipc.open_file(tmp_path / f"{name}.arrow").schema.names == pq.read_schema(source).names
    run("convert", tmp_path / "rows.arrow", tmp_path / "back.parquet")
    assert pq.read_table(tmp_path / "back.parquet").num_rows == 0
    (tmp_path / "empty.ndjson").write_bytes(b"")
    for source in ("columns.arrow", "empty.ndjson"):
        assert "Parquet: a file needs a column" in run("convert", tmp_path / source, tmp_path / "none.parquet", check=2).stderr
    empty = pa.table({"s": pa.array([{"t": {}}], pa.struct([("t", pa.struct([]))]))})
    with pa.OSFile(str(tmp_path / "struct.arrow"), "wb") as file, pa.ipc.new_file(file, empty.schema) as writer:
        writer.write_table(empty)
    said = run("convert", tmp_path / "struct.arrow", tmp_path / "none.parquet", check=2).stderr
    assert "Parquet: column t: a struct needs a member" in said and not (tmp_path / "none.parquet").exists()


def test_ten_thousand_columns(tmp_path):
    rows = pa.table({f"column_{i}": pa.array([i, None, i + 1]) for i in range(10000)})
    pq.write_table(rows, tmp_path / "in.parquet")
    run("parquet", "verify", tmp_path / "in.parquet")
    assert json.loads(run("parquet", "head", tmp_path / "in.parquet").stdout.splitlines()[1])["column_9999"] is None
    run("convert", tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(rows)


def seconds(*words):
    began = time.process_time() + sum(os.times()[2:4])
    run(*words)
    return time.process_time() + sum(os.times()[2:4]) - began


def test_time_goes_with_the_number_of_columns(tmp_path):
    """Four times the columns take about four times as long, to verify, to list their pages, and to name
    most of them in any order."""
    took = {"verify": {}, "pages": {}, "columns": {}}
    for columns in (10000, 40000):
        names = [f"c{i}" for i in range(columns)]
        path = tmp_path / f"{columns}.parquet"
        pq.write_table(pa.table({n: pa.array([1], pa.int8()) for n in names}), path, write_statistics=False,
                       store_schema=False, compression="none")
        wanted = random.Random(1).sample(names, columns // 2)
        took["verify"][columns] = min(seconds("parquet", "verify", path) for _ in range(3))
        took["pages"][columns] = min(seconds("parquet", "pages", path) for _ in range(3))
        took["columns"][columns] = min(seconds("parquet", "cat", "--columns", ",".join(wanted[:18000]), path) for _ in range(3))
    for what, times in took.items():
        assert times[40000] < 7 * times[10000] + 0.1, (what, times)


def test_a_hundred_thousand_row_groups(tmp_path):
    """One row each: time and memory go with their number, and a look-up skips them all but one."""
    rows = pa.table({"a": list(range(100000)), "b": [str(i) for i in range(100000)]})
    pq.write_table(rows, tmp_path / "in.parquet", row_group_size=1)
    run("parquet", "verify", tmp_path / "in.parquet")
    assert run("parquet", "cat", "--where", "a = 99999", tmp_path / "in.parquet").stdout == '{"a":99999,"b":"99999"}\n'
    run("convert", tmp_path / "in.parquet", tmp_path / "one.parquet")
    assert pq.read_table(tmp_path / "one.parquet").equals(rows) and pq.read_metadata(tmp_path / "one.parquet").num_row_groups == 1
    run("convert", "--row-group-rows", 1, tmp_path / "in.parquet", tmp_path / "many.parquet")
    assert pq.read_metadata(tmp_path / "many.parquet").num_row_groups == 100000
    assert pq.read_table(tmp_path / "many.parquet").equals(rows)


@pytest.mark.parametrize("bytes_of_text, code", [(1 << 28, 0), (1 << 30, 5)] if os.environ.get("SLUICE_DEEP") else [(1 << 28, 0)])
def test_a_text_of_many_mebibytes(tmp_path, bytes_of_text, code):
    """Up to the bound of a page; a larger one is refused by column, row group and byte."""
    rows = pa.table({"t": pa.array(["x" * bytes_of_text, "small"], pa.large_string())})
    pq.write_table(rows, tmp_path / "in.parquet", use_dictionary=False, compression="zstd")
    del rows
    said = run("parquet", "verify", tmp_path / "in.parquet", check=code).stderr
    assert code == 0 or "column t, row group 0, byte 4: a page of" in said
    run("convert", tmp_path / "in.parquet", tmp_path / "out.parquet", check=code)
    if code == 0:
        lengths = pa.compute.binary_length(pq.read_table(tmp_path / "out.parquet")["t"]).to_pylist()
        assert lengths == [bytes_of_text, 5]
