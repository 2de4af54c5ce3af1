"""The corpus of wild situations: what `check` says of each is what a person says who looks at the frames.

Cases that the checker judges wrongly today stand in ``tests/wild/not-yet.toml`` and leave it when it judges them
rightly.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from pcap_tools.codec.detect import Dialects, wanted_dialects
from spark_analysis.check import check
from spark_analysis.results.verdicts import CheckResult, Finding
from tests.wild import Case, Places, load_cases, not_yet

CASES, NOT_YET = load_cases(), not_yet()
SITUATIONS = 60
SIX = {"colon", "topicbyte", "portdigits", "topicnumber", "rolebyte", "mqttsn"}


def _params() -> list[object]:
    wrong = {name: pytest.mark.xfail(reason=why, strict=True, raises=AssertionError) for name, why in NOT_YET.items()}
    return [pytest.param(one, id=one.name, marks=[wrong[one.name]] if one.name in wrong else []) for one in CASES]


@pytest.mark.parametrize("case", _params())
def test_the_verdict_is_that_of_a_person(case: Case, tmp_path: Path) -> None:
    result = _checked(case, tmp_path)
    if case.verdict == "none":
        assert [one.dialect for one in result.sessions] == []
        return
    (session,) = result.sessions
    found = [one for one in session.findings if one.level == "error"]
    seen = [one for one in found if not _is_among(one, case.maybe, case)]
    assert _places([one for one in seen if one.verdict == "fail"], case) == case.errors, case.why
    assert _places([one for one in seen if one.verdict == "inconclusive"], case) == case.doubts, case.why
    assert (session.dialect, session.brokers) == (case.recognised, case.brokers), case.why
    assert session.verdict in _verdicts(case), case.why
    assert all((one.reason or "").endswith(" would tell") for one in session.findings if one.verdict == "inconclusive")
    texts = " | ".join(f"{one.text} {one.reason or ''}" for one in session.findings)
    assert [words for words in case.says if words not in texts] == [], texts
    assert [words for words in case.never_says if words in texts] == [], texts


def test_each_name_is_there_once_and_the_list_of_wrong_ones_names_cases() -> None:
    assert [name for name, times in Counter(one.name for one in CASES).items() if times > 1] == []
    assert NOT_YET.keys() <= {one.name for one in CASES}


def _verdicts(case: Case) -> set[str]:
    """Who may doubt may also find nothing."""
    either = {"pass", "inconclusive"}
    return either if case.maybe and case.verdict in either else {case.verdict}


def _checked(case: Case, folder: Path) -> CheckResult:
    dialects = _dialects(None if case.detect else case.dialect)
    brokers = case.named_brokers
    return check(case.write(folder), dialects=dialects, brokers=brokers, merge=case.merge, engine="local")


@cache
def _dialects(name: str | None) -> Dialects:
    return wanted_dialects([name] if name else None)


def _places(findings: list[Finding], case: Case) -> Places:
    places: Places = {}
    for one in findings:
        places.setdefault(one.rule, []).append(_place(one, case))
    return {rule: sorted(of_rule) for rule, of_rule in places.items()}


def _place(finding: Finding, case: Case) -> str:
    capture = Path(finding.capture).stem
    return str(finding.frame) if capture == next(iter(case.captures)) else f"{capture}:{finding.frame}"


def _is_among(finding: Finding, places: Places, case: Case) -> bool:
    """``maybe`` allows a doubt or silence, never an error."""
    return finding.verdict == "inconclusive" and _place(finding, case) in places.get(finding.rule, ())
