"""Timing, fan-out and the quality of the capture: sentences, pictures and tables, all of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from ...plots import ack_timing, fanout
from ...plots.durations import said
from .model import Measures, Picture, Table, counted, short
from .pictures import picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...results.verdicts import SessionResult
    from ...summaries.ack_timing import TimingSummary

MOST_ROWS = 20
MOST_NAMES = 8
_COUNTS = ("requests", "acked", "unacked", "resent")
_PERCENTILES = ("min", "p50", "p90", "p99", "max")
_TOPIC = ("publishes", "expected", "delivered", "missing", "unexpected", "duplicate", "subscribers")
_WRONG = {
    "missing": "missing",
    "unexpected": "not asked for",
    "duplicate": "doubled",
    "altered": "altered",
    "misdirected": "misdirected",
    "late": "late",
    "inconclusive": "unclear",
}
_PLACES = {
    "broker": "at the broker",
    "bridge": "between all nodes (frames are there more than once; the copies are left out)",
    "client": "at one client",
}


def timing_of(session: SessionResult, with_pictures: bool) -> Measures:
    """How long ACKs take: distribution, over time, by client."""
    timing = session.timing
    kinds = timing.kinds()
    if not kinds:
        return Measures(["Nothing was due an acknowledgement."], [], [])
    clients = timing.rows(MOST_ROWS)
    pictures = _drawn(
        with_pictures,
        (partial(ack_timing.round_trips, timing), "Histogram of the time from request to ACK, by kind of request."),
        (partial(ack_timing.over_time, timing), "Time from request to ACK, and requests answered or not, over time."),
        (partial(ack_timing.by_client, timing), "Ranges of the time from request to ACK, by client."),
    )
    tables = [
        _ack_table("ACKs by kind of request (ms)", ("asks", "kind"), kinds, 0),
        _ack_table("ACKs by client (ms)", ("client", "kind"), clients, len(timing.groups) - len(clients)),
    ]
    return Measures(_timing_sentences(timing, kinds), pictures, tables)


def _timing_sentences(timing: TimingSummary, kinds: Sequence[dict[str, Any]]) -> list[str]:
    sums = {name: sum(row[name] for row in kinds) for name in _COUNTS}
    sentences = [
        f"{counted(sums['requests'], 'request')} asked for an ACK: {sums['acked']:,} got one, "
        f"{sums['unacked']:,} never did, {sums['resent']:,} were sent more than once."
    ]
    for what, retained in (("from publish to forward", False), ("from subscription to retained message", True)):
        told = timing.forward_latency(retained)
        if told["forwards"]:
            half, most = (said(told["latency_ms"][name] * 1e6) for name in ("p50", "p99"))
            sentences.append(
                f"The broker took {half} {what} in the median, {most} at 99 % ({told['forwards']:,} seen)."
            )
    return sentences


def _ack_table(caption: str, keys: tuple[str, ...], rows: Sequence[dict[str, Any]], more: int) -> Table:
    cells = [
        (
            *(short(row[key], 60) for key in keys),
            *(f"{row[name]:,}" for name in _COUNTS),
            *(_ms(row["rtt_ms"][name]) for name in _PERCENTILES),
        )
        for row in rows
    ]
    header = (*keys, "requests", "answered", "never", "resent", *_PERCENTILES)
    return Table(caption, header, cells, more, frozenset(range(len(keys), len(header))), frozenset({0}))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"


def fanout_of(session: SessionResult, with_pictures: bool) -> Measures:
    """Who gets what: amplification, topics and their subscribers, filters."""
    summary = session.fanout
    totals = summary.totals()
    topics, filters = fanout.worst_topics(summary, MOST_ROWS), summary.filter_rows(MOST_ROWS)
    if not topics and not filters:
        return Measures(["Nothing was published, and nobody subscribed."], [], [])
    pictures = _drawn(
        with_pictures,
        (partial(fanout.by_topic, summary), "Copies that were delivered, missing or not asked for, by topic."),
        (partial(fanout.links, summary), "Which subscriber is due which topic."),
        (partial(fanout.by_filter, summary), "How often each filter matched a message."),
    )
    tables = [
        _rows_table("Topics", "topic", _TOPIC, topics, len(summary.topics)),
        _rows_table("Filters", "filter", ("subscribers", "hits", "missing"), filters, len(summary.filters)),
    ]
    pairs = summary.overlap_rows(MOST_ROWS)
    if pairs:
        rows = [(*(short(one, 60) for one in pair["filters"]), f"{pair['count']:,}") for pair in pairs]
        caption = "Filters of one subscriber that take the same message"
        left = len(summary.pairs) - len(rows)
        tables.append(Table(caption, ("filter", "and", "messages"), rows, left, frozenset({2}), frozenset({0, 1})))
    return Measures(_fanout_sentences(totals, summary.unused_filters()), pictures, tables)


def _fanout_sentences(totals: dict[str, Any], unused: Sequence[str]) -> list[str]:
    wrong = [f", {totals[name]:,} {words}" for name, words in _WRONG.items() if totals[name]]
    publishes = totals["publishes"]
    sentences = [
        f"{publishes:,} publish{'' if publishes == 1 else 'es'} made {totals['expected']:,} copies due: "
        f"{totals['delivered']:,} delivered{''.join(wrong)}."
    ]
    if totals["amplification"] is not None:
        sentences.append(f"Each publish led to {totals['amplification']:,.2f} forwards (retained messages left out).")
    if unused:
        more = f" and {len(unused) - MOST_NAMES:,} more" if len(unused) > MOST_NAMES else ""
        names = ", ".join(short(one, 60) for one in unused[:MOST_NAMES])
        sentences.append(f"Subscribed to, and no message matched: {names}{more}.")
    return sentences


def _rows_table(caption: str, key: str, names: tuple[str, ...], rows: Sequence[dict[str, Any]], total: int) -> Table:
    cells = [(short(row[key], 80), *("-" if row[name] is None else f"{row[name]:,}" for name in names)) for row in rows]
    numbers = frozenset(range(1, len(names) + 1))
    return Table(caption, (key, *names), cells, total - len(rows), numbers, frozenset({0}))


def quality_of(session: SessionResult) -> Measures:
    """What the capture is, what limits the verdict, and why the dialect is believed."""
    facts = session.facts
    rows = [
        ("captures", _some(session.captures)),
        ("dialect", short(session.dialect)),
        ("broker", _some(session.brokers) if session.brokers else "none found"),
        ("datagrams", f"{session.datagrams:,}"),
        ("taken", _PLACES.get(str(facts.get("point")), short(str(facts.get("point", "?"))))),
        *_times(facts.get("begin_ns"), facts.get("end_ns")),
        ("starts late", "yes" if facts.get("starts_late") else "no"),
        ("loss seen", "yes" if facts.get("loss_seen") else "no"),
    ]
    rows += [("evidence for the dialect", short(str(one))) for one in _list(facts.get("evidence"))]
    notes = [short(str(one)) for one in _list(facts.get("notes"))]
    return Measures(notes, [], [Table("About this capture", ("fact", "value"), rows, wide=frozenset({1}))])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(short(one) for one in names[:MOST_NAMES]) + more


def _list(value: object) -> list[object]:
    return value[:MOST_NAMES] if isinstance(value, list) else []


def _times(begin: object, end: object) -> list[tuple[str, str]]:
    """As UTC: the clock of whoever took it is not known."""
    if not isinstance(begin, int) or not isinstance(end, int):
        return []
    try:
        first = datetime.fromtimestamp(begin // 10**9, UTC).isoformat(" ").replace("+00:00", " UTC")
    except (OverflowError, ValueError, OSError):
        first = f"{begin} ns since 1970"  # a damaged or hostile capture has any time
    return [("begins", first), ("lasts", said(end - begin))]


def _drawn(wanted: bool, *drawings: tuple[partial[Figure], str]) -> list[Picture]:
    return [picture(draw, alt) for draw, alt in drawings] if wanted else []
