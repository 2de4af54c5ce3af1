"""Bytes of pcapng blocks in either byte order: what the writer and the annotator put into files.

>>> Blocks("<").option(pcapng.OPT_COMMENT, b"look").hex()
'010004006c6f6f6b'
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from pcap_tools.capture import pcapng
from pcap_tools.errors import UsageError

_RECORD_IPV4, _RECORD_IPV6 = 1, 2
_LONGEST = 0xFFFF

Option = tuple[int, bytes]


class Blocks:
    """Makes the blocks of one byte order: "<" or ">"."""

    def __init__(self, order: str) -> None:
        self.order = order
        self._framing = struct.Struct(order + "II")
        self._length = struct.Struct(order + "I")
        self._packet = struct.Struct(order + "IIIII")
        self._option_head = struct.Struct(order + "HH")
        self.end_of_options = self._option_head.pack(pcapng.OPT_END, 0)

    def section(self, options: Iterable[Option] = ()) -> bytes:
        """A section header of unknown length."""
        body = struct.pack(self.order + "IHHq", pcapng.BYTE_ORDER_MAGIC, 1, 0, -1)
        return self.block(pcapng.SECTION, body + self.options(options))

    def interface(self, link_type: int, snaplen: int, options: Iterable[Option] = ()) -> bytes:
        body = struct.pack(self.order + "HHI", link_type, 0, snaplen)
        return self.block(pcapng.INTERFACE, body + self.options(options))

    def names(self, names: Mapping[str, str]) -> bytes:
        """A name-resolution block: host names by address."""
        records = b"".join(self._name(address, name) for address, name in names.items())
        return self.block(pcapng.NAMES, records + self.end_of_options)

    def packet(self, interface: int, ticks: int, data: bytes, original: int, comments: Iterable[str] = ()) -> bytes:
        """An enhanced packet block."""
        head = self._packet.pack(interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), original)
        options = self.options((pcapng.OPT_COMMENT, text.encode()) for text in comments)
        return self.block(pcapng.ENHANCED, head + _padded(data) + options)

    def options(self, options: Iterable[Option]) -> bytes:
        """All of them and the mark of their end; nothing if there are none."""
        made = b"".join(self.option(code, value) for code, value in options)
        return made + self.end_of_options if made else made

    def option(self, code: int, value: bytes) -> bytes:
        """Also the shape of a name record: a code, a length, the value, padding."""
        if len(value) > _LONGEST:
            raise UsageError(f"a comment or name of {len(value)} bytes is too long (at most {_LONGEST})")
        return self._option_head.pack(code, len(value)) + _padded(value)

    def block(self, kind: int, body: bytes) -> bytes:
        length = len(body) + pcapng.FRAMING
        return self._framing.pack(kind, length) + body + self._length.pack(length)

    def end_of(self, data: bytes, position: int) -> int:
        """Where the options that begin at `position` and are known to be sound end: at their mark, or with `data`."""
        while position + 4 <= len(data):
            code, length = self._option_head.unpack_from(data, position)
            if code == pcapng.OPT_END:
                return position
            position += 4 + length + -length % 4
        return position

    def _name(self, address: str, name: str) -> bytes:
        try:
            packed = ip_address(address).packed
        except ValueError as error:
            raise UsageError(f"{address!r} is not an IP address") from error
        if "\0" in name:
            raise UsageError(f"the name of {address} holds a NUL")
        kind = _RECORD_IPV4 if len(packed) == 4 else _RECORD_IPV6
        return self.option(kind, packed + name.encode() + b"\0")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
