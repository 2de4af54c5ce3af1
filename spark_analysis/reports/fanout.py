"""Fan-out for people and programs: totals, topics, filters, and filters that are of no use or do the work twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..results.safe_text import shown
from .as_json import named, whole_object
from .columns import aligned
from .text import heading

if TYPE_CHECKING:
    from ..results.verdicts import CheckResult, SessionResult
    from ..summaries.fanout import FanoutSummary

MOST_ROWS = 20
_TOPIC = ("topic", "publishes", "expected", "delivered", "missing", "unexpected", "subscribers")
_FILTER = ("filter", "subscribers", "hits", "missing")


def lines(result: CheckResult, most: int = MOST_ROWS) -> Iterator[str]:
    """``most`` rows of each table."""
    for number, session in enumerate(result.sessions):
        if number:
            yield ""
        yield from heading(session)
        yield from _totals(session.fanout)
        yield from _resends(session)
        for names, rows, total in (
            (_TOPIC, session.fanout.topic_rows(most), len(session.fanout.topics)),
            (_FILTER, session.fanout.filter_rows(most), len(session.fanout.filters)),
        ):
            if rows:
                yield ""
                yield from aligned(names, [[row[name] for name in names] for row in rows])
            if total > len(rows):
                yield f"  … and {total - len(rows):,} more (--limit)"
        yield from _filters(session.fanout, most)


def as_object(result: CheckResult) -> dict[str, Any]:
    """For ``json.dumps``. ``topics_total`` and ``filters_total`` tell how many there are; the first are shown."""
    return whole_object(result, [named(session) | _session(session.fanout) for session in result.sessions])


def _session(fanout: FanoutSummary) -> dict[str, Any]:
    return fanout.totals() | {
        "topics": fanout.topic_rows(),
        "topics_total": len(fanout.topics),
        "filters": fanout.filter_rows(),
        "filters_total": len(fanout.filters),
        "unused_filters": fanout.unused_filters(),
        "overlap": fanout.overlap_rows(),
    }


def _totals(fanout: FanoutSummary) -> Iterator[str]:
    totals = fanout.totals()
    each = totals.pop("amplification")
    yield ""
    yield "  " + ", ".join(f"{count:,} {name}" for name, count in totals.items() if count or name in _TOPIC)
    if each is not None:
        yield f"  {each:,.2f} forwards for each publish"


def _resends(session: SessionResult) -> Iterator[str]:
    """Why more copies are due than there are publishes times subscribers."""
    resent = [row for row in session.timing.kinds() if row["asks"] == "client" and row["sends"] > row["requests"]]
    if resent and session.fanout.publishes:
        counts = ", ".join(f"{row['requests']:,} {shown(row['kind'])} {row['sends']:,} times" for row in resent)
        yield f"  resends: clients sent {counts}; a publish that reaches the broker again is due its copies again"


def _filters(fanout: FanoutSummary, most: int) -> Iterator[str]:
    unused, pairs = fanout.unused_filters(), fanout.overlap_rows()
    if unused:
        more = f" and {len(unused) - most:,} more" if len(unused) > most else ""
        yield ""
        yield f"  subscribed to, and no message matched: {', '.join(map(shown, unused[:most]))}{more}"
    if pairs:
        yield ""
        yield "  filters of one subscriber that take the same message"
        yield from aligned(("filter", "and", "messages"), [(*row["filters"], row["count"]) for row in pairs[:most]])
