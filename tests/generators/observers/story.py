"""A generated capture, written, read back and told row by row; from the truth comes only who the broker is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import Any

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools import load_dialect
from pcap_tools.codec.decoding import decode_capture

REQUESTS = ("publish", "subscribe", "unsubscribe", "create")
MILLISECOND, SECOND = 1_000_000, 1_000_000_000
AT_ONCE_NS = 20 * MILLISECOND  # answers follow what they answer within this time


@dataclass(frozen=True)
class Seen:
    """One datagram of the capture."""

    frame: int
    time_ns: int
    client: str  # the end that is not the broker
    to_broker: bool
    data: bytes
    message: str | None
    meaning: str | None
    topic: bytes | None
    filter: bytes | None
    payload: bytes | None
    retain: bool | None
    error: str | None
    fields: dict[str, Any] = field(compare=False)


@dataclass
class Story:
    dialect: str
    rows: list[Seen]
    truth: dict[str, Any]

    def labels(self, *rules: str) -> list[dict[str, Any]]:
        return [label for label in self.truth["faults"] if not rules or label["rule"] in rules]

    def of(self, *meanings: str, to_broker: bool | None = None) -> list[Seen]:
        return [
            row
            for row in self.rows
            if row.error is None and row.meaning in meanings and to_broker in (None, row.to_broker)
        ]

    @property
    def publishes(self) -> list[Seen]:
        return self.of("publish", to_broker=True)

    @property
    def forwards(self) -> list[Seen]:
        return self.of("publish", "deliver", to_broker=False)


@cache
def story(
    dialect: str, scenario: str, faults: tuple[tuple[str, float], ...] = (), seed: int = 1, **sizes: Any
) -> Story:
    """Generate, write, read back."""
    order = GeneratorOptions(scenario, seed, (dialect,), faults=dict(faults), **sizes)
    made = generate(order)
    truth = made.truth()
    file = BytesIO()
    write(made.capture, file)
    file.seek(0)
    known = load_dialect(dialect)
    broker = truth["sites"][0]["broker"].rpartition(":")[0]
    rows = [_seen(row, broker) for row in decode_capture(file, [known])]
    return Story(known.name, rows, truth)


def _seen(row: Any, broker: str) -> Seen:
    datagram, message = row.datagram, row.message
    to_broker = datagram.dst == broker
    client = (datagram.src, datagram.sport) if to_broker else (datagram.dst, datagram.dport)
    return Seen(
        datagram.frame,
        datagram.time_ns,
        f"{client[0]}:{client[1]}",
        to_broker,
        datagram.payload,
        message.message,
        message.meaning,
        message.topic,
        message.filter,
        message.payload,
        message.retain,
        None if message.error is None else str(message.error),
        dict(message.fields),
    )


def frames(rows: list[Seen]) -> list[int]:
    return sorted(row.frame for row in rows)
