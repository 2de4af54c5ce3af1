"""The client side of a scenario against a broker that is really there, any implementation, with the clients' faults.

Each node has a socket of its own. What goes out and what comes back is recorded; the truth tells what the clients did
and what they were answered. Against a broker on loopback every node has an address of its own (127.0.20.x), as in
the scenario; elsewhere nodes differ by their port.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from types import TracebackType
from typing import Any, NamedTuple, Self

from generators.capture.options import CaptureOptions, Point
from generators.generate import GeneratorOptions, injectors_for, prepare
from generators.simulation.activation import Outgoing, Purpose, Sent
from generators.simulation.fault import CATALOGUE, FaultInjector, Place
from generators.simulation.network import Transit
from generators.simulation.parties import Parties
from generators.simulation.random_source import RandomSource
from generators.simulation.run import Delivery, Run
from generators.simulation.site import Action, Node, Site
from generators.truth import truth
from pcap_tools.errors import TopicsharkError
from reference_broker import Endpoint, Send
from reference_broker.client.requests import Event, EventKind
from reference_broker.messages.sending import SECOND
from reference_broker.server.recorder import Recorder

MAX_DATAGRAM = 65_535
SO_TIMESTAMPNS = 35  # Linux; Python has no name for it
_STAMP = struct.Struct("@ll")
_STAMP_SPACE = socket.CMSG_SPACE(_STAMP.size)
QUIET_NS = SECOND  # so long after the last action nothing more is expected


@dataclass(slots=True)
class Recorded:
    """The capture of a live run, as far as the truth asks: which frame a datagram is."""

    options: CaptureOptions = field(default_factory=lambda: CaptureOptions(point=Point.CLIENT, host="live"))
    frames: list[Transit] = field(default_factory=list)
    copies: dict[int, int] = field(default_factory=dict)
    doubles: dict[int, int] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    noise: int = 0

    def frame_of(self, transit: int) -> int | None:
        return self.numbers.get(transit)


class LivePlay:
    """Plays one site in real time, its actions ``pace`` times slower than the scenario says."""

    def __init__(
        self,
        site: Site,
        recorder: Recorder,
        faults: Iterable[FaultInjector] = (),
        seed: int = 1,
        pace: float = 1.0,
        timeout_s: float = 600.0,
        progress: Callable[[int], None] = lambda sent: None,
    ) -> None:
        self.run_so_far = Run([site])
        self.faults = list(faults)
        self.fault_rng = RandomSource(f"{seed} faults")
        self._clock_offset = time.time_ns() - time.monotonic_ns()
        self.start_ns = self._now()
        self.recorded = Recorded()
        self._recorder, self._progress = recorder, progress
        site.actions = [_at_pace(action, pace) for action in site.actions]
        self.last_action_ns = self.start_ns + max((action.time_ns for action in site.actions), default=0)
        self._give_up_ns = self.start_ns + int(timeout_s * SECOND)
        self._queue: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = 0
        self._sockets: dict[Endpoint, socket.socket] = {}
        self._came: list[Came] = []
        self._selector = selectors.DefaultSelector()
        self._site = site
        for node in site.nodes:
            self._open(node)
        self._parties = _LiveParties(self, site, ())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for one in self._sockets.values():
            one.close()

    def run(self) -> Run:
        """Until everything asked for is answered or given up, or the time is up."""
        while not self._is_over():
            wait_ns = min(self._queue[0][0] if self._queue else self._now() + QUIET_NS, self._give_up_ns) - self._now()
            self._selector.select(max(0, wait_ns) / SECOND)
            self._receive()
            while self._queue and self._queue[0][0] <= self._now():
                due_ns, _, happens = heapq.heappop(self._queue)
                happens(due_ns)
        self._recorder.close()
        return self.run_so_far

    def _is_over(self) -> bool:
        now = self._now()
        idle = all(node.client.is_idle for node in self._site.nodes)
        return now >= self._give_up_ns or (idle and now > self.last_action_ns + QUIET_NS)

    def _now(self) -> int:
        """Time that does not jump, counted from the epoch."""
        return time.monotonic_ns() + self._clock_offset

    # -- ``parties.Environment`` ------------------------------------------------------------------------------------

    def later(self, time_ns: int, happens: Callable[[int], None]) -> None:
        heapq.heappush(self._queue, (time_ns, self._order, happens))
        self._order += 1

    def leaves(self, host: str, now: int) -> int:
        return now

    def carry(self, transit: Transit, now: int) -> tuple[int, ...]:
        """Outgoing of the socket; where it gets to, only answers can tell."""
        self._record(transit, self._now())  # before it goes, since the answer may be there before we are back
        with contextlib.suppress(OSError):  # what the system will not take is as lost as any datagram can be
            self._sockets[transit.src].sendto(transit.datagram, transit.dst)
        return (now,) if transit.dst == self._site.broker else ()

    def ephemeral_port(self) -> int:
        return 0

    def note_sent(self, sent: Sent) -> None:
        self.run_so_far.sent.append(sent)
        self._progress(len(self.run_so_far.sent))

    # -- sockets ----------------------------------------------------------------------------------------------------

    def _open(self, node: Node) -> None:
        listening = self._bound(node.endpoint)
        node.endpoint = _place_of(listening)
        if node.client.dialect.spec.broker.subscriber_port is None:
            node.source = node.endpoint
            return
        node.client.listen_port = node.endpoint[1]
        node.source = _place_of(self._bound((node.endpoint[0], 0)))

    def _bound(self, wanted: Endpoint) -> socket.socket:
        broker = self._site.broker
        one = socket.socket(socket.AF_INET6 if ":" in broker[0] else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            one.setblocking(False)
            with contextlib.suppress(OSError):  # where there are no stamps, our own clock must do
                one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            # The system chooses the address towards a broker elsewhere, and replies must come to that address.
            if not ip_address(broker[0]).is_loopback or ":" in broker[0]:
                wanted = _address_towards(broker), 0
            self._bind(one, wanted)
        except OSError as error:
            one.close()
            raise TopicsharkError(f"cannot listen at {wanted[0]} port {wanted[1]}: {error.strerror}") from error
        self._sockets[_place_of(one)] = one
        self._selector.register(one, selectors.EVENT_READ, one)
        return one

    @staticmethod
    def _bind(one: socket.socket, wanted: Endpoint) -> None:
        """At the port of the node's role; if somebody has it, at any: brokers answer to where a request came from."""
        try:
            one.bind(wanted)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            one.bind((wanted[0], 0))

    def _receive(self) -> None:
        """All that came, in the order in which the system took it in: a broker's order is judged by it.

        What came while we were looking has to wait: before it something may have come to a socket looked at already.
        """
        seen_until = time.time_ns()
        for one in self._sockets.values():
            self._came += waiting_at(one)
        self._came.sort(key=lambda came: came.time_ns)
        while self._came and self._came[0].time_ns <= seen_until:
            came = self._came.pop(0)
            now = self._now() - max(0, time.time_ns() - came.time_ns)
            sent = self._parties.came(came.datagram, came.source, came.to, now)
            self._record(sent.transit, now)
            self._parties.take_in(sent, self._now())

    def _record(self, transit: Transit, time_ns: int) -> None:
        self._recorder.record(time_ns, transit.src, transit.dst, transit.datagram)
        self.recorded.frames.append(transit)
        self.recorded.numbers[transit.number] = self._recorder.frames


class Came(NamedTuple):
    """A datagram, and when the system took it in."""

    time_ns: int
    datagram: bytes
    source: Endpoint
    to: Endpoint


def waiting_at(one: socket.socket) -> Iterator[Came]:
    """All that a socket holds."""
    while True:
        try:
            datagram, stamps, _, source = one.recvmsg(MAX_DATAGRAM, _STAMP_SPACE)
        except BlockingIOError:
            return
        except OSError:  # an ICMP error of something sent before
            continue
        time_ns = time.time_ns()
        for level, kind, data in stamps:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = _STAMP.unpack(data[: _STAMP.size])
                time_ns = seconds * SECOND + nanoseconds
        yield Came(time_ns, datagram, (str(source[0]), int(source[1])), _place_of(one))


class _LiveParties(Parties):
    """A parties without a broker of its own: what the broker did is known only by what comes."""

    def came(self, datagram: bytes, source: Endpoint, to: Endpoint, now: int) -> Sent:
        """A datagram from the broker, or from whoever sent it."""
        out = Outgoing(datagram, to, Purpose.OTHER, self.codec.decode(datagram))
        transit = Transit(len(self.run.sent), self.site.dialect.name, source, to, datagram, now, (now,))
        sent = out.sent = Sent(self.site, None, out, transit, None)
        self.world.note_sent(sent)
        return sent

    def take_in(self, came: Sent, now: int) -> None:
        node = self._by_endpoint.get(came.transit.dst)
        if node is not None:
            self._at_node(node, came, now)

    def _client_activation(
        self, node: Node, came: Sent | None, sends: list[Send], events: list[Event], now: int
    ) -> None:
        for event in events if came is not None else ():
            current = self._current.get(id(node))
            if event.kind in (EventKind.ACKNOWLEDGED, EventKind.REFUSED) and current is not None and came is not None:
                came.out.purpose = Purpose.ACK
                self._exchanges[current.transit.number].acks.append(came.out)
            elif event.kind is EventKind.RECEIVED and came is not None:
                came.out.purpose = Purpose.FORWARD
                publish = self._said.get(came.message.payload or b"")
                self.run.deliveries.append(Delivery(publish, node.endpoint, came.out))
        super()._client_activation(node, came, sends, events, now)

    def _at_broker(self, came: Sent, now: int) -> None:
        """It has left; the broker is somebody else's. Publishes are remembered, to know them when they come back."""
        if came.message.meaning == "publish":
            self._said[came.message.payload or b""] = came

    def _tick_broker(self, now: int) -> None:
        pass


def play(
    options: GeneratorOptions,
    output: str,
    rate: float,
    say: Callable[[str], None],
    progress: Callable[[int], None] = lambda sent: None,
    timeout_s: float = 600.0,
) -> dict[str, Any]:
    """Play a scenario's clients to the broker at ``options.broker_at``, about ``rate`` requests a second; record it in
    ``output``. Returns the truth."""
    script = prepare(options)
    site = script.sites[0]
    injectors = injectors_for(_of_the_clients(script.faults, say), [site.dialect])
    lasts_s = max((action.time_ns for action in site.actions), default=0) / SECOND or 1.0
    pace = len(site.actions) / rate / lasts_s
    recorder = Recorder(output, say)
    with LivePlay(site, recorder, injectors, options.seed, pace, timeout_s, progress) as live:
        run = live.run()
        return truth(run, live.recorded, injectors, {"scenario": options.scenario, "seed": options.seed, "live": True})


def _of_the_clients(wanted: Mapping[str, float], say: Callable[[str], None]) -> dict[str, float]:
    """The faults that can be done here; broker, network and capture are not ours."""
    kept: dict[str, float] = {}
    for name, rate in wanted.items():
        if name in CATALOGUE and CATALOGUE[name].place not in (Place.CLIENT, Place.APPLICATION):
            say(f"the fault {name} is the {CATALOGUE[name].place}'s, which is not ours here: left out")
        else:
            kept[name] = rate
    return kept


def _at_pace(action: Action, pace: float) -> Action:
    return replace(action, time_ns=int(action.time_ns * pace))


def _place_of(one: socket.socket) -> Endpoint:
    host, port = one.getsockname()[:2]
    return str(host), int(port)


def _address_towards(broker: Endpoint) -> str:
    """The own address from which this machine reaches the broker; nothing is sent to find it out."""
    family = socket.AF_INET6 if ":" in broker[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(broker)
        return str(probe.getsockname()[0])
