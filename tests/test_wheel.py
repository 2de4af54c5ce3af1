"""The wheel, as pipx would install it: it has all that the program reads, none of the tests, and its command works."""

from __future__ import annotations

import json
import os
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
SHARED = {"notebooks": "share/topicshark/notebooks"}
SOURCES = (
    *PACKAGES,
    *SHARED,
    "tests",
    "pyproject.toml",
    "LICENSE",
    "README.md",
    "pyspark_topicshark.py",
    "dissector.lua",
)
NEEDED_SETUPTOOLS = 77

RELEASED = os.environ.get("TOPICSHARK_WHEEL")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")

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
    """Built from a copy, since a build leaves folders behind; nothing is downloaded. A release names its own."""
    if RELEASED:
        return Path(RELEASED)
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
    ours = {name for name in names if ".dist-info/" not in name and ".data/" not in name}
    wanted = {
        str(path.relative_to(REPO))
        for package in PACKAGES
        for path in (REPO / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "pcap_tools/dialects/colon.toml" in wanted
    assert sorted(ours ^ (wanted | {"pyspark_topicshark.py"})) == []
    shared = {name.partition(".data/data/")[2] for name in names if ".data/" in name}
    notebooks = {f"share/topicshark/notebooks/{path.name}" for path in (REPO / "notebooks").glob("*.ipynb")}
    others = {"notebooks/README.md", "wireshark/colorfilters", "wireshark/dissector.lua"}
    assert shared == notebooks | {f"share/topicshark/{name}" for name in others}


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
    listed = done(*pip, "show", "-f", "topicshark", cwd=tmp_path).partition("Files:")[2].split()
    tops = {name.partition("/")[0] for name in listed if not name.startswith("..") and ".dist-info/" not in name}
    assert tops == {*PACKAGES, "pyspark_topicshark.py", "__pycache__"}
    code = """
import topicshark
topicshark.generate("building", "b.pcap", sensors=2, rounds=1)
print(topicshark.read_pcap("b.pcap").num_rows > 10, topicshark.check("b.pcap", engine="local").sessions[0].verdict)
"""
    assert done(python, "-c", code, cwd=tmp_path) == "True pass\n"
    assert (home / "share" / "topicshark" / "wireshark" / "colorfilters").is_file()


@pytest.mark.long
@pytest.mark.skipif(not RELEASED, reason="downloads every dependency: scripts/release.sh check")
@pytest.mark.parametrize("number", PYTHONS)
def test_it_works_in_an_empty_environment(wheel: Path, tmp_path: Path, number: str) -> None:
    """Nothing is lent: pip resolves the dependencies of the wheel. One of the installed notebooks runs."""
    interpreter = shutil.which(f"python{number}")
    if interpreter is None or subprocess.run([interpreter, "--version"], capture_output=True).returncode:
        pytest.skip(f"no Python {number} on this machine")
    home = tmp_path / "env"
    done(interpreter, "-m", "venv", home, cwd=tmp_path)
    python, command = home / "bin" / "python", home / "bin" / "topicshark"
    done(python, "-m", "pip", "install", "--quiet", wheel, "nbclient", "ipykernel", cwd=tmp_path)
    done(python, "-m", "pip", "check", cwd=tmp_path)
    assert done(command, "--version", cwd=tmp_path) == f"topicshark {version('topicshark')}\n"
    done(command, "generate", "building", "-o", "b.pcap", cwd=tmp_path)
    done(command, "check", "b.pcap", cwd=tmp_path)
    done(command, "dissector", "-o", "dissector.lua", cwd=tmp_path)
    notebook = home / "share" / "topicshark" / "notebooks" / "write_your_own_dialect.ipynb"
    done(home / "bin" / "jupyter", "execute", notebook, "--output=done.ipynb", cwd=tmp_path)
    cells = json.loads((notebook.parent / "done.ipynb").read_text())["cells"]
    assert "image/png" in cells[-1]["outputs"][-1]["data"]
