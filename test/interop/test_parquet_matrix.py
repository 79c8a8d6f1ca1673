# SPDX-License-Identifier: Apache-2.0
"""Who reads what of Parquet, cell by cell: docs/parquet.md is made here.

Every type in every nesting, with no, some and nothing but nulls, goes into files of every encoding, codec and
page version, written by us for others and by others for us. What a reader or writer cannot do stands in THEIRS
by name; every other cell must be equal, and what stands there must still be so."""
import collections
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import uuid

import chdb
import datafusion
import duckdb
import polars
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import columns  # noqa: E402
import parquet_java  # noqa: E402
import sluice  # noqa: E402

PAGE = sluice.TOP / "docs/parquet.md"
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "date32", "time32[ms]", "time64[us]",
        "time64[ns]", "decimal(9, 2)", "decimal(18, 4)", *(t for t in columns.types() if t.startswith("timestamp")))
FLOATS, BYTES = ("float32", "float64"), ("utf8", "binary")
FIXED = ("fixed(5)", "uuid", "float16", "decimal(38, 10)", "decimal(76, 5)")
ENCODINGS = {  # as `sluice convert --encoding` names them; the types that have it; the format's name
    "auto": (tuple(columns.types()), "RLE_DICTIONARY, else PLAIN"),
    "plain": (tuple(columns.types()), "PLAIN"),
    "smallest": (tuple(columns.types()), "RLE_DICTIONARY, else the smallest"),
    "rle": (("bool",), "RLE"),
    "delta": (INTS, "DELTA_BINARY_PACKED"),
    "delta-length": (BYTES, "DELTA_LENGTH_BYTE_ARRAY"),
    "delta-bytes": (BYTES + FIXED, "DELTA_BYTE_ARRAY"),
    "byte-stream-split": (INTS + FLOATS + FIXED, "BYTE_STREAM_SPLIT"),
}
CODECS = ("none", "snappy", "gzip", "zstd", "lz4")
VERSIONS = (1, 2)
PAIRS = [(codec, version) for codec in CODECS for version in VERSIONS]


def pairs_of(encoding):
    """A page is compressed after it is encoded: every pair with one encoding, those of two codecs with all others."""
    return [(codec, version) for codec, version in PAIRS
            if version == 1 or codec in ("none", "zstd") or encoding == "auto"]


# ---- readers ----

def quoted(names):
    return ", ".join('"' + n + '"' for n in names)


def read_pyarrow(path, names):
    return pq.ParquetFile(path, page_checksum_verification=True).read(columns=names)


def read_duckdb(path, names):
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'; SET threads=1")
    return con.execute(f"SELECT {quoted(names)} FROM read_parquet('{path}')").to_arrow_table()


def read_polars(path, names):
    return polars.read_parquet(path, columns=names).to_arrow()


def one_thread():
    return datafusion.SessionContext(datafusion.SessionConfig({"datafusion.execution.target_partitions": "1"}))


def read_datafusion(path, names):
    return one_thread().read_parquet(path).select(*(datafusion.col('"' + n + '"') for n in names)).to_arrow_table()


def read_clickhouse(path, names):
    stream = chdb.query(f"SELECT {quoted(names)} FROM file('{path}', Parquet) SETTINGS session_timezone='UTC', "
                        "output_format_arrow_string_as_string=0", "ArrowStream").bytes()
    return pa.ipc.open_stream(stream).read_all()


READERS = {"pyarrow": read_pyarrow, "DuckDB": read_duckdb, "Polars": read_polars, "DataFusion": read_datafusion,
           "ClickHouse": read_clickhouse, "parquet-java": parquet_java.read}

# (reader, type, encoding) -> what it does instead; None stands for all.
THEIRS = {
    ("DuckDB", "decimal(76, 5)", None): "gives doubles: its decimals end at 38 digits",
    ("DuckDB", "time64[ns]", None): "gives microseconds",
    ("DuckDB", "timestamp[ns, UTC]", None): "gives microseconds",
    ("Polars", "decimal(76, 5)", None): "not implemented: Decimal128 from fixed bytes of 32",
    **{("ClickHouse", kind, None): "gives instants" for kind in columns.types()
       if kind.startswith("time") and "UTC" not in kind},
    **{("DuckDB", kind, "byte-stream-split"): "only for FLOAT and DOUBLE" for kind in INTS + FIXED},
    **{("Polars", kind, encoding): "not yet supported for fixed bytes" for kind in FIXED
       for encoding in ("delta-bytes", "byte-stream-split") if (kind, encoding) != ("float16", "byte-stream-split")},
}


def their_reason(reader, name, encoding):
    return THEIRS.get((reader, name, None)) or THEIRS.get((reader, name, encoding))


def uuids(value):
    """DuckDB gives UUIDs as text."""
    if isinstance(value, list):
        return [uuids(v) for v in value]
    if isinstance(value, dict):
        return {k: uuids(v) for k, v in value.items()}
    return uuid.UUID(value).bytes if isinstance(value, str) and len(value) == 36 else value


def as_bytes(value):
    if isinstance(value, list):
        return [as_bytes(v) for v in value]
    if isinstance(value, dict):
        return {k: as_bytes(v) for k, v in value.items()}
    return value.encode() if isinstance(value, str) else value


def in_clickhouse(nesting, values):
    """What rows of that nesting are there, where texts are bytes, and lists, maps and structs are never null."""
    nothing = {"flat": None, "struct": {"x": None, "n": None}}.get(nesting, [])
    return [as_bytes(nothing if v is None else v) if not isinstance(v, tuple) else v for v in values]


NEVER_NULL = "its texts are bytes; a list or map that is null is empty there, of a struct that is null all members are"


def is_same(program, name, got, want):
    kind, nesting, _ = name.split("/")
    values = got if isinstance(got, list) else columns.canonical(got)
    if program == "ClickHouse":
        values, want = in_clickhouse(nesting, values), in_clickhouse(nesting, want)
    return (uuids(values) if program == "DuckDB" and kind == "uuid" else values) == want


def read_cells(reader, path, want):
    """Column -> None where it is equal, else what is wrong."""
    names, cells = list(want), {}
    try:
        table = READERS[reader](path, names)
    except BaseException:  # Polars panics
        table = None
    for name in names:
        try:
            part = table if table is not None else READERS[reader](path, [name])
            is_good = is_same(reader, name, part[name], want[name])
            cells[name] = None if is_good else f"other values ({getattr(part[name], 'type', '')})"
        except BaseException as error:
            cells[name] = f"{error}".splitlines()[0][:160]
    return cells


# ---- what we write ----

@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Encoding -> (Arrow file, column -> values)."""
    folder, made = tmp_path_factory.mktemp("matrix"), {}
    for encoding, (names, _) in ENCODINGS.items():
        table = columns.table_of(names)
        with pa.OSFile(str(folder / f"{encoding}.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        made[encoding] = folder / f"{encoding}.arrow", {n: columns.canonical(table[n]) for n in table.column_names}
    return made


def convert(*words):
    done = subprocess.run([sluice.BINARY, "convert", "--force", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


WRITTEN = collections.defaultdict(int)  # (reader, what) -> cells that are equal


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_others_read_what_we_write(sources, tmp_path, encoding):
    source, want = sources[encoding]
    for codec, version in pairs_of(encoding):
        path = tmp_path / f"{codec}{version}.parquet"
        convert("--compression", codec, "--page-version", version, "--encoding", encoding, source, path)
        for reader in READERS:
            theirs = {name for name in want if their_reason(reader, name.split("/")[0], encoding)}
            cells = read_cells(reader, path, {n: v for n, v in want.items() if n not in theirs})
            wrong = {name: fault for name, fault in cells.items() if fault}
            assert not wrong, f"{reader}, {codec}, v{version}: {len(wrong)} of {len(cells)}: {list(wrong.items())[:4]}"
            for name in cells:
                for what in (("type", name.split("/")[0]), ("encoding", encoding), ("codec", codec, version)):
                    WRITTEN[(reader, *what)] += 1
            if (codec, version) == ("zstd", 1):  # what stands in THEIRS is theirs still
                for name in (n for n in theirs if n.endswith("/flat/some")):
                    assert read_cells(reader, path, {name: want[name]})[name], f"{reader} reads {name} by now"


def test_a_type_alone_is_as_good(tmp_path):
    """Nothing that one column needs is done for the sake of another."""
    for name in columns.types():
        table = columns.table_of([name])
        with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        convert(tmp_path / "a.arrow", tmp_path / "a.parquet")
        got = read_pyarrow(tmp_path / "a.parquet", None)
        for column in table.column_names:
            assert columns.canonical(got[column]) == columns.canonical(table[column]), column


# ---- what we read ----

def leaf_encodings(table, encoding):
    """Path of each leaf that is of a column's own type -> the encoding."""
    sink = pa.BufferOutputStream()
    pq.write_table(table.slice(0, 0), sink)
    schema = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    paths = [schema.column(i).path for i in range(len(schema))]
    return {path: ENCODINGS[encoding][1] for path in paths if not path.endswith((".n", ".key_value.key"))}


def write_pyarrow(table, path, codec, encoding, version):
    pq.write_table(table, path, compression=codec.upper(), data_page_version=f"{version}.0", write_page_checksum=True,
                   use_dictionary=encoding == "auto", write_page_index=True, data_page_size=300,
                   store_decimal_as_integer=True,
                   column_encoding=None if encoding in ("auto", "plain") else leaf_encodings(table, encoding))


def write_duckdb(table, path, codec, encoding, version):
    con = duckdb.connect()
    con.execute("SET TimeZone='UTC'; SET threads=1")
    con.register("given", table)
    limit = ", DICTIONARY_SIZE_LIMIT 1" if encoding == "plain" else ""
    con.execute(f"COPY (FROM given) TO '{path}' (FORMAT parquet, CODEC '{codec.replace('none', 'uncompressed')}', "
                f"PARQUET_VERSION v{version}{limit})")


def write_polars(table, path, codec, encoding, version):
    polars.from_arrow(table).write_parquet(path, compression=codec.replace("none", "uncompressed"), data_page_size=300)


def write_datafusion(table, path, codec, encoding, version):
    context = one_thread()
    context.register_record_batches("given", [table.to_batches()])
    name = ENCODINGS[encoding][1].lower() if encoding != "auto" else "plain"
    codec = {"none": "uncompressed", "gzip": "gzip(6)", "zstd": "zstd(1)", "lz4": "lz4_raw"}.get(codec, codec)
    context.sql(f"COPY given TO '{path}' STORED AS PARQUET OPTIONS ('format.compression' '{codec}', "
                f"'format.encoding' '{name}', 'format.dictionary_enabled' '{str(encoding == 'auto').lower()}', "
                f"'format.writer_version' '{version}.0', 'format.bloom_filter_on_write' 'true')").collect()


def write_clickhouse(table, path, codec, encoding, version):
    given = path.with_suffix(".given.arrow")
    with pa.OSFile(str(given), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    limit = ", output_format_parquet_max_dictionary_size=0" if encoding == "plain" else ""
    chdb.query(f"INSERT INTO FUNCTION file('{path}', Parquet) SELECT * FROM file('{given}', Arrow) SETTINGS "
               "engine_file_truncate_on_insert=1, output_format_parquet_string_as_string=0, session_timezone='UTC', "
               f"enable_nullable_tuple_type=0, output_format_parquet_compression_method='{codec}'{limit}")


def write_java(table, path, codec, encoding, version):
    """A copy of a file of ours: what parquet-java knows of types is the format's."""
    given, plain = path.with_suffix(".given.arrow"), path.with_suffix(".plain.parquet")
    with pa.OSFile(str(given), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    convert("--compression", "none", "--encoding", "plain", given, plain)
    parquet_java.copy(plain, path, codec, version, encoding)


EVERY = tuple(e for e in ENCODINGS if e != "smallest")
WRITERS = {  # how it is called; its encodings, its page versions
    "pyarrow": (write_pyarrow, EVERY, (1, 2)),
    "DuckDB": (write_duckdb, ("auto", "plain"), (1, 2)),
    "Polars": (write_polars, ("auto",), (1,)),
    "DataFusion": (write_datafusion, EVERY, (1, 2)),
    "ClickHouse": (write_clickhouse, ("auto", "plain"), (1,)),
    "parquet-java": (write_java, ("auto", "plain", "byte-stream-split"), (1, 2)),
}
# (writer, type, encoding) -> why there is no such file, or not of these values; None stands for all.
NOT_WRITTEN = {
    ("DuckDB", "float16", None): "has no such type",
    ("DuckDB", "decimal(76, 5)", None): "has no such type",
    ("DuckDB", "float32", "auto"): "its dictionaries take -0.0 for 0.0",
    ("DuckDB", "float64", "auto"): "its dictionaries take -0.0 for 0.0",
    ("DuckDB", "fixed(5)", None): "takes other slots of fixed bytes below structs that are null",
    ("DuckDB", "time64[ns]", None): "writes text",
    ("DuckDB", "timestamp[ns, UTC]", None): "writes microseconds",
    ("Polars", "decimal(76, 5)", None): "has no such type",
    ("ClickHouse", "null", None): "has no such type",
    **{("ClickHouse", kind, None): "has no such type in Parquet" for kind in columns.types() if kind.startswith("time") and
       not kind.startswith("timestamp")},
    **{("ClickHouse", f"timestamp[{unit}]", None): "writes instants" for unit in ("ms", "us", "ns")},
}
READ = collections.defaultdict(int)  # (writer, what) -> cells that are equal


@pytest.mark.parametrize("writer", WRITERS)
def test_we_read_what_others_write(tmp_path, writer):
    write, encodings, versions = WRITERS[writer]
    for encoding, codec, version in [(e, *pair) for e in encodings for pair in pairs_of(e)]:
        if version not in versions:
            continue
        kinds = [k for k in ENCODINGS[encoding][0]
                 if not (NOT_WRITTEN.get((writer, k, None)) or NOT_WRITTEN.get((writer, k, encoding)))]
        is_whole = writer == "DataFusion" and encoding not in ("auto", "plain")  # its option is the whole file's
        table = columns.table_of(kinds, ("flat",) if is_whole else columns.NESTINGS, seed=2)
        write(table, tmp_path / "a.parquet", codec, encoding, version)
        done = subprocess.run([sluice.BINARY, "parquet", "verify", tmp_path / "a.parquet"], capture_output=True, text=True)
        assert done.returncode == 0, f"{writer}, {encoding}, {codec}, v{version}: {done.stderr}"
        convert(tmp_path / "a.parquet", tmp_path / "a.arrow")
        with pa.OSFile(str(tmp_path / "a.arrow")) as file:
            got = pa.ipc.open_file(file).read_all()
        for name in table.column_names:
            kind = name.split("/")[0]
            want = columns.canonical(table[name])
            assert is_same(writer, name, got[name], want), f"{writer}, {encoding}, {codec}, v{version}: {name}"
            for what in (("type", kind), ("encoding", encoding), ("codec", codec, version)):
                READ[(writer, *what)] += 1


# ---- the page ----

def cell(counts, theirs, program, what):
    """How many cells were equal; what is theirs."""
    count = counts.get((program, *what), 0)
    kind = what[1] if what[0] == "type" else None
    encodings_of = collections.defaultdict(list)
    for (owner, name, encoding), reason in theirs.items():
        if (owner, name) == (program, kind) and (encoding is None or (owner, name, None) not in theirs):
            encodings_of[reason].append(encoding)
    reasons = ["*theirs*" + ("" if es == [None] else f" ({', '.join(sorted(es))})") + f": {r}" for r, es in encodings_of.items()]
    return "; ".join([*([f"{count:,}"] if count else []), *sorted(reasons)]) or "–"


def table(head, rows, counts, theirs, programs):
    lines = [f"| {head} | {' | '.join(programs)} |", "|" + "---|" * (len(programs) + 1)]
    for label, what in rows:
        lines.append(f"| {label} | {' | '.join(cell(counts, theirs, p, what) for p in programs)} |")
    return "\n".join(lines)


def page():
    kinds = [(f"`{k}`", ("type", k)) for k in columns.types()]
    encodings = [(f"`{e}`: {name}", ("encoding", e)) for e, (_, name) in ENCODINGS.items()]
    codecs = [(f"{c}, v{v} pages", ("codec", c, v)) for c, v in PAIRS]
    both = []
    for counts, theirs, programs in ((WRITTEN, THEIRS, READERS), (READ, NOT_WRITTEN, WRITERS)):
        both.append("\n\n".join(table(head, rows, counts, theirs, programs) for head, rows in
                                (("Type", kinds), ("Encoding", encodings), ("Codec", codecs))))
    versions = ", ".join(f"{n} {m.__version__}" for n, m in
                         (("pyarrow", pa), ("DuckDB", duckdb), ("Polars", polars), ("DataFusion", datafusion)))
    versions += f", ClickHouse (chdb {importlib.metadata.version('chdb')}), parquet-java {parquet_java.version()}"
    return f"""# Parquet, and who reads it

Made by `test/interop/test_parquet_matrix.py` in every run of the tests, with {versions}.

A cell is one column: a type, in one of {len(columns.NESTINGS)} nestings ({', '.join(columns.NESTINGS)}), with no nulls, with
some, or with nothing else, in a file of one encoding, one codec and one version of data pages. A number says how
many cells were read value for value; *theirs* is what the other program cannot do, in its own terms. There is no
third kind: a cell that is neither fails the tests.

Of ClickHouse every cell with a text or a null of something nested is *theirs* in part, and equal but for that:
{NEVER_NULL}.

The encodings are chosen by `sluice convert --encoding`; what Sluice writes into tables is `auto`, zstd, v1.

## Written by Sluice

{both[0]}

## Written by others, read by Sluice

Encodings as the writer's own options name them; DataFusion's are a file's, so there the columns are flat;
parquet-java's v2 pages are DELTA where its dictionaries are off. ClickHouse's structs that are null are written as
above: where it has them null, the levels of their members contradict each other.

{both[1]}
"""


def test_the_page_says_what_was_found():
    """Last in this file: it needs all that stands before. UPDATE_DOCS=1 writes the page."""
    found = page()
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(found)
    assert PAGE.read_text() == found
