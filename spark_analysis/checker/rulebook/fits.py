"""Which dialects can break a rule. Each check tells why not, or None; ``all_of`` joins them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pcap_tools.dialect.program import Charset, Counts, Extent, Kind, Layout, Step
from spark_analysis.checker.policy import CREATE, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, Policy

from .rule import Fits

LOOP_ROLES = ("sensor", "dashboard", "actuator")


def all_of(*checks: Fits) -> Fits:
    """The first reason that any of these has."""

    def check(policy: Policy) -> str | None:
        return next((reason for one in checks if (reason := one(policy)) is not None), None)

    return check


def needs(holds: Callable[[Policy], bool], reason: str) -> Fits:
    """A check in one line: ``reason`` has a place for the dialect's name."""
    return lambda policy: None if holds(policy) else reason.format(policy.dialect.name)


def _layouts(policy: Policy) -> Iterator[Layout]:
    return (layout for form in policy.dialect.forms for layout in form.layouts)


def has_step(wanted: Callable[[Step], bool], reason: str) -> Fits:
    """Whether some field of some message is such a one."""
    return needs(lambda policy: any(wanted(step) for layout in _layouts(policy) for step in layout.steps), reason)


def _means(meaning: int) -> Callable[[Policy], bool]:
    return lambda policy: bool((policy.meaning == meaning).any())


# -- wire format ------------------------------------------------------------------------------------------------------

has_types = has_step(lambda step: step.guard is not None, "nothing in a datagram of {} tells messages apart")
has_delimiters = has_step(lambda step: step.extent is Extent.UNTIL, "no field of {} ends at a delimiter")
has_magic = has_step(lambda step: step.kind is Kind.MAGIC, "{} has no constant bytes")
has_lengths = has_step(
    lambda step: step.counts is not Counts.NOTHING or step.extent is Extent.PREFIX, "no field of {} tells a length"
)
has_values = has_step(
    lambda step: step.allowed is not None or step.kind is Kind.DIGITS, "every number is allowed in {}"
)
has_charsets = has_step(
    lambda step: step.kind is Kind.TEXT and step.charset is not Charset.ANY, "texts of {} may hold any byte"
)
has_sizes = has_step(lambda step: step.extent is not Extent.REST, "a datagram of {} may end anywhere")


def _has_end(layout: Layout) -> bool:
    """Whether bytes may be too many: the last field has an end of its own, or a length says where all end."""
    counts = any(step.counts is not Counts.NOTHING for step in layout.steps)
    return counts or not layout.steps or layout.steps[-1].extent is not Extent.REST


has_ends = needs(
    lambda policy: any(_has_end(layout) for layout in _layouts(policy)),
    "every message of {} takes all bytes that there are",
)
has_wildcards = needs(lambda policy: bool(policy.dialect.spec.topics.wildcards), "{} has no wildcards")
publishes_name_topics = needs(
    lambda policy: any(layout.topic for layout in _layouts(policy) if layout.meaning == "publish"),
    "a publish of {} names no topic",
)

# -- parties, acknowledgement, sending again --------------------------------------------------------------------------

has_speakers = needs(lambda policy: bool((policy.speakers >= 0).any()), "{} does not say who sends what")
broker_acknowledges = needs(lambda policy: bool(policy.broker_acks.any()), "the broker of {} acknowledges nothing")
clients_acknowledge = needs(lambda policy: bool(policy.client_acks.any()), "clients of {} acknowledge nothing")
has_statuses = needs(lambda policy: bool((policy.statuses >= 0).any()), "{} has no status messages")
has_resends = needs(lambda policy: policy.has_resends, "{} says nothing about sending again")


def clients_may_acknowledge(policy: Policy) -> str | None:
    """Where ACKs are the broker's alone, a client's ACK breaks P-SPEAKER."""
    variants = [variant for variants in policy.dialect.spec.messages.values() for variant in variants]
    if any(variant.means == "ack" and variant.sender != "broker" for variant in variants):
        return None
    return f"the ACKs of {policy.dialect.name} are the broker's alone"


def _orders(policy: Policy, *duties: str) -> bool:
    """Whether the dialect says where an ACK stands beside one of these, which ``policy.ack_place`` then tells."""
    orders = policy.dialect.spec.broker.order.values()
    return bool(policy.ack_place.any()) and any("ack" in order and set(duties) & set(order) for order in orders)


orders_acks = needs(
    lambda policy: _orders(policy, "forward", "status"),
    "{} does not say what comes first, an ACK or what else a request brings about",
)
orders_retained = needs(
    lambda policy: _orders(policy, "retained"), "{} does not say what comes first, the ACK or the retained message"
)


def _may_change_retain(policy: Policy) -> bool:
    resend = policy.dialect.spec.client.resend
    fields = {layout.retain for layout in _layouts(policy) if layout.meaning == "publish"}
    return resend is not None and bool(fields & set(resend.may_change))


may_change_retain = needs(_may_change_retain, "{} does not say that a resend may have another retain flag")

# -- delivery, retained messages, topic numbers, the loop -------------------------------------------------------------

can_subscribe = needs(_means(SUBSCRIBE), "nobody can subscribe in {}")
can_unsubscribe = needs(_means(UNSUBSCRIBE), "nobody can unsubscribe in {}")
can_publish = needs(_means(PUBLISH), "nobody can publish in {}")
has_retained = needs(lambda policy: policy.dialect.spec.broker.retained != "none", "the broker of {} retains nothing")
has_payload = needs(
    lambda policy: any(layout.payload for layout in _layouts(policy) if layout.meaning == "publish"),
    "a publish of {} has no payload",
)
keeps_payload = needs(lambda policy: policy.payload_is_kept, "the broker of {} writes payloads itself")
numbers_topics = needs(
    lambda policy: policy.dialect.spec.topics.kind == "number" and not policy.has_sessions and _means(CREATE)(policy),
    "publishers of {} do not number their topics",
)
has_loop = needs(
    lambda policy: bool(policy.cuts) and all(role in policy.dialect.spec.ports for role in LOOP_ROLES),
    "nobody instructs anybody in {}",
)
