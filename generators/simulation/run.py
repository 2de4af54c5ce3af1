"""The record of a run: datagrams sent, exchanges, deliveries, faults, events of clients."""

from __future__ import annotations

from dataclasses import dataclass, field

from generators.simulation.activation import Label, Outgoing, Purpose, Sent
from generators.simulation.network import Transit
from generators.simulation.site import Node, Site
from reference_broker import Endpoint
from reference_broker.client.requests import Event


@dataclass(slots=True, eq=False)
class Exchange:
    """A request with all its sends and the ACKs of a correct party. An ACK that a fault removed has no ``sent``."""

    sends: list[Sent]
    acks: list[Outgoing] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Delivery:
    """A message that the protocol requires for a subscriber, and its datagram, if it was sent."""

    publish: Sent | None
    subscriber: Endpoint
    out: Outgoing

    @property
    def is_retained(self) -> bool:
        return self.out.purpose is Purpose.RETAINED


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """An event that a client reports to its user: a message arrived, a request was acknowledged or given up."""

    time_ns: int
    node: Node
    event: Event


@dataclass(slots=True)
class Run:
    """The record of one run."""

    sites: list[Site]
    sent: list[Sent] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    told: list[ClientEvent] = field(default_factory=list)

    @property
    def transits(self) -> list[Transit]:
        """In order of sending."""
        return sorted((sent.transit for sent in self.sent), key=lambda transit: transit.sent_ns)
