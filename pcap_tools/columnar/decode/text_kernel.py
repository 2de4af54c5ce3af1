"""Text in kernels: character sets, the notation of ``pcap_tools.escaping``, numbers as digits.

Most text on the wire is printable ASCII, which is what it is in every character set and in the notation. It is told
and copied in blocks of 32 bytes; only from the first other byte on one looks closer.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcap_tools.dialect.program import Charset
from pcap_tools.kernels.jit import i64, inlined, u64
from pcap_tools.kernels.words import BLOCK, copy_block, high_in_block, item, odd_in_block, zeros_below

GROWTH = 4  # of a byte as \xNN
MOST_DIGITS = 20  # of a number of 64 bits, or 19 and a sign
SPARE = 2 * BLOCK  # what may be written behind a text
_JAVA, _UTF8 = int(Charset.JAVA), int(Charset.UTF8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
# Outside these planes of Unicode no character is printable; asking for all of them would take half a second.
_ASSIGNED = ((0, 0x40000), (0xE0000, 0xF0000))
_BACKSLASH, _X, _MINUS, _ZERO = 0x5C, 0x78, 0x2D, 0x30


@cache
def printable() -> NDArray[np.uint8]:
    """One bit for each code point: whether Python, and so the notation, shows it as it is."""
    flags = np.zeros(sys.maxunicode + 1, bool)
    for begin, end in _ASSIGNED:
        flags[begin:end] = np.fromiter(map(str.isprintable, map(chr, range(begin, end))), bool, end - begin)
    return np.packbits(flags, bitorder="little")


@inlined
def sequence_size(buffer: Any, at: int, end: int) -> Any:
    """Bytes of the UTF-8 character that begins here, 0 if it is broken: no overlong forms, no surrogates."""
    lead = i64(item(buffer, at))
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if at + size > end:
        return 0
    second = i64(item(buffer, at + 1))
    low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
    if second < low or second > high:
        return 0
    for follower in range(at + 2, at + size):
        if item(buffer, follower) & 0xC0 != 0x80:
            return 0
    return size


@inlined
def java_size(buffer: Any, at: int, end: int) -> Any:
    """The same for what writeUTF makes."""
    lead = i64(item(buffer, at))
    if lead < 0x80:
        return 1
    if lead < 0xC0 or lead >= 0xF0:
        return 0
    size = 2 if lead < 0xE0 else 3
    if at + size > end:
        return 0
    for follower in range(at + 1, at + size):
        if item(buffer, follower) & 0xC0 != 0x80:
            return 0
    return size


@inlined
def first_bad_byte(buffer: Any, start: int, end: int, charset: int) -> Any:
    """Where the text leaves its character set, or -1."""
    at = start
    while at < end:
        mask = high_in_block(buffer, at)
        if end - at < BLOCK:
            mask &= (u64(1) << u64(end - at)) - u64(1)
        if mask == 0:
            at += BLOCK
            continue
        at += zeros_below(mask)
        size = 0
        if charset == _UTF8:
            size = sequence_size(buffer, at, end)
        elif charset == _JAVA:
            size = java_size(buffer, at, end)
        if size == 0:
            return at
        at += size
    return -1


@inlined
def is_plain(buffer: Any, start: int, size: int) -> Any:
    """Whether a text of at most one block is printable ASCII without a backslash."""
    return odd_in_block(buffer, start) & ((u64(1) << u64(size)) - u64(1)) == 0


@inlined
def put_text(buffer: Any, start: int, end: int, out: Any, at: int, shown: Any) -> Any:
    """Write bytes in the notation of ``escaping``; returns where the text ends. There must be room for it."""
    while start < end:
        mask = odd_in_block(buffer, start)
        copy_block(buffer, start, out, at)
        left = end - start
        if left < BLOCK:
            mask &= (u64(1) << u64(left)) - u64(1)
        if mask == 0:
            plain = min(left, BLOCK)
            start += plain
            at += plain
        else:
            plain = zeros_below(mask)
            start, at = _put_odd(buffer, start + plain, end, out, at + plain, shown)
    return at


@inlined
def _put_odd(buffer: Any, start: int, end: int, out: Any, at: int, shown: Any) -> tuple[int, int]:
    """Write one character that is not plain."""
    size = sequence_size(buffer, start, end)
    if size == 1 and item(buffer, start) == _BACKSLASH:
        out[at] = _BACKSLASH
        out[at + 1] = _BACKSLASH
        return start + 1, at + 2
    if size > 1:
        point = _code_point(buffer, start, size)
        if item(shown, point >> 3) >> (point & 7) & 1:
            for index in range(size):
                out[at + index] = item(buffer, start + index)
            return start + size, at + size
    for index in range(max(size, 1)):
        byte = item(buffer, start + index)
        out[at] = _BACKSLASH
        out[at + 1] = _X
        out[at + 2] = _HEX[byte >> 4]
        out[at + 3] = _HEX[byte & 15]
        at += 4
    return start + max(size, 1), at


@inlined
def _code_point(buffer: Any, at: int, size: int) -> Any:
    point = i64(item(buffer, at)) & (0xFF >> (size + 1))
    for follower in range(at + 1, at + size):
        point = point << 6 | i64(item(buffer, follower)) & 0x3F
    return point


@inlined
def put_number(value: int, unsigned: bool, out: Any, at: int) -> Any:
    """Write a number in decimal digits."""
    rest = u64(value)
    if value < 0 and not unsigned:
        out[at] = _MINUS
        at += 1
        rest = u64(0) - rest
    size, limit = 1, u64(10)
    while size < MOST_DIGITS and rest >= limit:
        size += 1
        limit *= u64(10)
    for place in range(at + size - 1, at - 1, -1):
        out[place] = _ZERO + np.uint8(rest % u64(10))
        rest //= u64(10)
    return at + size
