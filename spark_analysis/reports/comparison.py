"""Two runs side by side, as text and as an object for ``json.dumps``; and what a baseline leaves of a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from os.path import basename
from typing import TYPE_CHECKING, Any

from ..checker.rulebook.catalogue import RULES
from ..results.safe_text import all_shown, shown
from .as_json import troubles
from .columns import aligned

if TYPE_CHECKING:
    from ..results.comparing import Changes, Comparison, KnownFinding
    from ..results.verdicts import CheckResult

MOST_FINDINGS = 20
COUNTS = ("publishes", "expected", "delivered", "missing", "unexpected", "duplicate", "altered", "late")
PERCENTILES = ("p50", "p90", "p99")
Side = dict[str, Any] | None


# --- Changes of findings --------------------------------------------------------------------------------------------


def change_lines(found: Changes, most: int = MOST_FINDINGS) -> Iterator[str]:
    """Those that are new, then those that are gone."""
    for name, findings in (("new", found.new), ("gone", found.gone)):
        if findings:
            yield ""
            yield f"  {name}"
            yield from (f"    {finding_line(one)}" for one in findings[:most])
        if len(findings) > most:
            yield f"    … and {len(findings) - most:,} more (--limit)"


def finding_line(one: KnownFinding) -> str:
    """``run.pcap frame 12  A-MISSING  PUBLISH is never acknowledged [home/x, 10.0.0.2:50000]``."""
    about = ", ".join(shown(part) for part in (one.topic, one.client) if part)
    unsure = "" if one.verdict == "fail" else f" ({one.verdict})"
    where = f"{shown(basename(one.capture))} frame {one.frame}"
    return f"{where}  {shown(one.rule)}{unsure}  {shown(one.text)}" + (f" [{about}]" if about else "")


def change_object(found: Changes, most: int) -> dict[str, Any]:
    """Of a comparison, or of a baseline."""
    told: dict[str, Any] = all_shown(
        {
            "new": [asdict(one) for one in found.new[:most]],
            "new_total": len(found.new),
            "gone": [asdict(one) for one in found.gone[:most]],
            "gone_total": len(found.gone),
            "same": found.same,
        }
    )
    return told


def change_sentence(found: Changes, old: str) -> str:
    """The counts, in a line."""
    return f"{len(found.new):,} new, {len(found.gone):,} gone, {found.same:,} as in {shown(old)}"


def baseline_lines(found: Changes, baseline: str, most: int = MOST_FINDINGS) -> Iterator[str]:
    """What `check --baseline` shows in the place of all findings."""
    yield from change_lines(found, most)
    yield ""
    yield change_sentence(found, baseline)


# --- Runs side by side ----------------------------------------------------------------------------------------------


def comparison_lines(
    compared: Sequence[Comparison], names: tuple[str, str], most: int = MOST_FINDINGS
) -> Iterator[str]:
    """``names`` of the two runs."""
    for number, one in enumerate(compared):
        if number:
            yield ""
        yield f"{shown(one.dialect)}: {change_sentence(one.findings, 'A')}"
        yield from aligned(("run", "captures", "datagrams", "verdict"), _runs(one, names))
        for _, header, rows in tables(one):
            if rows:
                yield ""
                yield from aligned(header, rows)
        yield from change_lines(one.findings, most)


def _runs(one: Comparison, names: tuple[str, str]) -> list[tuple[object, ...]]:
    runs = zip("AB", names, (one.old, one.new), strict=True)
    return [(letter, name, run.datagrams, run.verdict) for letter, name, run in runs]


def tables(one: Comparison) -> list[tuple[str, tuple[str, ...], list[tuple[object, ...]]]]:
    """Caption, header and rows: rules, round trips, fan-out."""
    return [
        ("Rules that are broken more or less often", ("rule", "level", "A", "B", "change"), _rules(one)),
        (
            "From request to ACK, in milliseconds",
            ("asks", "kind", "", "requests", "unacked", "resent", *PERCENTILES),
            _round_trips(one),
        ),
        ("Fan-out", ("copies", "A", "B", "change"), _copies(one)),
    ]


def _rules(one: Comparison) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for name in one.changed_rules():
        old, new = (run.rules.get(name, (0, 0, 0)) for run in (one.old, one.new))
        level = RULES[name].level if name in RULES else ""
        rows.append((name, level, _broken(old), _broken(new), f"{new[1] - old[1]:+,}" if new[1] != old[1] else "="))
    return rows


def _broken(counts: tuple[int, int, int]) -> str:
    """``5 of 90``, and how many cannot be told."""
    checked, failed, doubtful = counts
    said = f"{failed:,} of {checked:,}" if checked >= failed else f"{failed:,}"
    return said + (f" ({doubtful:,} unsure)" if doubtful else "")


def _round_trips(one: Comparison) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for asks, kind in one.kinds():
        for letter, row in zip("AB", one.timing(asks, kind), strict=True):
            counts = [row[name] if row else 0 for name in ("requests", "unacked", "resent")]
            rows.append((asks, kind, letter, *counts, *(row["rtt_ms"][name] if row else None for name in PERCENTILES)))
    return rows


def _copies(one: Comparison) -> list[tuple[object, ...]]:
    old, new = one.old.fanout.totals(), one.new.fanout.totals()
    rows: list[tuple[object, ...]] = [
        (name, old[name], new[name], f"{new[name] - old[name]:+,}" if new[name] != old[name] else "=")
        for name in COUNTS
        if old[name] or new[name]
    ]
    if rows:
        rows.append(("forwards for each publish", old["amplification"], new["amplification"], ""))
    return rows


def comparison_object(
    compared: Sequence[Comparison], sources: tuple[Sequence[str], Sequence[str]], both: Sequence[CheckResult], most: int
) -> dict[str, Any]:
    """By dialect; ``a`` is the old run, ``b`` the new one."""
    told: dict[str, Any] = all_shown(
        {
            "a": list(sources[0]),
            "b": list(sources[1]),
            "dialects": [_dialect(one, most) for one in compared],
            "partial": [sentence for result in both for sentence in troubles(result)],
        }
    )
    return told


def _dialect(one: Comparison, most: int) -> dict[str, Any]:
    sides = {"a": one.old, "b": one.new}
    names = dict.fromkeys([*one.old.rules, *one.new.rules])
    return {
        "dialect": one.dialect,
        "datagrams": {side: run.datagrams for side, run in sides.items()},
        "verdict": {side: run.verdict for side, run in sides.items()},
        "findings": change_object(one.findings, most),
        "rules": [
            {"id": name}
            | {
                side: dict(zip(("checked", "failed", "inconclusive"), run.rules.get(name, (0, 0, 0)), strict=True))
                for side, run in sides.items()
            }
            for name in names
        ],
        "timing": [
            {"asks": asks, "kind": kind} | dict(zip("ab", one.timing(asks, kind), strict=True))
            for asks, kind in one.kinds()
        ],
        "forward": {side: run.timing.forward_latency() for side, run in sides.items()},
        "fanout": {side: run.fanout.totals() for side, run in sides.items()},
    }
