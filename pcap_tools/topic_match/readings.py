"""Which wrong reading of a filter explains what a broker did, in a sentence for whoever has to mend it.

A broker passed a topic on to a subscriber who did not ask for it, or kept from one what they did ask for. Each reading
here is a mistake that brokers make. The first that explains the case is told: the narrow ones come first.

Topics and filters come from the network: the work for a pair is bounded by MOST_EXPLAINED and `bounded_regex`, that for
a bucket of topics by MOST_PAIRS.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pcap_tools.dialect.spec import TopicsSpec

from .bounded_regex import fullmatch
from .matching import is_wild, matches
from .patterns import Mark, Rules, Token, raw, rules_for

STOPS = "a wildcard stops at the end of a level"
CROSSES = "a wildcard crosses levels"
CASE_BLIND = "large and small letters are taken for the same"
CASE_TOLD = "large and small letters are told apart"
DOT = "a dot stands for any character, as in a regular expression"
REGEX = "the filter is taken for a regular expression"
PARENT = "a wildcard also matches the parent level"
NOTHING = "a wildcard also matches nothing"
SOMETHING = "a wildcard has to stand for something: it matches neither nothing nor the parent level"
PREFIX = "the filter is taken as a prefix"
EXACT = "wildcards are not understood: only the exact topic is taken"

MOST_EXPLAINED = 500  # bytes of a topic or a filter
LONGEST = 200  # of texts that are tried in many ways
MOST_SIGNS = 20  # wildcards that are left out one by one
MOST_PAIRS = 10_000

Reading = Callable[[bytes, bytes, TopicsSpec], bool]


class WrongReadings:
    """`wrong_reading` for a bucket of topics: each pair is tried once, and no more than MOST_PAIRS of them are."""

    def __init__(self, spec: TopicsSpec) -> None:
        self._spec = spec
        self._known: dict[tuple[str, str, bool], str | None] = {}

    def explain(self, topic: str, filter_: str, delivered: bool) -> str | None:
        pair = topic, filter_, delivered
        if pair not in self._known and len(self._known) < MOST_PAIRS:
            self._known[pair] = wrong_reading(topic, filter_, self._spec, delivered)
        return self._known.get(pair)


def wrong_reading(topic: str | bytes, filter_: str | bytes, spec: TopicsSpec, delivered: bool) -> str | None:
    """Why a broker passed on a topic that a filter does not match (`delivered`), or did not where it does.

    None: no reading explains it, or a text is longer than MOST_EXPLAINED.

    >>> wrong_reading("home/fan/speed", "home/*", TopicsSpec(separator="/", wildcards={"*": "any-run"}), False)
    'a wildcard stops at the end of a level'
    """
    text, wanted = raw(topic), raw(filter_)
    if max(len(text), len(wanted)) > MOST_EXPLAINED or _takes(text, wanted, spec) == delivered:
        return None
    readings = _TOO_MUCH if delivered else _TOO_LITTLE
    return next((sentence for sentence, explains in readings if explains(text, wanted, spec)), None)


def _takes(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return len(matches([topic], [filter_], spec)[1]) > 0


def _levels(text: bytes, spec: TopicsSpec) -> list[bytes]:
    return text.split(spec.separator.encode()) if spec.separator else [text]


def _joined(levels: list[bytes], spec: TopicsSpec) -> bytes:
    return (spec.separator or "").encode().join(levels)


def _signs(levels: list[bytes], spec: TopicsSpec) -> list[int]:
    """Which levels are nothing but a wildcard."""
    signs = {sign.encode() for sign in spec.wildcards}
    return [at for at, level in enumerate(levels) if level in signs]


def _is_deeper(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return len(_levels(topic, spec)) > len(_levels(filter_, spec))


# -- passed on, and the filter does not ask for it ---------------------------------------------------------------------


def _crosses(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    wide = {sign: "any-levels" if span == "one-level" else span for sign, span in spec.wildcards.items()}
    return _is_deeper(topic, filter_, spec) and _takes(topic, filter_, spec.model_copy(update={"wildcards": wide}))


def _is_case_blind(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return spec.case_sensitive and _takes(_small(topic), _small(filter_), spec)


def _small(text: bytes) -> bytes:
    return text.decode("utf-8", "surrogateescape").lower().encode("utf-8", "surrogateescape")


def _has_dots(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return b"." in filter_ and takes_filter(topic, filter_, spec, escaped_but_dots) is True


def _is_regex(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return takes_filter(topic, filter_, spec, as_regex) is True


def _matches_parent(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    levels = _levels(filter_, spec)
    return (
        len(levels) > 1 and len(levels) - 1 in _signs(levels, spec) and _takes(topic, _joined(levels[:-1], spec), spec)
    )


def _matches_nothing(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    """Each wildcard left out with its separator, and all of them."""
    levels = _levels(filter_, spec)
    signs = _signs(levels, spec)
    if len(levels) == 1 or not 0 < len(signs) <= MOST_SIGNS or len(filter_) > LONGEST:
        return False
    fewer = [_joined(levels[:at] + levels[at + 1 :], spec) for at in signs]
    none = _joined([level for at, level in enumerate(levels) if at not in signs], spec)
    return len(matches([topic], [*fewer, none], spec)[1]) > 0


def _is_prefix(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    if len(topic) > LONGEST:
        return rules_for(spec).folded(topic).startswith(rules_for(spec).folded(filter_))
    return len(matches([topic[:end] for end in range(len(topic))], [filter_], spec)[1]) > 0


def _is_raw_regex(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return takes_raw(topic, filter_, spec) is True


# -- asked for, and not passed on --------------------------------------------------------------------------------------


def _stops(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    """The filter takes a deeper topic, so some wildcard went across levels."""
    is_all = spec.wildcards.get(filter_.decode("utf-8", "replace")) == "all"
    return not is_all and _is_deeper(topic, filter_, spec)


def _needs_something(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return is_wild(filter_, spec) and takes_filter(topic, filter_, spec, may_be_empty=False) is False


def _tells_case(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return not spec.case_sensitive and not _takes(topic, filter_, spec.model_copy(update={"case_sensitive": True}))


def _fails_as_regex(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return has_special(filter_, spec) and takes_filter(topic, filter_, spec, as_regex) is False


def _is_exact(topic: bytes, filter_: bytes, spec: TopicsSpec) -> bool:
    return topic != filter_ and is_wild(filter_, spec)


_TOO_MUCH: list[tuple[str, Reading]] = [
    (CROSSES, _crosses),
    (CASE_BLIND, _is_case_blind),
    (DOT, _has_dots),
    (REGEX, _is_regex),
    (PARENT, _matches_parent),
    (NOTHING, _matches_nothing),
    (PREFIX, _is_prefix),
    (REGEX, _is_raw_regex),
]
_TOO_LITTLE: list[tuple[str, Reading]] = [
    (STOPS, _stops),
    (SOMETHING, _needs_something),
    (CASE_TOLD, _tells_case),
    (REGEX, _fails_as_regex),
    (EXACT, _is_exact),
]


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
