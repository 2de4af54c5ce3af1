"""How many packets a second `write_bulk` writes, beside scapy's `wrpcap` with the first packets of the same capture.

    python -m benchmarks.bulk --packets 10_000_000

`wrpcap` gets scapy packets that were made before and remember their bytes, which is its quickest case. The time of
`write_bulk` includes finding out what changes in the segment. The rounds are interleaved. In the end a process of its
own writes the capture once more, to tell its peak memory, and capinfos counts the packets.
"""

import argparse
import multiprocessing
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from generators.bulk.segment import Segment
from generators.bulk.write import write_bulk
from pcap_tools.capture import read_frames

START_NS = 1_700_000_000_000_000_000
GAP_NS = 200_000
BROKER = "10.0.0.1"
SUBSCRIBERS = ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
PUBLISHERS = [f"10.0.0.{number}" for number in range(10, 250)]
PUBLISHES = 4


def segment() -> Segment:
    """Publishers that each publish some times: a PUBLISH, its ACK, a forward to each subscriber."""
    body: list[tuple[int, bytes]] = []

    def say(src: str, dst: str, payload: bytes) -> None:
        ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        ip = IP(src=src, dst=dst, id=len(body) % 65536)
        frame = bytes(ether / ip / UDP(sport=50000, dport=50000) / Raw(payload))
        body.append((START_NS + len(body) * GAP_NS, frame))

    counter = 0
    for publisher in PUBLISHERS:
        for _ in range(PUBLISHES):
            counter += 1
            publish = b"\x01\x00home/room1/temperature:20 #%09d" % counter
            say(publisher, BROKER, publish)
            say(BROKER, publisher, b"\x02")
            for subscriber in SUBSCRIBERS:
                say(BROKER, subscriber, publish)
    return Segment(1, [], body, len(body) * GAP_NS, frozenset(PUBLISHERS), step=counter)


def packets_of(path: Path, count: int) -> list[Packet]:
    """The first packets of a capture as scapy has them when it has read them."""
    packets: list[Packet] = []
    for frame in islice(read_frames(path), count):
        packet = Ether(frame.data)
        packet.time = frame.time_ns / 1e9
        packets.append(packet)
    return packets


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_mb() -> int:
    """Of this process alone: `getrusage` would count the process that started it."""
    return int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0]) // 1024


def write_and_tell_memory(made: Segment, packets: int, path: Path) -> tuple[int, int]:
    before = peak_mb()
    write_bulk(made, packets, path)
    return before, peak_mb()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=5_000_000, help="that write_bulk writes in a round")
    parser.add_argument("--scapy-packets", type=int, default=20_000, help="that wrpcap writes in a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    made = segment()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "bulk.pcap", Path(folder) / "scapy.pcap"
        write_bulk(made, options.scapy_packets, ours)
        packets = packets_of(ours, options.scapy_packets)
        rates: list[tuple[float, float]] = []
        for _ in range(options.rounds):
            ours.unlink(missing_ok=True)
            bulk = options.packets / seconds(lambda: write_bulk(made, options.packets, ours))
            scapy = len(packets) / seconds(lambda: wrpcap(str(theirs), packets))
            rates.append((bulk, scapy))
            print(f"write_bulk {bulk:12,.0f} packets/s   wrpcap {scapy:8,.0f} packets/s   ratio {bulk / scapy:,.0f}")
        assert all(a.data == b.data for a, b in zip(read_frames(ours), read_frames(theirs), strict=False))
        bulk, scapy = (sum(column) / len(rates) for column in zip(*rates, strict=True))
        print(f"mean ratio: {bulk / scapy:,.0f} (the goal is 300)")
        ours.unlink()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            before, after = pool.apply(write_and_tell_memory, (made, options.packets, ours))
        print(f"memory: {before} MB before, {after} MB at the peak; {ours.stat().st_size / 1e6:,.0f} MB written")
        print(subprocess.run(["capinfos", "-c", "-M", ours], capture_output=True, text=True, check=True).stdout.strip())


if __name__ == "__main__":
    main()
