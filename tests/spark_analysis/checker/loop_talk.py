"""Captures of `rolebyte` written line by line, or generated, and what the rules of its loop find in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pcap_tools import load_dialect
from pcap_tools.columnar.decode.schema import MESSAGES
from spark_analysis.checker.findings.findings import FAIL, Candidates, Settled
from spark_analysis.checker.rules.loop_rules import loop_findings
from spark_analysis.checker.session.endpoints import Point, pairs_of
from spark_analysis.checker.session.events import COLUMNS, events_of, rows_of
from spark_analysis.checker.session.facts import SessionFacts, facts_of
from spark_analysis.checker.session.policy import Policy
from spark_analysis.pipeline import prepare_session

READ = [name for name in COLUMNS if name in MESSAGES.names]
MILLISECOND, SECOND = 1_000_000, 1_000_000_000
BROKER, DASHBOARD, SENSOR = ("10.0.0.1", 50001), ("10.0.0.2", 50002), ("10.0.0.3", 50003)
ROOM, ORDERS = "temperature/room1", "temperature/room1Instructions"


@dataclass(frozen=True)
class Found:
    """``rows`` of ``schemas.FINDINGS``; ``checked`` counts occasions by rule."""

    facts: SessionFacts
    checked: Counter[str]
    rows: list[dict[str, Any]]


def judged(batches: Sequence[pa.RecordBatch]) -> Found:
    """What the two rules find in a capture of rolebyte that was taken at the broker."""
    policy = Policy(load_dialect("rolebyte"))
    table, captures = rows_of(batches, "rolebyte"), ("run.pcap",)
    facts = facts_of("run", captures, policy, pairs_of(table, policy, 0), ())
    events, facts = prepare_session(events_of(table, policy, captures), replace(facts, point=Point.BROKER))
    candidates = Candidates(events, facts)
    evidence = loop_findings(events, facts, candidates)
    return Found(facts, candidates.checked, Settled(evidence).rows(candidates.table(), facts).to_pylist())


def told(found: Found, state: str = FAIL) -> list[tuple[str, int, list[int]]]:
    """Rule, frame and related frames of each finding, by frame."""
    rows = [row for row in found.rows if row["state"] == state]
    frames = [(row["rule"], row["frame"], [place["frame"] for place in row["related"]]) for row in rows]
    return sorted(frames, key=lambda one: one[1])


class Talk:
    """A capture written line by line; a line's number is its frame's."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.time_ns = 1_700_000_000 * SECOND
        self.say(SENSOR, BROKER, "SENSOR_PUBLISH", "elsewhere", "1")

    def say(
        self,
        src: tuple[str, int],
        dst: tuple[str, int],
        message: str,
        topic: str | None = None,
        payload: str | None = None,
        after_ms: int = 1,
    ) -> int:
        self.time_ns += after_ms * MILLISECOND
        row = dict.fromkeys(READ) | {"capture": "run.pcap", "frame": len(self.rows) + 1, "time_ns": self.time_ns}
        row |= {"src": src[0], "sport": src[1], "dst": dst[0], "dport": dst[1], "dialect": "rolebyte"}
        self.rows.append(row | {"form": "default", "message": message, "topic": topic, "payload": payload})
        return len(self.rows)

    def reading(self, value: str, after_ms: int = 1500, topic: str = ROOM, is_acked: bool = True) -> int:
        frame = self.say(BROKER, DASHBOARD, "BROKER", topic, value, after_ms)
        if is_acked:
            self.say(DASHBOARD, BROKER, "ACK")
        return frame

    def instruction(self, word: str, topic: str = ORDERS, is_acked: bool = True) -> int:
        frame = self.say(DASHBOARD, BROKER, "DASHBOARD_PUBLISH", topic, word)
        if is_acked:
            self.say(BROKER, DASHBOARD, "ACK")
        return frame

    def findings(self, quiet_ms: int = 5000) -> Found:
        """After some time in which nothing is said of the loop."""
        self.say(SENSOR, BROKER, "SENSOR_PUBLISH", "elsewhere", "2", after_ms=quiet_ms)
        schema = pa.schema([MESSAGES.field(name) for name in READ])
        return judged([pa.RecordBatch.from_pylist(self.rows, schema)])
