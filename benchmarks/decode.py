"""How much memory and time `topicshark decode` takes on a large capture, beside tshark on the same file.

python -m benchmarks.decode --gigabytes 2
"""

import argparse
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAYLOAD = b"\x01\x00building/floor1/room%d/log:" + b"measured " * 100


def write_capture(path: Path, size: int) -> int:
    """A pcap of raw IP packets, a new IP id and time each; returns the number of packets."""
    datagram = struct.pack(">HHHH", 50000, 50000, 8 + len(PAYLOAD), 0) + PAYLOAD
    ip = bytearray(
        struct.pack(">BBHHHBBH8s", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0, bytes([10, 0, 0, 2, 10, 0, 0, 1]))
    )
    count = size // (16 + len(ip) + len(datagram))
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101))
        for number in range(count):
            struct.pack_into(">H", ip, 4, number & 0xFFFF)
            length = len(ip) + len(datagram)
            out.write(struct.pack("<IIII", 1_700_000_000 + number // 1000, number % 1000 * 1000, length, length))
            out.write(ip + datagram)
    return count


def timed(command: list[str]) -> tuple[float, int]:
    """Seconds and peak memory in MB of a command whose output is thrown away."""
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, int(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "large.pcap"
        packets = write_capture(capture, int(options.gigabytes * 1e9))
        print(f"{capture.stat().st_size / 1e9:.2f} GB, {packets:,} packets")
        decode = [sys.executable, "-m", "topicshark.main", "decode", str(capture), "--format", "jsonl"]
        for name, command in (("topicshark decode", decode), ("tshark", ["tshark", "-r", str(capture)])):
            seconds, peak = timed(command)
            print(f"{name:<18} {seconds:7.1f} s  {packets / seconds:10,.0f} packets/s  peak {peak:5} MB")
    print(f"(this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB)")


if __name__ == "__main__":
    main()
