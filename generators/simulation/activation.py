"""A turn: something came, or was due, and one party answers. Faults step in here.

The broker's and the clients' cores are right. What they want to say is a list of ``Out``; a fault may take out, add,
delay or alter some of it, and says so with a ``Label``. So the truth is told by whoever did it, never by a checker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from generators.simulation.random_source import Chance
from generators.simulation.site import Node, Site
from generators.simulation.transit import Crossing
from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from reference_broker import Endpoint
from reference_broker.client.applications import Publish


class Duty(StrEnum):
    """Why a datagram is sent."""

    REQUEST = "request"  # a client's own wish: publish, subscribe, connect
    ACK = "ack"
    FORWARD = "forward"
    RETAINED = "retained"
    STATUS = "status"
    OTHER = "other"
    STRAY = "stray"  # nobody's duty: a fault's work


@dataclass(slots=True, eq=False)
class Out:
    """A datagram about to leave; ``sent`` is set when it has left.

    ``publish`` is what a forward or retained message passes on, ``resend_of`` the first send of a request that is
    sent again; ``repeats`` is that first send where it is about to leave as well.
    """

    datagram: bytes
    to: Endpoint
    duty: Duty
    message: Message
    ephemeral: bool = False
    delay_ns: int = 0
    publish: Sent | None = None
    resend_of: Sent | None = None
    repeats: Out | None = None
    sent: Sent | None = None


@dataclass(slots=True, eq=False)
class Sent:
    """A datagram that has left: by whom (``node`` None: the broker), in answer to what, and its way."""

    site: Site
    node: Node | None
    out: Out
    crossing: Crossing
    cause: Sent | None

    @property
    def message(self) -> Message:
        return self.out.message

    @property
    def duty(self) -> Duty:
        return self.out.duty

    @property
    def first(self) -> Sent:
        """The first send of the same request."""
        return self.out.resend_of or self


@dataclass(slots=True, eq=False)
class Label:
    """A fault that was done. ``shown_by`` are the datagrams that show it, once they are found in the capture."""

    rule: str
    shown_by: list[Out | Sent]
    text: str
    topic: bytes | None = None
    fault: str = ""  # written by whoever runs the fault


@dataclass(slots=True)
class History:
    """What has reached the broker of a site so far, for faults that look back."""

    subscribed: dict[tuple[Endpoint, bytes], Sent] = field(default_factory=dict)
    unsubscribed: dict[tuple[Endpoint, bytes], Sent] = field(default_factory=dict)
    published: dict[bytes, list[Sent]] = field(default_factory=dict)  # by the topic they go under
    created: dict[tuple[Endpoint, int], bytes] = field(default_factory=dict)  # topic numbers, by who created them
    topics: dict[int, bytes] = field(default_factory=dict)  # of publishes, by the number of the datagram
    arrivals: Counter[int] = field(default_factory=Counter)  # of all sends, by the number of the first


@dataclass(slots=True, eq=False)
class Turn:
    """One party's turn: the broker's where ``node`` is None. ``cause`` is what came in; None for a timer or an action
    of the scenario. ``since`` counts from the beginning, as the scenario does. ``topic`` is that of the publish that
    came in. ``memory`` is the fault's own. ``reaction`` is what a node's application wants to publish: an
    application's turn comes before that of its client."""

    site: Site
    node: Node | None
    cause: Sent | None
    outs: list[Out]
    now: int
    since: int
    topic: bytes | None
    chance: Chance
    codec: Codec
    history: History
    memory: dict[Any, Any] = field(default_factory=dict)
    reaction: Publish | None = None

    @property
    def is_brokers(self) -> bool:
        return self.node is None

    def came(self, *meanings: str) -> Sent | None:
        """What came in, if it means one of these."""
        cause = self.cause
        return cause if cause is not None and cause.message.meaning in meanings else None

    @property
    def is_first(self) -> bool:
        """Whether what came to the broker came for the first time: not sent again, not doubled on the way."""
        return self.cause is not None and self.history.arrivals[self.cause.first.crossing.number] == 1

    def of(self, *duties: Duty) -> list[Out]:
        return [out for out in self.outs if out.duty in duties]

    def drop(self, out: Out) -> None:
        self.outs.remove(out)

    def stray(self, datagram: bytes, to: Endpoint, delay_ns: int = 0) -> Out:
        """A datagram that nobody owes; add it to ``outs`` where it belongs."""
        return Out(datagram, to, Duty.STRAY, self.codec.decode(datagram), delay_ns=delay_ns)

    def topic_of(self, out: Out) -> bytes | None:
        """The topic of the publish that a forward or retained message passes on."""
        return self.history.topics.get(out.publish.crossing.number) if out.publish is not None else None

    def others(self, *not_these: Endpoint) -> list[Node]:
        """Clients of the site that are none of these."""
        return [node for node in self.site.nodes if node.endpoint not in not_these and node.source not in not_these]


# What a fault found to do: doing it returns what was done.
Edit = Callable[[], list[Label]]
