"""What the dissector costs: tshark with it and without it on the same capture of a million colon packets.

    .venv/bin/python -m benchmarks.dissector
    .venv/bin/python -m benchmarks.dissector --capture run.pcap       # one of yours: thousands of hosts cost more

Three rounds, with and without in turn, so that a busy machine slows both, and with `tracking=off` too. Every
publish has a payload of its own, two forwards and an ACK. The goal is a ratio of at most 1.5.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from struct import pack

import numpy as np
from numpy.typing import NDArray

DISSECTOR = Path(__file__).parents[1] / "dissector.lua"
GOAL = 1.5
PORT = 50000
COUNTER = b"########"  # in every payload, so that no two publishes are the same


def packet(payload: bytes, source: int, target: int) -> bytes:
    """Ethernet, IPv4, UDP between 10.0.0.<source> and 10.0.0.<target>."""
    udp = pack(">HHHH", PORT, PORT, 8 + len(payload), 0) + payload
    ip = pack(">BBHHHBBH4B4B", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, 10, 0, 0, source, 10, 0, 0, target)
    return bytes(12) + b"\x08\x00" + ip + udp


def rounds_of_talk() -> list[bytes]:
    """What is repeated: a publish, its two forwards and its ACK, on one of ten topics."""
    broker, publisher, subscribers = 1, 2, (3, 4)
    frames = []
    for topic in range(10):
        body = b"\x01\x00home/room%d/temperature:%s" % (topic, COUNTER)
        frames.append(packet(body, publisher, broker))
        frames += [packet(body, broker, subscriber) for subscriber in subscribers]
        frames.append(packet(b"\x02", broker, publisher))
    return frames


def write_capture(path: Path, packets: int) -> None:
    """Two subscriptions, then the rounds, tiled as bytes; only the times are new."""
    start = [packet(b"\x03\x00home/*", subscriber, 1) for subscriber in (3, 4)]
    start += [packet(b"\x04", 1, subscriber) for subscriber in (3, 4)]
    unit = rounds_of_talk()
    records = b"".join(pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in unit)
    repeats = (packets - len(start)) // len(unit)
    tiled = np.tile(np.frombuffer(records, np.uint8), (repeats, 1))
    at = 0
    for place, frame in enumerate(unit):
        micros = (np.arange(repeats, dtype=np.int64) * len(unit) + place + len(start)) * 100
        seconds = (1_700_000_000 + micros // 1_000_000).astype("<u4")
        tiled[:, at : at + 4] = seconds.view(np.uint8).reshape(-1, 4)
        tiled[:, at + 4 : at + 8] = (micros % 1_000_000).astype("<u4").view(np.uint8).reshape(-1, 4)
        number(tiled, at + 16 + frame.find(COUNTER), COUNTER in frame)
        at += 16 + len(frame)
    with path.open("wb") as out:
        out.write(pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for place, frame in enumerate(start):
            out.write(pack("<IIII", 1_700_000_000, place * 100, len(frame), len(frame)) + frame)
        tiled.tofile(out)


def number(tiled: NDArray[np.uint8], at: int, wanted: bool) -> None:
    """Write each repeat's number into the counter at this place."""
    if wanted:
        repeats = np.arange(len(tiled))
        for digit in range(len(COUNTER)):
            tiled[:, at + digit] = 48 + repeats // 10 ** (len(COUNTER) - 1 - digit) % 10


def seconds_of(capture: Path, home: Path, *options: str) -> float:
    """CPU time of one tshark run that prints its summary lines to nowhere; wall time would count the neighbours."""
    clean = {**os.environ, "HOME": str(home), "WIRESHARK_CONFIG_DIR": str(home)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.devnull, "wb") as nowhere:
        command = ["tshark", "-n", "-r", str(capture), *options]
        subprocess.run(command, stdout=nowhere, stderr=nowhere, check=True, env=clean)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--capture", type=Path, help="read this one and make none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dissector", type=Path, default=DISSECTOR)
    options = parser.parse_args()
    if shutil.which("tshark") is None:
        print("tshark is not installed", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        capture = options.capture or Path(folder, "colon.pcap")
        if not options.capture:
            write_capture(capture, options.packets)
        script = ("-X", f"lua_script:{options.dissector}")
        untracked = (*script, "-X", "lua_script1:tracking=off")
        named = (*untracked, "-X", "lua_script1:dialect=colon")
        ways = {"with it": script, "without tracking": untracked, "and dialect named": named}
        ratios: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(1, options.rounds + 1):
            without = seconds_of(capture, Path(folder))
            print(f"round {number}: without {without:.1f} s", end="")
            for way, arguments in ways.items():
                seconds = seconds_of(capture, Path(folder), *arguments)
                ratios[way].append(seconds / without)
                print(f", {way} {seconds:.1f} s ({ratios[way][-1]:.2f} x)", end="", flush=True)
            print()
    for way, values in ratios.items():
        print(f"{capture.name}, {way}: {statistics.median(values):.2f} x tshark's time without (goal {GOAL})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
