# SPDX-License-Identifier: Apache-2.0
"""Tables that others make, change and append to, and that Sluice goes on writing (DESIGN section 6)."""
import pyarrow as pa
import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from pyiceberg.types import IntegerType, LongType, StringType

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
    send(server, "b", Sluice_Commit="force")
    assert texts(server.directory) == ["a", "b"]
    assert sluice.read_pyiceberg(server.directory, "logs")["severity_number"].to_pylist() == [0, 0]


def test_a_renamed_column_halts_that_lane_and_is_named(server):
    send(server, "a", Sluice_Commit="force")
    table = sluice.catalog(server.directory).load_table("otel.logs")
    with table.update_schema() as update:
        update.rename_column("body", "message")
    send(server, "b")
    lane = halted(server)
    assert "body" in lane["reason"] and "clear-halt otel.logs" in lane["remedy"]
    assert server.get("/readyz")[0] == 503 and "otel.logs is halted" in server.get("/readyz")[1]
    refused = server.post("logs", logs_service_pb2.ExportLogsServiceRequest.FromString(
        b"\x0a\x06\x12\x04\x12\x02\x10\x09").SerializeToString(), Sluice_Commit="force")
    assert refused.code == 409
    send(server, "c")  # ingest goes on
    with sluice.catalog(server.directory).load_table("otel.logs").update_schema() as update:
        update.rename_column("message", "body")
    words = lane["remedy"].split("sluice ")[1].split()
    server.command(*words, check=0)
    server.wait_published()
    assert texts(server.directory) == ["a", "b", "c"]


def test_a_halt_outlives_the_process(server):
    send(server, "a", Sluice_Commit="force")
    table = sluice.catalog(server.directory).load_table("otel.logs")
    with table.update_schema() as update:
        update.rename_column("body", "message")
    send(server, "b")
    halted(server)
    server.stop()
    server.start()
    assert server.lane("otel.logs")["state"] == "halted"


def test_E17_unreadable_metadata_is_repaired_from_the_one_before(server):
    send(server, "a", Sluice_Commit="force")
    send(server, "b", Sluice_Commit="force")
    location = sluice.catalog(server.directory).load_table("otel.logs").metadata_location
    with open(location.removeprefix("file://"), "wb") as f:
        f.write(b"{")
    send(server, "c")
    lane = halted(server)
    assert lane["remedy"].startswith("sluice tables repair otel.logs")
    server.stop()
    looked = server.command("tables", "repair", "otel.logs", check=0)
    assert "would go back" in looked.stdout
    server.command("tables", "repair", "otel.logs", "--confirm", check=0)
    server.start()
    # What the lost commit held is behind the checkpoint: the operator has it published again.
    server.command("clear-halt", "otel.logs", "--confirm", "--republish", check=0)
    server.wait_published()
    assert texts(server.directory) == ["a", "b", "c"]


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
