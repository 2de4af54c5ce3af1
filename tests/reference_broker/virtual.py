"""Clients and a broker without sockets, in a time of their own: what one sends the other is handed, unless lost."""

from collections.abc import Callable

from pcap_tools.dialect import Dialect
from reference_broker import Broker, Endpoint, broker_for
from reference_broker.client.core import Client
from reference_broker.client.requests import Event, EventKind
from reference_broker.messages.sending import SECOND, Send

BROKER = ("10.0.0.1", 50000)
ALICE, BOB = ("10.0.0.2", 50000), ("10.0.0.3", 50000)

Lost = Callable[[bytes, Endpoint], bool]


class Bench:
    """``wire`` lists what was sent, as (from, to, datagram), lost or not; ``events`` what each client told."""

    def __init__(self, dialect: Dialect, clients: dict[Endpoint, Client], broker: Broker | None = None) -> None:
        self.broker = broker or broker_for(dialect)
        self.clients = clients
        self.now = 0
        self.wire: list[tuple[Endpoint, Endpoint, bytes]] = []
        self.times: list[int] = []
        self.events: dict[Endpoint, list[Event]] = {endpoint: [] for endpoint in clients}
        self.loses: Lost = lambda datagram, to: False

    def carry(self, source: Endpoint, sends: list[Send]) -> None:
        """Carry datagrams, and what they lead to, until nothing is on its way."""
        on_its_way = [(source, send) for send in sends]
        while on_its_way:
            sender, send = on_its_way.pop(0)
            self.wire.append((sender, send.to, send.datagram))
            self.times.append(self.now)
            if self.loses(send.datagram, send.to):
                continue
            if send.to == BROKER:
                on_its_way += [(BROKER, answer) for answer in self.broker.handle(send.datagram, sender, self.now)]
            elif send.to in self.clients:
                answers, events = self.clients[send.to].handle(send.datagram, sender, self.now)
                self.events[send.to] += events
                on_its_way += [(send.to, answer) for answer in answers]

    def wait(self, seconds: float) -> None:
        """Let time pass, from one thing that is due to the next."""
        end = self.now + int(seconds * SECOND)
        while True:
            dues = [due for client in self.clients.values() if (due := client.next_due()) is not None]
            step = min([due for due in dues if due > self.now] + [self.now + SECOND, end])
            self.now = max(step, self.now)
            for endpoint, client in self.clients.items():
                sends, events = client.tick(self.now)
                self.events[endpoint] += events
                self.carry(endpoint, sends)
            self.carry(BROKER, self.broker.tick(self.now))
            if self.now >= end:
                return

    def kinds(self, client: Endpoint) -> list[tuple[EventKind, str | None]]:
        return [(event.kind, event.message.message) for event in self.events[client]]

    def received(self, client: Endpoint) -> list[tuple[bytes | None, bytes | None]]:
        return [(event.topic, event.payload) for event in self.events[client] if event.kind is EventKind.RECEIVED]

    def sent_by(self, client: Endpoint) -> list[bytes]:
        return [datagram for source, _, datagram in self.wire if source == client]
