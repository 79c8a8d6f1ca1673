# SPDX-License-Identifier: Apache-2.0
"""Manifests and manifest lists that iceberg-go writes, read as fastavro reads them."""
import json
import subprocess

import fastavro
import pytest

import deep
import sluice
from rows_json import assert_row, base64_text, parsed


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manifests")
    subprocess.run([deep.HOME / "iceberg/client", folder], check=True)
    return sorted(folder.glob("*.avro"))


def comparable(value):
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [comparable(v) for v in value]
    return base64_text(value) if isinstance(value, bytes) else value


def avro(word, path, *flags):
    return subprocess.run([sluice.BINARY, "avro", word, *flags, path], capture_output=True, text=True, check=True).stdout


def test_every_version(written):
    assert len(written) == 9
    for path in written:
        with open(path, "rb") as file:
            reader = fastavro.reader(file)
            records = list(reader)
        lines = avro("cat", path).splitlines()
        assert len(lines) == len(records) == (2 if path.name.startswith("snap") else 300)
        for line, record in zip(lines, records):
            assert_row(parsed(line), comparable(record))
        assert json.loads(avro("schema", path, "--json")) == json.loads(reader.metadata["avro.schema"])
