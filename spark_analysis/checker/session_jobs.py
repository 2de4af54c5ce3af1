"""The work on a session as jobs for tasks: who only tells verdicts runs them, and so does who wants every row.

A session that is one piece is one job, which looks twice. A larger one is looked at first, piece by piece; then it is
cut by time into parts, a job each, that know what the whole has taught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa

from pcap_tools.dialect import Dialect
from pcap_tools.errors import TopicsharkError

from ..capture_parts import Dialects
from .brokers import choose_brokers
from .context import Context
from .deliveries import HORIZON_NS
from .events import Events, events_of
from .gathering import Known, Seen, know, look
from .pieces import Batches, Piece, read_piece
from .policy import Policy
from .session_plans import SessionPlan

EVER = (-(1 << 62), 1 << 62)
USUAL_RESENDS = 4
DENSE_ROWS = 3_000_000  # a part that is shorter than its margin has as many rows at least

Run = Callable[..., list[Any]]


# -- a session that is one piece ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alone:
    """One dialect of such a session, ready to be judged."""

    dialect: Dialect
    datagrams: int
    known: Known
    events: Events
    damage: tuple[str, ...]


def look_alone(session: SessionPlan, dialects: Dialects, brokers: Sequence[str]) -> Iterator[Alone]:
    """In a task: both looks at once."""
    read = read_piece(session.pieces[0], dialects)
    for dialect in _present(read.batches, dialects):
        policy = Policy(dialect)
        seen = look(read.batches, policy)
        if not seen.datagrams:
            continue
        known = know(policy, choose_brokers(seen.pairs, policy, brokers), [seen], session.captures)
        events = events_of(read.batches, policy, session.captures)
        yield Alone(dialect, seen.datagrams, known, events, read.damage)


def _present(batches: Batches, dialects: Dialects) -> list[Dialect]:
    there = {name for batch in batches for name in batch.column("dialect").unique().to_pylist()}
    return [dialect for dialect in dialects.wanted if dialect.name in there]


# -- a session in several parts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A stretch of time that one task judges, with the pieces that hold it and its margins."""

    session: SessionPlan
    dialect: str
    pieces: tuple[Piece, ...]
    own: tuple[int, int]


@dataclass(frozen=True)
class PartJob:
    """A part, and what is known of the whole."""

    part: Part
    context: Context
    starts_late: bool

    def read(self, dialects: Dialects) -> Events:
        """In a task: the events of the part and its margins."""
        margin = margin_ns(self.context.policy)
        within = (self.part.own[0] - margin, self.part.own[1] + margin)
        batches = [batch for piece in self.part.pieces for batch in read_piece(piece, dialects, within).batches]
        captures = self.part.session.captures
        if not batches:
            raise TopicsharkError(f"{captures[0]}: changed while it was read")
        return events_of(batches, self.context.policy, captures)


@dataclass(frozen=True)
class InParts:
    """One dialect of such a session: the jobs are still to be done."""

    dialect: Dialect
    datagrams: int
    known: Known
    jobs: list[PartJob]
    damage: tuple[str, ...]


def look_in_parts(session: SessionPlan, dialects: Dialects, brokers: Sequence[str], run: Run) -> Iterator[InParts]:
    """The first look, by tasks; then one for each dialect that is there."""
    looked: list[_Looked] = run(partial(_look, dialects), session.pieces, "look")
    damage = tuple(sentence for one in looked for sentence in one.damage)
    for dialect in dialects.wanted:
        pieces = [
            (piece, one.seen[dialect.name])
            for piece, one in zip(session.pieces, looked, strict=True)
            if dialect.name in one.seen and one.seen[dialect.name].datagrams
        ]
        if not pieces:
            continue
        policy, seen = Policy(dialect), [one for _, one in pieces]
        pairs = pa.concat_tables([one.pairs for one in seen])
        known = know(policy, choose_brokers(pairs, policy, brokers), seen, session.captures)
        parts = _parts(session, dialect, pieces)
        jobs = [PartJob(part, known.part(part.own), known.starts_late) for part in parts]
        yield InParts(dialect, sum(one.datagrams for one in seen), known, jobs, damage)


@dataclass(frozen=True)
class _Looked:
    seen: dict[str, Seen]
    damage: tuple[str, ...]


def _look(dialects: Dialects, piece: Piece) -> _Looked:
    read = read_piece(piece, dialects)
    present = _present(read.batches, dialects)
    return _Looked({dialect.name: look(read.batches, Policy(dialect)) for dialect in present}, read.damage)


def _parts(session: SessionPlan, dialect: Dialect, seen: Sequence[tuple[Piece, Seen]]) -> list[Part]:
    """A part reads all pieces that reach into it or its margins, one capture after the other: so `events_of` wants
    them, or it would take captures that overlap to be in order."""
    timed = [(one.times, piece) for piece, one in seen if one.times]
    margin = margin_ns(Policy(dialect))
    parts = []
    for begin, end in pairwise(_cuts([one for _, one in seen], margin)):
        near = [piece for times, piece in timed if times[0] < end + margin and times[1] >= begin - margin]
        parts.append(Part(session, dialect.name, tuple(near), (begin, end)))
    return parts


def _cuts(seen: Sequence[Seen], margin: int) -> list[int]:
    """Where pieces begin; but where traffic is so dense that margins would be most of what is read, fewer."""
    cuts, rows = [EVER[0]], 0
    last = None
    for times, datagrams in sorted((one.times, one.datagrams) for one in seen if one.times):
        far = last is not None and times[0] - last >= margin
        if last is None:
            last = times[0]
        elif times[0] > last and (far or rows >= DENSE_ROWS):
            cuts.append(times[0])
            last, rows = times[0], 0
        rows += datagrams
    return [*cuts, EVER[1]]


def margin_ns(policy: Policy) -> int:
    """So far around a part lie the answers and causes of what it owns: a request may be sent again several times."""
    resend = policy.dialect.spec.client.resend
    limit = resend.limit if resend and resend.limit else USUAL_RESENDS
    return max((limit + 2) * policy.resend_ns, HORIZON_NS)
