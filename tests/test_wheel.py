"""The wheel, as pipx would install it: it has all that the program reads, none of the tests, and its command works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conftest import REPO

PACKAGES = ("pcap_tools", "reference_broker", "generators", "spark_analysis", "topicshark")
SOURCES = (*PACKAGES, "tests", "pyproject.toml", "LICENSE", "README.md", "pyspark_topicshark.py")
NEEDED_SETUPTOOLS = 77

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        int(version("setuptools").partition(".")[0]) < NEEDED_SETUPTOOLS,
        reason=f"a wheel is built with setuptools {NEEDED_SETUPTOOLS} or newer: pip install -U setuptools",
    ),
]


def done(*command: str | Path, cwd: Path) -> str:
    run = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since a build leaves folders behind; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "topicshark"
    copy.mkdir()
    for name in SOURCES:
        source, ignored = REPO / name, shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, copy / name, ignore=ignored) if source.is_dir() else shutil.copy(source, copy)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    done(*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder, f"{copy}/", cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def test_it_has_every_file_that_the_program_reads_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {name for name in names if ".dist-info/" not in name}
    wanted = {
        str(path.relative_to(REPO))
        for package in PACKAGES
        for path in (REPO / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "pcap_tools/dialects/colon.toml" in wanted
    assert sorted(ours ^ (wanted | {"pyspark_topicshark.py"})) == []


def test_it_says_what_it_is(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    assert re.search(r"^License-Expression: GPL-2.0-or-later$", metadata, re.M)
    (entries,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/entry_points.txt"))
    assert "topicshark = topicshark.main:run" in entries


def test_its_command_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """Dependencies are lent from this environment by their path; its own, editable topicshark does not come along."""
    home = tmp_path / "env"
    done(sys.executable, "-m", "venv", "--without-pip", home, cwd=tmp_path)
    python, command = home / "bin" / "python", home / "bin" / "topicshark"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    done(*pip, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = done(
        python, "-c", "import topicshark, pyspark_topicshark as p; print(topicshark.__file__, p.__file__)", cwd=tmp_path
    )
    assert [Path(one).is_relative_to(packages) for one in where.split()] == [True, True]
    assert done(command, "--version", cwd=tmp_path) == f"topicshark {version('topicshark')}\n"
    assert re.search(r"^colon\b", done(command, "dialects", "list", cwd=tmp_path), re.M)
    assert "pubsub" in done(command, "dissector", cwd=tmp_path)
