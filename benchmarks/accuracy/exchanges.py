"""The exchanges and deliveries of a small capture, row by row: what `check` has in its hands before it counts them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from pcap_tools.codec.detect import wanted_dialects
from spark_analysis.check import UNIT_BYTES
from spark_analysis.checker.session.endpoints import pairs_of
from spark_analysis.checker.session.events import events_of, rows_of
from spark_analysis.checker.session.facts import facts_of
from spark_analysis.checker.session.policy import Policy
from spark_analysis.checker.steps import SessionTables, judge_session
from spark_analysis.pipeline import prepare_session
from spark_analysis.sessions.plans import plan_sessions
from spark_analysis.sessions.unit_reading import read_unit


def exchanges_of(path: Path, dialect: str) -> pa.Table:
    """EXCHANGES of a capture that is one unit, and holds no frame twice."""
    return tables_of(path, dialect).exchanges


def tables_of(path: Path, dialect: str) -> SessionTables:
    """All tables of a capture that is one unit."""
    wanted = wanted_dialects([dialect])
    (session,), _ = plan_sessions([str(path)], wanted, False, UNIT_BYTES)
    policy = Policy(wanted.wanted[0])
    table = rows_of(read_unit(session.units[0], wanted).batches, policy.dialect.name)
    facts = facts_of(session.name, session.captures, policy, pairs_of(table, policy, 0), ())
    return judge_session(*prepare_session(events_of(table, policy, session.captures), facts))
