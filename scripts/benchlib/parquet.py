# SPDX-License-Identifier: Apache-2.0
"""What B3 and B4 share: their data, the programs side by side, and rows of what they answered."""
import json
import pathlib
import statistics

from benchlib.common import BUILD, PAIRS, PYTHON, TOP, run, spread

DATA = TOP / "build/bench-data"
LIB = TOP / "scripts/benchlib"
PROGRAMS = ("sluice", "polars", "pyarrow", "duckdb", "datafusion")
CORE = 1
GROUP_ROWS = 122880


def prepare(*more):
    run([PYTHON, LIB / "data.py", DATA, *more])


def fast_directory():
    """Where files are written to and read from: memory, if there is a file system of it."""
    return "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else TOP / "build"


def facts(data):
    return json.loads((DATA / f"{data}.json").read_text())


def peer(program, *words):
    return json.loads(run([PYTHON, LIB / "peers.py", program, *words], core=CORE))


def ask(program, *words):
    """bench_parquet or a peer, in a process of its own."""
    if program == "sluice":
        return json.loads(run([BUILD / "bench/bench_parquet", *words], core=CORE))
    return peer(program, *words)


def in_turn(programs):
    """Every program PAIRS times, in one order and then in the other."""
    return [program for pair in range(PAIRS) for program in (programs if pair % 2 == 0 else programs[::-1])]


def names():
    """The programs' names with their versions."""
    code = ("import importlib.metadata as m; "
            "print(*(f'{p} {m.version(p)}' for p in ('polars', 'pyarrow', 'duckdb', 'datafusion')), sep='|')")
    found = dict(zip(PROGRAMS[1:], run([PYTHON, "-c", code]).strip().split("|")))
    return {"sluice": "sluice", **found, "datafusion": f"{found['datafusion']} (arrow-rs)"}


def row_of(case, name, answers, unit, speed):
    """One program in one case; `speed` makes the figure of a number of seconds."""
    rest = {
        "case": case, "program": name, "unit": unit,
        "figure": spread([speed(statistics.median(a["seconds"] or [a["first_seconds"]])) for a in answers]),
        "by_cpu": round(speed(statistics.median(c for a in answers for c in a["cpu_seconds"])), 2),
        "first": round(speed(statistics.median(a["first_seconds"] for a in answers)), 2),
        "peak_mib_over_input": round(max(a["peak_over_mib"] for a in answers))}
    if answers[0].get("file_bytes"):
        rest["file_mb"] = round(answers[0]["file_bytes"] / 1e6, 1)
    return rest


def compare(rows, is_better_high):
    """Ours against the peer that is best at each figure; first wall, then processor time."""
    ours, peers = rows[0], rows[1:]
    for name, key, get in (("ratio", "figure", lambda row: row["figure"]["median"]),
                           ("ratio_by_cpu", "by_cpu", lambda row: row["by_cpu"])):
        best = (max if is_better_high else min)(get(row) for row in peers)
        ours[name] = round(get(ours) / best if is_better_high else best / get(ours), 2)
    return rows
