# SPDX-License-Identifier: Apache-2.0
"""B3: Parquet written from Arrow in memory, one thread, beside polars, pyarrow, DuckDB and DataFusion."""
import os
import pathlib
import sys

from benchlib.common import record
from benchlib.parquet import DATA, GROUP_ROWS, PROGRAMS, ask, compare, facts, fast_directory, in_turn, names
from benchlib.parquet import peer, prepare, row_of

REPEATS = 2
COPIES = int(os.environ.get("B3_COPIES", "20"))
CASES = (("spans", GROUP_ROWS), ("spans", 1 << 20), ("logs", GROUP_ROWS), ("wild", GROUP_ROWS),
         ("lineitem", GROUP_ROWS), ("lineitem", 1 << 20))


def check(source, target, rows, is_ours):
    """After the timer: what was written is what was given, and has what is asked of all; ours a page index."""
    found = peer("any", "check", source, target)
    wrong = found["rows"] != rows or found["compression"] != "ZSTD" or not found["has_statistics"]
    if wrong or is_ours and not found["has_index"]:
        raise SystemExit(f"B3: {target} is not what was asked for: {found}")
    return found


def write_in_turn(programs, data, row_group_rows):
    """The answers of each program; the file of each is looked at once."""
    source, answers, checked = DATA / f"{data}.arrow", {program: [] for program in programs}, set()
    target = pathlib.Path(fast_directory()) / f"sluice-b3-{os.getpid()}.parquet"
    try:
        for program in in_turn(programs):
            answers[program].append(ask(program, "write", source, target, row_group_rows, REPEATS))
            if program not in checked:
                found = check(source, target, facts(data)["rows"], program == "sluice")
                answers[program][0]["has_page_index"] = found["has_index"]
                checked.add(program)
            target.unlink()
    finally:
        target.unlink(missing_ok=True)
    return answers


def rows_of_case(case, programs, data, row_group_rows, labels):
    print(f"B3: {case}", file=sys.stderr)
    answers, arrow_mb = write_in_turn(programs, data, row_group_rows), facts(data)["arrow_bytes"] / 1e6
    rows = [row_of(case, labels[program], answers[program], "MB/s of Arrow", lambda s: arrow_mb / s)
            for program in programs]
    for row, program in zip(rows, programs):
        row["has_page_index"] = "yes" if answers[program][0]["has_page_index"] else "no"
    if len(rows) > 1:
        compare(rows, True)
        rows[0]["size_to_smallest"] = round(rows[0]["file_mb"] / min(row["file_mb"] for row in rows[1:]), 3)
    return rows


def memory_row():
    """What a file many times as long takes, beside what it is made of."""
    target = pathlib.Path(fast_directory()) / f"sluice-b3-{os.getpid()}.parquet"
    try:
        answer = ask("sluice", "grow", DATA / "spans.arrow", target, GROUP_ROWS, COPIES)
    finally:
        target.unlink(missing_ok=True)
    gb = facts("spans")["arrow_bytes"] * COPIES / 1e9
    return row_of(f"spans {COPIES} times over in one file, {gb:.1f} GB of Arrow", "sluice", [answer],
                  "MB/s of Arrow", lambda s: gb * 1000 / s)


def b3():
    prepare()
    labels, rows = names(), []
    labels["duckdb"] += ", its own table"
    for data, row_group_rows in CASES:
        rows += rows_of_case(f"{data}, row groups of {row_group_rows:,}", PROGRAMS, data, row_group_rows, labels)
    for data, count in (("spans_10k", "10,000"), ("spans_100k", "100,000"), ("spans", "1,000,000")):
        rows += rows_of_case(f"spans, {count} rows", PROGRAMS[:1], data, GROUP_ROWS, labels)
    rows.append(memory_row())
    record("B3", rows)
