"""Text from packets is hostile: it goes through here on its way to a terminal, a table, JSON or a log.

One notation for bytes, lossless and safe: printable characters as they are, a backslash as ``\\\\``, and each byte of
anything else (control characters, bidi and zero-width marks, broken UTF-8) as ``\\xNN``.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")


def escape(data: bytes) -> str:
    r"""Bytes as safe text.

    >>> escape(b"home/fan"), escape("14C\u00b0".encode()), escape(b"\x1b[31m\xff")
    ('home/fan', '14C°', '\\x1b[31m\\xff')
    """
    text = data.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_safe(character) for character in text)


def _safe(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def unescape(text: str) -> bytes:
    r"""The bytes that ``escape`` was given.

    >>> unescape('\\x1b[31m\\\\')
    b'\x1b[31m\\'
    """

    def byte_of(found: re.Match[bytes]) -> bytes:
        return b"\\" if found.group(1) is None else bytes.fromhex(found.group(1).decode())

    return _ESCAPE.sub(byte_of, text.encode("utf-8", "surrogateescape"))


def escape_text(text: str) -> str:
    """The same for text that did not come as bytes: file names, messages of the operating system."""
    return escape(text.encode("utf-8", "surrogateescape"))


def shorten(text: str, width: int) -> str:
    """At most ``width`` characters, with an ellipsis where something was left out."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
