"""The bounds of a broker: its limits, how addresses share them, an account for each address, forwarding loops.

Every limit has a default here and an option on the command line, and ``OPTIONS`` names the option for each refusal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from reference_broker.messages.sending import SECOND, Endpoint

MAX_ACCOUNTS = 65_536
MAX_PASSES = 100
GAP_NS = SECOND // 10
MAX_WATCHED = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a broker. ``amplification`` holds for an address that is not trusted: it gets at most this
    multiple of the bytes that it sent. ``trust_silent``: True trusts every address; None one that has acknowledged
    something, has sent two datagrams at least a second apart, or is near; False only one that has acknowledged."""

    subscriptions_by_source: int = 1_000
    subscriptions: int = 100_000
    wildcards_by_source: int = 4_000
    wildcards: int = 50_000
    retained: int = 20_000
    retained_bytes: int = 16 << 20
    sessions: int = 10_000
    unacknowledged_bytes: int = 64 << 20
    topic_bytes: int = 1_024
    topic_depth: int = 64
    datagram_bytes: int = 65_507
    requests_by_second: int = 20_000
    amplification: float = 3.0
    trust_silent: bool | None = True


OPTIONS = {
    "too large": "--datagram-bytes",
    "too quick": "--requests-by-second",
    "too many subscriptions": "--subscriptions, --subscriptions-by-source",
    "too many wildcards": "--wildcards, --wildcards-by-source",
    "retained messages": "--retained",
    "retained bytes": "--retained-bytes",
    "sessions": "--sessions",
    "unacknowledged bytes": "--unacknowledged-bytes",
    "topic": "--topic-bytes, --topic-depth",
    "filter": "--topic-bytes, --topic-depth",
    "amplification": "--trust-silent",
}
"""Reason of a refusal to the options that lift it."""


class Shares:
    """A limited stock. An address that holds more than what would remain free gets no more.

    So no address can take everything: one greedy address ends at half of the stock, two at a third each.

    >>> stock = Shares(10)
    >>> sum(stock.take("10.0.0.9") for _ in range(10)), stock.take("10.0.0.2")
    (5, True)
    """

    def __init__(self, limit: int, by_source: int | None = None) -> None:
        self.limit, self.by_source, self.used = limit, by_source, 0
        self._held: dict[str, int] = {}

    def of(self, host: str) -> int:
        return self._held.get(host, 0)

    def fits(self, host: str, amount: int = 1, fair: bool = True) -> bool:
        """``fair=False`` is for what was taken before a restart, perhaps in another order: the limits alone count."""
        held, free = self._held.get(host, 0), self.limit - self.used - amount
        if self.by_source is not None and held + amount > self.by_source:
            return False
        return free >= (held if fair else 0)

    def take(self, host: str, amount: int = 1, fair: bool = True) -> bool:
        """Take some of the stock; false if that would be more than the address's share."""
        if not self.fits(host, amount, fair):
            return False
        self._held[host] = self._held.get(host, 0) + amount
        self.used += amount
        return True

    def give_back(self, host: str, amount: int = 1) -> None:
        self.used -= amount
        left = self._held[host] - amount
        if left:
            self._held[host] = left
        else:
            del self._held[host]


class Account:
    """What one address has sent, received and proven."""

    __slots__ = ("allowance", "awaited", "first_ns", "is_near", "proven", "received", "returned", "seen_ns", "sent")

    def __init__(self, allowance: float, now: int, is_near: bool) -> None:
        self.allowance, self.seen_ns, self.first_ns, self.is_near = allowance, now, now, is_near
        self.received = self.sent = self.awaited = 0
        self.proven = self.returned = False


class Accounts:
    """One account for each address. When there are too many, the longest unseen goes, unproven ones first.

    ``is_near`` knows the addresses of this machine and of the networks that it is attached to."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.is_near: Callable[[str], bool] = lambda host: False
        self._unproven: OrderedDict[str, Account] = OrderedDict()
        self._proven: OrderedDict[str, Account] = OrderedDict()

    def __len__(self) -> int:
        return len(self._unproven) + len(self._proven)

    def _of(self, host: str, now: int) -> Account:
        if (account := self._proven.get(host)) is not None:
            self._proven.move_to_end(host)
        elif (account := self._unproven.get(host)) is not None:
            self._unproven.move_to_end(host)
        else:
            if len(self._unproven) >= MAX_ACCOUNTS:
                self._unproven.popitem(last=False)
            account = self._unproven[host] = Account(self._limits.requests_by_second, now, self.is_near(host))
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
        if not account.returned:
            if now - account.first_ns >= SECOND:
                account.returned = True
                self._keep(source[0], account)
            elif now < account.first_ns:
                account.first_ns = now
        return True

    def charge(self, source: Endpoint, units: int, now: int) -> bool:
        """Whether so much extra work may be done for an address at once; half of its allowance is for requests."""
        account = self._of(source[0], now)
        if account.allowance - units < self._limits.requests_by_second / 2:
            return False
        account.allowance -= units
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
            self._keep(source[0], account)

    def _keep(self, host: str, account: Account) -> None:
        if self._unproven.pop(host, None) is not None:
            self._proven[host] = account
            if len(self._proven) > MAX_ACCOUNTS:
                self._proven.popitem(last=False)

    def allow(self, to: Endpoint, size: int, now: int) -> bool:
        """Whether so many bytes may go to an address; if so they are taken note of."""
        trust = self._limits.trust_silent
        if trust:
            return True
        account = self._of(to[0], now)
        is_trusted = account.proven or (trust is None and (account.returned or account.is_near))
        if not is_trusted and account.sent + size > self._limits.amplification * account.received:
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
        self.by_host = by_host
        self._passes: OrderedDict[tuple[str | Endpoint, int], tuple[int, int]] = OrderedDict()

    def closes(self, source: Endpoint, datagram: bytes, now: int) -> bool:
        """Whether this publish, of a source that has subscribed to it, is one of a loop and must go no further."""
        key = source[0] if self.by_host else source, hash(datagram)
        passes, last_ns = self._passes.pop(key, (0, now))
        passes = passes + 1 if 0 <= now - last_ns <= GAP_NS else 1
        if passes > MAX_PASSES:
            return True
        self._passes[key] = passes, now
        if len(self._passes) > MAX_WATCHED:
            self._passes.popitem(last=False)
        return False
