"""Where the bytes of a body lie that differ from tile to tile: headers, checksums and counters, found once.

Only UDP is changed, whole or in fragments. All else (ARP, ICMP and what it quotes) keeps its bytes. Checksums are kept
up and not made anew: a wrong one stays wrong, and what was not captured counts as unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from generators.bulk import kernel
from generators.bulk.segment import Segment
from generators.bulk.tile_addresses import Integers, TileAddresses
from pcap_tools.capture.ip import UDP, Packet, read_packet
from pcap_tools.capture.link import PARSERS

_UDP_HEADER = 8


class _Located(NamedTuple):
    """An IP packet, where its header is in the frame, and where the frame is in the tile."""

    packet: Packet
    header: int
    base: int


def _locate_all(link_type: int, frames: Sequence[tuple[int, bytes]], bases: Sequence[int]) -> list[_Located]:
    found = []
    for (_, frame), base in zip(frames, bases, strict=True):
        link = PARSERS[link_type](frame)
        packet = read_packet(frame, link[0], link[1], len(frame)) if link else None
        if link and packet:
            found.append(_Located(packet, link[1], base))
    return found


# The parts of a datagram by their offsets: one, unless it was fragmented.
_Train: TypeAlias = dict[int, _Located]


def _trains_of(udp: Sequence[_Located]) -> list[_Train]:
    """The datagrams. A fragment that is there already begins another train: a capture may hold copies."""
    trains: list[_Train] = []
    latest: dict[tuple[object, ...], _Train] = {}
    for one in udp:
        fragment = one.packet.fragment
        if fragment is None:
            trains.append({0: one})
            continue
        train = latest.get(fragment.key)
        if train is None or fragment.offset in train:
            train = latest[fragment.key] = {}
            trains.append(train)
        train[fragment.offset] = one
    return trains


def _joined(train: _Train) -> tuple[bytes, Integers]:
    """The datagram from its UDP header on and where each byte is in the tile; NUL and -1 for what is missing."""
    data, places = bytearray(), [np.empty(0, np.int64)]
    for offset, (packet, _, base) in sorted(train.items()):
        gap = max(0, offset - len(data))
        begin = packet.start + len(data) + gap - offset
        found = packet.data[begin : packet.end]
        data += bytes(gap) + found
        places += [np.full(gap, -1), np.arange(base + begin, base + begin + len(found))]
    return bytes(data), np.concatenate(places)


def _sum_without(checksum: int, words: int) -> int:
    """The sum behind `checksum` less `words`: never 0, since no real sum is."""
    return (0xFFFF - checksum - words) % 0xFFFF or 0xFFFF


class Patches:
    """The tables of the kernel for one body; `bases` tells where each frame begins in a tile."""

    def __init__(self, segment: Segment, bases: Sequence[int]) -> None:
        located = _locate_all(segment.link_type, segment.body, bases)
        once = _locate_all(segment.link_type, segment.prologue, [0] * len(segment.prologue))
        hosts = {host for one in (*located, *once) for host in (one.packet.src, one.packet.dst)}
        self._varying = segment.varying_hosts() & hosts
        self.addresses = TileAddresses(self._varying, hosts - self._varying)
        self._sums = self.addresses.sums(self.addresses.in_tiles(np.zeros(1, np.int64)))[0].tolist()
        self._steps = self._count_idents(located)
        self._pattern = re.compile(re.escape(segment.marker) + b"([0-9]{%d})" % segment.digits)
        self._counters: list[tuple[int, ...]] = []
        udp = [one for one in located if one.packet.protocol == UDP]
        ipv4 = [one for one in udp if len(one.packet.src) == 4]
        ipv6 = [one for one in udp if len(one.packet.src) == 16]
        datagrams = [self._datagram(train) for train in _trains_of(udp)]
        self.tables = (
            np.array([self._ipv4(one) for one in ipv4], kernel.IPV4),
            np.array([self._ipv6(one) for one in ipv6], kernel.IPV6),
            np.array([self._fragment(one) for one in ipv6 if one.packet.fragment], kernel.FRAGMENT),
            np.array(datagrams, kernel.DATAGRAM),
            np.array(self._counters, kernel.COUNTER),
        )

    def _count_idents(self, located: Sequence[_Located]) -> dict[bytes, int]:
        """By how much each host's identifications rise in a tile: the packets it sends, fragments and copies not
        counted. A varying host is new in each tile, so its do not rise."""
        idents: dict[bytes, set[int]] = {}
        for packet, _, _ in located:
            sent = idents.setdefault(packet.src, set())
            if packet.ident is not None and packet.src not in self._varying:
                sent.add(packet.ident)
        return {host: len(sent) for host, sent in idents.items()}

    def _slots(self, packet: Packet) -> tuple[int, int]:
        return self.addresses.slot(packet.src), self.addresses.slot(packet.dst)

    def _ipv4(self, one: _Located) -> tuple[int, ...]:
        packet, header, base = one
        src, dst = self._slots(packet)
        ident = packet.ident or 0
        checksum = int.from_bytes(packet.data[header + 10 : header + 12], "big")
        rest = _sum_without(checksum, ident + self._sums[src] + self._sums[dst])
        return base + header, ident, self._steps[packet.src], src, dst, rest

    def _ipv6(self, one: _Located) -> tuple[int, ...]:
        return one.base + one.header, *self._slots(one.packet)

    def _fragment(self, one: _Located) -> tuple[int, ...]:
        return one.packet.ident or 0, self._steps[one.packet.src], one.base + one.packet.start - 4

    def _datagram(self, train: _Train) -> tuple[int, ...]:
        packet = next(iter(train.values())).packet
        src, dst = self._slots(packet)
        data, places = _joined(train)
        begin = len(self._counters)
        whole_header = len(data) >= _UDP_HEADER and places[_UDP_HEADER - 1] >= 0
        end = int.from_bytes(data[4:6], "big") if whole_header else 0
        digits = self._find_counters(data, places, end or len(data))
        checksum = int.from_bytes(data[6:8], "big") if whole_header else 0
        if not checksum:
            return -1, 0, src, dst, begin, len(self._counters)
        rest = _sum_without(checksum, digits + self._sums[src] + self._sums[dst])
        return int(places[6]), rest, src, dst, begin, len(self._counters)

    def _find_counters(self, data: bytes, places: Integers, end: int) -> int:
        """Notes the counters and returns what their digits add to the checksum's sum."""
        total = 0
        for match in self._pattern.finditer(data, _UDP_HEADER, end):
            value, stop = int(match[1]), match.end(1)
            for part in _runs(places, *match.span(1)):
                low, shift = 10 ** (stop - part.stop), 0 if part.stop % 2 == 0 else 8
                self._counters.append((value, low, int(places[part.stop - 1]), len(part), shift))
            total += sum(data[at] << (8 if at % 2 == 0 else 0) for at in range(*match.span(1)))
        return total


def _runs(places: Integers, start: int, stop: int) -> list[range]:
    """`start` to before `stop`, cut where neighbours do not lie side by side in the tile."""
    cuts = [at for at in range(start + 1, stop) if places[at] != places[at - 1] + 1]
    return [range(a, b) for a, b in zip([start, *cuts], [*cuts, stop], strict=True)]
