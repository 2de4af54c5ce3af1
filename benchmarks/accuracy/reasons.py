"""Why the checker is not always right where it is not: known reasons, by what it said and what had been done.

A case for which no entry here holds is listed in docs/accuracy.md as not explained, with what makes it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.accuracy.jobs import point_kind
from benchmarks.accuracy.judging import Problem


@dataclass(frozen=True)
class Reason:
    """Holds for problems of this kind and rule; None is any. ``near``: a false finding must name frames of a fault of
    this rule, so that a finding about something else in the same run is not excused."""

    kind: str
    rule: str | None
    why: str
    fault: str | None = None
    point: str | None = None
    near: str | None = None

    def holds(self, problem: Problem) -> bool:
        return (
            self.kind == problem.kind
            and self.rule in (None, problem.rule)
            and self.fault in (None, problem.fault)
            and self.point in (None, point_kind(problem.point))
            and (self.near is None or self.near in problem.near)
        )


_ONE_CLIENT = "What goes to the broker may be lost behind the capture, so an answer that does not come proves nothing."
_AT_THE_END = "The capture ends before an answer or a resend is overdue, or nothing shows that the broker was there."
REASONS: tuple[Reason, ...] = (
    Reason(
        "false",
        "D-MISSING",
        "Another name for the same: the late message lies behind the end of the capture, so it never comes.",
        fault="forward-late",
        near="D-LATE",
    ),
    Reason(
        "false",
        "A-UNSOLICITED",
        "Another name for the same: an ACK that goes astray looks, where it comes to, like one that nobody asked for.",
        fault="ack-misdirected",
        point="client",
        near="A-MISDIRECTED",
    ),
    Reason(
        "false",
        "D-UNEXPECTED",
        "Both are true: the number leads to another topic's subscribers, and these did not ask for the message.",
        fault="number-collision",
        near="N-COLLISION",
    ),
    Reason(
        "missed",
        "D-MISSING",
        "A capture at the publisher shows none of the forwards, those that are sent no more than those that are not.",
        point="client",
    ),
    Reason(
        "missed",
        "A-ORDER",
        "What comes to a client one after the other may have left in the other order: the rule is not judged there.",
        point="client",
    ),
    Reason("inconclusive", None, _ONE_CLIENT, point="client"),
    Reason(
        "inconclusive",
        "A-UNSOLICITED",
        "The ACK stands at the very beginning: what it answers may have been sent before the capture began.",
    ),
    Reason("inconclusive", "A-MISSING", _AT_THE_END),
    Reason("inconclusive", "R-MISSING", _AT_THE_END),
    Reason(
        "inconclusive",
        "A-CLIENT-MISSING",
        "The forward may have been lost behind the capture: it ends soon after, or shows that the network loses.",
    ),
    Reason(
        "inconclusive",
        "A-ACK-OF-ACK",
        "A forward came just before; the network may have doubled it behind the capture, and it is acknowledged twice.",
    ),
    Reason(
        "inconclusive",
        "D-MISSING",
        "Without ACKs nothing shows that the subscription, or the publish, came to the broker.",
        point="any",
    ),
    Reason("inconclusive", "T-CLEARED", "The capture ends within a second of the subscription."),
    Reason(
        "false",
        "N-UNKNOWN-SUBSCRIBE",
        "True, and a consequence: the publisher that was to create the topic is held up, or its number is refused.",
    ),
    Reason(
        "missed",
        "D-UNEXPECTED",
        "Forwards leave from any port of the broker: one to a client not known to speak the dialect is not read.",
        fault="forward-unexpected",
    ),
    Reason(
        "missed",
        "D-MISDIRECTED",
        "The same: the forward that goes astray is not known to be of the dialect.",
        fault="forward-misdirected",
    ),
    Reason(
        "false",
        "D-MISSING",
        "Another name for the same: the forward that goes astray is not known to be of the dialect, so it is missing.",
        fault="forward-misdirected",
        near="D-MISDIRECTED",
    ),
    Reason(
        "missed",
        "N-COLLISION",
        "Nobody subscribed to the topic itself, and large letters taken for small ones explain it as well.",
    ),
)


def reason_of(problem: Problem) -> Reason | None:
    return next((reason for reason in REASONS if reason.holds(problem)), None)
