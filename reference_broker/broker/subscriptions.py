"""The subscriptions by filter, the limits on them, and the filters that match a topic."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice

from pcap_tools.dialect.spec import BrokerSpec, TopicsSpec
from reference_broker.broker.limits import Limits, Shares
from reference_broker.messages.sending import Endpoint
from reference_broker.topic_index import index_for

MAX_ROUTES = 10_000
MAX_REMEMBERED = 1_000_000  # filters in all routes
MAX_NEWS = 256  # new filters that a route may catch up with; one that is further behind is worked out anew


class Filter:
    """A filter that somebody subscribes to. ``host`` is the address that its wildcards count against."""

    __slots__ = ("host", "subscribers", "text", "wildcards")

    def __init__(self, text: bytes, host: str, wildcards: int) -> None:
        self.text, self.host, self.wildcards = text, host, wildcards
        self.subscribers: Counter[Endpoint] = Counter()


class _Route:
    """The filters that match one topic, among those that there were when ``seen`` of them had ever been new."""

    __slots__ = ("filters", "seen")

    def __init__(self, filters: list[Filter], seen: int) -> None:
        self.filters, self.seen = filters, seen


class Subscriptions:
    """A repeated subscription adds nothing, except in dialects that count copies ``per-subscription``.

    The filters of a topic are remembered. A change of the subscribers of a filter alters no route; a new filter is
    compared with a topic when that is next published to. So the work for a change does not grow with the number of
    subscriptions or of topics."""

    def __init__(self, topics: TopicsSpec, policy: BrokerSpec, limits: Limits) -> None:
        self.index = index_for(topics)
        self._copies = policy.copies
        self._by_filter: dict[bytes, Filter] = {}
        self._number = Shares(limits.subscriptions, limits.subscriptions_by_source)
        self._wildcards = Shares(limits.wildcards, limits.wildcards_by_source)
        self._routes: dict[bytes, _Route] = {}
        self._remembered = 0
        self._news: deque[Filter] = deque(maxlen=MAX_NEWS)
        self._ever_new = 0

    def __len__(self) -> int:
        return self._number.used

    def __iter__(self) -> Iterator[tuple[bytes, Endpoint]]:
        """Every subscription, in the order in which filters and subscribers first came."""
        for text, known in self._by_filter.items():
            for endpoint in known.subscribers.elements():
                yield text, endpoint

    def of_host(self, host: str) -> int:
        """The number of subscriptions of an address."""
        return self._number.of(host)

    def has(self, text: bytes, endpoint: Endpoint) -> bool:
        known = self._by_filter.get(text)
        return known is not None and endpoint in known.subscribers

    def adds(self, text: bytes, endpoint: Endpoint) -> bool:
        """Whether one more subscription would be more than there is."""
        return self._copies == "per-subscription" or not self.has(text, endpoint)

    def why_not(self, text: bytes, endpoint: Endpoint, fair: bool = True) -> str | None:
        """Which limit forbids this endpoint's address one more subscription, if one does."""
        host = endpoint[0]
        if not self._number.fits(host, 1, fair):
            return "too many subscriptions"
        if text not in self._by_filter and not self._wildcards.fits(host, self.index.wildcards(text), fair):
            return "too many wildcards"
        return None

    def add(self, text: bytes, endpoint: Endpoint, fair: bool = True) -> bool:
        """Subscribe; false if a limit forbids it."""
        if not self.adds(text, endpoint):
            return True
        if self.why_not(text, endpoint, fair) is not None:
            return False
        self._number.take(endpoint[0], 1, fair)
        known = self._by_filter.get(text)
        if known is None:
            known = self._by_filter[text] = Filter(text, endpoint[0], self.index.wildcards(text))
            if known.wildcards:
                self._wildcards.take(known.host, known.wildcards, fair)
            self.index.add(text)
            self._news.append(known)
            self._ever_new += 1
        known.subscribers[endpoint] += 1
        return True

    def remove(self, text: bytes, endpoint: Endpoint) -> bool:
        """Unsubscribe from exactly this filter, all copies of it; false if there was nothing to remove."""
        known = self._by_filter.get(text)
        if known is None or endpoint not in known.subscribers:
            return False
        self._number.give_back(endpoint[0], known.subscribers.pop(endpoint))
        if not known.subscribers:
            del self._by_filter[text]
            self.index.discard(text)
            if known.wildcards:
                self._wildcards.give_back(known.host, known.wildcards)
        return True

    def matching(self, topic: bytes) -> list[Filter]:
        """The filters that match a topic, in the order of their texts."""
        route = self._routes.get(topic)
        if route is None or route.seen != self._ever_new:
            route = self._up_to_date(topic, route)
        return [known for known in route.filters if known.subscribers]

    def copies(self, matching: list[Filter]) -> list[Endpoint]:
        """Where a publish that these filters match goes, one entry for each copy."""
        if self._copies == "per-subscription":
            return [endpoint for known in matching for endpoint in known.subscribers.elements()]
        if len(matching) == 1:
            return list(matching[0].subscribers)
        all_matches = [endpoint for known in matching for endpoint in known.subscribers]
        return list(dict.fromkeys(all_matches)) if self._copies == "per-subscriber" else all_matches

    def _up_to_date(self, topic: bytes, route: _Route | None) -> _Route:
        missed = self._ever_new - (route.seen if route is not None else 0)
        if route is None or missed > len(self._news):
            filters = [self._by_filter[text] for text in self.index.matching(topic)]
        else:
            new = [one for one in islice(self._news, len(self._news) - missed, None) if one.subscribers]
            filters = [known for known in route.filters if known.subscribers]
            filters += [one for one in new if self.index.matches(one.text, topic)]
        filters.sort(key=_text)
        self._remembered += len(filters) - (len(route.filters) if route is not None else 0)
        made = self._routes[topic] = _Route(filters, self._ever_new)
        while len(self._routes) > MAX_ROUTES or (self._remembered > MAX_REMEMBERED and len(self._routes) > 1):
            oldest = next(iter(self._routes))
            self._remembered -= len(self._routes.pop(oldest).filters)
        return made


def _text(known: Filter) -> bytes:
    return known.text
