"""The data of a rule, and the names of the rule families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from spark_analysis.checker.session.policy import Policy

Level = Literal["error", "warning", "note"]
Fits = Callable[[Policy], str | None]

FAMILIES = {
    "W": "Wire format",
    "P": "Senders and receivers",
    "A": "Acknowledgement",
    "R": "Resends",
    "D": "Delivery",
    "T": "Retained messages",
    "N": "Topic numbers",
    "X": "Control loop",
}


def always(policy: Policy) -> str | None:
    return None


@dataclass(frozen=True)
class Rule:
    """One requirement of the protocol. A dialect's file names the section of its document that states it.

    sentence  the requirement
    meaning   what a finding means
    advice    how to find and fix the mistake
    applies   returns None, or the reason why a dialect cannot break the rule
    columns   columns that the rule reads among code, accepted, qos and dup; all must be in `events.COLUMNS`
    """

    id: str
    level: Level
    sentence: str
    meaning: str
    advice: str
    applies: Fits = always
    columns: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        return self.id.partition("-")[0]
