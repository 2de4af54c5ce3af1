"""Link layers: where the packet begins, and what else the link layer tells."""

from __future__ import annotations

import io

import pytest

from pcap_tools.capture import read_datagrams
from pcap_tools.capture.link import PARSERS, LinkTypes
from tests.pcap_tools.capture import packets as p

V4, V6 = p.ipv4(p.udp(b"four")), p.ipv6(p.udp(b"six"))


@pytest.mark.parametrize(
    ("link_type", "frame", "expected"),
    [
        (1, p.ethernet(V4), (0x0800, 14, None, None)),
        (1, p.ethernet(V6, tags=(0x8100,)), (0x86DD, 18, None, None)),
        (1, p.ethernet(V4, tags=(0x88A8, 0x8100)), (0x0800, 22, None, None)),
        (1, p.ethernet(V4, tags=(0x9100, 0x9100, 0x8100)), (0x0800, 26, None, None)),
        (1, p.ethernet(b"", ethertype=0x0806), (0x0806, 14, None, None)),
        (113, p.cooked1(V4, packet_type=4), (0x0800, 16, 4, None)),
        (113, p.cooked1(b"\0\x05\x86\xdd" + V6, protocol=0x8100), (0x86DD, 20, 0, None)),
        (276, p.cooked2(V6, packet_type=3, ifindex=70_000), (0x86DD, 20, 3, 70_000)),
        (101, V6, (0x86DD, 0, None, None)),
        (12, V4, (0x0800, 0, None, None)),
        (14, V4, (0x0800, 0, None, None)),
        (228, V4, (0x0800, 0, None, None)),
        (229, V6, (0x86DD, 0, None, None)),
        (108, p.null(V4, order=">"), (0x0800, 4, None, None)),
        (108, p.null(V4, order="<"), None),
        (0, p.null(V4, 7), None),
    ],
)
def test_where_the_packet_begins(
    link_type: int, frame: bytes, expected: tuple[int, int, int | None, int | None] | None
) -> None:
    assert PARSERS[link_type](frame) == expected


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("family", "kind"), [(2, 0x0800)] + [(n, 0x86DD) for n in (24, 28, 30, 10)])
def test_null_in_either_byte_order(family: int, kind: int, order: str) -> None:
    assert PARSERS[0](p.null(b"", family, order)) == (kind, 4, None, None)


@pytest.mark.parametrize("link_type", sorted(PARSERS))
def test_short_frames_have_no_datagram(link_type: int) -> None:
    frames = [bytes(size) for size in range(40)]
    assert list(read_datagrams(io.BytesIO(p.pcap(frames, link_type)))) == []


def test_tags_without_end() -> None:
    PARSERS[1](p.ethernet(V4, tags=(0x8100,) * 5000))


def test_an_unknown_link_type_is_warned_of_once() -> None:
    warnings: list[str] = []
    blocks = [p.section(), p.interface(147), p.interface(1), p.interface(148)]
    blocks += [p.enhanced(p.ethernet(V4), 1, interface_id=n) for n in (0, 1, 0, 2, 1)]
    found = list(read_datagrams(io.BytesIO(b"".join(blocks)), on_warning=warnings.append))
    assert [datagram.frame for datagram in found] == [2, 5]
    assert [text.split(";")[0].split(" is")[0] for text in warnings] == [
        "frame 1: link type 147",
        "frame 4: link type 148",
    ]


def test_link_types_do_not_share_what_they_learn() -> None:
    warnings: list[str] = []
    for _ in range(2):
        LinkTypes(warnings.append).parser(9999, 1)
    assert len(warnings) == 2
