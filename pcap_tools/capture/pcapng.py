"""The pcapng format: sections of blocks, each section with its own byte order and interfaces.

Packets come in three kinds of block (enhanced, simple, obsolete); all other blocks are skipped. Some of them
are still counted, because Wireshark shows them as numbered records and frame numbers must be Wireshark's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pcap_tools.capture.damage import Corrupt
from pcap_tools.capture.frame import LATEST_NS, MAX_CAPTURED, Frame
from pcap_tools.capture.streams import Window

SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
SECTION = 0x0A0D0D0A  # reads the same in both byte orders
INTERFACE, OBSOLETE, SIMPLE, NAMES, ENHANCED = 1, 2, 3, 4, 6
BYTE_ORDER_MAGIC = 0x1A2B3C4D

# systemd journal entries, sysdig events (three versions) and custom blocks: no packets, but numbered by
# Wireshark.
NUMBERED = frozenset({0x00000009, 0x00000204, 0x00000216, 0x00000221, 0x00000BAD, 0x40000BAD})

# It keeps one bad length from asking for gigabytes. Wireshark 4 allows 128 MB, for USB packets that are none of ours.
MAX_BLOCK = 16 << 20
# Each is remembered until the section ends, and 20 bytes are enough for one: a file must not ask for gigabytes so.
MAX_INTERFACES = 1 << 16
# Block type and length in front, the length again at the end.
FRAMING = 12

OPT_END, OPT_COMMENT, IF_NAME, IF_TSRESOL, IF_TSOFFSET = 0, 1, 2, 9, 14


class InterfaceBlock(NamedTuple):
    """An interface, with its clock: ns = ticks * multiplier // divisor + offset_ns."""

    number: int
    link_type: int
    snaplen: int
    multiplier: int
    divisor: int
    offset_ns: int

    def time_ns(self, high: int, low: int) -> int:
        time_ns = (high << 32 | low) * self.multiplier // self.divisor + self.offset_ns
        return max(-LATEST_NS, min(LATEST_NS, time_ns))


class Block(NamedTuple):
    """A block whose framing is sound; its body is data[start:stop]."""

    kind: int
    offset: int
    data: bytes
    start: int
    stop: int

    def corrupt(self, text: str) -> Corrupt:
        return Corrupt(self.offset, text)

    @property
    def raw(self) -> bytes:
        """The whole block, as it stands in the file."""
        return self.data[self.start - 8 : self.stop + 4]


class _Layouts:
    """The structs of one byte order."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.framing = struct.Struct(order + "II")
        self.length = struct.Struct(order + "I")
        self.version = struct.Struct(order + "HH")
        self.interface = struct.Struct(order + "HHI")
        self.enhanced = struct.Struct(order + "IIIII")
        self.obsolete = struct.Struct(order + "HHIIII")
        self.option = struct.Struct(order + "HH")
        self.offset = struct.Struct(order + "q")


_BY_BYTE_ORDER = {struct.pack(order + "I", BYTE_ORDER_MAGIC): _Layouts(order) for order in "<>"}


def read_pcapng(window: Window) -> Iterator[Frame]:
    """The frames of a pcapng stream; raises `Corrupt` after the last good one."""
    return (frame for _, frame in read_blocks(window) if frame is not None)


def read_blocks(window: Window) -> Iterator[tuple[Block, Frame | None]]:
    """Every block of a pcapng stream with the frame that it holds, if it does; raises `Corrupt` likewise."""
    return BlockReader(window).blocks()


class BlockReader:
    """Reads blocks from a window; it can begin, and go on in another window, between any two blocks.

    `order` is the byte order of the section, `interfaces` are those that it has declared so far, and `next_interface`
    is the number of the next one in the file.
    """

    def __init__(
        self, window: Window, order: str = "<", interfaces: Sequence[InterfaceBlock] = (), next_interface: int = 0
    ) -> None:
        self.window = window
        self.interfaces = list(interfaces)
        self.next_interface = next_interface
        self._layouts = _BY_BYTE_ORDER[struct.pack(order + "I", BYTE_ORDER_MAGIC)]
        self._number = 0

    @property
    def order(self) -> str:
        return self._layouts.order

    def blocks(self) -> Iterator[tuple[Block, Frame | None]]:
        """The blocks of the window, each with the frame that it holds, if it does."""
        packets: dict[int, Callable[[Block], Frame]] = {
            ENHANCED: self._enhanced,
            SIMPLE: self._simple,
            OBSOLETE: self._obsolete,
        }
        for block in self._blocks():
            frame = None
            parse = packets.get(block.kind)
            if parse is not None:
                frame = parse(block)
                self._number += 1
            elif block.kind == INTERFACE:
                self._add_interface(block)
            elif block.kind == SECTION:
                self._start_section(block)
            elif block.kind in NUMBERED:
                self._number += 1
            yield block, frame

    # --- Blocks ---------------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[Block]:
        window = self.window
        data, position = window.data, 0
        while True:
            if position + FRAMING > len(data):
                if not window.need(position, FRAMING):
                    window.finish("a block header")
                    return
                data, position = window.data, 0
            kind, size = self._block_head(data, position)
            if position + size > len(data):
                if not window.need(position, size):
                    window.finish(f"a block of {size} bytes")
                data, position = window.data, 0
            self._check_trailer(data, position, size)
            yield Block(kind, window.start + position, data, position + 8, position + size - 4)
            position += size

    def _block_head(self, data: bytes, position: int) -> tuple[int, int]:
        """Kind and length of a block; a section header switches the byte order first."""
        if data.startswith(SECTION_MAGIC, position):
            layouts = _BY_BYTE_ORDER.get(data[position + 8 : position + 12])
            if layouts is None:
                raise Corrupt(self.window.start + position, "a section header without its byte-order magic")
            self._layouts = layouts
        kind, length = self._layouts.framing.unpack_from(data, position)
        if not FRAMING <= length <= MAX_BLOCK:
            limits = f"between {FRAMING} and {MAX_BLOCK}"
            raise Corrupt(self.window.start + position, f"a block length of {length}, which is not {limits}")
        # Some writers leave the padding out of the length; Wireshark rounds up too.
        return kind, length + -length % 4

    def _check_trailer(self, data: bytes, position: int, size: int) -> None:
        end = position + size
        if data[position + 4 : position + 8] != data[end - 4 : end]:
            (first,) = self._layouts.length.unpack_from(data, position + 4)
            (second,) = self._layouts.length.unpack_from(data, end - 4)
            text = f"a block says {first} bytes at its begin and {second} at its end"
            raise Corrupt(self.window.start + position, text)

    def _options(self, block: Block, position: int) -> Iterator[tuple[int, bytes]]:
        while position + 4 <= block.stop:
            code, length = self._layouts.option.unpack_from(block.data, position)
            position += 4
            if code == OPT_END:
                return
            if position + length > block.stop:
                raise block.corrupt(f"an option of {length} bytes is longer than its block")
            yield code, block.data[position : position + length]
            position += length + -length % 4

    # --- Sections and interfaces ----------------------------------------------------------------------------

    def _start_section(self, block: Block) -> None:
        if block.stop - block.start < 16:
            raise block.corrupt("a section header that is too short")
        major, minor = self._layouts.version.unpack_from(block.data, block.start + 4)
        if major != 1:
            raise block.corrupt(f"a section of the unknown version {major}.{minor}")
        self.interfaces = []

    def _add_interface(self, block: Block) -> None:
        if block.stop - block.start < 8:
            raise block.corrupt("an interface description that is too short")
        if len(self.interfaces) >= MAX_INTERFACES:
            raise block.corrupt(f"a section with more than {MAX_INTERFACES} interfaces")
        link_type, _, snaplen = self._layouts.interface.unpack_from(block.data, block.start)
        per_second, offset_ns = 10**6, 0
        for code, value in self._options(block, block.start + 8):
            if code == IF_TSRESOL and len(value) == 1:
                per_second = _ticks_per_second(value[0])
            elif code == IF_TSOFFSET and len(value) == 8:
                offset_ns = self._layouts.offset.unpack(value)[0] * 10**9
        multiplier, divisor = _nanoseconds(per_second)
        number = self.next_interface
        self.next_interface += 1
        self.interfaces.append(InterfaceBlock(number, link_type, snaplen, multiplier, divisor, offset_ns))

    def _interface(self, block: Block, ident: int) -> InterfaceBlock:
        if ident >= len(self.interfaces):
            raise block.corrupt(f"a packet of interface {ident}, but the section has {len(self.interfaces)}")
        return self.interfaces[ident]

    # --- Packets --------------------------------------------------------------------------------------------

    def _enhanced(self, block: Block) -> Frame:
        if block.stop - block.start < 20:
            raise block.corrupt("a packet block that is too short")
        ident, high, low, captured, original = self._layouts.enhanced.unpack_from(block.data, block.start)
        return self._packet(block, ident, high, low, captured, original)

    def _obsolete(self, block: Block) -> Frame:
        if block.stop - block.start < 20:
            raise block.corrupt("a packet block that is too short")
        ident, _, high, low, captured, original = self._layouts.obsolete.unpack_from(block.data, block.start)
        return self._packet(block, ident, high, low, captured, original)

    def _packet(self, block: Block, ident: int, high: int, low: int, captured: int, original: int) -> Frame:
        interface = self._interface(block, ident)
        data = self._packet_data(block, block.start + 20, captured)
        options = block.start + 20 + captured + -captured % 4
        comments = self._comments(block, options) if options < block.stop else ()
        time_ns = interface.time_ns(high, low)
        number, link_type = self._number + 1, interface.link_type
        return Frame(number, time_ns, link_type, interface.number, data, original, comments)

    def _simple(self, block: Block) -> Frame:
        """No time, no interface (the first one is meant), no captured length (the snaplen tells it)."""
        if block.stop - block.start < 4:
            raise block.corrupt("a packet block that is too short")
        (original,) = self._layouts.length.unpack_from(block.data, block.start)
        interface = self._interface(block, 0)
        captured = min(original, interface.snaplen) if interface.snaplen else original
        data = self._packet_data(block, block.start + 4, captured)
        return Frame(self._number + 1, 0, interface.link_type, interface.number, data, original)

    def _packet_data(self, block: Block, start: int, captured: int) -> bytes:
        if captured > MAX_CAPTURED:
            raise block.corrupt(f"a packet of {captured} bytes, more than the maximum of {MAX_CAPTURED}")
        if start + captured > block.stop:
            raise block.corrupt(f"a packet of {captured} bytes in a block with room for {block.stop - start}")
        return block.data[start : start + captured]

    def _comments(self, block: Block, position: int) -> tuple[str, ...]:
        return tuple(
            value.partition(b"\0")[0].decode("utf-8", "replace")
            for code, value in self._options(block, position)
            if code == OPT_COMMENT
        )


def _ticks_per_second(resolution: int) -> int:
    """The option if_tsresol: a negative power of two if the top bit is set, else of ten."""
    exponent = resolution & 0x7F
    return int(2**exponent if resolution & 0x80 else 10**exponent)


def _nanoseconds(per_second: int) -> tuple[int, int]:
    """Multiplier and divisor that turn ticks into ns, kept small for the common clocks."""
    if 10**9 % per_second == 0:
        return 10**9 // per_second, 1
    return 10**9, per_second
