"""The classic pcap format: a file header and records, in either byte order.

Three magic numbers: microseconds, nanoseconds, and the "modified" one of old Linux kernels, whose record
headers also carry the interface, the protocol and the packet type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pcap_tools.capture.damage import Corrupt
from pcap_tools.capture.frame import MAX_CAPTURED, Frame
from pcap_tools.capture.pcapng import BYTE_ORDER_MAGIC, SECTION_MAGIC
from pcap_tools.capture.streams import Window

MICROSECONDS = 0xA1B2C3D4
NANOSECONDS = 0xA1B23C4D
MODIFIED = 0xA1B2CD34

FILE_HEADER = 24
# seconds, fraction, captured length, original length
RECORD = "IIII"
# ... interface index, protocol, packet type, padding
MODIFIED_RECORD = "IIIIIHBx"
# The upper bits say whether and how long a frame check sequence is.
LINK_TYPE_MASK = 0x03FFFFFF

_KINDS = (MICROSECONDS, NANOSECONDS, MODIFIED)
MAGICS = {struct.pack(order + "I", magic): (order, magic) for magic in _KINDS for order in "<>"}
# How files begin: magic number and version. Behind them is a zero where a record has its captured length.
FILE_HEADS = frozenset(struct.pack(order + "IHH", magic, 2, 4) for magic in _KINDS for order in "<>")
_SECTION_MAGICS = {struct.unpack(order + "I", struct.pack("<I", BYTE_ORDER_MAGIC))[0] for order in "<>"}


def read_pcap(window: Window) -> Iterator[Frame]:
    """The frames of a pcap stream; raises `Corrupt` after the last good one."""
    order, magic = MAGICS[window.data[:4]]
    if not window.need(0, FILE_HEADER):
        window.finish("the file header")
    (link_type,) = struct.unpack_from(order + "I", window.data, 20)
    record = struct.Struct(order + (MODIFIED_RECORD if magic == MODIFIED else RECORD))
    scale = 1 if magic == NANOSECONDS else 1000
    return _records(window, record, scale, link_type & LINK_TYPE_MASK)


def why_no_record(start: bytes, captured: int) -> str:
    """What is wrong with a record of this captured length that begins with these eight bytes; empty if nothing is."""
    if start in FILE_HEADS if not captured else start[:4] == SECTION_MAGIC and captured in _SECTION_MAGICS:
        return (
            "another capture begins here; captures are joined with 'mergecap -a', not by writing them behind each other"
        )
    if captured > MAX_CAPTURED:
        return f"a record of {captured} bytes, more than the maximum of {MAX_CAPTURED}"
    return ""


def _records(window: Window, record: struct.Struct, scale: int, link_type: int) -> Iterator[Frame]:
    unpack = record.unpack_from
    header = record.size
    data, position, number = window.data, FILE_HEADER, 0
    interface, packet_type = 0, None
    while True:
        size, available = header, len(data)
        while position + header <= available:
            seconds, fraction, captured, original, *extra = unpack(data, position)
            if captured > MAX_CAPTURED or not captured:
                reason = why_no_record(data[position : position + 8], captured)
                if reason:
                    raise Corrupt(window.start + position, reason)
            size = header + captured
            if position + size > available:
                break
            if extra:
                interface, _, packet_type = extra
            body = data[position + header : position + size]
            number += 1
            time_ns = seconds * 1_000_000_000 + fraction * scale
            yield Frame(number, time_ns, link_type, interface, body, original, (), packet_type)
            position += size
            size = header
        if not window.need(position, size):
            window.finish(f"the record of frame {number + 1}")
            return
        data, position = window.data, 0
