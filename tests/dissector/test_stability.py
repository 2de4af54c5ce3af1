"""No Lua error ever, whatever the capture holds. tshark exits 0 on a Lua error, so stderr and the tree are searched.

TOPICSHARK_EDITCAP_PASSES sets how many damaged versions of the mixed capture are tried (200 before a release).
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from pcap_tools.dialect import builtin_names
from tests.dissector.datagrams import generated
from tests.dissector.tshark import DISSECTOR, ROOT, run_tshark, udp_packet, write_pcap
from tests.vectors import dialect_of, load_vectors

pytestmark = pytest.mark.tshark

PASSES = int(os.environ.get("TOPICSHARK_EDITCAP_PASSES", "10"))
PER_DIALECT = 250
CAPTURES = ROOT.parent / "shared" / "captures"
BAD = "_ws.lua.error || _ws.malformed"
LAYERS_BELOW = "!(_ws.expert.group == Malformed)"  # the headers were damaged too, and say so by expert information


def mixed_frames() -> list[tuple[float, bytes]]:
    """All dialects on their own ports, between a few hosts, so that tracking has something to track."""
    rng = random.Random(11)
    frames: list[tuple[float, bytes]] = []
    work = [(name, datagram) for name in builtin_names() for datagram in generated(dialect_of(name), PER_DIALECT, 3)]
    work += [(v.dialect, v.datagram) for v in load_vectors() if v.dialect in builtin_names() and len(v.datagram) < 2000]
    rng.shuffle(work)
    for number, (name, datagram) in enumerate(work):
        ports = sorted(dialect_of(name).ports)
        hosts = rng.sample(["10.0.0.1", "10.0.0.2", "10.0.0.3"], 2)
        ends = (hosts[0], rng.choice(ports)), (hosts[1], rng.choice(ports))
        frames.append((number * 0.0004, udp_packet(datagram, *ends, ip_id=number % 7)))
    return frames


def check(capture: Path, home: Path, headers_are_whole: bool = True, script: Path = DISSECTOR) -> None:
    """Through all that a user may run: details in two passes, columns, and the filter for what must not be."""
    details = run_tshark(capture, "-2", "-V", home=home, script=script).lower()
    assert "malformed packet: pubsub" not in details
    assert "lua error" not in details
    bad = BAD if headers_are_whole else f"pubsub && ({BAD}) && {LAYERS_BELOW}"
    assert run_tshark(capture, "-Y", bad, home=home, script=script) == ""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pcap(tmp_path_factory.mktemp("mixed") / "mixed.pcap", mixed_frames())


def test_the_mixed_capture(mixed: Path, tmp_path: Path) -> None:
    check(mixed, tmp_path / "home")


def test_a_snapped_capture(tmp_path: Path) -> None:
    check(write_pcap(tmp_path / "snapped.pcap", mixed_frames(), snaplen=36), tmp_path / "home")


@pytest.mark.parametrize("seed", range(1, PASSES + 1))
def test_damaged_by_editcap(seed: int, mixed: Path, tmp_path: Path) -> None:
    if shutil.which("editcap") is None:
        pytest.skip("editcap is not installed")
    damaged = tmp_path / "damaged.pcap"
    subprocess.run(
        ["editcap", "-E", "0.02", "--seed", str(seed), str(mixed), str(damaged)], check=True, capture_output=True
    )
    check(damaged, tmp_path / "home", headers_are_whole=False)


def real_captures() -> list[Path]:
    return sorted(CAPTURES.glob("*.pcap*")) if CAPTURES.is_dir() else []


@pytest.mark.skipif(not real_captures(), reason="no captures of running systems beside this checkout")
@pytest.mark.parametrize("capture", real_captures(), ids=lambda capture: capture.name)
def test_captures_of_running_systems(capture: Path, tmp_path: Path) -> None:
    check(capture, tmp_path / "home")
    assert run_tshark(capture, "-Y", "pubsub && !pubsub.error", home=tmp_path / "home")


def test_a_file_is_read_anew_without_the_last_ones_state(mixed: Path, tmp_path: Path) -> None:
    once = run_tshark(mixed, "-2", home=tmp_path / "home")
    assert run_tshark(mixed, "-2", home=tmp_path / "home") == once


def changed_script(path: Path, old: str, new: str) -> Path:
    text = DISSECTOR.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    return path


def test_a_lua_error_would_be_noticed(mixed: Path, tmp_path: Path) -> None:
    broken = changed_script(tmp_path / "broken.lua", "    local length = reported_len(tvb)\n", "    error()\n")
    with pytest.raises(AssertionError):
        check(mixed, tmp_path / "home", script=broken)


def test_a_wireshark_whose_classes_cannot_be_looked_into(mixed: Path, tmp_path: Path) -> None:
    """The quick way to ask about a packet is not documented: without it the answers are the same."""
    closed = changed_script(
        tmp_path / "closed.lua",
        "local function part_of_class(example, part)\n",
        "local function getmetatable() end\n\nlocal function part_of_class(example, part)\n",
    )
    for options in ((), ("-2", "-V")):
        usual = run_tshark(mixed, *options, home=tmp_path / "home")
        assert run_tshark(mixed, *options, home=tmp_path / "home", script=closed) == usual
