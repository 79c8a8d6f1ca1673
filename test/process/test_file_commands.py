# SPDX-License-Identifier: Apache-2.0
"""What the commands that read and write files do around them: signals, pipes, full disks, modes, wrong flags."""
import contextlib
import json
import os
import random
import signal
import stat
import subprocess
import threading
import time

import fastavro
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import sluice

ENDINGS = ("parquet", "arrow", "arrows", "ndjson", "csv", "avro")


def run(*words, expect=0, **more):
    done = subprocess.run([str(sluice.BINARY), *map(str, words)], capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == expect, (words, done.returncode, done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows in each format, more than one read of a pipe gives."""
    directory = tmp_path_factory.mktemp("files")
    rnd = random.Random(3)
    (directory / "a.ndjson").write_text("".join(
        json.dumps({"n": i, "text": rnd.randbytes(rnd.randrange(1, 30)).hex()}) + "\n" for i in range(30000)))
    for ending in ENDINGS:
        if ending != "ndjson":
            run("convert", directory / "a.ndjson", directory / f"a.{ending}")
    return directory


# ---- signals ----

@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "in.ndjson"
    line = json.dumps({"a": 1, "b": "x" * 40, "c": [1.5, 2.5], "d": "2026-11-30T00:00:00Z"}) + "\n"
    path.write_text(line * 200000)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_signals_leave_nothing_behind(tmp_path, large, number, ending):
    """OUT.<hex>.tmp stayed. Half of them are sent once it is there, half of them at any time."""
    out = tmp_path / f"out.{ending}"
    began = time.monotonic()
    run("convert", large, out)
    took, whole = time.monotonic() - began, out.stat().st_size
    out.unlink()
    ended = 0
    for i in range(16):
        process = subprocess.Popen([sluice.BINARY, "convert", large, out], stdout=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # nohup may have it ignored
        deadline = time.monotonic() + random.uniform(0, took * 1.1)
        while i % 2 and not list(tmp_path.iterdir()):
            pass
        while not i % 2 and time.monotonic() < deadline:
            pass
        process.send_signal(number)
        code = process.wait(timeout=60)
        assert code in (0, -number)
        assert [p.name for p in tmp_path.iterdir()] in ([], [out.name])
        assert code == -number or out.exists()
        if out.exists():
            assert out.stat().st_size == whole
            out.unlink()
        ended += code != 0
    assert ended >= 8


def test_signals_that_are_ignored_stay_so(tmp_path, large):
    """As below nohup."""
    process = subprocess.Popen([sluice.BINARY, "convert", large, tmp_path / "out.csv"], stdout=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    while not list(tmp_path.iterdir()):
        pass
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=60) == 0 and [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_files_that_may_not_become_larger(tmp_path, large):
    done = subprocess.run(["sh", "-c", f"ulimit -f 64; exec {sluice.BINARY} convert {large} out.csv"], cwd=tmp_path)
    assert done.returncode == -signal.SIGXFSZ and not list(tmp_path.iterdir())


# ---- pipes ----

@contextlib.contextmanager
def fifo(directory, source):
    """A named pipe with the ending of `source`, which somebody writes into it."""
    path = directory / f"pipe{source.suffix}"
    os.mkfifo(path)

    def write():
        with contextlib.suppress(BrokenPipeError), open(path, "wb") as pipe:
            pipe.write(source.read_bytes())
    writer = threading.Thread(target=write)
    writer.start()
    yield path
    writer.join(timeout=30)
    assert not writer.is_alive()


@pytest.mark.parametrize("words, ending", [("arrow cat", "arrows"), ("arrow cat", "arrow"), ("arrow verify", "arrows"),
                                           ("avro cat", "avro"), ("parquet cat", "parquet"),
                                           ("parquet verify", "parquet"), ("parquet verify --json", "parquet")])
def test_commands_read_pipes(files, words, ending):
    path = files / f"a.{ending}"
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        piped = run(*words.split(), "/dev/stdin", stdin=cat.stdout).stdout
    assert piped.replace("/dev/stdin", str(path)) == run(*words.split(), path).stdout


@pytest.mark.parametrize("ending", ENDINGS)
def test_convert_reads_pipes(tmp_path, files, ending):
    run("convert", files / f"a.{ending}", tmp_path / "want.csv")
    with fifo(tmp_path, files / f"a.{ending}") as pipe:
        run("convert", pipe, tmp_path / "named.csv")
    with subprocess.Popen(["cat", files / f"a.{ending}"], stdout=subprocess.PIPE) as cat:
        run("convert", "/dev/stdin", tmp_path / "said.csv", "--from", ending, stdin=cat.stdout)
    want = (tmp_path / "want.csv").read_bytes()
    assert want.count(b"\n") == 30001
    assert (tmp_path / "named.csv").read_bytes() == want == (tmp_path / "said.csv").read_bytes()


def test_what_comes_from_a_pipe_may_be_damaged(files):
    cut = (files / "a.arrows").read_bytes()[:-2000]
    done = subprocess.run([sluice.BINARY, "arrow", "cat", "/dev/stdin"], input=cut, capture_output=True)
    assert done.returncode == 2 and done.stdout.count(b"\n") < 30000
    assert b"/dev/stdin" in subprocess.run([sluice.BINARY, "arrow", "verify", "/dev/stdin"], input=b"",
                                           capture_output=True).stderr


@pytest.mark.parametrize("words", ["arrow cat", "avro schema", "parquet meta", "arrow verify"])
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/tmp"])
def test_what_is_no_file_is_refused(words, path):
    assert run(*words.split(), path, expect=2).stderr == f"sluice: {path}: not a regular file\n"


def test_the_format_of_a_pipe_is_said(tmp_path):
    text = run("convert", "/dev/stdin", tmp_path / "out.csv", expect=2, input="").stderr
    assert "/dev/stdin: the ending says the format: .parquet" in text
    text = run("convert", "/dev/stdin", tmp_path / "out.csv", "--from", "xls", expect=2, input="").stderr
    assert "--from .xls: the ending says the format" in text
    run("convert", "/dev/stdin", tmp_path / "out.csv", "--from", ".ndjson", input='{"a":1}\n')
    assert (tmp_path / "out.csv").read_text() == "a\n1\n"


# ---- a full disk ----

def test_a_full_disk_is_75_and_named_in_the_help(tmp_path, files):
    volume = tmp_path / "volume"
    volume.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", volume], capture_output=True).returncode:
        pytest.skip("mounting needs privileges that this machine does not give")
    try:
        done = run("convert", files / "a.ndjson", volume / "out.csv", expect=75)
        assert "No space left" in done.stderr and not list(volume.iterdir())
        with subprocess.Popen(["cat", files / "a.arrows"], stdout=subprocess.PIPE) as cat:
            run("arrow", "cat", "/dev/stdin", stdin=cat.stdout, env={**os.environ, "TMPDIR": str(volume)}, expect=75)
    finally:
        subprocess.run(["umount", "-l", volume], check=True)
    for command in ("convert", "arrow", "avro", "parquet"):
        assert "\n  75  no room for " in run(command, "--help").stdout


# ---- modes ----

@pytest.mark.parametrize("mask, mode", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0o777, 0)], ids=oct)
def test_modes_follow_the_umask(tmp_path, files, mask, mode):
    run("convert", files / "a.ndjson", tmp_path / "out.csv", preexec_fn=lambda: os.umask(mask))
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755, 0o444], ids=oct)
def test_a_replaced_file_keeps_its_mode(tmp_path, files, mode):
    out = tmp_path / "out.csv"
    out.write_text("old")
    out.chmod(mode)
    run("convert", files / "a.ndjson", out, "--force", preexec_fn=lambda: os.umask(0o027))
    assert stat.S_IMODE(out.stat().st_mode) == mode and out.stat().st_size > 1000


def test_until_it_is_whole_it_is_its_owners_alone(tmp_path, large):
    process = subprocess.Popen([sluice.BINARY, "convert", large, tmp_path / "out.csv"], stdout=subprocess.DEVNULL)
    while not (names := list(tmp_path.iterdir())):
        pass
    assert stat.S_IMODE(names[0].stat().st_mode) == 0o600 and names[0].suffix == ".tmp"
    assert process.wait(timeout=60) == 0


# ---- what is asked wrongly ----

@pytest.mark.parametrize("flag, values, most", [("--row-group-rows", (0, 2**31, 2**64, "-1", "1e3"), 2**31 - 1),
                                                ("--page-rows", (0, 2**31, "2e3"), 2**31 - 1),
                                                ("--threads", (0, 65, 99999999999), 64),
                                                ("--page-version", (0, 3), 2)])
def test_numbers_that_cannot_be_kept_are_refused(tmp_path, files, flag, values, most):
    for value in values:
        text = run("convert", files / "a.ndjson", tmp_path / "out.parquet", flag, value, expect=2).stderr
        assert text == f"sluice: {flag} {value}: a whole number from 1 to {most} is needed\n"
    assert not list(tmp_path.iterdir())
    for value in (100 if flag.endswith("-rows") else 1, most):
        run("convert", files / "a.ndjson", tmp_path / "out.parquet", flag, value, "--force")


def test_arrow_verify_says_each_file_as_json(tmp_path, files):
    """A damaged file had no line."""
    (tmp_path / "cut").write_bytes((files / "a.arrow").read_bytes()[:-300])
    (tmp_path / "other").write_bytes(b"nothing of this kind" * 10)
    names = [files / "a.arrow", tmp_path / "cut", tmp_path / "none", tmp_path / "other", files / "a.arrows"]
    done = run("arrow", "verify", "--json", *names, expect=2)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [s["file"] for s in said] == list(map(str, names))
    assert [s["ok"] for s in said] == [True, False, False, False, True]
    assert [s["rows"] for s in said if s["ok"]] == [30000, 30000] and said[0]["container"] == "file"
    assert [s["status"] for s in said if not s["ok"]][1] == "NOT_FOUND" and done.stderr.count("\nsluice: ") == 2
    for bad in (s for s in said if not s["ok"]):
        assert bad["error"] in done.stderr and "offset" in bad
    assert run("arrow", "verify", "--json", tmp_path / "none", expect=3).stdout.count("\n") == 1


@pytest.mark.parametrize("kind, value, where", [
    ("string", "XXXX", "v"), (["null", "string"], "XXXX", "v"), ({"type": "array", "items": "string"}, ["a", "XXXX"], "v"),
    ({"type": "map", "values": "string"}, {"k": "XXXX"}, "v"), ({"type": "map", "values": "long"}, {"XXXX": 1}, "v"),
    ({"type": "record", "name": "inner", "fields": [{"name": "t", "type": "string"}]}, {"t": "XXXX"}, "v")], ids=str)
def test_avro_text_that_is_none(tmp_path, kind, value, where):
    """It became U+FFFD, and the exit code was 0: convert refuses it."""
    path = tmp_path / "in.avro"
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, {"name": "v", "type": kind}]}
    with open(path, "wb") as file:
        fastavro.writer(file, schema, [{"n": 1, "v": value}], codec="null")
    assert "XXXX" in run("avro", "cat", path).stdout
    data = path.read_bytes()
    for wrong in (b"\xff\xfe\xfd\xfc", b"\xc0\x80ab", b"\xed\xa0\x80a", b"abc\xc3"):
        path.write_bytes(data.replace(b"XXXX", wrong))
        done = run("avro", "cat", path, expect=2)
        assert not done.stdout and done.stderr == f"sluice: {path}: Avro: column {where}: text that is no UTF-8\n"
        assert run("avro", "cat", "--columns", "n", path).stdout == '{"n":1}\n'
        run("avro", "cat", "--columns", "v", path, expect=2)
        run("convert", path, tmp_path / "out.ndjson", expect=2)


def test_columns_of_flags_have_the_same_names(tmp_path):
    """--encoding and --bloom wanted l.list.element, where --columns takes l.element."""
    table = pa.table({
        "l": pa.array([["a", "b"], None, ["c"]]), "s": pa.array([{"x.y": "1", "z": [{"element": "d"}]}] * 3),
        "m": pa.array([[("k", "v")]] * 3, pa.map_(pa.string(), pa.string())),
        "n": pa.array([[("k", ["v"])]] * 3, pa.map_(pa.string(), pa.list_(pa.string()))),
        'q"q': pa.array(["e"] * 3), "a.b": pa.array(["f"] * 3)})
    with pa.OSFile(str(tmp_path / "in.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    leaves = {  # the format's path: as --columns, and as --encoding and --bloom took it before
        "l.list.element": ("l.element", "l.list.element", "l", "l.list", '"l".element', '"l"."element"'),
        "s.x.y": ('s."x.y"', "s.x.y", '"s"."x.y"'),
        "s.z.list.element.element": ("s.z.element.element", "s.z.list.element.element", "s.z", "s.z.element"),
        "m.key_value.key": ("m.key", "m.key_value.key"), "m.key_value.value": ("m.value", "m.key_value.value"),
        "n.key_value.value.list.element": ("n.value.element", "n.key_value.value.list.element", "n.value",
                                           "n.value.list.element"),
        'q"q': ('q"q', '"q""q"'), "a.b": ("a.b", '"a.b"')}
    out = tmp_path / "out.parquet"
    for leaf, names in leaves.items():
        for name in names:
            run("convert", tmp_path / "in.arrow", out, "--force", "--bloom", name, "--encoding", f"{name}=delta-bytes")
            group = pq.ParquetFile(out).metadata.row_group(0)
            columns = [group.column(i) for i in range(group.num_columns)]
            assert [c.path_in_schema for c in columns if "DELTA_BYTE_ARRAY" in c.encodings] == [leaf], name
            run("convert", tmp_path / "in.arrow", out, "--force", "--bloom", name)
            whole = out.read_bytes()
            run("convert", tmp_path / "in.arrow", out, "--force", "--bloom", names[0])
            assert out.read_bytes() == whole
        run("parquet", "cat", "--columns", names[0], out)
    for wrong in ("l.elements", "l.item", "l.element.x", "m.keys", "l.", "", '"l', '"l"x', "s.x", "l.list.list"):
        for words in (("--bloom", wrong), ("--encoding", f"{wrong}=plain")):
            text = run("convert", tmp_path / "in.arrow", out, "--force", *words, expect=2).stderr
            assert f"no column {wrong}" in text
