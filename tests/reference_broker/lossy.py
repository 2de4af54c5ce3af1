"""A proxy on loopback that loses, doubles and delays datagrams, and the loop that drives all sockets around it.

The sockets are real. The clock may be: then time passes as it does. Or it stands still while anything is on its way
and then jumps to what is due next, which makes a run repeatable to the byte and quick whatever the timers are.
"""

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from reference_broker import Broker, Endpoint
from reference_broker.client.core import Client
from reference_broker.client.requests import Event, EventKind
from reference_broker.messages.sending import SECOND, Send
from tests.waiting import PATIENCE_S

RATE = 0.2
HOLD_NS = SECOND // 50
LONGEST_JUMP_NS = SECOND // 2


def loopback_socket() -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    one.bind(("127.0.0.1", 0))
    return one


def address(of: socket.socket) -> Endpoint:
    host, port = of.getsockname()
    return str(host), int(port)


@dataclass
class Held:
    due_ns: int
    by: socket.socket
    to: Endpoint
    datagram: bytes


class Proxy:
    """Stands between one client and the broker; each way each datagram may be lost, doubled, held back."""

    def __init__(self, broker: Endpoint, random: Random, send: Callable[[socket.socket, Send], None]) -> None:
        self._send = send
        self.front, self.back = loopback_socket(), loopback_socket()
        self._broker, self._random = broker, random
        self._client: Endpoint | None = None
        self.held: list[Held] = []
        self.lost = self.doubled = self.delayed = 0

    def take(self, at: socket.socket, datagram: bytes, source: Endpoint, now: int) -> None:
        if at is self.front:
            self._client = source
        by, to = (self.back, self._broker) if at is self.front else (self.front, self._client)
        if to is None or self._chance("lost"):
            return
        for _ in range(2 if self._chance("doubled") else 1):
            if self._chance("delayed"):
                self.held.append(Held(now + HOLD_NS, by, to, datagram))
            else:
                self._send(by, Send(datagram, to))

    def release(self, now: int) -> None:
        due = [held for held in self.held if held.due_ns <= now]
        self.held = [held for held in self.held if held.due_ns > now]
        for held in due:
            self._send(held.by, Send(held.datagram, held.to))

    def _chance(self, what: str) -> bool:
        happens = self._random.random() < RATE
        setattr(self, what, getattr(self, what) + happens)
        return happens


@dataclass
class Party:
    """A client at its socket, and what it told."""

    client: Client
    at: socket.socket = field(default_factory=loopback_socket)
    events: list[Event] = field(default_factory=list)

    def received(self) -> list[bytes]:
        return [event.message.payload or b"" for event in self.events if event.kind is EventKind.RECEIVED]

    def acknowledged(self) -> list[bytes | None]:
        """The payloads of publishes that were."""
        return [
            event.message.payload
            for event in self.events
            if event.kind is EventKind.ACKNOWLEDGED and event.message.meaning == "publish"
        ]


class Loop:
    """Drives parties, proxies and, unless it is a process of its own, the broker."""

    def __init__(self, broker: Broker | None, broker_socket: socket.socket | None = None, real_time: bool = False):
        self._broker, self._broker_socket, self._real_time = broker, broker_socket, real_time
        self.parties: list[Party] = []
        self.proxies: list[Proxy] = []
        self.now = time.monotonic_ns() if real_time else 0
        self._on_their_way = 0

    def close(self) -> None:
        for one in self._sockets():
            one.close()

    def send(self, by: socket.socket, send: Send) -> None:
        by.sendto(send.datagram, send.to)
        self._on_their_way += not self._real_time

    def proxy(self, broker: Endpoint, random: Random) -> Proxy:
        self.proxies.append(Proxy(broker, random, self.send))
        return self.proxies[-1]

    def _sockets(self) -> list[socket.socket]:
        found = [party.at for party in self.parties]
        found += [one for proxy in self.proxies for one in (proxy.front, proxy.back)]
        return found + ([self._broker_socket] if self._broker_socket else [])

    def run(self, seconds: float) -> bool:
        """Until no client has anything on its way; false if that takes longer than this."""
        end = self.now + int(seconds * SECOND)
        while self.now < end:
            self.drain()
            self.tick()
            if not any(proxy.held for proxy in self.proxies) and all(party.client.is_idle for party in self.parties):
                self.drain()
                return True
            self.pass_time()
        return False

    def drain(self, wait: float = 0.0) -> None:
        """Hand over everything on its way, and what it leads to. The kernel may take its time, so where all who take
        part are in this loop it is counted."""
        while ready := select.select(self._sockets(), [], [], PATIENCE_S if self._on_their_way else wait)[0]:
            wait = 0.0
            for one in ready:
                datagram, sender = one.recvfrom(65_535)
                self._on_their_way -= not self._real_time
                self._hand(one, datagram, (str(sender[0]), int(sender[1])))
            self._release()

    def _hand(self, at: socket.socket, datagram: bytes, source: Endpoint) -> None:
        if self._broker is not None and at is self._broker_socket:
            for send in self._broker.handle(datagram, source, self.now):
                self.send(at, send)
            return
        for party in self.parties:
            if party.at is at:
                sends, events = party.client.handle(datagram, source, self.now)
                party.events += events
                for send in sends:
                    self.send(at, send)
                return
        for proxy in self.proxies:
            if at in (proxy.front, proxy.back):
                proxy.take(at, datagram, source, self.now)

    def _release(self) -> None:
        for proxy in self.proxies:
            proxy.release(self.now)

    def tick(self) -> None:
        for party in self.parties:
            sends, events = party.client.tick(self.now)
            party.events += events
            for send in sends:
                self.send(party.at, send)
        if self._broker is not None and self._broker_socket is not None:
            for send in self._broker.tick(self.now):
                self.send(self._broker_socket, send)

    def pass_time(self) -> None:
        self.drain()
        dues = [due for party in self.parties if (due := party.client.next_due()) is not None]
        dues += [held.due_ns for proxy in self.proxies for held in proxy.held]
        due = min([*dues, self.now + LONGEST_JUMP_NS])
        if self._real_time:
            self.drain(max(0.0, (due - time.monotonic_ns()) / SECOND))
            self.now = time.monotonic_ns()
        else:
            self.now = max(self.now, due)
        self._release()
