r"""Regular expressions from the network: read as Python's `re` reads them, matched in a bounded number of steps.

`re` tries one way to match after the other, and a short hostile expression has more ways than anyone can wait for. Here
every way is followed at once. A set of positions in the text is one integer: bit 3 is the position behind the third
character. Each piece of an expression turns the positions where it may start into those where it may end. Each step is
counted; an expression that needs more than MOST_STEPS gets no answer.

Not supported, so without an answer too: lookaround, flags and names (`(?...`, except `(?:`), references to groups and
octal escapes (`\1`), `\N{...}`, possessive repeats of groups (`(a)*+`), more than MOST_DEPTH nested groups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

MOST_STEPS = 5_000  # about a millisecond
MOST_DEPTH = 20
_UNLIMITED = 2**32 - 1  # as `re` has it
_COUNTS = re.compile(r"\{(?!\})([0-9]*)(,?)([0-9]*)\}")

Positions: TypeAlias = int
Piece: TypeAlias = Callable[[Positions], Positions]


class _NotAnExpressionError(Exception):
    pass


class _NoAnswerError(Exception):
    pass


def fullmatch(expression: str, text: str, ignore_case: bool = False) -> bool | None:
    r"""Whether an expression matches a whole text; None if that is not known. A dot stands for any character.

    >>> fullmatch("room[0-9]+", "room12"), fullmatch("room(", "room("), fullmatch("(a+)+b" * 40, "a" * 200)
    (True, False, False)
    >>> fullmatch(r"(a)\1", "aa") is None
    True
    """
    try:
        matched = _Parser(expression, _Text(text, ignore_case)).parse()(1)
    except _NotAnExpressionError:
        return False
    except _NoAnswerError:
        return None
    return bool(matched >> len(text) & 1)


class _Text:
    """Where which characters stand, and how many steps are left."""

    def __init__(self, text: str, ignore_case: bool) -> None:
        self.steps_left = MOST_STEPS
        self.begin, self.end = 1, 1 << len(text)
        self.anywhere = self.end - 1  # before any character
        self.last_newline = self.end >> 1 if text.endswith("\n") else 0
        self._fold = _small if ignore_case else str
        self._forms = [
            _places_by_character(map(form, text)) for form in ((str, _large, _small) if ignore_case else (str,))
        ]

    def spend(self, steps: int = 1) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise _NoAnswerError

    def places(self, character: str) -> Positions:
        self.spend()
        return self._forms[-1].get(self._fold(character), 0)

    def places_between(self, low: str, high: str) -> Positions:
        found = 0
        for form in self._forms:
            found |= self._places_where(lambda character: low <= character <= high, form)
        return found

    def places_of_class(self, holds: Callable[[str], bool]) -> Positions:
        return self._places_where(holds, self._forms[0])

    def _places_where(self, holds: Callable[[str], bool], form: dict[str, Positions]) -> Positions:
        self.spend(len(form))
        return sum(places for character, places in form.items() if holds(character))


def _places_by_character(text: Iterable[str]) -> dict[str, Positions]:
    found: dict[str, Positions] = {}
    for at, character in enumerate(text):
        found[character] = found.get(character, 0) | 1 << at
    return found


def _small(character: str) -> str:
    """The same for all that `re.IGNORECASE` takes for the same: k is also the small letter of the Kelvin sign."""
    return _large(character.lower()[0]).lower()


def _large(character: str) -> str:
    large = character.upper()
    return large if len(large) == 1 else character


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class _Parser:
    """An expression as one piece that is made of smaller ones."""

    def __init__(self, expression: str, text: _Text) -> None:
        self._expression, self._text = expression, text
        self._at = self._depth = 0

    def parse(self) -> Piece:
        piece = self._choice()
        if self._at < len(self._expression):
            raise _NotAnExpressionError("a parenthesis that nothing opens")
        return piece

    def _choice(self) -> Piece:
        branches = [self._sequence()]
        while self._has("|"):
            branches.append(self._sequence())
        return self._either(branches) if len(branches) > 1 else branches[0]

    def _sequence(self) -> Piece:
        pieces = []
        while self._next() not in ("", "|", ")"):
            pieces.append(self._repeated())
        return self._one_after_another(pieces)

    def _repeated(self) -> Piece:
        if self._counts():
            raise _NotAnExpressionError("nothing to repeat")
        is_group, assertion = self._next() == "(", self._assertion()
        piece = assertion or self._single()
        counts = self._counts()
        if not counts:
            return piece
        if assertion:
            raise _NotAnExpressionError("nothing to repeat")
        is_possessive = self._has("+")
        if not is_possessive:
            self._has("?")  # tries the shortest way first: they are the same ways
        if self._counts():
            raise _NotAnExpressionError("multiple repeat")
        if is_possessive and is_group:
            raise _NoAnswerError
        return (self._repeat_possessive if is_possessive else self._repeat)(piece, *counts)

    def _counts(self) -> tuple[int, int] | None:
        """How often at least and at most, if a repeat stands here."""
        for sign, counts in (("*", (0, _UNLIMITED)), ("+", (1, _UNLIMITED)), ("?", (0, 1))):
            if self._has(sign):
                return counts
        found = _COUNTS.match(self._expression, self._at)
        if not found:
            return None
        self._at = found.end()
        low, comma, high = found.groups()
        least = int(low or 0)
        most = int(high) if high else _UNLIMITED if comma else least
        if _UNLIMITED in (least, int(high or 0)) or not least <= most <= _UNLIMITED:
            raise _NotAnExpressionError("counts of a repeat")
        return least, most

    def _assertion(self) -> Piece | None:
        text = self._text
        if self._has("^") or self._has("\\A"):
            return self._where(text.begin)
        if self._has("$"):
            return self._where(text.end | text.last_newline)
        if self._has("\\Z"):
            return self._where(text.end)
        for sign, turned in (
            ("\\b", 0),
            ("\\B", text.anywhere and text.anywhere | text.end),
        ):  # `re` finds neither in no text
            if self._has(sign):
                words = text.places_of_class(_is_word)
                return self._where(words ^ words << 1 ^ turned)
        return None

    def _single(self) -> Piece:
        """A group or one character."""
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._step_over(self._set())
        if character == ".":
            return self._step_over(self._text.anywhere)
        if character == "\\":
            escaped = self._escape()
            return self._step_over(escaped if isinstance(escaped, int) else self._text.places(escaped))
        return self._step_over(self._text.places(character))

    def _group(self) -> Piece:
        if self._depth == MOST_DEPTH or (self._next() == "?" and not self._has("?:")):
            raise _NoAnswerError
        self._depth += 1
        piece = self._choice()
        self._depth -= 1
        if not self._has(")"):
            raise _NotAnExpressionError("a parenthesis that nothing closes")
        return piece

    def _set(self) -> Positions:
        is_turned = self._has("^")
        found, is_first = 0, True
        while is_first or not self._has("]"):
            is_first = False
            low = self._set_member()
            if self._next() == "-" and self._expression[self._at + 1 : self._at + 2] not in ("", "]"):
                self._take()
                high = self._set_member()
                if isinstance(low, int) or isinstance(high, int) or low > high:
                    raise _NotAnExpressionError("a range of characters")
                found |= self._text.places_between(low, high)
            else:
                found |= low if isinstance(low, int) else self._text.places(low)
        return self._text.anywhere & ~found if is_turned else found

    def _set_member(self) -> str | Positions:
        if self._has("\\b"):
            return "\b"
        character = self._take()
        return self._escape() if character == "\\" else character

    def _escape(self) -> str | Positions:
        """A character, or the places of a class of characters."""
        sign = self._take()
        if sign in _CLASSES:
            return self._text.places_of_class(_CLASSES[sign])
        if sign.lower() in _CLASSES:
            return self._text.anywhere & ~self._text.places_of_class(_CLASSES[sign.lower()])
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if sign in _DIGITS:
            digits = "".join(self._take() for _ in range(_DIGITS[sign]))
            try:
                return chr(int(digits if digits.isalnum() else "", 16))
            except (ValueError, OverflowError):
                raise _NotAnExpressionError("an escape without its digits") from None
        if sign in "0123456789N":
            raise _NoAnswerError
        if sign.isascii() and sign.isalpha():
            raise _NotAnExpressionError("an escape that means nothing")
        return sign

    def _next(self) -> str:
        return self._expression[self._at : self._at + 1]

    def _has(self, sign: str) -> bool:
        """Whether this stands here; then it is read."""
        if not self._expression.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _take(self) -> str:
        character = self._next()
        if not character:
            raise _NotAnExpressionError("it ends too early")
        self._at += 1
        return character

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _where(self, places: Positions) -> Piece:
        def run(starts: Positions) -> Positions:
            self._text.spend()
            return starts & places

        return run

    def _step_over(self, places: Positions) -> Piece:
        def run(starts: Positions) -> Positions:
            self._text.spend()
            return (starts & places) << 1

        return run

    def _one_after_another(self, pieces: list[Piece]) -> Piece:
        def run(starts: Positions) -> Positions:
            self._text.spend()
            for piece in pieces:
                if not starts:
                    break
                starts = piece(starts)
            return starts

        return run

    def _either(self, branches: list[Piece]) -> Piece:
        def run(starts: Positions) -> Positions:
            ends = 0
            for branch in branches:
                ends |= branch(starts)
            return ends

        return run

    def _repeat(self, piece: Piece, least: int, most: int) -> Piece:
        def run(starts: Positions) -> Positions:
            self._text.spend()
            for _ in range(least):
                before, starts = starts, piece(starts)
                if starts == before:
                    break
            reached = fresh = starts
            for _ in range(most - least):
                fresh = piece(fresh) & ~reached
                if not fresh:
                    break
                reached |= fresh
            return reached

        return run

    def _repeat_possessive(self, character: Piece, least: int, most: int) -> Piece:
        """Goes on as long as it can, and never gives anything back."""

        def run(starts: Positions) -> Positions:
            ends = 0
            for count in range(most):
                after = character(starts)
                if count >= least:
                    ends |= starts & ~(after >> 1)
                starts = after
                if not starts:
                    break
            return ends | starts

        return run


_CLASSES: dict[str, Callable[[str], bool]] = {"d": str.isdecimal, "s": str.isspace, "w": _is_word}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DIGITS = {"x": 2, "u": 4, "U": 8}
