"""Publishes, the forwards that they require, and the forwards that were seen: paired by the matcher.

Retained messages are due in the same way, after a subscription in place of a publish.

A fold by topic: it needs all publishes and forwards of a topic, and the subscriptions whose filters match it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pcap_tools.topic_match import matches, wild_flags

from ..kernels.expecting import ASKS, CLIENT, EXPECTED, FILTER, LEAST, MOST, PUBLISH, SINCE, expect
from ..kernels.grouping import distinct, order_by_key
from ..kernels.hashing import mix
from ..kernels.matching import match
from ..kernels.subscribing import CHANGE_ID
from ..session.control import Subscriptions
from ..session.events import FROM_BROKER, TO_BROKER, Col, Events, kept_rows
from ..session.facts import SessionFacts
from ..session.policy import SECOND, SUBSCRIBE, Policy
from .exchanges import Forwards

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Proof = tuple[int, int, int, int]
Matching = tuple[Integers, NDArray[np.int32]]  # see `topic_match.matches`
HORIZON_NS = 30 * SECOND  # a forward later than that is none of this publish's
DOUBLE_NS = SECOND // 2  # the network's copy of a datagram comes within this time
AT_ONCE_NS = SECOND  # within which a retained message follows its subscription
# What is due for subscriptions that are matched elsewhere: see `expected_by`.
DUE = pa.schema(
    [(name, pa.int64()) for name in ("publish", "client", "least", "most", "since", "asks")]
    + [(name, pa.dictionary(pa.int32(), pa.string())) for name in ("filter", "client_text")]
)
PUBLISHED = pa.schema([(name, pa.int64()) for name in ("id", "time", "broker")] + [("topic", pa.string())])
_TEXTS = ("filter", "client_text", "is_given")
_EXPECTATION = {"publish": PUBLISH, "client": CLIENT, "least": LEAST, "most": MOST, "since": SINCE, "asks": ASKS}
RETAINED = pa.schema(
    [(name, pa.int64()) for name in ("name", "topic", "payload", "time", "id", "broker")] + [("text", pa.string())]
)


@dataclass(frozen=True)
class Matched:
    """What the matcher has found; see `Deliveries`. ``least`` is what it took to be due."""

    least: Integers
    filled: Integers
    first: Integers
    answers: Integers


@dataclass
class Deliveries:
    """
    publishes     rows that are to be passed on
    due           expectations, one a column: (PUBLISH, CLIENT, LEAST, MOST, FILTER, SINCE, ASKS); for a retained
                  message PUBLISH is the row of the subscription
    retained      of each expectation: -1, or the number of the retained message
    filled        how many forwards each got; `first` the first of them, -1 for none
    asked_for     the same as ``due`` for each filter that asks; ``part_of`` the expectation that it is part of
    seen          rows that are forwards; `answers` the expectation that each fulfils, -1 for none
    repeated      rows of forwards that the network made of another one, `repeats` that one
    proofs        by subscription without ACK and topic the forward that proves it
    is_given      expectations whose copies an earlier call has given out
    trial         what was matched before subscriptions were proven
    """

    publishes: Integers
    wild: Integers
    due: Integers
    retained: Integers
    filled: Integers
    first: Integers
    seen: Integers
    answers: Integers
    names: dict[int, str]
    topic_number: dict[int, int]
    matching: tuple[Integers, NDArray[np.int32]]
    kept: pa.Table
    asked_for: Integers
    part_of: Integers
    repeated: Integers
    repeats: Integers
    proofs: dict[Proof, int]
    is_given: Flags
    trial: Matched

    def publish_of(self) -> Integers:
        """For each forward seen, the row of what made it due; -1 if nothing did."""
        found = self.answers
        if not self.due.shape[1]:
            return np.full(len(found), -1, np.int64)
        return np.where(found >= 0, self.due[PUBLISH, found], -1)

    def _due_topics(self, events: Events) -> Integers:
        """The topic of each expectation; that of a retained message is its own, not the subscription's."""
        topics: Integers = events[Col.TOPIC][self.due[PUBLISH]].copy()
        kept = self.retained >= 0
        if kept.any():
            topics[kept] = self.kept.column("topic").to_numpy()[self.retained[kept]]
        return topics

    def troubled(self, events: Events) -> Integers:
        """Hashes of topics with something missing or not explained: their rules need the exchanges."""
        lacking = self._due_topics(events)[self.filled < self.due[LEAST]]
        return np.unique(np.concatenate([lacking, events[Col.TOPIC][self.seen[self.answers < 0]]]))

    def without(self, events: Events, topics: Integers) -> Deliveries:
        """The same but for some topics."""
        due = ~np.isin(self._due_topics(events), topics)
        seen, plain, wild = (
            ~np.isin(events[Col.TOPIC][rows], topics) for rows in (self.seen, self.publishes, self.wild)
        )
        place = np.cumsum(due) - 1
        answers, copies = self.answers[seen], due[self.part_of]
        return replace(
            self,
            publishes=self.publishes[plain],
            wild=self.wild[wild],
            due=np.ascontiguousarray(self.due[:, due]),
            retained=self.retained[due],
            filled=self.filled[due],
            first=self.first[due],
            is_given=self.is_given[due],
            seen=self.seen[seen],
            answers=np.where(answers >= 0, place[answers], -1) if len(place) else answers,
            asked_for=self.asked_for[:, copies],
            part_of=place[self.part_of[copies]],
        )

    def sort_out(self, events: Events, facts: SessionFacts, now: int) -> tuple[Flags, KeptDeliveries]:
        """If more is to come from this time on: expectations that are over now, and not given out before; and what is
        to be known of all this then."""
        since = now - HORIZON_NS - DOUBLE_NS
        young = events[Col.TIME] >= since
        over = ~young[self.due[PUBLISH]] & ~self.is_given
        seen = young[self.seen] | np.isin(self.seen, self.repeats[young[self.repeated]])
        due = young[self.due[PUBLISH]]
        answered = self.answers[seen]
        for answers in (answered, self.trial.answers[seen]):
            due[answers[answers >= 0]] = True
        chosen = np.zeros(len(events), np.bool_)
        for rows in (self.publishes[young[self.publishes]], self.due[PUBLISH, due], self.seen[seen]):
            chosen[rows] = True
        repeated = self.repeated[young[self.repeated]]
        chosen[repeated] = True
        rows = np.flatnonzero(chosen)
        retained = self._last_kept(np.unique(self.retained[due]))
        place, place_due, place_kept = (
            _places(some, size)
            for some, size in ((rows, len(events)), (np.flatnonzero(due), len(due)), (retained, len(self.kept)))
        )
        filters = np.array([*facts.subscriptions.filters, None], np.object_)  # what is retained is due to none
        copies, clients = due[self.part_of], facts.subscriptions.clients
        of_due = {
            **_expectations(self.due[:, due], place, filters),
            "client_text": pa.array([clients.get(one) for one in self.due[CLIENT, due].tolist()], pa.string()),
            "retained": place_kept[self.retained[due]],
            "filled": self.filled[due],
            "first": place[self.first[due]],
            "trial_least": self.trial.least[due],
            "trial_filled": self.trial.filled[due],
            "trial_first": place[self.trial.first[due]],
            "is_given": (self.is_given | over)[due],
        }
        of_copies = _expectations(self.asked_for[:, copies], place, filters) | {
            "part_of": place_due[self.part_of[copies]]
        }
        of_seen = {
            "row": place[self.seen[seen]],
            "answers": place_due[answered],
            "trial_answers": place_due[self.trial.answers[seen]],
        }
        client, text, since_id, name = np.array(list(self.proofs), np.int64).reshape(-1, 4).T
        in_force = np.isin(since_id, facts.subscriptions.changes[CHANGE_ID])
        texts = pa.array(filters[text], pa.string())
        proven = pa.table({"client": client, "filter": texts, "since": since_id, "name": name})
        return over, KeptDeliveries(
            kept_rows(events, rows),
            pa.table(of_due),
            pa.table(of_copies),
            pa.table(of_seen),
            pa.table({"row": place[repeated]}),
            self.kept.take(pa.array(retained)),
            proven.filter(pa.array(in_force)),
        )

    def _last_kept(self, wanted: Integers) -> Integers:
        """Of the retained messages these, and the last of each topic, which somebody may ask for."""
        topics = zip(self.kept.column("text").to_pylist(), self.kept.column("broker").to_pylist(), strict=True)
        last = {topic: at for at, topic in enumerate(topics)}
        return np.union1d(wanted[wanted >= 0], np.array(list(last.values()), np.int64))

    def forwards(self, events: Events) -> Forwards:
        """Which forward belongs to which request; those that the network made two of belong to the same one."""
        cause = self.publish_of()
        known = cause >= 0
        is_first = np.zeros(len(known), np.bool_)
        is_first[known] = self.first[self.answers[known]] == self.seen[known]
        rows, causes, firsts = self.seen[known], cause[known], is_first[known]
        if len(self.repeated):
            place = np.searchsorted(self.seen, self.repeats)
            again = cause[place] >= 0
            rows = np.concatenate([rows, self.repeated[again]])
            causes = np.concatenate([causes, cause[place[again]]])
            firsts = np.concatenate([firsts, np.zeros(int(again.sum()), np.bool_)])
        ids, time = events[Col.ID], events[Col.TIME]
        order = np.argsort(ids[rows], kind="stable")
        rows, causes, firsts = rows[order], causes[order], firsts[order]
        found = Forwards(ids[causes], ids[rows], time[rows], firsts)
        if not self.proofs:
            return found
        by = np.array(list(self.proofs.values()), np.int64)
        return found.proving(np.array([since for _, _, since, _ in self.proofs], np.int64), ids[by], time[by])


def _expectations(due: Integers, place: Integers, filters: NDArray[np.object_]) -> dict[str, Any]:
    """Columns of expectations, to be read by `_columns_of`."""
    numbers = {name: due[row] for name, row in _EXPECTATION.items()}
    return numbers | {"publish": place[due[PUBLISH]], "filter": pa.array(filters[due[FILTER]], pa.string())}


def _columns_of(table: pa.Table, filters: Mapping[str, int]) -> Integers:
    """Expectations that `_expectations` made columns of."""
    columns = np.empty((EXPECTED, len(table)), np.int64)
    for name, row in _EXPECTATION.items():
        columns[row] = table.column(name).to_numpy()
    columns[FILTER] = [filters.get(text, -1) for text in table.column("filter").to_pylist()]
    return columns


def _places(chosen: Integers, size: int) -> Integers:
    """By row its place among those that are chosen, -1 for the others, and behind the last one."""
    place = np.full(size + 1, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    return place


@dataclass(frozen=True)
class Publishes:
    """Rows of publishes with a topic, `wild` those whose topic is a filter; the texts of topics by their hash."""

    plain: Integers
    wild: Integers
    names: dict[int, str]


def find_publishes(events: Events, facts: SessionFacts) -> Publishes:
    """What clients publish."""
    message, side, name = events[Col.MESSAGE], events[Col.SIDE], events[Col.NAME]
    published = np.append(events.policy.publishes, False)[message] & (side == TO_BROKER) & (name != 0)
    rows = np.flatnonzero(published)
    names = _name_texts(events, facts, rows)
    is_wild = np.isin(name[rows], _wild(names, facts))
    return Publishes(rows[~is_wild], rows[is_wild], names)


def topic_rows(events: Events) -> tuple[Integers, Integers]:
    """Rows that the step by topic needs: publishes and forwards of a topic; subscriptions, which are of every topic."""
    policy, message, side = events.policy, events[Col.MESSAGE], events[Col.SIDE]
    published = np.append(policy.publishes, False)[message] & (side == TO_BROKER)
    forwarded = np.append(policy.forwards, False)[message] & (side == FROM_BROKER)
    retains = policy.dialect.spec.broker.retained != "none"
    return np.flatnonzero(published | forwarded), _subscriptions(events) if retains else np.zeros(0, np.int64)


@dataclass(frozen=True)
class KeptDeliveries:
    """What is to be known of earlier events when more come. Rows are places among ``events``, those that are kept.

    due        expectations: their columns, and ``client_text, retained, filled, first, is_given``, and of the first
               pass ``trial_least, trial_filled, trial_first``
    copies     the columns of `Deliveries.asked_for`, and ``part_of``
    seen       ``row, answers, trial_answers`` of forwards
    repeated   ``row`` of those that the network made of another one
    retained   ``RETAINED``: what a subscription may ask for, or has asked for
    proven     ``client, filter, since, name``: see `Deliveries.proofs`
    """

    events: pa.Table
    due: pa.Table
    copies: pa.Table
    seen: pa.Table
    repeated: pa.Table
    retained: pa.Table
    proven: pa.Table

    def named(self, facts: SessionFacts) -> SessionFacts:
        """With the filters and clients of expectations, which may be gone."""
        names = {text for table in (self.due, self.copies) for text in table.column("filter").to_pylist()} - {None}
        subscriptions = facts.subscriptions.naming(names, {**facts.subscriptions.clients, **clients_of(self.due)})
        return facts.with_subscriptions(subscriptions, facts.subscriptions)


def nothing_kept() -> KeptDeliveries:
    """Before the first batch."""
    of_due = ("retained", "filled", "first", "trial_least", "trial_filled", "trial_first", "is_given", "client_text")
    columns = {
        "due": (*_EXPECTATION, "filter", *of_due),
        "copies": (*_EXPECTATION, "filter", "part_of"),
        "seen": ("row", "answers", "trial_answers"),
        "repeated": ("row",),
        "proven": ("client", "filter", "since", "name"),
    }
    types = {"is_given": pa.bool_(), "filter": pa.string(), "client_text": pa.string()}
    tables = {
        kind: pa.schema([(name, types.get(name, pa.int64())) for name in names]).empty_table()
        for kind, names in columns.items()
    }
    return KeptDeliveries(events=pa.table({}), retained=RETAINED.empty_table(), **tables)


def deliver(events: Events, facts: SessionFacts, kept: KeptDeliveries | None = None) -> Deliveries:
    """Expect and observe. The first events may be those that an earlier call has kept, in front of what has come since;
    then the facts are `KeptDeliveries.named`."""
    earlier, policy = kept or nothing_kept(), events.policy
    begin = len(earlier.events)
    publishes = find_publishes(events, facts)
    plain, names = publishes.plain, publishes.names
    asking = _subscriptions(events)
    new, asking = plain[plain >= begin], asking[asking >= begin]
    messages = _kept(events, facts, new, names, asking if kept is None else None)
    messages = pa.concat_tables([earlier.retained, messages]).combine_chunks()
    matching = matches(list(names.values()), facts.subscriptions.filters, policy.dialect.spec.topics)
    due = _due(events, facts, new, publishes, matching)
    wanted, which = _retained_due(events, facts, messages, asking)
    due = np.concatenate([due, wanted], axis=1)
    which = np.concatenate([np.full(due.shape[1] - len(which), -1, np.int64), which])
    seen = np.flatnonzero(np.append(policy.forwards, False)[events[Col.MESSAGE]] & (events[Col.SIDE] == FROM_BROKER))
    again, original = _doubled(events, seen, earlier)
    repeated, repeats, seen = seen[again], seen[original[again]], seen[~again]
    before = Earlier.of(earlier, facts)
    first_pass = before.and_then(events, facts, due, which, before.trial)
    trial = _pair(events, facts, *first_pass[:2], messages, seen, before.trial)
    asked_for = np.concatenate([before.asked_for, due], axis=1)
    proofs = _proofs(events, asked_for, first_pass[2], trial) | dict.fromkeys(before.proven, -1)
    second_pass, matched = first_pass, trial
    if _believe(events, due, proofs) or before.has_believed:
        second_pass = before.and_then(events, facts, due, which, before.matched)
        matched = _pair(events, facts, *second_pass[:2], messages, seen, before.matched)
    expected, retained, part_of = second_pass
    is_given = np.concatenate([before.is_given, np.zeros(expected.shape[1] - len(before.is_given), np.bool_)])
    return Deliveries(
        plain,
        publishes.wild,
        expected,
        retained,
        matched.filled,
        matched.first,
        seen,
        matched.answers,
        names,
        {one: at for at, one in enumerate(names)},
        matching,
        messages,
        asked_for,
        part_of,
        repeated,
        repeats,
        proofs,
        is_given,
        trial,
    )


@dataclass(frozen=True)
class Earlier:
    """`KeptDeliveries` as `Deliveries` has them."""

    due: Integers
    retained: Integers
    asked_for: Integers
    part_of: Integers
    is_given: Flags
    trial: Matched
    matched: Matched
    proven: list[Proof]

    @classmethod
    def of(cls, kept: KeptDeliveries, facts: SessionFacts) -> Earlier:
        filters = {text: at for at, text in enumerate(facts.subscriptions.filters)}
        number = {name: kept.due.column(name).to_numpy() for name in kept.due.column_names if name not in _TEXTS}
        of_seen = {name: kept.seen.column(name).to_numpy() for name in kept.seen.column_names}
        proven = [
            (client, filters[text], since, name)
            for client, text, since, name in zip(*(column.to_pylist() for column in kept.proven.columns), strict=True)
            if text in filters
        ]
        return cls(
            _columns_of(kept.due, filters),
            number["retained"],
            _columns_of(kept.copies, filters),
            kept.copies.column("part_of").to_numpy(),
            kept.due.column("is_given").to_numpy(zero_copy_only=False),
            Matched(number["trial_least"], number["trial_filled"], number["trial_first"], of_seen["trial_answers"]),
            Matched(number["least"], number["filled"], number["first"], of_seen["answers"]),
            proven,
        )

    @property
    def has_believed(self) -> bool:
        """Whether the passes differ."""
        return any(
            not np.array_equal(one, other)
            for one, other in zip(vars(self.trial).values(), vars(self.matched).values(), strict=True)
        )

    def and_then(
        self, events: Events, facts: SessionFacts, due: Integers, retained: Integers, known: Matched
    ) -> tuple[Integers, Integers, Integers]:
        """With what is due since: expectations, their retained messages, and which of these each filter is part of."""
        own, which, part_of = _one_each(due, retained, facts.policy.dialect.spec.broker.copies)
        _excuse_the_absent(events, facts, own)
        both = np.ascontiguousarray(np.concatenate([self.due, own], axis=1))
        both[LEAST, : len(known.least)] = known.least
        return both, np.concatenate([self.retained, which]), np.concatenate([self.part_of, part_of + len(known.least)])


def _proofs(events: Events, given: Integers, copy_of: Integers, matched: Matched) -> dict[Proof, int]:
    """By subscription without ACK and topic the first forward which shows that the broker knows of it."""
    filled, first = matched.filled, matched.first
    alone = np.bincount(copy_of, minlength=len(filled))[copy_of] == 1
    open_ones = np.flatnonzero((given[LEAST] == 0) & alone & (filled[copy_of] > 0) & (given[ASKS] == 1))
    found: dict[Proof, int] = {}
    for at, key in zip(open_ones.tolist(), _proof_keys(events, given, open_ones), strict=True):
        row = int(first[copy_of[at]])
        found[key] = min(row, found.get(key, row))
    return found


def _proof_keys(events: Events, given: Integers, which: Integers) -> list[Proof]:
    """Client, filter, the subscription's id, and the topic: other topics may be judged elsewhere."""
    columns = [given[row, which] for row in (CLIENT, FILTER, SINCE)]
    return list(zip(*(one.tolist() for one in (*columns, events[Col.NAME][given[PUBLISH, which]])), strict=True))


def _believe(events: Events, given: Integers, proofs: dict[Proof, int]) -> bool:
    """Make what is published after a proof due for certain; returns whether anything is."""
    if not proofs:
        return False
    open_ones = np.flatnonzero(given[LEAST] == 0)
    keys = _proof_keys(events, given, open_ones)
    proven = [
        at
        for at, key in zip(open_ones.tolist(), keys, strict=True)
        if key in proofs and given[PUBLISH, at] > proofs[key]
    ]
    given[LEAST, proven] = 1
    return bool(proven)


def _name_texts(events: Events, facts: SessionFacts, rows: Integers) -> dict[int, str]:
    """The distinct topics that were published, by their numbers."""
    at, _ = distinct(events[Col.NAME][rows])
    found, policy = events[Col.NAME][rows[at]], events.policy
    if facts.bindings.texts:
        texts = {int(one): facts.bindings.texts.get(int(one)) for one in found}
        missing = [index for index, one in enumerate(found) if texts[int(one)] is None]
    else:
        texts, missing = {}, list(range(len(found)))
    column = "src" if policy.dialect.spec.topics.kind == "source-address" else "topic"
    first = rows[at[missing]] if missing else np.zeros(0, np.int64)
    told = events.table.column(column).take(pa.array(first)).cast(pa.string()).to_pylist()
    for index, row, text in zip(missing, first, told, strict=True):
        cut = policy.cuts.get(policy.messages[events[Col.MESSAGE][row]], "")
        texts[int(found[index])] = (text or "").replace(cut, "", 1) if cut else text or ""
    return {one: text or "" for one, text in texts.items()}


def _wild(names: dict[int, str], facts: SessionFacts) -> Integers:
    flags = wild_flags(list(names.values()), facts.policy.dialect.spec.topics)
    return np.array([one for one, wild in zip(names, flags, strict=True) if wild], np.int64)


def _due(events: Events, facts: SessionFacts, rows: Integers, publishes: Publishes, matching: Matching) -> Integers:
    expecting = facts.expecting
    if expecting is not facts.subscriptions:
        matching = matches(list(publishes.names.values()), expecting.filters, facts.policy.dialect.spec.topics)
    number = {one: at for at, one in enumerate(publishes.names)}
    names = events[Col.NAME][rows]
    first, where = distinct(names)
    topic = np.array([number[int(one)] for one in names[first]], np.int64)[where]
    time, broker = (np.ascontiguousarray(events[column][rows]) for column in (Col.TIME, Col.BROKER))
    due = _expect(rows, time, broker, topic, matching, expecting)
    if expecting is facts.subscriptions and facts.due is None:
        return due
    return _with_given(events, facts, due)


def _with_given(events: Events, facts: SessionFacts, due: Integers) -> Integers:
    """What subscriptions here make due, and what others do, in the order in which all of them together would."""
    filters = {text: at for at, text in enumerate(facts.subscriptions.filters)}
    due[FILTER] = np.array([filters[text] for text in facts.expecting.filters], np.int64)[due[FILTER]]
    if facts.due is not None:
        given = facts.due.filter(pa.array(events.rows_of(facts.due.column("publish").to_numpy()) >= 0))
        numbers = [given.column(name).to_numpy() for name in ("client", "least", "most")]
        text = given.column("filter").combine_chunks()
        words = np.array([filters.get(word, -1) for word in text.dictionary.to_pylist()], np.int64)  # -1: of no row
        texts = words[text.indices.to_numpy()]
        publish = events.rows_of(given.column("publish").to_numpy())
        origin = [given.column(name).to_numpy() for name in ("since", "asks")]
        due = np.concatenate([due, np.stack([publish, *numbers, texts, *origin])], axis=1)
    rank = np.argsort(np.argsort(np.array(facts.subscriptions.filters, np.object_), kind="stable"))
    order = np.lexsort((due[CLIENT], rank[due[FILTER]], due[PUBLISH]))
    return np.ascontiguousarray(due[:, order])


def published_rows(events: Events, facts: SessionFacts) -> pa.Table:
    """``PUBLISHED`` of the events: what subscriptions are matched with elsewhere."""
    publishes = find_publishes(events, facts)
    rows, name = publishes.plain, events[Col.NAME]
    words = list(publishes.names.values())
    place = {one: at for at, one in enumerate(publishes.names)}
    first, where = distinct(name[rows])
    codes = np.array([place[int(one)] for one in name[rows][first]], np.int32)[where]
    topics = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words, pa.string()))
    columns = [pa.array(events[column][rows]) for column in (Col.ID, Col.TIME, Col.BROKER)]
    return pa.table([*columns, topics], PUBLISHED.names)


def expected_by(subscriptions: Subscriptions, published: pa.Table, policy: Policy) -> pa.Table:
    """``DUE``: what these subscriptions make due, of rows of ``PUBLISHED``."""
    topics = published.column("topic").combine_chunks()
    matching = matches(topics.dictionary.to_pylist(), subscriptions.filters, policy.dialect.spec.topics)
    ids, time, broker = (published.column(name).to_numpy().copy() for name in PUBLISHED.names[:3])
    due = _expect(ids, time, broker, topics.indices.to_numpy().astype(np.int64), matching, subscriptions)
    clients = subscriptions.clients
    found, where = np.unique(due[CLIENT], return_inverse=True)
    texts = (due[FILTER], subscriptions.filters), (where, [clients[int(one)] for one in found])
    coded = [
        pa.DictionaryArray.from_arrays(codes.astype(np.int32), pa.array(words, pa.string())) for codes, words in texts
    ]
    return pa.table([*(pa.array(due[row]) for row in (PUBLISH, CLIENT, LEAST, MOST, SINCE, ASKS)), *coded], schema=DUE)


def clients_of(due: pa.Table) -> dict[int, str]:
    """The clients of rows of ``DUE``, as text."""
    clients, first = np.unique(due.column("client").to_numpy(), return_index=True)
    texts = due.column("client_text").take(pa.array(first)).cast(pa.string()).to_pylist()
    return dict(zip(clients.tolist(), texts, strict=True))


def _expect(
    rows: Integers,
    time: Integers,
    broker: Integers,
    topic: Integers,
    matching: Matching,
    subscriptions: Subscriptions,
) -> Integers:
    """One column for each expectation: see `Deliveries`."""
    if not len(rows) or not subscriptions.filters:
        return np.zeros((EXPECTED, 0), np.int64)
    lists = subscriptions.lists
    where = lists.listed_from, lists.listed, lists.begin, lists.block_ns, lists.blocks
    tables = *where, subscriptions.subscribers, subscriptions.first, subscriptions.changes
    out = np.empty((EXPECTED, 4 * len(rows) + 16), np.int64)
    count = expect(rows, time, broker, topic, *matching, *tables, out, out.shape[1])
    if count > out.shape[1]:
        out = np.empty((EXPECTED, count), np.int64)
        expect(rows, time, broker, topic, *matching, *tables, out, count)
    return np.ascontiguousarray(out[:, :count])


def _one_each(due: Integers, retained: Integers, copies: str) -> tuple[Integers, Integers, Integers]:
    """Several filters of one subscriber: as many copies as filters, or one, as the dialect has it. Also returned is
    which of the result each of the given became."""
    key = mix(mix(due[PUBLISH], due[CLIENT]), retained)
    first, where = distinct(key)
    if len(first) == due.shape[1]:
        return due.copy(), retained, np.arange(due.shape[1])
    merged = np.ascontiguousarray(due[:, first])
    for row in (LEAST, MOST):
        merged[row] = 0
        add = np.maximum if copies == "per-subscriber" else np.add
        add.at(merged[row], where, due[row])
    return merged, retained[first], where


def _excuse_the_absent(events: Events, facts: SessionFacts, due: Integers) -> None:
    """Who is not connected, or is about to leave, is owed nothing for certain."""
    if not facts.policy.has_sessions:
        return
    for at in range(due.shape[1]):
        times, states = facts.connected.of_client(int(due[CLIENT, at]))
        came = events[Col.TIME][due[PUBLISH, at]]
        place = np.searchsorted(times, came, "right") - 1
        stays = place + 1 == len(times) or times[place + 1] > came + AT_ONCE_NS
        if place < 0 or not states[place] or not stays:
            due[LEAST, at] = 0


def _subscriptions(events: Events) -> Integers:
    is_subscription = np.append(events.policy.meaning == SUBSCRIBE, False)[events[Col.MESSAGE]]
    return np.flatnonzero(is_subscription & (events[Col.SIDE] == TO_BROKER))


def _kept(
    events: Events, facts: SessionFacts, rows: Integers, names: dict[int, str], asking: Integers | None
) -> pa.Table:
    """The messages that were to be retained before somebody asked for them; all, if it is not known who will ask."""
    if facts.policy.dialect.spec.broker.retained == "none" or (asking is not None and not len(asking)):
        return RETAINED.empty_table()
    chosen = rows[events[Col.RETAIN][rows] == 1]
    if asking is not None:
        chosen = chosen[chosen < asking[-1]]
    columns = (Col.NAME, Col.TOPIC, Col.PAYLOAD, Col.TIME, Col.ID, Col.BROKER)
    numbers = [pa.array(events[column][chosen]) for column in columns]
    texts = pa.array([names[int(one)] for one in events[Col.NAME][chosen]], pa.string())
    return pa.table([*numbers, texts], schema=RETAINED)


def _retained_due(events: Events, facts: SessionFacts, kept: pa.Table, rows: Integers) -> tuple[Integers, Integers]:
    """For each subscription the retained messages that it asks for: the last of each topic before it."""
    policy = facts.policy
    none = np.zeros((EXPECTED, 0), np.int64), np.zeros(0, np.int64)
    if not len(kept) or not len(rows):
        return none
    topics = policy.dialect.spec.topics
    texts = sorted(set(kept.column("text").to_pylist()))
    filters = events.table.column("filter").take(pa.array(rows)).cast(pa.string()).to_pylist()
    distinct = sorted({text for text in filters if text is not None})
    if policy.dialect.spec.broker.retained == "exact":
        wild = wild_flags(distinct, topics)
        distinct = [text for text, flag in zip(distinct, wild, strict=True) if not flag]
    by_filter = _topics_of(matches(texts, distinct, topics), texts, distinct)
    history = _history(kept)
    found: list[tuple[int, int, int]] = []
    for row, text in zip(rows.tolist(), filters, strict=True):
        for topic in by_filter.get(text or "", ()):
            times, places = history.get((topic, int(events[Col.BROKER][row])), ([], []))
            at = int(np.searchsorted(times, events[Col.TIME][row])) - 1
            if at >= 0:
                found.append((row, int(events[Col.CLIENT][row]), places[at]))
    if not found:
        return none
    table = np.array(found, np.int64).T
    ones = np.ones(len(found), np.int64)
    return np.stack([table[0], table[1], ones, ones, -ones, events[Col.ID][table[0]], 0 * ones]), table[2]


def _topics_of(
    matching: tuple[Integers, NDArray[np.int32]], texts: list[str], filters: list[str]
) -> dict[str, list[str]]:
    offsets, ids = matching
    found: dict[str, list[str]] = {}
    for at, text in enumerate(texts):
        for one in ids[offsets[at] : offsets[at + 1]]:
            found.setdefault(filters[one], []).append(text)
    return found


def _history(kept: pa.Table) -> dict[tuple[str, int], tuple[list[int], list[int]]]:
    history: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
    for place, (text, broker, time) in enumerate(
        zip(
            kept.column("text").to_pylist(),
            kept.column("broker").to_pylist(),
            kept.column("time").to_pylist(),
            strict=True,
        )
    ):
        times, places = history.setdefault((text, broker), ([], []))
        times.append(time)
        places.append(place)
    return history


def _doubled(events: Events, seen: Integers, kept: KeptDeliveries) -> tuple[Flags, Integers]:
    """Forwards of which the network made two, the same again under the same IP id: which are; and by place the first of
    each, itself where there is no other."""
    ip_id, time = events[Col.IP_ID][seen], events[Col.TIME][seen]
    same = mix(mix(events[Col.BROKER][seen], events[Col.CLIENT][seen]), mix(events[Col.CONTENT][seen], ip_id))
    order = order_by_key(same)
    again = np.zeros(len(seen), np.bool_)
    close = (same[order][1:] == same[order][:-1]) & (np.diff(time[order]) < DOUBLE_NS)
    again[order[1:]] = close & (ip_id[order[1:]] > 0)
    again |= np.isin(seen, kept.repeated.column("row").to_numpy())
    original = np.arange(len(seen))
    original[order] = order[np.maximum.accumulate(np.where(again[order], 0, np.arange(len(seen))))]
    return again, original


def _pair(
    events: Events,
    facts: SessionFacts,
    due: Integers,
    retained: Integers,
    messages: pa.Table,
    seen: Integers,
    earlier: Matched,
) -> Matched:
    """Run the matcher; of the first expectations and forwards it is known already what they have got."""
    cause = due[PUBLISH]
    is_kept = retained >= 0
    topic, payload = events[Col.TOPIC][cause], events[Col.PAYLOAD][cause]
    if is_kept.any():
        for name, column in (("topic", topic), ("payload", payload)):
            column[is_kept] = messages.column(name).to_numpy()[retained[is_kept]]
    if not facts.policy.payload_is_kept:
        payload = np.zeros_like(payload)
    key = mix(mix(events[Col.BROKER][cause], topic), mix(payload, due[CLIENT]))
    what = events[Col.PAYLOAD][seen] if facts.policy.payload_is_kept else np.zeros(len(seen), np.int64)
    keys = mix(mix(events[Col.BROKER][seen], events[Col.TOPIC][seen]), mix(what, events[Col.CLIENT][seen]))
    both = np.concatenate([key, keys])
    place = np.concatenate([cause, seen])
    time = events[Col.TIME][place]
    none = np.zeros(len(seen), np.int64)
    # In a session a topic may have to be introduced first, and that be repeated.
    at_once = HORIZON_NS if facts.policy.has_sessions else AT_ONCE_NS
    until = np.concatenate([time[: len(cause)] + np.where(is_kept, at_once, HORIZON_NS), none])
    in_order = np.argsort(place, kind="stable")
    order = in_order[order_by_key(both[in_order])]
    known, last, room = len(earlier.answers), len(cause), len(cause) - len(earlier.filled)
    answers = np.concatenate([earlier.answers, np.empty(len(seen) - known, np.int64)])
    filled = np.concatenate([earlier.filled, np.zeros(room, np.int64)])
    least, most = (np.concatenate([due[row], none]) for row in (LEAST, MOST))
    entries = np.full(last, -1, np.int64)
    match(order, both, time, least, most, until, is_kept, last, known, filled, entries, answers)
    first = np.concatenate([earlier.first, np.full(room, -1, np.int64)])
    return Matched(due[LEAST], filled, np.where(entries >= 0, place[entries], first), answers)
