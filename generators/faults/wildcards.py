"""Faults of matching: brokers that take a filter for something else than it is, as running ones were seen to do."""

from __future__ import annotations

import re
from collections.abc import Callable

from generators.faults.applicability import all_of, can_subscribe, has_no_sessions, names_topics
from generators.faults.delivery import leave_out, put_with_forwards
from generators.faults.occasions import asked, filters_of, forward_to, matches, new_forwards, stay_silent, strangers
from generators.simulation.activation import Duty, Edit, Label, Out, Sent, Turn
from generators.simulation.fault import Place, fault
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.spec import TopicsSpec

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
    "a wildcard stops at the end of a level, so that subscribers miss what lies deeper",
    follow=stay_silent,
    fits=all_of(can_subscribe, _crosses_levels),
)
def wildcard_one_level(turn: Turn) -> Edit | None:
    lost = [out for out in new_forwards(turn) if _is_lost(turn, out)]
    return (lambda: [label for out in lost for label in leave_out(turn, out)]) if lost else None


def _is_lost(turn: Turn, out: Out) -> bool:
    """Whether all filters that ask for it do so across levels."""
    topic = turn.topic_of(out) or b""
    asking = [text for text in filters_of(turn, out.to) if matches(turn, text, topic)]
    narrow = re.escape((turn.site.dialect.spec.topics.separator or "").encode())
    return not any(_regex(turn, text, b"[^" + narrow + b"]*").fullmatch(topic) for text in asking)


def _regex(turn: Turn, text: bytes, run: bytes, dot: bytes = rb"\.") -> re.Pattern[bytes]:
    """A filter as a regular expression in which a wildcard is ``run`` and a dot is ``dot``."""
    made = re.escape(text).replace(rb"\.", dot)
    for sign in sorted(turn.site.dialect.spec.topics.wildcards, key=len, reverse=True):
        made = made.replace(re.escape(sign.encode()), b"\0")
    return re.compile(made.replace(b"\0", run), re.DOTALL)


def _is_case_sensitive(dialect: Dialect) -> str | None:
    return None if dialect.spec.topics.case_sensitive else f"{dialect.name} does not tell large letters from small ones"


def _taken_for(turn: Turn, is_taken: Callable[[bytes, bytes], bool]) -> Edit | None:
    """Pass a publish on to those whose filters the broker takes for matching ones."""
    publish, topic = asked(turn, "publish"), turn.topic
    if publish is None or topic is None:
        return None
    receivers = [
        node.endpoint
        for node in strangers(turn, publish)
        if any(is_taken(text, topic) for text in filters_of(turn, node.endpoint))
    ]
    return (lambda: [_pass_on(turn, publish, to) for to in receivers]) if receivers else None


def _pass_on(turn: Turn, publish: Sent, to: tuple[str, int]) -> Label:
    extra = forward_to(turn, publish, to)
    put_with_forwards(turn, extra)
    return Label("D-UNEXPECTED", [publish, extra], "no subscription asks for this", turn.topic)


@fault(
    "wildcard-case-blind",
    "D-UNEXPECTED",
    Place.BROKER,
    "large letters are taken for small ones, so that subscribers get messages of other topics",
    fits=all_of(can_subscribe, names_topics, _is_case_sensitive, has_no_sessions),
)
def wildcard_case_blind(turn: Turn) -> Edit | None:
    return _taken_for(turn, lambda text, topic: matches(turn, text.lower(), topic.lower()))


def _has_plain_dots(dialect: Dialect) -> str | None:
    return None if dialect.spec.topics.separator != "." else f"a dot parts the levels of a topic in {dialect.name}"


@fault(
    "wildcard-dot-regex",
    "D-UNEXPECTED",
    Place.BROKER,
    "a dot in a filter is taken for any character, as in a regular expression",
    fits=all_of(can_subscribe, names_topics, _has_plain_dots, has_no_sessions),
)
def wildcard_dot_regex(turn: Turn) -> Edit | None:
    def is_taken(text: bytes, topic: bytes) -> bool:
        if b"." not in text or _regex(turn, text, b".*").fullmatch(topic):
            return False
        return _regex(turn, text, b".*", b".").fullmatch(topic) is not None

    return _taken_for(turn, is_taken)


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
    "subscribers of the second topic are filed under the first (humidity under temperature)",
    also=("D-MISSING",),
    follow=stay_silent,
    fits=all_of(can_subscribe, _has_two_codes),
)
def topic_merged(turn: Turn) -> Edit | None:
    first, second = _two_codes(turn.site.dialect)
    publish = asked(turn, "publish")
    if publish is None or turn.topic not in (first, second):
        return None
    misfiled = {endpoint for endpoint, text in turn.history.subscribed if text == second}
    if turn.topic == second:
        lost = [out for out in turn.of(Duty.FORWARD) if out.to in misfiled and _has_no_other_reason(turn, out, second)]
        return (lambda: [label for out in lost for label in leave_out(turn, out)]) if lost else None
    receivers = [node.endpoint for node in strangers(turn, publish) if node.endpoint in misfiled]
    return (lambda: [_pass_on(turn, publish, to) for to in receivers]) if receivers else None


def _has_no_other_reason(turn: Turn, out: Out, topic: bytes) -> bool:
    """Whether a subscriber asked for a topic by its own code alone."""
    return not any(text != topic and matches(turn, text, topic) for text in filters_of(turn, out.to))
