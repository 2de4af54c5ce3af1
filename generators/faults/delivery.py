"""Faults of delivery: forwards that are missing, too many, wrong, late, in the wrong order or for somebody else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from generators.faults.applicability import (
    all_of,
    can_subscribe,
    can_unsubscribe,
    has_no_sessions,
    has_payload,
    names_topics,
)
from generators.faults.occasions import (
    SOON_NS,
    altered,
    filters_of,
    forward_to,
    keep_suppressing,
    lone_forwards,
    matches,
    new_forwards,
    new_request,
    non_subscribers,
    publish_of,
    publishes_again,
    suppress,
)
from generators.simulation.activation import Activation, Edit, Label, Outgoing, Purpose, Sent
from generators.simulation.fault import Place, fault
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.spec import TopicsSpec
from reference_broker.messages.sending import SECOND

LATE_NS = 3_500_000_000
HELD_NS = 2 * SECOND  # for so long at most: what waits longer for the next message would be late as well

_FINDS_ANYONE = all_of(can_subscribe, has_no_sessions)


@fault(
    "forward-missing",
    "D-MISSING",
    Place.BROKER,
    "a subscriber does not get a message",
    follow=keep_suppressing,
    fits=can_subscribe,
)
def forward_missing(activation: Activation) -> Edit | None:
    forwards = new_forwards(activation)
    return (lambda: leave_out(activation, activation.rng.pick(forwards))) if forwards else None


def leave_out(activation: Activation, out: Outgoing) -> list[Label]:
    """Do not pass on a message to a subscriber."""
    text = f"it is not passed on to {out.to[0]} port {out.to[1]}"
    return suppress(activation, out, Label("D-MISSING", [publish_of(out)], text, activation.topic_of(out)))


@fault(
    "forward-unexpected",
    "D-UNEXPECTED",
    Place.BROKER,
    "a client gets a message without a subscription to it",
    fits=_FINDS_ANYONE,
)
def forward_unexpected(activation: Activation) -> Edit | None:
    publish = new_request(activation, "publish")
    receivers = non_subscribers(activation, publish) if publish and new_forwards(activation) else []
    if publish is None or not receivers:
        return None

    def edit() -> list[Label]:
        extra = forward_to(activation, publish, activation.rng.pick(receivers).endpoint)
        put_with_forwards(activation, extra)
        return [Label("D-UNEXPECTED", [publish, extra], "no subscription asks for this", activation.topic)]

    return edit


def put_with_forwards(activation: Activation, extra: Outgoing) -> None:
    """After the last of the forwards, so that their place before or after the ACK is kept."""
    last = max((at for at, out in enumerate(activation.outgoing) if out.purpose is Purpose.FORWARD), default=None)
    if last is None:
        order = activation.site.dialect.spec.broker.order.get("publish", [])
        first = "ack" not in order or ("forward" in order and order.index("forward") < order.index("ack"))
        last = -1 if first else len(activation.outgoing) - 1
    activation.outgoing.insert(last + 1, extra)


@fault("forward-duplicate", "D-DUPLICATE", Place.BROKER, "a subscriber gets a message twice", fits=can_subscribe)
def forward_duplicate(activation: Activation) -> Edit | None:
    forwards = new_forwards(activation)
    if not forwards:
        return None

    def edit() -> list[Label]:
        out = activation.rng.pick(forwards)
        again = replace(out, delay_ns=SOON_NS)
        activation.outgoing.append(again)
        return [Label("D-DUPLICATE", [publish_of(out), out, again], "this comes twice", activation.topic_of(out))]

    return edit


@fault(
    "forward-altered",
    "D-ALTERED",
    Place.BROKER,
    "a subscriber gets a message with a changed payload",
    fits=all_of(can_subscribe, has_payload),
)
def forward_altered(activation: Activation) -> Edit | None:
    forwards = [out for out in new_forwards(activation) if altered(activation.codec, out.message) is not None]
    if not forwards:
        return None

    def edit() -> list[Label]:
        out = activation.rng.pick(forwards)
        out.datagram = altered(activation.codec, out.message) or out.datagram
        out.message = activation.codec.decode(out.datagram)
        return [
            Label("D-ALTERED", [publish_of(out), out], "the payload has changed on the way", activation.topic_of(out))
        ]

    return edit


@fault(
    "forward-misdirected",
    "D-MISDIRECTED",
    Place.BROKER,
    "a message goes to another client instead of the subscriber",
    fits=_FINDS_ANYONE,
)
def forward_misdirected(activation: Activation) -> Edit | None:
    publish = new_request(activation, "publish")
    forwards = lone_forwards(activation)
    receivers = non_subscribers(activation, publish) if publish and forwards else []
    if publish is None or not receivers:
        return None

    def edit() -> list[Label]:
        out = activation.rng.pick(forwards)
        astray = replace(out, to=activation.rng.pick(receivers).endpoint)
        activation.outgoing[activation.outgoing.index(out)] = astray
        text = f"this goes to another client in place of {out.to[0]} port {out.to[1]}"
        return [Label("D-MISDIRECTED", [publish, astray], text, activation.topic)]

    return edit


def _note_overtaking(activation: Activation) -> list[Label]:
    """What comes while a message is late overtakes it: that is to be seen, too."""
    labels = []
    late: dict[object, list[tuple[int, Outgoing]]] = activation.memory.get("late", {})
    for out in new_forwards(activation) if late else ():
        for due, before in late.get(_stream(activation, out), ()):
            if activation.now < due and before.datagram != out.datagram:
                shown_by: list[Outgoing | Sent] = [publish_of(before), before, publish_of(out), out]
                labels.append(Label("D-REORDERED", shown_by, "this overtakes a late message", activation.topic_of(out)))
    return labels


def _stream(activation: Activation, out: Outgoing) -> object:
    """The messages that have an order among each other: one publisher's, under one topic, to one subscriber."""
    return publish_of(out).transit.src, activation.topic_of(out), out.to


@fault(
    "forward-late",
    "D-LATE",
    Place.BROKER,
    "a subscriber gets a message seconds late; the next of its topic may overtake it",
    also=("D-REORDERED",),
    follow=_note_overtaking,
    fits=can_subscribe,
)
def forward_late(activation: Activation) -> Edit | None:
    late: dict[object, list[tuple[int, Outgoing]]] = activation.memory.setdefault("late", {})
    forwards = [
        out
        for out in lone_forwards(activation)
        if all(due <= activation.now for due, _ in late.get(_stream(activation, out), ()))
    ]
    if not forwards:
        return None

    def edit() -> list[Label]:
        out = activation.rng.pick(forwards)
        out.delay_ns = LATE_NS
        late.setdefault(_stream(activation, out), []).append((activation.now + LATE_NS, out))
        return [Label("D-LATE", [publish_of(out), out], "this comes seconds late", activation.topic_of(out))]

    return edit


def _release(activation: Activation) -> None:
    """What was held back leaves after the next message of its kind; never if it waited too long for that, or if nobody
    could tell the two from each other."""
    keep_suppressing(activation)
    held: dict[object, tuple[int, Outgoing, Label]] = activation.memory.get("held", {})
    for out in lone_forwards(activation) if held else ():
        until, before, label = held.pop(_stream(activation, out), (0, out, None))
        if label is not None and activation.now < until and before.datagram != out.datagram:
            activation.outgoing.insert(activation.outgoing.index(out) + 1, before)
            label.rule, label.text = "D-REORDERED", "these come in the other order"
            label.shown_by += [before, publish_of(out), out]


@fault(
    "forward-reordered",
    "D-REORDERED",
    Place.BROKER,
    "two messages of one publisher and topic arrive in reverse order; without a second message, the first is missing",
    also=("D-MISSING",),
    follow=_release,
    fits=can_subscribe,
)
def forward_reordered(activation: Activation) -> Edit | None:
    held = activation.memory.setdefault("held", {})
    forwards = [
        out
        for out in lone_forwards(activation)
        if publishes_again(activation, publish_of(out), activation.topic_of(out) or b"", HELD_NS)
        and _stream(activation, out) not in held
    ]
    if not forwards:
        return None

    def edit() -> list[Label]:
        out = activation.rng.pick(forwards)
        labels = leave_out(activation, out)
        held[_stream(activation, out)] = activation.now + HELD_NS, out, labels[0]
        return labels

    return edit


@fault(
    "forward-after-unsubscribe",
    "D-AFTER-UNSUBSCRIBE",
    Place.BROKER,
    "a client gets a message after its unsubscription",
    fits=all_of(_FINDS_ANYONE, can_unsubscribe),
)
def forward_after_unsubscribe(activation: Activation) -> Edit | None:
    publish, topic = new_request(activation, "publish"), activation.topic
    if publish is None or topic is None:
        return None
    receivers = {out.to for out in activation.of(Purpose.FORWARD)} | {publish.transit.src}
    left = {
        endpoint: gone
        for (endpoint, text), gone in activation.history.unsubscribed.items()
        if endpoint not in receivers and matches(activation, text, topic)
    }
    if not left:
        return None

    def edit() -> list[Label]:
        endpoint = activation.rng.pick(list(left))
        extra = forward_to(activation, publish, endpoint)
        put_with_forwards(activation, extra)
        shown_by: list[Outgoing | Sent] = [left[endpoint], publish, extra]
        return [Label("D-AFTER-UNSUBSCRIBE", shown_by, "its subscription has ended", topic)]

    return edit


CROSSING = frozenset({"any-run", "rest-levels", "any-levels"})
NO_TOPIC = b"none"  # a code's name for no topic at all


def _crosses_levels(dialect: Dialect) -> str | None:
    topics = dialect.spec.topics
    if topics.separator and CROSSING & set(topics.wildcards.values()):
        return None
    return f"{dialect.name} has no wildcard that crosses levels"


@fault(
    "wildcard-one-level",
    "D-MISSING",
    Place.BROKER,
    "a wildcard stops at the end of a level, so subscribers miss deeper topics",
    follow=keep_suppressing,
    fits=all_of(can_subscribe, _crosses_levels),
)
def wildcard_one_level(activation: Activation) -> Edit | None:
    lost = [out for out in new_forwards(activation) if _is_lost(activation, out)]
    return (lambda: [label for out in lost for label in leave_out(activation, out)]) if lost else None


def _is_lost(activation: Activation, out: Outgoing) -> bool:
    """Whether all filters that ask for it do so across levels."""
    topic = activation.topic_of(out) or b""
    asking = [text for text in filters_of(activation, out.to) if matches(activation, text, topic)]
    narrow = re.escape((activation.site.dialect.spec.topics.separator or "").encode())
    return not any(_regex(activation, text, b"[^" + narrow + b"]*").fullmatch(topic) for text in asking)


def _regex(activation: Activation, text: bytes, run: bytes, dot: bytes = rb"\.") -> re.Pattern[bytes]:
    """A filter as a regular expression in which a wildcard is ``run`` and a dot is ``dot``."""
    made = re.escape(text).replace(rb"\.", dot)
    for sign in sorted(activation.site.dialect.spec.topics.wildcards, key=len, reverse=True):
        made = made.replace(re.escape(sign.encode()), b"\0")
    return re.compile(made.replace(b"\0", run), re.DOTALL)


def _is_case_sensitive(dialect: Dialect) -> str | None:
    return None if dialect.spec.topics.case_sensitive else f"{dialect.name} does not tell large letters from small ones"


def _taken_for(activation: Activation, is_taken: Callable[[bytes, bytes], bool]) -> Edit | None:
    """Pass a publish on to those whose filters the broker takes for matching ones."""
    publish, topic = new_request(activation, "publish"), activation.topic
    if publish is None or topic is None:
        return None
    receivers = [
        node.endpoint
        for node in non_subscribers(activation, publish)
        if any(is_taken(text, topic) for text in filters_of(activation, node.endpoint))
    ]
    return (lambda: [_pass_on(activation, publish, to) for to in receivers]) if receivers else None


def _pass_on(activation: Activation, publish: Sent, to: tuple[str, int]) -> Label:
    extra = forward_to(activation, publish, to)
    put_with_forwards(activation, extra)
    return Label("D-UNEXPECTED", [publish, extra], "no subscription asks for this", activation.topic)


@fault(
    "wildcard-case-blind",
    "D-UNEXPECTED",
    Place.BROKER,
    "matching ignores case, so subscribers get messages of other topics",
    fits=all_of(can_subscribe, names_topics, _is_case_sensitive, has_no_sessions),
)
def wildcard_case_blind(activation: Activation) -> Edit | None:
    return _taken_for(activation, lambda text, topic: matches(activation, text.lower(), topic.lower()))


def _has_plain_dots(dialect: Dialect) -> str | None:
    return None if dialect.spec.topics.separator != "." else f"a dot parts the levels of a topic in {dialect.name}"


@fault(
    "wildcard-dot-regex",
    "D-UNEXPECTED",
    Place.BROKER,
    "a dot in a filter matches any character, as in a regular expression",
    fits=all_of(can_subscribe, names_topics, _has_plain_dots, has_no_sessions),
)
def wildcard_dot_regex(activation: Activation) -> Edit | None:
    def is_taken(text: bytes, topic: bytes) -> bool:
        if b"." not in text or _regex(activation, text, b".*").fullmatch(topic):
            return False
        return _regex(activation, text, b".*", b".").fullmatch(topic) is not None

    return _taken_for(activation, is_taken)


def _two_codes(dialect: Dialect) -> list[bytes]:
    """The first two topics that the dialect has words for."""
    published = [layout for layout in dialect.forms[0].layouts if layout.meaning == "publish"]
    steps = [step for layout in published if (step := layout.step(layout.topic or "")) is not None]
    names = dict.fromkeys(name.encode() for step in steps for _, name in step.names)
    return [name for name in names if name != NO_TOPIC][:2]


def _has_two_codes(dialect: Dialect) -> str | None:
    topics: TopicsSpec = dialect.spec.topics
    return None if topics.kind == "code" and len(_two_codes(dialect)) == 2 else f"{dialect.name} has no two topic codes"


@fault(
    "topic-merged",
    "D-UNEXPECTED",
    Place.BROKER,
    "subscriptions to the second topic count as subscriptions to the first (humidity as temperature)",
    also=("D-MISSING",),
    follow=keep_suppressing,
    fits=all_of(can_subscribe, _has_two_codes),
)
def topic_merged(activation: Activation) -> Edit | None:
    first, second = _two_codes(activation.site.dialect)
    publish = new_request(activation, "publish")
    if publish is None or activation.topic not in (first, second):
        return None
    misfiled = {endpoint for endpoint, text in activation.history.subscribed if text == second}
    if activation.topic == second:
        lost = [
            out
            for out in activation.of(Purpose.FORWARD)
            if out.to in misfiled and _has_no_other_reason(activation, out, second)
        ]
        return (lambda: [label for out in lost for label in leave_out(activation, out)]) if lost else None
    receivers = [node.endpoint for node in non_subscribers(activation, publish) if node.endpoint in misfiled]
    return (lambda: [_pass_on(activation, publish, to) for to in receivers]) if receivers else None


def _has_no_other_reason(activation: Activation, out: Outgoing, topic: bytes) -> bool:
    """Whether a subscriber asked for a topic by its own code alone."""
    return not any(text != topic and matches(activation, text, topic) for text in filters_of(activation, out.to))
