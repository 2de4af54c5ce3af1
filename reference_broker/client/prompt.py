"""The prompt of an interactive node: lines that a user types, checked, become requests.

topic:payload    publish               sub:<topic>      subscribe
create:<topic>   create a topic        unsub:<topic>    unsubscribe        exit
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pcap_tools.dialect.program import Value
from pcap_tools.errors import UsageError
from reference_broker.client.core import Client
from reference_broker.messages.sending import Send

ANSWERS = {b"y": True, b"yes": True, b"n": False, b"no": False}


class Waiting(NamedTuple):
    """A publish that waits for the answer whether it is to be retained."""

    topic: bytes
    payload: bytes


class Prompt:
    """Takes lines for a client. A node may publish, subscribe, or both; then ``sub:x`` is never a publish.

    ``retain=None`` asks about each message; ``more`` are further fields of each subscription."""

    def __init__(
        self,
        client: Client,
        say: Callable[[str], None],
        *,
        publishes: bool = True,
        subscribes: bool = True,
        retain: bool | None = False,
        more: Mapping[str, Value] | None = None,
    ) -> None:
        self._client, self._say, self._retain = client, say, retain
        self._waiting: Waiting | None = None
        self._asks_retain = retain is None and publishes and client.compose.can_retain()
        self._verbs: dict[bytes, Callable[[bytes, int], list[Send]]] = {}
        if subscribes:
            self._verbs[b"sub"] = lambda text, now: client.subscribe(text, now, more or {})
            if client.compose.can("unsubscribe"):
                self._verbs[b"unsub"] = client.unsubscribe
        if publishes and client.dialect.spec.topics.named_by and client.dialect.spec.broker.sessions != "mqtt-sn":
            self._verbs[b"create"] = client.create
        self._publishes = publishes
        self.is_over = False

    @property
    def hint(self) -> str:
        """What may be typed now."""
        if self._waiting is not None:
            return "retain it? (y/n)"
        forms = ["topic:payload"] if self._publishes else []
        forms += [f"{verb.decode()}:<topic>" for verb in self._verbs]
        return f"enter {', '.join(forms)} or exit"

    def take(self, line: bytes | None, now: int) -> list[Send]:
        """One line, or None at the end of the input. What is wrong with it is said, and nothing is sent."""
        try:
            return self._take(line, now)
        except UsageError as error:
            self._say(str(error))
            return []

    def _take(self, line: bytes | None, now: int) -> list[Send]:
        if line is None or (line.strip() == b"exit" and self._waiting is None):
            self.is_over = True
            return []
        if self._waiting is not None:
            return self._answer(line.strip().lower(), now)
        if not line.strip():
            return []
        verb, colon, rest = line.partition(b":")
        if not colon:
            raise UsageError(f"there is no colon in it; {self.hint}")
        if verb in self._verbs:
            return self._verbs[verb](rest, now)
        if not self._publishes:
            raise UsageError(f"this node only subscribes; {self.hint}")
        if self._asks_retain:
            self._client.compose.publish(verb, rest)  # what cannot be sent is told before the question
            self._waiting = Waiting(verb, rest)
            return []
        return self._client.publish(verb, rest, now, retain=bool(self._retain))

    def _answer(self, word: bytes, now: int) -> list[Send]:
        if word not in ANSWERS:
            raise UsageError("please answer y or n")
        topic, payload = self._waiting or (b"", b"")
        self._waiting = None
        return self._client.publish(topic, payload, now, retain=ANSWERS[word])
