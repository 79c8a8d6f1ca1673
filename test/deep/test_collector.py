# SPDX-License-Identifier: Apache-2.0
"""A Collector before the server: what its file exporter wrote is what stands in the tables. How it reaches the
server says the README's snippet, as it stands there."""
import re
import subprocess
import time

import pytest

import deep
import otlp_json
import sluice

SNIPPET, = sluice.snippets("yaml")
EXPORTER, = re.findall(r"^  (\S+):$", SNIPPET, re.M)
ADDRESS = "127.0.0.1:4318"


class Chain:
    """telemetrygen and SDKs -> Collector (queue on disk, gzip) -> server; a file beside as the witness."""

    def __init__(self, tmp_path):
        ports = deep.free_ports(5)
        self.http, self.grpc = ports[:2]
        self.witness = tmp_path / "witness.json"
        self.server = sluice.Server(tmp_path / "data", "--publish-interval", "100ms", "--otlp-http-port",
                                    str(ports[2]), "--api-port", str(ports[3]))
        assert SNIPPET.count(ADDRESS) == 1
        self.collector = deep.Collector(tmp_path / "collector", {
            "extensions": {"file_storage": {"directory": str(tmp_path / "queue"), "create_directory": True,
                                            "fsync": True}},
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{self.http}"},
                                                 "grpc": {"endpoint": f"127.0.0.1:{self.grpc}"}}}},
            "processors": {"batch": {"send_batch_size": 500, "timeout": "50ms"}},
            "exporters": {
                EXPORTER: {"sending_queue": {"storage": "file_storage", "queue_size": 10000},
                           "retry_on_failure": {"initial_interval": "50ms", "max_interval": "500ms",
                                                "max_elapsed_time": "0s"}},
                "file": {"path": str(self.witness)}},
            "service": {"extensions": ["file_storage"], "pipelines": {
                signal: {"receivers": ["otlp"], "processors": ["batch"], "exporters": [EXPORTER, "file"]}
                for signal in sluice.SIGNALS}},
        }, ports[4], ports[:2], below=[SNIPPET.replace(ADDRESS, f"127.0.0.1:{ports[2]}")])

    def start(self):
        self.server.start()
        self.collector.start()

    def generate(self, signal, *words):
        """Starts telemetrygen; over gRPC, so that the Collector makes the HTTP requests from another form."""
        return subprocess.Popen(
            [deep.TELEMETRYGEN, signal, "--otlp-insecure", "--otlp-endpoint", f"127.0.0.1:{self.grpc}",
             "--telemetry-attributes", 'color="red"', *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_sent(self, least, seconds=60):
        """Until the Collector says that it has sent all that its file holds, and at least so many items."""
        deadline = time.monotonic() + seconds
        while True:
            held = sum(otlp_json.items(otlp_json.read(self.witness)).values()) \
                if self.witness.exists() else 0
            sent = self.collector.sent(EXPORTER)
            if least <= held <= sent:
                return
            assert time.monotonic() < deadline, (least, held, sent, self.collector.log())
            time.sleep(0.2)

    def end(self):
        self.collector.stop()
        self.server.kill()


@pytest.fixture
def chain(tmp_path):
    chain = Chain(tmp_path)
    try:
        chain.start()
        yield chain
    finally:
        chain.end()


def test_what_the_file_exporter_wrote_stands_in_the_tables(chain, tmp_path):
    for language in ("go", "js"):
        subprocess.run([*deep.client(language), f"http://127.0.0.1:{chain.http}", "gzip",
                        tmp_path / f"{language}.json"], check=True, timeout=120)
    flat_out = ("--rate", "0")
    running = [chain.generate("logs", "--logs", "2000", "--workers", "2", *flat_out),
               chain.generate("traces", "--traces", "300", "--child-spans", "3", "--span-links", "1", *flat_out)]
    running += [chain.generate("metrics", "--metrics", "500", "--metric-type", kind, *flat_out)
                for kind in ("Gauge", "Sum", "Histogram", "ExponentialHistogram")]
    for process in running:
        assert process.wait(timeout=120) == 0
    chain.wait_sent(2 * (1400 + 8) + 4000 + 1200 + 2000)
    chain.server.wait_published()
    assert chain.collector.stop() == 0
    sent = otlp_json.items(otlp_json.read(chain.witness))
    otlp_json.check(otlp_json.rows(chain.server.directory), sent)
    # The Collector hands on what the SDKs said that they sent.
    for language in ("go", "js"):
        said = otlp_json.items(otlp_json.read(tmp_path / f"{language}.json"))
        assert not said - sent


def test_nothing_that_was_sent_is_lost_by_kills(chain):
    """Kills while the Collector exports: it sends again what was not answered, so an item may stand twice
    (it gives no producer sequence); none is missing and none is invented."""
    running = [chain.generate("logs", "--duration", "8s", "--rate", "2000"),
               chain.generate("traces", "--duration", "8s", "--rate", "1000"),
               chain.generate("metrics", "--duration", "8s", "--rate", "1000", "--metric-type", "Histogram")]
    server, kills = chain.server, 0
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        before = chain.collector.sent(EXPORTER)
        time.sleep(0.3)
        assert chain.collector.sent(EXPORTER) > before or kills, chain.collector.log()
        server.kill()
        kills += 1
        time.sleep(0.2)
        server.start()
    for process in running:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=60)
    chain.wait_sent(10000, seconds=180)
    server.wait_published(180)
    assert chain.collector.stop() == 0
    found = otlp_json.rows(server.directory)
    sent = otlp_json.items(otlp_json.read(chain.witness))
    otlp_json.check_at_least(found, sent)
    print(f"{kills} kills; {sum(sent.values())} items sent, {sum(found.values())} rows")
    assert kills >= 10
