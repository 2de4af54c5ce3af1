"""Why a capture cannot tell, in words: each reason ends with the capture that would settle it.

>>> ends_soon(241_000_000, 250_000_000)
'the capture ends 241.0 ms later, the limit is 250.0 ms; a longer capture would tell'
"""

from __future__ import annotations

from ..session.policy import SECOND

ONE_CLIENT = (
    "the capture shows one client only, so this may have been lost on the way to the broker; "
    "a capture at the broker would tell"
)
NEVER_HEARD = (
    "the broker sends nothing in this capture, so it may not be running; a capture with its answers would tell"
)
BROKER_AWAY = (
    "the broker sent nothing to anybody at that time, so it may not have been running; "
    "a capture that shows other traffic of the broker at that time would tell"
)
NOT_ARRIVED = (
    "nothing shows that the message arrived at the broker, so it may have been lost on the way; "
    "a capture at the broker would tell"
)
NOT_KNOWN_TO_BROKER = (
    "nothing shows that the broker knows of this subscription; "
    "a capture with a message that it forwards for this subscription would tell"
)
BEFORE_CAPTURE = (
    "what it answers may have been sent before the capture began; "
    "a capture that begins before the client starts would tell"
)
SUBSCRIBED_BEFORE = (
    "the client may have subscribed before the capture began; a capture that begins before the client starts would tell"
)
FILTER_BEFORE = (
    "the client may have subscribed to another matching filter before the capture began; "
    "a capture that begins before the client starts would tell"
)
PUBLISHED_BEFORE = (
    "the message may have been published before the capture began; a capture that begins earlier would tell"
)
DOUBLED_BEHIND = (
    "the network may have doubled the message that this answers behind the capture point; "
    "a capture at the sender of this message would tell"
)
DOUBLED = "the network may have doubled this message; a capture at the broker would tell"
REORDERED = "the network may have changed the order of the messages; a capture at the broker would tell"
NOT_KEPT = (
    "nothing shows that the message to be retained arrived at the broker; "
    "a capture with its ACK, or taken at the broker, would tell"
)
NO_SIGN_OF_LIFE = (
    "the client sent nothing afterwards, so it may have ended; a capture in which it sends something later would tell"
)
CLIENT_WAITS = (
    "the client was waiting for an ACK, so its answer may belong to another message; "
    "a capture in which it is not waiting would tell"
)
MISSED_BY_CAPTURE = (
    "the broker acknowledged something of the client that is not in the capture; a capture without loss would tell"
)


def ends_soon(waited: int, limit: int) -> str:
    """The capture ends before something is overdue; both in nanoseconds."""
    return f"the capture ends {duration(waited)} later, the limit is {duration(limit)}; a longer capture would tell"


def duration(nanoseconds: int) -> str:
    """
    >>> duration(250_000_000)
    '250.0 ms'
    """
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1_000:.0f} µs"
    return f"{nanoseconds / 1_000_000:.1f} ms" if nanoseconds < SECOND else f"{nanoseconds / SECOND:.2f} s"
