"""A filter, taken apart by the wildcards of a dialect into what a kernel can match: numbers and gaps.

Any-run wildcards stand between bytes, those of levels between levels. Both become the same thing: *parts* of numbers
(bytes; levels, numbered) with a gap between each two, where a gap is any count of numbers, also none.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pcap_tools.dialect.spec import TopicsSpec
from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import unescape

from .match_kernel import ONE, UNKNOWN

Integers: TypeAlias = npt.NDArray[np.int32]


class Mark(Enum):
    """What a wildcard stands for, once it is known where it stands."""

    ONE = "one level"
    GAP = "any number, also none"
    NEVER = "a wildcard where it must not stand: such a filter matches nothing"


Token: TypeAlias = bytes | Mark
_MARKS = {"one-level": Mark.ONE, "any-levels": Mark.GAP, "any-run": Mark.GAP}


class Pattern(NamedTuple):
    """A wild filter. Every topic that it matches begins with `prefix` and ends with `suffix`."""

    prefix: bytes
    suffix: bytes
    parts: list[list[int]]


def raw(text: str | bytes) -> bytes:
    r"""Text as tables have it (`\xNN` for other bytes) as the bytes that were sent; bytes are those already.

    Matching goes by these: in escaped text `*b` would take the byte 1b, which is written `\x1b`.
    """
    if isinstance(text, bytes):
        return text
    return unescape(text) if "\\" in text else text.encode("utf-8", "surrogateescape")


class Rules:
    """Filters that are taken as they stand or hold any-run wildcards; see `LevelRules` for the others."""

    joint = b""  # what stands between two tokens

    def __init__(self, spec: TopicsSpec) -> None:
        self.spans = {sign.encode(): span for sign, span in spec.wildcards.items()}
        self.case_sensitive = spec.case_sensitive
        self._runs = [sign for sign, span in self.spans.items() if span == "any-run"]

    def folded(self, text: bytes) -> bytes:
        return text if self.case_sensitive else text.lower()

    def is_wild(self, text: bytes) -> bool:
        return self.spans.get(text) == "all" or any(sign in text for sign in self._runs)

    def tokens(self, text: bytes) -> list[Token]:
        """Literals and marks in turn. Signs count as they are written, also where case does not."""
        if self.spans.get(text) == "all":
            return [Mark.GAP]
        if not self._runs:
            return [self.folded(text)]
        for sign in self._runs[1:]:
            text = text.replace(sign, self._runs[0])
        tokens: list[Token] = []
        for literal in self.folded(text).split(self._runs[0]):
            tokens += [Mark.GAP, literal]
        return tokens[1:]

    def pattern(self, text: bytes) -> Pattern | bytes | None:
        """A wild filter's pattern, an exact one's only topic (folded), or None for a filter that matches nothing."""
        tokens = self.tokens(text)
        if Mark.NEVER in tokens:
            return None
        if not any(isinstance(token, Mark) for token in tokens):
            return self.folded(text)
        groups = _groups(tokens)
        prefix = self.joint.join(_literals(groups[0]))
        suffix = self.joint.join(_literals(groups[-1][::-1])[::-1])
        return Pattern(prefix, suffix, [self.numbers(group) for group in groups])

    def numbers(self, group: list[Token]) -> list[int]:
        return [byte for token in group if isinstance(token, bytes) for byte in token]

    def split(self, topic: bytes) -> Any:
        """A sequence of what stands for one number each: of bytes here."""
        return topic

    def packed(self, topics: Sequence[Any]) -> Integers:
        """The numbers of all split topics in a row; to be asked after the filters, which give levels their numbers."""
        return np.frombuffer(b"".join(topics), np.uint8).astype(np.int32)


class LevelRules(Rules):
    """Filters whose wildcards stand for whole levels."""

    def __init__(self, spec: TopicsSpec) -> None:
        super().__init__(spec)
        if self._runs:
            raise TopicsharkError("a dialect cannot have wildcards that cross levels and wildcards of levels together")
        if not spec.separator:
            raise TopicsharkError("wildcards of levels need a separator")
        self.joint = spec.separator.encode()
        self._numbers: dict[bytes, int] = {}

    def is_wild(self, text: bytes) -> bool:
        return any(level in self.spans for level in text.split(self.joint))

    def tokens(self, text: bytes) -> list[Token]:
        if self.spans.get(text) == "all":
            return [Mark.GAP]
        levels = self.folded(text).split(self.joint)
        return [self._token(level, at == len(levels) - 1) for at, level in enumerate(levels)]

    def _token(self, level: bytes, is_last: bool) -> Token:
        span = self.spans.get(level)
        if span is None:
            return level
        if span == "rest-levels" and is_last:
            return Mark.GAP
        return _MARKS.get(span, Mark.NEVER)

    def numbers(self, group: list[Token]) -> list[int]:
        known = self._numbers
        return [known.setdefault(token, len(known)) if isinstance(token, bytes) else ONE for token in group]

    def split(self, topic: bytes) -> Any:
        return topic.split(self.joint)

    def packed(self, topics: Sequence[Any]) -> Integers:
        known = self._numbers
        return np.fromiter((known.get(level, UNKNOWN) for levels in topics for level in levels), np.int32)


def rules_for(spec: TopicsSpec) -> Rules:
    """How a dialect reads filters."""
    return Rules(spec) if set(spec.wildcards.values()) <= {"any-run", "all"} else LevelRules(spec)


def _groups(tokens: list[Token]) -> list[list[Token]]:
    """What stands between the gaps."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token is Mark.GAP:
            groups.append([])
        else:
            groups[-1].append(token)
    return groups


def _literals(tokens: list[Token]) -> list[bytes]:
    """Those before the first mark."""
    found: list[bytes] = []
    for token in tokens:
        if not isinstance(token, bytes):
            break
        found.append(token)
    return found
