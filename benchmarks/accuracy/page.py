"""docs/accuracy.md, from what the runs gave. Numbers come from the run, reasons from ``reasons``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.jobs import Job
from benchmarks.accuracy.judging import Outcome, Problem, Tally
from benchmarks.accuracy.links import MORE_UNSURE, Links
from benchmarks.accuracy.pipelined import LOST, MEDIAN_WITHIN, SURE_AT_LEAST, WRONG_AT_MOST, Matched
from benchmarks.accuracy.reasons import Reason, reason_of
from spark_analysis.checker.rulebook.catalogue import RULES

EXAMPLES = 3  # of each sort of case that is not explained
POINTS = {
    "broker": "At the broker",
    "any": "On Linux's `any`, every frame twice",
    "client": "At one client (`sensor1`, then `dashboard1`)",
}
HEAD = """# How right the checker is

Written by `make accuracy`, never by hand. [Generated traffic](generating.md) has a truth that does not come from the
checker; here it is held against what [`topicshark check`](rules.md) says.

A failing finding is *true* if the truth holds a fault of the same rule that one of the finding's frames shows. A
fault is *found* if a failing finding of its rule names one of its frames, *inconclusive* if only a finding does that
says that it cannot tell, else *missed*. Precision is true findings of all failing ones, recall is found faults of those
that the capture shows. A finding that follows from a true one, and is listed under it as its consequence, is true; one
that is right in itself but has another rule than the fault counts as false. IP ids are counted by each host in runs
with even seeds and random in those with odd ones.
"""
CLEAN = """## Without faults

Networks lose, double and reorder, brokers restart, captures begin late and end early: none of that breaks a rule, and
nothing may fail at error level. Runs in which something did: **{wrong} of {runs}**.

"""
DAMAGED = """## Captures that lost something

A frame that the capture lost (`capture-drop`) looks like one that nobody sent, and of frames cut to 60 bytes
(`capture-cut`) only part can be read. Nothing is promised here; what happened:

"""
ACK_TIMES = f"""## ACK times

Four publishers with up to eight publishes under way each, one broker, and a capture that lacks {LOST:.0%} of the ACKs;
nothing is sent again. Sure are the pairs that the checker calls exact or anchored; only those are in its times. Wanted:
{SURE_AT_LEAST:.0%} of the pairs sure, the median within {MEDIAN_WITHIN:.0%}, at most {WRONG_AT_MOST:.1%} of them wrong.
By order alone is what one gets by giving each ACK to the oldest request that has none.

"""

LINKS = f"""## Links of the dissector

What Wireshark shows as `[ACK to 17]`, `[forward of 17]`, `[resend of 17]` and *Subscribed in*, held against the truth:
on the first seed of each fault at the broker, and on all runs without faults. *Wrong* names a frame that the truth does
not, *unsure* names several (`[ACK to 357 or 360]`), *lacking* names none where there is one, *against* names another
frame than the checker. Wanted: none wrong, none against, and unsure ACKs at most the checker's own share of `queued` on
that capture and {MORE_UNSURE:.0%}.

"""


@dataclass(frozen=True)
class Results:
    faulty: list[Outcome]
    clean: list[Outcome]
    damaged: list[Outcome]
    matched: list[Matched]
    seconds: float
    day: str
    command: str

    @property
    def is_good(self) -> bool:
        """What must hold: nothing is said of traffic without faults, and ACK times are right."""
        crashed = any(one.kind == "crashed" for run in (*self.faulty, *self.damaged) for one in run.problems)
        said = not any(one.errors for one in self.clean)
        return not crashed and said and self.links_are_good and all(one.is_good for one in self.matched)

    @property
    def links(self) -> list[tuple[Outcome, str, Links]]:
        """Of all captures where nothing was lost."""
        return [(one, passes, links) for one in (*self.faulty, *self.clean) for passes, links in one.links.items()]

    @property
    def links_are_good(self) -> bool:
        every = [count for _, _, links in self.links for count in links.counts.values()]
        unsure = any(links.is_too_unsure for _, passes, links in self.links if passes == "-2")
        return not unsure and not any(count.wrong or count.against for count in every)


def page(results: Results) -> str:
    parts = [HEAD, _about(results)]
    if results.faulty:
        parts += [_summary(results.faulty), *_by_point(results.faulty)]
        parts.append(_below_one([problem for one in results.faulty for problem in one.problems]))
    if results.clean:
        parts.append(_clean(results.clean))
    if results.damaged:
        parts.append(_damaged(results.damaged))
    if results.matched:
        parts.append(_ack_times(results.matched))
    if results.links:
        parts.append(_links(results.links))
    return "\n".join(parts)


def _about(results: Results) -> str:
    every = [*results.faulty, *results.clean, *results.damaged]
    frames = sum(one.frames for one in every)
    lines = [f"Run of {results.day}: `{results.command}`, {results.seconds / 60:.0f} minutes with two processes; "]
    lines.append(f"{len(every):,} captures with {frames:,} frames.\n\n")
    for outcomes, what in (
        (results.faulty, "one fault each"),
        (results.clean, "no fault"),
        (results.damaged, "a damaged capture"),
    ):
        if outcomes:
            jobs = {id(one.job): one.job for one in outcomes}.values()
            seeds = sorted({job.seed for job in jobs})
            lines.append(
                f"- {what}: {_runs(outcomes)} runs, {len(outcomes)} captures, seeds {seeds[0]} to {seeds[-1]}\n"
            )
    return "".join(lines)


def _runs(outcomes: Iterable[Outcome]) -> int:
    return len({(one.job.scenario, one.job.dialect, one.job.seed, *one.job.faults) for one in outcomes})


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def _share(share: float | None) -> str:
    """Rounded down, so that what is not 1 never reads as 1."""
    return "-" if share is None else f"{int(share * 1000) / 1000:.3f}"


# -- faults -------------------------------------------------------------------------------------------------------


def _tallies(outcomes: Iterable[Outcome]) -> dict[str, Tally]:
    found: dict[str, Tally] = defaultdict(Tally)
    for outcome in outcomes:
        for rule, tally in outcome.tallies.items():
            found[rule] += tally
    return {rule: found[rule] for rule in RULES if rule in found}


def _numbers(tally: Tally) -> list[object]:
    counts: list[object] = [tally.shown, tally.found, tally.inconclusive, tally.missed, tally.true, tally.false]
    return [*counts, _share(tally.precision), _share(tally.recall)]


COUNTED = ("shown", "found", "inconclusive", "missed", "true findings", "false findings", "precision", "recall")


def _summary(outcomes: list[Outcome]) -> str:
    rows = []
    for point, title in POINTS.items():
        total = Tally()
        for tally in _tallies(one for one in outcomes if one.point_kind == point).values():
            total += tally
        rows.append([title, *_numbers(total)])
    return "## Faults\n\n" + _table(["capture", *COUNTED], rows)


def _by_point(outcomes: list[Outcome]) -> Iterator[str]:
    for point, title in POINTS.items():
        tallies = _tallies(one for one in outcomes if one.point_kind == point)
        if tallies:
            rows = [[rule, *_numbers(tally)] for rule, tally in tallies.items()]
            yield f"### {title}\n\n" + _table(["rule", *COUNTED], rows)


def _below_one(problems: list[Problem]) -> str:
    explained: Counter[Reason] = Counter()
    open_cases: dict[tuple[str, str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        reason = reason_of(problem)
        if reason is not None:
            explained[reason] += 1
        else:
            open_cases[_sort(problem)].append(problem)
    rows = [
        [count, one.kind, one.rule or "any", one.fault or "any", one.point or "any", one.why]
        for one, count in explained.items()
    ]
    text = "### Why not all is 1\n\n" + _table(
        ["cases", "kind", "rule", "fault", "capture", "why"], sorted(rows, key=str)
    )
    return text + "\n" + _not_explained(open_cases)


def _sort(problem: Problem) -> tuple[str, str, str]:
    """Cases that are told together; a crash has seldom to do with what was tried."""
    return problem.kind, problem.rule, "any" if problem.kind == "crashed" else problem.fault


def _not_explained(cases: dict[tuple[str, str, str], list[Problem]]) -> str:
    if not cases:
        return "Every case is explained.\n"
    total = sum(map(len, cases.values()))
    lines = [f"Not explained: {total}. Each sort with some of its cases; the command makes the capture again.\n"]
    for (kind, rule, fault), problems in sorted(cases.items()):
        lines.append(f"- {kind} {rule}, fault {fault}: {len(problems)} ({_where(problems)})")
        lines += [f"    - {_case(one)}" for one in _examples(problems)]
    return "\n".join(lines) + "\n"


def _where(problems: list[Problem]) -> str:
    """How many in which dialect and at which point."""
    counts = Counter(f"{Path(one.job.dialect).stem} at {one.point}" for one in problems)
    return ", ".join(f"{place} {count}" for place, count in counts.items())


def _examples(problems: list[Problem]) -> list[Problem]:
    """One of each dialect first."""
    by_dialect = {one.job.dialect: one for one in reversed(problems)}
    firsts = sorted(by_dialect.values(), key=problems.index)
    return [*firsts, *(one for one in problems if one not in firsts)][:EXAMPLES]


def _case(problem: Problem) -> str:
    return f"frame {problem.frame}, {problem.text!r}: `{problem.job.command(problem.point)}`"


# -- no faults ----------------------------------------------------------------------------------------------------


def _setting(job: Job) -> str:
    return " ".join([job.scenario, *(f"{name}={rate}" for name, rate in job.faults.items())])


def _silent_table(outcomes: list[Outcome]) -> str:
    by_setting: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_setting[_setting(outcome.job)].append(outcome)
    rows = []
    for setting, runs in sorted(by_setting.items()):
        errors = [problem for one in runs for problem in one.errors]
        others = sum(len(one.problems) for one in runs) - len(errors)
        dialects = len({one.job.dialect for one in runs})
        rows.append([setting, len(runs), dialects, sum(bool(one.errors) for one in runs), len(errors), others])
    head = ["traffic", "runs", "dialects", "runs with findings at error level", "such findings", "warnings and notes"]
    return _table(head, rows)


def _clean(outcomes: list[Outcome]) -> str:
    wrong = sum(bool(one.errors) for one in outcomes)
    return CLEAN.format(wrong=wrong, runs=len(outcomes)) + _silent_table(outcomes) + "\n" + _error_list(outcomes)


def _error_list(outcomes: list[Outcome]) -> str:
    cases: dict[tuple[str, str, str], list[Problem]] = defaultdict(list)
    for problem in (problem for one in outcomes for problem in one.errors):
        cases[_sort(problem)].append(problem)
    return _not_explained(cases) if cases else ""


def _damaged(outcomes: list[Outcome]) -> str:
    return DAMAGED + _silent_table(outcomes)


# -- links --------------------------------------------------------------------------------------------------------


def _links(measured: list[tuple[Outcome, str, Links]]) -> str:
    totals: dict[tuple[str, str], Links] = defaultdict(Links)
    too_unsure: Counter[tuple[str, str]] = Counter()
    for outcome, passes, links in measured:
        key = passes, Path(outcome.job.dialect).stem
        too_unsure[key] += links.is_too_unsure
        for kind, count in links.counts.items():
            totals[key].counts[kind] += count
    text = LINKS
    for passes in dict.fromkeys(passes for passes, _ in totals):
        rows = [
            [dialect, *_link_cells(links), too_unsure[passes, dialect]]
            for (one, dialect), links in totals.items()
            if one == passes
        ]
        head = ["dialect", "ACKs", "unsure", "checker's queued", "forwards", "unsure", "resends", "subscriptions"]
        head += ["wrong", "against", "lacking", "captures too unsure"]
        text += f"### tshark, {passes}\n\n" + _table(head, rows) + "\n"
    cases = [(outcome, case) for outcome, _, links in measured for case in links.cases if not case.startswith("lack")]
    lines = [f"- {case}: `{outcome.job.command(outcome.point)}`" for outcome, case in cases[: 10 * EXAMPLES]]
    return text + "\n".join(lines) + ("\n" if lines else "")


def _link_cells(links: Links) -> list[object]:
    ack, forward = links.counts["ack"], links.counts["forward"]
    every = links.counts.values()
    return [
        ack.all,
        ack.unsure,
        ack.queued,
        forward.all,
        forward.unsure,
        links.counts["resend"].all,
        links.counts["subscription"].all,
        sum(one.wrong for one in every),
        sum(one.against for one in every),
        sum(one.lacking for one in every),
    ]


# -- ACK times ----------------------------------------------------------------------------------------------------


def _ack_times(matched: list[Matched]) -> str:
    rows = [
        [
            one.dialect,
            one.publishes,
            one.lost,
            one.sure,
            one.wrong,
            f"{one.true_median:.3f} ms",
            f"{one.sure_median:.3f} ms",
            f"{one.fifo_median:.3f} ms, {one.fifo_wrong / one.fifo_matched:.0%} wrong",
            "yes" if one.is_good else "**no**",
        ]
        for one in matched
    ]
    head = [
        "dialect",
        "publishes",
        "ACKs not captured",
        "sure",
        "wrong",
        "true median",
        "checker's",
        "by order alone",
        "good",
    ]
    return ACK_TIMES + _table(head, rows)
