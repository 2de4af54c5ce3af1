"""What the rules of delivery look at together: what was due, what came, and what somebody still lacks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pcap_tools.topic_match import WrongReadings, matches

from ..findings.evidence import DOUBLES, LOSS, UNSETTLED, Reactions
from ..findings.findings import Candidates, as_list
from ..kernels.expecting import CLIENT, FILTER, LEAST, PUBLISH
from ..kernels.hashing import hash_of, mix
from ..matching.deliveries import Deliveries
from ..matching.requests import Requests
from ..session.events import TO_BROKER, Col, Events
from ..session.facts import SessionFacts
from ..session.grouped import Grouped
from ..session.policy import SUBSCRIBE

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


MOST_TRIED = 50  # filters of a client


@dataclass
class Shortage:
    """Copies of one publish that one subscriber lacks. ``due`` is one of the expectations."""

    first: int
    due: int
    lacking: int


def served_by(facts: SessionFacts, deliveries: Deliveries) -> frozenset[int] | None:
    """Keys of subscriptions that got all of something, so that the broker knows of them; None where it acknowledges
    subscriptions, and so shows that by itself."""
    if facts.policy.broker_acks[facts.policy.meaning == SUBSCRIBE].any():
        return None
    due = deliveries.due
    whole = (deliveries.filled >= due[LEAST]) & (due[LEAST] > 0) & (deliveries.retained < 0)
    filters = np.array([hash_of(text) for text in facts.subscriptions.filters] or [0], np.int64)
    return frozenset(as_list(mix(due[CLIENT][whole], filters[due[FILTER][whole]])))


@dataclass
class TopicView:
    """Some topics of a session with all that was published under them and forwarded.

    evidence   bits about the whole session
    served     see `served_by`; of the whole session
    outcomes   of forwards that no expectation explains, by row
    lacks      of expectations that got nothing: why
    invented   forwards of what nobody published
    """

    events: Events
    facts: SessionFacts
    deliveries: Deliveries
    requests: Requests
    reactions: Reactions
    candidates: Candidates
    evidence: int
    served: frozenset[int] | None
    outcomes: dict[int, str] = field(default_factory=dict)
    lacks: dict[int, str] = field(default_factory=dict)
    invented: list[int] = field(default_factory=list)

    @property
    def due(self) -> Integers:
        return self.deliveries.due

    def ids(self, rows: Iterable[int]) -> list[int]:
        return self.candidates.ids(rows)

    def is_certain(self, doubt: str | None, unless: int) -> bool:
        """As `findings.Settled` will decide, but for what the capture itself has lost."""
        return doubt is None and not unless & self.evidence & (LOSS | DOUBLES | UNSETTLED)

    def subscription_key(self, client: int, filter_text: str) -> int:
        return int(mix(np.array([client]), np.array([hash_of(filter_text)]))[0])

    def takes(self, topic: str, filter_text: str) -> bool:
        """Whether a filter matches a topic."""
        return len(matches([topic], [filter_text], self.events.policy.dialect.spec.topics)[1]) > 0

    def reading_of_missing(self, due: int) -> str | None:
        """Which mistake explains that a filter did not bring a topic; none if it did at another time."""
        row, text = int(self.due[PUBLISH, due]), int(self.due[FILTER, due])
        if int(mix(self.events[Col.NAME][[row]], np.array([text]))[0]) in self._brought:
            return None
        return self.readings.explain(self.topic(row) or "", self.facts.subscriptions.filters[text], delivered=False)

    @cached_property
    def _brought(self) -> frozenset[int]:
        """Topics and filters, each pair as one number, by which a copy was due that came, and that no other asked
        for."""
        publish, text = self.deliveries.asked_for[[PUBLISH, FILTER]]
        which = self.deliveries.part_of
        alone = np.bincount(which, minlength=self.due.shape[1])[which] == 1
        came = alone & (self.deliveries.filled[which] > 0) & (self.deliveries.retained[which] < 0)
        return frozenset(as_list(mix(self.events[Col.NAME][publish[came]], text[came])))

    def reading_of_unexpected(self, publish: int, client: int) -> tuple[str | None, str | None]:
        """Which of a client's filters would ask for a message, if which mistake reads it so."""
        table, topic = self.facts.subscriptions, self.topic(publish) or ""
        mine = table.subscribers[2][table.subscribers[1] == client]
        for text in [table.filters[one] for one in mine[:MOST_TRIED]]:
            reading = self.readings.explain(topic, text, delivered=True)
            if reading:
                return text, reading
        return None, None

    @cached_property
    def readings(self) -> WrongReadings:
        return WrongReadings(self.events.policy.dialect.spec.topics)

    @cached_property
    def subscribers(self) -> dict[int, str]:
        """Clients that subscribed, as text; also those whose subscriptions are matched elsewhere."""
        known = self.facts.subscriptions.clients
        rows = self.due[PUBLISH][self.deliveries.retained >= 0]
        asking = dict(zip(as_list(self.events[Col.CLIENT][rows]), as_list(rows), strict=True))
        return {**{client: self.events.client(row) for client, row in asking.items() if client not in known}, **known}

    def who(self, client: int) -> str:
        return self.subscribers.get(client, "a client")

    def topic(self, row: int) -> str | None:
        return self.deliveries.names.get(int(self.events[Col.NAME][row]), self.events.text("topic", row))

    def first_of(self, publish: int) -> int:
        """The first send of a publish."""
        group = int(self.requests.group[publish])
        return group if group >= 0 else publish

    @cached_property
    def _by_group(self) -> Grouped:
        sent = np.flatnonzero(self.requests.group >= 0)
        sent = sent[self.events[Col.SIDE][sent] == TO_BROKER]
        return Grouped(self.requests.group[sent], sent)

    def sends(self, first: int) -> Integers:
        """All sends of a request."""
        rows = self._by_group.of(first)
        return rows if len(rows) else np.array([first], np.int64)

    @cached_property
    def short(self) -> list[Shortage]:
        """What subscribers lack of live messages, by publish (with all its sends) and subscriber."""
        return self._shortages(np.flatnonzero(self.deliveries.retained < 0))

    @cached_property
    def unkept(self) -> list[Shortage]:
        """The same of retained ones."""
        return self._shortages(np.flatnonzero(self.deliveries.retained >= 0))

    @cached_property
    def short_of(self) -> Grouped:
        """Places in ``short`` by first send."""
        return Grouped(np.array([one.first for one in self.short], np.int64), np.arange(len(self.short)))

    def _shortages(self, chosen: Integers) -> list[Shortage]:
        due, filled = self.due[:, chosen], self.deliveries.filled[chosen]
        if not (filled < due[LEAST]).any():
            return []
        first = self.requests.group[due[PUBLISH]]
        first = np.where(first >= 0, first, due[PUBLISH])
        key = mix(mix(first, due[CLIENT]), self.deliveries.retained[chosen])
        _, at, where = np.unique(key, return_index=True, return_inverse=True)
        least, got = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
        np.maximum.at(least, where, np.where(self._heard(due[PUBLISH], first), due[LEAST], 0))
        np.add.at(got, where, filled)
        lacking = np.flatnonzero(got < least)
        lacking = lacking[np.argsort(at[lacking])]
        return [Shortage(int(first[at[one]]), int(chosen[at[one]]), int(least[one] - got[one])) for one in lacking]

    def _heard(self, sends: Integers, firsts: Integers) -> Flags:
        """Sends that the broker reacted to, unless it refused them; all of a group in which it reacted to none."""
        reacted = self.reactions.reacted
        of_group = np.zeros(len(reacted), np.bool_)
        answered = np.flatnonzero(reacted & (self.requests.group >= 0))
        of_group[self.requests.group[answered]] = True
        heard: Flags = (reacted[sends] | ~of_group[firsts]) & ~self.requests.refused[sends]
        return heard
