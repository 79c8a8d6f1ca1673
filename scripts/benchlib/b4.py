# SPDX-License-Identifier: Apache-2.0
"""B4: Parquet read into Arrow in memory, one thread: whole files, three columns, one trace of ten million
spans; from the file that each program wrote itself, and all from pyarrow's."""
import os
import pathlib
import sys
import tempfile

from benchlib.common import BUILD, record, run
from benchlib.parquet import CORE, DATA, GROUP_ROWS, PROGRAMS, ask, compare, facts, fast_directory, in_turn
from benchlib.parquet import names, peer, prepare, row_of

REPEATS = 5
COLUMNS = ("service_name", "duration_ns", "status_code")
TRACE_SPANS = 5


def milliseconds(seconds):
    return seconds * 1000


def rows_of_case(case, answers, labels):
    rows = [row_of(case, labels[program], answers[program], "ms", milliseconds) for program in answers]
    print(f"B4: {case}", file=sys.stderr)
    for row in rows:
        row["by_cpu"] = round(row["by_cpu"], 1)
    return compare(rows, False) if len(rows) > 1 else rows


def scan_in_turn(programs, files, rows, columns=()):
    answers = {program: [] for program in programs}
    for program in in_turn(programs):
        answer = ask(program, "scan", files[program], REPEATS, *columns)
        if answer["rows"] != rows:
            raise SystemExit(f"B4: {program} read {answer['rows']} rows of {files[program]}")
        answers[program].append(answer)
    return answers


def scans(home, labels):
    """Each program's own file of the spans is written first."""
    rows, count = [], facts("spans")["rows"]
    files = {program: f"{home}/{program}.parquet" for program in PROGRAMS}
    for program, path in files.items():
        ask(program, "write", DATA / "spans.arrow", path, GROUP_ROWS, 0)
    same = dict.fromkeys(PROGRAMS, files["pyarrow"])
    for what, columns in (("full scan", ()), ("3 of 17 columns", COLUMNS)):
        for whose, which in (("own file", files), ("pyarrow's file", same)):
            rows += rows_of_case(f"{what}, {whose}", scan_in_turn(PROGRAMS, which, count, columns), labels)
    return rows


def growth(home, labels):
    rows = []
    for data, count in (("spans_10k", "10,000"), ("spans_100k", "100,000"), ("spans", "1,000,000")):
        path = f"{home}/growth.parquet"
        peer("pyarrow", "write", DATA / f"{data}.arrow", path, GROUP_ROWS, 0)
        answers = scan_in_turn(PROGRAMS[:1], {"sluice": path}, facts(data)["rows"])
        rows += rows_of_case(f"full scan, {count} rows", answers, labels)
    return rows


def lookup_in_turn(programs, files, wanted):
    answers = {program: [] for program in programs}
    for program in in_turn(programs):
        answer = ask(program, "lookup", files[program], "trace_id", *wanted)
        if answer["rows"] != TRACE_SPANS * len(wanted):
            raise SystemExit(f"B4: {program} found {answer['rows']} rows in {files[program]}")
        answer["file_bytes"] = os.path.getsize(files[program])
        answers[program].append(answer)
    return answers


def lookups(home, labels):
    """The large files of the peers are made one at a time, and each read in turn with ours."""
    source, wanted = DATA / "lookup.parquet", (DATA / "lookup.txt").read_text().split()
    labels = {**labels, "sluice": "sluice (" + run([BUILD / "bench/bench_parquet", "lookup-method"]).strip() + ")"}
    files, own = {"sluice": f"{home}/lookup.parquet"}, {program: [] for program in PROGRAMS}
    run([BUILD / "src/app/cmd/sluice", "convert", source, files["sluice"], "--row-group-rows", GROUP_ROWS,
         "--page-rows", 2000, "--encoding", "trace_id=plain"],  # as tables in order of an id are written
        core=CORE)
    for program in PROGRAMS[1:]:
        files[program] = f"{home}/lookup-{program}.parquet"
        peer(program, "copy", source, files[program])
        for side, answers in lookup_in_turn(("sluice", program), files, wanted).items():
            own[side] += answers
        pathlib.Path(files[program]).unlink()
    same = lookup_in_turn(PROGRAMS, dict.fromkeys(PROGRAMS, source), wanted)
    case = "one trace of 10,000,000 spans, opened anew"
    return rows_of_case(f"{case}, own file", own, labels) + \
        rows_of_case(f"{case}, pyarrow's file", same, labels)


def b4():
    prepare("lookup")
    labels = names()
    with tempfile.TemporaryDirectory(prefix="sluice-b4-", dir=fast_directory()) as home:
        rows = scans(home, labels) + growth(home, labels)
    with tempfile.TemporaryDirectory(prefix="sluice-b4-", dir=fast_directory()) as home:
        rows += lookups(home, labels)
    record("B4", rows)
