"""The real tshark with our dissector: one capture and one process for a batch of datagrams, each dialect on its port.

tshark shows where a value stands, not where its field begins: texts are without the length in front and the delimiter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory

from fuzzing.decoders.outcome import Answer, Failure, Item, Outcome, outcome_of
from pcap_tools.capture.writer import CaptureWriter
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Extent, Kind, Step, Value
from pcap_tools.dissector import write_dissector
from tests.dissector.tshark import RAW_IP, UDP_PAYLOAD_AT, Shown, pdml, udp_packet

FIRST_PORT = 20_000  # away from all dialects' ports: each dialect is named by Decode As
_START_NS = 1_700_000_000_000_000_000
_APART_NS = 10_000_000


class Tshark:
    """tshark itself; whatever it complains of is looked for in halves of the batch until one datagram is left."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        self._dialects = dialects
        self._ports = {name: FIRST_PORT + place for place, name in enumerate(dialects)}
        self._folder = TemporaryDirectory(prefix="fuzzing-")
        self._home = Path(self._folder.name)
        write_dissector(dialects.values(), self._home / "dissector.lua")
        self._began, self._problem = False, ""
        self._own = {name: _own_fields(dialect) for name, dialect in dialects.items()}

    def takes(self, item: Item) -> bool:
        return bool(item.payload)  # tshark calls nobody for no bytes

    def decode(self, items: Sequence[Item]) -> list[Answer]:
        if not self._began:  # what fails without a datagram is no datagram's fault, and not worth looking for
            self._began = True
            self._problem = self._complaint()
        return [Failure(self._problem)] * len(items) if self._problem else self._decode(items)

    def _complaint(self) -> str:
        try:
            self._shown([])
        except AssertionError as error:
            return f"at its start: {error}"
        return ""

    def _decode(self, items: Sequence[Item]) -> list[Answer]:
        try:
            return [self._outcome(item, shown) for item, shown in zip(items, self._shown(items), strict=True)]
        except (AssertionError, ValueError, SyntaxError, TimeoutExpired) as error:  # stderr, rows left out, no XML
            if len(items) == 1:
                return [Failure(f"{type(error).__name__}: {error}")]
        half = len(items) // 2
        return [*self._decode(items[:half]), *self._decode(items[half:])]

    def _shown(self, items: Sequence[Item]) -> list[Shown]:
        capture = self._home / "batch.pcap"
        with CaptureWriter(capture, link_type=RAW_IP) as out:
            for number, item in enumerate(items):
                whole = item.payload + bytes(item.length - len(item.payload))
                frame = udp_packet(whole, ("10.0.0.1", 9), ("10.0.0.2", self._ports[item.dialect]))
                kept = frame[: UDP_PAYLOAD_AT + len(item.payload)]
                out.write(kept, _START_NS + number * _APART_NS, original_length=len(frame))
        used = {item.dialect for item in items}
        ports = [part for name in sorted(used) for part in ("-d", f"udp.port=={self._ports[name]},pubsub_{name}")]
        return list(pdml(capture, *ports, "-J", "pubsub", home=self._home, script=self._home / "dissector.lua"))

    def _outcome(self, item: Item, shown: Shown) -> Answer:
        if shown.one("pubsub.dialect") != item.dialect:
            return Failure(f"shown as {shown.one('pubsub.dialect')}")
        own = self._own[item.dialect]
        retain, offset = shown.one("pubsub.retain"), shown.one("pubsub.error_offset")
        fields: dict[str, Value] = {}
        ranges = {}
        for abbreviation, (name, is_number) in own.items():
            if abbreviation in shown.show:
                at, size = shown.at[abbreviation]
                fields[name] = shown.number(abbreviation) if is_number else shown.raw[abbreviation]
                ranges[name] = (at - UDP_PAYLOAD_AT, at - UDP_PAYLOAD_AT + size)
        return Outcome(
            shown.one("pubsub.form") or "",
            shown.one("pubsub.message"),
            shown.one("pubsub.meaning"),
            shown.raw.get("pubsub.topic"),
            shown.raw.get("pubsub.filter"),
            shown.raw.get("pubsub.payload"),
            None if retain is None else retain in ("1", "True"),
            int(shown.one("pubsub.padding") or 0),
            shown.one("pubsub.error"),
            None if offset is None else int(offset),
            dict(sorted(fields.items())),
            ranges,
        )

    def expected(self, message: Message, item: Item) -> Outcome:
        outcome = outcome_of(message)
        ranges = {name: self._value_range(message, name) for name in message.fields}
        columns: dict[str, bytes | None] = {}
        for column in ("topic", "filter", "payload"):
            name = getattr(message.layout, column) if message.layout else None
            if name in ranges:  # the bytes of a number are its bytes, not its digits
                columns[column] = item.payload[slice(*ranges[name])]
        return outcome._replace(fields=dict(sorted(message.fields.items())), ranges=ranges, **columns)  # type: ignore[arg-type]

    def _value_range(self, message: Message, name: str) -> tuple[int, int]:
        first, last = message.ranges[name]
        value = message.fields[name]
        if not isinstance(value, bytes):
            return first, last
        step = self._step(message, name)
        first += step.size if step.extent is Extent.PREFIX else 0
        return first, first + len(value)

    def _step(self, message: Message, name: str) -> Step:
        """The step of a field: in one form it is the same in all layouts, but for what guards and counts."""
        form = self._dialects[message.dialect].form(message.form)
        return next(step for layout in form.layouts for step in layout.steps if step.name == name)  # type: ignore[union-attr]


def _own_fields(dialect: Dialect) -> dict[str, tuple[str, bool]]:
    """The dialect's own fields as tshark names them: which field, and whether it is a number.

    A name that is text in one form and a number in another is two fields; the later one is called after its sort. So
    are signed numbers and unsigned ones that no signed field can hold.
    A dialect that is called like one of the common fields is a ``-dialect``.
    """
    words = (dialect.name, f"{dialect.name}-dialect")
    found: dict[str, tuple[str, bool]] = {}
    sorts: dict[str, list[str]] = {}
    for step in (step for form in dialect.forms for layout in form.layouts for step in layout.steps):
        sort = "number" if step.kind in NUMBERS else "text" if step.kind is Kind.TEXT else "bytes"
        known = sorts.setdefault(step.name, [])
        if sort not in known:
            suffixes = [f"{step.name}.{sort}" if known else step.name]
            if sort == "number":
                suffixes += [f"{step.name}.number", f"{step.name}.signed"]
            found |= {f"pubsub.{word}.{suffix}": (step.name, sort == "number") for word in words for suffix in suffixes}
            known.append(sort)
    return found
