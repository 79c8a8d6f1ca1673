# SPDX-License-Identifier: Apache-2.0
"""Where the built tools are: BUILD in the environment, else build/ in the checkout."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def build():
    return pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def tool(build):
    def run(name, *args, ok=True):
        program = next(build.glob(f"test/**/{name}"))
        done = subprocess.run([program, *map(str, args)], capture_output=True, text=True)
        if ok:
            assert done.returncode == 0, done.stderr
        return done

    return run
