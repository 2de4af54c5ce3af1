"""Who wants what: subscriptions by filter, with the limits on how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pcap_tools.dialect.spec import BrokerSpec, TopicsSpec
from reference_broker.broker.limits import Limits
from reference_broker.messages.sending import Endpoint
from reference_broker.topic_index import index_for

MAX_ROUTES = 10_000


class Subscriptions:
    """A repeated subscription adds nothing, but for dialects that count copies ``per-subscription``."""

    def __init__(self, topics: TopicsSpec, policy: BrokerSpec, limits: Limits) -> None:
        self.index = index_for(topics)
        self._copies = policy.copies
        self._limits = limits
        self._by_filter: dict[bytes, Counter[Endpoint]] = {}
        self._by_host: Counter[str] = Counter()  # not by endpoint: ports cost an attacker nothing
        self._routes: dict[bytes, list[Endpoint]] = {}

    def __len__(self) -> int:
        return self._by_host.total()

    def __iter__(self) -> Iterator[tuple[bytes, Endpoint]]:
        """Every subscription, in the order in which filters and subscribers first came."""
        for text, subscribers in self._by_filter.items():
            for endpoint in subscribers.elements():
                yield text, endpoint

    def has(self, text: bytes, endpoint: Endpoint) -> bool:
        return endpoint in self._by_filter.get(text, ())

    def adds(self, text: bytes, endpoint: Endpoint) -> bool:
        """Whether one more subscription would be more than there is."""
        return self._copies == "per-subscription" or not self.has(text, endpoint)

    def is_full_for(self, endpoint: Endpoint) -> bool:
        """Whether a limit forbids this endpoint's address one more subscription."""
        of_host = self._by_host.get(endpoint[0], 0)
        return len(self) >= self._limits.subscriptions or of_host >= self._limits.subscriptions_by_source

    def add(self, text: bytes, endpoint: Endpoint) -> bool:
        """Subscribe; false if a limit forbids it."""
        if not self.adds(text, endpoint):
            return True
        if self.is_full_for(endpoint):
            return False
        subscribers = self._by_filter.get(text)
        if subscribers is None:
            subscribers = self._by_filter[text] = Counter()
            self.index.add(text)
        self._routes.clear()
        subscribers[endpoint] += 1
        self._by_host[endpoint[0]] += 1
        return True

    def remove(self, text: bytes, endpoint: Endpoint) -> bool:
        """Unsubscribe from exactly this filter, all copies of it; false if there was nothing to remove."""
        subscribers = self._by_filter.get(text)
        if not subscribers or endpoint not in subscribers:
            return False
        self._routes.clear()
        self._by_host[endpoint[0]] -= subscribers.pop(endpoint)
        if not self._by_host[endpoint[0]]:
            del self._by_host[endpoint[0]]
        if not subscribers:
            del self._by_filter[text]
            self.index.discard(text)
        return True

    def matching(self, topic: bytes) -> Iterator[tuple[bytes, Counter[Endpoint]]]:
        """The filters that match a topic, in a fixed order, with their subscribers and how often each subscribed."""
        for text in sorted(self.index.matching(topic)):
            yield text, self._by_filter[text]

    def subscribers(self, topic: bytes) -> list[Endpoint]:
        """To whom a publish of this topic goes, one entry a copy. Remembered until a subscription changes."""
        route = self._routes.get(topic)
        if route is None:
            if len(self._routes) >= MAX_ROUTES:
                self._routes.clear()
            route = self._routes[topic] = self._route(topic)
        return route

    def _route(self, topic: bytes) -> list[Endpoint]:
        if self._copies == "per-subscription":
            return [endpoint for _, counts in self.matching(topic) for endpoint in counts.elements()]
        all_matches = [endpoint for _, counts in self.matching(topic) for endpoint in counts]
        return list(dict.fromkeys(all_matches)) if self._copies == "per-subscriber" else all_matches
