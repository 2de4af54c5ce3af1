"""`topicshark report` and `check --format html` as they are called: where the page goes, exit codes, refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO, Run
from tests.spark_analysis.reports.report_pages import Markup, findings_capture
from topicshark.exit_codes import ExitCode
from topicshark.main import exit_code_of


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return findings_capture(tmp_path_factory.mktemp("faulty"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clean") / "clean.pcap"
    assert exit_code_of(["generate", "report-colon", "-o", str(path)]) == 0
    return path


def test_it_writes_the_page_says_where_and_ends_like_check(run: Run, faulty: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, out, err = run("report", faulty, "-o", page)
    assert (code, err) == (ExitCode.FINDINGS, "")
    assert out.splitlines()[0].startswith("fail: 1 of 6 requests was never acknowledged. ")
    assert out.splitlines()[1] == f"report: {page}"
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]  # nothing is left beside it

    code, out, _ = run("check", faulty, "--format", "html")
    assert code == ExitCode.FINDINGS
    assert out == page.read_text()


def test_the_page_is_report_html_here_if_nothing_else_is_said(
    run: Run, clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("report", clean)
    assert code == ExitCode.CLEAN
    assert "report: report.html" in out
    assert "No rule of level error is broken" in Markup((tmp_path / "report.html").read_text()).text


def test_it_does_not_overwrite_what_it_is_about(
    run: Run, clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture, link = tmp_path / "run.pcap", tmp_path / "link.html"
    capture.write_bytes(clean.read_bytes())
    link.symlink_to(capture)
    monkeypatch.chdir(tmp_path)
    for output in (capture, "run.pcap", link):
        code, _, err = run("report", tmp_path, "-o", output)
        assert code == ExitCode.USAGE
        assert "is one of the sources" in err
    assert capture.read_bytes() == clean.read_bytes()


def test_a_place_that_is_not_there_is_told_before_the_work(run: Run, clean: Path, tmp_path: Path) -> None:
    for output in (tmp_path / "absent" / "page.html", tmp_path):
        code, _, err = run("report", clean, "-o", output)
        assert code == ExitCode.USAGE
        assert f"-o {output}: " in err


def test_a_limit_of_findings_and_damage_are_told(run: Run, faulty: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(faulty.read_bytes()[:-3])
    code, out, err = run("check", cut, "--format", "html", "--limit", 0, "--rule", "D-MISSING")
    assert code == ExitCode.FINDINGS
    assert "damaged" in err
    text = Markup(out).text
    assert "Not all could be read." in text
    assert "A-MISSING" not in text
    assert "… and 1 more" in text


def test_only_who_asks_for_pictures_waits_for_matplotlib(faulty: Path) -> None:
    script = (
        "import sys; from topicshark.main import exit_code_of; "
        f"code = exit_code_of(['check', {str(faulty)!r}]); "
        "sys.exit(0 if code == 1 and 'matplotlib' not in sys.modules and 'jinja2' not in sys.modules else 1)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
