"""Sound captures of every kind, in parts that a mutator can take up: a head, and one record for each frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from tests.pcap_tools.capture import packets as p

ORDERS = ("<", ">")
LINKS: dict[int, Callable[[bytes], bytes]] = {
    0: p.null,
    1: p.ethernet,
    101: bytes,
    108: lambda packet: p.null(packet, order=">"),
    113: p.cooked1,
    276: p.cooked2,
}
_FRAMES = 24


@dataclass(frozen=True)
class Good:
    """A sound capture in parts: a head, then one record for each frame, `gap` ns apart."""

    name: str
    format: str
    order: str
    magic: int
    link_type: int
    packets: tuple[bytes, ...]
    gap: int = 1_000_001

    def frame(self, packet: bytes) -> bytes:
        return LINKS[self.link_type](packet)

    def record(self, frame: bytes, time_ns: int) -> bytes:
        if self.format == "pcap":
            return p.pcap_record(frame, time_ns, self.magic, self.order)
        return p.enhanced(frame, time_ns, self.order)

    @property
    def head(self) -> bytes:
        if self.format == "pcap":
            return p.pcap_header(self.link_type, self.magic, self.order)
        return p.section(self.order) + p.interface(self.link_type, self.order, tsresol=9)

    @property
    def frames(self) -> list[bytes]:
        return [self.frame(packet) for packet in self.packets]

    @property
    def records(self) -> list[bytes]:
        return [self.record(frame, p.T0 + n * self.gap) for n, frame in enumerate(self.frames)]

    def as_pcapng(self) -> Good:
        """The same frames in blocks."""
        return replace(self, format="pcapng", magic=0)

    def whole_records(self, size: int) -> int:
        """How many records end within the first `size` bytes."""
        ends = accumulate(map(len, self.records), initial=len(self.head))
        return sum(end <= size for end in ends) - (len(self.head) <= size)

    @property
    def content(self) -> bytes:
        return self.head + b"".join(self.records)


def _datagrams() -> list[bytes]:
    """Some of colon on its port, so that `decode` has something to say, and some of nobody."""
    said = [b"\x03\x00home/*", b"\x04", b"\x01\x01home/fan:on", b"\x02", b"\x01\x00temp:123", b"\xff", b"", b"\0" * 40]
    return [p.udp(one, 50000 + n % 3, 50000) for n, one in enumerate(said)]


def _packets(family: int, fragmented: bool) -> tuple[bytes, ...]:
    out: list[bytes] = []
    for n in range(_FRAMES):
        body = _datagrams()[n % 8]
        if fragmented and n % 3 == 0:
            body = p.udp(b"\x01\x00long:" + bytes(range(64)), 50001, 50000)
            out += p.ipv4_fragments(body, 32, ident=n) if family == 4 else p.ipv6_fragments(body, 32, n)
        else:
            out.append(p.ipv4(body, ident=n) if family == 4 else p.ipv6(body))
    return tuple(out[:_FRAMES])


@cache
def good_captures() -> tuple[Good, ...]:
    """All formats, both byte orders, all link layers, both families, whole and in fragments."""
    kinds = [("pcap", magic) for magic in (p.MICRO, p.NANO, p.MODIFIED)] + [("pcapng", 0)]
    return tuple(
        Good(f"{form} {magic:x}{order} link {link} IPv{family}{' in fragments' * cut}", form, order, magic, link, made)
        for family in (4, 6)
        for cut in (False, True)
        for made in [_packets(family, cut)]
        for form, magic in kinds
        for order in ORDERS
        for link in LINKS
    )
