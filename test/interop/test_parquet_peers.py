# SPDX-License-Identifier: Apache-2.0
"""What our files say of their values lets others skip some: they find the same rows as without our files."""
import functools
import math
import random
import sys

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from test_convert import convert
from test_parquet_filter import every_column, with_foreign

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "support"))

PREDICATES = 150
NAMES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "d5", "d15", "d38", "f32", "f64", "same", "text", "long",
         "word", "bytes", "fixed", "flag", "date", "local", "utc"]
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Many row groups, so that there is something to rule out, with Bloom filters and without."""
    folder = tmp_path_factory.mktemp("peers")
    table = with_foreign(every_column(9).select(["id", *NAMES]), "ns")
    with pa.ipc.new_file(folder / "in.arrow", table.schema) as out:
        out.write_table(table)
    blooms = [word for name in NAMES if name != "flag" for word in ("--bloom", name)]
    convert(folder / "in.arrow", folder / "plain.parquet", "--row-group-rows", 211)
    convert(folder / "in.arrow", folder / "bloom.parquet", "--row-group-rows", 211, *blooms)
    assert pq.read_metadata(folder / "plain.parquet").num_row_groups > 10
    return table, [folder / "plain.parquet", folder / "bloom.parquet"]


def predicates(table, seed):
    rng = random.Random(seed)
    for i in range(PREDICATES):
        name = NAMES[i % len(NAMES)]
        values = table[name].drop_null()
        value = values[rng.randrange(len(values))].as_py()
        if isinstance(value, float) and (rng.random() < 0.4 or math.isnan(value)):
            value = rng.choice([0.0, -0.0, math.inf, -math.inf, 0.25])
        if isinstance(value, str) and rng.random() < 0.3:
            value = rng.choice([value[:40], value + "x"])
        yield name, rng.choice(OPERATORS), value


@functools.cache
def connection():
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'")
    return con


def by_duckdb(source, name, op, value):
    """Floats by a cast of ours: a parameter of DuckDB is a decimal where it can be."""
    cast = {"f32": "::float", "f64": "::double", "same": "::double"}.get(name, "")
    con, from_ = connection(), f"'{source}'"
    if isinstance(source, pa.Table):  # a table of its own: what is given to Arrow's scan, Arrow compares
        from_ = "given_rows"
        if not con.execute("select 1 from duckdb_tables() where table_name = 'given_rows'").fetchall():
            con.register("given", source)
            con.execute("create table given_rows as select * from given")
    rows = con.execute(f'select id from {from_} where "{name}" {op} ?{cast} order by id', [value]).fetchall()
    return [row[0] for row in rows]


def by_polars(source, name, op, value):
    frame = polars.from_arrow(source).lazy() if isinstance(source, pa.Table) else polars.scan_parquet(source)
    column, literal = polars.col(name), polars.lit(value, dtype=frame.collect_schema()[name])
    found = {"=": column == literal, "!=": column != literal, "<": column < literal, "<=": column <= literal,
             ">": column > literal, ">=": column >= literal}[op]
    return sorted(frame.filter(found).select("id").collect()["id"].to_list())


def by_pyarrow(source, name, op, value):
    dataset = pa.dataset.dataset(source) if not isinstance(source, pa.Table) else pa.dataset.InMemoryDataset(source)
    column, literal = pa.dataset.field(name), pa.scalar(value, dataset.schema.field(name).type)
    found = {"=": column == literal, "!=": column != literal, "<": column < literal, "<=": column <= literal,
             ">": column > literal, ">=": column >= literal}[op]
    return sorted(dataset.to_table(columns=["id"], filter=found)["id"].to_pylist())


READERS = {"duckdb": by_duckdb, "polars": by_polars, "pyarrow": by_pyarrow}
# In memory or in a file of their own: what they compare in another way than they skip is theirs.
UNSUPPORTED = {"polars": ("fixed",)}
# DuckDB: NaN is above all numbers, but not where bounds are asked, which say nothing of it.
THEIRS = {("duckdb", "bloom.parquet"): ("bytes", "fixed")}  # asks filters for a blob's escaped text, in its own files too


@pytest.mark.parametrize("reader", READERS)
def test_the_same_rows_with_pruning(files, reader):
    table, paths = files
    ask, found_some = READERS[reader], 0
    for name, op, value in predicates(table, reader):
        if name in UNSUPPORTED.get(reader, ()) or (reader == "duckdb" and isinstance(value, float) and op in (">", ">=")):
            continue
        want = ask(table, name, op, value)
        for path in (p for p in paths if name not in THEIRS.get((reader, p.name), ())):
            assert ask(str(path), name, op, value) == want, (path.name, name, op, value)
        found_some += 0 < len(want) < table.num_rows
    assert found_some > PREDICATES / 3


def test_zeros_in_bloom_filters_are_found_by_either(tmp_path):
    for stored, asked in ((0.0, -0.0), (-0.0, 0.0)):
        table = pa.table({"id": [1, 2], "f": pa.array([stored, 3.5], pa.float64())})
        with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as out:
            out.write_table(table)
        convert(tmp_path / "in.arrow", tmp_path / "out.parquet", "--bloom", "f", "--force")
        for name, ask in READERS.items():
            assert ask(str(tmp_path / "out.parquet"), "f", "=", asked) == [1], name
