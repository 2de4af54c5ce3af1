"""Link layers: where the IP packet begins in a frame, and what the link layer says beside.

A parser takes the frame's bytes and returns (ethertype, offset of the packet, packet type, interface index),
the last two None where the link layer does not have them, or None if the frame is too short or not of a known
kind. Numbers are those of https://www.tcpdump.org/linktypes.html.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Literal, TypeAlias

from pcap_tools.capture.damage import OnWarning

Link: TypeAlias = tuple[int, int, int | None, int | None]
LinkParser: TypeAlias = Callable[[bytes], Link | None]

IPV4, IPV6 = 0x0800, 0x86DD

# 802.1Q, 802.1ad and the QinQ type that was used before 802.1ad.
_TAGS = frozenset({0x8100, 0x88A8, 0x9100})
_MAX_TAGS = 32

# Address families of the BSDs (IPv6 differs among them), and Linux's for IPv6.
_FAMILIES = {2: IPV4, 24: IPV6, 28: IPV6, 30: IPV6, 10: IPV6}

_U16 = struct.Struct(">H")
_COOKED2 = struct.Struct(">HxxIxxB")


def _behind_tags(data: bytes, ethertype: int, offset: int) -> tuple[int, int]:
    for _ in range(_MAX_TAGS):
        if ethertype not in _TAGS or offset + 4 > len(data):
            break
        (ethertype,) = _U16.unpack_from(data, offset + 2)
        offset += 4
    return ethertype, offset


def _ethernet(data: bytes) -> Link | None:
    if len(data) < 14:
        return None
    ethertype = data[12] << 8 | data[13]
    if ethertype in _TAGS:
        ethertype, offset = _behind_tags(data, ethertype, 14)
        return ethertype, offset, None, None
    return ethertype, 14, None, None


def _cooked1(data: bytes) -> Link | None:
    if len(data) < 16:
        return None
    ethertype, offset = _behind_tags(data, data[14] << 8 | data[15], 16)
    return ethertype, offset, data[0] << 8 | data[1], None


def _cooked2(data: bytes) -> Link | None:
    if len(data) < 20:
        return None
    protocol, interface, packet_type = _COOKED2.unpack_from(data)
    ethertype, offset = _behind_tags(data, protocol, 20)
    return ethertype, offset, packet_type, interface


def _raw(data: bytes) -> Link | None:
    if not data:
        return None
    return (IPV6 if data[0] >> 4 == 6 else IPV4), 0, None, None


def _raw_ipv6(data: bytes) -> Link | None:
    return IPV6, 0, None, None


def _null(data: bytes) -> Link | None:
    """The family is in the byte order of the capturing machine, which nobody tells."""
    return _family(data, "little") or _family(data, "big")


def _loop(data: bytes) -> Link | None:
    return _family(data, "big")


def _family(data: bytes, order: Literal["little", "big"]) -> Link | None:
    number = int.from_bytes(data[:4], order)
    ethertype = _FAMILIES.get(number) if len(data) >= 4 else None
    return None if ethertype is None else (ethertype, 4, None, None)


PARSERS: dict[int, LinkParser] = {
    0: _null,
    1: _ethernet,
    12: _raw,
    14: _raw,
    101: _raw,
    108: _loop,
    113: _cooked1,
    228: _raw,
    229: _raw_ipv6,
    276: _cooked2,
}


# A hostile pcapng has thousands of unknown link types; so many are told of.
_MAX_TOLD = 8


def _unknown(data: bytes) -> None:
    return None


class LinkTypes:
    """Parsers by link type; an unknown type is warned of once, if they are few, and its frames have no packet."""

    def __init__(self, on_warning: OnWarning) -> None:
        self._parsers = dict(PARSERS)
        self._on_warning = on_warning

    def parser(self, link_type: int, frame_number: int) -> LinkParser:
        """The parser of `link_type`, which was first met in frame `frame_number`."""
        parser = self._parsers.get(link_type)
        if parser is None:
            parser = self._parsers[link_type] = _unknown
            told = len(self._parsers) - len(PARSERS)
            if told <= _MAX_TOLD:
                known = ", ".join(map(str, sorted(PARSERS)))
                text = f"link type {link_type} is not known (only {known}); its frames are skipped"
                self._on_warning(f"frame {frame_number}: {text}")
            elif told == _MAX_TOLD + 1:
                self._on_warning(f"frame {frame_number}: more link types are not known; their frames are skipped too")
        return parser
