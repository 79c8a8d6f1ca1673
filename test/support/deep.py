# SPDX-License-Identifier: Apache-2.0
"""Other people's programs that `scripts/setup deep` makes: SDK clients, telemetrygen, a Collector, Spark."""
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.request

import sluice

HOME = sluice.TOP / "build/deep"
TELEMETRYGEN = HOME / "go/telemetrygen"


def client(language):
    """The words that start an SDK's client; to be followed by BASE none|gzip WITNESS."""
    if language == "java":
        classes = f"{HOME}/java/target/classes:{(HOME / 'java/classpath').read_text().strip()}"
        return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", classes, "Client"]
    return {"js": ["node", HOME / "js/client.mjs"], "go": [HOME / "go/client"]}[language]


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Relay:
    """Hands connections on to a port and keeps what the clients said, to see what was on the wire."""

    def __init__(self, target):
        self.target, self.said = target, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            said = bytearray()
            self.said.append(said)
            for source, to, keep in ((near, far, said), (far, near, None)):
                threading.Thread(target=self._pump, args=(source, to, keep), daemon=True).start()

    @staticmethod
    def _pump(source, to, keep):
        try:
            while data := source.recv(1 << 16):
                if keep is not None:
                    keep += data
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def heads(self):
        """Of each request: its path and its header fields, names in lower case."""
        found = []
        for said in self.said:
            for path, head in re.findall(rb"POST (\S+) HTTP/1\.1\r\n(.*?)\r\n\r\n", bytes(said), re.S):
                fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
                found.append((path.decode(), {name.lower(): x for name, x in fields.items()}))
        return found

    def end(self):
        self.listener.close()


class Collector:
    """A Collector with a configuration of the caller's, laid over the YAML texts in `below`. `metrics` is
    the port of its own metrics, `ports` are those of its receivers."""

    def __init__(self, home, config, metrics, ports, wrapper=(), env=None, below=()):
        self.home, self.metrics, self.ports = pathlib.Path(home), metrics, ports
        self.wrapper, self.env = wrapper, env or {}
        self.home.mkdir(parents=True, exist_ok=True)
        config["service"]["telemetry"] = {
            "logs": {"level": "warn"},
            "metrics": {"level": "normal", "readers": [{"pull": {"exporter": {"prometheus": {
                "host": "127.0.0.1", "port": metrics}}}}]}}
        self.configs = []
        for i, text in enumerate([*below, json.dumps(config)]):
            self.configs += ["--config", str(self.home / f"config-{i}.yaml")]
            (self.home / f"config-{i}.yaml").write_text(text)
        self.log_file = open(self.home / "collector.log", "ab")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [*self.wrapper, str(HOME / "collector/collector"), *self.configs],
            stdout=self.log_file, stderr=self.log_file, env={**os.environ, **self.env})
        deadline = time.monotonic() + 30
        while True:
            try:
                for port in (self.metrics, *self.ports):
                    socket.create_connection(("127.0.0.1", port)).close()
                return self
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline, self.log()
                time.sleep(0.05)

    def log(self):
        return (self.home / "collector.log").read_text(errors="replace")[-4000:]

    def counters(self):
        """Its own counters, summed by name."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        sums = {}
        for name, labels, value in re.findall(r"^(\w+)(\{[^}]*\})? (\S+)$", text, re.M):
            exporter = re.search(r'exporter="([^"]+)"', labels)
            key = (name, exporter[1] if exporter else None)
            sums[key] = sums.get(key, 0) + float(value)
        return sums

    def sent(self, exporter):
        """How many items it says that an exporter has sent."""
        return sum(int(value) for (name, by), value in self.counters().items()
                   if by == exporter and re.fullmatch(
                       r"otelcol_exporter_sent_(log_records|spans|metric_points)(_total)?", name))

    def stop(self):
        if not self.process:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.log_file.close()
        return code


class Spark:
    """Spark SQL in a process of its own; one for all tests, each of which opens a session."""

    def __init__(self, home):
        jars = ",".join(str(p) for p in sorted((HOME / "spark/jars").glob("*.jar")))
        self.log = open(home / "spark.log", "w+b")
        self.process = subprocess.Popen(
            [HOME / "spark/venv/bin/python", HOME / "spark/spark_sql.py", jars], cwd=home,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**os.environ, "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"})

    def open(self, **directories):
        """A new session over data directories, each by its catalog's name (publish.catalog_name)."""
        self._ask({"catalogs": {name: str(path) for name, path in directories.items()}})
        return self

    def sql(self, text):
        """Rows as lists of plain values (see plain)."""
        return self._ask({"sql": text})

    def _ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise RuntimeError("Spark ended: " + self.log.read().decode(errors="replace")[-4000:])
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["rows"]

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.log.close()


def plain(value):
    """A value as spark_sql.py prints it: doubles by their bits, times in microseconds, maps as pairs."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return format(struct.unpack("<Q", struct.pack("<d", value))[0], "x")
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "timestamp"):
        import datetime
        return (value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // \
            datetime.timedelta(microseconds=1)
    if isinstance(value, dict):
        return [plain(x) for x in value.values()]
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    return value


def sorted_rows(rows):
    return sorted((plain(row) for row in rows), key=json.dumps)
