"""Decoders inside this process, each as a function from datagrams to outcomes: columnar (two ways) and scapy layers.

``expected`` is what a decoder should say where the codec says this message: parts that it has no words for are None.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fuzzing.decoders.datagrams import batch_of
from fuzzing.decoders.in_lua import LUAS, Lua
from fuzzing.decoders.in_tshark import Tshark
from fuzzing.decoders.outcome import CODES, Answer, Failure, Item, Outcome, full_outcome, outcome_of
from pcap_tools.codec.message import Message
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.fields import RawResult, decode_fields
from pcap_tools.columnar.text.json_lines import JsonLines
from pcap_tools.dialect import Dialect
from pcap_tools.escaping import unescape

UDP_HEADER = 8


class Backend(Protocol):
    """A decoder of some dialects."""

    def takes(self, item: Item) -> bool:
        """Whether it can be asked about this datagram at all."""

    def decode(self, items: Sequence[Item]) -> list[Answer]:
        """What it says, in order. It never raises: an exception is an answer too."""

    def expected(self, message: Message, item: Item) -> Outcome:
        """What it should say."""


def caught(error: Exception) -> Failure:
    """An exception as an answer."""
    return Failure(f"{type(error).__name__}: {error}")


def by_dialect(items: Sequence[Item], decode: Callable[[str, list[Item]], Sequence[Answer]]) -> list[Answer]:
    """The answers in order, from a decoder that takes the datagrams of one dialect at a time."""
    places: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item.dialect, []).append(place)
    answers: dict[int, Answer] = {}
    for dialect, of_dialect in places.items():
        answers |= zip(of_dialect, decode(dialect, [items[place] for place in of_dialect]), strict=True)
    return [answers[place] for place in range(len(items))]


def one_by_one(decode: Callable[[list[Item]], Sequence[Answer]], items: list[Item]) -> Sequence[Answer]:
    """All at once; if that raises, in halves, so that one datagram bears the blame."""
    try:
        return decode(items)
    except Exception as error:  # whatever it is, it is what we look for
        if len(items) == 1:
            return [caught(error)]
    half = len(items) // 2
    return [*one_by_one(decode, items[:half]), *one_by_one(decode, items[half:])]


class Columnar:
    """The lines that ``topicshark decode --format jsonl`` prints: plans and walk, columns and fields; and the columns
    of codes and flags, which these lines do not have."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        self._dialects = dialects
        self._decoders: dict[str, tuple[JsonLines, Decoder]] = {}

    def takes(self, item: Item) -> bool:
        return True

    def decode(self, items: Sequence[Item]) -> list[Answer]:
        return by_dialect(items, lambda name, some: one_by_one(lambda few: self._lines(name, few), some))

    def _lines(self, name: str, items: list[Item]) -> list[Answer]:
        if name not in self._decoders:
            dialects = [self._dialects[name]]
            self._decoders[name] = JsonLines(dialects), Decoder(dialects, columns=CODES)
        (lines, codes), batch = self._decoders[name], batch_of(items)
        rows = json.loads(f"[{','.join(lines.lines(batch).to_pylist())}]")
        more = codes.decode(batch).to_pylist()
        return [_from_json(row)._replace(**few) for row, few in zip(rows, more, strict=True)]

    def expected(self, message: Message, item: Item) -> Outcome:
        return full_outcome(message)._replace(ranges=None)


def _from_json(row: dict[str, Any]) -> Outcome:
    return Outcome(
        row["form"],
        row["message"],
        row["meaning"],
        _bytes(row["topic"]),
        _bytes(row["filter"]),
        _bytes(row["payload"]),
        row["retain"],
        row["padding"],
        row["error"],
        row["error_offset"],
        {name: _bytes(value) if isinstance(value, str) else value for name, value in row["fields"].items()},
        None,
    )


def _bytes(text: str | None) -> Any:
    if text is None:
        return None
    return unescape(text) if "\\" in text else text.encode()


class ColumnarWalk:
    """The walk alone, without plans: every field with its range. Slower, since it goes one datagram at a time."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        self._dialects = dialects

    def takes(self, item: Item) -> bool:
        return True

    def decode(self, items: Sequence[Item]) -> list[Answer]:
        return by_dialect(items, lambda name, some: one_by_one(lambda few: self._walk(name, few), some))

    def _walk(self, name: str, items: list[Item]) -> list[Answer]:
        return [_from_raw(result) for result in decode_fields(self._dialects[name], batch_of(items))]

    def expected(self, message: Message, item: Item) -> Outcome:
        return outcome_of(message)._replace(topic=None, filter=None, payload=None, retain=None)


def _from_raw(result: RawResult) -> Outcome:
    layout = result.layout
    return Outcome(
        result.form,
        layout.message if layout else None,
        layout.meaning if layout else None,
        None,
        None,
        None,
        None,
        result.padding,
        None if result.error is None else result.error.value,
        result.error_offset,
        {name: field.value for name, field in result.fields.items()},
        {name: (field.start, field.end) for name, field in result.fields.items()},
    )


class Layers:
    """scapy's packets: class, fields, errors, padding; and the same bytes again, from cache and without."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        from pcap_tools.layers.classes import DialectLayers

        self._layers = {name: DialectLayers(name, dialect) for name, dialect in dialects.items()}

    def takes(self, item: Item) -> bool:
        return bool(item.payload)  # scapy has no layer for no bytes

    def decode(self, items: Sequence[Item]) -> list[Answer]:
        return list(self._each(items))

    def _each(self, items: Sequence[Item]) -> Iterator[Answer]:
        for item in items:
            try:
                yield self._packet(item)
            except Exception as error:  # whatever it is, it is what we look for
                yield caught(error)

    def _packet(self, item: Item) -> Answer:
        from scapy.layers.inet import UDP

        below = UDP(len=item.length + UDP_HEADER)
        packet = self._layers[item.dialect].base(item.payload, _underlayer=below)
        reading = packet.reading()
        fields = {packet.dialect_name[own]: value for own, value in packet.fields.items() if value is not None}
        if bytes(packet) != item.payload:
            return Failure(f"comes back as {bytes(packet).hex()}")
        packet.clear_cache()
        if bytes(packet) != item.payload:
            return Failure(f"is built again as {bytes(packet).hex()}")
        if not packet.summary().isprintable():
            return Failure(f"summary {packet.summary()!r}")
        ordered = {name: fields.pop(name) for name in reading.fields if name in fields}
        return Outcome(
            packet.form, packet.message_name, None, None, None, None, None, reading.padding,
            reading.error and reading.error.value, reading.error_offset, ordered | fields, None,
        )  # fmt: skip

    def expected(self, message: Message, item: Item) -> Outcome:
        unsaid = dict.fromkeys(("meaning", "topic", "filter", "payload", "retain", "ranges"))
        return outcome_of(message)._replace(**unsaid)  # type: ignore[arg-type]


Maker = Callable[[Mapping[str, Dialect]], Backend]


class Kind(NamedTuple):
    """A decoder to compare with; ``program`` must be installed."""

    make: Maker
    chunk: int
    program: str | None = None

    @property
    def is_there(self) -> bool:
        return self.program is None or shutil.which(self.program) is not None


def _lua(interpreter: str) -> Maker:
    return lambda dialects: Lua(dialects, interpreter)


KINDS: dict[str, Kind] = {
    "columnar": Kind(Columnar, 10_000),
    "columnar walk": Kind(ColumnarWalk, 2_000),
    "layers": Kind(Layers, 2_000),
    **{name: Kind(_lua(name), 10_000, name) for name in LUAS},
    "tshark": Kind(Tshark, 2_500, "tshark"),
}
