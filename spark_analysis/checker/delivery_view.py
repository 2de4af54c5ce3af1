"""What the rules of delivery look at together: what was due, what came, and what somebody still lacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pcap_tools.topic_match import WrongReadings

from .events import TO_BROKER, Col
from .findings import numbers
from .grouped import Grouped
from .kernels.expecting import CLIENT, LEAST, PUBLISH
from .kernels.hashing import mix
from .part_view import PartView

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass
class Shortage:
    """Copies of one publish that one subscriber lacks. ``due`` is one of the expectations."""

    first: int
    due: int
    lacking: int


@dataclass
class DeliveryView(PartView):
    """
    outcomes   of forwards that no expectation explains, by row
    lacks      of expectations that got nothing: why
    invented   forwards of what nobody published
    """

    outcomes: dict[int, str] = field(default_factory=dict)
    lacks: dict[int, str] = field(default_factory=dict)
    invented: list[int] = field(default_factory=list)

    @property
    def due(self) -> Integers:
        return self.deliveries.due

    @cached_property
    def readings(self) -> WrongReadings:
        return WrongReadings(self.events.policy.dialect.spec.topics)

    @cached_property
    def subscribers(self) -> dict[int, str]:
        """Clients that subscribed, as text."""
        table = self.context.subscriptions
        return dict(zip(numbers(table.subscribers[1]), table.texts, strict=True))

    def who(self, client: int) -> str:
        return self.subscribers.get(client, "a client")

    def topic(self, row: int) -> str | None:
        return self.deliveries.names.get(int(self.events[Col.NAME][row]), self.events.text("topic", row))

    def first_of(self, publish: int) -> int:
        """The first send of a publish."""
        group = int(self.asked.group[publish])
        return group if group >= 0 else publish

    @cached_property
    def _by_group(self) -> Grouped:
        sent = np.flatnonzero(self.asked.group >= 0)
        sent = sent[self.events[Col.SIDE][sent] == TO_BROKER]
        return Grouped(self.asked.group[sent], sent)

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
        first = self.asked.group[due[PUBLISH]]
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
        """Sends that the broker reacted to; all of a group in which it reacted to none."""
        reacted = self.signs.reacted
        of_group = np.zeros(len(reacted), np.bool_)
        answered = np.flatnonzero(reacted & (self.asked.group >= 0))
        of_group[self.asked.group[answered]] = True
        heard: Flags = reacted[sends] | ~of_group[firsts]
        return heard
