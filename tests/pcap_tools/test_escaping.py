"""The one notation for bytes from packets: lossless, and nothing in it moves a cursor or hides."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcap_tools.escaping import escape, escape_text, shorten, unescape


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"home/fan", "home/fan"),
        ("14C°".encode(), "14C°"),
        (b"a\x00b\n", r"a\x00b\x0a"),
        (b"\x1b[2J", r"\x1b[2J"),
        (b"\xff\xc2", r"\xff\xc2"),
        (b"C:\\x41", r"C:\\x41"),
        ("‮".encode(), r"\xe2\x80\xae"),
        ("\u200b".encode(), r"\xe2\x80\x8b"),
    ],
)
def test_by_hand(data: bytes, text: str) -> None:
    assert escape(data) == text
    assert unescape(text) == data


@given(st.binary())
def test_nothing_is_lost(data: bytes) -> None:
    assert unescape(escape(data)) == data


@given(st.binary() | st.text().map(str.encode))
def test_nothing_in_it_controls_a_terminal(data: bytes) -> None:
    assert all(unicodedata.category(character)[0] not in "C" for character in escape(data))


def test_file_names_and_long_texts() -> None:
    assert escape_text("evil\x1b.pcap") == r"evil\x1b.pcap"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"
