# SPDX-License-Identifier: Apache-2.0
"""The README's and docs' commands and snippets, run as they stand; generated pages are up to date."""
import json
import os
import re
import subprocess
import sys
import time

import pytest

import sluice

README = (sluice.TOP / "README.md").read_text()


blocks = sluice.snippets


def blocks_of(section):
    return re.findall(r"^```sh\n(.*?)^```", README.split(f"## {section}\n")[1].split("\n## ")[0], re.M | re.S)


LOST, ELSEWHERE = blocks_of("When the machine is lost"), blocks_of("Publish on another machine")


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A directory in which the README's server runs and has stored something."""
    directory = tmp_path_factory.mktemp("readme")
    env = dict(os.environ, PATH=f"{sluice.BINARY.parent}:{os.environ['PATH']}",
               SLUICE_OTLP_HTTP_PORT="24318", SLUICE_API_PORT="28080", SLUICE_LOG_PORT="27800",
               SLUICE_PUBLISH_INTERVAL="100ms")
    serve = next(b for b in blocks("sh") if "sluice serve" in b)
    server = subprocess.Popen(["bash", "-c", "exec " + serve.strip()], cwd=directory, env=env,
                              stderr=subprocess.PIPE, text=True)
    while "OTLP/HTTP on" not in server.stderr.readline():
        assert server.poll() is None
    for profile in ("logs", "shop"):
        done = subprocess.run(["sluice", "gen", "--profile", profile, "--items", "500", "--json"],
                              env=env, cwd=directory, capture_output=True, text=True)
        assert done.returncode == 0 and json.loads(done.stdout)["items"] == 500, done.stderr
    deadline = time.monotonic() + 30
    while subprocess.run(["sluice", "watermark"], env=env, capture_output=True).returncode:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    yield directory, env
    server.terminate()
    assert server.wait(timeout=30) == 0


def test_shell_blocks(followed):
    directory, env = followed
    for block in blocks("sh"):
        if "sluice serve" in block or block in LOST + ELSEWHERE:
            continue
        done = subprocess.run(["bash", "-euc", block], cwd=directory, env=env, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, (block, done.stdout, done.stderr)


def test_the_log_ports_page(followed):
    directory, env = followed
    for block in blocks("sh", "docs/log_port.md"):
        done = subprocess.run(["bash", "-euc", block], cwd=directory, env=env, capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0 and done.stdout, (block, done.stdout, done.stderr)


def test_the_lost_machine(tmp_path):
    """The section's commands, one after the other; a server runs on until the next one is to start, or it is adopted."""
    env = dict(os.environ, PATH=f"{sluice.BINARY.parent}:{os.environ['PATH']}", SLUICE_OTLP_HTTP_PORT="24418",
               SLUICE_API_PORT="28180", SLUICE_LOG_PORT="27900", SLUICE_PUBLISH_INTERVAL="100ms")
    server, settings, told = None, "", []
    try:
        for block in LOST:
            if "sluice serve" in block:
                settings += "".join(line + "\n" for line in block.splitlines() if "sluice serve" not in line)
                server = subprocess.Popen(["bash", "-euc", settings + "exec " + block.splitlines()[-1]], cwd=tmp_path,
                                          env=env, stderr=subprocess.PIPE, text=True)
                while "OTLP/HTTP on" not in server.stderr.readline():
                    assert server.poll() is None
                continue
            if "log recover" in block:
                server.kill()
                server.wait()
            done = subprocess.run(["bash", "-euc", settings + block], cwd=tmp_path, env=env, capture_output=True,
                                  text=True, timeout=60)
            assert done.returncode == 0, (block, done.stdout, done.stderr)
            told.append(done.stdout)
    finally:
        server.kill()
        server.wait()
    assert "nothing was changed; --apply writes" in told[1] and "next: sluice serve" in told[1]
    assert "500 rows: 500 equal" in told[2] and "this log goes on as" in told[3], told


def test_the_other_machine(tmp_path):
    """The section's commands, one after the other."""
    env = dict(os.environ, PATH=f"{sluice.BINARY.parent}:{os.environ['PATH']}", SLUICE_OTLP_HTTP_PORT="24518",
               SLUICE_API_PORT="28280", SLUICE_LOG_PORT="27901")
    servers = []
    try:
        for block in ELSEWHERE:
            if "sluice serve" in block:
                servers.append(subprocess.Popen(["bash", "-euc", "exec " + block], cwd=tmp_path, env=env,
                                                stderr=subprocess.PIPE, text=True))
                while "API on" not in servers[-1].stderr.readline():
                    assert servers[-1].poll() is None
                continue
            done = subprocess.run(["bash", "-euc", block], cwd=tmp_path, env=env, capture_output=True, text=True,
                                  timeout=60)
            assert done.returncode == 0, (block, done.stdout, done.stderr)
            assert "500 rows: 500 equal" in done.stdout and "publishes log" in done.stdout
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    assert len(servers) == 2


def test_python_blocks(followed):
    directory, env = followed
    for block in blocks("python"):
        done = subprocess.run([sys.executable, "-c", block], cwd=directory, env=env,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "_sluice_seq" in done.stdout, (block, done.stderr)


def test_sql_blocks(followed):
    directory, _ = followed
    connection = sluice.duckdb_connection()
    here = os.getcwd()
    os.chdir(directory)
    try:
        for block in blocks("sql"):
            rows = connection.execute(block).fetchall()
            assert sum(count for _, count in rows) == 500
    finally:
        os.chdir(here)


def test_make_run(tmp_path):
    """The first of the two commands, as on a terminal-less machine: exit 0 and one JSON object."""
    assert "make run" in README and "make test" in README
    done = subprocess.run(["make", "-s", "run", f"ARGS=--json --items 2000 --data-dir {tmp_path}/d "
                           "--otlp-http-port 0 --api-port 0 --log-port 0"], cwd=sluice.TOP, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["rows_sent"] == report["rows_acknowledged"] == report["rows_published"] == 5000
    tables = sluice.catalog(report["data_dir"])
    found = sum(tables.load_table(t).scan().count() for t in tables.list_tables("otel"))
    assert found == 5000


@pytest.mark.parametrize("page, words", [("docs/config.md", ("config", "reference")),
                                         ("docs/tables.md", ("tables", "columns"))])
def test_generated_pages_are_up_to_date(page, words):
    text = subprocess.run([str(sluice.BINARY), *words], capture_output=True, text=True, check=True)
    assert text.stdout == (sluice.TOP / page).read_text(), f"sluice {' '.join(words)} > {page}"


def test_every_command_has_help_and_refuses_nonsense():
    listing = subprocess.run([str(sluice.BINARY), "--help"], capture_output=True, text=True)
    commands = re.findall(r"^  ([a-z-]+) +", listing.stdout.split("Settings")[0], re.M)
    assert {"serve", "demo", "gen", "doctor", "status", "tables", "watermark", "log", "config",
            "clear-halt", "version"} <= set(commands)
    for command in commands:
        done = subprocess.run([str(sluice.BINARY), command, "nonsense", "more"], capture_output=True,
                              text=True, timeout=20)
        assert done.returncode == 2 and done.stderr.startswith("sluice: "), (command, done)
    wrong = subprocess.run([str(sluice.BINARY), "serv"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "serve" in wrong.stderr


def test_unknown_settings_name_the_nearest(tmp_path):
    config = tmp_path / "sluice.toml"
    for text, expected in (("[otlp]\nhttp_prot = 1\n", f"{config}:2: unknown key otlp.http_prot; the "
                            "nearest is otlp.http_port"),
                           ("[publish]\ninterval = \"soon\"\n", "not a duration"),
                           ("data_dir\n", f"{config}:1: expected key = value"),
                           ("[otlp]\n[api]\nport = 1\n\nport = 2\n", f"{config}:5: key api.port stands on "
                            "line 3 already"),
                           ("[otlp]\n[api]\n[otlp]\n", f"{config}:3: section otlp stands on line 1 already"),
                           ("[publsh] # nothing below\n", f"{config}:1: unknown section publsh; the nearest "
                            "is publish"),
                           ("[otlp] x\n", f"{config}:1: malformed section"),
                           ("[otlp]\nhttp_port = 70000\n", "65535"),
                           ("log_level = \"loud\"\n", "debug, info, warn or error")):
        config.write_text(text)
        done = subprocess.run([str(sluice.BINARY), "config", "check", "--config", str(config)],
                              capture_output=True, text=True)
        assert done.returncode == 2 and expected in done.stderr, done.stderr
    config.write_text("# all is well\ndata_dir = \"/a b\"\n[otlp]\nhttp_port = 1_234 # port\n")
    shown = subprocess.run([str(sluice.BINARY), "config", "show", "--config", str(config),
                            "--api-port=99"], capture_output=True, text=True, check=True,
                           env={**os.environ, "SLUICE_PUBLISH_INTERVAL": "5s"}).stdout
    for line in ('data_dir = "/a b"', "http_port = 1234", "port = 99", 'interval = "5000ms"'):
        assert line in shown
    (tmp_path / "again.toml").write_text(shown)
    again = subprocess.run([str(sluice.BINARY), "config", "show", "--config",
                            str(tmp_path / "again.toml")], capture_output=True, text=True, check=True)
    assert again.stdout == shown, "what is shown can be read back"


def test_doctor(tmp_path):
    done = subprocess.run([str(sluice.BINARY), "doctor", "--json", "--data-dir", str(tmp_path / "d"),
                           "--otlp-http-port", "0", "--api-port", "0", "--log-port", "0"], capture_output=True, text=True)
    checks = {c["check"]: c for c in json.loads(done.stdout)}
    assert done.returncode == 0 and all(c["is_good"] for c in checks.values()) and "sync" in checks
    assert "would create" in checks["data dir"]["detail"]
    assert not list(tmp_path.iterdir()), "it leaves nothing behind"
