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
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.checker.broker_activity import set_beside
from spark_analysis.checker.endpoints import pairs_of
from spark_analysis.checker.events import FROM_BROKER, TO_BROKER, Col, Events, events_of, rows_of
from spark_analysis.checker.exchanges import Forwards
from spark_analysis.checker.facts import SessionFacts, facts_of
from spark_analysis.checker.folds import ExchangeFold, State
from spark_analysis.checker.policy import Policy
from spark_analysis.checker.steps import client_rows, judge_session, match_deliveries
from spark_analysis.checker.unit_reading import read_unit
from spark_analysis.packing import pack_tables, unpack_tables
from spark_analysis.pipeline import prepare_session
from spark_analysis.planning import plan_capture
from spark_analysis.units import Unit
from tests.spark_analysis.checker.test_any_cut import EXAMPLES, MANY, orders, write_frames
from tests.spark_analysis.local_tables import texts

SECOND = 1_000_000_000
MOST_BATCHES = 50
PAUSES = (0.0, 0.4, 4.0, 8.0, 29.0, 40.0)  # between runs of a session: what is remembered has its limits in between


@dataclass(frozen=True)
class Session:
    """A session as the steps see it."""

    events: Events
    facts: SessionFacts

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
        table = rows_of(batches, policy.dialect.name)
        facts = facts_of("run", ("run.pcap",), policy, pairs_of(table, policy, 0), ())
        events, facts = prepare_session(events_of(table, policy, ("run.pcap",)), facts)
        set_beside(events)
        return cls(events, facts)

    @cached_property
    def forwards(self) -> Forwards:
        return match_deliveries(self.events, self.facts)[0].forwards(self.events)


def some(events: Events, rows: np.ndarray) -> Events:
    """These rows, with all that is known of them."""
    columns = {column: events[column][rows] for column in Col}
    return Events(events.policy, columns, events.table.take(pa.array(rows)), events.captures)


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
    about = "run", session.facts.policy, session.facts.captures, asking
    for begin, end in borders(shares, len(rows)):
        part = some(session.events, rows[begin:end])
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


@settings(max_examples=2 * EXAMPLES, derandomize=not MANY, database=None, deadline=None)
@given(orders(), st.lists(st.sampled_from(PAUSES), max_size=2), SHARES)
def test_fuzz_exchanges_of_any_batches(order: GeneratorOptions, pauses: list[float], shares: list[float]) -> None:
    session = Session.of(order, pauses)
    note(f"{order}, {pauses}")
    expected = judge_session(session.events, session.facts).exchanges
    found = [fed(session, asking, shares)[0] for asking in (TO_BROKER, FROM_BROKER)]
    event(f"batches: {len(shares) // 10 * 10} or more")
    one, two = texts(pa.concat_tables([*found[0], *found[1]]).to_pylist()), texts(expected.to_pylist())
    assert one == two, (sorted(set(one) - set(two))[:3], sorted(set(two) - set(one))[:3])
