"""Which dialect does an endpoint speak? Learned from its first datagrams, with the evidence kept to be shown.

A dialect is believed at an endpoint (an address and a port) when what comes and goes there decodes: on one of the
dialect's own ports half of it will do, if that is not nearly all ACKs; elsewhere nearly all must, and it must say
enough. How much a datagram says is counted in bits: a one-byte ACK says 8, a magic number or a length that agrees says
more. Two dialects may share a port; the one that explains more bits wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from math import log2
from typing import Protocol

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect, Layout, Step, builtin_names, load_dialect
from pcap_tools.dialect.program import Counts, Extent, Kind, Value
from pcap_tools.errors import UsageError

MAX_ENDPOINTS = 65_536
ENOUGH_BITS = 24  # away from the dialect's ports; three one-byte ACKs of different types would reach it
TELLING_OF = 4  # one in so many must be no ACK: an ACK says least, and other protocols have bytes like it
MATCHED_SIZE_BITS = 16
WRONG_SIZE_BITS = -12
WELL_KNOWN_PORTS = frozenset({53, 67, 68, 69, 123, 137, 138, 161, 162, 443, 500, 514, 1900, 5353, 5355})

Endpoint = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Dialects:
    """Those to look for. ``named``: the user named them, so their own ports are believed without proof. ``ports``: more
    ports, each with the name of its dialect. Equal for equal content.
    """

    wanted: tuple[Dialect, ...]
    named: bool
    ports: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, dialects: Sequence[Dialect] | None, ports: Mapping[int, str] | None = None) -> Dialects:
        """Those that the user named; None for all that are built in."""
        wanted = dialects or [load_dialect(name) for name in builtin_names()]
        return cls(_once(wanted), dialects is not None, tuple((ports or {}).items()))

    def detector(self) -> Detector:
        """One that has learned nothing yet."""
        return Detector(self.wanted, self.named, dict(self.ports))

    def spoken(self, routes: Routes) -> tuple[Dialect, ...]:
        """Those that the routes lead to: tables of all the others would take as long to make as 100,000 packets."""
        names = {name for _, name in routes.endpoints.values()}.union(routes.ports.values())
        return tuple(dialect for dialect in self.wanted if dialect.name in names) or self.wanted[:1]

    @property
    def key(self) -> tuple[object, ...]:
        """Tells dialects of other content apart, also in another process."""
        return (self.named, *(repr(dialect) for dialect in self.wanted), *self.ports)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dialects) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    @cached_property
    def _digest(self) -> bytes:
        """The key takes milliseconds to make."""
        return sha256(repr(self.key).encode(errors="surrogateescape")).digest()


def wanted_dialects(names: Sequence[str] | None = None, ports: Sequence[int] = ()) -> Dialects:
    """Names or TOML files, none for all that are built in; and more ports of the one dialect that is named."""
    dialects = tuple(load_dialect(name) for name in names or builtin_names())
    if ports and (not names or len(dialects) != 1):
        raise UsageError("a port goes with one dialect: --dialect colon --port 1234")
    if ports:
        spec = dialects[0].spec
        more = spec.model_copy(update={"ports": {**spec.ports, "more": tuple(ports)}})
        dialects = (replace(dialects[0], spec=more),)
    return Dialects(_once(dialects), bool(names))


def _once(dialects: Iterable[Dialect]) -> tuple[Dialect, ...]:
    """Each name once: the last of it."""
    return tuple({dialect.name: dialect for dialect in dialects}.values())


class Addressed(Protocol):
    """What detection looks at of a datagram."""

    @property
    def src(self) -> str: ...
    @property
    def sport(self) -> int: ...
    @property
    def dst(self) -> str: ...
    @property
    def dport(self) -> int: ...
    @property
    def payload(self) -> bytes: ...


@dataclass(slots=True)
class Tally:
    """What one dialect makes of the datagrams at one endpoint."""

    seen: int = 0
    decoded: int = 0
    bits: float = 0.0
    distinct_bits: float = 0.0
    telling: int = 0  # those decoded that are no ACKs


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a dialect is believed at an endpoint."""

    endpoint: Endpoint
    dialect: str
    decoded: int
    seen: int
    own_port: bool

    def __str__(self) -> str:
        address, port = self.endpoint
        where = "one of its ports" if self.own_port else "not one of its ports"
        return f"{self.dialect} at {address} port {port} ({where}): {self.decoded} of {self.seen} datagrams decode"


@dataclass(frozen=True, slots=True)
class Routes:
    """What a detector has settled, to be taken to another process: small, and plain data."""

    endpoints: dict[Endpoint, tuple[float, str]]  # the dialect of an endpoint, with the bits that speak for it
    ports: dict[int, str]  # the dialect of a port at any other address
    own_ports: dict[str, frozenset[int]]  # by dialect


class Detector:
    """Learns from datagrams, then says which dialect a datagram is in.

    With ``named`` the user has said which dialect it is: its own ports are believed without proof. ``ports`` are
    more ports of a dialect, by its name.
    """

    def __init__(self, dialects: Iterable[Dialect], named: bool = False, ports: dict[int, str] | None = None) -> None:
        self.codecs = {dialect.name: Codec(dialect) for dialect in dialects}
        self.named = named
        self._own_ports = {name: set(codec.dialect.ports) for name, codec in self.codecs.items()}
        for port, name in (ports or {}).items():
            self._own_ports[name].add(port)
        self.tallies: dict[Endpoint, dict[str, Tally]] = {}
        self.counted: set[tuple[Endpoint, str, int]] = set()
        self._known: dict[Endpoint, tuple[float, str]] = {}
        self._ports: dict[int, str] = {}

    def learn(self, datagram: Addressed) -> None:
        """Take one datagram as evidence. Copies that the capture made should be left out."""
        endpoints = ((datagram.src, datagram.sport), (datagram.dst, datagram.dport))
        for name, codec in self.codecs.items():
            message = codec.decode_if_valid(datagram.payload)
            bits = bits_said(codec.dialect, message) if message else 0.0
            for endpoint in endpoints:
                self._count(endpoint, name, message, bits)

    def _count(self, endpoint: Endpoint, name: str, message: Message | None, bits: float) -> None:
        by_dialect = self.tallies.get(endpoint)
        if by_dialect is None:
            if len(self.tallies) >= MAX_ENDPOINTS:
                return
            by_dialect = self.tallies[endpoint] = {}
        tally = by_dialect.setdefault(name, Tally())
        tally.seen += 1
        if message is None or bits <= 0:
            return
        tally.decoded += 1
        tally.bits += bits
        key = (endpoint, name, id(message.layout))
        if key not in self.counted:
            self.counted.add(key)
            tally.distinct_bits += bits
        tally.telling += message.meaning != "ack"

    def decide(self) -> list[Evidence]:
        """Settle which endpoint speaks what, by all that was learned so far; returns the evidence, strongest first."""
        self._known.clear()
        self._ports.clear()
        believed: list[tuple[float, Evidence]] = []
        for endpoint, by_dialect in self.tallies.items():
            likely = [(tally.bits, name) for name, tally in by_dialect.items() if self._believes(endpoint, name, tally)]
            if not likely:
                continue
            bits, name = max(likely)
            self._known[endpoint] = bits, name
            tally, own = by_dialect[name], endpoint[1] in self._own_ports[name]
            believed.append((bits, Evidence(endpoint, name, tally.decoded, tally.seen, own)))
        believed.sort(key=lambda pair: (-pair[0], pair[1].endpoint))
        for _, evidence in believed:
            self._ports.setdefault(evidence.endpoint[1], evidence.dialect)
        return [evidence for _, evidence in believed]

    def _believes(self, endpoint: Endpoint, name: str, tally: Tally) -> bool:
        port = endpoint[1]
        if port in self._own_ports[name]:
            is_sure = tally.telling * TELLING_OF >= tally.decoded
            return self.named or (is_sure and tally.decoded * 2 >= tally.seen)
        if port in WELL_KNOWN_PORTS:
            return False
        convincing = tally.distinct_bits >= ENOUGH_BITS and tally.telling > 0
        return convincing and tally.decoded * 10 >= tally.seen * 9

    def routes(self) -> Routes:
        """What ``codec_for`` goes by."""
        own = {name: frozenset(ports) for name, ports in self._own_ports.items()}
        return Routes(dict(self._known), dict(self._ports), own)

    def codec_for(self, datagram: Addressed) -> Codec | None:
        """The codec for a datagram, or None if it is in no dialect known here."""
        ports = (datagram.sport, datagram.dport)
        known = [
            self._known[endpoint]
            for endpoint in ((datagram.src, datagram.sport), (datagram.dst, datagram.dport))
            if endpoint in self._known
        ]
        name = max(known)[1] if known else self._ports.get(ports[1]) or self._ports.get(ports[0])
        if name is None or not self._may_be(name, ports):
            return None
        return self.codecs[name]

    def _may_be(self, name: str, ports: tuple[int, int]) -> bool:
        """An ephemeral port may equal one of a dialect's: a DNS answer to port 50003 is still DNS."""
        own = self._own_ports[name]
        return all(port not in WELL_KNOWN_PORTS or port in own for port in ports)


def bits_said(dialect: Dialect, message: Message) -> float:
    """How many bits of a valid datagram agree with the dialect; a size that is not the usual one takes some away."""
    if message.layout is None:
        return 0.0
    form = dialect.form(message.form)
    bits = layout_bits(message.layout)
    if form and form.pad_to:
        bits += MATCHED_SIZE_BITS if message.length == form.pad_to else WRONG_SIZE_BITS
    return bits


@cache
def layout_bits(layout: Layout) -> float:
    """How many bits a datagram must get right to be read by this layout."""
    return sum(step_bits(step) for step in layout.steps)


def step_bits(step: Step) -> float:
    """How many bits one step checks."""
    bits = 0.0
    if step.kind is Kind.MAGIC:
        bits += 8 * len(step.literal)
    elif step.kind is Kind.DIGITS:
        bits += step.size * log2(256 / 10)
    choices = step.guard or step.allowed
    if choices:
        bits += _width(step, choices) - log2(len(choices))
    if step.counts is not Counts.NOTHING:
        bits += 8
    if step.extent is Extent.UNTIL and not step.or_end:
        bits += 4
    if step.extent is Extent.PREFIX:
        bits += 6
    return bits


def _width(step: Step, choices: tuple[Value, ...]) -> float:
    """How many bits the choices are chosen from."""
    if step.kind is Kind.BITS:
        return step.bits
    if step.kind is Kind.DIGITS:
        return step.size * log2(10)
    if step.kind in (Kind.TEXT, Kind.BYTES):
        return 8.0 * min(len(choice) for choice in choices if isinstance(choice, bytes))
    return 8 * step.size if step.extent is Extent.FIXED else 8
