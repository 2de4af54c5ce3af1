"""Hand-typed datagrams and what they mean: the judge of every decoder. Format: README.md in this folder.

>>> from tests.vectors import load_vectors
>>> [vector.dialect for vector in load_vectors()][0]
'addresstopic'
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcap_tools.dialect import Dialect, builtin_names, load_dialect

VECTORS = Path(__file__).parent
DIALECTS = VECTORS.parent / "dialects"

_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-fA-F]{2}))")
_COLUMNS = {"form", "message", "meaning", "fields", "topic", "filter", "payload", "retain", "padding"}
_COLUMNS |= {"code", "accepted", "qos", "dup"}
_KEYS = {"what", "hex", "pad", *_COLUMNS, "error", "error_offset"}


@dataclass(frozen=True)
class Vector:
    """One datagram and everything that a decoder must say about it; None where it must say nothing."""

    dialect: str
    what: str
    datagram: bytes
    form: str
    message: str | None
    meaning: str | None
    fields: dict[str, int | bytes]
    topic: bytes | None
    filter: bytes | None
    payload: bytes | None
    retain: bool | None
    code: int | None
    accepted: bool | None
    qos: int | None
    dup: bool | None
    padding: int
    error: str | None
    error_offset: int | None

    def __str__(self) -> str:
        return f"{self.dialect}: {self.what}"


def load_vectors() -> list[Vector]:
    """Every vector of every file, in the order of the files' names."""
    return [vector for file in sorted(VECTORS.glob("*.toml")) for vector in _read(file)]


def own_dialect_names() -> list[str]:
    """The dialects that only the tests know."""
    return sorted(file.stem for file in DIALECTS.glob("*.toml"))


def dialect_of(name: str) -> Dialect:
    """A built-in dialect, else one of ``tests/dialects``."""
    return load_dialect(name if name in builtin_names() else DIALECTS / f"{name}.toml")


def _read(file: Path) -> list[Vector]:
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return [_vector(table["dialect"], entry) for entry in table["vector"]]


def _vector(dialect: str, entry: dict[str, Any]) -> Vector:
    unknown = entry.keys() - _KEYS
    if unknown:
        raise ValueError(f"{dialect}: {entry.get('what')}: unknown keys {sorted(unknown)}")
    pieces = entry["hex"] if isinstance(entry["hex"], list) else [entry["hex"]]
    return Vector(
        dialect=dialect,
        what=entry["what"],
        datagram=bytes.fromhex("".join(pieces)) + bytes(entry.get("pad", 0)),
        form=entry["form"],
        message=entry.get("message"),
        meaning=entry.get("meaning"),
        fields={name: _value(value) for name, value in entry.get("fields", {}).items()},
        topic=_text(entry.get("topic")),
        filter=_text(entry.get("filter")),
        payload=_text(entry.get("payload")),
        retain=entry.get("retain"),
        code=entry.get("code"),
        accepted=entry.get("accepted"),
        qos=entry.get("qos"),
        dup=entry.get("dup"),
        padding=entry.get("padding", 0),
        error=entry.get("error"),
        error_offset=entry.get("error_offset"),
    )


def _value(value: int | str) -> int | bytes:
    return value if isinstance(value, int) else unescape(value)


def _text(value: str | None) -> bytes | None:
    return None if value is None else unescape(value)


def unescape(text: str) -> bytes:
    r"""``\\`` is one backslash, ``\xNN`` one byte, everything else its UTF-8 bytes."""
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()) if found[1] else b"\\", text.encode())
