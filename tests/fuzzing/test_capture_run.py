"""The runner of mutated captures: a short run finds nothing, and whatever is planted is found."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from fuzzing.captures.mutants import MUTATORS, make_mutant
from fuzzing.captures.run import Figures, Settings, run, save
from fuzzing.captures.sound import good_captures
from fuzzing.captures.trial import try_capture
from tests.fuzzing import planted
from tests.fuzzing.planted import SEED
from tests.pcap_tools.columnar import captures as readers
from tests.waiting import PATIENCE_S

COUNT = 300


def test_mutated_captures_by_both_readers_in_splits_and_decoded() -> None:
    figures = Figures()
    for report in run(Settings(COUNT, seed=SEED)):
        figures.add(report)
    assert [(one.number, one.trouble, one.text) for one in figures.failures] == []
    assert figures.captures == COUNT
    # It says something only if much was read, much was damaged, and not all was refused.
    assert figures.datagrams > COUNT
    assert figures.damaged > COUNT // 4
    assert 0 < figures.refused < COUNT // 4
    assert figures.megabytes < 300


def test_planted_crash_hang_leak_and_others_are_found_and_the_run_goes_on(tmp_path: Path) -> None:
    settings = Settings(planted.COUNT, SEED, jobs=1, seconds=PATIENCE_S, trial=planted.faulty)
    reports = list(run(settings))
    assert [report.number for report in reports] == list(range(planted.COUNT))
    found = {report.number: report.trouble for report in reports if report.trouble}
    assert found == {number: trouble for number, (_, trouble) in planted.PLANTED.items()}
    save(settings, reports[7], tmp_path)
    assert (tmp_path / f"{SEED}-7.capture").read_bytes() == make_mutant(SEED, 7).content
    assert "KeyError: 'not one of ours'" in (tmp_path / f"{SEED}-7.txt").read_text()


def test_readers_that_disagree_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = make_mutant(SEED, 5)
    assert try_capture(mutant, tmp_path / "capture").complaints == ()
    monkeypatch.setattr(readers, "read_datagrams", lambda *_: iter(()))
    complaints = try_capture(mutant, tmp_path / "capture").complaints
    assert [text.split(":")[0] for text in complaints][:2] == ["kernels", "kernels"]


def test_mutants_follow_from_seed_and_number() -> None:
    assert make_mutant(3, 4) == make_mutant(3, 4)
    assert make_mutant(3, 4) != make_mutant(4, 4)
    kinds = Counter(make_mutant(1, number).kind for number in range(2 * len(MUTATORS)))
    assert kinds == dict.fromkeys(MUTATORS, 2)


def test_the_captures_that_are_mutated_are_sound(tmp_path: Path) -> None:
    for good in good_captures():
        for content in (good.content, gzip.compress(good.content, 1)):
            found = readers.by_python(content)
            assert (found.damage, found.warnings, found.error) == ([], [], "")
            assert found.rows
        assert good.whole_records(len(good.content)) == len(good.packets)
