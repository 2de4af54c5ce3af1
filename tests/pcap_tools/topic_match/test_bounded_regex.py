"""Regular expressions in counted steps: `re` is the judge where it can be asked, hand-written cases where it hangs."""

import re
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pcap_tools.dialect.spec import TopicsSpec
from pcap_tools.topic_match import bounded_regex, readings
from pcap_tools.topic_match.bounded_regex import fullmatch


@pytest.mark.parametrize(
    ("expression", "taken", "left"),
    [
        ("", [""], ["a"]),
        ("room[0-9]+", ["room1", "room12"], ["room", "rooms"]),
        ("a.c", ["abc", "a\nc", "a\u00b0c"], ["ac", "abbc"]),
        ("(ab|c)*d?", ["", "abcab", "cd", "d"], ["a", "abd d", "dd"]),
        ("a{2,3}", ["aa", "aaa"], ["a", "aaaa"]),
        ("a{,1}b{2}c{1,}", ["bbc", "abbcc"], ["aabbc", "abc", "abb"]),
        ("{}a{x", ["{}a{x"], ["a"]),
        ("[]a-c^-]", ["]", "b", "^", "-"], ["d", "[", ""]),
        ("[^\\d/]*", ["", "ab"], ["a1", "/"]),
        (r"\w\s\S\D", ["a -b", "_\t11"[:3] + "x"], ["a -1", "- -b"]),
        (r"\x41\u0042\.\n", ["AB.\n"], ["ABx\n"]),
        (r"^\bhome\b.*$", ["home", "home/fan"], ["homes"]),
        (r"\Aa\B.\Z", ["ab"], ["a/"]),
        ("c++", ["c", "cccc"], ["", "c++"]),
        ("a*+a", [], ["a", "aa"]),
        ("a{1,2}+a", ["aaa"], ["a", "aa", "aaaa"]),
        ("(a+)+b", ["aab"], ["a" * 200]),
        ("(?:a|a)*?b", ["ab", "b"], ["a" * 200]),
    ],
)
def test_what_an_expression_takes(expression: str, taken: list[str], left: list[str]) -> None:
    answers = [fullmatch(expression, text) for text in taken + left]
    assert answers == [True] * len(taken) + [False] * len(left)


BROKEN = [
    "(",
    ")",
    "a)",
    "(+)",
    "[",
    "[]",
    "[a",
    "[b-a]",
    r"[\d-a]",
    r"[\A]",
    "\\",
    r"\q",
    r"\x4",
    r"\x+4",
    r"\Uffffffff",
]
BROKEN += ["*", "a|*", "^*", "a**", "a*??", "{2}", "a{2}{3}", "a{3,2}", "a{4294967295}"]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_expression_takes_nothing(text: str) -> None:
    assert fullmatch(text, text) is False


@pytest.mark.parametrize("text", ["(?=a)a", "(?i)a", r"(a)\1", r"\0", r"\N{DIGIT ONE}", "(a)*+", "(" * 21 + ")" * 21])
def test_what_is_not_supported_has_no_answer(text: str) -> None:
    assert fullmatch(text, "a") is None


def test_large_and_small_letters() -> None:
    for expression, text in [
        ("HOME/[a-f]an", "home/FAN"),
        ("[A-Z]", "k"),
        ("k", "\u212a"),
        ("[r-t]", "\u017f"),
        ("\u00c4", "\u00e4"),
    ]:
        assert (fullmatch(expression, text), fullmatch(expression, text, ignore_case=True)) == (False, True)
    assert fullmatch("[^a]", "A", ignore_case=False) is True
    assert fullmatch("[^a]", "A", ignore_case=True) is False


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("((a{99}|a){9}){9}b", "a" * 200),
        ("[a-z]" * 40, "".join(map(chr, range(256, 456)))),
    ],
)
def test_no_answer_behind_the_last_step(expression: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same expression has an answer where more steps are allowed: so it was the steps that ended it."""
    assert fullmatch(expression, text) is None
    monkeypatch.setattr(bounded_regex, "MOST_STEPS", 10**6)
    assert fullmatch(expression, text) is False


@pytest.mark.parametrize(
    "expression", [".*" * 90 + "b", "(.*)*" * 30 + "b", "(a{1,99}){1,99}b", "((((((a*)*)*)*)*)*)*b", "(|a)+" * 39 + "b"]
)
def test_most_hostile_expressions_have_an_answer(expression: str) -> None:
    """`re` would need longer than there are days."""
    assert fullmatch(expression, "a" * 200) is False


PIECES = [
    "a",
    "b",
    "A",
    "1",
    "/",
    ".",
    "-",
    "\u00e9",
    "\n",
    "*",
    "+",
    "?",
    "{",
    "}",
    "{2}",
    "{1,}",
    "{,2}",
    "[",
    "]",
    "[a-c]",
]
PIECES += [
    "[^a]",
    "(",
    ")",
    "|",
    "^",
    "$",
    "\\",
    r"\d",
    r"\w",
    r"\S",
    r"\b",
    r"\B",
    r"\Z",
    r"\x41",
    "(?:",
    "(a|b)",
    "\u017f",
]
TEXTS = st.text("abA1/-\u00e9\nsS", max_size=5)


@given(expression=st.lists(st.sampled_from(PIECES), max_size=7).map("".join), text=TEXTS, ignore_case=st.booleans())
@example(expression="a{1,2}+a", text="aaa", ignore_case=False)
def test_re_agrees(expression: str, text: str, ignore_case: bool) -> None:
    """Expressions this short cannot harm `re`. Only groups that are repeated possessively have no answer."""
    answer = fullmatch(expression, text, ignore_case)
    if answer is None:
        assert re.search(r"\)[*+?}].*\+|\)\{.*\}\+|\(\?|\\[0-9]", expression)
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = re.fullmatch(expression, text, re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG))
    except (re.error, OverflowError):
        expected = None
    assert answer is (expected is not None)


def test_filters_never_reach_re(monkeypatch: pytest.MonkeyPatch) -> None:
    """`re` compiles patterns of this package, never text of a filter."""
    for name in ("compile", "match", "fullmatch", "search"):
        monkeypatch.delattr(re, name)
    spec = TopicsSpec(separator="/", wildcards={"*": "any-run"})
    assert readings.takes_raw(b"aab", b"(a+)+b", spec) is True
    assert readings.takes_filter(b"aab/x", b"(a+)+b/*", spec, readings.as_regex) is True
