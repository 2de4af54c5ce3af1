"""Whether a filter takes a topic, told from the definition of each wildcard and nothing clever: for the judge alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pcap_tools.dialect.spec import TopicsSpec


def takes(topics: TopicsSpec, text: bytes, topic: bytes) -> bool:
    """
    >>> takes(TopicsSpec(separator="/", wildcards={"#": "rest-levels"}), b"home/#", b"home/fan")
    True
    """
    if not topics.case_sensitive:
        text, topic = text.lower(), topic.lower()
    spans = {sign.encode(): span for sign, span in topics.wildcards.items()}
    if spans.get(text) == "all":
        return True
    runs = [sign for sign, span in spans.items() if span == "any-run"]
    if runs:
        literals = re.split(b"|".join(map(re.escape, runs)), text)
        return re.fullmatch(b".*".join(map(re.escape, literals)), topic, re.DOTALL) is not None
    if not topics.separator:
        return text == topic
    separator = topics.separator.encode()
    return _levels(spans, text.split(separator), topic.split(separator))


def _levels(spans: Mapping[bytes, str], text: list[bytes], topic: list[bytes]) -> bool:
    if not text:
        return not topic
    span = spans.get(text[0])
    if span == "rest-levels":
        return len(text) == 1
    if span == "any-levels":
        return any(_levels(spans, text[1:], topic[skipped:]) for skipped in range(len(topic) + 1))
    return bool(topic) and (span == "one-level" or text[0] == topic[0]) and _levels(spans, text[1:], topic[1:])
