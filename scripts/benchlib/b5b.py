# SPDX-License-Identifier: Apache-2.0
"""B5 (b): rows durably acknowledged over the network, beside etcd, NATS JetStream and Kafka.

Servers take turns on core 0, loads on core 1. Each has its own client: ours sends OTLP log records over
HTTP, the others what their libraries send.
"""
import json
import mmap
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

from .common import BUILD, PAIRS, TOP, cpu_seconds, disk_written, free_ports, record, run, spread

PEERS = TOP / "build/peers"
SECONDS = float(os.environ.get("B5B_SECONDS", "2"))
SINGLE = ((1024, 1), (1024, 16), (1024, 64), (1024, 256), (131072, 1), (131072, 16), (131072, 64))
BATCHED = ((1024, 4, 1000), (1024, 16, 1000), (1024, 4, 10000))  # bytes, connections, rows a request
LINGERS = ((1024, 256, 0.5), (1024, 256, 1), (1024, 2000, 1), (1024, 2000, 5), (1024, 10000, 5))
KAFKA = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={home}/logs
log.flush.interval.messages=1
message.max.bytes=8388608
socket.request.max.bytes=104857600
offsets.topic.replication.factor=1
num.partitions=1
auto.create.topics.enable=true
"""


def wait_port(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(port)


class Server:
    """A process on core 0, with its log beside its data."""

    def __init__(self, home, words, port):
        self.port, self.log = port, open(f"{home}/log", "w")
        self.process = subprocess.Popen(["taskset", "-c", "0", *map(str, words)], stdout=self.log, stderr=self.log)
        wait_port(port)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Sluice(Server):
    name = "sluice"

    def __init__(self, home):
        port, api, log = free_ports(3)
        super().__init__(home, [BUILD / "src/app/cmd/sluice", "serve", "--data-dir", f"{home}/data", "--otlp-workers",
                                1, "--otlp-http-port", port, "--api-port", api, "--log-port", log,
                                "--publish-interval", "1h", "--publish-bytes", "100GiB"], port)

    def load(self, size, in_flight, rows=1):
        return [BUILD / "bench/bench_acks", self.port, in_flight, rows, size, SECONDS]


class Queue(Server):
    def __init__(self, home):
        (port,) = free_ports(1)
        super().__init__(home, [PEERS / "queues/queues", self.kind, f"{home}/data", port], port)

    def load(self, size, in_flight):
        return [PEERS / "queues/queues", "load", self.kind, self.port, in_flight, size, SECONDS]


class Etcd(Queue):
    name, kind = "etcd 3.6.16", "etcd"


class Nats(Queue):
    name, kind = "NATS JetStream 2.15.3, sync_interval always", "nats"


class Kafka(Server):
    name = "Kafka 4.3.1, flush.interval.messages 1, acks all"

    def __init__(self, home):
        port, controller = free_ports(2)
        pathlib.Path(f"{home}/server.properties").write_text(KAFKA.format(home=home, port=port, controller=controller))
        java = ["java", "-Xmx1g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
                f"{PEERS}/kafka/jars/*"]
        run([*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c",
             f"{home}/server.properties"])
        super().__init__(home, [*java, "kafka.Kafka", f"{home}/server.properties"], port)

    def load(self, size, in_flight, linger=0):
        return [BUILD / "bench/bench_kafka", self.port, in_flight, size, SECONDS, linger]


def raw_sync(home, size, pause_s=0):
    """Median microseconds of a write and its sync, into a file that was filled before: the disk's own, one right
    behind the other, or with a pause between, as a lone client makes it."""
    memory = mmap.mmap(-1, max(size, 4096))
    blocks = (32 << 20) // len(memory)
    file = os.open(f"{home}/raw", os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(blocks):
        os.write(file, memory)
    os.fsync(file)
    times, end = [], time.monotonic() + SECONDS / 2
    while time.monotonic() < end:
        began = time.monotonic()
        os.pwrite(file, memory, len(times) % blocks * len(memory))
        os.fdatasync(file)
        times.append((time.monotonic() - began) * 1e6)
        time.sleep(pause_s)
    os.close(file)
    return statistics.median(times)


def measure(server, words, size):
    cpu, disk = cpu_seconds(server.process), disk_written()
    report = json.loads(run(words, core=1))
    rows = report["rows_a_second"] * SECONDS * 1.25  # with the warm-up
    report["cpu_us_a_row"] = (cpu_seconds(server.process) - cpu) / rows * 1e6
    report["disk_over_payload"] = (disk_written() - disk) / rows / size
    return report


def one_life(kind, found):
    """Starts a server, puts its cases' reports into `found`, and ends it."""
    with tempfile.TemporaryDirectory(dir=TOP / "build") as home:
        for size in (1024, 131072):
            found.setdefault(("raw", size), []).append(raw_sync(home, size))
            found.setdefault(("paced", size), []).append(raw_sync(home, size, 0.0002))
        server = kind(home)
        try:
            cases = [("single", size, in_flight, server.load(size, in_flight)) for size, in_flight in SINGLE]
            if kind is Sluice:
                cases += [(f"{rows} rows a request", size, many, server.load(size, many, rows))
                          for size, many, rows in BATCHED]
            if kind is Kafka:
                cases += [(f"linger {linger} ms", size, in_flight, server.load(size, in_flight, linger))
                          for size, in_flight, linger in LINGERS]
            for how, size, in_flight, words in cases:
                found.setdefault((kind, how, size, in_flight), []).append(measure(server, words, size))
        finally:
            server.end()


def row_of(kind, how, size, in_flight, reports, raw, paced):
    row = {"case": f"{size} B, {how}", "server": kind.name, "in_flight": in_flight,
           "rows_a_second": spread([x["rows_a_second"] for x in reports])}
    for name in ("p50_us", "p99_us", "cpu_us_a_row", "disk_over_payload"):
        row[name] = round(statistics.median(x[name] for x in reports), 2)
    if in_flight == 1:
        row["p50_over_raw_sync"] = round(row["p50_us"] / raw, 2)
        row["p50_over_paced_sync"] = round(row["p50_us"] / paced, 2)
    return row


def b5b():
    kinds, found = [Sluice], {}
    if (PEERS / "queues/queues").exists():
        kinds += [Etcd, Nats]
    if (PEERS / "kafka/jars").exists() and (BUILD / "bench/bench_kafka").exists():
        kinds += [Kafka]
    for pair in range(PAIRS):
        for kind in kinds if pair % 2 == 0 else kinds[::-1]:
            one_life(kind, found)
    raw, paced = ({size: statistics.median(found.pop((how, size))) for size in (1024, 131072)} for how in ("raw", "paced"))
    rows = [row_of(*key, reports, raw[key[2]], paced[key[2]]) for key, reports in found.items()]
    rates = {key: statistics.median(x["rows_a_second"] for x in reports) for key, reports in found.items()}
    for (kind, how, size, in_flight), row in zip(found, rows):
        if kind is Sluice and how == "single":
            for peer in kinds[1:]:
                row[f"over_{peer.__name__.lower()}"] = round(rates[kind, how, size, in_flight] /
                                                             rates[peer, how, size, in_flight], 2)
        elif kind is Sluice and Kafka in kinds:
            best = max(rate for key, rate in rates.items() if key[0] is Kafka and key[2] == size)
            row["over_kafka_at_its_best"] = round(rates[kind, how, size, in_flight] / best, 2)
    rows.sort(key=lambda row: (row["case"].split(" ")[0] != "1024", "single" not in row["case"], row["in_flight"]))
    for how, found_us in (("one behind the other", raw), ("0.2 ms between them", paced)):
        for size, text in ((1024, "4 KiB"), (131072, "128 KiB")):
            rows.append({"case": f"the disk's own write and sync, {how}", "p50_us": round(found_us[size], 1),
                         "server": text})
    record("B5b", rows)
