"""What a dialect demands of brokers and clients, as small tables by message: what the checker's kernels look up.

Taken from the dialect file alone. `docs/checking.md` tells what each duty means for a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pcap_tools.dialect import Dialect
from pcap_tools.dialect.spec import DEFAULT_RESEND_S, ForwardSpec, MessageSpec

MEANINGS = ("publish", "subscribe", "unsubscribe", "ack", "deliver", "create", "status", "other")
PUBLISH, SUBSCRIBE, UNSUBSCRIBE, ACK, DELIVER, CREATE, STATUS, OTHER = range(len(MEANINGS))
REQUESTS = ("publish", "subscribe", "unsubscribe", "create")
SECOND = 1_000_000_000

ORDERLESS, ACK_FIRST, ACK_LAST = range(3)
CONNECTS, DISCONNECTS = "CONNECT", "DISCONNECT"  # messages of dialects with sessions

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Policy:
    """The tables of one dialect. Messages are numbered as in the file; -1 is no message."""

    dialect: Dialect
    messages: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.dialect.spec.messages))

    def __reduce__(self) -> tuple[type[Policy], tuple[Dialect]]:
        return Policy, (self.dialect,)

    def code(self, message: str) -> int:
        return self.messages.index(message)

    def _first(self, message: str) -> MessageSpec:
        return self.dialect.spec.messages[message][0]

    @cached_property
    def meaning(self) -> Integers:
        """The meaning of each message."""
        return np.array([MEANINGS.index(self._first(name).means or "other") for name in self.messages], np.int64)

    @cached_property
    def answers(self) -> NDArray[np.bool_]:
        """[ack, message]: whether that ACK can answer that message."""
        table = np.zeros((len(self.messages), len(self.messages)), np.bool_)
        for ack, name in enumerate(self.messages):
            spec = self._first(name)
            for message, other in enumerate(self.messages):
                is_ack = self.meaning[message] == ACK
                table[ack, message] = not is_ack and (other in spec.acks or "any" in spec.acks)
        return table

    @cached_property
    def broker_acks(self) -> NDArray[np.bool_]:
        """Whether the broker owes an ACK for a message: there is one, and the order of answers has it."""
        order = self.dialect.spec.broker.order
        owed = np.array(self.answers.any(axis=0), np.bool_)
        for message, name in enumerate(self.messages):
            meaning = self._first(name).means or "other"
            if meaning in order and "ack" not in order[meaning]:
                owed[message] = False
            if meaning in ("deliver", "status") or self._first(name).sender == "broker":
                owed[message] = False
        return owed

    @cached_property
    def client_acks(self) -> NDArray[np.bool_]:
        """Whether clients owe an ACK for a message of the broker's."""
        named = [name in self.dialect.spec.client.acks for name in self.messages]
        found: NDArray[np.bool_] = np.array(named, np.bool_) & self.answers.any(axis=0)
        return found

    @cached_property
    def is_keyed(self) -> NDArray[np.bool_]:
        """Whether an ACK says which message it answers."""
        return np.array([self._first(name).acks_by != "order" for name in self.messages], np.bool_)

    @cached_property
    def ack_place(self) -> Integers:
        """By meaning of the request: whether the ACK comes before or after forwards and retained messages."""
        places = np.zeros(len(MEANINGS), np.int64)
        for meaning, duties in self.dialect.spec.broker.order.items():
            others = [at for at, duty in enumerate(duties) if duty in ("forward", "retained", "status")]
            if "ack" in duties and others:
                at = duties.index("ack")
                places[MEANINGS.index(meaning)] = ACK_FIRST if at < others[0] else ACK_LAST
        return places

    @cached_property
    def statuses(self) -> Integers:
        """The status message that follows a request, -1 for none."""
        named = self.dialect.spec.broker.status
        return np.array([self.code(named[name]) if name in named else -1 for name in self.messages], np.int64)

    @cached_property
    def forwards(self) -> NDArray[np.bool_]:
        """Whether a message of the broker's is one that was published."""
        made = {how.becomes if isinstance(how, ForwardSpec) else name for name, how in self._forward.items()}
        found: NDArray[np.bool_] = np.array([name in made for name in self.messages]) | (self.meaning == DELIVER)
        return found

    @cached_property
    def publishes(self) -> NDArray[np.bool_]:
        """Whether a message of a client's is to be passed on."""
        found: NDArray[np.bool_] = self.meaning == PUBLISH
        return found

    @property
    def _forward(self) -> dict[str, str | ForwardSpec]:
        said = dict(self.dialect.spec.broker.forward)
        published = [name for name in self.messages if self._first(name).means == "publish"]
        return {name: said.get(name, "same-bytes") for name in published}

    @cached_property
    def cuts(self) -> dict[str, str]:
        """By message: what is taken out of its topic before it is passed on."""
        made = {name: how.topic_without for name, how in self._forward.items() if isinstance(how, ForwardSpec)}
        return {name: cut for name, cut in made.items() if cut}

    @cached_property
    def topics_are_renamed(self) -> bool:
        """Whether a forward has another number for its topic than the publish had: names are compared then."""
        number = self.dialect.spec.topics.number
        return any(isinstance(how, ForwardSpec) and number in how.fresh for how in self._forward.values())

    @cached_property
    def topic_is_told(self) -> bool:
        """Whether a forward has the topic of the publish in the same field."""
        layouts = {layout.message: layout for layout in self.dialect.forms[0].layouts}
        pairs = [(name, how.becomes) for name, how in self._forward.items() if isinstance(how, ForwardSpec)]
        same = all(layouts[one].topic == layouts[other].topic for one, other in pairs)
        return same and self.dialect.spec.topics.kind != "source-address"

    @cached_property
    def filters_name_topics(self) -> bool:
        """Whether a filter without wildcards is the very text of the only topic that it matches, in publishes and in
        forwards."""
        topics = self.dialect.spec.topics
        plain = topics.kind in ("text", "code") and topics.case_sensitive
        return plain and self.topic_is_told and not self.has_sessions

    @cached_property
    def payload_is_kept(self) -> bool:
        """Whether the broker leaves payloads alone."""
        return not any(
            isinstance(how, ForwardSpec) and self._first(name).payload in how.set for name, how in self._forward.items()
        )

    @property
    def has_resends(self) -> bool:
        return self.dialect.spec.client.resend is not None

    @property
    def resend_ns(self) -> int:
        resend = self.dialect.spec.client.resend
        return int((resend.after if resend else DEFAULT_RESEND_S) * SECOND)

    @property
    def has_sessions(self) -> bool:
        return self.dialect.spec.broker.sessions != "none"

    @property
    def speakers(self) -> Integers:
        """1: only the broker says this; 0: only others do; -1: anyone may."""
        by = [self._first(name).sender for name in self.messages]
        return np.array([-1 if who is None else int(who == "broker") for who in by], np.int64)
