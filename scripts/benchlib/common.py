# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: building, running on a core, keeping results, the table of them."""
import json
import os
import pathlib
import platform
import statistics
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = TOP / "build/bench"
OUT = TOP / "build/bench-results"
PYTHON = TOP / "build/venv/bin/python"
PAIRS = int(os.environ.get("PAIRS", "5"))


def run(command, core=None, **more):
    words = [str(w) for w in command]
    if core is not None:
        words = ["taskset", "-c", str(core), *words]
    return subprocess.run(words, check=True, capture_output=True, text=True, errors="replace", cwd=TOP,
                          **more).stdout


def build():
    if not (BUILD / "build.ninja").exists():
        run(["meson", "setup", BUILD, "--buildtype=release", "-Dtests=false", "-Dbench=true"])
    run(["ninja", "-C", BUILD])


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def record(name, rows):
    OUT.mkdir(parents=True, exist_ok=True)
    about = {"cores": os.cpu_count(), "kernel": platform.release(), "date": time.strftime("%Y-%m-%d"),
             "load": round(os.getloadavg()[0], 1),
             "commit": run(["git", "rev-parse", "--short", "HEAD"]).strip()}
    with open(OUT / f"{name}.json", "w") as f:
        for row in rows:
            f.write(json.dumps({"benchmark": name, **row, **about}) + "\n")
            print(json.dumps(row))


def table():
    """docs/benchmarks.md from what was measured last."""
    out = [(TOP / "bench/head.md").read_text()]
    for path in sorted(OUT.glob("*.json")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if not lines:
            continue
        about = lines[0]
        out.append(f"\n## {about['benchmark']}\n\nMeasured {about['date']} on {about['cores']} cores, "
                   f"Linux {about['kernel']}, commit {about['commit']}, load average {about['load']}.\n\n")
        hidden = {"benchmark", "cores", "kernel", "date", "commit", "load", "loop_fdatasync_a_second",
                  "loop_direct_a_second"}
        keys = [k for k in dict.fromkeys(k for line in lines for k in line) if k not in hidden]
        out.append("| " + " | ".join(keys) + " |\n|" + "---|" * len(keys) + "\n")

        def cell(value):
            if isinstance(value, dict):
                digits = ",.0f" if value["median"] >= 100 else ".3g"
                return f"{value['median']:{digits}} ({value['min']:{digits}}-{value['max']:{digits}})"
            if isinstance(value, float):
                return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
            return f"{value:,}" if isinstance(value, (int, float)) else str(value if value is not None else "")
        for line in lines:
            out.append("| " + " | ".join(cell(line.get(k)) for k in keys) + " |\n")
    (TOP / "docs/benchmarks.md").write_text("".join(out))
