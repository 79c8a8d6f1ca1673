# SPDX-License-Identifier: Apache-2.0
"""parquet-java, through test/java's Cells: one process for all files of a test run. It gives what the format
has; what the types of columns.py make of that is done here."""
import atexit
import decimal
import functools
import json
import re
import struct
import subprocess

import columns
import sluice


def classpath():
    home = sluice.TOP / "build/java"
    return f"{home}/target/classes:{(home / 'classpath').read_text().strip()}"


def version():
    return re.search(r"/parquet-hadoop-([\d.]+)\.jar", classpath()).group(1)


@functools.lru_cache(maxsize=1)
def process():
    made = subprocess.Popen(["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", classpath(),
                             "Cells"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True)
    atexit.register(made.stdin.close)
    return made


def ask(*words):
    """The lines of its answer."""
    process().stdin.write("\t".join(map(str, words)) + "\n")
    process().stdin.flush()
    lines = []
    while (line := process().stdout.readline()) != "\n":
        if not line:
            raise RuntimeError("parquet-java is gone")
        lines.append(line.rstrip("\n"))
    if lines and lines[0].startswith("!"):
        raise RuntimeError(lines[0][1:])
    return lines


# ---- what a stored value means ----

def scale_of(kind):
    return {"ms": 10**6, "us": 10**3, "ns": 1}[re.search(r"\[(..)", kind).group(1)]


def number(value):
    return value if isinstance(value, int) else int.from_bytes(bytes.fromhex(value), "big", signed=True)


def leaf(kind, value):
    """As columns.canonical gives it."""
    if value is None or kind in ("bool", "null"):
        return value
    if kind.startswith("uint"):
        return value % 2**int(kind[4:])
    if kind == "float16":
        return struct.pack("<d", struct.unpack("<e", bytes.fromhex(value))[0])
    if kind in ("float32", "float64"):
        return struct.pack("<d", struct.unpack(">f" if kind == "float32" else ">d", bytes.fromhex(value))[0])
    if kind.startswith("decimal"):
        return decimal.Decimal(number(value)).scaleb(-int(kind[:-1].split(", ")[1]), columns.WIDE)
    if kind in ("utf8", "binary", "uuid") or kind.startswith("fixed"):
        return bytes.fromhex(value).decode() if kind == "utf8" else bytes.fromhex(value)
    if kind == "date32":
        return ("date", value)
    if kind.startswith("time"):
        word = "instant" if "UTC" in kind else "local" if kind.startswith("timestamp") else "time"
        return (word, value * scale_of(kind))
    return value


def meaning(kind, value):
    """Members and keys beside those of the kind are texts."""
    if isinstance(value, list):
        return [meaning(kind, x) for x in value]
    if isinstance(value, dict):
        return {name: leaf("utf8" if name in ("n", "key") else kind, x) for name, x in value.items()}
    return leaf(kind, value)


@functools.lru_cache(maxsize=1)
def rows_of(path, _):
    return [json.loads(line) for line in ask("read", path)]


def read(path, names):
    """Column -> values, of columns that are called as those of columns.py."""
    rows = rows_of(path, path.stat().st_mtime_ns)
    return {name: [meaning(name.split("/")[0], row[name]) for row in rows] for name in names}


def copy(source, target, codec, page_version, encoding):
    ask("copy", source, target, codec, page_version, encoding)
