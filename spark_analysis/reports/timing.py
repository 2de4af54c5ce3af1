"""Timing for people and programs: ACKs by kind of request and by client, and the broker's latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .as_json import named, whole_object
from .columns import aligned
from .text import heading

if TYPE_CHECKING:
    from ..results.verdicts import CheckResult, SessionResult
    from ..summaries.ack_timing import TimingSummary

MOST_CLIENTS = 20
_COUNTS = ("requests", "acked", "unacked", "resent", "sends")
_PERCENTILES = ("min", "p50", "p90", "p99", "max")


def lines(result: CheckResult, most: int = MOST_CLIENTS) -> Iterator[str]:
    """``most`` rows by client, those with most requests."""
    for number, session in enumerate(result.sessions):
        if number:
            yield ""
        yield from heading(session)
        yield from _acks(session, most)
        yield from _latency("publish to forward", session.timing.forward_latency())
        yield from _latency("subscription to retained message", session.timing.forward_latency(retained=True))


def as_object(result: CheckResult) -> dict[str, Any]:
    """For ``json.dumps``. ``rows_total`` tells how many rows there are where only the first are shown."""
    return whole_object(result, [named(session) | _session(session.timing) for session in result.sessions])


def _session(timing: TimingSummary) -> dict[str, Any]:
    return {
        "kinds": timing.kinds(),
        "rows": timing.rows(),
        "rows_total": len(timing.groups),
        "forward": timing.forward_latency(),
        "retained": timing.forward_latency(retained=True),
        "bucket_ns": timing.width_ns,
        "over_time": timing.over_time(),
    }


def _acks(session: SessionResult, most: int) -> Iterator[str]:
    timing = session.timing
    kinds = timing.kinds()
    yield ""
    if not kinds:
        yield "  nothing was due an acknowledgement"
        return
    yield "  ACKs by kind of request (round trips in ms, of matches that are sure)"
    yield from _table(("asks", "kind"), kinds)
    yield ""
    yield "  by client"
    rows = timing.rows(most)
    yield from _table(("client", "asks", "kind"), rows)
    if len(timing.groups) > len(rows):
        yield f"  … and {len(timing.groups) - len(rows):,} more (--limit)"


def _table(keys: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[str]:
    """The last column: how many round trips are not sure, and so not in the percentiles."""
    header = (*keys, *_COUNTS, *_PERCENTILES, "unsure")
    cells = [
        (
            *(row[name] for name in (*keys, *_COUNTS)),
            *(row["rtt_ms"][name] for name in _PERCENTILES),
            row["quality"]["resent"] + row["quality"]["queued"],
        )
        for row in rows
    ]
    return aligned(header, cells)


def _latency(what: str, told: dict[str, Any]) -> Iterator[str]:
    if told["forwards"]:
        numbers = ", ".join(f"{name} {told['latency_ms'][name]:,.3f}" for name in _PERCENTILES)
        yield ""
        yield f"  {what}: {told['forwards']:,} forwards, ms: {numbers}"
