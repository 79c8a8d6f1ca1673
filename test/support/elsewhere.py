# SPDX-License-Identifier: Apache-2.0
"""A log on one server, its publication on another, and the network between them, which can fail."""
import contextlib
import os
import random
import re
import socket
import subprocess
import threading
import time

import sluice

LEFT = ("--publish-from", "log_port", "--log-segment-bytes", "1MiB", "--log-keep-committed", "1s")
FAST = ("--publish-interval", "50ms", "--publish-halt-confirm", "2s")


class Publisher(sluice.Server):
    """A `sluice serve --source`."""

    def __init__(self, directory, url, *flags, env=None):
        super().__init__(directory, *(flags or FAST), env=env)
        self.url = url

    def start(self, wait=True):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log_path = self.directory.parent / (self.directory.name + ".stderr")
        self.log_file = open(self.log_path, "ab")
        self.log_start = self.log_path.stat().st_size
        self.process = subprocess.Popen(
            [str(sluice.BINARY), "serve", "--data-dir", str(self.directory), "--source", self.url,
             "--api-port", "0", *self.flags], stderr=self.log_file, stdout=subprocess.DEVNULL,
            env={**os.environ, **self.env}, start_new_session=True)
        if wait:
            self.wait_ready()
        self.let_first_round_pass()
        return self

    def wait_ready(self, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            m = re.search(r"publishing the log at \S+, API on \S+ port (\d+)", self.log())
            if m:
                self.api = int(m[1])
                return
            if self.process.poll() is not None:
                raise RuntimeError(f"the publisher ended with {self.process.returncode}: {self.log()}")
            time.sleep(0.005)
        raise RuntimeError("the publisher did not start: " + self.log())

    def wait_state(self, state, table="otel.logs", seconds=30):
        deadline = time.monotonic() + seconds
        while (lane := self.lane(table))["state"] != state:
            assert time.monotonic() < deadline, (state, lane)
            time.sleep(0.02)
        return lane

    def wait_all(self, log, seconds=60):
        """Until all that the log has synced now is published and acknowledged."""
        end = log.status()["log"]["synced_seq"]
        deadline = time.monotonic() + seconds
        while True:
            status = self.status()
            source = status["source"]
            if source["is_answering"] and source["synced_seq"] >= end and all(
                    x["lag_rows"] == 0 and x["state"] == "idle" for x in status["lanes"]):
                return status
            assert time.monotonic() < deadline, status
            time.sleep(0.05)


def read_message(sock, kept):
    """One HTTP message with its body, as bytes, and what came behind it; None at the end."""
    while b"\r\n\r\n" not in kept:
        more = sock.recv(1 << 16)
        if not more:
            return None, b""
        kept += more
    head, _, rest = kept.partition(b"\r\n\r\n")
    m = re.search(rb"(?i)^content-length: *(\d+)", head, re.M)
    length = int(m[1]) if m else 0
    parts, have = [rest], len(rest)
    while have < length:
        more = sock.recv(1 << 20)
        if not more:
            return None, b""
        parts.append(more)
        have += len(more)
    body = b"".join(parts)
    return head + b"\r\n\r\n" + body[:length], body[length:]


class Network:
    """Between a publisher and the log port of `log`. `fault(request)` decides what becomes of a request and
    its answer: None, "cut" (no answer), "lose" (the log has it, its answer is lost), "half" (of the answer),
    "flip" (a bit of the answer), "slow", or "late" (the answer comes after others)."""

    def __init__(self, log, fault=None):
        self.log, self.fault = log, fault or (lambda request: None)
        self.is_down = False
        self.counts = {}
        self.lock = threading.Lock()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError), client:
            port = self.log.log_port
            with socket.create_connection(("127.0.0.1", port), timeout=30) as server:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                asked, answered = b"", b""
                while not self.is_down:
                    request, asked = read_message(client, asked)
                    if request is None or self.is_down or port != self.log.log_port:
                        return
                    fault = self.fault(request)
                    if fault:
                        with self.lock:
                            self.counts[fault] = self.counts.get(fault, 0) + 1
                    if fault == "cut":
                        return
                    server.sendall(request)
                    answer, answered = read_message(server, answered)
                    if answer is None or fault == "lose":
                        return
                    if fault in ("slow", "late"):
                        time.sleep(0.05 if fault == "slow" else 0.5)
                    if fault == "half":
                        client.sendall(answer[:len(answer) // 2])
                        return
                    if fault == "flip":
                        at = random.randrange(len(answer))
                        answer = answer[:at] + bytes([answer[at] ^ 1 << random.randrange(8)]) + answer[at + 1:]
                    client.sendall(answer)

    def close(self):
        self.is_down = True
        self.server.close()


class Pair:
    """The log, the network and the publisher."""

    def __init__(self, path, *flags, fault=None, publisher=FAST):
        self.path = path
        self.log = sluice.Server(path / "log", *LEFT, *flags).start()
        self.network = Network(self.log, fault)
        self.publisher = Publisher(path / "publisher", self.network.url, *publisher)

    def start(self):
        self.publisher.start()
        return self

    def close(self):
        self.network.close()
        for server in (self.publisher, self.log):
            if server.process:
                server.kill()
