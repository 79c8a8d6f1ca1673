# SPDX-License-Identifier: Apache-2.0
"""What was sent and what others did, and whether a table holds exactly that.

A ledger counts by receipt: the rows of an acknowledged request stand at their receipt's places, whole and
once; a request with a producer sequence stands once, however often it was sent; one without stands at most
once for each attempt. No data file stands twice, no file of ours is left that nothing refers to.
"""
import collections
import datetime
import http.client
import itertools
import json
import os
import pathlib
import threading
import time
import urllib.error
import uuid

import pyarrow as pa
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

import otlp_rows
import sluice

FOREIGN = "f0f0f0f0"  # how the names begin that PyIceberg gives its files while Foreign runs


class Request:
    def __init__(self, ident, table, message, producer=None, sequence=None):
        self.ident, self.table, self.message = ident, table, message
        self.body = message.SerializeToString()
        self.rows = [expected for _, expected in otlp_rows.explode(message)]
        self.producer, self.sequence = producer, sequence
        self.attempts = 0
        self.receipt = None  # (log, group, term, seq, first, rows) once acknowledged


def make_logs(ident, rows, pad=0):
    message = logs_service_pb2.ExportLogsServiceRequest()
    resource = message.resource_logs.add()
    resource.resource.attributes.add(key="service.name").value.string_value = f"s{hash(ident) % 7}"
    scope = resource.scope_logs.add()
    scope.scope.name = "kill"
    for i in range(rows):
        record = scope.log_records.add(time_unix_nano=time.time_ns(), severity_number=1 + i % 24,
                                       severity_text=f"{ident}#{i}")
        record.body.string_value = f"body of {ident} {i} " + "x" * (i % 50) + \
            os.urandom(pad // 2).hex()
        record.attributes.add(key="i").value.int_value = i
    return message


def make_spans(ident, rows, pad=0):
    message = trace_service_pb2.ExportTraceServiceRequest()
    scope = message.resource_spans.add().scope_spans.add()
    for i in range(rows):
        span = scope.spans.add(name=f"{ident}#{i}", trace_id=uuid.uuid4().bytes, kind=1 + i % 5,
                               span_id=uuid.uuid4().bytes[:8], start_time_unix_nano=time.time_ns())
        span.end_time_unix_nano = span.start_time_unix_nano + i
        span.attributes.add(key="i").value.int_value = i
        span.trace_state = os.urandom(pad // 2).hex()
    return message


SIGNALS = {"logs": ("logs", make_logs, "severity_text"), "spans": ("traces", make_spans, "name")}


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.requests = []
        self.numbers = itertools.count()

    def new(self, table="logs", rows=3, producer=None, sequence=None, pad=0):
        ident = f"r{next(self.numbers)}"
        request = Request(ident, table, SIGNALS[table][1](ident, rows, pad), producer, sequence)
        with self.lock:
            self.requests.append(request)
        return request

    def send(self, server, request, timeout=10):
        """True: acknowledged. False: refused. None: nobody knows."""
        headers = {}
        if request.producer:
            headers = {"Sluice_Producer": request.producer, "Sluice_Sequence": str(request.sequence)}
        request.attempts += 1
        try:
            answer = server.post(SIGNALS[request.table][0], request.body, timeout=timeout, **headers)
        except urllib.error.URLError as lost:
            if isinstance(lost.reason, ConnectionRefusedError):
                request.attempts -= 1  # nothing was sent
            return None
        except (OSError, http.client.HTTPException):
            return None
        if answer.code != 200:
            assert answer.code in (503, 429), (answer.code, answer.body)
            return False
        assert answer.headers["Sluice-Boundary"] == "durable"
        (receipt,) = answer.receipts
        assert receipt[5] == len(request.rows)
        with self.lock:
            request.receipt = receipt
        return True

    def must_send(self, server, request):
        assert self.send(server, request), "not acknowledged"
        return request

    # ---- what stands ----

    def check(self, directory, foreign=None, logs=None, with_leftovers=False):
        """Compares both tables whole. `logs`: ids a receipt's log may since have been forked into."""
        for table in SIGNALS:
            if any(r.table == table for r in self.requests):
                self._check_table(directory, table, foreign, logs or {})
                check_files(directory, table, with_leftovers)

    def _check_table(self, directory, table, foreign, logs):
        rows = sluice.read_pyiceberg(directory, table).to_pylist()
        places, by_request, foreign_rows = {}, collections.defaultdict(list), collections.Counter()
        for row in rows:
            if row["_sluice_log"] == "foreign":
                foreign_rows[row["_sluice_seq"]] += 1
                continue
            place = (row["_sluice_log"], row["_sluice_group"], row["_sluice_seq"],
                     row["_sluice_index"])
            assert place not in places, f"{table}: a row stands twice at {place}"
            places[place] = row
            by_request[row[SIGNALS[table][2]].split("#")[0]].append(place)
        for request in self.requests:
            if request.table == table:
                self._check_request(table, request, places,
                                    sorted(by_request.pop(request.ident, [])), logs)
        assert not by_request, f"{table}: rows that nobody sent: {list(by_request)[:5]}"
        if foreign and table == foreign.table:
            foreign.check(foreign_rows)

    @staticmethod
    def _check_request(table, request, places, found, logs):
        size = len(request.rows)
        standing, left_over = divmod(len(found), size)
        assert not left_over, f"{table}: {request.ident} stands in part: {found}"
        if request.receipt:
            log, group, _, seq, first, _ = request.receipt
            acked = [(where, group, seq, first + i) for where in (log, *logs.get(log, ()))
                     for i in range(size) if (where, group, seq, first + i) in found]
            assert len(acked) == size, \
                f"{table}: of {request.ident} {len(acked)} of {size} rows stand at {request.receipt}"
        assert standing <= (1 if request.producer else request.attempts), \
            f"{table}: {request.ident} stands {standing} times: {found}"
        for at in range(0, len(found), size):
            for place, expected in zip(found[at:at + size], request.rows):
                got = otlp_rows.enclose(table, places[place])
                assert got.SerializeToString(deterministic=True) == \
                    expected.SerializeToString(deterministic=True), (place, got, expected)


# ---- files ----

def path_of(uri):
    return pathlib.Path(uri.removeprefix("file://").removeprefix("file:"))


def check_files(directory, name, with_leftovers=False):
    """No live path twice; each live file there with its length; nothing of ours left over."""
    table = sluice.catalog(directory).load_table(("otel", name))
    live = collections.Counter()
    for manifest in table.current_snapshot().manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            live[entry.data_file.file_path] += 1
            path = path_of(entry.data_file.file_path)
            assert path.stat().st_size == entry.data_file.file_size_in_bytes, path
    assert max(live.values(), default=0) <= 1, f"{name}: a data file stands twice: {live}"
    known = referred_files(table)
    known |= {str(path_of(x)) for x in live}
    journal = pathlib.Path(directory) / "publish" / f"otel.{name}.journal"
    record = journal.read_text() if journal.exists() else ""
    left = [str(p) for p in (pathlib.Path(directory) / "warehouse/otel" / name).rglob("*")
            if p.is_file() and str(p) not in known and FOREIGN not in p.name
            and p.name != "version-hint.text" and p.name.split("-")[0] not in (record or "-")]
    assert with_leftovers or not left, f"{name}: nothing refers to {left}"


def is_lost(path):
    """Deleted; or theirs, not synced by them when the power went, and no longer in use."""
    return not path.exists() or (FOREIGN in path.name and path.stat().st_size == 0)


def referred_files(table):
    """Paths that some metadata file of the table's history refers to, itself included."""
    known, todo, read = set(), [table.metadata_location], set()
    while todo:
        path = path_of(todo.pop())
        if str(path) in read:
            continue
        read.add(str(path))
        if not path.exists():
            continue
        known.add(str(path))
        if is_lost(path):
            continue
        metadata = json.loads(path.read_text())
        todo += [x["metadata-file"] for x in metadata.get("metadata-log", [])]
        known |= {str(path_of(s["manifest-list"])) for s in metadata.get("snapshots", [])}
    from pyiceberg.manifest import read_manifest_list
    for path in [p for p in known if "/snap-" in p and not is_lost(pathlib.Path(p))]:
        for manifest in read_manifest_list(table.io.new_input(path)):
            if manifest.manifest_path in read:
                continue
            read.add(manifest.manifest_path)
            known.add(str(path_of(manifest.manifest_path)))
            if not is_lost(path_of(manifest.manifest_path)):
                known |= {str(path_of(e.data_file.file_path))
                          for e in manifest.fetch_manifest_entry(table.io, discard_deleted=False)}
    return known


# ---- others ----

class Foreign:
    """PyIceberg on the same table: appends, and expires what is no ref's."""

    def __init__(self, directory, table="logs"):
        self.directory, self.table = directory, table
        self.certain, self.possible = set(), set()
        self.numbers = itertools.count()
        self.conflicts = self.expiries = 0

    def rows(self, number, count=2):
        now = datetime.datetime.now(datetime.timezone.utc)
        columns = {"time": now, "_sluice_received": now, "_sluice_log": "foreign",
                   "_sluice_group": 0, "_sluice_seq": number, "_sluice_index": 0}
        schema = self.load().schema().as_arrow()
        fields = [schema.field(name) for name in columns]
        return pa.Table.from_pylist([dict(columns, _sluice_index=i) for i in range(count)],
                                    schema=pa.schema(fields))

    def load(self):
        return sluice.catalog(self.directory).load_table(("otel", self.table))

    def append(self):
        """True: stands. False: refused as a conflict. None: nobody knows."""
        from pyiceberg.exceptions import CommitFailedException
        number = next(self.numbers)
        rows = self.rows(number)
        with marked_names():
            try:
                self.load().append(rows)
            except CommitFailedException:
                self.conflicts += 1
                return False
            except Exception as error:  # the database is locked, and whatever else a client meets
                if "locked" not in str(error):
                    raise
                self.possible.add(number)
                return None
        self.certain.add(number)
        return True

    def expire(self):
        from pyiceberg.exceptions import CommitFailedException
        with marked_names():
            try:
                table = self.load()
                table.maintenance.expire_snapshots().older_than(datetime.datetime.now()).commit()
                self.expiries += 1
            except CommitFailedException:
                self.conflicts += 1
            except Exception as error:
                if "locked" not in str(error):
                    raise

    def check(self, found):
        for number in self.certain:
            assert found.pop(number, 0) == 2, f"rows {number} of others are gone"
        for number, count in found.items():
            assert number in self.possible and count == 2, (number, count)


class marked_names:
    """While it lasts, names made of random UUIDs in this process begin with FOREIGN."""
    depth = 0
    lock = threading.Lock()
    original = uuid.uuid4

    def __enter__(self):
        with self.lock:
            if marked_names.depth == 0:
                uuid.uuid4 = lambda: uuid.UUID(FOREIGN + marked_names.original().hex[8:])
            marked_names.depth += 1

    def __exit__(self, *_):
        with self.lock:
            marked_names.depth -= 1
            if marked_names.depth == 0:
                uuid.uuid4 = marked_names.original
