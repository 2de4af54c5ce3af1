"""The column ip_id as tshark has it: plain captures, fragments, and cooked ones with copies, whole and in splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generators.capture.capture_point import write
from generators.capture.options import Point
from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.detect import Detector
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.learning import find_dialects
from pcap_tools.columnar.read.reading import read_batches, read_file
from pcap_tools.columnar.read.splits import plan_splits
from pcap_tools.dialect import load_dialect
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.capture.tshark import needs_tshark, tshark_fields

pytestmark = [needs_tshark, pytest.mark.tshark]

GENERATED: dict[str, dict[str, Any]] = {
    "plain": {},
    "fragments": {"dialects": ("topicnumber",), "capture": {"mtu": 576}},
    "any": {"capture": {"point": Point.ANY}},
    "fragments on any": {"dialects": ("topicnumber",), "capture": {"point": Point.ANY, "mtu": 576}},
    "IPv6": {"ipv6": True},
}


def by_tshark(path: Path) -> list[tuple[int, int | None]]:
    """Frames in which a datagram is whole; IPv6 has no ip.id."""
    rows = tshark_fields(path, "frame.number", "ip.id", only="udp")
    return [(int(frame), int(ident, 16) if ident else None) for frame, ident in rows]


def by_columns(batches: Any) -> list[tuple[int, int | None]]:
    decoder = Decoder([load_dialect("colon")], columns=["frame", "ip_id"])
    return [(row["frame"], row["ip_id"]) for batch in batches for row in decoder.decode(batch).to_pylist()]


@pytest.mark.parametrize("name", GENERATED)
def test_generated(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run.pcap"
    write(generate(GeneratorOptions("building", sensors=3, dashboards=2, rounds=4, **GENERATED[name])).capture, path)
    compare(path, idents=name != "IPv6")
    fragments = tshark_fields(path, "frame.number", only="ip.flags.mf == 1")
    assert bool(fragments) == name.startswith("fragments")


def test_trains_that_are_put_together_out_of_order(tmp_path: Path) -> None:
    body = p.udp(b"\x01\x00a:" + bytes(range(1, 120)))
    trains = [p.ipv4_fragments(body, 48, ident=ident) for ident in (0x1234, 0xFFFF, 1)]
    mixed = [part for parts in zip(*(train[::-1] for train in trains), strict=True) for part in parts]
    path = tmp_path / "run.pcap"
    path.write_bytes(p.pcap([p.ethernet(one) for one in [*mixed, *p.ipv6_fragments(body, 48), p.ipv4(body, ident=9)]]))
    compare(path, idents=True)
    assert [ident for _, ident in by_columns(read_file(path))] == [0x1234, 0xFFFF, 1, None, 9]


def compare(path: Path, idents: bool) -> None:
    want = by_tshark(path)
    assert len(want) > 4
    assert len({ident for _, ident in want}) > 1 if idents else {ident for _, ident in want} == {None}
    assert by_columns(read_file(path, rows=50)) == want
    assert by_columns(find_dialects(read_file(path, rows=50), Detector([load_dialect("colon")])).batches) == want
    splits = plan_splits(str(path), path.stat().st_size // 4, keep=False).splits
    assert [row for split in splits for row in by_columns(read_batches(split))] == want
