"""From a capture to decoded rows: datagrams read, their dialect found, each decoded. Bounded memory, one pass.

>>> from pcap_tools.codec.decoding import decode_capture  # doctest: +SKIP
>>> for row in decode_capture("capture.pcap"):      # doctest: +SKIP
...     print(row.datagram.frame, row.message.message, row.message.topic)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from pcap_tools.capture import Damage, Datagram, read_datagrams
from pcap_tools.codec.detect import Detector, Dialects, Evidence
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.escaping import escape

LEARN_DATAGRAMS = 5_000
LEARN_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """One datagram of the capture; ``message`` is None if it is in no dialect known here."""

    datagram: Datagram
    message: Message | None

    def as_dict(self) -> dict[str, Any]:
        """The row as ``decode --format jsonl`` prints it: bytes in the notation of ``escaping``."""
        datagram, message = self.datagram, self.message or Message("", "")
        known = self.message is not None
        return {
            "frame": datagram.frame,
            "time_ns": datagram.time_ns,
            "src": datagram.src,
            "sport": datagram.sport,
            "dst": datagram.dst,
            "dport": datagram.dport,
            "dialect": message.dialect if known else None,
            "form": message.form if known else None,
            "message": message.message,
            "meaning": message.meaning,
            "topic": _shown(message.topic),
            "filter": _shown(message.filter),
            "retain": message.retain,
            "payload": _shown(message.payload),
            "fields": {name: _shown(value) for name, value in message.fields.items()},
            "padding": message.padding,
            "length": datagram.length,
            "error": message.error,
            "error_offset": message.error_offset,
            "copy_of": datagram.copy_of,
        }


def _shown(value: int | bytes | None) -> int | str | None:
    return escape(value) if isinstance(value, bytes) else value


@dataclass(slots=True)
class Notes:
    """What there is to say about a capture apart from its rows."""

    evidence: list[Evidence] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    decoded: int = 0
    other: int = 0


def decode_capture(
    source: str | Path | BinaryIO,
    dialects: list[Dialect] | None = None,
    notes: Notes | None = None,
    ports: dict[int, str] | None = None,
    on_evidence: Callable[[list[Evidence]], None] | None = None,
    period: Callable[[int], tuple[int, int]] | None = None,
) -> Iterator[Row]:
    """Every UDP datagram of a capture, decoded where its dialect is known.

    ``dialects``: those the user named (their own ports are then believed without proof); None looks for the
    built-in ones. ``notes`` is filled on the way. ``period``: given the time of the first datagram, from which
    time on rows are wanted, and up to which without.
    """
    notes = notes if notes is not None else Notes()
    detector = Dialects.of(dialects, ports).detector()
    datagrams = read_datagrams(source, notes.damage.append, notes.warnings.append)
    first = _learn(detector, datagrams)
    notes.evidence = detector.decide()
    if on_evidence:
        on_evidence(notes.evidence)
    since, until = period(first[0].time_ns) if period and first else (None, None)
    for datagram in chain(first, datagrams):
        if since is not None and until is not None and not since <= datagram.time_ns < until:
            continue
        codec = detector.codec_for(datagram)
        if codec is None:
            notes.other += 1
            yield Row(datagram, None)
        else:
            notes.decoded += 1
            yield Row(datagram, codec.decode(datagram.payload, datagram.length))


def _learn(detector: Detector, datagrams: Iterator[Datagram]) -> list[Datagram]:
    """Take the first datagrams as evidence; returns them, to be decoded as well."""
    first: list[Datagram] = []
    size = 0
    for datagram in datagrams:
        first.append(datagram)
        size += len(datagram.payload)
        if datagram.copy_of is None:
            detector.learn(datagram)
        if len(first) >= LEARN_DATAGRAMS or size >= LEARN_BYTES:
            break
    return first
