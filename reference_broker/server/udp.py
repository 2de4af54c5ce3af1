"""The UDP server around a broker: sockets, clocks and signals, so that the broker itself needs none.

Datagrams are taken from the socket many at a time and wait in an inbox of 200 ms of work; between batches the broker
goes on with long work. Nothing that the network sends stops it: an error of the socket or of the broker itself is
counted and the next datagram handled.
"""

from __future__ import annotations

import contextlib
import errno
import select
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from ipaddress import ip_address

from pcap_tools.errors import UsageError
from reference_broker.broker import Broker
from reference_broker.messages.sending import Endpoint, Send
from reference_broker.server.batches import Batches
from reference_broker.server.complaints import Complaints
from reference_broker.server.inbox import Inbox
from reference_broker.server.journal import JournalError
from reference_broker.server.message_log import MessageLog
from reference_broker.server.nearby import Nearby, Network
from reference_broker.server.recorder import Recorder
from reference_broker.server.state import State

BATCH = 256
RECEIVE = 32  # calls for datagrams between two batches
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

    ``state``, ``recorder``, ``log`` and ``allowed`` are set before ``serve``, which closes them at its end. ``allowed``
    are the networks whose datagrams are taken; None: all.
    """

    def __init__(
        self, broker: Broker, host: str = "127.0.0.1", port: int = 0, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self.broker = broker
        self.state: State | None = None
        self.recorder: Recorder | None = None
        self.log: MessageLog | None = None
        self.allowed: list[Network] | None = None
        self._say = say
        self._socket = _bound(host, port)
        self.address: Endpoint = self._socket.getsockname()[:2]
        self._ephemeral = _bound(self.address[0], 0)
        self._ephemeral_address: Endpoint = self._ephemeral.getsockname()[:2]
        self._batches = {False: Batches(self._socket), True: Batches(self._ephemeral)}
        self._is_everywhere = ip_address(self.address[0].partition("%")[0]).is_unspecified
        self._inbox = Inbox()
        self._complaints = Complaints(say)
        broker.on_refusal = lambda reason, host: self._complaints.note(reason, host, self._now())
        broker.accounts.is_near = Nearby()
        self._is_allowed = lru_cache(maxsize=4_096)(self._is_in_allowed)
        self._wake_end, self._wake = socket.socketpair()
        self._stopping = False
        self._tracebacks = 0
        self._lost = 0
        self._clock_offset = time.time_ns() - time.monotonic_ns()
        self._started = time.monotonic()

    # -- from other threads and signal handlers -----------------------------------------------------------------

    def stop(self) -> None:
        """End ``serve`` soon."""
        self._stopping = True
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
                is_busy = self._inbox or self.broker.turns
                orders = b""
                for fd, _ in poll.poll(0 if is_busy else TICK_MS):
                    if fd == self._wake_end.fileno():
                        orders = self._wake_end.recv(64)
                self._receive()
                self._handle_batch()
                if self.broker.turns:
                    self._guarded(partial(self.broker.proceed, self._now()))
                if _REPORT in orders:
                    self._report()
                now = self._now()
                if now >= next_tick:
                    self._tick(now)
                    next_tick = now + TICK_MS * 1_000_000
        finally:
            self._close()

    def _now(self) -> int:
        """Nanoseconds since the epoch that never jump, whatever is done to the machine's clock meanwhile."""
        return time.monotonic_ns() + self._clock_offset

    def _report(self) -> None:
        """Say the counters, those of all that had come before they were asked for included."""
        while self._inbox and not self._stopping:
            self._handle_batch()
        self._say(self.counters())

    def _receive(self) -> None:
        """Take what has arrived; what is more than the inbox holds is dropped, counted and reported."""
        batches = self._batches[False]
        for _ in range(RECEIVE):
            try:
                arrived = batches.receive()
            except OSError as error:  # what an earlier send met
                self._count("receive failed", error)
                continue
            if not arrived:
                break
            for datagram, source in arrived:
                if self.recorder:
                    self.recorder.record(time.time_ns(), source, self._local(source[0], self.address), datagram)
                if self.allowed is not None and not self._is_allowed(source[0]):
                    self.broker.counters["refused: address not allowed"] += 1
                elif not self._inbox.put(datagram, source):
                    self.broker.counters["lost: too much to do"] += 1
                    self._complaints.note("too much to do", source[0], self._now(), "lost")
        if batches.lost != self._lost:
            self.broker.counters["lost: socket buffer full"] += (batches.lost - self._lost) % (1 << 32)
            self._lost = batches.lost
            self._complaints.note("socket buffer full", "", self._now(), "lost")

    def _is_in_allowed(self, host: str) -> bool:
        address = ip_address(host.partition("%")[0])
        if address.version == 6 and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self.allowed or ())

    def _handle_batch(self) -> None:
        """Handle one batch and then send: all that the batch calls for in one go, so that a receiver is woken once and
        not for each datagram, and what promises a change waits for one commit."""
        state = self.state
        held: list[tuple[bool, list[Send]]] = []
        before = time.thread_time_ns()
        while len(held) < BATCH and (one := self._inbox.take()) is not None:
            changes = state.changes if state else 0
            sends = self._handle(*one)
            held.append((state is not None and state.changes != changes, sends))
        if held:
            self._settle(held)
            self._inbox.note_cost(len(held), time.thread_time_ns() - before)
        if self.log:
            self.log.flush()

    def _handle(self, datagram: bytes, source: Endpoint) -> list[Send]:
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
        ready: list[Send] = []
        for has_changed, sends in held:
            if is_safe or not has_changed:
                ready += sends
            else:
                self.broker.counters["refused: cannot be kept"] += 1
        self._send(ready)

    def _send(self, sends: Iterable[Send]) -> None:
        """Send in this order, in runs that leave from one socket."""
        run: list[Send] = []
        for send in sends:
            if send.to[1] == self.address[1] and self._is_own(send.to[0]):
                self.broker.counters["refused: to itself"] += 1  # a subscription of its own port: a loop without end
                continue
            if run and run[0].ephemeral is not send.ephemeral:
                self._send_run(run)
                run = []
            run.append(send)
        self._send_run(run)

    def _send_run(self, run: list[Send]) -> None:
        for start in range(0, len(run), BATCH):
            if self._stopping and start:
                return
            part = run[start : start + BATCH]
            for failed, code in self._batches[part[0].ephemeral].send(part):
                self._count("send failed", OSError(code, ""))
                part.remove(failed)
            if self.recorder:
                for datagram, to, ephemeral in part:
                    local = self._local(to[0], self._ephemeral_address if ephemeral else self.address)
                    self.recorder.record(time.time_ns(), local, to, datagram)

    def _tick(self, now: int) -> None:
        self._guarded(partial(self.broker.tick, now))
        if self.state:
            self.state.tick(now)
        if self.recorder:
            self.recorder.flush()

    def _guarded(self, work: Callable[[], list[Send]]) -> None:
        try:
            self._settle([(True, work())])
        except JournalError:
            self.broker.counters["refused: cannot be kept"] += 1
        except Exception as error:
            self._bug(error, b"")

    # -- parts --------------------------------------------------------------------------------------------------

    def _count(self, what: str, error: OSError) -> None:
        self.broker.counters[f"{what}: {errno.errorcode.get(error.errno or 0, type(error).__name__)}"] += 1

    def _local(self, remote: str, bound: Endpoint) -> Endpoint:
        return (_route(remote), bound[1]) if self._is_everywhere else bound

    def _is_own(self, host: str) -> bool:
        """Whether what is sent to this address comes back to the broker, if it is sent to the broker's port."""
        return _is_of_this_machine(host) if self._is_everywhere else host == self.address[0]

    def gauges(self) -> dict[str, int]:
        """The sizes of the broker's tables."""
        return {"subscriptions": len(self.broker.subscriptions), "retained": len(self.broker.retained)}

    def counters(self) -> str:
        """What happened so far, one line each."""
        tables = {f"now {name}": number for name, number in self.gauges().items()}
        lines = [f"  {name} {count}" for name, count in sorted(self.broker.counters.items()) + list(tables.items())]
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
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)  # for ADVERTISE
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
