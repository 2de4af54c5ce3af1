"""The committed dissector.lua is the one that the dialects and the parts make; and the command that writes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pcap_tools import TopicsharkError
from pcap_tools.dialect import builtin_names, load_dialect
from pcap_tools.dissector import dissector_text, lua_tables
from pcap_tools.dissector.writer import quoted
from tests.dissector.tshark import DISSECTOR, ROOT


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "topicshark.main", "dissector", *arguments]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def test_the_committed_file_is_up_to_date() -> None:
    assert DISSECTOR.read_text() == dissector_text([load_dialect(name) for name in builtin_names()])


def test_check_finds_a_stale_file(tmp_path: Path) -> None:
    assert command("--check").returncode == 0
    stale = tmp_path / "dissector.lua"
    stale.write_text(DISSECTOR.read_text().replace("PUBLISH", "PUBLISHED", 1))
    assert command("--check", "-o", str(stale)).returncode == 1
    assert command("--check", "-o", str(tmp_path / "none.lua")).returncode == 1


def test_a_dialect_of_ones_own(tmp_path: Path) -> None:
    own = ROOT / "tests" / "dialects" / "nibbles.toml"
    done = command("--dialect", str(own))
    assert done.returncode == 0
    assert 'name = "nibbles"' in done.stdout
    assert command("--dialect", str(own), "--dialect", str(own)).returncode == 3


@pytest.mark.tshark
def test_install_goes_where_tshark_looks(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    clean = {"HOME": str(tmp_path), "WIRESHARK_CONFIG_DIR": str(tmp_path / "config")}
    done = command("--install", **clean)
    assert done.returncode == 0, done.stderr
    found = subprocess.run(
        ["tshark", "-G", "protocols"], capture_output=True, text=True, check=True, env={**os.environ, **clean}
    )
    assert (
        "\tpubsub\tpubsub\n" in found.stdout.lower().replace("publish/subscribe\t", "\t", 1)
        or "\tpubsub" in found.stdout
    )


def test_text_of_a_dialect_cannot_leave_its_string() -> None:
    assert quoted('"]] .. os.exit() --\n\\') == '"\\034]] .. os.exit() --\\010\\092"'
    assert quoted(b"\x00\xff1") == '"\\000\\2551"'


def test_the_tables_are_the_same_every_time() -> None:
    dialects = [load_dialect(name) for name in builtin_names()]
    assert lua_tables(dialects) == lua_tables(dialects)


def test_two_dialects_of_one_name_are_refused() -> None:
    with pytest.raises(TopicsharkError, match="two dialects"):
        dissector_text([load_dialect("colon"), load_dialect("colon")])
