"""Filters as regular expressions, as some brokers take them. For findings only.

The text comes from the network: `bounded_regex` matches it, never `re`. An answer of None: not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pcap_tools.dialect.spec import TopicsSpec

from .bounded_regex import fullmatch
from .patterns import Mark, Rules, Token, rules_for

LONGEST = 200
_SPECIAL = frozenset(b"\\^$*+?{}[]|()")

Spelling = Callable[[bytes], bytes]


def as_regex(literal: bytes) -> bytes:
    """Every character means what it means in a regular expression."""
    return literal


def escaped_but_dots(literal: bytes) -> bytes:
    """Only a dot does."""
    return re.escape(literal).replace(rb"\.", b".")


def has_special(filter_: bytes, spec: TopicsSpec) -> bool:
    """Whether a literal would not match itself, or might not."""
    return any(isinstance(token, bytes) and _SPECIAL & set(token) for token in rules_for(spec).tokens(filter_))


def takes_filter(
    topic: bytes, filter_: bytes, spec: TopicsSpec, spell: Spelling = re.escape, may_be_empty: bool = True
) -> bool | None:
    """Whether a filter takes a topic when its literals are spelled like this and its wildcards understood."""
    rules = rules_for(spec)
    tokens = rules.tokens(filter_)
    if Mark.NEVER in tokens:
        return None
    return _fullmatch(topic, _expression(rules, tokens, spell, may_be_empty), spec)


def takes_raw(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool | None:
    """The same for the filter as it stands, its wildcards too."""
    return _fullmatch(topic, filter_, spec)


def _fullmatch(topic: bytes, expression: bytes, spec: TopicsSpec) -> bool | None:
    """An expression that is none takes nothing. A dot is a character, not a byte."""
    text, pattern = (data.decode("utf-8", "surrogateescape") for data in (topic, expression))
    if max(len(text), len(pattern)) > LONGEST:
        return None
    return fullmatch(pattern, text, ignore_case=not spec.case_sensitive)


def _expression(rules: Rules, tokens: list[Token], spell: Spelling, may_be_empty: bool) -> bytes:
    if not rules.joint:
        run = b".*" if may_be_empty else b".+"
        return b"".join(spell(token) if isinstance(token, bytes) else run for token in tokens)
    joint, level = spell(rules.joint), b".*"
    if len(rules.joint) == 1:
        level = b"[^" + re.escape(rules.joint) + b"]*"
    if not may_be_empty or all(token is Mark.GAP for token in tokens):
        return joint.join(_spelled(token, spell, level) for token in tokens)
    made, glue = b"", b""
    for token in tokens:
        if token is not Mark.GAP:
            made, glue = made + glue + _spelled(token, spell, level), joint
        else:
            made += b"(?:" + joint + b".*)?" if glue else b"(?:.*" + joint + b")?"
    return made


def _spelled(token: Token, spell: Spelling, level: bytes) -> bytes:
    if isinstance(token, bytes):
        return spell(token)
    return level if token is Mark.ONE else b".*"
