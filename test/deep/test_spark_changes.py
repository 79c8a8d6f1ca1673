# SPDX-License-Identifier: Apache-2.0
"""Spark makes, appends to, evolves and rewrites tables that Sluice goes on writing. After each change all
rows are there, once, and Spark, ClickHouse and PyIceberg see the same."""
import json
import os
import pathlib
import threading
import time

import pytest

import deep
import ledger
import sluice

ALL = "table => 'otel.logs'"


@pytest.fixture
def book(tmp_path, spark):
    """A server with rows in otel.logs, its ledger, and Spark over its catalog."""
    book = Book(tmp_path / "data", spark)
    yield book
    book.server.kill()


class Book:
    def __init__(self, directory, spark):
        self.server = sluice.Server(directory, "--publish-interval", "50ms", "--publish-halt-confirm",
                                    "300ms").start()
        self.spark, self.ledger = spark.open(sluice=directory), ledger.Ledger()

    def send(self, count=5, rows=20):
        for _ in range(count):
            request = self.ledger.new("logs", rows)
            self.ledger.must_send(self.server, request)
        self.server.wait_published()

    def sql(self, text):
        return self.spark.sql(text)

    def ours(self):
        """Rows that we sent, by their place; a place that stands twice is an error."""
        rows = [r for r in sluice.read_pyiceberg(self.server.directory, "logs").to_pylist()
                if r["_sluice_log"] != "spark"]
        assert len({(r["_sluice_seq"], r["_sluice_index"]) for r in rows}) == len(rows)
        return rows

    def check(self, without=lambda text: False):
        """Every row that was sent stands, but for those that Spark deleted; the readers agree."""
        expected = sorted(f"{r.ident}#{i}" for r in self.ledger.requests for i in range(len(r.rows)))
        assert sorted(r["severity_text"] for r in self.ours()) == [t for t in expected if not without(t)]
        assert self.server.lane("otel.logs")["state"] == "idle"
        rows = deep.sorted_rows(sluice.read_pyiceberg(self.server.directory, "logs").to_pylist())
        assert rows == sorted(self.sql("select * from sluice.otel.logs"), key=json.dumps)
        assert deep.sorted_rows(sluice.read_clickhouse(self.server.directory, "logs")) == \
            deep.sorted_rows(sluice.read_as_clickhouse(self.server.directory, "logs"))


def append_by_spark(book, count=7):
    names = [f.name for f in sluice.catalog(book.server.directory).load_table("otel.logs").schema().fields]
    picked = ", ".join("'spark' as _sluice_log" if name == "_sluice_log" else f"`{name}`" for name in names)
    book.sql(f"insert into sluice.otel.logs by name select {picked} from sluice.otel.logs limit {count}")


def test_spark_appends(book):
    book.send()
    for i in range(3):
        append_by_spark(book)
        book.send()
    assert book.sql("select count(*) from sluice.otel.logs where _sluice_log = 'spark'") == [[21]]
    book.check()


def test_spark_evolves_the_schema(book):
    book.send()
    for change in ("add column their_note string comment 'of others'", "add column n int first",
                   "add column their_place struct<x: int, y: array<string>>",
                   "alter column severity_number type bigint", "alter column body comment 'the body'",
                   "set tblproperties ('write.parquet.compression-codec' = 'gzip')",
                   "alter column their_note after body", "rename column event_name to event",
                   "rename column time to at", "rename column at to time", "drop column event",
                   "drop column their_place.x"):
        book.sql(f"alter table sluice.otel.logs {change}")
        book.send(2)
    book.sql("update sluice.otel.logs set their_note = 'seen' where severity_text = 'r0#1'")
    book.send()
    assert book.sql("select severity_text from sluice.otel.logs where their_note = 'seen'") == [["r0#1"]]
    book.check()


def test_spark_evolves_partitions_and_order(book):
    book.send()
    for change in ("write ordered by service_name, time", "add partition field bucket(4, service_name)",
                   "drop partition field bucket(4, service_name)", "write unordered"):
        book.sql(f"alter table sluice.otel.logs {change}")
        book.send(2)
    append_by_spark(book)
    book.send()
    book.check()


def test_spark_rewrites_and_expires(book):
    for _ in range(4):
        book.send()
    before = len(book.sql("select 1 from sluice.otel.logs.files"))
    assert before > 3
    rewritten, = book.sql(f"call sluice.system.rewrite_data_files({ALL}, options => map('rewrite-all', 'true'))")
    assert rewritten[0] == before
    book.send()
    book.sql("call sluice.system.rewrite_manifests('otel.logs')")
    book.send()
    book.sql(f"call sluice.system.rewrite_data_files({ALL}, strategy => 'sort', sort_order => 'trace_id', "
             "options => map('rewrite-all', 'true'))")
    book.sql(f"call sluice.system.expire_snapshots({ALL}, older_than => timestamp'2099-01-01 00:00:00', "
             "retain_last => 1)")
    assert len(book.sql("select 1 from sluice.otel.logs.snapshots")) == 1
    book.send()
    book.server.stop()
    book.server.start()
    book.send()
    book.check()


def test_spark_deletes(book):
    """Copy on write and by position deletes: what others delete stays deleted."""
    for mode in ("copy-on-write", "merge-on-read"):
        book.send()
        book.sql(f"alter table sluice.otel.logs set tblproperties ('write.delete.mode' = '{mode}')")
        book.send()
        book.sql("delete from sluice.otel.logs where severity_text like '%#7'")
        book.sql("delete from sluice.otel.logs where severity_text like 'r1#%'")
        book.send()
    book.server.kill()
    book.server.start()
    book.server.wait_published()
    last = book.ledger.requests[-6].ident
    book.check(lambda text: text.startswith("r1#") or
               text.endswith("#7") and int(text[1:].split("#")[0]) <= int(last[1:]))


def test_spark_rewrites_while_rows_come(book):
    """Both commit to one table at once; each takes the other's conflicts."""
    book.send()
    done, failures = threading.Event(), []

    def maintain():
        while not done.is_set():
            for call in (f"rewrite_data_files({ALL}, options => map('rewrite-all', 'true'))",
                         f"expire_snapshots({ALL}, older_than => now(), retain_last => 2)"):
                try:
                    book.sql(f"call sluice.system.{call}")
                    failures.append(None)
                except RuntimeError as error:
                    failures.append(str(error))
    thread = threading.Thread(target=maintain)
    thread.start()
    try:
        for _ in range(40):
            book.send(2)
    finally:
        done.set()
        thread.join()
    book.server.wait_published()
    book.check()
    good = failures.count(None)
    print(f"{good} of {len(failures)} procedures committed")
    assert good >= 2, failures


def test_spark_makes_the_table(tmp_path, spark, book):
    """With ids and an order of its own, all columns optional, before Sluice's first row."""
    model = sluice.Server(tmp_path / "model", "--publish-catalog-name", "model",
                          "--publish-interval", "50ms").start()
    ledger.Ledger().must_send(model, ledger.Ledger().new("logs", 1))
    model.wait_published()
    model.stop()
    book.server.stop()
    spark.open(sluice=book.server.directory, model=model.directory)
    spark.sql("create namespace if not exists sluice.otel")
    columns = "*, 1 as theirs"
    spark.sql("create table sluice.otel.logs using iceberg partitioned by (service_name, hours(time)) "
              f"as select {columns} from model.otel.logs limit 0")
    book.server.start()
    book.send()
    assert [f.name for f in sluice.catalog(book.server.directory).load_table("otel.logs").spec().fields] == \
        ["service_name", "time_hour"]
    append_by_spark(book)
    book.send()
    book.check()


def test_spark_keeps_statistics_tags_and_branches(book):
    """What Sluice's metadata does not know of outlives its commits."""
    book.send()
    book.sql("call sluice.system.compute_table_stats(table => 'otel.logs', columns => array('service_name'))")
    book.sql("alter table sluice.otel.logs create tag before retain 30 days")
    book.sql("alter table sluice.otel.logs create branch audit")
    count, = book.sql("select count(*) from sluice.otel.logs")
    book.send()
    append_by_spark(book)
    book.send()
    table = sluice.catalog(book.server.directory).load_table("otel.logs")
    assert table.metadata.statistics and set(table.refs()) == {"main", "before", "audit"}
    for ref in ("before", "audit"):
        assert book.sql(f"select count(*) from sluice.otel.logs version as of '{ref}'") == [count]
    book.sql("insert into sluice.otel.logs.branch_audit select * from sluice.otel.logs limit 3")
    book.send()
    assert book.sql("select count(*) from sluice.otel.logs version as of 'audit'") == [[count[0] + 3]]
    book.check()


def test_spark_removes_orphans_and_nothing_of_ours(book):
    book.send()
    book.send()
    home = book.server.directory / "warehouse/otel/logs"
    stray = home / "data" / "stray.parquet"
    stray.write_bytes(b"x")
    days_ago = time.time() - 5 * 86400
    before = [path for path in home.rglob("*") if path.is_file()]
    for path in before:
        os.utime(path, (days_ago, days_ago))
    yesterday = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86400))
    removed = book.sql("call sluice.system.remove_orphan_files(table => 'otel.logs', "
                       f"older_than => timestamp'{yesterday} 00:00:00')")
    assert [pathlib.PurePath(path).name for path, in removed] == ["stray.parquet"]
    assert all(path.exists() == (path != stray) for path in before)
    book.send()
    book.check()


def test_spark_rolls_back(book):
    """Rows that were committed are gone: that lane halts, and its remedy brings them back."""
    book.send()
    first = sluice.catalog(book.server.directory).load_table("otel.logs").current_snapshot().snapshot_id
    book.send()
    book.sql(f"call sluice.system.rollback_to_snapshot('otel.logs', {first})")
    book.ledger.must_send(book.server, book.ledger.new("logs", 3))
    lane = wait_halted(book.server)
    words = " ".join(sluice.commands_of(lane["remedy"])[0]).replace("--accept", "--republish").split()
    book.server.command(*words, check=0)
    book.server.wait_published()
    book.check()


def test_spark_upgrades_the_format(book):
    """To a version that Sluice does not write: that lane halts and keeps its rows, the others go on; with
    the table renamed, they go into a new one."""
    book.send()
    book.sql("alter table sluice.otel.logs set tblproperties ('format-version' = '3')")
    book.ledger.must_send(book.server, book.ledger.new("logs", 3))
    lane = wait_halted(book.server)
    assert "format version 3" in lane["reason"] and "rename the table" in lane["remedy"]
    book.ledger.must_send(book.server, book.ledger.new("spans", 3))
    wait_until(lambda: book.server.lane("otel.spans")["lag_rows"] == 0, book.server)
    assert book.server.lane("otel.logs")["lag_rows"] == 3
    assert book.sql("select count(*) from sluice.otel.logs") == [[100]]
    book.sql("alter table sluice.otel.logs rename to otel.logs_v3")
    book.server.command(*sluice.commands_of(lane["remedy"])[0], check=0)
    book.server.wait_published()
    assert sluice.catalog(book.server.directory).load_table("otel.logs").scan().count() == 3


def wait_until(condition, server, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, server.status()["lanes"]
        time.sleep(0.05)


def wait_halted(server, table="otel.logs"):
    wait_until(lambda: server.lane(table)["state"] in ("halted", "stood_down"), server)
    return server.lane(table)
