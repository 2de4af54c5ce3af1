"""However the rows of a session are divided into batches, a fold gives the rows of all at once; what it remembers from
batch to batch is written and read back in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.checker import session_fold
from spark_analysis.checker.folds import DeliveryFold, ExchangeFold, State
from spark_analysis.checker.matching.exchanges import FORWARDS, Forwards
from spark_analysis.checker.session.broker_activity import set_beside
from spark_analysis.checker.session.endpoints import pairs_of
from spark_analysis.checker.session.events import FROM_BROKER, TO_BROKER, Col, Events, events_of, rows_of
from spark_analysis.checker.session.facts import SessionFacts, facts_of
from spark_analysis.checker.session.policy import Policy
from spark_analysis.checker.session_fold import Final, SessionFold
from spark_analysis.checker.steps import client_rows, judge_session, match_deliveries
from spark_analysis.pipeline import prepare_session
from spark_analysis.sessions.unit_reading import read_unit
from spark_analysis.sources.planning import plan_capture
from spark_analysis.sources.units import Unit
from spark_analysis.tables.packing import pack_tables, unpack_tables
from spark_analysis.tables.schemas import DELIVERIES
from tests.spark_analysis.checker.test_any_cut import EXAMPLES, MANY, orders, write_frames
from tests.spark_analysis.local_tables import texts

SECOND = 1_000_000_000
MOST_BATCHES = 50
PAUSES = (0.0, 0.4, 4.0, 8.0, 29.0, 40.0)  # between runs of a session: what is remembered has its limits in between


@dataclass(frozen=True)
class Session:
    """A session as the steps see it, and the messages that it is made of."""

    events: Events
    facts: SessionFacts
    messages: pa.Table

    @classmethod
    def of(cls, order: GeneratorOptions, pauses: Sequence[float]) -> Session:
        """What the order makes, again and again after these pauses."""
        capture = generate(order).capture
        run, frames = capture.frames, list(capture.frames)
        for pause in pauses:
            shift = frames[-1].time_ns + int(pause * SECOND) - run[0].time_ns + 1000
            frames += [replace(frame, time_ns=frame.time_ns + shift) for frame in run]
        capture.frames = frames
        wanted = wanted_dialects(order.dialects)
        policy = Policy(wanted.wanted[0])
        with TemporaryDirectory() as folder:
            path = write_frames(capture, 0, len(frames), Path(folder) / "run.pcap")
            plan = plan_capture(str(path), wanted, 1 << 40)
            batches = read_unit(Unit(str(path), plan.splits[0], plan.routes), wanted).batches
        messages = pa.Table.from_batches(batches)
        messages = messages.set_column(0, "capture", pa.array(["run.pcap"] * len(messages)))
        table = rows_of(messages, policy.dialect.name)
        facts = facts_of("run", ("run.pcap",), policy, pairs_of(table, policy, 0), ())
        events, facts = prepare_session(events_of(table, policy, ("run.pcap",)), facts)
        set_beside(events)
        return cls(events, facts, messages)

    @cached_property
    def forwards(self) -> Forwards:
        return match_deliveries(self.events, self.facts)[0].forwards(self.events)


def borders(shares: Sequence[float], count: int) -> Iterator[tuple[int, int]]:
    return pairwise([0, *sorted(int(share * count) for share in shares), count])


def written_and_read(state: State) -> State:
    return unpack_tables(pack_tables(state)) if state else state


def fed(session: Session, asking: int, shares: Sequence[float]) -> tuple[list[pa.Table], list[int]]:
    """Rows of a direction, given to a fold in batches; and how many rows it remembered after each."""
    rows = np.flatnonzero(client_rows(session.events))
    found: list[pa.Table] = []
    sizes: list[int] = []
    state: State = {}
    about = session.facts, asking
    for begin, end in borders(shares, len(rows)):
        part = session.events.chosen(rows[begin:end])
        mine = np.isin(session.forwards.cause, part[Col.ID])
        fold = ExchangeFold(*about, written_and_read(state))
        found.append(fold.feed(part, Forwards.of(session.forwards.table().filter(pa.array(mine)))))
        state = fold.state
        sizes.append(len(state["events"]))
    found.append(ExchangeFold(*about, written_and_read(state)).finish())
    return found, sizes


SHARES = st.integers(0, MOST_BATCHES - 1).flatmap(
    lambda count: st.lists(st.floats(0, 1, exclude_max=True), min_size=count, max_size=count)
)


@settings(max_examples=EXAMPLES, derandomize=not MANY, database=None, deadline=None)
@given(orders(), st.lists(st.sampled_from(PAUSES), max_size=2), SHARES)
def test_fuzz_exchanges_of_any_batches(order: GeneratorOptions, pauses: list[float], shares: list[float]) -> None:
    session = Session.of(order, pauses)
    note(f"{order}, {pauses}")
    event(f"batches: {len(shares) // 10 * 10} or more")
    expected = judge_session(session.events, session.facts)
    found = [fed(session, asking, shares)[0] for asking in (TO_BROKER, FROM_BROKER)]
    same(pa.concat_tables([*found[0], *found[1]]), expected.exchanges)
    rows, forwards = delivered(session, shares)
    came = pc.is_in(expected.deliveries.column("outcome"), pa.array(["delivered", "late"]))
    same(rows, expected.deliveries.filter(came))
    same(forwards, session.forwards.seen().table())
    of_session = [*open_session(session, shares)]
    same(pa.concat_tables([one.exchanges for one in of_session]), expected.exchanges)
    same(pa.concat_tables([one.deliveries for one in of_session]), expected.deliveries.filter(came))
    certain = pc.starts_with(expected.findings.column("rule"), session_fold.CERTAIN)
    same(pa.concat_tables([one.findings for one in of_session]), expected.findings.filter(certain))


def open_session(session: Session, shares: Sequence[float]) -> Iterator[Final]:
    """Rows of a session whose messages come in batches. Its brokers are named: the first messages may not show all."""
    about = "run", session.facts.policy.dialect, session.facts.brokers.texts
    state: State = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_fold, "LEARN_NS", SECOND)
        for begin, end in borders(shares, len(session.messages)):
            fold = SessionFold(*about, written_and_read(state))
            yield fold.feed(session.messages.slice(begin, end - begin))
            state = fold.state
        yield SessionFold(*about, written_and_read(state)).finish()


def delivered(session: Session, shares: Sequence[float]) -> tuple[pa.Table, pa.Table]:
    """The same of publishes: copies that came, and forwards."""
    found = [(DELIVERIES.empty_table(), FORWARDS.empty_table())]
    state: State = {}
    for begin, end in borders(shares, len(session.events)):
        fold = DeliveryFold(session.facts, written_and_read(state))
        found.append(fold.feed(session.events.chosen(np.arange(begin, end))))
        state = fold.state
    found.append(DeliveryFold(session.facts, written_and_read(state)).finish())
    rows, forwards = zip(*found, strict=True)
    return pa.concat_tables(rows), pa.concat_tables(forwards)


def same(found: pa.Table, expected: pa.Table) -> None:
    one, two = texts(found.to_pylist()), texts(expected.to_pylist())
    assert one == two, (sorted(set(one) - set(two))[:3], sorted(set(two) - set(one))[:3])
