"""Frame numbers, times, ports and payloads as tshark has them, also over splits."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcap_tools.columnar.read.reading import read_batches
from pcap_tools.columnar.read.splits import plan_splits
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.capture.tshark import needs_tshark, tshark_datagrams
from tests.pcap_tools.columnar.captures import odd_packets, rows_of

pytestmark = [needs_tshark, pytest.mark.tshark]

LONG = p.udp(bytes(range(256)) * 12)
PACKETS = [*odd_packets()[:4], *p.ipv4_fragments(LONG, 1480, ident=9), *p.ipv6_fragments(LONG, 1232)] * 3
FRAMES = [p.ethernet(packet) for packet in PACKETS]
NUMBERED = p.block(0x0BAD, b"\x39\x30\0\0abcd") + p.block(5, bytes(12)) + p.block(0x40000BAD, b"\x39\x30\0\0abcd")


@pytest.mark.parametrize("content", [p.pcap(FRAMES), p.pcapng(FRAMES[:5]) + NUMBERED + p.pcapng(FRAMES, 1, ">")])
def test_as_tshark(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content)
    plan = plan_splits(str(path), len(content) // 5, keep=False)
    assert len(plan.splits) > 2
    ours = [row for split in plan.splits for row in rows_of(read_batches(split))]
    theirs = tshark_datagrams(path)
    assert [(row.frame, row.time_ns, row.sport, row.dport, row.payload) for row in ours] == [
        (one.frame, one.time_ns, one.sport, one.dport, one.payload) for one in theirs
    ]
