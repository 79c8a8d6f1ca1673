# SPDX-License-Identifier: Apache-2.0
"""Random schemas of every type through `sluice convert`: what others write is read by us, what we write by them."""
import pathlib
import random
import sys

import polars
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from test_convert import convert
from test_parquet_reader import CODECS, IS_DEEP, LEAVES, PROPERTY, nested, random_table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

EVERY_LEAF = LEAVES + [
    pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(),
    pa.decimal128(4, 1), pa.decimal128(15, 2), pa.decimal128(38, 10), pa.decimal256(50, 3),
    pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.timestamp("ms"), pa.timestamp("ns", "UTC")]
EVERY = PROPERTY if IS_DEEP else settings(PROPERTY, max_examples=70)
columns = st.lists(st.tuples(nested(EVERY_LEAF, 8), st.booleans()), min_size=1, max_size=5)


def cells(table):
    """Nanoseconds as numbers: Python's own times have none."""
    def plain(value):
        if isinstance(value, list):
            return [plain(v) for v in value]
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        if isinstance(value, tuple):
            return tuple(plain(v) for v in value)
        return getattr(value, "value", value)
    return [[plain(v) for v in column.to_pylist()] for column in table.columns]


@EVERY
@given(columns=columns, rows=st.integers(0, 60), seed=st.integers(0, 2 ** 32))
def test_parquet_of_pyarrow_becomes_arrow(tmp_path_factory, columns, rows, seed):
    folder, rng, table = tmp_path_factory.getbasetemp(), random.Random(seed), random_table(columns, rows, seed)
    pq.write_table(table, folder / "p.parquet", data_page_version=rng.choice(["1.0", "2.0"]),
                   use_dictionary=rng.random() < 0.5, data_page_size=rng.choice([20, 10000]), compression=rng.choice(CODECS),
                   row_group_size=rng.choice([7, 1000]), store_decimal_as_integer=rng.random() < 0.5)
    convert(folder / "p.parquet", folder / "p.arrow", "--force")
    got = pa.ipc.open_file(folder / "p.arrow").read_all()
    got.validate(full=True)
    assert cells(got) == cells(table)
    assert [str(f.type) for f in got.schema] == [str(f.type) for f in table.schema]


@EVERY
@given(columns=columns, rows=st.integers(0, 60), seed=st.integers(0, 2 ** 32))
def test_arrow_of_pyarrow_becomes_parquet(tmp_path_factory, columns, rows, seed):
    folder, rng, table = tmp_path_factory.getbasetemp(), random.Random(seed), random_table(columns, rows, seed)
    with pa.ipc.new_file(folder / "a.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=max(1, rows // 2))
    convert(folder / "a.arrow", folder / "a.parquet", "--force", "--row-group-rows", rng.choice([7, 1000]))
    assert cells(pq.read_table(folder / "a.parquet")) == cells(table)
    convert(folder / "a.parquet", folder / "b.arrow", "--force")
    assert cells(pa.ipc.open_file(folder / "b.arrow").read_all()) == cells(table)


@EVERY
@given(names=st.lists(st.sampled_from(EVERY_LEAF), min_size=1, max_size=6), rows=st.integers(0, 60),
       seed=st.integers(0, 2 ** 32))
def test_parquet_of_ours_is_read_by_polars(tmp_path_factory, names, rows, seed):
    """Flat: nulls within nested columns are compared with pyarrow above."""
    known = [t for t in names if not pa.types.is_decimal256(t) and not pa.types.is_float16(t)]
    folder, table = tmp_path_factory.getbasetemp(), random_table([(t, True) for t in known], rows, seed)
    with pa.ipc.new_file(folder / "f.arrow", table.schema) as out:
        out.write_table(table)
    if known:
        convert(folder / "f.arrow", folder / "f.parquet", "--force")
        theirs = polars.read_parquet(folder / "f.parquet").to_arrow().cast(table.schema)
        assert cells(theirs) == cells(table)
