"""Two brokers that are subscribed to each other pass one publish to and fro for ever. Here it is noticed and ended.

Who publishes what it has subscribed to is served, and may say the same again. Who says the same bytes a hundred times
in a row, each within a tenth of a second of the last, is taken for a broker that sends back what it is sent: then one
is left out, and with it the loop. A client whose publish was left out gets no ACK and sends it again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from reference_broker.limits import SECOND
from reference_broker.sending import Endpoint

MAX_PASSES = 100
GAP_NS = SECOND // 10
MAX_WATCHED = 10_000


class Loops:
    """``by_host``: forwards leave from a port of their own, so what comes back is known by its address alone."""

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
