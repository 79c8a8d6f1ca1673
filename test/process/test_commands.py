# SPDX-License-Identifier: Apache-2.0
"""What the commands say: help of each, and of what was typed wrong; one-job commands and their exit codes."""
import json
import os
import re
import subprocess
import time

import pytest

import sluice


def run(*words, expect, env=None, **more):
    done = subprocess.run([str(sluice.BINARY), *map(str, words)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(env or {})}, **more)
    assert done.returncode == expect, (words, done.returncode, done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = sluice.Server(tmp_path_factory.mktemp("commands") / "data", "--publish-interval", "50ms",
                           "--otlp-expanded-bytes-max", "64KiB").start()
    yield server
    server.stop()


# ---- help ----

COMMANDS = re.findall(r"^  ([a-z-]+) +\S", run("--help", expect=0).stdout.split("Settings")[0], re.M)
BELOW = {"tables": ("list", "columns", "rebind", "repair"), "log": ("ls", "cat", "repair", "fork"),
         "config": ("check", "show", "reference")}


def test_the_global_help_fits_a_terminal():
    commands = run("--help", expect=0).stdout.split("Settings")[0]
    assert max(map(len, commands.splitlines())) <= 80
    assert re.search(r"^  clear-halt +\S", commands, re.M)


@pytest.mark.parametrize("words", [(c,) for c in COMMANDS] + [(c, b) for c in BELOW for b in BELOW[c]], ids=" ".join)
def test_each_command_has_a_help_of_its_own(words):
    text = run(*words, "--help", expect=0).stdout
    assert text == run(*words, "-h", expect=0).stdout == run("help", *words, expect=0).stdout
    assert text.startswith(f"Usage: sluice {' '.join(words)}")
    assert "\nExample:\n  " in text and "\nExit code:\n  " in text
    assert text.count("\n") < 40 and max(map(len, text.splitlines())) <= 100
    flags = text.split("\nFlags, beside")[-1].split("\nExample:")[0] if "\nFlags, beside" in text else ""
    for flag, value in re.findall(r"^  (--[a-z-]+)( [\[A-Z]\S*)? ", flags, re.M):
        done = run(*words, flag if value else flag + "=x", expect=2)
        assert done.stderr.startswith(f"sluice: {flag} " + ("needs a value" if value else "takes no value"))


def test_what_the_decisions_mean_is_said():
    text = " ".join(run("clear-halt", "--help", expect=0).stdout.split())
    assert "all before it count as published; publication goes on with the next one" in text
    assert "--accept what was published before counts as published" in text
    assert "--republish goes on from the newest commit that the table still has" in text


def test_no_command_at_all():
    done = run(expect=2)
    assert "clear-halt" in done.stderr and "Settings" not in done.stderr and not done.stdout
    assert run("--version", expect=0).stdout == run("version", expect=0).stdout
    assert "the nearest is --version" in run("--versoin", expect=2).stderr


# ---- words typed wrong ----

@pytest.mark.parametrize("words, says", [
    (("gen", "--itmes", "5"), "--itmes is no flag of gen; the nearest is --items"),
    (("gen", "--items"), "--items needs a value"),
    (("gen", "--items", "--json"), "--items needs a value"),
    (("serve", "--data-dri=x"), "--data-dri is no flag of serve; the nearest is --data-dir"),
    (("serve", "--publish-interval"), "--publish-interval needs a value"),
    (("serve", "--data-dir", "--api-port", "0"), "--data-dir needs a value"),
    (("serve", "--config"), "--config needs a value"),
    (("status", "--jsno"), "the nearest is --json"),
    (("tables", "rebind", "otel.logs", "--confirm", "--from", "0=1"), "--from is no flag of tables rebind"),
    (("gen", "--commit", "foo"), "auto, wait_for, remote or force"),
], ids=" ".join)
def test_a_wrong_flag_is_named(words, says):
    assert says in run(*words, expect=2).stderr


@pytest.mark.parametrize("flag, value", [
    ("--log-seal-after", "60"), ("--publish-interval", "10"), ("--otlp-force-timeout", "1.5")])
def test_a_duration_needs_its_unit(flag, value):
    done = run("config", "check", flag, value, expect=2)
    assert flag in done.stderr and "10s" in done.stderr
    run("config", "check", flag, value + "s", expect=0)


@pytest.mark.parametrize("flag, value", [
    ("--publish-interval", "0s"), ("--publish-interval", "0"), ("--otlp-memory-bytes", "0"),
    ("--otlp-force-timeout", "0s"), ("--log-seal-after", "0"), ("--publish-bytes", "0"),
    ("--publish-range-bytes", "0"), ("--publish-zstd-level", "0"), ("--publish-threads", "65"),
    ("--log-segment-bytes", "10MB"),  # no whole blocks
    ("--log-segment-bytes", "65GiB"), ("--api-port", "65536")])
def test_values_that_make_no_sense(flag, value):
    done = run("config", "check", flag, value, expect=2)
    assert flag[2:].replace("-", ".", 1).replace("-", "_") in done.stderr


def test_a_warehouse_that_cannot_be_opened():
    assert "publish.warehouse" in run("config", "check", "--publish-warehouse", "s3://a/b", expect=6).stderr


def test_unknown_variables_of_the_environment():
    done = run("config", "check", expect=2, env={"SLUICE_PUBLISH_INTERVL": "5s"})
    assert "SLUICE_PUBLISH_INTERVL; the nearest is SLUICE_PUBLISH_INTERVAL" in done.stderr
    assert "SLUICE_API_PORT" in run("config", "check", expect=2, env={"SLUICE_API_PORT": "x"}).stderr
    run("config", "check", expect=0, env={  # what Kubernetes says of a service of that name
        "SLUICE_SERVICE_HOST": "10.0.0.1", "SLUICE_SERVICE_PORT_OTLP": "4318", "SLUICE_PORT": "tcp://10.0.0.1:4318",
        "SLUICE_PORT_4318_TCP": "tcp://10.0.0.1:4318", "SLUICE_PORT_4318_TCP_PROTO": "tcp"})


def test_the_projects_own_variables_do_not_stop_the_server():
    sources = [*(sluice.TOP / "scripts").glob("*"), *(sluice.TOP / "test").rglob("*.py")]
    names = {name for path in sources if path.is_file()
             for name in re.findall(r"""(?:environ(?:\.get\(|\[)"|\$\{)(SLUICE_[A-Z_]+)""", path.read_text())}
    assert {"SLUICE_BINARY", "SLUICE_CACHE", "SLUICE_SEED"} <= names
    run("config", "check", expect=0, env=dict.fromkeys(names, "1"))


# ---- one job ----

def test_beside_a_server(server):
    directory = ("--data-dir", server.directory)
    run("gen", "--profile", "logs", "--items", 100, "--commit", "force", "--otlp-http-port", server.otlp, expect=0)
    assert run("tables", "list", *directory, expect=0).stdout == "otel.logs\n"
    assert json.loads(run("tables", "list", "--json", *directory, expect=0).stdout) == ["otel.logs"]
    for words in (("publish", "--once"), ("tables", "repair", "otel.logs"), ("serve",), ("demo",)):
        done = run(*words, *directory, "--otlp-http-port", 0, "--api-port", 0, "--log-port", 0, expect=75)
        assert f"another sluice process, pid {server.process.pid}, is using {server.directory}" in done.stderr


def test_gen_says_what_the_server_answered(server):
    """The message of the google.rpc.Status in it, which was printed with the bytes around it."""
    done = run("gen", "--items", 1000, "--otlp-http-port", server.otlp, expect=2)
    assert done.stderr == "sluice: 0 of 1000 items are stored: the server answered 413: the body has more than " \
        "65536 bytes\n"
    done = run("gen", "--items", 1, "--otlp-http-port", server.api, expect=2)
    assert "answered 404: nothing is served at /v1/traces\n" in done.stderr


def test_gen_says_why_receipts_cannot_be_kept(tmp_path):
    done = run("gen", "--items", 1, "--receipts", tmp_path / "no" / "x", expect=3)
    assert done.stderr.endswith("no/x: No such file or directory\n")


def test_publish_says_what_it_did(tmp_path):
    server = sluice.Server(tmp_path / "data", "--publish-interval", "1h").start()
    run("gen", "--profile", "logs", "--items", 500, "--otlp-http-port", server.otlp, expect=0)
    server.kill()
    done = server.command("publish", "--once", check=0)
    snapshot = sluice.catalog(server.directory).load_table("otel.logs").current_snapshot().snapshot_id
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert re.fullmatch(rf"500 rows in \d files, snapshot {snapshot}", lines["otel.logs"])
    assert lines["otel.spans"] == "nothing to publish"
    again = server.command("publish", "--once", check=0).stdout
    assert again.count("nothing to publish") == len(lines)
    assert "nothing to repair" in server.command("tables", "repair", "otel.logs", check=0).stdout
    assert "otel.lgos" in server.command("tables", "repair", "otel.lgos", check=3).stderr


def test_the_columns_of_one_table():
    page = (sluice.TOP / "docs/tables.md").read_text()
    text = run("tables", "columns", "otel.logs", expect=0).stdout
    assert text.startswith("## otel.logs\n") and text in page and text.count("## ") == 1
    assert "the nearest is otel.logs" in run("tables", "columns", "otel.log", expect=3).stderr


def test_each_reading_command_has_json():
    version = run("--version", expect=0).stdout.split()[1]
    assert json.loads(run("version", "--json", expect=0).stdout) == {"version": version}
    tables = json.loads(run("tables", "columns", "--json", expect=0).stdout)
    page = (sluice.TOP / "docs/tables.md").read_text()
    assert [t["table"] for t in tables] == re.findall(r"^## (\S+)", page, re.M)
    rows = [f"| {c['id']} | `{c['name']}` | {c['type']} | {'yes' if c['required'] else 'no'} | {c['source']} |"
            for t in tables for c in t["columns"]]
    assert rows == re.findall(r"^\| \d+ \|.*", page, re.M)
    assert f"Partitioned by {tables[0]['partition']}, sorted by {', '.join(tables[0]['sort'])}." in page
    assert json.loads(run("tables", "columns", "otel.logs", "--json", expect=0).stdout)[0] in tables
    shown = json.loads(run("config", "show", "--json", "--api-port", 81, expect=0).stdout)
    assert shown["api.port"] == 81 and shown["publish.interval"] == "10000ms" and shown["data_dir"] == "./sluice-data"


def test_what_config_show_prints_can_be_read(tmp_path):
    """Quotes and backslashes in a value ended the string, or were lost."""
    name = 'a "quoted" \\ name'
    shown = run("config", "show", "--publish-catalog-name", name, "--data-dir", tmp_path / "d", expect=0).stdout
    (tmp_path / "s.toml").write_text(shown)
    assert run("config", "show", "--config", tmp_path / "s.toml", expect=0).stdout == shown
    again = run("config", "show", "--json", "--config", tmp_path / "s.toml", expect=0).stdout
    assert json.loads(again)["publish.catalog_name"] == name


# ---- paths ----

@pytest.mark.parametrize("sign", "#?")
def test_paths_that_readers_cut_off_are_refused(tmp_path, sign):
    """PyIceberg and Polars take what follows for a fragment or a query: tables that they could not read."""
    for name, flags in (("in", ("--data-dir", tmp_path / f"in{sign}side")),
                        ("out", ("--data-dir", tmp_path / "out", "--publish-warehouse", f"file://{tmp_path}/a{sign}b"))):
        for words, code in ((("serve",), 2), (("config", "check"), 2), (("doctor",), 1)):
            done = run(*words, *flags, "--otlp-http-port", 0, "--api-port", 0, "--log-port", 0, expect=code)
            assert f"'{sign}' in its path" in done.stdout + done.stderr
        assert not list(tmp_path.iterdir())


def test_other_signs_in_paths_are_read_by_others(tmp_path):
    warehouse = tmp_path / "a%41 &+[ä]"
    server = sluice.Server(tmp_path / "data", "--publish-warehouse", f"file://{warehouse}", "--publish-interval", "50ms").start()
    run("gen", "--profile", "logs", "--items", 50, "--commit", "force", "--otlp-http-port", server.otlp, expect=0)
    run("doctor", "--data-dir", warehouse, "--otlp-http-port", 0, "--api-port", 0, "--log-port", 0, expect=0)
    server.stop()
    assert sluice.read_pyiceberg(server.directory, "logs").num_rows == 50
    assert sluice.duckdb_connection().execute(f"SELECT count(*) FROM iceberg_scan('{warehouse}/otel/logs')"
                                              ).fetchone() == (50,)


@pytest.mark.parametrize("words", [("parquet",), ("arrow",), ("avro",), ("convert",)], ids=" ".join)
def test_help_of_what_reads_files_names_their_exits(words):
    """Limits and memory ended them with codes that no help knew."""
    text = run(*words, "--help", expect=0).stdout
    exits = {line.split()[0] for line in text.partition("Exit code:")[2].splitlines() if line.strip()}
    assert {"0", "2", "3", "5", "6", "71", "74"} <= exits


# ---- a standard output that takes no more ----

@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("files")
    (directory / "a.ndjson").write_text('{"a":1}\n{"a":2}\n')
    for name in ("a.parquet", "a.arrow", "a.avro"):
        run("convert", directory / "a.ndjson", directory / name, expect=0)
    return directory


def refuses_to_lose(words):
    """0 before, and 74 for the same words: what a command prints is checked at its end."""
    assert run(*words, expect=0).stdout, words
    with open("/dev/full", "w") as full:
        done = subprocess.run([sluice.BINARY, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=60)
    assert (done.returncode, "standard output takes no more" in done.stderr) == (74, True), (words, done)


@pytest.mark.parametrize("words", [("--help",), ("convert", "--help"), ("version",), ("version", "--json"),
                                   ("config", "show"), ("config", "show", "--json"), ("config", "check"),
                                   ("config", "reference"), ("tables", "columns"),
                                   ("tables", "columns", "otel.logs", "--json")], ids=" ".join)
def test_full_output_of_what_is_known(words):
    refuses_to_lose(words)


@pytest.mark.parametrize("word", ["arrow schema", "arrow cat", "arrow verify", "avro schema", "avro cat",
                                  "parquet schema", "parquet meta", "parquet cat", "parquet head", "parquet explain",
                                  "parquet pages", "parquet verify"])
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_full_output_of_what_reads_files(files, word, more):
    refuses_to_lose((*word.split(), files / f"a.{word.split()[0]}", *more))


def test_closed_output_is_no_file_of_ours(tmp_path):
    """Lines of the log went into log/lock, which had got standard error's number."""
    assert subprocess.run(["sh", "-c", f"exec {sluice.BINARY} version >&-"], capture_output=True).returncode == 74
    command = f"exec {sluice.BINARY} serve --data-dir {tmp_path}/data --otlp-http-port 0 --api-port 0 --log-port 0"
    server = subprocess.Popen(["sh", "-c", command + " <&- >&- 2>&-"])
    deadline = time.monotonic() + 30
    while not (tmp_path / "data/log/lock").exists():  # it is made once signals are watched
        assert server.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    assert [os.readlink(f"/proc/{server.pid}/fd/{n}") for n in range(3)] == ["/dev/null"] * 3
    server.terminate()
    assert server.wait(timeout=30) == 0
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and b"OTLP/HTTP on" in p.read_bytes()]


def test_full_output_of_convert_leaves_the_file(files):
    refuses_to_lose(("convert", files / "a.ndjson", files / "b.csv", "--force"))
    assert (files / "b.csv").read_text() == "a\n1\n2\n"


def test_full_output_beside_a_server(server, tmp_path):
    run("gen", "--profile", "logs", "--items", 50, "--commit", "force", "--otlp-http-port", server.otlp, expect=0)
    ports = ("--data-dir", server.directory, "--otlp-http-port", server.otlp, "--api-port", server.api)
    for words in (("status",), ("status", "--json"), ("watermark",), ("watermark", "--json"), ("tables", "list"),
                  ("tables", "list", "--json"), ("gen", "--profile", "logs", "--items", 5)):
        refuses_to_lose((*words, *ports))


def test_full_output_of_one_job_commands(tmp_path):
    server = sluice.Server(tmp_path / "data", "--publish-interval", "1h").start()
    run("gen", "--profile", "logs", "--items", 50, "--otlp-http-port", server.otlp, expect=0)
    server.stop()
    where = ("--data-dir", server.directory, "--otlp-http-port", 0, "--api-port", 0, "--log-port", 0)
    for words in (("doctor",), ("doctor", "--json"), ("publish",), ("log", "ls"),
                  ("log", "ls", "--json"), ("log", "cat"), ("log", "repair")):
        refuses_to_lose((*words, *where))
