"""The real tshark on generated captures: it finds checksums right and nothing malformed, counts the same frames, and
its dissector reads in each frame what the codec reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from generators.scenarios import SCENARIOS
from pcap_tools.dialect import builtin_names
from tests.dissector.test_tshark import common, expected_common
from tests.dissector.tshark import Shown, fields_of, pdml
from tests.generators.runs import SMALL, Play, play
from tests.vectors import dialect_of

pytestmark = pytest.mark.tshark

CHECKED = ("-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
GOOD, UNVERIFIED = "1", "2"
NAMED = [(scenario, name) for scenario in ("building", "fragmented", "churn") for name in builtin_names()]
DEFAULT = [(scenario, None) for scenario in SCENARIOS]


@pytest.mark.parametrize(("scenario", "dialect"), [*NAMED, *DEFAULT])
def test_checksums_are_right_and_all_frames_are_there(scenario: str, dialect: str | None, tmp_path: Path) -> None:
    sizes = {} if SCENARIOS[scenario].dialect else SMALL
    run = play(scenario, tmp_path, *([dialect] if dialect else []), **sizes)
    names = ("frame.protocols", "ip.checksum.status", "udp.checksum.status", "_ws.malformed")
    frames = fields_of(run.path, *names, home=tmp_path / "home", options=CHECKED)
    assert len(frames) == run.truth["capture"]["frames"]
    for protocols, ip, udp, malformed in frames:
        layers = protocols.split(":")
        if "ip" in layers:
            assert set(ip.split(",")) == {GOOD}
        if "icmp" in layers:  # what it quotes is cut
            assert set(udp.split(",")) <= {GOOD, UNVERIFIED, ""}
        elif "udp" in layers:
            assert udp == GOOD
        assert not malformed


def frames_of(run: Play, folder: Path, *dialects: str) -> dict[int, Shown]:
    """The frames that the dissector takes for a dialect's, by number; ICMP errors that quote one are left out.

    Dialects are named, as they are to the reader: a malformed datagram on a shared port may be valid in another."""
    decode_as = [part for name in dialects for port in dialect_of(name).ports for part in _as(port, name)]
    shown = enumerate(pdml(run.path, *decode_as, "-J", "pubsub", home=folder / "home"), 1)
    return {number: one for number, one in shown if "pubsub.dialect" in one.show and "icmp" not in one.layers}


def _as(port: int, dialect: str) -> tuple[str, str]:
    return "-d", f"udp.port=={port},pubsub_{dialect}"


def check_agreement(run: Play, shown: dict[int, Shown]) -> None:
    for number, one in shown.items():
        row = run.rows[number]
        assert row.message is not None
        assert common(one, row.datagram.payload) == expected_common(row.message, row.datagram.payload), number


def decoded(run: Play) -> set[int]:
    """Frames with something in them that the codec takes for a dialect's."""
    return {number for number, row in run.rows.items() if row.message is not None and row.datagram.length}


@pytest.mark.parametrize("dialect", builtin_names())
@pytest.mark.parametrize("scenario", ["building", "fragmented"])
def test_the_dissector_and_the_codec_agree(scenario: str, dialect: str, tmp_path: Path) -> None:
    """The dissector finds out by itself which dialect it is."""
    run = play(scenario, tmp_path, dialect, **SMALL)
    shown = frames_of(run, tmp_path)
    check_agreement(run, shown)
    assert set(shown) == decoded(run)


@pytest.mark.parametrize("dialect", builtin_names())
def test_they_agree_on_hostile_traffic(dialect: str, tmp_path: Path) -> None:
    run = play("hostile", tmp_path, dialect, **SMALL)
    shown = frames_of(run, tmp_path, dialect)
    check_agreement(run, shown)
    assert set(shown) == decoded(run)
    assert any("pubsub.error" in one.show for one in shown.values())


def test_they_agree_on_mixed_traffic(tmp_path: Path) -> None:
    run = play("mixed", tmp_path, **SMALL)
    shown = frames_of(run, tmp_path)
    check_agreement(run, shown)
    assert set(shown) == decoded(run)
    assert {one.show["pubsub.dialect"][0] for one in shown.values()} == set(builtin_names())
