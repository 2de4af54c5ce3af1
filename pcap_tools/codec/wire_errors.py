"""What can be wrong with one datagram. Every decoder gives the same code at the same byte offset.

Which of them end the reading and which are only noted is told in ``docs/decoding.md``; the first one counts.
"""

from enum import StrEnum


class WireError(StrEnum):
    """Codes of the ``error`` column; ``error_offset`` is the byte given after each."""

    EMPTY = "empty"  # no byte at all; 0
    UNKNOWN_TYPE = "unknown-type"  # no message is selected by this value; start of the deciding field
    INCOMPLETE = "incomplete"  # the datagram ends inside this field; start of the field
    NO_DELIMITER = "no-delimiter"  # the delimiter that ends this field never comes; start of the field
    BAD_MAGIC = "bad-magic"  # constant bytes that differ; start of the field
    BAD_LENGTH = "bad-length"  # a length that contradicts what is there; start of the length
    BAD_VALUE = "bad-value"  # a number that the dialect does not know, or a digit that is none; start of the field
    BAD_TEXT = "bad-text"  # a byte that is not in the text's character set; that byte
    TRAILING = "trailing-bytes"  # bytes after the last field that are no padding; the first of them
    CUT = "cut"  # the capture holds fewer bytes than the datagram had; the first missing byte
