"""From a capture to the lines that ``topicshark decode`` prints: the columnar way of ``pcap_tools.codec.decoding``.

>>> for lines in decode_lines(TableLines, "run.pcap"):      # doctest: +SKIP
...     sys.stdout.write(lines.text)

Both ways say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pcap_tools.capture.streams import Source
from pcap_tools.codec.decoding import Notes
from pcap_tools.codec.detect import Dialects, Evidence, Routes
from pcap_tools.columnar.decode.learning import follow, open_decoder
from pcap_tools.columnar.read.datagrams import DatagramBatch
from pcap_tools.columnar.read.reading import read_file
from pcap_tools.columnar.text.json_lines import JsonLines
from pcap_tools.columnar.text.table_lines import TableLines
from pcap_tools.dialect import Dialect

ROWS = 8_192
# Bytes of payload that become text at once: in JSON a byte may be five characters, and stand there twice.
PAYLOADS = 1 << 20

Period = Callable[[int], tuple[int, int]]  # given the time of the first datagram: from, and up to without
Maker = Callable[[tuple[Dialect, ...], Routes], TableLines | JsonLines]


class Lines(NamedTuple):
    """Some more lines, and how many datagrams were read for them."""

    text: str
    datagrams: int


def decode_lines(
    maker: Maker,
    source: Source,
    dialects: list[Dialect] | None = None,
    notes: Notes | None = None,
    ports: dict[int, str] | None = None,
    on_evidence: Callable[[list[Evidence]], None] | None = None,
    period: Period | None = None,
) -> Iterator[Lines]:
    """The lines of all UDP datagrams that ``maker`` keeps. The other parameters are those of ``decode_capture``."""
    notes = notes if notes is not None else Notes()
    datagrams = read_file(source, notes.damage.append, notes.warnings.append, ROWS)
    batches, decoder, notes.evidence = open_decoder(datagrams, Dialects.of(dialects, ports), maker)
    if on_evidence:
        on_evidence(notes.evidence)
    for batch in batches:
        for part in _parts(batch if period is None else _within(batch, period(int(batch.time_ns[0])))):
            text = _text(decoder.lines(part))
            notes.decoded, notes.other = decoder.decoded, decoder.other
            yield Lines(text, part.count)


def decode_live(
    maker: Maker,
    source: Source,
    dialects: list[Dialect] | None = None,
    notes: Notes | None = None,
    ports: dict[int, str] | None = None,
    on_evidence: Callable[[list[Evidence]], None] | None = None,
    period: Period | None = None,
) -> Iterator[Lines]:
    """The same of a source that is still being written: each line as soon as its datagram is there.

    ``on_evidence`` is called each time that something is found.
    """
    notes = notes if notes is not None else Notes()
    datagrams = read_file(source, notes.damage.append, notes.warnings.append, ROWS)
    for decoder, batch, is_late in follow(datagrams, Dialects.of(dialects, ports), maker, on_evidence):
        if is_late and decoder.keep_other:
            continue  # their lines are there, without a dialect
        if period is not None:
            batch = _within(batch, period(int(batch.time_ns[0])))
        decoded, other = decoder.decoded, decoder.other
        text = "".join(_text(decoder.lines(part)) for part in _parts(batch))
        notes.decoded += decoder.decoded - decoded
        notes.other += decoder.other - other - (batch.count if is_late else 0)
        yield Lines(text, 0 if is_late else batch.count)


def _within(batch: DatagramBatch, period: tuple[int, int]) -> DatagramBatch:
    """Those of a period."""
    time = batch.time_ns[: batch.count]
    rows = np.flatnonzero((time >= period[0]) & (time < period[1]))
    return replace(batch, count=len(rows), **{name: getattr(batch, name)[rows] for name in _ARRAYS})


def _parts(batch: DatagramBatch) -> Iterator[DatagramBatch]:
    """The batch, in parts if its payloads are large; none if it is empty."""
    if not batch.count:
        return
    ends = np.cumsum(batch.size[: batch.count], dtype=np.int64)
    borders = np.searchsorted(ends, np.arange(PAYLOADS, int(ends[-1]), PAYLOADS), side="right")
    for low, high in pairwise(np.unique([0, *borders, batch.count]).tolist()):
        rows = {name: getattr(batch, name)[low:high] for name in _ARRAYS}
        yield replace(batch, count=high - low, **rows)


_ARRAYS = ("frame", "time_ns", "start", "size", "length", "src", "dst", "sport", "dport", "copy_of", "ip_id")


def _text(lines: Any) -> str:
    """What an Arrow array of strings holds, in one."""
    _, offsets, data = lines.buffers()
    if data is None or not len(lines):
        return ""
    end = int(np.frombuffer(offsets, np.int32)[len(lines)])
    return str(memoryview(data)[:end], "utf-8")
