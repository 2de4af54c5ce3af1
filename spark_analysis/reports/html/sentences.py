"""Verdicts in words: the one sentence at the top of the page, and of each session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..faults import fault, worst_first
from .model import counted

if TYPE_CHECKING:
    from ...results.verdicts import CheckResult, RuleVerdict, SessionResult

UNTESTED = ("not exercised", "n/a")
NOTHING = "nothing judged"


def page_verdict(result: CheckResult) -> str:
    """``fail`` if one session fails; ``pass`` only if all pass."""
    found = {session.verdict for session in result.sessions if session.datagrams}
    return next((one for one in ("fail", "inconclusive", "pass") if one in found), NOTHING)


def page_sentence(result: CheckResult) -> str:
    sessions = [session for session in result.sessions if session.datagrams]
    if not sessions:
        return "Nothing could be judged: no datagram is in a dialect that was looked for."
    if len(sessions) == 1:
        return session_sentence(sessions[0])
    failed = [session for session in sessions if session.verdict == "fail"]
    if not failed:
        return f"No rule of level error is broken for certain in {counted(len(sessions), 'session')}."
    return (
        f"{len(failed):,} of {counted(len(sessions), 'session')} {_verb(len(failed))} a rule of level error; "
        f"most often {_most_broken(failed)}."
    )


def _most_broken(sessions: Sequence[SessionResult]) -> str:
    counts: dict[str, int] = {}
    for session in sessions:
        for rule in worst_first(session.rules, "fail"):
            if rule.level == "error":
                counts[rule.id] = counts.get(rule.id, 0) + 1
    most, count = max(counts.items(), key=lambda item: item[1])
    return f"{most}, in {count:,}"


def session_sentence(session: SessionResult) -> str:
    """What is wrong, in short."""
    broken, doubts = worst_first(session.rules, "fail"), worst_first(session.rules, "inconclusive")
    tested = sum(rule.verdict not in UNTESTED for rule in session.rules)
    errors = sum(rule.level == "error" for rule in broken)
    if errors:
        more = (
            f" {counted(len(broken) - 1, 'more rule')} {'is' if len(broken) == 2 else 'are'} broken."
            if broken[1:]
            else ""
        )
        return f"{fault(broken[0])}.{more}"
    if not session.brokers:
        return "No verdict: nothing tells which end is the broker. Name it with --broker HOST:PORT."
    open_errors = sum(rule.level == "error" for rule in doubts)
    if open_errors:
        return f"Nothing is broken for certain, but of {counted(open_errors, 'rule')} this capture cannot tell."
    lesser = f"; {counted(len(broken), 'rule')} of lower level {'is' if len(broken) == 1 else 'are'}" if broken else ""
    if not tested:
        return "Nothing in this traffic put a rule to the test."
    return (
        f"No rule of level error is broken, of the {counted(tested, 'rule')} that this traffic put to the test{lesser}."
    )


def times(rule: RuleVerdict) -> str:
    """How often."""
    if rule.verdict == "fail":
        doubt = f"; {rule.inconclusive:,} more cannot be told" if rule.inconclusive else ""
        return f"broken {_often(rule.failed, rule.checked)}{doubt}"
    return f"cannot be told {_often(rule.inconclusive, rule.checked)}"


def _often(count: int, checked: int) -> str:
    """Rules about what nobody asked for count no occasions that could be compared with."""
    return f"{count:,} of {checked:,} times" if checked >= count and checked > 1 else counted(count, "time")


def _verb(count: int) -> str:
    return "breaks" if count == 1 else "break"
