"""Mistakes that running systems of these dialects were seen to make: switches, off by default, so that a checker can be
shown a broker that has them. The reference behaviour has none of them."""

from enum import StrEnum


class Mistake(StrEnum):
    """Each names what the broker then does."""

    REGEX_FILTERS = "regex-filters"  # colon: `*` becomes `.*` and the rest is a regular expression
    SILENT_UNSUBSCRIBE = "silent-unsubscribe"  # colon: UNSUBSCRIBE of an unknown filter is never answered
    PADDED_RETAINED = "padded-retained"  # colon: a retained copy fills a 65,000-byte buffer
    ONE_TOPIC = "one-topic"  # topicbyte: humidity subscribers are filed under temperature
    ACK_ACKS = "ack-acks"  # topicbyte: every datagram is acknowledged, ACKs too
    SHARED_NUMBERS = "shared-numbers"  # topicnumber: two publishers' topics of one number are one
    SIGNED_LENGTH = "signed-length"  # rolebyte: the length is read as a signed byte, so long texts break
