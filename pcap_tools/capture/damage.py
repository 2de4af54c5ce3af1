"""What is said about a capture that is cut or corrupt, and about a file that is no capture at all.

Damage is a normal thing in captures (a full disk, a killed tcpdump), so it is reported beside the frames and
not raised: everything before it is still good. Only a file that holds no capture is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pcap_tools.errors import TopicsharkError

_log = logging.getLogger(__name__)


class CaptureError(TopicsharkError):
    """The source is not a capture, or cannot be opened."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a capture stops to make sense. For a gzip file the offset counts the uncompressed bytes."""

    path: str
    offset: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}: damaged at byte {self.offset}: {self.text}"


class Corrupt(Exception):
    """Raised by the parsers of this package only; `read_frames` turns it into a `Damage`."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(text)
        self.offset = offset
        self.text = text


OnDamage: TypeAlias = Callable[[Damage], None]
OnWarning: TypeAlias = Callable[[str], None]


def log_damage(damage: Damage) -> None:
    """The default `on_damage`: nothing that was lost goes unsaid."""
    _log.warning("%s", damage)


def log_warning(text: str) -> None:
    """The default `on_warning`."""
    _log.warning("%s", text)
