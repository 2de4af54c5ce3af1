"""Forwards that nothing made due: each is explained as well as it can be, by the first of the rules that fits it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..findings.evidence import PARTIAL, UNSETTLED
from ..findings.findings import as_list
from ..findings.reasons import DOUBLED, FILTER_BEFORE, PUBLISHED_BEFORE, SUBSCRIBED_BEFORE
from ..kernels.expecting import CLIENT, LEAST, PUBLISH
from ..kernels.hashing import mix
from ..kernels.pairing import DOUBLE_NS
from ..kernels.subscribing import CHANGE_ENDED, CHANGE_ID, CHANGE_MOST, CHANGE_TIME
from ..matching.deliveries import AT_ONCE_NS, HORIZON_NS
from ..session.endpoints import Point
from ..session.events import Col
from ..session.grouped import Grouped
from ..session.policy import SECOND
from .delivery_rules import CERTAIN_NS
from .retained_rules import may_not_be_kept
from .topic_view import TopicView

Integers = NDArray[np.int64]
ALTERED_NS = SECOND
ENOUGH_CAME, FEW_LACK = 4, 4  # where so many came, a few that did not are what the broker left out


class Unexplained:
    """Run it before what lacks is told: a forward that went astray is the other side of one that lacks."""

    def __init__(self, view: TopicView) -> None:
        self.view = view
        self.events, self.facts, self.deliveries = view.events, view.facts, view.deliveries
        self.requests, self.candidates = view.requests, view.candidates

    def run(self) -> None:
        for rule in ("D-UNEXPECTED", "D-DUPLICATE", "D-ALTERED", "D-MISDIRECTED"):
            self.candidates.check(rule, self.deliveries.seen)
        extra = self.deliveries.seen[self.deliveries.answers < 0]
        if len(extra):
            self._index(extra)
            self._find_presumed(extra)
            for row in as_list(extra):
                self.view.outcomes[row] = self._explain(row)

    def _index(self, extra: Integers) -> None:
        """What explanations look things up by."""
        deliveries = self.deliveries
        publishes = np.concatenate([deliveries.publishes, deliveries.wild])
        publishes.sort()
        self._by_content = Grouped(self._content(publishes), publishes)
        self._seen_before = Grouped(self._content(deliveries.seen, whole=True), deliveries.seen)
        self._due_to = Grouped(mix(self.view.due[PUBLISH], self.view.due[CLIENT]), np.arange(self.view.due.shape[1]))
        self._due_by_publish = Grouped(self.view.due[PUBLISH], np.arange(self.view.due.shape[1]))
        self._shorts_of_client = Grouped(
            np.array([self.view.due[CLIENT, one.due] for one in self.view.short], np.int64),
            np.arange(len(self.view.short)),
        )
        every = deliveries.publishes
        self._by_name = Grouped(mix(self.events[Col.NAME][every], self.events[Col.TOPIC][every]), every)
        self._came_to: dict[int, set[int]] = {}
        for row in as_list(extra):
            self._came_to.setdefault(self._publish_for(row), set()).add(int(self.events[Col.CLIENT][row]))

    def _content(self, rows: Integers, whole: bool = False) -> Integers:
        events = self.events
        key = mix(mix(events[Col.BROKER][rows], events[Col.TOPIC][rows]), events[Col.PAYLOAD][rows])
        return mix(key, events[Col.CLIENT][rows]) if whole else key

    def _publish_for(self, row: int) -> int:
        """The last publish of what a forward says, -1 if there is none."""
        events = self.events
        before = self._by_content.before(int(self._content(np.array([row]))[0]), row)
        if not len(before) or events[Col.TIME][row] - events[Col.TIME][before[-1]] > HORIZON_NS:
            return -1
        return int(before[-1])

    def _explain(self, row: int) -> str:
        """Say what is wrong with a forward that was not due; returns the outcome."""
        if self._is_repeated(row):
            return "delivered"
        stale = self._stale(row)
        if stale:
            return stale
        if self._is_kept_again(row):
            return "duplicate"
        publish = self._publish_for(row)
        if self._was_kept_before(row, publish):
            return "inconclusive"
        if publish < 0:
            return self._altered(row) or self._invented(row)
        if publish in self.deliveries.wild:
            return "optional"
        first = self.view.first_of(publish)
        client = int(self.events[Col.CLIENT][row])
        due = self._due_to.of(int(mix(np.array([publish]), np.array([client]))[0]))
        if len(due):
            return self._duplicate(row, publish, int(due[0]))
        return (
            self._after_end(row, publish, client)
            or self._collision(row, publish, first, client)
            or self._misdirected(row, publish, first)
            or self._unexpected(row, publish, client)
        )

    def _is_repeated(self, row: int) -> bool:
        """By the network, or by a broker that got no ACK."""
        events = self.events
        if self.requests.repeated[row]:
            return True
        before = self._seen_before.before(int(self._content(np.array([row]), whole=True)[0]), row)
        near = before[events[Col.TIME][row] - events[Col.TIME][before] < DOUBLE_NS]
        return bool(len(near) and events[Col.IP_ID][row] <= 0 and self.facts.point is not Point.BROKER)

    def _is_kept_again(self, row: int) -> bool:
        """Whether the same came just before as the retained message that a subscription asked for."""
        events, deliveries = self.events, self.deliveries
        before = self._seen_before.before(int(self._content(np.array([row]), whole=True)[0]), row)
        if not len(before) or events[Col.TIME][row] - events[Col.TIME][before[-1]] > AT_ONCE_NS:
            return False
        due = int(deliveries.answers[np.searchsorted(deliveries.seen, before[-1])])
        if due < 0 or deliveries.retained[due] < 0:
            return False
        rows = self.view.ids([int(self.view.due[PUBLISH, due]), int(before[-1])])
        self.candidates.add("D-DUPLICATE", row, {"case": "retained"}, rows, unless=UNSETTLED)
        return True

    def _was_kept_before(self, row: int, publish: int) -> bool:
        """Whether it may be a message that was retained before the capture began: it follows a subscription that asks
        for it, and nothing newer is retained."""
        events, policy = self.events, self.events.policy
        if policy.dialect.spec.broker.retained == "none" or events[Col.RETAIN][row] == 0:
            return False
        time, topic = int(events[Col.TIME][row]), self._topic_text(row)
        at_once = HORIZON_NS if policy.has_sessions else AT_ONCE_NS
        asked = [
            (since, text)
            for since, text in self._subscribed.get(int(events[Col.CLIENT][row]), ())
            if 0 <= time - since <= at_once and (publish < 0 or events[Col.TIME][publish] < since)
        ]
        asked = [(since, text) for since, text in asked if self.view.takes(topic, text)]
        kept = self.deliveries.kept
        of_topic = kept.column("time").to_numpy()[kept.column("name").to_numpy() == events[Col.NAME][row]]
        return any(not (of_topic < since).any() for since, _ in asked)

    def _topic_text(self, row: int) -> str:
        """The topic of a forward, by name if it has a number."""
        name = self.facts.bindings.texts.get(int(self.events[Col.NAME][row]))
        return name if name is not None else self.events.text("topic", row) or ""

    @cached_property
    def _subscribed(self) -> dict[int, list[tuple[int, str]]]:
        """By client: when it subscribed to what."""
        table, found = self.facts.subscriptions, dict[int, list[tuple[int, str]]]()
        for who, (_, client, text) in enumerate(table.subscribers.T.tolist()):
            changes = table.changes[:, table.first[who] : table.first[who + 1]]
            times = np.unique(changes[CHANGE_TIME][changes[CHANGE_MOST] > 0]).tolist()
            found.setdefault(client, []).extend((time, table.filters[text]) for time in times)
        return found

    def _duplicate(self, row: int, publish: int, due: int) -> str:
        events = self.events
        known = events[Col.IP_ID][row] > 0 or self.facts.point is Point.BROKER
        copies = events.policy.dialect.spec.broker.copies
        doubt = FILTER_BEFORE if self.facts.starts_late and copies != "per-subscriber" else None
        doubt = doubt if known else DOUBLED
        detail = {"seen": self.view.topic(publish), "count": int(self.view.due[LEAST, due])}
        first = int(self.deliveries.first[due])
        rows = self.view.ids([publish, *([first] if first >= 0 else [])])
        self.candidates.add("D-DUPLICATE", row, detail, rows, doubt, UNSETTLED)
        return "duplicate"

    def _after_end(self, row: int, publish: int, client: int) -> str | None:
        """A subscription of this client that would have asked for it had ended."""
        table, time = self.facts.subscriptions, int(self.events[Col.TIME][publish])
        for who in self._subscriptions_of(client, publish):
            changes = table.changes[:, table.first[who] : table.first[who + 1]]
            before = np.flatnonzero(changes[CHANGE_TIME] <= time)
            if len(before) and changes[CHANGE_ENDED, before[-1]]:
                doubt = self._may_have_asked(client, publish)
                rows = [*self.view.ids([publish]), int(changes[CHANGE_ID, before[-1]])]
                detail = {"seen": self.view.topic(publish)}
                self.candidates.add("D-AFTER-UNSUBSCRIBE", row, detail, rows, doubt, UNSETTLED)
                return "unexpected"
        return None

    def _subscriptions_of(self, client: int, publish: int) -> Integers:
        """All that this client ever had to the topic of a publish."""
        table = self.facts.subscriptions
        number = self.deliveries.topic_number.get(int(self.events[Col.NAME][publish]))
        if number is None or not len(table.texts):
            return np.zeros(0, np.int64)
        offsets, ids = self.deliveries.matching
        mine = np.flatnonzero(table.subscribers[1] == client)
        return mine[np.isin(table.subscribers[2][mine], ids[offsets[number] : offsets[number + 1]])]

    def _collision(self, row: int, publish: int, first: int, client: int) -> str | None:
        """Another publisher has the same number for a topic that this client subscribed to."""
        events, bindings = self.events, self.facts.bindings
        if events.policy.dialect.spec.topics.kind != "number" or events.policy.has_sessions:
            return None
        got = self._due_by_publish.of(publish)
        if (self.deliveries.filled[got] > 0).any() or (
            not len(got) and self.view.reading_of_unexpected(publish, client)[1]
        ):
            return None
        number = int(events[Col.NUMBER][publish])
        owners = np.unique(bindings.owners)
        owners = owners[owners != events[Col.CLIENT][publish]]
        times = np.full(len(owners), int(events[Col.TIME][publish]), np.int64)
        names = {int(one) for one in bindings.resolve(owners, np.full(len(owners), number, np.int64), times)} - {0}
        table = self.facts.subscriptions
        mine = {table.filters[one] for one in table.subscribers[2][table.subscribers[1] == client]}
        other = sorted({bindings.texts[name] for name in names} & mine)
        if not other or not self._all_got(publish, other[0]):
            return None
        for one in self.view.short_of.of(first):
            self.view.short[int(one)].lacking = 0
        detail = {"number": number, "seen": other[0]}
        self.candidates.add("N-COLLISION", publish, detail, self.view.ids([row]), topic=self.view.topic(publish))
        return "unexpected"

    def _all_got(self, publish: int, text: str) -> bool:
        """Whether all subscribers of a filter got a publish that was not due to them."""
        table = self.facts.subscriptions
        asked = set(as_list(table.subscribers[1][table.subscribers[2] == table.filters.index(text)]))
        return asked <= self._came_to.get(publish, set())

    def _misdirected(self, row: int, publish: int, first: int) -> str | None:
        for one in self.view.short_of.of(first):
            short = self.view.short[int(one)]
            if short.lacking > 0:
                short.lacking -= 1
                self.view.lacks[short.due] = "misdirected"
                missed = self.view.who(int(self.view.due[CLIENT, short.due]))
                detail = {"seen": self.view.topic(publish), "other": missed}
                self.candidates.add("D-MISDIRECTED", row, detail, self.view.ids([publish]))
                return "misdirected"
        return None

    def _unexpected(self, row: int, publish: int, client: int) -> str:
        text, reading = self.view.reading_of_unexpected(publish, client)
        if reading and not self._goes_on(publish, client):
            text, reading = None, None
        detail = {"seen": self.view.topic(publish), "filter": text, "reading": reading}
        doubt = self._may_have_asked(client, publish)
        self.candidates.add("D-UNEXPECTED", row, detail, self.view.ids([publish]), doubt, UNSETTLED)
        return "unexpected" if self.view.is_certain(doubt, UNSETTLED) else "inconclusive"

    def _goes_on(self, publish: int, client: int) -> bool:
        """Whether later messages of a topic came to a client as well: it is not only this one that went astray."""
        later = self._by_name.of(self._topic_key(publish))
        later = later[(later > publish) & (self.events[Col.TIME][later] <= self.facts.end - CERTAIN_NS)]
        return all(client in self._came_to.get(one, ()) for one in as_list(later))

    def _may_have_asked(self, client: int, publish: int) -> str | None:
        return SUBSCRIBED_BEFORE if (client, self._topic_key(publish)) in self._presumed else None

    def _invented(self, row: int) -> str:
        events = self.events
        limit = HORIZON_NS if self.facts.starts_late else 0 if self.facts.shows_start else AT_ONCE_NS
        early = events[Col.TIME][row] - self.facts.begin < limit
        if not events[Col.NAME][row]:
            return "inconclusive"
        if self.facts.point is Point.CLIENT:  # others publish unseen
            return self._unasked(row)
        self.view.invented.append(row)
        doubt = PUBLISHED_BEFORE if early else None
        self.candidates.add("D-UNEXPECTED", row, {"case": "invented"}, (), doubt, UNSETTLED | PARTIAL)
        return "unexpected" if self.view.is_certain(doubt, UNSETTLED) else "inconclusive"

    def _unasked(self, row: int) -> str:
        """A message of a topic that none of the client's filters takes, whoever published it."""
        client, topic = int(self.events[Col.CLIENT][row]), self._topic_text(row)
        if self.events.policy.dialect.spec.topics.kind == "source-address":
            return "inconclusive"  # the forward does not say whose message it is
        filters = {text for _, text in self._subscribed.get(client, ())}
        if self._may_precede(client, row) or any(self.view.takes(topic, text) for text in filters):
            return "inconclusive"
        doubt = SUBSCRIBED_BEFORE if self.facts.starts_late else None
        self.candidates.add("D-UNEXPECTED", row, {"seen": topic}, (), doubt, UNSETTLED)
        return "unexpected" if self.view.is_certain(doubt, UNSETTLED) else "inconclusive"

    def _altered(self, row: int) -> str | None:
        """A subscriber lacks something under this topic that was published just before."""
        events, time = self.events, self.events[Col.TIME]
        for one in self._shorts_of_client.of(int(events[Col.CLIENT][row]))[::-1]:
            short = self.view.short[int(one)]
            publish = int(self.view.due[PUBLISH, short.due])
            near = 0 <= time[row] - time[publish] < ALTERED_NS and publish < row
            if short.lacking > 0 and near and events[Col.TOPIC][row] == events[Col.TOPIC][publish]:
                short.lacking -= 1
                self.view.lacks[short.due] = "altered"
                detail = {"expected": events.text("payload", publish), "seen": events.text("payload", row)}
                self.candidates.add("D-ALTERED", row, detail, self.view.ids([publish]))
                return "altered"
        return None

    def _stale(self, row: int) -> str | None:
        """A retained message that is not the last one; or one from before the capture."""
        events, time, kept = self.events, self.events[Col.TIME], self.deliveries.kept
        for short in self.view.unkept:
            asked = int(self.view.due[PUBLISH, short.due])
            which = int(self.deliveries.retained[short.due])
            same = kept.column("topic")[which].as_py() == events[Col.TOPIC][row]
            mine = self.view.due[CLIENT, short.due] == events[Col.CLIENT][row]
            if short.lacking > 0 and same and mine and asked < row and time[row] - time[asked] < AT_ONCE_NS:
                short.lacking -= 1
                rows = [*self.view.ids([asked]), kept.column("id")[which].as_py()]
                doubt, unless = may_not_be_kept(self.view, which)
                self.candidates.add("T-STALE", row, {"seen": events.text("payload", row)}, rows, doubt, unless)
                return "altered"
        return None

    def _topic_key(self, publish: int) -> int:
        """The topic of a publish, as it is subscribed to and as it is forwarded."""
        return int(mix(self.events[Col.NAME][[publish]], self.events[Col.TOPIC][[publish]])[0])

    def _find_presumed(self, extra: Integers) -> None:
        """Clients that may have subscribed to a topic before the capture began: all of it came to them. Of a client
        that is seen to subscribe first only where others show that the capture begins late; and one message is not
        enough where the capture shows how others begin."""
        self._presumed: set[tuple[int, int]] = set()
        came: dict[tuple[int, int], set[int]] = {}
        for row in as_list(extra):
            publish, client = self._publish_for(row), int(self.events[Col.CLIENT][row])
            key = client, self._topic_key(publish) if publish >= 0 else 0
            if publish >= 0 and (key in came or self.facts.starts_late or self._may_precede(client, row)):
                came.setdefault(key, set()).add(publish)
        for (client, name), publishes in came.items():
            is_much = len(publishes) > 1 or self.facts.starts_late or not self.facts.shows_start
            if is_much and self._is_all(client, self._until(self._by_name.of(name), client, max(publishes)), publishes):
                self._presumed.add((client, name))

    def _may_precede(self, client: int, row: int) -> bool:
        """Whether what a client has asked for is perhaps not all in the capture: it has not yet been seen to
        subscribe."""
        first = self._asked_first.get(client)
        if first is None:
            return True
        time, own = (np.array([one]) for one in first)
        return bool(self.events.is_after(time, own, np.array([row]))[0])

    @cached_property
    def _asked_first(self) -> dict[int, tuple[int, int]]:
        """By client: time and id of the first subscription that is seen."""
        table, found = self.facts.subscriptions, dict[int, tuple[int, int]]()
        for who, client in enumerate(table.subscribers[1].tolist()):
            changes = table.changes[:, table.first[who] : table.first[who + 1]]
            asking = np.flatnonzero(changes[CHANGE_MOST] > 0)
            if len(asking):
                first = int(changes[CHANGE_TIME, asking[0]]), int(changes[CHANGE_ID, asking[0]])
                found[client] = min(first, found.get(client, first))
        return found

    def _until(self, publishes: Integers, client: int, last: int) -> Integers:
        """Of the publishes of a topic those that would have come to a client that had subscribed before: all up to the
        end of its subscription and of the capture."""
        if self.facts.starts_late:
            return publishes[publishes <= last]
        time = self.events[Col.TIME][publishes]
        kept = (publishes <= last) | (time <= self.facts.end - CERTAIN_NS)
        if len(publishes):
            table = self.facts.subscriptions
            for who in self._subscriptions_of(client, last):
                changes = table.changes[:, table.first[who] : table.first[who + 1]]
                ended = np.flatnonzero(changes[CHANGE_MOST] <= changes[CHANGE_ENDED])
                if len(ended):
                    kept &= (publishes <= last) | (time < changes[CHANGE_TIME, ended[0]])
        return publishes[kept]

    def _is_all(self, client: int, publishes: Integers, came: set[int]) -> bool:
        """Whether these publishes came to a client, all or all but few."""
        if self.facts.point is not Point.BROKER:  # what went to nobody may never have come to the broker
            forwarded = self.view.reactions.forwarded
            publishes = publishes[[bool(forwarded[one]) or int(one) in self._came_to for one in publishes]]
        due = {int(one) for one in publishes if len(self._due_to.of(int(mix(np.array([one]), np.array([client]))[0])))}
        groups = {int(self.requests.group[one]) for one in came | due}
        every = {int(self.requests.group[one]) for one in publishes}
        missing = len(every - groups)
        return not missing or (len(came) >= ENOUGH_CAME and missing * FEW_LACK <= len(came))
