"""`topicshark dissector --install --profile` and `--uninstall`, in a home of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command, Run
from topicshark.commands.dissector import profile_files

pytestmark = pytest.mark.tshark


def test_the_profile_comes_and_goes(tmp_path: Path, topicshark: Command) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": None, "WIRESHARK_CONFIG_DIR": None}
    done = topicshark("dissector", "--install", "--profile", env=home)
    assert done.returncode == 0, done.stderr
    folder = next(tmp_path.rglob("profiles/topicshark"))
    assert {path.name for path in folder.iterdir()} == set(profile_files())
    assert len(list(tmp_path.rglob("dissector.lua"))) == 1
    own = folder / "hosts"
    own.write_text("10.0.0.1 broker\n")
    done = topicshark("dissector", "--uninstall", env=home)
    assert done.returncode == 0, done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [own]
    assert "nothing was installed" in topicshark("dissector", "--uninstall", env=home).stderr


def test_the_profile_goes_with_installing(run: Run) -> None:
    code, _, err = run("dissector", "--profile")
    assert (code, "--install" in err) == (2, True)
