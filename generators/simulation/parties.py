"""The parties of a site and their turns: the broker's core, the clients, and the duties that each turn brings.

A party's turn comes when a datagram reaches it, when a timer is due, or when the scenario says so. Time and the way
between the parties are the world's business: the simulation's, or the real one's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from generators.simulation.activation import Duty, History, Out, Sent, Turn
from generators.simulation.fault import Armed
from generators.simulation.random_source import Chance
from generators.simulation.run import Delivery, Exchange, Run, Told
from generators.simulation.site import Action, Node, Site
from generators.simulation.transit import Crossing
from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.errors import UsageError
from reference_broker import Broker, Endpoint, Send, broker_for
from reference_broker.client.requests import Event, EventKind
from reference_broker.messages.sending import SECOND
from reference_broker.server.state import changes_of, restore

RESTART_NS = SECOND // 2


class World(Protocol):
    """What a cast needs around it."""

    run_so_far: Run
    faults: list[Armed]
    mischief: Chance
    start_ns: int
    last_action_ns: int

    def later(self, time_ns: int, happens: Callable[[int], None]) -> None:
        """Have something happen at a time."""

    def leaves(self, host: str, now: int) -> int:
        """When a host that has something to say now gets it out."""

    def carry(self, crossing: Crossing, now: int) -> tuple[int, ...]:
        """Take a datagram on its way; the times at which it arrives here."""

    def ephemeral_port(self) -> int: ...

    def note_sent(self, sent: Sent) -> None: ...


class Cast:
    """The parties of one site in a world: takes their turns."""

    def __init__(self, world: World, site: Site, restarts: Sequence[int]) -> None:
        self.world, self.site = world, site
        self.run = world.run_so_far
        self.codec = Codec(site.dialect)
        self.broker: Broker = broker_for(site.dialect)
        self.broker_is_back = 0
        self.history = History()
        self._by_endpoint = {node.endpoint: node for node in site.nodes} | {node.source: node for node in site.nodes}
        self._exchanges: dict[int, Exchange] = {}  # by the number of their first send
        self._current: dict[int, Sent] = {}  # a node's request on its way
        self._said: dict[bytes, Sent] = {}  # payloads, where forwards come apart from their publish
        self._unacknowledged: dict[tuple[object, ...], Sent] = {}  # what a broker may say again
        self._wake_at: dict[int, int] = {}
        for action in site.actions:
            world.later(world.start_ns + action.time_ns, partial(self._act, action))
        for restart in restarts:
            world.later(world.start_ns + restart, self._restart)
        if site.dialect.spec.broker.sessions == "mqtt-sn":
            world.later(world.start_ns + SECOND, self._tick_broker)

    # -- turns ------------------------------------------------------------------------------------------------------

    def _act(self, action: Action, now: int) -> None:
        node = action.node
        outs = [self._request_out(send) for send in action.perform(now)]
        self._take_turn(node, None, outs, now)

    def _at_broker(self, came: Sent, now: int) -> None:
        if now < self.broker_is_back:
            return
        topic = self._remember(came)
        sends = self.broker.handle(came.crossing.datagram, came.crossing.src, now)
        outs = [self._broker_out(send, came) for send in sends]
        self._note_duties(came, outs)
        self._take_turn(None, came, outs, now, topic)

    def _tick_broker(self, now: int) -> None:
        outs = [self._broker_out(send, None) for send in self.broker.tick(now)]
        self._note_duties(None, outs)
        self._take_turn(None, None, outs, now)
        self.world.later(now + SECOND, self._tick_broker)  # to the end: what it said may still have to be said again

    def _at_node(self, node: Node, came: Sent, now: int) -> None:
        sends, events = node.client.handle(came.crossing.datagram, came.crossing.src, now)
        self._client_turn(node, came, sends, events, now)

    def _wake(self, node: Node, now: int) -> None:
        if self._wake_at.get(id(node)) != now:
            return  # it was put off
        sends, events = node.client.tick(now)
        self._client_turn(node, None, sends, events, now)

    def _client_turn(self, node: Node, came: Sent | None, sends: list[Send], events: list[Event], now: int) -> None:
        resent = any(event.kind is EventKind.RESENT for event in events)
        outs = [self._request_out(send, self._current.get(id(node)) if resent else None) for send in sends]
        if came is not None:
            for out in outs:
                if out.duty is Duty.ACK and (exchange := self._exchanges.get(came.first.crossing.number)):
                    exchange.acks.append(out)
        for event in events:
            self.run.told.append(Told(now, node, event))
            if event.kind is EventKind.RECEIVED and node.application is not None and came is not None:
                outs += self._react(node, came, event, now)
        self._take_turn(node, came, outs, now)

    def _react(self, node: Node, came: Sent, event: Event, now: int) -> list[Out]:
        """What a node's application publishes because of a message."""
        if node.application is None:
            return []
        turn = self._turn(node, came, [], now)
        turn.reaction = node.application.on_message(event.topic or b"", event.payload or b"").publish
        self._let_faults_in(turn)
        if turn.reaction is None:
            return []
        return [self._request_out(send) for send in node.client.publish(*turn.reaction, now)]

    def _take_turn(
        self, node: Node | None, came: Sent | None, outs: list[Out], now: int, topic: bytes | None = None
    ) -> None:
        turn = self._turn(node, came, outs, now, topic)
        self._let_faults_in(turn)
        for out in turn.outs:
            self._leave(node, out, came, now)
        if node is not None:
            self._set_alarm(node, now)

    def _turn(
        self, node: Node | None, came: Sent | None, outs: list[Out], now: int, topic: bytes | None = None
    ) -> Turn:
        since = now - self.world.start_ns
        return Turn(self.site, node, came, outs, now, since, topic, self.world.mischief, self.codec, self.history)

    def _let_faults_in(self, turn: Turn) -> None:
        meant = [(out, out.datagram, out.delay_ns) for out in turn.outs]
        labels = [label for armed in self.world.faults for label in armed.go_on(turn)]
        self.run.labels += labels
        if labels or meant != [(out, out.datagram, out.delay_ns) for out in turn.outs]:
            return  # what an earlier fault leads to is seen for itself as well
        for armed in self.world.faults:
            labels = armed.step_in(turn)
            if labels:  # one fault a turn, so that each is seen for itself
                self.run.labels += labels
                return

    def _set_alarm(self, node: Node, now: int) -> None:
        due = node.client.next_due()
        if due is not None and self._wake_at.get(id(node)) != max(due, now + 1):
            self._wake_at[id(node)] = max(due, now + 1)
            self.world.later(max(due, now + 1), partial(self._wake, node))

    # -- what is said, and why ----------------------------------------------------------------------------------------

    def _request_out(self, send: Send, resend_of: Sent | None = None) -> Out:
        message = self.codec.decode(send.datagram)
        duty = Duty.ACK if message.meaning == "ack" else Duty.REQUEST
        return Out(send.datagram, send.to, duty, message, resend_of=resend_of if duty is Duty.REQUEST else None)

    def _broker_out(self, send: Send, came: Sent | None) -> Out:
        message = self.codec.decode(send.datagram)
        out = Out(send.datagram, send.to, Duty.OTHER, message, send.ephemeral)
        if came is None:  # a timer of the broker's: it says again what was not acknowledged
            out.resend_of = self._unacknowledged.get(_id_of(message, send.to))
        if message.meaning == "ack":
            out.duty = Duty.ACK
        elif message.meaning == "status":
            out.duty = Duty.STATUS
        elif message.meaning in ("publish", "deliver"):
            self._pass_on(out, came)
        return out

    def _pass_on(self, out: Out, came: Sent | None) -> None:
        """Say whose message this is: that of the publish that came, or one from before."""
        if came is not None and came.message.meaning == "publish":
            out.duty, out.publish = Duty.FORWARD, came
            return
        before = self._said.get(out.message.payload or b"")
        is_retained = came is not None and came.message.meaning == "subscribe"
        out.duty = Duty.RETAINED if is_retained or out.message.retain else Duty.FORWARD
        out.publish = before

    def _note_duties(self, came: Sent | None, outs: list[Out]) -> None:
        exchange = self._exchanges.get(came.first.crossing.number) if came is not None else None
        for out in outs:
            if out.duty is Duty.ACK and exchange is not None:
                exchange.acks.append(out)
            elif out.duty in (Duty.FORWARD, Duty.RETAINED) and came is not None:
                self.run.deliveries.append(Delivery(out.publish, out.to, out))

    def _remember(self, came: Sent) -> bytes | None:
        """Keep what faults look back for; returns the topic of a publish."""
        message, source, history = came.message, came.crossing.src, self.history
        history.arrivals[came.first.crossing.number] += 1
        if message.error is not None:
            return None
        topic = self.broker.topic_of(message, source) if message.meaning == "publish" else None
        if topic is not None:
            history.published.setdefault(topic, []).append(came)
            history.topics[came.crossing.number] = topic
            self._said[message.payload or b""] = came
        subscriber = self._listens(came)
        if message.meaning == "subscribe" and message.filter is not None:
            history.subscribed[subscriber, message.filter] = came
            history.unsubscribed.pop((subscriber, message.filter), None)
        elif message.meaning == "unsubscribe" and message.filter is not None:
            history.unsubscribed[subscriber, message.filter] = came
            history.subscribed.pop((subscriber, message.filter), None)
        elif message.meaning == "create" and message.topic is not None:
            number = message.fields.get(self.site.dialect.spec.topics.number or "")
            if isinstance(number, int):
                history.created[source, number] = message.topic
        return topic

    def _listens(self, came: Sent) -> Endpoint:
        node = self._by_endpoint.get(came.crossing.src)
        return node.endpoint if node is not None else came.crossing.src

    # -- on the way -----------------------------------------------------------------------------------------------

    def _leave(self, node: Node | None, out: Out, came: Sent | None, now: int) -> None:
        world, site = self.world, self.site
        if out.repeats is not None:
            out.resend_of = out.repeats.sent
        source = site.broker if node is None else node.source
        if node is not None and out.duty is Duty.ACK:
            source = node.endpoint  # answers leave from where the question came
        if out.ephemeral:
            source = source[0], world.ephemeral_port()
        sent_ns = world.leaves(source[0], now) if not out.delay_ns else now + out.delay_ns
        number = len(self.run.sent)
        crossing = Crossing(number, site.dialect.name, source, out.to, out.datagram, sent_ns)
        sent = out.sent = Sent(site, node, out, crossing, came)
        world.note_sent(sent)
        self._open_exchange(sent)
        world.later(sent_ns, partial(self._carry, sent))

    def _carry(self, sent: Sent, now: int) -> None:
        crossing = sent.crossing
        crossing.arrived_ns = self.world.carry(crossing, now)
        for arrival in crossing.arrived_ns:
            self.world.later(arrival, partial(self._arrive, sent))

    def _arrive(self, sent: Sent, now: int) -> None:
        to = sent.crossing.dst
        node = self._by_endpoint.get(to)
        if to == self.site.broker:
            self._at_broker(sent, now)
        elif node is not None and to == node.endpoint:
            self._at_node(node, sent, now)

    def _open_exchange(self, sent: Sent) -> None:
        """Requests that the other side acknowledges are exchanges; a resend belongs to that of the first send."""
        if sent.out.resend_of is not None:
            self._exchanges[sent.first.crossing.number].sends.append(sent)
        elif self._expects_ack(sent):
            exchange = self._exchanges[sent.crossing.number] = Exchange([sent])
            self.run.exchanges.append(exchange)
            if sent.node is None:
                self._unacknowledged[_id_of(sent.message, sent.crossing.dst)] = sent
            elif sent.duty is Duty.REQUEST:
                self._current[id(sent.node)] = sent

    def _expects_ack(self, sent: Sent) -> bool:
        message, datagram = sent.message, sent.crossing.datagram
        if sent.duty in (Duty.ACK, Duty.STRAY) or message.error is not None:
            return False
        if sent.node is not None:
            return sent.node.client.expects_ack(message, datagram)
        return message.message in self.site.dialect.spec.client.acks and message.fields.get("qos", 1) == 1

    def _restart(self, now: int) -> None:
        self.broker_is_back = now + RESTART_NS
        old, self.broker = self.broker, broker_for(self.site.dialect)
        for change in changes_of(old):
            if not restore(self.broker, change):
                raise UsageError("a restarted broker has no room for what it kept")


def _id_of(message: Message, to: Endpoint) -> tuple[object, ...]:
    return to, message.message, message.fields.get("message_id")
