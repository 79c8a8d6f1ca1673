# SPDX-License-Identifier: Apache-2.0
"""Runs the real binary for tests, and reads what it wrote with programs that are not ours."""
import json
import os
import pathlib
import re
import shlex
import signal
import site
import subprocess
import sys
import time
import urllib.error
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("SLUICE_BINARY", TOP / "build/dev/src/app/cmd/sluice"))
SIGNALS = ("logs", "traces", "metrics")


def snippets(language, page="README.md"):
    """The blocks of code of a page, as they stand."""
    return re.findall(rf"^```{language}\n(.*?)^```", (TOP / page).read_text(), re.M | re.S)


def commands_of(remedy):
    """The commands that the text of a halt's remedy names, as lists of words without the program's name."""
    found = re.findall(r"\bsluice ((?:log|tables|clear-halt) .*?)(?= for | to | or |[,;]|$)", remedy)
    return [shlex.split(words) for words in found]


class Answer:
    def __init__(self, code, headers, body):
        self.code, self.headers, self.body = code, headers, body

    @property
    def receipts(self):
        """(log, group, term, seq, first, rows) of each Sluice-Receipt."""
        found = []
        for text in self.headers.get_all("Sluice-Receipt") or []:
            m = re.fullmatch(r"([0-9a-f]{32})/(\d+)/(\d+)/(\d+);first=(\d+);rows=(\d+)", text)
            assert m, text
            found.append((m[1], *map(int, m.groups()[1:])))
        return found


class Server:
    """A `sluice serve` under one directory, on ports of its own."""

    def __init__(self, directory, *flags, wrapper=(), env=None):
        self.directory = pathlib.Path(directory)
        self.flags, self.wrapper, self.env = flags, wrapper, env or {}
        self.process = None

    def start(self, wait=True):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log_path = self.directory.parent / (self.directory.name + ".stderr")
        self.log_file = open(self.log_path, "ab")
        self.log_start = self.log_path.stat().st_size
        self.process = subprocess.Popen(
            [*self.wrapper, str(BINARY), "serve", "--data-dir", str(self.directory),
             "--otlp-http-port", "0", "--api-port", "0", "--log-port", "0", *self.flags],
            stderr=self.log_file, stdout=subprocess.DEVNULL, env={**os.environ, **self.env},
            start_new_session=True)
        if wait:
            self.wait_ready()
        self.let_first_round_pass()
        return self

    def let_first_round_pass(self):
        """A lane's first round publishes what comes while it lasts, however long its interval is."""
        if "1h" in self.flags:
            time.sleep(0.5)

    def log(self):
        return self.log_path.read_bytes()[self.log_start:].decode(errors="replace")

    def wait_ready(self, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            m = re.search(r"OTLP/HTTP on \S+ port (\d+), API on port (\d+), log on port (\d+)", self.log())
            if m:
                self.otlp, self.api, self.log_port = map(int, m.groups())
                return
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}: {self.log()}")
            time.sleep(0.005)
        raise RuntimeError("the server did not start: " + self.log())

    def post(self, signal_name, body, timeout=60, path=None, **headers):
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        headers.setdefault("Content-Type", "application/x-protobuf")
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.otlp}{path or '/v1/' + signal_name}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as refused:
            return Answer(refused.code, refused.headers, refused.read())

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.api}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def status(self):
        return json.loads(self.get("/v1/status")[1])

    def lane(self, table):
        return next(x for x in self.status()["lanes"] if x["table"] == table)

    def wait_published(self, seconds=60):
        """Until no lane has rows behind."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            status = self.status()
            if all(x["lag_rows"] == 0 and x["state"] == "idle" for x in status["lanes"]):
                return status
            time.sleep(0.05)
        raise RuntimeError("lanes stay behind: " + json.dumps(self.status()["lanes"], indent=1))

    def kill(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.process:
            self.process.wait()
        self.log_file.close()

    def stop(self, expect=0):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.log_file.close()
        assert expect is None or code == expect, self.log_path.read_text(errors="replace")
        return code

    def command(self, *words, check=None):
        done = subprocess.run([str(BINARY), *words, "--data-dir", str(self.directory),
                               "--api-port", str(getattr(self, "api", 0) or 1)],
                              capture_output=True, text=True, timeout=120)
        if check is not None:
            assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
        return done


def catalog(directory):
    from pyiceberg.catalog.sql import SqlCatalog
    return SqlCatalog("sluice", uri=f"sqlite:///{directory}/catalog.db")


def read_pyiceberg(directory, table, ns="otel"):
    return catalog(directory).load_table((ns, table)).scan().to_arrow()


def duckdb_connection():
    import duckdb
    packages = next(p for p in site.getsitepackages() if (pathlib.Path(p) / "duckdb").exists())
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD '{packages}/duckdb_extension_{name}/extensions/v1.5.5/"
                           f"{name}.duckdb_extension'")
    connection.execute("SET TimeZone='UTC'")
    return connection


def read_duckdb(directory, table):
    return duckdb_connection().execute(
        f"SELECT * FROM iceberg_scan('{directory}/warehouse/otel/{table}')").to_arrow_table()


def read_polars(directory, table):
    import polars
    return polars.scan_iceberg(catalog(directory).load_table(("otel", table))).collect().to_arrow()


def data_files(directory, table, ns="otel"):
    """Paths of a table's data files: catalog by sqlite3, metadata by json, manifests by fastavro."""
    import contextlib
    import sqlite3

    import fastavro

    def avro(uri):
        with open(uri.removeprefix("file://"), "rb") as file:
            return list(fastavro.reader(file))
    with contextlib.closing(sqlite3.connect(f"file:{directory}/catalog.db?mode=ro", uri=True)) as database:
        (location,), = database.execute("SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ?"
                                        " AND table_name = ?", (ns, table))
    metadata = json.loads(pathlib.Path(location.removeprefix("file://")).read_bytes())
    snapshot, = [s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"]]
    entries = [e for manifest in avro(snapshot["manifest-list"]) for e in avro(manifest["manifest_path"])
               if e["status"] != 2]
    assert entries and all(e["data_file"]["content"] == 0 for e in entries), "data files alone"
    return [(e["data_file"]["file_path"].removeprefix("file://"), e["data_file"]["record_count"])
            for e in entries]


def read_pyarrow(directory, table, ns="otel"):
    """By pyarrow's Parquet reader alone; the manifests say which files."""
    import pyarrow
    import pyarrow.parquet
    found = []
    for path, count in data_files(directory, table, ns):
        found.append(pyarrow.parquet.ParquetFile(path).read())
        assert found[-1].num_rows == count, path
    return pyarrow.concat_tables(found)


def clickhouse(query, directory, form="TSV"):
    """In a process of its own, because ClickHouse opens files below its working directory alone."""
    return subprocess.run([sys.executable, "-c", "import chdb, sys; sys.stdout.buffer.write(chdb.query("
                           "sys.argv[1], sys.argv[2]).bytes())", query, form], cwd=directory, check=True,
                          capture_output=True).stdout


def read_clickhouse(directory, table):
    """Whole rows as dicts. ClickHouse's strings are bytes: which of them are text, PyIceberg's schema says."""
    import pyarrow
    stream = clickhouse(f"SELECT * FROM icebergLocal('{directory}/warehouse/otel/{table}')"
                        " SETTINGS output_format_arrow_string_as_string=0", directory, "ArrowStream")

    def with_text(value):
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, dict):
            return {name: with_text(x) for name, x in value.items()}
        return [with_text(x) for x in value] if isinstance(value, (list, tuple)) else value
    binary = {field.name for field in catalog(directory).load_table(("otel", table)).schema().fields
              if str(field.field_type) == "binary"}
    return [{name: value if name in binary else with_text(value) for name, value in row.items()}
            for row in pyarrow.ipc.open_stream(stream).read_all().to_pylist()]


def read_as_clickhouse(directory, table):
    """PyIceberg's rows as ClickHouse gives them, which knows no null but of a plain value: an absent list
    or map is empty, of an absent struct every member is absent."""
    import pyarrow

    def absent(kind):
        if pyarrow.types.is_struct(kind):
            return {field.name: absent(field.type) for field in kind}
        return [] if pyarrow.types.is_nested(kind) else None
    found = read_pyiceberg(directory, table)
    nested = {f.name: absent(f.type) for f in found.schema if pyarrow.types.is_nested(f.type)}
    return [{**row, **{name: empty for name, empty in nested.items() if row[name] is None}}
            for row in found.to_pylist()]
