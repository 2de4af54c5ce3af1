"""Results of the checker made by hand, for tests of reports; one of them holds hostile text wherever text can be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from spark_analysis.results.verdicts import Cause, CheckResult, Finding, Place, RuleVerdict, SessionResult
from spark_analysis.summaries.ack_timing import TimingSummary
from spark_analysis.summaries.fanout import FanoutSummary
from spark_analysis.tables.schemas import DELIVERIES, EXCHANGES, PUBLISHES

CAPTURE = "/captures/run 1.pcap"
HOSTILE = 'a\x1b[31m\x00\n]]><x a="1">&amp;\u202e\ufffe\udcff\u2028\\'


def finding(rule: str = "A-MISSING", frame: int = 123, **more: Any) -> Finding:
    """``related`` takes frames of the finding's own capture, or places."""
    told: dict[str, Any] = {
        "id": f"{frame:016x}",
        "level": "error",
        "verdict": "fail",
        "capture": CAPTURE,
        "time_ns": 1_000 * frame,
        "related": (130, 140),
        "client": "10.0.0.2:50000",
        "topic": "home/x",
        "detail": {},
    }
    told |= more
    told["related"] = tuple(Place(told["capture"], one) if isinstance(one, int) else one for one in told["related"])
    told["detail"] = {"message": "PUBLISH home/x", "count": 1, "filter": "home/*", **_TIMES, **told["detail"]}
    return Finding(rule=rule, frame=frame, **told)


_TIMES = {"after_ns": 2_000_000, "limit_ns": 5_000_000_000}


def session(*findings: Finding, **more: Any) -> SessionResult:
    told: dict[str, Any] = {
        "name": "run",
        "captures": [CAPTURE],
        "dialect": "colon",
        "brokers": ["10.0.0.1:50000"],
        "datagrams": 1_234,
        "facts": {
            "point": "broker",
            "starts_late": False,
            "broker_heard": True,
            "loss_seen": False,
            "evidence": ["9 of 9 datagrams decode", "more"],
            "notes": [],
        },
        "rules": [
            RuleVerdict("W-EMPTY", "error", "pass", 1_234, 0, 0),
            RuleVerdict("A-MISSING", "error", "fail", 120, 3, 1),
            RuleVerdict("A-CLIENT-MISSING", "warning", "fail", 10, 2, 0),
            RuleVerdict("D-MISSING", "error", "inconclusive", 50, 0, 2),
            RuleVerdict("T-MISSING", "error", "not exercised", 0, 0, 0),
            RuleVerdict("X-LOOP", "error", "n/a", 0, 0, 0),
        ],
        "findings": list(findings),
        "findings_total": len(findings),
        "timing": TimingSummary.empty(),
        "fanout": FanoutSummary.empty(),
    }
    return SessionResult(**(told | more))


def result(*sessions: SessionResult, **more: Any) -> CheckResult:
    return CheckResult(**({"sessions": list(sessions), "partial": [], "failed": {}} | more))


def hostile_result() -> CheckResult:
    elsewhere = Place(f"/other {HOSTILE}.pcap", 7)
    texts: dict[str, Any] = {
        "detail": {"message": HOSTILE, "filter": HOSTILE},
        "reason": HOSTILE,
        "cause": f"{124:016x}",
    }
    texts |= {"topic": HOSTILE, "client": HOSTILE, "capture": f"/{HOSTILE}.pcap"}
    texts["follows_from"] = Cause("D-MISSING", f"/other {HOSTILE}.pcap", 124)
    found = [finding(related=(130, elsewhere), **texts)]
    found.append(finding("D-MISSING", 124, related=(elsewhere,), verdict="inconclusive", **texts))
    named = session(*found, name=HOSTILE, captures=[f"/{HOSTILE}.pcap"], brokers=[HOSTILE])
    named.facts = {"point": HOSTILE, "evidence": [HOSTILE], "notes": [HOSTILE]}
    exchange = dict.fromkeys(EXCHANGES.names) | {"client": HOSTILE.replace("\udcff", ""), "message": "PUBLISH"}
    exchange |= {
        "asks": "client",
        "time_ns": 1,
        "sends": 1,
        "ack": {"capture": "c", "frame": 2},
        "rtt_ns": 5,
        "quality": "exact",
    }
    named.timing = TimingSummary.of(pa.Table.from_pylist([exchange], EXCHANGES))
    topics = pa.table([[HOSTILE.replace("\udcff", "")], [3]], schema=PUBLISHES)
    named.fanout = FanoutSummary.of(DELIVERIES.empty_table(), topics)
    return result(named, partial=[HOSTILE], failed={HOSTILE: HOSTILE})
