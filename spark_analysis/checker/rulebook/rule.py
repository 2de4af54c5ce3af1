"""What a rule is, and the names of the families that rules come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from spark_analysis.checker.policy import Policy

Level = Literal["error", "warning", "note"]
Fits = Callable[[Policy], str | None]

FAMILIES = {
    "W": "Wire format",
    "P": "Parties and directions",
    "A": "Acknowledgement",
    "R": "Sending again",
    "D": "Delivery",
    "T": "Retained messages",
    "N": "Topic numbers",
    "X": "The application's loop",
}


def always(policy: Policy) -> str | None:
    return None


@dataclass(frozen=True)
class Rule:
    """One thing that must hold.

    sentence  what must hold
    meaning   what a finding means
    advice    what to do about one
    section   by dialect: where that stands; a dialect that is not there says so in its file alone
    applies   None, or why a dialect cannot break the rule
    columns   those of code, accepted, qos and dup that it reads; they are to be among `events.COLUMNS`
    """

    id: str
    level: Level
    sentence: str
    meaning: str
    advice: str
    section: Mapping[str, str] = field(default_factory=dict)
    applies: Fits = always
    columns: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        return self.id.partition("-")[0]
