"""The UDP server around a broker: sockets, clocks and signals, so that the broker itself needs none.

Datagrams are taken from the socket many at a time. Nothing that the network sends stops it: an error of the socket or
of the broker itself is counted and the next datagram handled.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path

from pcap_tools.errors import UsageError
from reference_broker.broker.core import Broker
from reference_broker.messages.sending import Endpoint, Send
from reference_broker.server.journal import JournalError
from reference_broker.server.message_log import MessageLog
from reference_broker.server.recorder import Recorder
from reference_broker.server.state import State

MAX_DATAGRAM = 65_535
BATCH = 256
TICK_MS = 100
RECEIVE_BUFFER = 8 << 20
SO_RCVBUFFORCE = 33  # of Linux; the socket module does not know it
SEND_TIMEOUT_US = 100_000
MAX_TRACEBACKS = 3
_STOP, _REPORT = b"s", b"r"


class Server:
    """Serves one broker on one address until ``stop``. ``port`` 0 lets the system choose; see ``address``.

    >>> server = Server(broker, "127.0.0.1", 50000, say=print)      # doctest: +SKIP
    >>> server.state = State("broker.state", broker, say=print)     # doctest: +SKIP
    >>> server.handle_signals(); server.serve()                     # doctest: +SKIP

    ``state``, ``recorder`` and ``log`` are set before ``serve``, which closes them at its end.
    """

    def __init__(
        self, broker: Broker, host: str = "127.0.0.1", port: int = 0, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self.broker = broker
        self.state: State | None = None
        self.recorder: Recorder | None = None
        self.log: MessageLog | None = None
        self._say = say
        self._socket = _bound(host, port)
        self.address: Endpoint = self._socket.getsockname()[:2]
        self._ephemeral = _bound(self.address[0], 0)
        self._ephemeral_address: Endpoint = self._ephemeral.getsockname()[:2]
        self._is_everywhere = ip_address(self.address[0].partition("%")[0]).is_unspecified
        self._wake_end, self._wake = socket.socketpair()
        self._stopping = False
        self._tracebacks = 0
        self._clock_offset = time.time_ns() - time.monotonic_ns()
        self._started = time.monotonic()

    # -- from other threads and signal handlers -----------------------------------------------------------------

    def stop(self) -> None:
        """End ``serve`` soon."""
        self._wake_with(_STOP)

    def report(self) -> None:
        """Say the counters soon."""
        self._wake_with(_REPORT)

    def _wake_with(self, order: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended already, or has a thousand orders waiting
            self._wake.send(order, socket.MSG_DONTWAIT)

    def handle_signals(self) -> None:
        """SIGTERM and SIGINT stop the server, SIGUSR1 has it say its counters."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        signal.signal(signal.SIGUSR1, lambda *_: self.report())

    # -- the loop -----------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Serve until stopped, then say the counters and close everything."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(self._wake_end, select.POLLIN)
        next_tick = 0
        try:
            while not self._stopping:
                for fd, _ in poll.poll(TICK_MS):
                    if fd == self._wake_end.fileno():
                        self._woken()
                self._drain()
                now = self._now()
                if now >= next_tick:
                    self._tick(now)
                    next_tick = now + TICK_MS * 1_000_000
        finally:
            self._close()

    def _now(self) -> int:
        """Nanoseconds since the epoch that never jump, whatever is done to the machine's clock meanwhile."""
        return time.monotonic_ns() + self._clock_offset

    def _woken(self) -> None:
        orders = self._wake_end.recv(64)
        self._stopping = _STOP in orders
        if _REPORT in orders:
            self._say(self.counters())

    def _drain(self) -> None:
        """Handle what has arrived, at most one batch, and then send: all that the batch calls for in one go, so that a
        receiver is woken once and not for each datagram, and what promises a change waits for one commit."""
        receive, state = self._socket.recvfrom, self.state
        held: list[tuple[bool, list[Send]]] = []
        for _ in range(BATCH):
            try:
                datagram, source = receive(MAX_DATAGRAM, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError as error:  # what an earlier send met
                self._count("receive failed", error)
                continue
            changes = state.changes if state else 0
            sends = self._handle(datagram, source[:2])
            held.append((state is not None and state.changes != changes, sends))
        if held:
            self._settle(held)
        if self.log:
            self.log.flush()

    def _handle(self, datagram: bytes, source: Endpoint) -> list[Send]:
        if self.recorder:
            self.recorder.record(time.time_ns(), source, self._local(source[0], self.address), datagram)
        try:
            sends = self.broker.handle(datagram, source, self._now())
        except JournalError:
            self.broker.counters["refused: cannot be kept"] += 1
            sends = []
        except Exception as error:
            self._bug(error, datagram)
            sends = []
        if self.log:
            self.log.note(time.time_ns(), datagram, source, sends)
        return sends

    def _bug(self, error: Exception, datagram: bytes) -> None:
        """Nothing a stranger sends may stop the broker; whoever mends it needs the bytes."""
        self.broker.counters[f"bug: {type(error).__name__}"] += 1
        if self._tracebacks < MAX_TRACEBACKS:
            self._tracebacks += 1
            self._say("".join(traceback.format_exception(error)) + f"while handling {datagram[:2000].hex()}")

    def _settle(self, held: list[tuple[bool, list[Send]]]) -> None:
        """Send what waited; if the state could not be made safe, not what promises a change."""
        is_safe = True
        try:
            if self.state:
                self.state.commit()
        except JournalError:
            is_safe = False
        for has_changed, sends in held:
            if is_safe or not has_changed:
                self._send(sends)
            else:
                self.broker.counters["refused: cannot be kept"] += 1

    def _send(self, sends: list[Send]) -> None:
        for datagram, to, ephemeral in sends:
            leaving = self._ephemeral if ephemeral else self._socket
            if to[1] == self.address[1] and self._is_own(to[0]):
                self.broker.counters["refused: to itself"] += 1  # a subscription of its own port: a loop without end
                continue
            try:
                leaving.sendto(datagram, to)
            except OSError as error:
                self._count("send failed", error)
                continue
            if self.recorder:
                local = self._local(to[0], self._ephemeral_address if ephemeral else self.address)
                self.recorder.record(time.time_ns(), local, to, datagram)

    def _tick(self, now: int) -> None:
        try:
            self._settle([(True, self.broker.tick(now))])
        except JournalError:
            self.broker.counters["refused: cannot be kept"] += 1
        except Exception as error:
            self._bug(error, b"")
        if self.state:
            self.state.tick(now)
        if self.recorder:
            self.recorder.flush()

    # -- parts --------------------------------------------------------------------------------------------------

    def _count(self, what: str, error: OSError) -> None:
        self.broker.counters[f"{what}: {errno.errorcode.get(error.errno or 0, type(error).__name__)}"] += 1

    def _local(self, remote: str, bound: Endpoint) -> Endpoint:
        return (_route(remote), bound[1]) if self._is_everywhere else bound

    def _is_own(self, host: str) -> bool:
        """Whether what is sent to this address comes back to the broker, if it is sent to the broker's port."""
        return _is_of_this_machine(host) if self._is_everywhere else host == self.address[0]

    def counters(self) -> str:
        """What happened so far, one line each."""
        lost = _lost_in_buffer(self._socket)
        shown = dict(self.broker.counters) | ({"lost: socket buffer full": lost} if lost else {})
        tables = {"now subscriptions": len(self.broker.subscriptions), "now retained": len(self.broker.retained)}
        lines = [f"  {name} {count}" for name, count in sorted(shown.items()) + list(tables.items())]
        return "\n".join([f"counters after {time.monotonic() - self._started:.1f} s:", *lines])

    def _close(self) -> None:
        self._say(self.counters())
        for part in (self.recorder, self.state):
            if part:
                part.close()
        for one in (self._socket, self._ephemeral, self._wake, self._wake_end):
            one.close()


def _bound(host: str, port: int) -> socket.socket:
    """A UDP socket with a large buffer. It blocks (shortly) when sending; receiving says each time that it must not."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host} port {port}: {error}") from error
    try:
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        with contextlib.suppress(OSError):  # beyond the system's limit, for those who may
            bound.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, SEND_TIMEOUT_US))
        bound.bind(address)
    except (OSError, OverflowError) as error:
        bound.close()
        raise UsageError(f"cannot listen on {host} port {port}: {error}") from error
    return bound


@lru_cache(maxsize=1024)
def _route(remote: str) -> str:
    """The address from which the system sends to another, for a broker that is bound to all of its own."""
    family = socket.AF_INET6 if ":" in remote else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((remote, 9))
        except OSError:
            return "::" if family == socket.AF_INET6 else "0.0.0.0"  # noqa: S104 - only shown, never bound
        return str(probe.getsockname()[0])


@lru_cache(maxsize=1024)
def _is_of_this_machine(host: str) -> bool:
    """All of 127.0.0.0/8 is, for one; only the system can tell."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
        return True


def _lost_in_buffer(bound: socket.socket) -> int:
    """How many datagrams the system dropped because we were too slow."""
    inode = str(os.fstat(bound.fileno()).st_ino)
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            columns = row.split()
            if columns[9] == inode:
                return int(columns[-1])
    return 0
