# SPDX-License-Identifier: Apache-2.0
"""Tables that others make, change and append to, and that Sluice goes on writing (DESIGN section 6)."""
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from pyiceberg.types import DecimalType, IntegerType, LongType, StringType, UUIDType

import sluice


def send(server, *texts, **headers):
    request = logs_service_pb2.ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for text in texts:
        scope.log_records.add(severity_text=text)
    answer = server.post("logs", request.SerializeToString(), **headers)
    assert answer.code == 200, answer.body
    return answer


def texts(directory):
    return sorted(t for t in sluice.read_pyiceberg(directory, "logs")["severity_text"].to_pylist() if t)


@pytest.fixture
def server(tmp_path):
    server = sluice.Server(tmp_path / "data", "--publish-interval", "50ms", "--publish-halt-confirm",
                           "300ms").start()
    yield server
    if server.process.poll() is None:
        server.stop()


def halted(server, table="otel.logs"):
    import time
    deadline = time.monotonic() + 20
    while server.lane(table)["state"] not in ("halted", "stood_down"):
        assert time.monotonic() < deadline, server.lane(table)
        time.sleep(0.05)
    return server.lane(table)


def test_columns_added_by_others_are_null_and_rows_go_on(server):
    send(server, "a", Sluice_Commit="force")
    table = sluice.catalog(server.directory).load_table("otel.logs")
    with table.update_schema() as update:
        update.add_column("their_note", StringType())
        update.add_column("their_number", IntegerType())
    send(server, "b", Sluice_Commit="force")
    rows = sluice.read_pyiceberg(server.directory, "logs")
    assert sorted(rows["severity_text"].to_pylist()) == ["a", "b"]
    assert rows["their_note"].null_count == rows["their_number"].null_count == 2
    assert texts(server.directory) == sorted(
        r["severity_text"] for r in sluice.read_duckdb(server.directory, "logs").to_pylist())


def test_others_append_between_our_commits(server):
    for i in range(5):
        send(server, f"ours-{i}", Sluice_Commit="force")
        table = sluice.catalog(server.directory).load_table("otel.logs")
        batch = table.scan(limit=1).to_arrow()
        batch = batch.set_column(batch.schema.get_field_index("severity_text"), "severity_text",
                                 pa.array([f"theirs-{i}"]))
        table.append(batch)
    expected = sorted([f"ours-{i}" for i in range(5)] + [f"theirs-{i}" for i in range(5)])
    assert texts(server.directory) == expected
    assert server.lane("otel.logs")["state"] == "idle"


def test_int_widened_to_long_is_written_as_long(server):
    send(server, "a", Sluice_Commit="force")
    table = sluice.catalog(server.directory).load_table("otel.logs")
    with table.update_schema() as update:
        update.update_column("severity_number", LongType())
        update.update_column("_sluice_index", LongType())
    send(server, "b", Sluice_Commit="force")
    send(server, "c", "d", Sluice_Commit="force")
    rows = sluice.read_pyiceberg(server.directory, "logs")
    assert rows["severity_number"].to_pylist() == [0] * 4
    assert sorted(zip(rows["severity_text"].to_pylist(), rows["_sluice_index"].to_pylist())) == [
        ("a", 0), ("b", 0), ("c", 0), ("d", 1)]


def send_span(server, name):
    request = trace_service_pb2.ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(
        trace_id=b"\1" * 16, span_id=b"\2" * 8, name=name)
    for i in range(2):
        event = span.events.add(name=f"{name} event {i}", time_unix_nano=1_000 + i, dropped_attributes_count=i)
        event.attributes.add(key="k").value.string_value = f"{name} value {i}"
    link = span.links.add(trace_id=b"\3" * 16, span_id=b"\4" * 8, trace_state="s=1")
    link.flags = 257
    answer = server.post("traces", request.SerializeToString(), Sluice_Commit="force")
    assert answer.code == 200, answer.body


def test_a_renamed_column_is_followed_by_its_id(server):
    send(server, "a", Sluice_Commit="force")
    table = sluice.catalog(server.directory).load_table("otel.logs")
    with table.update_schema() as update:
        update.rename_column("severity_text", "level")
        update.rename_column("service_name", "service")  # the first of the sort columns
        update.rename_column("time", "at")  # what the partition is made of
    send(server, "b", Sluice_Commit="force")
    with sluice.catalog(server.directory).load_table("otel.logs").update_schema() as update:
        update.add_column("severity_text", StringType())  # another column under the old name
    send(server, "c", Sluice_Commit="force")
    rows = sluice.read_pyiceberg(server.directory, "logs")
    assert sorted(rows["level"].to_pylist()) == ["a", "b", "c"]
    assert rows["severity_text"].null_count == 3 and rows["at"].null_count == 0
    assert sorted(r["level"] for r in sluice.read_duckdb(server.directory, "logs").to_pylist()) == ["a", "b", "c"]
    assert server.lane("otel.logs").get("dropped_columns") is None


def sums(server, name="otel.logs"):
    """The table's row sum, the schema it began with, and what the files' own sums add up to."""
    table = sluice.catalog(server.directory).load_table(name)
    said = {key.split(".")[3]: value for key, value in table.properties.items()
            if key.startswith("sluice.") and key.split(".")[3].startswith("row-sum")}
    files = {}
    for path in table.inspect.data_files()["file_path"].to_pylist():
        metadata = pq.read_metadata(path.removeprefix("file://")).metadata
        files[path] = int(metadata[b"sluice.row-sum"], 16)
    return int(said["row-sum"], 16), int(said["row-sum-schema"]), files


def test_E3_dropped_columns_are_not_stored_and_start_a_new_row_sum(server):
    send(server, "a", Sluice_Commit="force")
    first, schema, before = sums(server)
    assert first == sum(before.values()) % 2**128 and schema == 0
    with sluice.catalog(server.directory).load_table("otel.logs").update_schema() as update:
        update.rename_column("severity_text", "level")
        update.add_column("their_note", StringType())
    send(server, "b", Sluice_Commit="force")
    whole, schema, files = sums(server)
    assert whole == sum(files.values()) % 2**128 and schema == 0  # neither ends a sum
    with sluice.catalog(server.directory).load_table("otel.logs").update_schema() as update:
        update.delete_column("event_name")
        update.delete_column("attributes_types")
    send(server, "c", Sluice_Commit="force")
    assert server.lane("otel.logs")["dropped_columns"] == "attributes_types, event_name"
    assert "attributes_types, event_name" in server.command("status", check=0).stdout
    since, schema, after = sums(server)
    new = {path: value for path, value in after.items() if path not in files}
    assert since == sum(new.values()) % 2**128 and schema > 0
    assert [line for line in server.log().splitlines() if "not stored: attributes_types, event_name" in line]
    with sluice.catalog(server.directory).load_table("otel.logs").update_schema() as update:
        update.add_column("event_name", StringType())
        update.add_column("attributes_types", StringType())
    send(server, "d", Sluice_Commit="force")
    rows = sluice.read_pyiceberg(server.directory, "logs")
    assert sorted(rows["level"].to_pylist()) == ["a", "b", "c", "d"]
    assert server.lane("otel.logs").get("dropped_columns") is None
    again, at, after = sums(server)
    assert at == schema and again == sum(v for p, v in after.items() if p not in files) % 2**128


def test_nested_fields_renamed_added_dropped_and_moved(server):
    send_span(server, "a")
    table = sluice.catalog(server.directory).load_table("otel.spans")
    with table.update_schema() as update:
        update.rename_column("events.element.name", "title")
        update.add_column(("events", "element", "their_score"), LongType())
        update.delete_column("links.element.trace_state")
        update.move_first("events.element.dropped_attributes_count")
        update.move_after("links.element.flags", "links.element.trace_id")
    send_span(server, "b")
    assert server.lane("otel.spans")["dropped_columns"] == "links.trace_state"
    for rows in (sluice.read_pyiceberg(server.directory, "spans"), sluice.read_duckdb(server.directory, "spans")):
        rows = {r["name"]: r for r in rows.to_pylist()}
        for name, row in rows.items():
            assert [e["title"] for e in row["events"]] == [f"{name} event 0", f"{name} event 1"]
            assert [e["their_score"] for e in row["events"]] == [None, None]
            assert [e["dropped_attributes_count"] for e in row["events"]] == [0, 1]
            assert [dict(e["attributes"])["k"] for e in row["events"]] == [f"{name} value 0", f"{name} value 1"]
            assert [(k["flags"], k["trace_id"]) for k in row["links"]] == [(257, "03" * 16)]
        assert sorted(rows) == ["a", "b"]


def test_columns_that_cannot_be_written_here_are_left_out(server):
    send(server, "a", Sluice_Commit="force")
    table = sluice.catalog(server.directory).load_table("otel.logs")
    with table.update_schema() as update:
        update.add_column("their_price", DecimalType(9, 2))
        update.add_column("their_id", UUIDType())
        update.add_column("their_note", StringType())
        update.move_first("their_price")
    send(server, "b", Sluice_Commit="force")
    rows = sluice.read_pyiceberg(server.directory, "logs")
    assert sorted(rows["severity_text"].to_pylist()) == ["a", "b"]
    assert rows["their_price"].null_count == rows["their_note"].null_count == 2


def lose_a_position_column(server):
    """Without it nobody could say which rows are whose."""
    with sluice.catalog(server.directory).load_table("otel.logs").update_schema() as update:
        update.delete_column("_sluice_seq")
    send(server, "b")
    return halted(server)


def test_a_column_that_has_to_be_there_halts_that_lane_and_is_named(server):
    send(server, "a", Sluice_Commit="force")
    lane = lose_a_position_column(server)
    assert "_sluice_seq" in lane["reason"] and "clear-halt otel.logs" in lane["remedy"]
    assert server.get("/readyz")[0] == 503 and "otel.logs is halted" in server.get("/readyz")[1]
    refused = server.post("logs", logs_service_pb2.ExportLogsServiceRequest.FromString(
        b"\x0a\x06\x12\x04\x12\x02\x10\x09").SerializeToString(), Sluice_Commit="force")
    assert refused.code == 409
    send(server, "c")  # ingest goes on
    with sluice.catalog(server.directory).load_table("otel.logs").update_schema() as update:
        update.add_column("_sluice_seq", LongType())
    server.command(*sluice.commands_of(lane["remedy"])[0], check=0)
    server.wait_published()
    assert texts(server.directory) == ["a", "b", "c"]


def test_a_halt_outlives_the_process(server):
    send(server, "a", Sluice_Commit="force")
    lose_a_position_column(server)
    server.stop()
    server.start()
    assert server.lane("otel.logs")["state"] == "halted"


@pytest.mark.parametrize("choice", ["--republish", "--accept"])
def test_E17_unreadable_metadata_is_repaired_from_the_one_before(server, choice):
    """By what the halt says, word for word."""
    send(server, "a", Sluice_Commit="force")
    send(server, "b", Sluice_Commit="force")
    location = sluice.catalog(server.directory).load_table("otel.logs").metadata_location
    with open(location.removeprefix("file://"), "wb") as f:
        f.write(b"{")
    send(server, "c")
    lane = halted(server)
    found = re.fullmatch(r"stop the server, sluice (tables repair \S+ --confirm), start the server, then sluice "
                         r"(clear-halt \S+ --confirm) (--republish) to publish again what came after the metadata "
                         r"that it went back to, or with (--accept) to do without", lane["remedy"])
    repair, resolve, republish, accept = (text.split() for text in found.groups())
    server.command(*repair, check=75)
    server.stop()
    looked = server.command(*repair[:-1], check=0)
    assert "would go back" in looked.stdout
    server.command(*repair, check=0)
    server.start()
    assert server.lane("otel.logs")["remedy"] == lane["remedy"]
    # What the lost commit held is behind the checkpoint.
    server.command(*resolve, *(republish if choice == "--republish" else accept), check=0)
    server.wait_published()
    assert texts(server.directory) == (["a", "b", "c"] if choice == "--republish" else ["a", "c"])


def test_a_catalog_replaced_underneath_is_noticed(server):
    """A backup renamed over catalog.db: an older table, not a file that nobody else sees."""
    import os
    import shutil
    send(server, "a", Sluice_Commit="force")
    catalog, backup = server.directory / "catalog.db", server.directory / "backup.db"
    shutil.copy(catalog, backup)
    send(server, "b", Sluice_Commit="force")
    os.rename(backup, catalog)
    request = logs_service_pb2.ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(severity_text="c")
    answer = server.post("logs", request.SerializeToString(), Sluice_Commit="force")
    assert answer.headers["Sluice-Boundary"] != "visible"
    lane = halted(server)
    server.command(*lane["remedy"].removeprefix("sluice ").replace("--accept", "--republish").split(),
                   check=0)
    server.wait_published()
    assert texts(server.directory) == ["a", "b", "c"]


def test_a_catalog_that_is_gone_is_no_new_catalog(server):
    send(server, "a", Sluice_Commit="force")
    os_path = server.directory / "catalog.db"
    aside = server.directory / "aside.db"
    os_path.rename(aside)
    send(server, "b")
    import time
    deadline = time.monotonic() + 10
    while "gone" not in server.lane("otel.logs").get("reason", ""):
        assert time.monotonic() < deadline, server.lane("otel.logs")
        time.sleep(0.05)
    aside.rename(os_path)
    server.wait_published()
    assert texts(server.directory) == ["a", "b"]


def test_a_table_made_by_pyiceberg_beforehand(tmp_path):
    """Same columns by name, other ids, another order, one column more, no partitions."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField
    first = sluice.Server(tmp_path / "first", "--publish-interval", "50ms").start()
    send(first, "x", Sluice_Commit="force")
    first.stop()
    model = sluice.catalog(tmp_path / "first").load_table("otel.logs").schema()
    server = sluice.Server(tmp_path / "data", "--publish-interval", "50ms").start()
    server.stop()
    theirs = sluice.catalog(server.directory)
    if not theirs.list_namespaces():
        theirs.create_namespace("otel")
    fields = list(reversed(model.fields))
    fields.insert(3, NestedField(999, "extra", StringType(), required=False))
    theirs.create_table("otel.logs", Schema(*fields),
                        location=f"file:{server.directory}/elsewhere/logs")
    server.start()
    send(server, "a", "b", Sluice_Commit="force")
    assert texts(server.directory) == ["a", "b"]
    rows = sluice.read_pyiceberg(server.directory, "logs").to_pylist()
    assert {r["extra"] for r in rows} == {None} and rows[0]["attributes"] == []
    server.stop()


def test_bloom_filters_where_the_table_asks_for_them(server):
    """By Iceberg's own property; what statistics cannot rule out a look-up then does not read."""
    send(server, "a", Sluice_Commit="force")
    table = sluice.catalog(server.directory).load_table("otel.logs")
    with table.transaction() as change:
        change.set_properties({"write.parquet.bloom-filter-enabled.column.severity_text": "true",
                               "write.parquet.bloom-filter-enabled.column.nobody": "true"})
    send(server, "b", "f", Sluice_Commit="force")
    before, after = sorted(server.directory.rglob("*.parquet"), key=lambda path: path.stat().st_mtime)
    for file, is_ruled_out in ((before, False), (after, True)):
        facts = json.loads(server.command("parquet", "explain", "--json", "--where", "severity_text in ('a0', 'd')",
                                          str(file), check=0).stdout)
        assert (facts["row_groups_ruled_out_by_bloom_filters"] == 1) == is_ruled_out
    assert server.command("parquet", "verify", str(after)).returncode == 0
    assert texts(server.directory) == ["a", "b", "f"]
    assert sorted(r["severity_text"] for r in sluice.read_duckdb(server.directory, "logs").to_pylist()) == ["a", "b", "f"]
