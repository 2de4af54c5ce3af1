"""The bounds of a broker: its limits, an account for each address, and the detection of forwarding loops.

Every limit has a default here and an option on the command line.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from reference_broker.messages.sending import SECOND, Endpoint

MAX_ACCOUNTS = 65_536
MAX_PASSES = 100
GAP_NS = SECOND // 10
MAX_WATCHED = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a broker. ``amplification`` holds for an address that has never acknowledged anything: it gets at
    most so many times the bytes that it sent. Clients of some dialects never acknowledge; ``trust_silent`` says
    whether those are served all the same."""

    subscriptions_by_source: int = 1_000
    subscriptions: int = 100_000
    retained_bytes: int = 16 << 20
    topic_bytes: int = 1_024
    topic_depth: int = 64
    datagram_bytes: int = 65_507
    requests_by_second: int = 20_000
    amplification: float = 3.0
    trust_silent: bool = True


class Account:
    """What one address has sent, received and proven."""

    __slots__ = ("allowance", "awaited", "proven", "received", "seen_ns", "sent")

    def __init__(self, allowance: float, now: int) -> None:
        self.allowance, self.seen_ns = allowance, now
        self.received = self.sent = self.awaited = 0
        self.proven = False


class Accounts:
    """One account an address, the longest unseen forgotten first."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._accounts: OrderedDict[str, Account] = OrderedDict()

    def _of(self, address: str, now: int) -> Account:
        account = self._accounts.get(address)
        if account is None:
            if len(self._accounts) >= MAX_ACCOUNTS:
                self._accounts.popitem(last=False)
            account = self._accounts[address] = Account(self._limits.requests_by_second, now)
        else:
            self._accounts.move_to_end(address)
        return account

    def admit(self, source: Endpoint, size: int, now: int) -> bool:
        """Take note of a datagram; false if its sender is too quick. A clock that jumps back costs nobody anything."""
        account = self._of(source[0], now)
        rate = self._limits.requests_by_second
        elapsed = max(0, now - account.seen_ns)
        account.seen_ns = now
        account.allowance = min(rate, account.allowance + rate * elapsed / SECOND)
        if account.allowance < 1:
            return False
        account.allowance -= 1
        account.received += size
        return True

    def await_ack(self, to: Endpoint, now: int) -> None:
        """Something was sent that a client acknowledges."""
        self._of(to[0], now).awaited += 1

    def prove(self, source: Endpoint, now: int) -> None:
        """An ACK came. If one was awaited, the address is real; one out of the blue proves nothing."""
        account = self._of(source[0], now)
        if account.awaited:
            account.awaited -= 1
            account.proven = True

    def allow(self, to: Endpoint, size: int, now: int) -> bool:
        """Whether so many bytes may go to an address; if so they are taken note of."""
        account = self._of(to[0], now)
        free = account.proven or self._limits.trust_silent
        if not free and account.sent + size > self._limits.amplification * account.received:
            return False
        account.sent += size
        return True


class Loops:
    """Ends loops of brokers that are subscribed to each other and would forward one publish for ever.

    A source that publishes the same bytes to its own subscription a hundred times in a row, each within a tenth of a
    second of the last, is taken for such a broker: one publish is dropped, and with it the loop. A client whose publish
    was dropped gets no ACK and sends it again. ``by_host``: forwards leave from a port of their own, so a returning
    publish is known by its address alone."""

    def __init__(self, by_host: bool) -> None:
        self._by_host = by_host
        self._passes: OrderedDict[tuple[str | Endpoint, int], tuple[int, int]] = OrderedDict()

    def closes(self, source: Endpoint, subscribers: Iterable[Endpoint], datagram: bytes, now: int) -> bool:
        """Whether this publish is one of a loop and must go no further."""
        is_subscribed = any(to[0] == source[0] for to in subscribers) if self._by_host else source in subscribers
        if not is_subscribed:
            return False
        key = source[0] if self._by_host else source, hash(datagram)
        passes, last_ns = self._passes.pop(key, (0, now))
        passes = passes + 1 if 0 <= now - last_ns <= GAP_NS else 1
        if passes > MAX_PASSES:
            return True
        self._passes[key] = passes, now
        if len(self._passes) > MAX_WATCHED:
            self._passes.popitem(last=False)
        return False
