# SPDX-License-Identifier: Apache-2.0
"""The other programs of B3 and B4, one a process, in the words and with the answers of bench_parquet:

peers.py PROGRAM write IN.arrow OUT.parquet ROW_GROUP_ROWS REPEATS
peers.py PROGRAM scan IN.parquet REPEATS [COLUMN...]
peers.py PROGRAM lookup IN.parquet COLUMN VALUE...
peers.py PROGRAM copy IN.parquet OUT.parquet         its own file of the same rows in the same order
peers.py any check IN.arrow OUT.parquet              rows, and two columns value for value

One thread each; zstd level 1, dictionaries, statistics, page index where there is one. Written is from
Arrow, or the program's own tables, in memory; read is to Arrow in memory, batch by batch where that is
possible. A look-up opens the file anew and gives all columns.
"""
import json
import os
import pathlib
import resource
import sys
import time

os.environ.update(POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1", TOKIO_WORKER_THREADS="1",
                  RAYON_NUM_THREADS="1")
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
import pyarrow.ipc  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

BATCH_ROWS = 65536
GROUP_ROWS = 122880


class PyArrow:
    def load(self, table):
        self.table = table

    def write(self, path, row_group_rows):
        pq.write_table(self.table, path, row_group_size=row_group_rows, compression="zstd", compression_level=1,
                       use_dictionary=True, write_statistics=True, write_page_index=True)

    def scan(self, path, columns):
        with pq.ParquetFile(path) as file:
            return sum(batch.num_rows for batch in file.iter_batches(
                BATCH_ROWS, columns=columns or None, use_threads=False))

    def lookup(self, path, column, value):
        import pyarrow.dataset as ds
        return ds.dataset(path).to_table(filter=pc.field(column) == value, use_threads=False).num_rows

    def copy(self, source, target):
        with pq.ParquetFile(source) as file, pq.ParquetWriter(
                target, file.schema_arrow, compression="zstd", compression_level=1,
                write_page_index=True) as out:
            for group in range(file.num_row_groups):
                out.write_table(file.read_row_group(group, use_threads=False), row_group_size=GROUP_ROWS)


class Polars:
    """Its maps are lists of structs."""

    def __init__(self):
        import polars
        self.pl = polars

    def load(self, table):
        self.frame = self.pl.from_arrow(table)

    def sink(self, lazy, path, row_group_rows):
        lazy.sink_parquet(path, compression="zstd", compression_level=1, statistics="full",
                          row_group_size=row_group_rows)

    def write(self, path, row_group_rows):
        self.sink(self.frame.lazy(), path, row_group_rows)

    def scan(self, path, columns):
        return self.pl.read_parquet(path, columns=columns or None).height

    def lookup(self, path, column, value):
        return self.pl.scan_parquet(path).filter(self.pl.col(column) == value).collect().height

    def copy(self, source, target):
        self.sink(self.pl.scan_parquet(source), target, GROUP_ROWS)


class DuckDB:
    """Writes from a table of its own: from Arrow it takes three times as long where there are maps."""

    def __init__(self):
        import duckdb
        self.db = duckdb.connect()
        self.db.execute("SET threads = 1; SET preserve_insertion_order = true")

    def load(self, table):
        self.db.register("given", table)
        self.db.execute("CREATE TABLE own AS FROM given")
        self.db.unregister("given")

    def save(self, source, path, row_group_rows):
        self.db.execute(f"COPY ({source}) TO '{path}' (FORMAT parquet, CODEC 'zstd', COMPRESSION_LEVEL 1, "
                        f"ROW_GROUP_SIZE {row_group_rows})")

    def write(self, path, row_group_rows):
        self.save("FROM own", path, row_group_rows)

    def scan(self, path, columns):
        words = ", ".join(columns) or "*"
        reader = self.db.sql(f"SELECT {words} FROM read_parquet('{path}')").to_arrow_reader(BATCH_ROWS)
        return sum(batch.num_rows for batch in reader)

    def lookup(self, path, column, value):
        return self.db.execute(f"SELECT * FROM read_parquet('{path}') WHERE {column} = ?",
                               [value]).to_arrow_table().num_rows

    def copy(self, source, target):
        self.save(f"FROM read_parquet('{source}')", target, GROUP_ROWS)


class DataFusion:
    """arrow-rs, as DataFusion drives it."""

    def __init__(self):
        import datafusion
        self.lib = datafusion
        config = datafusion.SessionConfig().with_target_partitions(1)
        for name, value in (("pushdown_filters", "true"), ("reorder_filters", "true"),
                            ("allow_single_file_parallelism", "false"), ("bloom_filter_on_read", "true")):
            config = config.set(f"datafusion.execution.parquet.{name}", value)
        self.context = datafusion.SessionContext(config)

    def load(self, table):
        self.context.register_record_batches("given", [table.to_batches()])

    def save(self, frame, path, row_group_rows):
        frame.write_parquet_with_options(path, self.lib.ParquetWriterOptions(
            compression="zstd(1)", dictionary_enabled=True, statistics_enabled="page",
            max_row_group_size=row_group_rows, allow_single_file_parallelism=False,
            maximum_parallel_row_group_writers=1))

    def write(self, path, row_group_rows):
        self.save(self.context.table("given"), path, row_group_rows)

    def frame(self, path):
        return self.lib.SessionContext.read_parquet(self.context, path)

    def scan(self, path, columns):
        frame = self.frame(path)
        frame = frame.select(*columns) if columns else frame
        return sum(batch.to_pyarrow().num_rows for batch in frame.execute_stream())

    def lookup(self, path, column, value):
        found = self.frame(path).filter(self.lib.col(column) == self.lib.lit(value))
        return sum(batch.to_pyarrow().num_rows for batch in found.execute_stream())

    def copy(self, source, target):
        self.save(self.frame(source), target, GROUP_ROWS)


PROGRAMS = {"pyarrow": PyArrow, "polars": Polars, "duckdb": DuckDB, "datafusion": DataFusion}


# ---- time and memory ----

def status_mib(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":")) / 1024


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(steps, before=lambda: None):
    """Runs each step, the first to warm up; a step gives a number of rows. The peak counts from here on."""
    pathlib.Path("/proc/self/clear_refs").write_text("5\n")
    rss, wall, cpu, rows = status_mib("VmRSS"), [], [], []
    for step in steps:
        before()
        began, began_cpu = time.monotonic(), cpu_seconds()
        rows.append(step())
        wall.append(time.monotonic() - began)
        cpu.append(cpu_seconds() - began_cpu)
    return rows, {"first_seconds": wall[0], "seconds": wall[1:], "cpu_seconds": cpu[1:],
                  "rss_before_mib": rss, "peak_over_mib": status_mib("VmHWM") - rss}


# ---- what is asked ----

def read_arrow(path):
    with pa.OSFile(path) as file:
        return pa.ipc.open_file(file).read_all()


def write(program, source, target, row_group_rows, repeats):
    table = read_arrow(source)
    program.load(table)
    if not isinstance(program, (PyArrow, DataFusion)):  # they hold the table, the others their own copy
        del table
    _, answer = measure([lambda: program.write(target, int(row_group_rows))] * (int(repeats) + 1),
                        lambda: pathlib.Path(target).unlink(missing_ok=True))
    return {"file_bytes": os.path.getsize(target), **answer}


def scan(program, path, repeats, *columns):
    rows, answer = measure([lambda: program.scan(path, list(columns))] * (int(repeats) + 1))
    return {"rows": rows[-1], "file_bytes": os.path.getsize(path), **answer}


def lookup(program, path, column, *values):
    rows, answer = measure([lambda v=v: program.lookup(path, column, v) for v in values])
    return {"rows": sum(rows), **answer}


def copy(program, source, target):
    program.copy(source, target)
    return {"file_bytes": os.path.getsize(target)}


def check(_, source, target):
    """The footer's facts, and equality of the first and the last column that are not nested."""
    given = read_arrow(source)
    flat = [field.name for field in given.schema if not pa.types.is_nested(field.type)]
    names = [flat[0], flat[-1]]
    found = pq.read_table(target, columns=names, page_checksum_verification=True)
    for name in names:
        wanted = given[name].combine_chunks()
        if not found[name].cast(wanted.type).combine_chunks().equals(wanted):
            sys.exit(f"{target}: {name} has other values than {source}")
    footer = pq.read_metadata(target)
    chunk = footer.row_group(0).column(0)
    return {"rows": footer.num_rows, "row_groups": footer.num_row_groups, "created_by": footer.created_by,
            "compression": chunk.compression, "has_index": chunk.has_column_index and chunk.has_offset_index,
            "has_statistics": chunk.is_stats_set}


def main():
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    name, what, *words = sys.argv[1:]
    program = None if name == "any" else PROGRAMS[name]()
    asked = {"write": write, "scan": scan, "lookup": lookup, "copy": copy, "check": check}[what]
    print(json.dumps(asked(program, *words)))


if __name__ == "__main__":
    main()
