# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import pytest  # noqa: E402

import deep  # noqa: E402


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    shell = deep.Spark(tmp_path_factory.mktemp("spark"))
    yield shell
    shell.end()
