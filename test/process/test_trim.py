# SPDX-License-Identifier: Apache-2.0
"""An operator gives up what a table that stands still does not take: the gap is durable, recorded in the next
commit, and progress resumes (TE9)."""
import http.client
import json
import subprocess
import threading

import pytest

import faults
import ledger
import sluice

FLAGS = ("--publish-interval", "50ms", "--publish-halt-confirm", "1s", "--publish-threads", "1")


def trimmed(server, table="logs"):
    """What the commits of the table say, newest last."""
    history = sluice.catalog(server.directory).load_table(("otel", table)).metadata.snapshots
    found = [{k.split(".", 3)[-1]: v for k, v in s.summary.additional_properties.items()} for s in history]
    return [entry["trimmed"] for entry in found if "trimmed" in entry]


def test_a_server_of_another_directory_is_not_asked(tmp_path, request):
    """Whatever served the API port was told to give up rows, whosever they were."""
    one = sluice.Server(tmp_path / "one", "--publish-interval", "1h").start()
    other = sluice.Server(tmp_path / "other", "--publish-interval", "1h").start()
    for server in (one, other):
        request.addfinalizer(server.kill)
        server.post("logs", ledger.Ledger().new().body)
    words = [("log", "trim", "--force", "--table", "otel.logs"), ("clear-halt", "otel.logs", "--confirm", "--accept"),
             ("backup", "--to", str(tmp_path / "copy"))]

    def run(directory, word):
        return subprocess.run([str(sluice.BINARY), *word, "--data-dir", str(directory), "--api-port", str(one.api)],
                              capture_output=True, text=True, timeout=60)

    for word in words:
        done = run(tmp_path / "other", word)
        assert done.returncode == 75 and f"pid {other.process.pid}: give its --api-port" in done.stderr, done
        done = run(tmp_path / "nothing", word)
        assert done.returncode == 3 and str(tmp_path / "nothing") in done.stderr, done
    assert one.lane("otel.logs")["lag_rows"] == other.lane("otel.logs")["lag_rows"] == 3
    assert not (tmp_path / "copy").exists() and not (tmp_path / "nothing").exists()
    other.kill()
    assert run(tmp_path / "other", words[0]).stdout == "otel.logs: 3 rows in 1 entries are given up\n"
    assert one.lane("otel.logs")["lag_rows"] == 3


def test_what_a_kill_left_unproven_is_said(tmp_path, request):
    """What was acknowledged last was not to be seen, and nothing told that it is there."""
    server = sluice.Server(tmp_path / "data", "--publish-interval", "1h").start()
    request.addfinalizer(server.kill)
    for attempt in range(20):
        receipt, = server.post("logs", ledger.Ledger().new().body).receipts
        server.kill()  # before another unit proves it, as a rule
        shown = server.command("log", "cat", check=0)
        is_shown = any(line.startswith(f"0/{receipt[3]} ") for line in shown.stdout.splitlines())
        assert is_shown or "more records" in shown.stderr, shown
        server.start()
        lines = server.command("log", "cat", check=0).stdout.splitlines()
        assert any(line.startswith(f"0/{receipt[3]} ") for line in lines)
        if not is_shown:
            return
    raise AssertionError("every entry was proven at once")


@pytest.mark.parametrize("is_running", [True, False])
def test_what_was_given_up(tmp_path, request, is_running):
    server = sluice.Server(tmp_path / "data", *FLAGS).start()
    request.addfinalizer(server.kill)
    book = ledger.Ledger()
    book.must_send(server, book.new())
    server.wait_published()
    data, aside = (server.directory / "warehouse/otel/logs" / name for name in ("data", "aside"))
    data.rename(aside)
    data.write_text("")  # no file can be written below it
    stuck = [book.must_send(server, book.new()) for _ in range(5)]
    book.must_send(server, book.new("spans"))
    faults.wait_for(lambda: server.lane("otel.logs")["state"] == "retrying", what="the table's trouble")
    waited = {}

    def force():
        one = book.new()
        book.requests.remove(one)
        try:
            waited["answer"] = server.post("logs", one.body, path="/v1/logs?commit=force")
        except (OSError, http.client.HTTPException):
            pass  # the server was killed

    waiter = threading.Thread(target=force)
    waiter.start()
    faults.wait_for(lambda: server.lane("otel.logs")["lag_rows"] == 18, what="the one that waits")
    last = max(r.receipt[3] for r in stuck)
    assert server.command("log", "trim", "--table", "otel.logs").returncode == 2
    assert server.command("log", "trim", "--force").returncode == 2
    assert server.command("log", "trim", "--force", "--table", "otel.nothing").returncode == 3
    if not is_running:
        server.kill()
        server.api = 1
    told = server.command("log", "trim", "--force", "--table", "otel.logs", check=0)
    assert told.stdout == "otel.logs: 18 rows in 6 entries are given up\n", told.stdout
    waiter.join()
    if is_running:
        assert waited["answer"].headers["Sluice-Boundary"] != "visible"
        server.kill()
    server.start()
    assert server.lane("otel.logs")["lag_rows"] == 0
    data.unlink()
    aside.rename(data)
    for one in stuck:
        book.requests.remove(one)
        answer = json.loads(server.get("/v1/receipts/" + "/".join(map(str, one.receipt[:4])))[1])
        assert not answer["boundaries"]["visible"]["reached"], answer
    book.must_send(server, book.new())
    server.wait_published()
    (gap,) = trimmed(server)
    group, first, to = (int(n) for n in gap.replace("-", ":").split(":"))
    assert (group, first) == (0, book.requests[0].receipt[3] + 1) and to > last
    for one in stuck:
        answer = json.loads(server.get("/v1/receipts/" + "/".join(map(str, one.receipt[:4])))[1])
        assert not answer["boundaries"]["visible"]["reached"], answer
    book.must_send(server, book.new())
    server.wait_published()
    assert len(trimmed(server)) == 1
    server.stop()
    book.check(server.directory, with_leftovers=True)


def test_before_a_number(tmp_path, request):
    server = sluice.Server(tmp_path / "data", *FLAGS[2:], "--publish-interval", "1h").start()
    request.addfinalizer(server.kill)
    book = ledger.Ledger()
    sent = [book.must_send(server, book.new(table)) for _ in range(3) for table in ("logs", "spans")]
    before = sent[3].receipt[3]
    told = server.command("log", "trim", "--force", "--before", str(before), check=0)
    assert "otel.logs: 6 rows in 2 entries" in told.stdout and "otel.spans: 3 rows in 1 entries" in told.stdout
    for one in sent[:3]:
        book.requests.remove(one)
    again = server.command("log", "trim", "--force", "--before", str(before), check=0)
    assert again.stdout == "nothing is given up\n"
    server.stop()  # publishes the rest
    book.check(server.directory, with_leftovers=True)
