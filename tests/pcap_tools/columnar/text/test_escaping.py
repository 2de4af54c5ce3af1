"""Text columns are in the notation of ``escaping``, whatever the bytes; numbers are shown as Python shows them."""

from __future__ import annotations

import sys

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.text_kernel import printable
from pcap_tools.dialect import load_dialect
from pcap_tools.escaping import escape
from tests.pcap_tools.columnar.batches import batch_of
from tests.vectors import dialect_of

COLON = Decoder([load_dialect("colon")], columns=["payload"])
PUBLISH = b"\x01\x00t:"


def shown(payloads: list[bytes]) -> list[str]:
    """Payloads as the column has them. A byte is put behind each, so that NULs at its end are not padding."""
    batch = batch_of([PUBLISH + payload + b"." for payload in payloads])
    return [text[:-1] for text in COLON.decode(batch).column("payload").to_pylist()]


PIECES = st.one_of(
    st.binary(max_size=6),
    st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [b"plain text, longer than one block of 32 bytes", b"\\", b"\x7f", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
    ),
)


@given(st.lists(st.lists(PIECES, max_size=8).map(b"".join), max_size=8))
@example([b"\xe2\x82", b"\xe2\x82A", b"\xc0\x80", b"\xf0\x80\x80\x80", b"a" * 31 + b"\xc2\xb0", b"\\" * 40])
def test_any_bytes_are_escaped_as_escape_does(payloads: list[bytes]) -> None:
    assert shown(payloads) == [escape(payload) for payload in payloads]


def test_every_code_point_is_shown_or_escaped_as_escape_does() -> None:
    points = [chr(point).encode("utf-8", "surrogatepass") for point in range(sys.maxunicode + 1)]
    lines = [b"".join(points[first : first + 64]) for first in range(0, len(points), 64)]
    assert shown(lines) == [escape(line) for line in lines]


def test_every_pair_of_bytes_is_escaped_as_escape_does() -> None:
    pairs = [bytes([first, second]) for first in range(256) for second in range(256)]
    assert shown(pairs) == [escape(pair) for pair in pairs]


@given(st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=50))
def test_numbers_are_shown_in_decimal(numbers: list[int]) -> None:
    batch = batch_of([b"\x09\x0c\x00" + number.to_bytes(2, "big") + b"\x00\x01hi" for number in numbers])
    topics = Decoder([load_dialect("mqttsn")], columns=["topic"]).decode(batch).column("topic").to_pylist()
    assert topics == [str(number) for number in numbers]


def test_words_take_the_place_of_numbers_that_have_one() -> None:
    batch = batch_of([b"\x02\x01", b"\x02\x03", b"\x02\xff"])
    filters = Decoder([dialect_of("allwild")], columns=["filter"]).decode(batch).column("filter").to_pylist()
    assert filters == ["kitchen", "back yard", "255"]


def test_every_code_point_is_printable_where_python_says_so() -> None:
    flags = [chr(point).isprintable() for point in range(sys.maxunicode + 1)]
    assert np.unpackbits(printable(), bitorder="little").tolist() == flags
