"""What clients are made of: the requests they send, when they send them again, and the events they tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pcap_tools.codec.message import Message
from pcap_tools.dialect.program import Dialect
from pcap_tools.dialect.spec import DEFAULT_RESEND_S
from reference_broker.client.go_back_n import Window
from reference_broker.messages.sending import SECOND, Send

DEFAULT_BACKOFF = 1.5
DEFAULT_LIMIT = 4


class ClientMistake(StrEnum):
    """Mistakes that running clients were seen to make: switches, off by default (see also ``mistakes.py``)."""

    RETAIN_ON_RESEND = "retain-on-resend"  # colon: the retain byte of a resend becomes 1
    NUMBER_ZERO = "number-zero"  # topicnumber: the topic number is never written


class EventKind(StrEnum):
    ACKNOWLEDGED = "acknowledged"  # our request was; `message` is the request
    REFUSED = "refused"  # it was answered, with a no
    RESENT = "resent"
    GAVE_UP = "gave-up"  # it was never acknowledged
    RECEIVED = "received"  # a message under a topic that we subscribed to
    STATUS = "status"  # a sentence of the broker's
    FORM = "form"  # from now on requests are in another form: `why` says which
    UNEXPECTED = "unexpected"  # an ACK that answers nothing, or no message of the dialect at all


@dataclass(frozen=True, slots=True)
class Event:
    """What happened. ``sends`` tells how often a request was sent; ``duplicate`` marks a message that came before."""

    kind: EventKind
    message: Message
    topic: bytes | None = None
    sends: int = 0
    duplicate: bool = False
    why: str = ""
    whole: bytes | None = None

    @property
    def payload(self) -> bytes | None:
        """What was said: of a message that came in several packets, all of it."""
        return self.message.payload if self.whole is None else self.whole


@dataclass(frozen=True, slots=True)
class Timing:
    """When to send again: after so long, then each time ``backoff`` times longer, at most ``limit`` times.

    ``settle_ns``: how long after an ACK another one that looks the same may still come, because the network doubles
    and delays. The next request that would take such an ACK for its own waits for so long.
    """

    resend_after_ns: int
    backoff: float = DEFAULT_BACKOFF
    limit: int = DEFAULT_LIMIT
    settle_ns: int = 0

    @classmethod
    def of(
        cls,
        dialect: Dialect,
        resend_after: float | None = None,
        limit: int | None = None,
        backoff: float = DEFAULT_BACKOFF,
        settle: float = 0.0,
    ) -> Timing:
        """The dialect's times in seconds, or those given."""
        policy = dialect.spec.client.resend
        after = resend_after or (policy.after if policy else DEFAULT_RESEND_S)
        if limit is None:
            limit = policy.limit if policy and policy.limit is not None else DEFAULT_LIMIT
        return cls(int(after * SECOND), backoff, limit, int(settle * SECOND))

    def wait_ns(self, sends: int) -> int:
        return int(self.resend_after_ns * self.backoff ** (sends - 1))


@dataclass(slots=True, eq=False)
class Request:
    """A request on its way or waiting for its turn; ``needs`` are those without which it makes no sense, ``more`` the
    rest of a message that is longer than one packet."""

    message: Message
    topic: bytes | None = None
    needs: list[Request] = field(default_factory=list)
    more: list[Message] = field(default_factory=list)
    window: Window = field(default_factory=Window)
    sends: int = 0
    due_ns: int = 0
    failed: bool = False


Outcome = tuple[list[Send], list[Event]]
