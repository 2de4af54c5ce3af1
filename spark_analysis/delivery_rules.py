"""D and T rules: what was due and did not come, and what came and was not due, each explained as far as it can be."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pcap_tools.topic_match.readings import wrong_reading

from .context import Context, Point
from .deliveries import AT_ONCE_NS, HORIZON_NS, Deliveries
from .events import NOTHING, TO_BROKER, Col, Events
from .exchanges import Exchanges
from .findings import Findings, numbers, quoted, seconds
from .grouped import Grouped
from .kernels.expecting import CHANGE_ENDED, CHANGE_FRAME, CHANGE_TIME, CLIENT, FILTER, LEAST, PUBLISH, SINCE
from .kernels.hashing import mix
from .kernels.pairing import ACK_LOST, DOUBLE, DOUBLE_NS, RESEND
from .policy import SECOND, SUBSCRIBE
from .signs import Signs

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
LATE_NS = 3 * SECOND
CERTAIN_NS = SECOND // 4  # so long before the end of the capture a forward would have come
ALTERED_NS = SECOND
JITTER_NS = 20_000_000  # what is sent closer together may arrive in the other order


@dataclass
class Shortage:
    """Copies of one publish that one subscriber lacks. ``due`` is one of the expectations."""

    first: int
    due: int
    lacking: int


@dataclass
class DeliveryRules:
    events: Events
    context: Context
    deliveries: Deliveries
    asked: Exchanges
    told: Exchanges
    signs: Signs
    findings: Findings
    starts_late: bool = False
    outcomes: dict[int, str] = field(default_factory=dict)  # of forwards that no expectation explains, by row
    lacks: dict[int, str] = field(default_factory=dict)  # of expectations that got nothing
    invented: list[int] = field(default_factory=list)  # forwards that nobody published

    def run(self) -> None:
        self._due = self.deliveries.due
        self.subscribers = self._texts_of_subscribers()
        self._prepare()
        self._unexplained()
        self._missing()
        self._late()
        self._reordered()
        self._retained()

    def _texts_of_subscribers(self) -> dict[int, str]:
        table = self.context.subscriptions
        return dict(zip(numbers(table.subscribers[1]), table.texts, strict=True))

    def _who(self, client: int) -> str:
        return self.subscribers.get(client, "a client")

    def _topic(self, row: int) -> str | None:
        return self.deliveries.names.get(int(self.events[Col.NAME][row]), self.events.text("topic", row))

    # -- what lacks ---------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Shortages by publish (with all its sends) and subscriber, of live messages and of retained ones."""
        deliveries, due = self.deliveries, self._due
        live = np.flatnonzero(deliveries.retained < 0)
        kept = np.flatnonzero(deliveries.retained >= 0)
        self.findings.check("D-MISSING", due[PUBLISH][live[due[LEAST][live] > 0]])
        for rule in ("D-UNEXPECTED", "D-DUPLICATE", "D-ALTERED", "D-MISDIRECTED"):
            self.findings.check(rule, deliveries.seen)
        self.findings.check("T-MISSING", due[PUBLISH][kept])
        self.short = self._shortages(live)
        self.unkept = self._shortages(kept)
        self._short_of = Grouped(np.array([one.first for one in self.short], np.int64), np.arange(len(self.short)))

    def _shortages(self, chosen: Integers) -> list[Shortage]:
        due, filled = self._due[:, chosen], self.deliveries.filled[chosen]
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
        return [Shortage(int(first[at[one]]), int(chosen[at[one]]), int(least[one] - got[one])) for one in lacking]

    def _heard(self, sends: Integers, firsts: Integers) -> Flags:
        """Sends that the broker reacted to; all of a group in which it reacted to none."""
        reacted = self.signs.reacted
        of_group = np.zeros(len(reacted), np.bool_)
        answered = np.flatnonzero(reacted & (self.asked.group >= 0))
        of_group[self.asked.group[answered]] = True
        heard: Flags = reacted[sends] | ~of_group[firsts]
        return heard

    # -- what was not due ---------------------------------------------------------------------------------------

    def _unexplained(self) -> None:
        deliveries = self.deliveries
        extra = deliveries.seen[deliveries.answers < 0]
        if not len(extra):
            return
        publishes = np.concatenate([deliveries.publishes, deliveries.wild])
        publishes.sort()
        self._by_content = Grouped(self._content(publishes), publishes)
        self._seen_before = Grouped(self._content(deliveries.seen, whole=True), deliveries.seen)
        self._due_to = Grouped(mix(self._due[PUBLISH], self._due[CLIENT]), np.arange(self._due.shape[1]))
        self._due_by_publish = Grouped(self._due[PUBLISH], np.arange(self._due.shape[1]))
        self._shorts_of_client = Grouped(
            np.array([self._due[CLIENT, one.due] for one in self.short], np.int64), np.arange(len(self.short))
        )
        self._came_to: dict[int, set[int]] = {}
        for row in numbers(extra):
            self._came_to.setdefault(self._publish_for(row), set()).add(int(self.events[Col.CLIENT][row]))
        self._find_presumed(extra)
        for row in numbers(extra):
            self.outcomes[row] = self._explain(row)

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
        publish = self._publish_for(row)
        if publish < 0:
            return self._altered(row) or self._invented(row)
        if publish in self.deliveries.wild:
            return "optional"
        first = int(self.asked.group[publish]) if self.asked.group[publish] >= 0 else publish
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
        if (
            events.policy.has_sessions
            and self.told.kind[row] in (RESEND, ACK_LOST, DOUBLE)
            and self.told.group[row] != row
        ):
            return True
        before = self._seen_before.before(int(self._content(np.array([row]), whole=True)[0]), row)
        near = before[events[Col.TIME][row] - events[Col.TIME][before] < DOUBLE_NS]
        return bool(len(near) and events[Col.IP_ID][row] <= 0 and self.context.point is not Point.BROKER)

    def _duplicate(self, row: int, publish: int, due: int) -> str:
        events = self.events
        known = events[Col.IP_ID][row] > 0 or self.context.point is Point.BROKER
        copies = events.policy.dialect.spec.broker.copies
        sure = bool(known) and not (self.starts_late and copies != "per-subscriber") and not self.signs.unsettled
        copies_due = int(self._due[LEAST, due])
        often = "once" if copies_due <= 1 else f"{copies_due} times"
        text = f"{quoted(self._topic(publish))} comes to {events.client(row)} more than {often}"
        self.findings.add("D-DUPLICATE", row, text, [publish, int(self.deliveries.first[due])], sure=sure)
        return "duplicate"

    def _after_end(self, row: int, publish: int, client: int) -> str | None:
        """A subscription of this client that would have asked for it had ended."""
        table, time = self.context.subscriptions, int(self.events[Col.TIME][publish])
        for who in self._subscriptions_of(client, publish):
            changes = table.changes[:, table.first[who] : table.first[who + 1]]
            before = np.flatnonzero(changes[CHANGE_TIME] <= time)
            if len(before) and changes[CHANGE_ENDED, before[-1]]:
                text = (
                    f"{quoted(self._topic(publish))} comes to {self.events.client(row)}, whose subscription has ended"
                )
                presumed = (client, int(self.events[Col.NAME][publish])) in self._presumed
                rows = [publish, -int(changes[CHANGE_FRAME, before[-1]])]
                self.findings.add(
                    "D-AFTER-UNSUBSCRIBE", row, text, rows, sure=not presumed and not self.signs.unsettled
                )
                return "unexpected"
        return None

    def _subscriptions_of(self, client: int, publish: int) -> Integers:
        """All that this client ever had to the topic of a publish."""
        table = self.context.subscriptions
        number = self.deliveries.topic_number.get(int(self.events[Col.NAME][publish]))
        if number is None or not len(table.texts):
            return np.zeros(0, np.int64)
        offsets, ids = self.deliveries.matching
        mine = np.flatnonzero(table.subscribers[1] == client)
        return mine[np.isin(table.subscribers[2][mine], ids[offsets[number] : offsets[number + 1]])]

    def _collision(self, row: int, publish: int, first: int, client: int) -> str | None:
        """Another publisher has the same number for a topic that this client subscribed to."""
        events, bindings = self.events, self.context.bindings
        if events.policy.dialect.spec.topics.kind != "number" or events.policy.has_sessions:
            return None
        got = self._due_by_publish.of(publish)
        if (self.deliveries.filled[got] > 0).any() or (not len(got) and self._readings(publish, client)):
            return None
        number = int(events[Col.NUMBER][publish])
        owners = np.unique(events[Col.CLIENT][self.deliveries.publishes])
        owners = np.union1d(owners, np.array(list(self._creators()), np.int64))
        owners = owners[owners != events[Col.CLIENT][publish]]
        times = np.full(len(owners), int(events[Col.TIME][publish]), np.int64)
        names = {int(one) for one in bindings.resolve(owners, np.full(len(owners), number, np.int64), times)} - {0}
        table = self.context.subscriptions
        mine = {table.filters[one] for one in table.subscribers[2][table.subscribers[1] == client]}
        other = sorted({bindings.texts[name] for name in names} & mine)
        if not other or not self._all_got(publish, other[0]):
            return None
        for one in self._short_of.of(first):
            self.short[int(one)].lacking = 0
        text = (
            f"number {number} of {events.client(publish)} is taken for {quoted(other[0])}, which is another publisher's"
        )
        self.findings.add("N-COLLISION", publish, text, [row], topic=self._topic(publish))
        return "unexpected"

    def _all_got(self, publish: int, text: str) -> bool:
        """Whether all subscribers of a filter got a publish that was not due to them."""
        table = self.context.subscriptions
        asked = set(numbers(table.subscribers[1][table.subscribers[2] == table.filters.index(text)]))
        return asked <= self._came_to.get(publish, set())

    def _creators(self) -> set[int]:
        events = self.events
        named = np.append(
            np.array([name == events.policy.dialect.spec.topics.named_by for name in events.policy.messages]), False
        )
        return set(numbers(events[Col.CLIENT][named[events[Col.MESSAGE]] & (events[Col.SIDE] == TO_BROKER)]))

    def _misdirected(self, row: int, publish: int, first: int) -> str | None:
        for one in self._short_of.of(first):
            short = self.short[int(one)]
            if short.lacking > 0:
                short.lacking -= 1
                self.lacks[short.due] = "misdirected"
                missed = self._who(int(self._due[CLIENT, short.due]))
                text = f"{quoted(self._topic(publish))} goes to {self.events.client(row)} in place of {missed}"
                self.findings.add("D-MISDIRECTED", row, text, [publish])
                return "misdirected"
        return None

    def _unexpected(self, row: int, publish: int, client: int) -> str:
        topic = self._topic(publish)
        text = f"{quoted(topic)} comes to {self.events.client(row)}, and no subscription asks for it"
        text += self._readings(publish, client)
        presumed = (client, int(self.events[Col.NAME][publish])) in self._presumed
        sure = not presumed and not self.signs.unsettled
        self.findings.add("D-UNEXPECTED", row, text, [publish], sure=sure)
        return "unexpected" if sure else "inconclusive"

    def _readings(self, publish: int, client: int) -> str:
        """Which wrong reading of which of its filters would make a client's of this."""
        table, topic = self.context.subscriptions, self._topic(publish) or ""
        mine = table.subscribers[2][table.subscribers[1] == client]
        for text in [table.filters[one] for one in mine[:50]]:
            reading = wrong_reading(topic, text, self.events.policy.dialect.spec.topics, True)
            if reading:
                return f"; {quoted(text)} would if {reading}"
        return ""

    def _invented(self, row: int) -> str:
        events = self.events
        early = events[Col.TIME][row] - self.context.begin < HORIZON_NS and self.starts_late
        unseen = self.context.point is Point.CLIENT
        if unseen or not events[Col.NAME][row]:
            return "inconclusive"
        text = f"{quoted(events.text('topic', row))} comes to {events.client(row)}, and nobody published it"
        self.invented.append(row)
        sure = not early and not self.signs.unsettled
        self.findings.add("D-UNEXPECTED", row, text, sure=sure)
        return "unexpected" if sure else "inconclusive"

    def _altered(self, row: int) -> str | None:
        """A subscriber lacks something under this topic that was published just before."""
        events, time = self.events, self.events[Col.TIME]
        for one in self._shorts_of_client.of(int(events[Col.CLIENT][row])):
            short = self.short[int(one)]
            publish = int(self._due[PUBLISH, short.due])
            near = 0 <= time[row] - time[publish] < ALTERED_NS and publish < row
            if short.lacking > 0 and near and events[Col.TOPIC][row] == events[Col.TOPIC][publish]:
                short.lacking -= 1
                self.lacks[short.due] = "altered"
                before, now = (quoted(events.text("payload", one)) for one in (publish, row))
                said = f"{before} was published, {now} comes"
                self.findings.add("D-ALTERED", row, f"{said} to {events.client(row)}", [publish])
                return "altered"
        return None

    def _stale(self, row: int) -> str | None:
        """A retained message that is not the last one; or one from before the capture."""
        events, time, kept = self.events, self.events[Col.TIME], self.deliveries.kept
        for short in self.unkept:
            asked = int(self._due[PUBLISH, short.due])
            which = int(self.deliveries.retained[short.due])
            same = kept.column("topic")[which].as_py() == events[Col.TOPIC][row]
            mine = self._due[CLIENT, short.due] == events[Col.CLIENT][row]
            if short.lacking > 0 and same and mine and asked < row and time[row] - time[asked] < AT_ONCE_NS:
                short.lacking -= 1
                what, topic = quoted(events.text("payload", row)), quoted(events.text("topic", row))
                text = f"{what} comes as the retained message of {topic}, but a newer one is retained"
                rows = [asked, -int(kept.column("frame")[which].as_py())]
                self.findings.add("T-STALE", row, text, rows, sure=self._was_kept(which))
                return "altered"
        return None

    def _find_presumed(self, extra: Integers) -> None:
        """Who may have subscribed before the capture began: all of a topic came to it, up to the last."""
        self._presumed: set[tuple[int, int]] = set()
        if not self.starts_late:
            return
        came: dict[tuple[int, int], set[int]] = {}
        for row in numbers(extra):
            publish = self._publish_for(row)
            if publish >= 0:
                key = int(self.events[Col.CLIENT][row]), int(self.events[Col.NAME][publish])
                came.setdefault(key, set()).add(publish)
        by_name = Grouped(self.events[Col.NAME][self.deliveries.publishes], self.deliveries.publishes)
        for (client, name), publishes in came.items():
            before = by_name.before(name, max(publishes) + 1)
            due = {int(one) for one in before if len(self._due_to.of(int(mix(np.array([one]), np.array([client]))[0])))}
            groups = {int(self.asked.group[one]) for one in publishes | due}
            if all(int(self.asked.group[one]) in groups for one in before):
                self._presumed.add((client, name))

    # -- what was due --------------------------------------------------------------------------------------------

    def _missing(self) -> None:
        served = self._served() if self.short else set()
        for short in self.short:
            if short.lacking <= 0:
                continue
            publish, client = int(self._due[PUBLISH, short.due]), int(self._due[CLIENT, short.due])
            text = f"{quoted(self._topic(publish))} is not passed on to {self._who(client)}"
            text += f", {short.lacking} copies" if short.lacking > 1 else ""
            text += self._reading(publish, short.due)
            sure = self._is_sure(short, (client, int(self._due[FILTER, short.due])) in served)
            since = -int(self._due[SINCE, short.due])
            self.lacks[short.due] = "missing" if sure else "inconclusive"
            self.findings.add(
                "D-MISSING", short.first, text, [since], sure=sure, topic=self._topic(publish), client=self._who(client)
            )

    def _served(self) -> set[tuple[int, int]]:
        """Subscriptions that got all of something: so the broker knows of them."""
        whole = (self.deliveries.filled >= self._due[LEAST]) & (self._due[LEAST] > 0) & (self.deliveries.retained < 0)
        return set(zip(numbers(self._due[CLIENT][whole]), numbers(self._due[FILTER][whole]), strict=True))

    def _reading(self, publish: int, due: int) -> str:
        text = self.context.subscriptions.filters[int(self._due[FILTER, due])]
        reading = wrong_reading(self._topic(publish) or "", text, self.events.policy.dialect.spec.topics, False)
        return (
            f"; {quoted(text)} asks for it, but not if {reading}"
            if reading
            else f", which subscribed to {quoted(text)}"
        )

    def _is_sure(self, short: Shortage, is_served: bool) -> bool:
        point, policy = self.context.point, self.events.policy
        sends = self._sends(short.first)
        if self.context.end - int(self.events[Col.TIME][sends[-1]]) < CERTAIN_NS or point is Point.CLIENT:
            return False
        if self.signs.unheard(sends, point) or self.signs.unsettled:
            return False
        return is_served or bool(policy.broker_acks[policy.meaning == SUBSCRIBE].any())

    def _sends(self, first: int) -> Integers:
        if not hasattr(self, "_by_group"):
            sent = np.flatnonzero(self.asked.group >= 0)
            sent = sent[self.events[Col.SIDE][sent] == TO_BROKER]
            self._by_group = Grouped(self.asked.group[sent], sent)
        rows = self._by_group.of(first)
        return rows if len(rows) else np.array([first], np.int64)

    def _late(self) -> None:
        due, first, events = self._due, self.deliveries.first, self.events
        came = np.flatnonzero((first >= 0) & (self.deliveries.retained < 0))
        self.findings.check("D-LATE", first[came])
        after = events[Col.TIME][first[came]] - events[Col.TIME][due[PUBLISH][came]]
        for one, late in zip(numbers(came[after >= LATE_NS]), numbers(after[after >= LATE_NS]), strict=True):
            publish = int(due[PUBLISH, one])
            sure = not self.signs.unsettled
            where = events.client(int(first[one]))
            text = f"{quoted(self._topic(publish))} comes to {where} {seconds(late)} after it was published"
            self.findings.add("D-LATE", int(first[one]), text, [publish], sure=sure)

    def _reordered(self) -> None:
        """One publisher's messages under one topic come to a subscriber in the order in which they were published."""
        due, events = self._due, self.events
        came = np.flatnonzero((self.deliveries.first >= 0) & (self.deliveries.retained < 0))
        publish, forward = due[PUBLISH][came], self.deliveries.first[came]
        stream = mix(
            mix(events[Col.CLIENT][publish], events[Col.NAME][publish]),
            mix(due[CLIENT][came], events[Col.BROKER][publish]),
        )
        order = np.lexsort((publish, stream))
        publish, forward, stream = publish[order], forward[order], stream[order]
        self.findings.check("D-REORDERED", forward)
        overtaken = np.flatnonzero((stream[1:] == stream[:-1]) & (forward[1:] < forward[:-1]))
        told: set[int] = set()
        for at in numbers(overtaken):
            slow = at
            while slow >= 0 and stream[slow] == stream[at] and forward[slow] > forward[at + 1]:
                if slow not in told:
                    told.add(slow)
                    self._overtaken(slow, publish, forward, stream)
                slow -= 1

    def _overtaken(self, slow: int, publish: Integers, forward: Integers, stream: Integers) -> None:
        """Tell of a forward that came behind later messages of its stream, unless they are all the same."""
        events, time = self.events, self.events[Col.TIME]
        end = int(np.searchsorted(stream[slow:], stream[slow], "right")) + slow
        later = np.arange(slow + 1, end)
        other = events[Col.PAYLOAD][publish[later]] != events[Col.PAYLOAD][publish[slow]]
        quick = later[(forward[later] < forward[slow]) & other]
        if not len(quick):
            return
        apart = time[publish[quick[0]]] - time[publish[slow]]
        sure = self.context.point is Point.BROKER or (self.context.point is Point.BRIDGE and apart > JITTER_NS)
        sure = sure and not self.signs.unsettled
        topic = quoted(self._topic(int(publish[slow])))
        text = f"a later message of {topic} comes to {events.client(int(forward[slow]))} before this one"
        rows = [int(publish[slow]), *numbers(forward[quick]), *numbers(publish[quick])]
        self.findings.add("D-REORDERED", int(forward[slow]), text, rows, sure=bool(sure))

    def _retained(self) -> None:
        events, kept, time = self.events, self.deliveries.kept, self.events[Col.TIME]
        self.findings.check("T-CLEARED", self._due[PUBLISH][self.deliveries.retained >= 0])
        self.findings.check("T-STALE", self._due[PUBLISH][self.deliveries.retained >= 0])
        for short in self.unkept:
            if short.lacking <= 0:
                continue
            subscribe, which = int(self._due[PUBLISH, short.due]), int(self.deliveries.retained[short.due])
            at, frame = kept.column("time")[which].as_py(), kept.column("frame")[which].as_py()
            topic = kept.column("text")[which].as_py()
            plain = self._published_between(kept.column("name")[which].as_py(), at, int(time[subscribe]))
            sends = self._sends(short.first)
            waited = self.context.end - int(time[sends[-1]]) > SECOND
            sure = (
                waited and self.context.point is not Point.CLIENT and not self.signs.unheard(sends, self.context.point)
            )
            sure = sure and not self.signs.unsettled and self._was_kept(which)
            self.lacks[short.due] = "missing" if sure else "inconclusive"
            if len(plain):
                missed = f"{events.client(subscribe)} does not get the retained message of {quoted(topic)}"
                text = f"{missed}; one that was not to be retained came since"
                self.findings.add("T-CLEARED", subscribe, text, [-frame, int(plain[0])], sure=sure, topic=topic)
            else:
                text = f"{events.client(subscribe)} does not get the retained message of {quoted(topic)}"
                self.findings.add("T-MISSING", subscribe, text, [-frame], sure=sure, topic=topic)

    def _was_kept(self, which: int) -> bool:
        """Whether the broker surely got a message that was to be retained; those of earlier parts are believed."""
        events, kept = self.events, self.deliveries.kept
        frame, capture = kept.column("frame")[which].as_py(), kept.column("capture")[which].as_py()
        rows = self.deliveries.publishes
        found = rows[(events[Col.FRAME][rows] == frame) & (events[Col.CAPTURE][rows] == capture)]
        if not len(found) or self.signs.forwarded[found[0]]:
            return True
        shaky = self.context.point is not Point.BROKER and (self.signs.loss_seen or self.signs.doubles_seen)
        return bool(self.signs.reacted[found[0]]) and not shaky

    def _published_between(self, name: int, begin: int, end: int) -> Integers:
        events, rows = self.events, self.deliveries.publishes
        time = events[Col.TIME][rows]
        between: Integers = rows[
            (events[Col.NAME][rows] == name) & (time > begin) & (time < end) & (events[Col.RETAIN][rows] != 1)
        ]
        return between


def number_findings(events: Events, context: Context, findings: Findings) -> None:
    """N rules: numbers that stand for two topics of one publisher, or for none."""
    policy, bindings = events.policy, context.bindings
    if policy.dialect.spec.topics.kind != "number" or policy.has_sessions:
        return
    message, side, number = events[Col.MESSAGE], events[Col.SIDE], events[Col.NUMBER]
    named_by = np.array([name == policy.dialect.spec.topics.named_by for name in policy.messages])
    creations = np.flatnonzero(np.append(named_by, False)[message] & (side == TO_BROKER) & (number != NOTHING))
    findings.check("N-ZERO", creations)
    bound = bindings.resolve(events[Col.CLIENT][creations], number[creations], events[Col.TIME][creations])
    wrong = (bound != 0) & (bound != events[Col.NAME][creations]) & (number[creations] == 0)
    for row, name in zip(numbers(creations[wrong]), numbers(bound[wrong]), strict=True):
        first = creations[
            (events[Col.NAME][creations] == name) & (events[Col.CLIENT][creations] == events[Col.CLIENT][row])
        ]
        new, old = quoted(events.text("topic", row)), quoted(bindings.texts.get(name))
        text = f"{new} gets the number 0, which is that of {old}: the number is never written"
        findings.add("N-ZERO", row, text, numbers(first[:1]))
    published = np.flatnonzero(np.append(policy.publishes, False)[message] & (side == TO_BROKER))
    findings.check("N-COLLISION", published)
    findings.check("N-UNKNOWN-PUBLISH", published)
    unknown = published[events[Col.NAME][published] == 0]
    for row in numbers(unknown):
        text = f"number {number[row]} is published to, and {events.client(row)} has created no topic with it"
        findings.add("N-UNKNOWN-PUBLISH", row, text, sure=bool(len(bindings.keys)))
