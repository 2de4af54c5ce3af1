"""What the real tshark makes of a capture, in the shape of our datagrams.

All ports are forced to plain data: `data.data` is then what a dissector is handed. `udp.payload` would not
do, since tshark 4.0 puts everything behind the UDP header into it, even past the UDP length.
"""

from __future__ import annotations

import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from pcap_tools.capture import Datagram

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

_FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "udp.srcport",
    "ip.dst",
    "ipv6.dst",
    "udp.dstport",
    "udp.length",
    "data.data",
)


class Seen(NamedTuple):
    """A datagram as both readers should see it."""

    frame: int
    time_ns: int
    src: str
    sport: int
    dst: str
    dport: int
    length: int
    payload: bytes


def run_tshark(path: Path, *arguments: str) -> str:
    """stdout of tshark; a damaged file is not an error here, since the frames before it count."""
    command = ["tshark", "-n", "-r", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout


def tshark_fields(path: Path, *fields: str, only: str = "frame") -> list[list[str]]:
    chosen = [part for field in fields for part in ("-e", field)]
    out = run_tshark(path, "-d", "udp.port==0-65535,data", "-Y", only, "-T", "fields", *chosen)
    return [line.split("\t") for line in out.splitlines()]


def nanoseconds(text: str) -> int:
    return int(Decimal(text or "0") * 10**9)


def tshark_datagrams(path: Path) -> list[Seen]:
    """UDP that was sent: not quoted by ICMP, header whole, length possible (0 is a jumbogram of IPv6)."""
    rows = tshark_fields(path, *_FIELDS, only="udp && !icmp && !icmpv6")
    found = []
    for number, time, src4, src6, sport, dst4, dst6, dport, length, data in rows:
        payload = bytes.fromhex(data)
        if not length or (int(length) < 8 and not (src6 and int(length) == 0)):
            continue
        size = int(length) - 8 if int(length) else len(payload)
        src, dst, frame = src4 or src6, dst4 or dst6, int(number)
        found.append(Seen(frame, nanoseconds(time), src, int(sport), dst, int(dport), size, payload))
    return found


def seen(datagrams: list[Datagram]) -> list[Seen]:
    return [Seen(d.frame, d.time_ns, d.src, d.sport, d.dst, d.dport, d.length, d.payload) for d in datagrams]
