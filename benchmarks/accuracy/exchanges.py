"""The exchanges of a small capture, row by row: what `check` has in its hands before it counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from spark_analysis.checker.brokers import choose_brokers
from spark_analysis.checker.gathering import know, look
from spark_analysis.checker.part_check import check_part
from spark_analysis.checker.pieces import read_piece
from spark_analysis.checker.session_jobs import EVER

from spark_analysis.check import PART_BYTES
from spark_analysis.checker.events import events_of
from spark_analysis.checker.policy import Policy
from spark_analysis.checker.session_plans import plan_sessions
from spark_analysis.planning import wanted_dialects

Item = TypeVar("Item")
Result = TypeVar("Result")


def exchanges_of(path: Path, dialect: str) -> pa.Table:
    """EXCHANGES of a capture that is one piece."""
    wanted = wanted_dialects([dialect])
    (session,), _ = plan_sessions([str(path)], wanted, False, PART_BYTES, _here)
    read, policy = read_piece(session.pieces[0], wanted), Policy(wanted.wanted[0])
    seen = look(read.batches, policy)
    known = know(policy, choose_brokers(seen.pairs, policy, ()), [seen], session.captures)
    events = events_of(read.batches, policy, session.captures)
    return check_part(events, known.part(EVER), session.name, known.starts_late).exchanges


def _here(function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
    return [function(item) for item in items]
