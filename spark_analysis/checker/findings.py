"""What the checker found: rows of one table, collected while it looks at a part of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pcap_tools.escaping import escape_text

from .context import Context
from .events import Col, Events

FAIL, INCONCLUSIVE = "fail", "inconclusive"
FINDINGS = pa.schema(
    [
        ("session", pa.string()),
        ("rule", pa.string()),
        ("verdict", pa.string()),
        ("capture", pa.string()),
        ("frame", pa.int64()),
        ("time_ns", pa.int64()),
        ("related", pa.list_(pa.int64())),
        ("client", pa.string()),
        ("topic", pa.string()),
        ("text", pa.string()),
    ]
)
MOST_RELATED = 20


@dataclass
class Findings:
    """``checked`` counts by rule what could have been wrong. Only what the part owns is kept."""

    events: Events
    context: Context
    session: str
    checked: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    inconclusive: Counter[str] = field(default_factory=Counter)
    rows: list[tuple[object, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        begin, end = self.context.own
        time = self.events[Col.TIME]
        self.owned: NDArray[np.bool_] = (time >= begin) & (time < end)
        # What the capture has cut short cannot be read, so nothing that misses something is certain.
        self._cut = bool(pc.any(pc.equal(self.events.table.column("error"), "cut")).as_py())

    def check(self, rule: str, rows: NDArray[np.int64] | int) -> None:
        """So many occasions for a rule to be broken."""
        self.checked[rule] += rows if isinstance(rows, int) else int(self.owned[rows].sum())

    def add(
        self,
        rule: str,
        row: int,
        text: str,
        related: Iterable[int] = (),
        sure: bool = True,
        topic: str | None = None,
        client: str | None = None,
    ) -> None:
        """One finding; ``sure`` False: the capture cannot tell. ``related`` are rows, or frames below 0."""
        if not self.owned[row]:
            return
        sure = sure and not (self._cut and not rule.startswith("W-"))
        (self.failed if sure else self.inconclusive)[rule] += 1
        events = self.events
        frames = self._frames(row, related)
        shown = topic if topic is not None else events.text("topic", row)
        self.rows.append(
            (
                self.session,
                rule,
                FAIL if sure else INCONCLUSIVE,
                events.captures[int(events[Col.CAPTURE][row])],
                int(events[Col.FRAME][row]),
                int(events[Col.TIME][row]),
                frames,
                client if client is not None else events.client(row),
                shown,
                text if text.isprintable() else escape_text(text),  # topics in it are escaped once already
            )
        )

    def doubt(self) -> None:
        """The capture has lost frames: what tells of something that is not there may be about one of them."""
        for at, row in enumerate(self.rows):
            rule = str(row[1])
            if row[2] == FAIL and not rule.startswith(("W-", "P-", "N-", "R-A")):
                self.rows[at] = (*row[:2], INCONCLUSIVE, *row[3:])
                self.failed[rule] -= 1
                self.inconclusive[rule] += 1

    def _frames(self, row: int, related: Iterable[int]) -> list[int]:
        own = int(self.events[Col.FRAME][row])
        frames = [int(self.events[Col.FRAME][one]) if one >= 0 else -int(one) for one in related]
        return [frame for frame in dict.fromkeys(frames) if frame != own][:MOST_RELATED]

    def table(self) -> pa.Table:
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(FINDINGS)
        return pa.table(
            [pa.array(list(one), kind.type) for one, kind in zip(columns, FINDINGS, strict=True)], schema=FINDINGS
        )

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """By rule: checked, failed, inconclusive."""
        rules = {*self.checked, *self.failed, *self.inconclusive}
        return {rule: (self.checked[rule], self.failed[rule], self.inconclusive[rule]) for rule in sorted(rules)}


def quoted(text: str | None) -> str:
    return f'"{text}"' if text is not None else "a topic that is not told"


def seconds(nanoseconds: int) -> str:
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1_000:.0f} µs"
    return (
        f"{nanoseconds / 1_000_000:.1f} ms" if nanoseconds < 1_000_000_000 else f"{nanoseconds / 1_000_000_000:.2f} s"
    )


def numbers(rows: NDArray[np.int64] | Sequence[int]) -> list[int]:
    return [int(row) for row in rows]
