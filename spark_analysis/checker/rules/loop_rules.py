"""X-LOOP, X-WRONG-INSTRUCTION, X-COMPLETION: dashboards answer readings rightly, actuators report instructions as done.

The dialect's `[application.loop]` names messages, replies and the suffix of their topics (``rolebyte`` has one). A
reading is a forward to a dashboard that instructs, with a whole number as its payload. The instruction is due on the
room's topic with the suffix behind it, before the next reading of the room. What the capture may have missed is not
blamed on anybody: see ``_loses`` and ``_overdue``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.dialect.spec import LoopSpec

from ..findings.evidence import CLIENTS_LOSE
from ..findings.findings import Candidates
from ..findings.reasons import CLIENT_WAITS, MISSED_BY_CAPTURE, NO_SIGN_OF_LIFE, ends_soon
from ..matching.exchanges import Exchanges
from ..rulebook.catalogue import applies
from ..session.events import FROM_BROKER, TO_BROKER, Col, Events
from ..session.facts import SessionFacts
from ..session.policy import ACK, PUBLISH, SECOND, Policy

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

LOOP, WRONG, COMPLETION = "X-LOOP", "X-WRONG-INSTRUCTION", "X-COMPLETION"
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
IN_TIME_NS = SECOND  # an answer may take so long: it may lie beyond the end of the capture
DOUBLE_NS = 10_000_000  # the same again within this time is the network's doing
QUIET_NS = SECOND // 4  # a pause: what was acknowledged at all was acknowledged before it
QUEUED_NS = 5 * SECOND  # a dashboard that waits for an ACK may answer so much later,
MOST_QUEUED = 10  # and has no more readings than this in its queue


@dataclass
class _Reading:
    """A reading, and what the dashboard said of its room before the next one: rows and words."""

    row: int
    time: int
    value: int
    due: str
    answers: list[tuple[int, str]] = field(default_factory=list)
    doubt: str | None = None

    def is_answered_by(self, answers: Iterable[tuple[int, str]]) -> bool:
        return any(word == self.due for _, word in answers)


def judges_payloads(policy: Policy) -> bool:
    """Whether the rules here apply, which read payloads; all others by client only compare them."""
    return applies(LOOP, policy) is None


def loop_findings(events: Events, facts: SessionFacts, candidates: Candidates, asked: Exchanges | None = None) -> int:
    """Judge every reading of every dashboard that instructs; returns evidence of loss."""
    if applies(LOOP, events.policy) is not None:
        return 0
    instructions = _instructions(events)
    dashboards = np.unique(events[Col.CLIENT][instructions])
    readings = np.flatnonzero(_forwards(events) & np.isin(events[Col.CLIENT], dashboards))
    last_words = _last_words(events)
    for said in _by_room(events, readings, instructions, dashboards):
        wrong, silent = _judge(said)
        candidates.check(LOOP, np.array([one.row for one in said], np.int64))
        candidates.check(WRONG, np.array([one.answers[0][0] for one in said if one.answers], np.int64))
        for one in wrong:
            _tell_wrong(candidates, one, _is_busy(events, asked, one))
        for one in silent:
            waited = facts.end - one.time
            in_time = None if waited >= IN_TIME_NS else ends_soon(waited, IN_TIME_NS)
            heard = None if last_words.get(int(events[Col.CLIENT][one.row]), -1) > one.row else NO_SIGN_OF_LIFE
            _tell_silent(candidates, one, in_time or heard or _was_missed(events, one) or _is_busy(events, asked, one))
    _completions(events, facts, candidates, asked, last_words)
    return CLIENTS_LOSE if _loses(events, facts, last_words) else 0


def _completions(
    events: Events, facts: SessionFacts, candidates: Candidates, asked: Exchanges | None, last_words: dict[int, int]
) -> None:
    """Judge every instruction to an actuator that reports completions."""
    loop = events.policy.dialect.spec.application.loop
    if loop is None:
        return
    names = events.policy.messages
    reports = np.flatnonzero(_sent(events, np.array([name == loop.report for name in names]), TO_BROKER))
    actuators = np.unique(events[Col.CLIENT][reports])
    orders = np.flatnonzero(_forwards(events) & np.isin(events[Col.CLIENT], actuators))
    rows = np.sort(np.concatenate([reports, orders]))
    topics, payloads = (events.table.column(name).take(pa.array(rows)).to_pylist() for name in ("topic", "payload"))
    is_report, clients = np.isin(rows, reports).tolist(), events[Col.CLIENT][rows].tolist()
    waiting: dict[tuple[int, str], list[_Order]] = defaultdict(list)
    given: list[_Order] = []
    for row, reported, client, topic, payload in zip(rows.tolist(), is_report, clients, topics, payloads, strict=True):
        open_ones, time = waiting[client, topic or ""], int(events[Col.TIME][row])
        if reported and payload == loop.completion and open_ones:
            open_ones.pop().is_done = True  # the last one: an earlier one may be reported late, or never
        elif not reported and (topic or "").endswith(loop.suffix):
            last = open_ones[-1] if open_ones else None
            if last is None or last.word != payload or time - last.time > DOUBLE_NS:
                open_ones.append(_Order(row, time, payload or ""))
                given.append(open_ones[-1])
    if given:
        candidates.check(COMPLETION, np.array([one.row for one in given], np.int64))
    for one in (one for one in given if not one.is_done):
        _tell_open(candidates, one, _order_doubt(events, facts, asked, one, last_words))


@dataclass
class _Order:
    """An instruction that came to an actuator."""

    row: int
    time: int
    word: str
    is_done: bool = False


def _order_doubt(
    events: Events, facts: SessionFacts, asked: Exchanges | None, one: _Order, last_words: dict[int, int]
) -> str | None:
    waited = facts.end - one.time
    in_time = None if waited >= IN_TIME_NS else ends_soon(waited, IN_TIME_NS)
    heard = None if last_words.get(int(events[Col.CLIENT][one.row]), -1) > one.row else NO_SIGN_OF_LIFE
    return in_time or heard or _was_missed(events, one) or _is_busy(events, asked, one)


def _tell_open(candidates: Candidates, one: _Order, doubt: str | None) -> None:
    candidates.add(COMPLETION, one.row, {"seen": one.word}, (), doubt, CLIENTS_LOSE)


def _is_busy(events: Events, asked: Exchanges | None, one: _Reading | _Order) -> str | None:
    """A reason if the client was waiting for an ACK of whatever it had asked for: it says nothing else meanwhile."""
    if asked is None:
        return None
    firsts = asked.firsts()
    mine = firsts[(events[Col.CLIENT][firsts] == events[Col.CLIENT][one.row]) & asked.owed[firsts] & (firsts < one.row)]
    time, ack = events[Col.TIME], asked.ack[mine]
    until = np.where(ack >= 0, time[ack], time[asked.last[mine]] + 2 * events.policy.resend_ns)
    return CLIENT_WAITS if (until > one.time).any() else None


def _instructions(events: Events) -> Integers:
    """Rows of replies to readings."""
    policy, loop = events.policy, events.policy.dialect.spec.application.loop
    named = [loop is not None and name == loop.reply for name in policy.messages]
    return np.flatnonzero(_sent(events, np.array(named) & (policy.meaning == PUBLISH), TO_BROKER))


def _forwards(events: Events) -> Flags:
    return _sent(events, events.policy.forwards, FROM_BROKER)


def _sent(events: Events, messages: Flags, side: int) -> Flags:
    """Rows of these messages in this direction."""
    chosen: Flags = np.append(messages, False)[events[Col.MESSAGE]]  # the last is for datagrams in error
    chosen &= events[Col.SIDE] == side
    return chosen


def _last_words(events: Events) -> dict[int, int]:
    """The last row that each client sent: what came later may have met nobody."""
    rows = np.flatnonzero(events[Col.SIDE] == TO_BROKER)
    return dict(zip(events[Col.CLIENT][rows].tolist(), rows.tolist(), strict=True))


def _loses(events: Events, facts: SessionFacts, last_words: dict[int, int]) -> bool:
    """Whether datagrams get lost: what clients were sent and their ACKs do not go together in numbers.

    Counted from one pause in a client's talk to the next. A lost instruction leaves no trace of its own, so that one
    loss anywhere makes every missing one doubtful.
    """
    if not events.policy.client_acks.any():
        return True  # nothing would show it
    forwards, acks = _forwards(events), _sent(events, events.policy.meaning == ACK, TO_BROKER)
    rows = np.flatnonzero(forwards | acks)
    client, time = events[Col.CLIENT][rows], events[Col.TIME][rows]
    last = np.array([last_words.get(one, -1) for one in client.tolist()], np.int64)
    kept = np.flatnonzero(rows <= last)
    if not len(kept):
        return False
    order = kept[np.lexsort((kept, client[kept]))]
    pauses = (np.diff(client[order]) != 0) | (np.diff(time[order]) > QUIET_NS)
    begins, ends = np.append(0, np.flatnonzero(pauses) + 1), np.append(np.flatnonzero(pauses), -1)
    surplus = np.add.reduceat(np.where(forwards[rows[order]], 1, -1), begins)
    is_cut = (time[order][begins] < facts.begin + QUIET_NS) | (time[order][ends] > facts.end - QUIET_NS)
    return bool(surplus[~is_cut].any())


def _was_missed(events: Events, one: _Reading | _Order) -> str | None:
    """A reason if the broker acknowledged something of the dashboard's that the capture does not hold."""
    end = int(np.searchsorted(events[Col.TIME], one.time + IN_TIME_NS))
    rows = np.arange(one.row, max(end, one.row + 1))
    rows = rows[events[Col.CLIENT][rows] == events[Col.CLIENT][one.row]]
    policy, message, side = events.policy, events[Col.MESSAGE][rows], events[Col.SIDE][rows]
    asked = (side == TO_BROKER) & np.append(policy.broker_acks, False)[message]
    acked = (side == FROM_BROKER) & np.append(policy.meaning == ACK, False)[message]
    return MISSED_BY_CAPTURE if (np.cumsum(acked) > np.cumsum(asked)).any() else None


def _by_room(events: Events, readings: Integers, instructions: Integers, dashboards: Integers) -> list[list[_Reading]]:
    """The readings of each dashboard and room in their order, with what was answered after each."""
    acks = _sent(events, events.policy.meaning == ACK, FROM_BROKER) & np.isin(events[Col.CLIENT], dashboards)
    rows = np.sort(np.concatenate([readings, instructions, np.flatnonzero(acks)]))
    topics, payloads = (events.table.column(name).take(pa.array(rows)).to_pylist() for name in ("topic", "payload"))
    columns = (acks[rows], np.isin(rows, instructions), rows, events[Col.CLIENT][rows], events[Col.TIME][rows])
    loop = events.policy.dialect.spec.application.loop
    if loop is None:
        return []
    rooms = _Rooms(loop)
    for is_ack, is_instruction, row, client, time, topic, payload in zip(
        *(column.tolist() for column in columns), topics, payloads, strict=True
    ):
        if is_ack:
            rooms.waiting.pop(client, None)
        elif is_instruction:
            rooms.instruct(row, client, topic or "", payload or "")
        else:
            rooms.read(row, time, client, topic or "", payload or "")
    return list(rooms.said.values())


@dataclass
class _Rooms:
    """Collects what is said of each room. ``waiting``: by dashboard, the instruction that has no ACK yet."""

    loop: LoopSpec
    said: dict[tuple[int, str], list[_Reading]] = field(default_factory=lambda: defaultdict(list))
    waiting: dict[int, tuple[str, str]] = field(default_factory=dict)

    def instruct(self, row: int, client: int, topic: str, word: str) -> None:
        """An answer to the last reading; the same again without an ACK answers nothing, and keeps the next waiting."""
        room = topic.removesuffix(self.loop.suffix) if topic.endswith(self.loop.suffix) else None
        said = self.said.get((client, room)) if room is not None else None
        if said and self.waiting.get(client) == (topic, word):
            said[-1].doubt = CLIENT_WAITS
        elif said:
            said[-1].answers.append((row, word))
        self.waiting[client] = topic, word

    def read(self, row: int, time: int, client: int, topic: str, payload: str) -> None:
        """One more reading, unless it is none, or the last one over again. A dashboard that waits answers it later."""
        if topic.endswith(self.loop.suffix) or not WHOLE_NUMBER.fullmatch(payload):
            return
        said, value = self.said[client, topic], int(payload)
        if not said or said[-1].value != value or time - said[-1].time > DOUBLE_NS:
            said.append(
                _Reading(
                    row, time, value, _due(self.loop, value), doubt=CLIENT_WAITS if client in self.waiting else None
                )
            )


def _due(loop: LoopSpec, value: int) -> str:
    """The reply to a reading: the first entry that fits, else the last."""
    for entry in loop.replies:
        if (entry.above is not None and value > entry.above) or (entry.below is not None and value < entry.below):
            return entry.reply
    return loop.replies[-1].reply


def _judge(said: list[_Reading]) -> tuple[list[_Reading], list[_Reading]]:
    """Of one room's readings, in their order: those answered wrongly, and those not answered."""
    wrong: list[_Reading] = []
    silent: list[_Reading] = []
    for one in said:
        overdue = _overdue(silent, one)
        if one.is_answered_by(one.answers):
            for late in overdue[: len(one.answers) - 1]:
                silent.remove(late)
        elif not one.answers:
            silent.append(one)
        elif overdue:
            # What was waiting came now; the answer to this reading may wait in its turn.
            silent.remove(overdue[0])
            one.doubt = CLIENT_WAITS
            silent.append(one)
        else:
            wrong.append(one)
    return wrong, silent


def _overdue(silent: list[_Reading], now: _Reading) -> list[_Reading]:
    """Earlier readings without an answer that what was said now would fit."""
    return [one for one in silent[-MOST_QUEUED:] if now.time - one.time < QUEUED_NS and one.is_answered_by(now.answers)]


def _tell_wrong(candidates: Candidates, one: _Reading, doubt: str | None) -> None:
    row, word = one.answers[0]
    detail = {"number": one.value, "seen": word, "expected": one.due}
    candidates.add(WRONG, row, detail, candidates.ids([one.row]), doubt or one.doubt, CLIENTS_LOSE)


def _tell_silent(candidates: Candidates, one: _Reading, doubt: str | None) -> None:
    detail = {"number": one.value, "expected": one.due}
    candidates.add(LOOP, one.row, detail, (), doubt or one.doubt, CLIENTS_LOSE)
