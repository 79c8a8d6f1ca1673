# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: building, running on a core, keeping results, the table of them."""
import json
import os
import pathlib
import platform
import re
import socket
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


def cpu_seconds(process):
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(process):
    return next(int(line.split()[1]) for line in pathlib.Path(
        f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in line) / 1024


def disk_written():
    """Bytes that the disk below build/ has taken, whoever wrote them."""
    device = os.stat(TOP / "build").st_dev
    for line in pathlib.Path("/proc/diskstats").read_text().splitlines():
        words = line.split()
        if (int(words[0]), int(words[1])) == (os.major(device), os.minor(device)):
            return int(words[9]) * 512
    return 0


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


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
    """docs/benchmarks.md from what was measured last; what was not measured in this directory stays as it is."""
    target = TOP / "docs/benchmarks.md"
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", target.read_text(), re.M | re.S))
    for path in OUT.glob("*.json"):
        sections.update(section_of(path))
    body = [f"\n## {name}\n\n{text.strip()}\n" for name, text in sorted(sections.items())]
    target.write_text((TOP / "bench/head.md").read_text() + "".join(body))


def cell(value):
    if isinstance(value, dict):
        digits = ",.0f" if value["median"] >= 100 else ".3g"
        return f"{value['median']:{digits}} ({value['min']:{digits}}-{value['max']:{digits}})"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value if value is not None else "")


def section_of(path):
    """{name: text} of one result."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if not lines:
        return {}
    about = lines[0]
    hidden = {"benchmark", "cores", "kernel", "date", "commit", "load", "loop_fdatasync_a_second",
              "loop_direct_a_second"}
    keys = [k for k in dict.fromkeys(k for line in lines for k in line) if k not in hidden]
    rows = [keys, ["---"] * len(keys), *([cell(line.get(k)) for k in keys] for line in lines)]
    return {about["benchmark"]: f"Measured {about['date']} on {about['cores']} cores, Linux {about['kernel']}, "
            f"commit {about['commit']}, load average {about['load']}.\n\n" +
            "".join("| " + " | ".join(row) + " |\n" for row in rows)}
