"""Sites: brokers, nodes and their actions. A scenario builds them; the simulation or the live player runs them.

A ``Site`` is one broker with its clients, all of one dialect. ``mixed`` has several sites, other scenarios one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Protocol

from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from reference_broker import Client, Endpoint, Send, client_for
from reference_broker.client.applications import Reaction
from reference_broker.client.requests import Timing
from reference_broker.messages.sending import SECOND

FIRST_HOST = 10
HOSTS_IN_A_ROW = 200
ANY_PORT = 40_000  # nodes of dialects that give their roles no port count from here
PROCESSING_NS = 60_000
GAP_NS = 8_000


class Application(Protocol):
    """The behaviour of a node when it receives a message (see ``reference_broker/client/applications.py``)."""

    def on_message(self, topic: bytes, payload: bytes) -> Reaction: ...


@dataclass(slots=True, eq=False)
class Node:
    """A client with its addresses. ``source`` is the source address of its requests, which differs from ``endpoint`` in
    ``portdigits``. ``stays``: the node has the same address in every repeat of a large capture (``bulk/tiling.py``).
    """

    name: str
    role: str
    endpoint: Endpoint
    source: Endpoint
    client: Client
    application: Application | None = None
    stays: bool = False


class Verb(StrEnum):
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    CREATE = "create"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a node at a time; ``text`` is a topic or a filter."""

    time_ns: int
    node: Node
    verb: Verb
    text: bytes = b""
    payload: bytes = b""
    retain: bool = False

    def perform(self, now: int) -> list[Send]:
        client = self.node.client
        if self.verb is Verb.PUBLISH:
            return client.publish(self.text, self.payload, now, self.retain)
        if self.verb is Verb.SUBSCRIBE:
            return client.subscribe(self.text, now)
        if self.verb is Verb.UNSUBSCRIBE:
            return client.unsubscribe(self.text, now)
        return client.create(self.text, now) if self.verb is Verb.CREATE else client.close(now)


@dataclass(slots=True)
class Site:
    """One broker and its clients; ``net`` is the address of the network they live in (its host number 0).

    From ``settled_ns`` on the run can be repeated at the same broker to make large captures (``tiling.py``): what the
    broker knows by the end changes nothing in the repeat. None: every repeat of the run needs a new broker.
    ``broker_at`` is a broker that is really there, for the live player. ``processing_ns`` is how long hosts take for an
    answer, ``gap_ns`` what lies between two things that one of them says.
    """

    dialect: Dialect
    form: str | None = None
    net: str = "10.0.0.0"
    broker_host: int = 1
    broker_port: int | None = None
    client_settings: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    settled_ns: int | None = None
    broker_at: Endpoint | None = None
    processing_ns: int = PROCESSING_NS
    gap_ns: int = GAP_NS

    @property
    def broker(self) -> Endpoint:
        if self.broker_at is not None:
            return self.broker_at
        ports = self.dialect.spec.ports.get("broker") or [self._any_port()]
        return self._address(self.broker_host), self.broker_port or ports[0]

    @property
    def hosts(self) -> list[str]:
        """The addresses of the broker and the clients."""
        return [self.broker[0], *(node.endpoint[0] for node in self.nodes)]

    def node(
        self,
        name: str,
        role: str | None = None,
        application: Application | None = None,
        *,
        host: int | None = None,
        port: int | None = None,
        **settings: Any,
    ) -> Node:
        """Add a node at the next free host, at the port of its role; ``settings`` are those of the client."""
        number = len(self.nodes)
        known_role = role if role in self.dialect.spec.ports else None
        at = self._address(FIRST_HOST + number if host is None else host)
        endpoint = at, port or self._port(known_role, number)
        names_port = self.dialect.spec.broker.subscriber_port is not None
        source = (at, ANY_PORT + number) if names_port else endpoint
        timing = Timing.of(self.dialect, backoff=1.0)  # as observed: again and again after the same time
        chosen: dict[str, Any] = {"role": known_role, "listen_port": endpoint[1], "timing": timing}
        chosen |= self.client_settings | settings
        if self.dialect.spec.broker.sessions == "mqtt-sn":
            chosen.setdefault("client_id", name.encode())
        client = client_for(self.dialect, self.broker, self.form, **chosen)
        made = Node(name, role or "client", endpoint, source, client, application)
        self.nodes.append(made)
        return made

    def at(
        self, seconds: float, node: Node, verb: Verb, text: bytes = b"", payload: bytes = b"", retain: bool = False
    ) -> None:
        """Add an action, so many seconds after the start."""
        self.actions.append(Action(int(seconds * SECOND), node, verb, text, payload, retain))

    def _port(self, role: str | None, number: int) -> int:
        ports = self.dialect.spec.ports.get(role or "client") or []
        return ports[number % len(ports)] if ports else ANY_PORT + number

    def _any_port(self) -> int:
        return min((port for ports in self.dialect.spec.ports.values() for port in ports), default=ANY_PORT - 1)

    def _address(self, host: int) -> str:
        """Host numbers continue in the next row: 10.0.0.209 is followed by 10.0.1.10."""
        row, last = divmod(host - FIRST_HOST, HOSTS_IN_A_ROW) if host >= FIRST_HOST else (0, host - FIRST_HOST)
        net = ip_address(self.net)
        try:
            return str(net + row * 256 + FIRST_HOST + last)
        except ValueError as error:
            raise UsageError(f"there are too many nodes for the network {self.net}") from error
