"""What a reader must know to go on in the middle of a capture, and the walk through its records from there."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pcap_tools.capture.damage import Corrupt
from pcap_tools.capture.frame import LATEST_NS
from pcap_tools.capture.frames import _parser
from pcap_tools.capture.pcap import FILE_HEADER, LINK_TYPE_MASK, MAGICS, MODIFIED, NANOSECONDS, why_no_record
from pcap_tools.capture.pcapng import (
    _BY_BYTE_ORDER,
    BYTE_ORDER_MAGIC,
    ENHANCED,
    INTERFACE,
    OBSOLETE,
    SECTION,
    SIMPLE,
    _Interface,
    _Reader,
)
from pcap_tools.capture.streams import Window, _Broken
from pcap_tools.columnar.read.frames_kernel import (
    IF_LINK,
    INTERFACE_COLUMNS,
    ODD_TIME,
    PACKET_TYPE,
    PLACE,
    SLOT,
    TIME,
    walk_pcap,
    walk_pcapng,
)
from pcap_tools.columnar.read.packets_kernel import COOKED1, COOKED2, LINKS, NO_PACKET_TYPE, UNKNOWN

PCAP, PCAPNG = "pcap", "pcapng"
Walked = tuple[int, int, int, int, int]
# Who may see copies: nobody, maybe later in the file, or from here on.
Copies = Literal["never", "later", "now"]


@dataclass(frozen=True)
class Facts:
    """The format and, for pcapng, the section in force."""

    format: str
    order: str
    magic: int
    interfaces: tuple[_Interface, ...]
    next_interface: int


def read_facts(name: str, head: bytes, trouble: str) -> Facts:
    """From the first bytes of a file; raises `CaptureError` or `Corrupt` as `read_frames` does."""
    _parser(name, _window(head, 0, trouble))
    if head[:4] not in MAGICS:
        return Facts(PCAPNG, "<", 0, (), 0)
    order, magic = MAGICS[head[:4]]
    (link_type,) = struct.unpack_from(order + "I", head, 20)
    return Facts(PCAP, order, magic, (_Interface(0, link_type & LINK_TYPE_MASK, 0, 1, 1, 0),), 1)


def head_size(start: bytes) -> int:
    """How many bytes `read_facts` should see, by the first four."""
    return FILE_HEADER if start in MAGICS else 64


def first_record(facts: Facts) -> int:
    """Where the walk begins."""
    return FILE_HEADER if facts.format == PCAP else 0


class Usual(NamedTuple):
    """What ``usual_kernel`` must know of a file that it can read."""

    big: bool
    scale: int  # of the fraction of a second
    link: int


class Walker(Protocol):
    """Walks through records; `interfaces` and `link_types` are those that the table's SLOT counts. `usual` is None if
    there is no short way."""

    interfaces: NDArray[np.int64]
    link_types: list[int]

    @property
    def copies(self) -> Copies: ...

    @property
    def usual(self) -> Usual | None: ...

    def walk(self, buffer: NDArray[np.uint8], at: int, have: int, limit: int, number: int, most: int) -> Walked: ...

    def ask(self, data: bytes, offset: int, number: int, trouble: str) -> int: ...

    def finish(self, data: bytes, offset: int, number: int, trouble: str) -> None: ...

    def facts(self) -> Facts: ...


def walker(facts: Facts, frames: NDArray[np.int64]) -> Walker:
    """The walker of a format; it fills `frames`."""
    frames[:, PLACE] = 0
    frames[:, SLOT] = 0
    frames[:, PACKET_TYPE] = NO_PACKET_TYPE
    return _PcapWalker(facts, frames) if facts.format == PCAP else _PcapngWalker(facts, frames)


class _PcapWalker:
    def __init__(self, facts: Facts, frames: NDArray[np.int64]) -> None:
        self._facts = facts
        self._frames = frames
        self._modified = facts.magic == MODIFIED
        self._scale = 1 if facts.magic == NANOSECONDS else 1000
        self.interfaces = np.array([_interface_row(facts.interfaces[0])], np.int64)
        self.link_types = [facts.interfaces[0].link_type]

    @property
    def copies(self) -> Copies:
        return "now" if self._modified or _is_cooked(self.link_types[0]) else "never"

    @property
    def usual(self) -> Usual | None:
        link = int(self.interfaces[0, IF_LINK])
        return None if self.copies == "now" or link < 0 else Usual(self._facts.order == ">", self._scale, link)

    def walk(self, buffer: NDArray[np.uint8], at: int, have: int, limit: int, number: int, most: int) -> Walked:
        big = self._facts.order == ">"
        found: Walked = walk_pcap(buffer, at, have, limit, number, big, self._scale, self._modified, self._frames, most)
        return found

    def ask(self, data: bytes, offset: int, number: int, trouble: str) -> int:
        """Only what is no record comes here."""
        (captured,) = struct.unpack_from(self._facts.order + "I", data, 8)
        raise Corrupt(offset, why_no_record(data[:8], captured))

    def finish(self, data: bytes, offset: int, number: int, trouble: str) -> None:
        window = _window(data, offset, trouble)
        window.need(0, len(data) + 1)
        window.finish(f"the record of frame {number + 1}")

    def facts(self) -> Facts:
        return self._facts


class _PcapngWalker:
    """The kernel walks over packets; sections, interfaces and damage go to the pure-Python reader."""

    usual = None

    def __init__(self, facts: Facts, frames: NDArray[np.int64]) -> None:
        self._frames = frames
        self._reader = _Reader(_window(b"", 0, ""))
        self._order = facts.order
        self._reader._layouts = _BY_BYTE_ORDER[struct.pack(facts.order + "I", BYTE_ORDER_MAGIC)]
        self._reader._next_interface = facts.next_interface
        self._reader._interfaces = list(facts.interfaces)
        self.interfaces = np.zeros((1, INTERFACE_COLUMNS), np.int64)
        self.link_types: list[int] = []
        self._cooked = False
        self._update()

    @property
    def copies(self) -> Copies:
        """With one interface there is one place, unless the link layer tells of more."""
        return "now" if self._cooked or self._reader._next_interface > 1 else "later"

    def walk(self, buffer: NDArray[np.uint8], at: int, have: int, limit: int, number: int, most: int) -> Walked:
        slots = len(self.link_types)
        walked: tuple[int, int, int, int, int, int] = walk_pcapng(
            buffer, at, have, limit, number, self._order == ">", self.interfaces, slots, self._frames, most
        )
        found, odd = walked[:5], walked[5]
        if odd:
            for index in np.flatnonzero(self._frames[: found[0], SLOT] & ODD_TIME).tolist():
                self._set_odd_time(index)
        return found

    def _set_odd_time(self, index: int) -> None:
        self._frames[index, SLOT] ^= ODD_TIME
        interface = self._reader._interfaces[int(self._frames[index, SLOT])]
        self._frames[index, TIME] = interface.time_ns(0, int(self._frames[index, TIME]) & 0xFFFFFFFFFFFFFFFF)

    def ask(self, data: bytes, offset: int, number: int, trouble: str) -> int:
        """Take a section or an interface, and say how long it is; all else raises `Corrupt`."""
        reader = self._reader
        reader._window = _window(data, offset, trouble)
        block = next(reader._blocks())
        if block.kind == SECTION:
            reader._start_section(block)
        elif block.kind == INTERFACE:
            reader._add_interface(block)
        else:
            {ENHANCED: reader._enhanced, OBSOLETE: reader._obsolete, SIMPLE: reader._simple}[block.kind](block)
            raise RuntimeError(f"the kernel refused a sound block at {offset}")
        self._order = "<" if reader._layouts is _BY_BYTE_ORDER[struct.pack("<I", BYTE_ORDER_MAGIC)] else ">"
        self._update()
        return block.stop + 4 - (block.start - 8)

    def finish(self, data: bytes, offset: int, number: int, trouble: str) -> None:
        self._reader._window = _window(data, offset, trouble)
        next(self._reader._blocks(), None)

    def facts(self) -> Facts:
        reader = self._reader
        return Facts(PCAPNG, self._order, 0, tuple(reader._interfaces), reader._next_interface)

    def _update(self) -> None:
        """Bring the kernel's table in line with the reader's interfaces."""
        known = self._reader._interfaces
        if len(known) < len(self.link_types) or not known:
            self.link_types.clear()
        if len(known) > len(self.interfaces):
            larger = np.zeros((2 * len(known), INTERFACE_COLUMNS), np.int64)
            larger[: len(self.interfaces)] = self.interfaces
            self.interfaces = larger
        for one in known[len(self.link_types) :]:
            self.interfaces[len(self.link_types)] = _interface_row(one)
            self.link_types.append(one.link_type)
            self._cooked = self._cooked or _is_cooked(one.link_type)


def _is_cooked(link_type: int) -> bool:
    return LINKS.get(link_type) in (COOKED1, COOKED2)


def _interface_row(one: _Interface) -> tuple[int, ...]:
    """A row of the kernel's table; MOST is -1 if Python must count the time."""
    common = gcd(one.multiplier, one.divisor)
    multiplier, divisor = one.multiplier // common, one.divisor // common
    most = (LATEST_NS - max(0, one.offset_ns)) // multiplier - 1
    if multiplier * divisor >= 1 << 62 or abs(one.offset_ns) >= 1 << 61:
        multiplier, divisor, most = 1, 1, -1
    offset = one.offset_ns if most >= 0 else 0
    return one.number, LINKS.get(one.link_type, UNKNOWN), one.snaplen, multiplier, divisor, offset, most


def _window(data: bytes, offset: int, trouble: str) -> Window:
    """The last bytes of a stream as the pure-Python reader sees them."""
    window = Window(_end(trouble))
    window.data, window.start = data, offset
    return window


def _end(trouble: str) -> Iterator[bytes]:
    if trouble:
        raise _Broken(trouble)
    yield from ()
