"""An activation: one party handles an input (a datagram, a timer, an action of the scenario). Faults are injected here.

The cores of the broker and of the clients behave correctly. Their output is a list of ``Outgoing``. A fault removes,
adds, delays or alters some of it and records a ``Label``, so the ground truth comes from the fault itself and never
from a checker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from generators.simulation.network import Transit
from generators.simulation.random_source import RandomSource
from generators.simulation.site import Node, Site
from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from reference_broker import Endpoint
from reference_broker.client.applications import Publish


class Purpose(StrEnum):
    """Why a datagram is sent."""

    REQUEST = "request"  # a client's own wish: publish, subscribe, connect
    ACK = "ack"
    FORWARD = "forward"
    RETAINED = "retained"
    STATUS = "status"
    OTHER = "other"
    STRAY = "stray"  # nobody's purpose: a fault's work


@dataclass(slots=True, eq=False)
class Outgoing:
    """A datagram to be sent; ``sent`` is set when it has been sent.

    publish     the publish of a forward or retained message
    resend_of   the first send of a request that is sent again
    repeats     that first send, if it has not been sent yet
    """

    datagram: bytes
    to: Endpoint
    purpose: Purpose
    message: Message
    ephemeral: bool = False
    delay_ns: int = 0
    publish: Sent | None = None
    resend_of: Sent | None = None
    repeats: Outgoing | None = None
    sent: Sent | None = None


@dataclass(slots=True, eq=False)
class Sent:
    """A datagram that was sent: its sender (``node`` None: the broker), its cause and its transit."""

    site: Site
    node: Node | None
    out: Outgoing
    transit: Transit
    cause: Sent | None

    @property
    def message(self) -> Message:
        return self.out.message

    @property
    def purpose(self) -> Purpose:
        return self.out.purpose

    @property
    def first(self) -> Sent:
        """The first send of the same request."""
        return self.out.resend_of or self


@dataclass(slots=True, eq=False)
class Label:
    """The record of an injected fault. ``shown_by``: the datagrams that show it."""

    rule: str
    shown_by: list[Outgoing | Sent]
    text: str
    topic: bytes | None = None
    fault: str = ""  # written by whoever runs the fault


@dataclass(slots=True)
class History:
    """Messages that have reached the broker of a site, for faults that depend on earlier ones."""

    subscribed: dict[tuple[Endpoint, bytes], Sent] = field(default_factory=dict)
    unsubscribed: dict[tuple[Endpoint, bytes], Sent] = field(default_factory=dict)
    published: dict[bytes, list[Sent]] = field(default_factory=dict)  # by the topic they go under
    created: dict[tuple[Endpoint, int], bytes] = field(default_factory=dict)  # topic numbers, by who created them
    topics: dict[int, bytes] = field(default_factory=dict)  # of publishes, by the number of the datagram
    arrivals: Counter[int] = field(default_factory=Counter)  # of all sends, by the number of the first


@dataclass(slots=True, eq=False)
class Activation:
    """
    node      the activated client; None: the broker
    cause     the datagram that arrived; None for a timer or an action of the scenario
    since     nanoseconds since the start of the scenario
    topic     topic of the publish that arrived
    memory    state that the fault keeps for itself
    reaction  the publish of a node's application; an application is activated before its client
    """

    site: Site
    node: Node | None
    cause: Sent | None
    outgoing: list[Outgoing]
    now: int
    since: int
    topic: bytes | None
    rng: RandomSource
    codec: Codec
    history: History
    memory: dict[Any, Any] = field(default_factory=dict)
    reaction: Publish | None = None

    @property
    def is_brokers(self) -> bool:
        return self.node is None

    def came(self, *meanings: str) -> Sent | None:
        """The datagram that arrived, if it has one of these meanings."""
        cause = self.cause
        return cause if cause is not None and cause.message.meaning in meanings else None

    @property
    def is_first(self) -> bool:
        """Whether the datagram reached the broker for the first time: not a resend, not a duplicate of the network."""
        return self.cause is not None and self.history.arrivals[self.cause.first.transit.number] == 1

    def of(self, *purposes: Purpose) -> list[Outgoing]:
        return [out for out in self.outgoing if out.purpose in purposes]

    def drop(self, out: Outgoing) -> None:
        self.outgoing.remove(out)

    def stray(self, datagram: bytes, to: Endpoint, delay_ns: int = 0) -> Outgoing:
        """A datagram that the protocol does not require; insert it into ``outgoing``."""
        return Outgoing(datagram, to, Purpose.STRAY, self.codec.decode(datagram), delay_ns=delay_ns)

    def topic_of(self, out: Outgoing) -> bytes | None:
        """The topic of the publish of a forward or retained message."""
        return self.history.topics.get(out.publish.transit.number) if out.publish is not None else None

    def others(self, *not_these: Endpoint) -> list[Node]:
        """Clients of the site except these."""
        return [node for node in self.site.nodes if node.endpoint not in not_these and node.source not in not_these]


# What a fault found to do: doing it returns what was done.
Edit = Callable[[], list[Label]]
