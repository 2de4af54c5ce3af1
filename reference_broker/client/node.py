"""The socket around a client: one thread, `select`, monotonic timers. Listens to a keyboard too where one is given."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pcap_tools.errors import TopicsharkError
from reference_broker.client.core import Client
from reference_broker.client.requests import Event, Outcome
from reference_broker.messages.sending import SECOND, Endpoint, Send

MAX_DATAGRAM = 65_535
READ_BYTES = 65_536


class Keyboard:
    """Whole lines out of a file descriptor, as they come; ``None`` at its end."""

    def __init__(self, descriptor: int, on_line: Callable[[bytes | None], None]) -> None:
        self.descriptor, self._on_line = descriptor, on_line
        self._rest = b""
        self.is_open = True

    def read(self) -> None:
        data = os.read(self.descriptor, READ_BYTES)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data:
            self.is_open = False
            lines, self._rest = [self._rest] if self._rest else [], b""
        for line in lines:
            self._on_line(line.rstrip(b"\r"))
        if not data:
            self._on_line(None)


class Node:
    """A client on the network.

    Where requests name the port at which their sender listens (``portdigits``), those of a subscriber leave from a
    port of their own, as in the running system; else one socket does both.
    """

    def __init__(
        self,
        client: Client,
        bind: Endpoint,
        on_event: Callable[[Event], None] = lambda event: None,
        is_subscriber: bool = True,
    ) -> None:
        self.client, self._on_event = client, on_event
        self._listening = _bound(client.broker, bind)
        self._sending = self._listening
        if is_subscriber and client.dialect.spec.broker.subscriber_port is not None:
            self._sending = _bound(client.broker, (bind[0], 0))

    @property
    def address(self) -> Endpoint:
        """Where this node listens."""
        host, port = self._listening.getsockname()[:2]
        return str(host), int(port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self._sending.close()

    @staticmethod
    def now() -> int:
        return time.monotonic_ns()

    def send(self, sends: list[Send]) -> None:
        """Send; what the system will not take (a full buffer, no route) is as lost as any datagram can be."""
        for send in sends:
            with contextlib.suppress(OSError):
                self._sending.sendto(send.datagram, send.to)

    def run(self, until: Callable[[], bool], timeout_s: float | None = None, keyboard: Keyboard | None = None) -> bool:
        """Serve until ``until()`` holds; false if the time was up before."""
        deadline = None if timeout_s is None else self.now() + int(timeout_s * SECOND)
        while not until():
            if deadline is not None and self.now() >= deadline:
                return False
            self._step(deadline, keyboard)
        return True

    def settle(self) -> None:
        """Go on until everything asked for is acknowledged or given up; both have limits."""
        self.run(lambda: self.client.is_idle and not self.client.awaits_status)

    def _step(self, deadline: int | None, keyboard: Keyboard | None) -> None:
        waits = [due for due in (deadline, self.client.next_due()) if due is not None]
        seconds = max(0.0, (min(waits) - self.now()) / SECOND) if waits else None
        sources: list[socket.socket | int] = list({self._listening, self._sending})
        if keyboard is not None and keyboard.is_open:
            sources.append(keyboard.descriptor)
        ready, _, _ = select.select(sources, [], [], seconds)
        for source in ready:
            if isinstance(source, socket.socket):
                self._take(source)
            elif keyboard is not None:
                keyboard.read()
        self._apply(self.client.tick(self.now()))

    def _take(self, source: socket.socket) -> None:
        try:
            datagram, sender = source.recvfrom(MAX_DATAGRAM)
        except OSError:  # an ICMP error of something sent before
            return
        self._apply(self.client.handle(datagram, (str(sender[0]), int(sender[1])), self.now()))

    def _apply(self, outcome: Outcome) -> None:
        sends, events = outcome
        self.send(sends)
        for event in events:
            self._on_event(event)


def _bound(broker: Endpoint, bind: Endpoint) -> socket.socket:
    """A socket at this address, of the broker's family."""
    family = socket.AF_INET6 if ":" in broker[0] else socket.AF_INET
    one = socket.socket(family, socket.SOCK_DGRAM)
    try:
        one.setblocking(False)
        one.bind(bind)
    except OSError as error:
        one.close()
        raise TopicsharkError(f"cannot listen at {bind[0]} port {bind[1]}: {error.strerror}") from error
    return one
