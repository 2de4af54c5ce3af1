"""Which dialects can have a fault. Each check tells why not, or None; ``all_of`` joins them."""

from __future__ import annotations

from generators.simulation.fault import Fits
from pcap_tools.dialect import Dialect

REQUESTS = ("publish", "subscribe", "unsubscribe", "create")


def all_of(*checks: Fits) -> Fits:
    """The first reason that any of these has."""

    def check(dialect: Dialect) -> str | None:
        return next((reason for one in checks if (reason := one(dialect)) is not None), None)

    return check


def meaning_of(dialect: Dialect, message: str) -> str | None:
    return next((variant.means for variant in dialect.spec.messages[message] if variant.means), None)


def acknowledged(dialect: Dialect, message: str) -> bool:
    """Whether a message of the dialect is answered by an ACK."""
    if meaning_of(dialect, message) == "ack":
        return False
    variants = [variant for variants in dialect.spec.messages.values() for variant in variants]
    return any(message in variant.acks or "any" in variant.acks for variant in variants)


def broker_acknowledges(dialect: Dialect) -> str | None:
    asked = [name for name in dialect.messages if meaning_of(dialect, name) in REQUESTS]
    if any(acknowledged(dialect, name) for name in asked):
        return None
    return f"the broker of {dialect.name} acknowledges nothing"


def clients_acknowledge(dialect: Dialect) -> str | None:
    return None if dialect.spec.client.acks else f"clients of {dialect.name} acknowledge nothing"


def clients_resend(dialect: Dialect) -> str | None:
    return None if dialect.spec.client.resend else f"{dialect.name} says nothing about sending again"


def has_status(dialect: Dialect) -> str | None:
    return None if dialect.spec.broker.status else f"{dialect.name} has no status messages"


def has_retained(dialect: Dialect) -> str | None:
    return None if dialect.spec.broker.retained != "none" else f"the broker of {dialect.name} retains nothing"


def can_subscribe(dialect: Dialect) -> str | None:
    if any(meaning_of(dialect, name) == "subscribe" for name in dialect.messages):
        return None
    return f"nobody can subscribe in {dialect.name}"


def can_unsubscribe(dialect: Dialect) -> str | None:
    if any(meaning_of(dialect, name) == "unsubscribe" for name in dialect.messages):
        return None
    return f"nobody can unsubscribe in {dialect.name}"


def has_no_sessions(dialect: Dialect) -> str | None:
    """For faults that send a client what its session does not know."""
    if dialect.spec.broker.sessions == "none":
        return None
    return f"a client of {dialect.name} would first have to be told the topic's id"


def names_topics(dialect: Dialect) -> str | None:
    """Whether filters are names, of which a careless broker may take one for another."""
    topics = dialect.spec.topics
    if topics.kind == "text" or (topics.kind == "number" and topics.named_by):
        return None
    return f"filters of {dialect.name} are no names"


def has_payload(dialect: Dialect) -> str | None:
    layouts = [layout for form in dialect.forms for layout in form.layouts if layout.meaning == "publish"]
    if any(layout.payload for layout in layouts):
        return None
    return f"a publish of {dialect.name} has no payload"


def numbers_topics(dialect: Dialect) -> str | None:
    """Whether publishers choose the numbers of their topics; in MQTT-SN the broker does."""
    topics = dialect.spec.topics
    if topics.kind == "number" and topics.named_by and dialect.spec.broker.sessions == "none":
        return None
    return f"publishers of {dialect.name} do not number their topics"
