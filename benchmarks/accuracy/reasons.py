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


REASONS: tuple[Reason, ...] = ()


def reason_of(problem: Problem) -> Reason | None:
    return next((reason for reason in REASONS if reason.holds(problem)), None)
