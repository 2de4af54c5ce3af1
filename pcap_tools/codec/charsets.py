"""Is this text what its character set allows, and if not, from which byte on?

UTF-8 as Python and Unicode have it (no surrogates, no overlong forms); ``JAVA`` as DataOutputStream.writeUTF makes
it (one to three bytes a character, surrogates written as two characters). The same tables stand in Lua and numba.
"""

from __future__ import annotations

from pcap_tools.dialect.program import Charset


def first_bad_byte(text: bytes, charset: Charset) -> int:
    """Index of the first byte that does not belong, or -1."""
    if charset is Charset.ANY or text.isascii():
        return -1
    if charset is Charset.UTF8:
        return _first_bad_utf8(text)
    if charset is Charset.JAVA:
        return _first_bad_java(text)
    return next(index for index, byte in enumerate(text) if byte > 127)


def _first_bad_utf8(text: bytes) -> int:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _first_bad_java(text: bytes) -> int:
    at = 0
    while at < len(text):
        byte = text[at]
        more = 0 if byte < 0x80 else 1 if 0xC0 <= byte < 0xE0 else 2 if 0xE0 <= byte < 0xF0 else -1
        tail = text[at + 1 : at + 1 + more]
        if more < 0 or len(tail) < more or any(follower & 0xC0 != 0x80 for follower in tail):
            return at
        at += 1 + more
    return -1
