# SPDX-License-Identifier: Apache-2.0
"""What docs/convert.md says that a conversion keeps, changes and refuses."""
import datetime
import math
import pathlib
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

NAN = float("nan")


def convert(*words, check=0):
    done = subprocess.run([sluice.BINARY, "convert", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == check, done.stderr
    return done


def same(ours, expected):
    return len(ours) == len(expected) and all(
        a == b or isinstance(a, float) and math.isnan(a) and math.isnan(b) for a, b in zip(ours, expected))


TEXT = [  # lines of CSV, lines of NDJSON or None, the type, the values
    (["true", "false"], ["true", "false"], pa.bool_(), [True, False]),
    (["1", "-9223372036854775808"], ["1", "-9223372036854775808"], pa.int64(), [1, -2**63]),
    (["1", "18446744073709551615"], ["1", "18446744073709551615"], pa.uint64(), [1, 2**64 - 1]),
    (["1", "1.5", "NaN", "-Infinity"], ["1", "1.5", '"NaN"', '"-Infinity"'], pa.float64(), [1, 1.5, NAN, -math.inf]),
    (["9007199254740993", "1.5"], ["9007199254740993", "1.5"], pa.string(), ["9007199254740993", "1.5"]),
    (["3.14159265358979323846"], ["3.14159265358979323846"], pa.string(), ["3.14159265358979323846"]),
    (["-1", "18446744073709551615"], ["-1", "18446744073709551615"], pa.string(), ["-1", "18446744073709551615"]),
    (["007"], None, pa.string(), ["007"]),
    (["2024-02-29"], None, pa.date32(), [datetime.date(2024, 2, 29)]),
    (["2024-02-29T23:59:59.25"], None, pa.timestamp("us"), [datetime.datetime(2024, 2, 29, 23, 59, 59, 250000)]),
    (["1970-01-01T01:00:00+01:00"], None, pa.timestamp("us", "UTC"), [datetime.datetime.fromtimestamp(0, datetime.timezone.utc)]),
    (["", '""', "x"], None, pa.string(), [None, "", "x"]),
    (None, ["[1]", "[]"], pa.list_(pa.int64()), [[1], []]),
    (None, ['{"b":1}', "{}"], pa.struct([("b", pa.int64())]), [{"b": 1}, {"b": None}]),
    (None, ["1", '"x"', '{"k": [2]}'], pa.string(), ["1", "x", '{"k": [2]}']),
]


@pytest.mark.parametrize("given", TEXT, ids=lambda given: str((given[0] or given[1])[0]))
def test_types_of_text(tmp_path, given):
    csv, ndjson, kind, values = given
    lines = {"csv": csv and ["a", *csv], "ndjson": ndjson and [f'{{"a":{value}}}' for value in ndjson]}
    for ending in [ending for ending in lines if lines[ending]]:
        path = tmp_path / f"in.{ending}"
        path.write_text("".join(line + "\n" for line in lines[ending]))
        convert(path, tmp_path / f"{ending}.arrow")
        back = pa.ipc.open_file(tmp_path / f"{ending}.arrow").read_all()["a"]
        assert back.type == kind or pa.types.is_list(kind) and back.type.value_type == kind.value_type, ending
        assert same(back.to_pylist(), values), ending


def write(path, rows):
    with pa.ipc.new_file(path, rows.schema) as file:
        file.write_table(rows)


@pytest.mark.parametrize("at", ("top", "struct", "list"))
def test_two_columns_of_one_name(tmp_path, at):
    """JSON would lose one; CSV gives it another name when it is read."""
    twice = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    rows = {"top": pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"]),
            "struct": pa.table({"s": twice}),
            "list": pa.table({"l": pa.ListArray.from_arrays([0, 1, 2], twice)})}[at]
    write(tmp_path / "in.arrow", rows)
    for ending in ("ndjson", "avro"):
        done = convert(tmp_path / "in.arrow", tmp_path / f"out.{ending}", check=2)
        assert "two columns named a" in done.stderr and not (tmp_path / f"out.{ending}").exists()
    if at == "top":
        convert(tmp_path / "in.arrow", tmp_path / "out.csv")
        convert(tmp_path / "out.csv", tmp_path / "back.arrow")
        assert pa.ipc.open_file(tmp_path / "back.arrow").read_all().to_pydict() == {"a": [1, 2], "a_2": [3, 4]}
