"""What happened in a run: what was sent, what was due, and which faults were done."""

from __future__ import annotations

from dataclasses import dataclass, field

from generators.simulation.activation import Duty, Label, Out, Sent
from generators.simulation.site import Node, Site
from generators.simulation.transit import Crossing
from reference_broker import Endpoint
from reference_broker.client.requests import Event


@dataclass(slots=True, eq=False)
class Exchange:
    """A request with all its sends, and the ACKs that a right party gives it; one that a fault ate has no ``sent``."""

    sends: list[Sent]
    acks: list[Out] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Delivery:
    """A message that is due to a subscriber, and the datagram that brings it, if it is sent."""

    publish: Sent | None
    subscriber: Endpoint
    out: Out

    @property
    def is_retained(self) -> bool:
        return self.out.duty is Duty.RETAINED


@dataclass(frozen=True, slots=True)
class Told:
    """What a client told whoever uses it: a message came, a request was acknowledged or given up."""

    time_ns: int
    node: Node
    event: Event


@dataclass(slots=True)
class Run:
    """What happened."""

    sites: list[Site]
    sent: list[Sent] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    @property
    def crossings(self) -> list[Crossing]:
        """In the order of their sending."""
        return sorted((sent.crossing for sent in self.sent), key=lambda crossing: crossing.sent_ns)
