"""What is wrong, by rule, in one clause with its numbers: the headline of a report, and of the findings of a rule.

>>> fault(RuleVerdict("A-MISSING", "error", "fail", 90, 6, 0))
'6 of 90 requests were never acknowledged'

Rules say what must hold (`rulebook`); this says how often it did not. Counts of occasions that no count of failures can
be compared with, as of messages that nobody asked for, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..results.verdicts import RuleVerdict

LEVELS = ("error", "warning", "note")


class _Clause(NamedTuple):
    """What is counted, for one and for more; what happened to one, to more. ``of_all``: `checked` counts the same."""

    one: str
    many: str
    was: str
    were: str
    of_all: bool = True


def _datagrams(was: str, were: str) -> _Clause:
    return _Clause("datagram", "datagrams", was, were)


def _both(one: str, many: str, what: str, of_all: bool = True) -> _Clause:
    return _Clause(one, many, what, what, of_all)


def _is_are(one: str, many: str, what: str, of_all: bool = True) -> _Clause:
    return _Clause(one, many, f"was {what}", f"were {what}", of_all)


CLAUSES = {
    "W-EMPTY": _datagrams("was empty", "were empty"),
    "W-UNKNOWN-TYPE": _datagrams("has a type that the dialect does not define", "have types that it does not define"),
    "W-INCOMPLETE": _datagrams("lacks fields of its message", "lack fields of their message"),
    "W-NO-DELIMITER": _datagrams("lacks a delimiter", "lack a delimiter"),
    "W-BAD-MAGIC": _datagrams("has wrong constant bytes", "have wrong constant bytes"),
    "W-BAD-LENGTH": _datagrams("has a wrong length field", "have a wrong length field"),
    "W-BAD-VALUE": _datagrams("has a number that the dialect does not list", "have numbers that it does not list"),
    "W-BAD-TEXT": _datagrams("has a text with wrong characters", "have a text with wrong characters"),
    "W-TRAILING-BYTES": _datagrams("has bytes behind its last field", "have bytes behind their last field"),
    "W-WILDCARD-TOPIC": _both("publish", "publishes", "had a wildcard in the topic"),
    "P-SPEAKER": _Clause("message", "messages", "came from the wrong side", "came from the wrong side"),
    "P-CLIENT-TO-CLIENT": _both("message", "messages", "went from client to client"),
    "A-MISSING": _is_are("request", "requests", "never acknowledged"),
    "A-UNSOLICITED": _Clause("ACK", "ACKs", "answered no request", "answered no request", False),
    "A-LATE": _both("ACK", "ACKs", "came after the resend time"),
    "A-DUPLICATE": _is_are("request", "requests", "acknowledged more than once"),
    "A-MISDIRECTED": _both("ACK", "ACKs", "went to the wrong client"),
    "A-ORDER": _both("ACK", "ACKs", "came in the wrong order with the forwards or status messages"),
    "A-ACK-OF-ACK": _is_are("ACK", "ACKs", "acknowledged"),
    "A-CLIENT-MISSING": _is_are("message", "messages", "never acknowledged by the client"),
    "A-STATUS-MISSING": _both("request", "requests", "got no status message"),
    "R-MISSING": _Clause("request", "requests", "without ACK was not sent again", "without ACK were not sent again"),
    "R-ALTERED": _both("resend", "resends", "differed from the first send"),
    "R-ALTERED-RETAIN": _both("resend", "resends", "differed in the retain flag"),
    "R-AFTER-ACK": _is_are("request", "requests", "sent again after the ACK"),
    "R-EARLY": _both("resend", "resends", "came before the resend time"),
    "D-MISSING": _both("expected copy", "expected copies", "never came"),
    "D-UNEXPECTED": _Clause("message", "messages", "went to a client that had not asked for it",
                            "went to clients that had not asked for them", False),
    "D-DUPLICATE": _Clause("copy", "copies", "was one too many", "were too many", False),
    "D-ALTERED": _both("copy", "copies", "had another payload than the publish"),
    "D-MISDIRECTED": _both("copy", "copies", "went to the wrong client"),
    "D-LATE": _is_are("copy", "copies", "forwarded late"),
    "D-REORDERED": _both("copy", "copies", "overtook another of the same publisher and topic"),
    "D-AFTER-UNSUBSCRIBE": _both("message", "messages", "came after the unsubscribe", False),
    "T-MISSING": _both("retained message", "retained messages", "never came to a new subscriber"),
    "T-STALE": _is_are("retained message", "retained messages", "not the last one"),
    "T-ORDER": _both("retained message", "retained messages", "came on the wrong side of the ACK"),
    "T-CLEARED": _is_are("retained message", "retained messages", "changed by a publish without the retain flag"),
    "N-ZERO": _Clause("topic", "topics", "had a number that another topic of the publisher has",
                      "had numbers that other topics of the publisher have"),
    "N-COLLISION": _both("publish", "publishes", "reached subscribers of another topic with the same number"),
    "N-UNKNOWN-PUBLISH": _both("publish", "publishes", "had a topic number that its publisher had not created"),
    "N-UNKNOWN-SUBSCRIBE": _both("subscription", "subscriptions", "named no existing topic"),
    "X-LOOP": _is_are("reading", "readings", "never answered with an instruction"),
    "X-WRONG-INSTRUCTION": _is_are("instruction", "instructions", "not the reply to the reading"),
    "X-COMPLETION": _is_are("instruction", "instructions", "never reported as completed"),
}  # fmt: skip


def fault(rule: RuleVerdict) -> str:
    """For a rule that is broken, or of which the capture cannot tell."""
    clause = CLAUSES[rule.id]
    count = rule.failed if rule.verdict == "fail" else rule.inconclusive
    if clause.of_all and rule.checked >= count and rule.checked > 1:
        subject = f"{count:,} of {rule.checked:,} {clause.many}"
    else:
        subject = f"{count:,} {clause.one if count == 1 else clause.many}"
    said = f"{subject} {clause.was if count == 1 else clause.were}"
    if rule.verdict != "fail":
        return f"{said}, but the capture leaves another explanation open"
    doubt = f"; of {rule.inconclusive:,} more the capture cannot tell" if rule.inconclusive else ""
    return said + doubt


def worst_first(rules: Iterable[RuleVerdict], verdict: str) -> list[RuleVerdict]:
    """Rules of this verdict: by level, then those that are broken, or in doubt, most often."""
    chosen = [rule for rule in rules if rule.verdict == verdict]
    return sorted(chosen, key=lambda rule: (LEVELS.index(rule.level), -rule.failed, -rule.inconclusive))
