"""Filters as regular expressions, as some brokers take them. For findings only: nothing else here may use `re`.

The text comes from the network, and Python's `re` backtracks. So an expression is tried only if the texts are short and
the ways to match them can be counted and are few; else the answer is None: not known.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

from pcap_tools.dialect.spec import TopicsSpec

from .patterns import Mark, Rules, Token, rules_for

LONGEST = 200
MOST_WAYS = 10**6
_REPEATS = b"*+?{|"  # each multiplies the ways to match by at most the length of the topic
# what breaks that count: a group that is repeated or looks around, a reference to a group
_UNCOUNTED = re.compile(rb"\)[*+?{]|\(\?|\\[1-9]")
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
    literals = rules.joint.join(token for token in tokens if isinstance(token, bytes))
    ways = sum(isinstance(token, Mark) for token in tokens)
    if spell is as_regex:
        if _UNCOUNTED.search(literals):
            return None
        ways += _repeats(literals)
    return _fullmatch(topic, _expression(rules, tokens, spell, may_be_empty), ways, spec)


def takes_raw(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool | None:
    """The same for the filter as it stands, its wildcards too."""
    return None if _UNCOUNTED.search(filter_) else _fullmatch(topic, filter_, _repeats(filter_), spec)


def _repeats(text: bytes) -> int:
    return sum(text.count(sign) for sign in _REPEATS)


def _fullmatch(topic: bytes, expression: bytes, ways: int, spec: TopicsSpec) -> bool | None:
    """An expression that is none takes nothing. A dot is a character, not a byte."""
    text, pattern = (data.decode("utf-8", "surrogateescape") for data in (topic, expression))
    if max(len(text), len(pattern)) > LONGEST or max(len(text), 2) ** ways > MOST_WAYS:
        return None
    flags = re.DOTALL if spec.case_sensitive else re.DOTALL | re.IGNORECASE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern, flags).fullmatch(text) is not None
    except (re.error, OverflowError, RecursionError):
        return False


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
