# SPDX-License-Identifier: Apache-2.0
"""gen --verify: finds every row of every receipt, once, as the seed says; and sees when it is not so."""
import json
import os
import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import LongType

import sluice


@pytest.fixture
def server(tmp_path):
    server = sluice.Server(tmp_path / "data", "--publish-interval", "50ms").start()
    yield server
    if server.process.poll() is None:
        server.stop()


def generate(server, path, *words, items=3000, profile="shop"):
    server.command("gen", "--profile", profile, "--items", str(items), "--request-items", "300", "--seed", "5",
                   "--receipts", str(path), "--otlp-http-port", str(server.otlp), *words, check=0)
    server.wait_published()


def verify(server, path, check):
    return json.loads(server.command("gen", "--verify", str(path), "--json", check=check).stdout)


def spans(server):
    return sluice.catalog(server.directory).load_table("otel.spans")


@pytest.mark.parametrize("profile", ["shop", "wild", "logs", "metrics"])
def test_all_rows_stand_once(server, tmp_path, profile):
    generate(server, tmp_path / "r", profile=profile, items=2000)
    generate(server, tmp_path / "other", profile="wild", items=300)
    result = verify(server, tmp_path / "r", 0)
    assert result["rows"] == result["equal"] == 2000 and result["differences"] == []
    assert result["missing"] == result["repeated"] == result["different"] == 0
    text = server.command("gen", "--verify", str(tmp_path / "r"), check=0).stdout
    assert text.startswith("7 requests, 2000 rows: 2000 equal, 0 missing")


def test_rows_that_are_gone(server, tmp_path):
    generate(server, tmp_path / "r")
    table = spans(server)
    seq = min(table.scan(selected_fields=("_sluice_seq",)).to_arrow()["_sluice_seq"].to_pylist())
    lost = table.scan(row_filter=f"_sluice_seq = {seq} and _sluice_index < 7").to_arrow().num_rows
    assert lost == 7
    table.delete(f"_sluice_seq = {seq} and _sluice_index < 7")
    result = verify(server, tmp_path / "r", 1)
    assert result["missing"] == 7 and result["equal"] == 2993 and len(result["differences"]) == 7
    assert f"row 0 of entry {seq} in group 0 stands 0 times" in "\n".join(result["differences"])


def test_a_file_that_is_dropped(server, tmp_path):
    generate(server, tmp_path / "r")
    spans(server).delete()
    result = verify(server, tmp_path / "r", 1)
    assert result["missing"] == 3000 and len(result["differences"]) == 10


def test_a_file_that_stands_twice(server, tmp_path):
    generate(server, tmp_path / "r")
    table = spans(server)
    path = next(iter(table.scan().plan_files())).file.file_path.removeprefix("file://")
    copy = path.replace(".parquet", "-copy.parquet")
    # Files that carry ids are refused by add_files; by name they are the same columns.
    data = pq.read_table(path)
    pq.write_table(data.replace_schema_metadata(None).cast(strip(data.schema)), copy)
    table.add_files([copy])
    result = verify(server, tmp_path / "r", 1)
    assert result["repeated"] == data.num_rows and result["equal"] == 3000
    assert "stands 2 times" in result["differences"][0]


def strip(schema):
    def type_of(t):
        if pa.types.is_map(t):
            return pa.map_(t.key_type, pa.field("value", type_of(t.item_type), t.item_field.nullable))
        if pa.types.is_list(t):
            return pa.list_(pa.field("element", type_of(t.value_type), t.value_field.nullable))
        if pa.types.is_struct(t):
            return pa.struct([pa.field(f.name, type_of(f.type), f.nullable) for f in t])
        return t
    return pa.schema([pa.field(f.name, type_of(f.type), f.nullable) for f in schema])


def add_position_deletes(table, data_file, rows, format="PARQUET"):
    """What Java and Spark write for merge-on-read; PyIceberg can read it, and has no call to write it."""
    from pyiceberg import manifest as m

    class DeletesWriter(m.ManifestWriterV2):
        def content(self):
            return m.ManifestContent.DELETES

        @property
        def _meta(self):
            return {**super()._meta, "content": "deletes"}

    def field(name, type_, id_):
        return pa.field(name, type_, False, {b"PARQUET:field_id": str(id_).encode()})
    path = data_file.file_path.removeprefix("file://").replace(".parquet", "-deletes.parquet")
    pq.write_table(pa.table([[data_file.file_path] * len(rows), rows],
                            schema=pa.schema([field("file_path", pa.utf8(), 2147483546),
                                              field("pos", pa.int64(), 2147483545)])), path)
    with table.transaction() as transaction:
        append = transaction.update_snapshot().fast_append()
        deletes = m.DataFile.from_args(
            content=m.DataFileContent.POSITION_DELETES, file_path="file://" + path, file_format=m.FileFormat(format),
            partition=data_file.partition, record_count=len(rows), file_size_in_bytes=os.path.getsize(path),
            _table_format_version=2)
        manifests = append._manifests

        def with_deletes():
            writer = DeletesWriter(table.spec(), table.schema(), append.new_manifest_output(), append.snapshot_id,
                                   "gzip")
            with writer:
                writer.add_entry(m.ManifestEntry.from_args(status=m.ManifestEntryStatus.ADDED,
                                                           snapshot_id=append.snapshot_id, data_file=deletes))
            return manifests() + [writer.to_manifest_file()]
        append._manifests = with_deletes
        append.commit()


def test_rows_that_position_deletes_take(server, tmp_path):
    generate(server, tmp_path / "r")
    table = spans(server)
    add_position_deletes(table, next(iter(table.scan().plan_files())).file, [0, 5, 17])
    assert spans(server).scan().to_arrow().num_rows == 2997
    result = verify(server, tmp_path / "r", 1)
    assert (result["missing"], result["equal"], result["repeated"], result["different"]) == (3, 2997, 0, 0)


def test_deletion_vectors_are_refused(server, tmp_path):
    generate(server, tmp_path / "r", items=600)
    table = spans(server)
    add_position_deletes(table, next(iter(table.scan().plan_files())).file, [0], "PUFFIN")
    said = server.command("gen", "--verify", str(tmp_path / "r"), check=6).stdout
    assert "otel.spans has position deletes in PUFFIN (a deletion vector?)" in said


def test_a_table_without_positions_stops_nobody_else(server, tmp_path):
    """Receipts of logs alone could not be checked because of a table that is none of theirs."""
    generate(server, tmp_path / "logs", profile="logs", items=600)
    generate(server, tmp_path / "spans", items=600)
    server.stop()
    with spans(server).update_schema() as update:
        update.delete_column("_sluice_seq")
    result = verify(server, tmp_path / "logs", 0)
    assert result["equal"] == 600 and result["unchecked"] == [
        "otel.spans could not be checked (these receipts do not concern it): otel.spans has no column _sluice_seq"]
    result = verify(server, tmp_path / "spans", 2)
    assert result["missing"] == 600 and result["unchecked"] == [
        "otel.spans could not be checked: otel.spans has no column _sluice_seq"]


def test_a_damaged_file_leaves_the_others(server, tmp_path):
    generate(server, tmp_path / "r", items=600)
    generate(server, tmp_path / "more", items=300)
    (path, count), *others = sluice.data_files(server.directory, "spans")
    assert others
    with open(path, "r+b") as file:
        file.seek(-20, os.SEEK_END)
        file.write(b"\xff" * 20)
    both = [verify(server, tmp_path / name, None) for name in ("r", "more")]
    assert sum(result["equal"] for result in both) == 900 - count
    assert all(os.path.basename(path) in text for result in both for text in result["unchecked"])
    assert [len(result["unchecked"]) for result in both] == [1, 1]
    assert server.command("gen", "--verify", str(tmp_path / "r")).returncode not in (0, 1)


def test_positions_that_were_promoted(server, tmp_path):
    generate(server, tmp_path / "r", items=600)
    with spans(server).update_schema() as update:
        update.update_column("_sluice_index", LongType())
        update.update_column("_sluice_group", LongType())
    table = spans(server)
    rows = table.scan().to_arrow()
    table.append(rows.slice(0, 1))  # one file of the new type beside those of the old one
    result = verify(server, tmp_path / "r", 1)
    assert (result["equal"], result["repeated"], result["missing"], result["other_rows"]) == (600, 1, 0, 0)


def test_receipts_that_are_not_there(server, tmp_path):
    generate(server, tmp_path / "r", profile="metrics", items=600)
    head, *lines = (tmp_path / "r").read_text().splitlines()
    requests = sorted(map(json.loads, lines), key=lambda line: line["request"])
    assert len(requests) == 2 and all(len(r["receipts"]) > 1 for r in requests)

    def verify_with(*receipts):
        lines = [json.dumps({**r, "receipts": kept}) for r, kept in zip(requests, receipts)]
        (tmp_path / "fewer").write_text("\n".join([head, *lines]) + "\n")
        return verify(server, tmp_path / "fewer", 1)
    one, other = (r["receipts"] for r in requests)
    lost = int(re.search(r"rows=(\d+)", one[-1])[1])
    result = verify_with(one[:-1], other)
    assert (result["different"], result["equal"], result["rows"]) == (lost, 600 - lost, 600 - lost)
    assert result["requests_without_receipt"] == 0 and len(result["differences"]) == 1
    assert re.fullmatch(rf"request 0: no receipt for {lost} rows of otel\.\w+", result["differences"][0])
    result = verify_with(one, [])
    assert (result["different"], result["equal"], result["requests_without_receipt"]) == (300, 300, 1)
    assert {text.split(":")[0] for text in result["differences"]} == {"request 1"}
    result = verify_with([], [])
    assert (result["different"], result["equal"], result["requests_without_receipt"]) == (600, 0, 2)
    assert verify_with(one[1:], other)["different"] > 0


def test_a_value_that_was_changed(server, tmp_path):
    generate(server, tmp_path / "r")
    table = spans(server)
    rows = table.scan().to_arrow()
    index = rows.schema.get_field_index("name")
    one = pc.and_(pc.equal(rows["_sluice_index"], 3), pc.equal(rows["_sluice_seq"], pc.min(rows["_sluice_seq"])))
    rows = rows.set_column(index, rows.schema.field(index), pc.if_else(one, "changed", rows["name"]))
    table.overwrite(rows)
    result = verify(server, tmp_path / "r", 1)
    assert (result["different"], result["equal"], result["missing"], result["repeated"]) == (1, 2999, 0, 0)
    assert re.search(r"row 3 of entry \d+ in otel.spans is not what was sent: name$", result["differences"][0])


def test_rows_of_others_are_passed_over(server, tmp_path):
    generate(server, tmp_path / "r", items=600)
    table = spans(server)
    rows = table.scan().to_arrow()
    foreign = rows.set_column(rows.schema.get_field_index("_sluice_log"), rows.schema.field("_sluice_log"),
                              pa.array(["f" * 32] * rows.num_rows, rows.schema.field("_sluice_log").type))
    table.append(foreign)
    result = verify(server, tmp_path / "r", 0)
    assert result["equal"] == 600 and result["other_rows"] == 600


def test_what_is_no_receipts_file(server, tmp_path):
    (tmp_path / "r").write_text("{}\n")
    assert "not a line of gen --receipts" in server.command("gen", "--verify", str(tmp_path / "r"), check=2).stderr
    (tmp_path / "r").write_text("")
    assert "is empty" in server.command("gen", "--verify", str(tmp_path / "r"), check=2).stderr
    server.command("gen", "--verify", str(tmp_path / "nothing"), check=3)


def test_no_catalog(tmp_path):
    other = sluice.Server(tmp_path / "nowhere")
    assert "holds no catalog" in other.command("gen", "--verify", "x", check=3).stderr
