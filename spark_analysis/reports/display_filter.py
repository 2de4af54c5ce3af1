"""Wireshark display filters that show the packets behind findings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..results.verdicts import Finding

MOST_FRAMES = 40
_BY_FAMILY = {"W": "pubsub.error", "R": "pubsub.resend_of"}


def frames_filter(frames: Collection[int]) -> str:
    """
    >>> frames_filter([140, 123, 123])
    'frame.number in {123, 140}'
    """
    return "frame.number in {" + ", ".join(str(frame) for frame in sorted(set(frames))[:MOST_FRAMES]) + "}"


def traffic_filter(findings: Sequence[Finding]) -> str | None:
    """More of the same traffic, where our dissector's fields can tell it: the one topic, or the kind of trouble."""
    topics = {finding.topic for finding in findings}
    if len(topics) == 1 and (topic := topics.pop()) and _is_plain(topic):
        return f'pubsub.topic == "{topic}"'
    families = {finding.rule.partition("-")[0] for finding in findings}
    return _BY_FAMILY.get(families.pop()) if len(families) == 1 else None


def _is_plain(topic: str) -> bool:
    """Whether it stands for itself between the quotes of a filter."""
    return topic.isascii() and topic.isprintable() and not set(topic) & set('"\\')
