"""References to texts: a text column before it is written. One int64 a row holds where the text is, or which number to
show.

Bits 0 to 35 are a place in the buffer, bits 36 to 59 a size (of a number: its step in the tables), bits 60 and above
the kind. So adding where a datagram begins turns the reference made for a datagram at 0 into that of the same one
elsewhere.
"""

from __future__ import annotations

PLACE_BITS, SIZE_BITS = 36, 24
PLACE_MASK, SIZE_MASK = (1 << PLACE_BITS) - 1, (1 << SIZE_BITS) - 1
KIND_SHIFT = PLACE_BITS + SIZE_BITS
TEXT, NUMBER, WORD = 0, 1, 2  # WORD: the size is the number of a word
MOST_PLACES, MOST_SIZE = 1 << PLACE_BITS, 1 << SIZE_BITS
ABSENT = -1
FIRST_TAIL = -2  # in plans: -2 and below stand for the texts behind the head


def text_ref(place: int, size: int) -> int:
    return size << PLACE_BITS | place


def number_ref(place: int, step: int) -> int:
    return NUMBER << KIND_SHIFT | step << PLACE_BITS | place


def tail_ref(number: int) -> int:
    return FIRST_TAIL - number
