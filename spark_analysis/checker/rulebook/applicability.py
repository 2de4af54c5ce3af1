"""Checks whether a dialect can break a rule. Each returns the reason why not, or None; ``all_of`` joins checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pcap_tools.dialect.program import Charset, Counts, Extent, Kind, Layout, Step
from spark_analysis.checker.session.policy import CREATE, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, Policy

from .rule import Fits


def all_of(*checks: Fits) -> Fits:
    """The first reason that one of the checks returns."""

    def check(policy: Policy) -> str | None:
        return next((reason for one in checks if (reason := one(policy)) is not None), None)

    return check


def needs(holds: Callable[[Policy], bool], reason: str) -> Fits:
    """A check from a condition; ``{}`` in ``reason`` stands for the name of the dialect."""
    return lambda policy: None if holds(policy) else reason.format(policy.dialect.name)


def _layouts(policy: Policy) -> Iterator[Layout]:
    return (layout for form in policy.dialect.forms for layout in form.layouts)


def has_step(wanted: Callable[[Step], bool], reason: str) -> Fits:
    """Whether any field of any message meets the condition."""
    return needs(lambda policy: any(wanted(step) for layout in _layouts(policy) for step in layout.steps), reason)


def _means(meaning: int) -> Callable[[Policy], bool]:
    return lambda policy: bool((policy.meaning == meaning).any())


# -- wire format ------------------------------------------------------------------------------------------------------

has_types = has_step(lambda step: step.guard is not None, "{} has a single message type")
has_delimiters = has_step(lambda step: step.extent is Extent.UNTIL, "no field of {} ends at a delimiter")
has_magic = has_step(lambda step: step.kind is Kind.MAGIC, "{} has no constant bytes")
has_lengths = has_step(
    lambda step: step.counts is not Counts.NOTHING or step.extent is Extent.PREFIX, "{} has no length field"
)
has_values = has_step(lambda step: step.allowed is not None or step.kind is Kind.DIGITS, "{} allows every number")
has_charsets = has_step(
    lambda step: step.kind is Kind.TEXT and step.charset is not Charset.ANY, "texts of {} may contain any byte"
)
has_sizes = has_step(lambda step: step.extent is not Extent.REST, "a datagram of {} may end at any byte")


def _has_end(layout: Layout) -> bool:
    """Whether a datagram can have extra bytes: its last field has an end, or a length defines the end."""
    counts = any(step.counts is not Counts.NOTHING for step in layout.steps)
    return counts or not layout.steps or layout.steps[-1].extent is not Extent.REST


has_ends = needs(
    lambda policy: any(_has_end(layout) for layout in _layouts(policy)),
    "the last field of every message of {} takes all remaining bytes",
)
has_wildcards = needs(lambda policy: bool(policy.dialect.spec.topics.wildcards), "{} has no wildcards")
publishes_name_topics = needs(
    lambda policy: any(layout.topic for layout in _layouts(policy) if layout.meaning == "publish"),
    "a publish of {} contains no topic",
)

# -- senders, acknowledgements, resends -------------------------------------------------------------------------------

has_speakers = needs(lambda policy: bool((policy.speakers >= 0).any()), "{} does not define senders of messages")
broker_acknowledges = needs(lambda policy: bool(policy.broker_acks.any()), "the broker of {} acknowledges nothing")
clients_acknowledge = needs(lambda policy: bool(policy.client_acks.any()), "clients of {} acknowledge nothing")
has_statuses = needs(lambda policy: bool((policy.statuses >= 0).any()), "{} has no status messages")
has_resends = needs(lambda policy: policy.has_resends, "{} defines no resends")


def clients_may_acknowledge(policy: Policy) -> str | None:
    """If only the broker sends ACKs, an ACK of a client breaks P-SPEAKER instead."""
    variants = [variant for variants in policy.dialect.spec.messages.values() for variant in variants]
    if any(variant.means == "ack" and variant.sender != "broker" for variant in variants):
        return None
    return f"only the broker of {policy.dialect.name} sends ACKs"


def _orders(policy: Policy, *duties: str) -> bool:
    """Whether the dialect orders ACKs relative to one of ``duties``; ``policy.ack_place`` holds that order."""
    orders = policy.dialect.spec.broker.order.values()
    return bool(policy.ack_place.any()) and any("ack" in order and set(duties) & set(order) for order in orders)


orders_acks = needs(
    lambda policy: _orders(policy, "forward", "status"),
    "{} does not define the order of ACKs, forwards and status messages",
)
orders_retained = needs(
    lambda policy: _orders(policy, "retained"), "{} does not define the order of the ACK and the retained message"
)


def _may_change_retain(policy: Policy) -> bool:
    resend = policy.dialect.spec.client.resend
    fields = {layout.retain for layout in _layouts(policy) if layout.meaning == "publish"}
    return resend is not None and bool(fields & set(resend.may_change))


may_change_retain = needs(_may_change_retain, "{} does not let a resend change the retain flag")

# -- delivery, retained messages, topic numbers, control loop ---------------------------------------------------------

can_subscribe = needs(_means(SUBSCRIBE), "{} has no subscriptions")
can_unsubscribe = needs(_means(UNSUBSCRIBE), "{} has no unsubscriptions")
can_publish = needs(_means(PUBLISH), "{} has no publishes")
has_retained = needs(lambda policy: policy.dialect.spec.broker.retained != "none", "the broker of {} retains nothing")
has_payload = needs(
    lambda policy: any(layout.payload for layout in _layouts(policy) if layout.meaning == "publish"),
    "a publish of {} has no payload",
)
keeps_payload = needs(lambda policy: policy.payload_is_kept, "the broker of {} creates the payloads of forwards")
numbers_topics = needs(
    lambda policy: policy.dialect.spec.topics.kind == "number" and not policy.has_sessions and _means(CREATE)(policy),
    "publishers of {} do not number their topics",
)
has_loop = needs(
    lambda policy: policy.dialect.spec.application.loop is not None,
    "{} has no control loop",
)
