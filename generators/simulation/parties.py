"""The parties of a site: the broker's core and the clients, and the datagrams that each activation sends.

A party is activated by a datagram that reaches it, by a timer, or by an action of the scenario. Time and transport
belong to the environment: the simulation's, or real sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from generators.simulation.activation import Activation, History, Outgoing, Purpose, Sent
from generators.simulation.fault import FaultInjector
from generators.simulation.network import Transit
from generators.simulation.random_source import RandomSource
from generators.simulation.run import ClientEvent, Delivery, Exchange, Run
from generators.simulation.site import Action, Node, Site
from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.errors import UsageError
from reference_broker import Broker, Endpoint, Send, broker_for
from reference_broker.client.requests import Event, EventKind
from reference_broker.messages.sending import SECOND
from reference_broker.server.state import changes_of, restore

RESTART_NS = SECOND // 2


class Environment(Protocol):
    """The surroundings of the parties: time, network, faults, the record of the run."""

    run_so_far: Run
    faults: list[FaultInjector]
    fault_rng: RandomSource
    start_ns: int
    last_action_ns: int

    def later(self, time_ns: int, happens: Callable[[int], None]) -> None:
        """Call ``happens`` at a time."""

    def leaves(self, host: str, now: int) -> int:
        """The time at which a datagram of this host leaves."""

    def carry(self, transit: Transit, now: int) -> tuple[int, ...]:
        """Send a datagram; returns its arrival times."""

    def ephemeral_port(self) -> int: ...

    def note_sent(self, sent: Sent) -> None: ...


class Parties:
    """The parties of one site: activates them."""

    def __init__(self, world: Environment, site: Site, restarts: Sequence[int]) -> None:
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
        outgoing = [self._request_out(send) for send in action.perform(now)]
        self._take_activation(node, None, outgoing, now)

    def _at_broker(self, came: Sent, now: int) -> None:
        if now < self.broker_is_back:
            return
        topic = self._remember(came)
        sends = self.broker.handle(came.transit.datagram, came.transit.src, now)
        while self.broker.turns:
            sends += self.broker.proceed(now)
        outgoing = [self._broker_out(send, came) for send in sends]
        self._note_purposes(came, outgoing)
        self._take_activation(None, came, outgoing, now, topic)

    def _tick_broker(self, now: int) -> None:
        outgoing = [self._broker_out(send, None) for send in self.broker.tick(now)]
        self._note_purposes(None, outgoing)
        self._take_activation(None, None, outgoing, now)
        self.world.later(now + SECOND, self._tick_broker)  # to the end: what it said may still have to be said again

    def _at_node(self, node: Node, came: Sent, now: int) -> None:
        sends, events = node.client.handle(came.transit.datagram, came.transit.src, now)
        self._client_activation(node, came, sends, events, now)

    def _wake(self, node: Node, now: int) -> None:
        if self._wake_at.get(id(node)) != now:
            return  # it was put off
        sends, events = node.client.tick(now)
        self._client_activation(node, None, sends, events, now)

    def _client_activation(
        self, node: Node, came: Sent | None, sends: list[Send], events: list[Event], now: int
    ) -> None:
        resent = any(event.kind is EventKind.RESENT for event in events)
        outgoing = [self._request_out(send, self._current.get(id(node)) if resent else None) for send in sends]
        if came is not None:
            for out in outgoing:
                if out.purpose is Purpose.ACK and (exchange := self._exchanges.get(came.first.transit.number)):
                    exchange.acks.append(out)
        for event in events:
            self.run.told.append(ClientEvent(now, node, event))
            if event.kind is EventKind.RECEIVED and node.application is not None and came is not None:
                outgoing += self._react(node, came, event, now)
        self._take_activation(node, came, outgoing, now)

    def _react(self, node: Node, came: Sent, event: Event, now: int) -> list[Outgoing]:
        """The publish of a node's application after a message."""
        if node.application is None:
            return []
        activation = self._activation(node, came, [], now)
        activation.reaction = node.application.on_message(event.topic or b"", event.payload or b"").publish
        self._let_faults_in(activation)
        if activation.reaction is None:
            return []
        return [self._request_out(send) for send in node.client.publish(*activation.reaction, now)]

    def _take_activation(
        self, node: Node | None, came: Sent | None, outgoing: list[Outgoing], now: int, topic: bytes | None = None
    ) -> None:
        activation = self._activation(node, came, outgoing, now, topic)
        self._let_faults_in(activation)
        for out in activation.outgoing:
            self._leave(node, out, came, now)
        if node is not None:
            self._set_alarm(node, now)

    def _activation(
        self, node: Node | None, came: Sent | None, outgoing: list[Outgoing], now: int, topic: bytes | None = None
    ) -> Activation:
        since = now - self.world.start_ns
        return Activation(
            self.site, node, came, outgoing, now, since, topic, self.world.fault_rng, self.codec, self.history
        )

    def _let_faults_in(self, activation: Activation) -> None:
        meant = [(out, out.datagram, out.delay_ns) for out in activation.outgoing]
        labels = [label for injector in self.world.faults for label in injector.follow_up(activation)]
        self.run.labels += labels
        if labels or meant != [(out, out.datagram, out.delay_ns) for out in activation.outgoing]:
            return  # what an earlier fault leads to is seen for itself as well
        for injector in self.world.faults:
            labels = injector.inject(activation)
            if labels:  # one fault a activation, so that each is seen for itself
                self.run.labels += labels
                return

    def _set_alarm(self, node: Node, now: int) -> None:
        due = node.client.next_due()
        if due is not None and self._wake_at.get(id(node)) != max(due, now + 1):
            self._wake_at[id(node)] = max(due, now + 1)
            self.world.later(max(due, now + 1), partial(self._wake, node))

    # -- what is said, and why ----------------------------------------------------------------------------------------

    def _request_out(self, send: Send, resend_of: Sent | None = None) -> Outgoing:
        message = self.codec.decode(send.datagram)
        purpose = Purpose.ACK if message.meaning == "ack" else Purpose.REQUEST
        return Outgoing(
            send.datagram, send.to, purpose, message, resend_of=resend_of if purpose is Purpose.REQUEST else None
        )

    def _broker_out(self, send: Send, came: Sent | None) -> Outgoing:
        message = self.codec.decode(send.datagram)
        out = Outgoing(send.datagram, send.to, Purpose.OTHER, message, send.ephemeral)
        if came is None:  # a timer of the broker's: it says again what was not acknowledged
            out.resend_of = self._unacknowledged.get(_id_of(message, send.to))
        if message.meaning == "ack":
            out.purpose = Purpose.ACK
        elif message.meaning == "status":
            out.purpose = Purpose.STATUS
        elif message.meaning in ("publish", "deliver"):
            self._pass_on(out, came)
        return out

    def _pass_on(self, out: Outgoing, came: Sent | None) -> None:
        """Find the publish of a forward: the one that arrived, or an earlier one."""
        if came is not None and came.message.meaning == "publish":
            out.purpose, out.publish = Purpose.FORWARD, came
            return
        before = self._said.get(out.message.payload or b"")
        is_retained = came is not None and came.message.meaning == "subscribe"
        out.purpose = Purpose.RETAINED if is_retained or out.message.retain else Purpose.FORWARD
        out.publish = before

    def _note_purposes(self, came: Sent | None, outgoing: list[Outgoing]) -> None:
        exchange = self._exchanges.get(came.first.transit.number) if came is not None else None
        for out in outgoing:
            if out.purpose is Purpose.ACK and exchange is not None:
                exchange.acks.append(out)
            elif out.purpose in (Purpose.FORWARD, Purpose.RETAINED) and came is not None:
                self.run.deliveries.append(Delivery(out.publish, out.to, out))

    def _remember(self, came: Sent) -> bytes | None:
        """Record history for faults; returns the topic of a publish."""
        message, source, history = came.message, came.transit.src, self.history
        history.arrivals[came.first.transit.number] += 1
        if message.error is not None:
            return None
        topic = self.broker.topic_of(message, source) if message.meaning == "publish" else None
        if topic is not None:
            history.published.setdefault(topic, []).append(came)
            history.topics[came.transit.number] = topic
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
        node = self._by_endpoint.get(came.transit.src)
        return node.endpoint if node is not None else came.transit.src

    # -- on the way -----------------------------------------------------------------------------------------------

    def _leave(self, node: Node | None, out: Outgoing, came: Sent | None, now: int) -> None:
        world, site = self.world, self.site
        if out.repeats is not None:
            out.resend_of = out.repeats.sent
        source = site.broker if node is None else node.source
        if node is not None and out.purpose is Purpose.ACK:
            source = node.endpoint  # answers leave from where the question came
        if out.ephemeral:
            source = source[0], world.ephemeral_port()
        sent_ns = world.leaves(source[0], now) if not out.delay_ns else now + out.delay_ns
        number = len(self.run.sent)
        transit = Transit(number, site.dialect.name, source, out.to, out.datagram, sent_ns)
        sent = out.sent = Sent(site, node, out, transit, came)
        world.note_sent(sent)
        self._open_exchange(sent)
        world.later(sent_ns, partial(self._carry, sent))

    def _carry(self, sent: Sent, now: int) -> None:
        transit = sent.transit
        transit.arrived_ns = self.world.carry(transit, now)
        for arrival in transit.arrived_ns:
            self.world.later(arrival, partial(self._arrive, sent))

    def _arrive(self, sent: Sent, now: int) -> None:
        to = sent.transit.dst
        node = self._by_endpoint.get(to)
        if to == self.site.broker:
            self._at_broker(sent, now)
        elif node is not None and to == node.endpoint:
            self._at_node(node, sent, now)

    def _open_exchange(self, sent: Sent) -> None:
        """A request that requires an ACK opens an exchange; a resend joins the exchange of the first send."""
        if sent.out.resend_of is not None:
            self._exchanges[sent.first.transit.number].sends.append(sent)
        elif self._expects_ack(sent):
            exchange = self._exchanges[sent.transit.number] = Exchange([sent])
            self.run.exchanges.append(exchange)
            if sent.node is None:
                self._unacknowledged[_id_of(sent.message, sent.transit.dst)] = sent
            elif sent.purpose is Purpose.REQUEST:
                self._current[id(sent.node)] = sent

    def _expects_ack(self, sent: Sent) -> bool:
        message, datagram = sent.message, sent.transit.datagram
        if sent.purpose in (Purpose.ACK, Purpose.STRAY) or message.error is not None:
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
