"""From capture to Arrow on one core: headers alone, headers and decoding, beside copying the bytes, dpkt and tshark.

    python -m benchmarks.kernel                     # short messages of each built-in dialect
    python -m benchmarks.kernel --dialect colon --packets 4000000 --tshark

Times are those of the processor, so that a busy machine disturbs them less; each is the best of some passes.
"""

from __future__ import annotations

import argparse
import random
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pcap_tools import Codec, load_dialect
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.read.reading import read_file
from pcap_tools.dialect import builtin_names

DISSECTOR = Path(__file__).parent.parent / "dissector.lua"
PASSES = 5
UDP_LIMIT = 1472  # larger datagrams would be fragments
TOPICS = [f"building/floor{number % 5}/room{number}/temp" for number in range(100)]
VALUES = ["21.5", "ON", "OFF", "3.14159265"]


def messages(name: str) -> list[bytes]:
    """Three publishes to one acknowledgement, now and then a subscription, in the form that is really used."""
    codec, rng = Codec(load_dialect(name)), random.Random(1)
    found: list[bytes] = []
    for number in range(400):
        topic, value = rng.choice(TOPICS), rng.choice(VALUES)
        by_dialect: dict[str, list[tuple[str, dict[str, Any]]]] = {
            "colon": [("PUBLISH", {"topic": topic, "payload": value, "retain": number & 1})] * 3
            + [("PUBACK", {})]
            + [("SUBSCRIBE", {"filter": "building/*"})] * (number % 10 == 0),
            "mqttsn": [("PUBLISH", {"topic_id": number, "message_id": number, "data": value}), ("PUBACK", {})],
            "portdigits": [("PUBLISH", {"port": 12345, "topic": 1, "text": value})],
            "rolebyte": [("SENSOR_PUBLISH", {"topic": topic, "value": value}), ("ACK", {})],
            "topicbyte": [("MESSAGE", {"topic": 10, "text": value}), ("ACK", {"topic": 10})],
            "topicnumber": [("PUBLICATION", {"topic_number": number, "text": value}), ("ACK", {})],
        }
        form = "java" if codec.dialect.form("java") else None
        found += [
            codec.build(codec.message(message, fields, form=form))[:UDP_LIMIT] for message, fields in by_dialect[name]
        ]
    return found


def write_capture(path: Path, name: str, count: int) -> None:
    """A pcap of Ethernet frames between 200 clients and a broker."""
    rng, dialect = random.Random(2), load_dialect(name)
    port = min(dialect.spec.ports["broker"])
    frames = []
    for payload in messages(name):
        client = bytes([10, 0, 1, rng.randrange(1, 200)])
        udp = struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + client + bytes([10, 0, 0, 1])
        frames.append(bytes(12) + b"\x08\x00" + ip + udp)
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for number in range(count):
            frame = rng.choice(frames)
            seconds, micros = 1_700_000_000 + number // 100_000, number % 100_000 * 10
            out.write(struct.pack("<IIII", seconds, micros, len(frame), len(frame)) + frame)


def best(work: Callable[[], object]) -> float:
    """Seconds of processor time of the best pass."""
    spent = []
    for _ in range(PASSES):
        start = time.thread_time()
        work()
        spent.append(time.thread_time() - start)
    return min(spent)


def headers(path: Path) -> None:
    for _ in read_file(str(path)):
        pass


def decoded(path: Path, name: str, columns: list[str] | None = None) -> int:
    decoder = Decoder([load_dialect(name)], columns=columns, capture=path.name)
    return sum(decoder.decode(batch).num_rows for batch in read_file(str(path)))


def by_dpkt(path: Path) -> None:
    """The same headers by dpkt; nothing is decoded."""
    import dpkt

    with open(path, "rb") as file:
        for _, frame in dpkt.pcap.Reader(file):
            _ = dpkt.ethernet.Ethernet(frame).data.data.data


def by_tshark(path: Path) -> float:
    command = ["tshark", "-r", str(path), "-X", f"lua_script:{DISSECTOR}", "-T", "fields", "-e", "frame.number"]
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def report(what: str, seconds: float, packets: int, size: int) -> None:
    rate = packets / seconds
    print(f"  {what:<28} {seconds / packets * 1e9:9.1f} ns  {rate / 1e6:8.3f} M/s  {size / seconds / 1e9:6.2f} GB/s")


def measure(name: str, packets: int, folder: Path, tshark: bool) -> None:
    path, small, few = folder / f"{name}.pcap", folder / "small.pcap", 50_000
    write_capture(path, name, packets)
    size = path.stat().st_size
    print(f"{name}: {packets:,} packets, {size / packets:.0f} bytes each with headers")
    content = np.fromfile(path, np.uint8)
    target = np.empty_like(content)
    report("copying the bytes", best(lambda: np.copyto(target, content)), packets, size)
    if decoded(path, name) != packets:
        raise SystemExit("not all packets were decoded")
    report("headers", best(lambda: headers(path)), packets, size)
    report("headers and all columns", best(lambda: decoded(path, name)), packets, size)
    report(
        "without payload", best(lambda: decoded(path, name, ["frame", "time_ns", "message", "topic"])), packets, size
    )
    write_capture(small, name, few)
    try:
        report("dpkt, headers only", best(lambda: by_dpkt(small)), few, small.stat().st_size)
    except ImportError:
        print("  dpkt is not installed")
    if tshark:
        report("tshark with dissector.lua", by_tshark(small), few, small.stat().st_size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialect", action="append", choices=builtin_names())
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--tshark", action="store_true", help="measure tshark too (slow)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.dialect or builtin_names():
            measure(name, options.packets, Path(folder), options.tshark)


if __name__ == "__main__":
    main()
