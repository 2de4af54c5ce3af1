"""A capture holds what passes its point, tshark and our reader agree, and it knows which frame is which datagram."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.capture.capture_point import Capture, write
from generators.capture.options import CaptureOptions, LinkType, Point
from generators.simulation.network import Transit
from pcap_tools.capture import read_frames
from pcap_tools.errors import UsageError
from tests.dissector.tshark import fields_of
from tests.generators.transits import (
    BROKER,
    BROKER6,
    CLIENTS,
    LONG,
    PUBLISH,
    STEP_NS,
    both_families,
    captured,
    dialogue,
    in_memory,
    no_damage,
    rows_of,
    transit,
    with_mishaps,
)
from tests.pcap_tools.capture.tshark import needs_tshark, run_tshark, tshark_datagrams

HOST = BROKER[0]
AT_BROKER = CaptureOptions(host=HOST)
LINKS: dict[str, dict[str, Any]] = {
    **{link.value: {"link": link} for link in LinkType},
    "vlan": {"vlan": (100,)},
    "qinq": {"vlan": (100, 200)},
}
# Two places where everything is seen, so that IPv4 and IPv6, short and long, are in each file.
EVERYWHERE = {name: {"point": Point.ANY, **link} for name, link in LINKS.items() if name.startswith("cooked")}


def both_brokers(**options: Any) -> list[Capture]:
    """What is seen at the broker's IPv4 and at its IPv6 address."""
    return [captured(both_families(), CaptureOptions(host=host, **options)) for host in (HOST, BROKER6[0])]


# -- tshark -----------------------------------------------------------------------------------------------------------


CHECKS = ("-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
STATUS = [f"{name}.checksum.status" for name in ("ip", "udp", "icmp", "icmpv6")]
GOOD, UNVERIFIED = "1", "2"  # the second of what ICMP quotes only in part
ERROR = str(0x800000)  # of Wireshark's expert


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("format", ["pcap", "pcapng"])
@pytest.mark.parametrize("resolution", ["us", "ns"])
@pytest.mark.parametrize("link", LINKS)
def test_tshark_finds_nothing_wrong(tmp_path: Path, link: str, resolution: str, format: str) -> None:
    options = {**LINKS[link], "format": format, "resolution": resolution, "noise": 1.0}
    for capture in both_brokers(**options):
        path = tmp_path / "out.cap"
        write(capture, path)
        fields = ["frame.time_epoch", "frame.len", "_ws.malformed", "_ws.expert.severity", *STATUS]
        rows = fields_of(path, *fields, home=tmp_path / "home", options=CHECKS, script=None)
        frames = [[_seconds(frame.time_ns), str(frame.original_length)] for frame in capture.frames]
        assert [row[:2] for row in rows] == frames
        assert [row[2] for row in rows if row[2]] == []
        assert not any(ERROR in row[3].split(",") for row in rows)
        found = Counter(status for row in rows for column in row[4:] for status in column.split(",") if status)
        assert set(found) <= {GOOD, UNVERIFIED}
        assert found[GOOD] > len(capture.frames) / 2


def _seconds(time_ns: int) -> str:
    return f"{time_ns // 10**9}.{time_ns % 10**9:09}"


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("link", LINKS)
def test_tshark_finds_every_datagram_where_we_say_it_is(tmp_path: Path, link: str) -> None:
    transits = {one.number: one for one in both_families()}
    captures = both_brokers(**LINKS[link], noise=0.5)
    if link in EVERYWHERE:
        captures.append(captured(list(transits.values()), CaptureOptions(**EVERYWHERE[link], copies=3, noise=0.5)))
    for capture in captures:
        path = tmp_path / "out.pcap"
        write(capture, path)
        seen = {row.frame: row for row in tshark_datagrams(path)}
        held = {number: frame for number in transits if (frame := capture.frame_of(number)) is not None}
        assert len(held) >= 12
        for number, frame in held.items():
            one, row = transits[number], seen[frame]
            assert (row.src, row.sport, row.dst, row.dport) == (*one.src, *one.dst)
            assert row.payload == one.datagram


@needs_tshark
@pytest.mark.tshark
def test_a_pcapng_file_holds_the_names(tmp_path: Path) -> None:
    capture = captured(dialogue(), replace(AT_BROKER, format="pcapng"))
    write(capture, tmp_path / "out.pcapng", {HOST: "broker.test"})
    assert "broker.test" in run_tshark(tmp_path / "out.pcapng", "-q", "-z", "hosts")
    write(captured(dialogue(), AT_BROKER), tmp_path / "out.pcap", {HOST: "broker.test"})  # has no room for them


# -- our reader -------------------------------------------------------------------------------------------------------


def assert_reader_agrees(capture: Capture, transits: Sequence[Transit]) -> None:
    rows = rows_of(capture)
    for one in transits:
        frame = capture.frame_of(one.number)
        own = [row for row in rows.values() if capture.frames[row.frame - 1].transit == one.number]
        assert (frame is None) == (not own)
        if frame is None:
            continue
        assert frame == min(row.frame for row in own)
        for row in own:
            assert (row.src, row.sport, row.dst, row.dport) == (*one.src, *one.dst)
            assert row.payload == one.datagram
            assert row.time_ns == capture.frames[row.frame - 1].time_ns
            assert set(row.frames) <= set(capture.frames_of(one.number))
    assert {row.frame: row.copy_of for row in rows.values() if row.copy_of is not None} == capture.copies


points: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(
        dict,
        point=st.sampled_from([Point.BROKER, Point.CLIENT]),
        host=st.sampled_from([HOST, BROKER6[0], CLIENTS[0][0]]),
        link=st.none() | st.sampled_from(LinkType),
    ),
    # On cooked1 copies after the third look alike; if then frames are missing, no reader can tell.
    st.builds(dict, point=st.just(Point.ANY), link=st.just(LinkType.COOKED1), copies=st.integers(2, 3)),
    st.builds(dict, point=st.just(Point.ANY), link=st.just(LinkType.COOKED2), copies=st.integers(2, 6)),
)


@settings(max_examples=60)
@given(
    place=points,
    mtu=st.sampled_from([1280, 1500, 9000]),
    drop=st.sampled_from([0.0, 0.1, 0.5]),
    skip=st.sampled_from([0, 3 * STEP_NS]),
    noise=st.sampled_from([0.0, 0.3]),
    resolution=st.sampled_from(["us", "ns"]),
    seed=st.integers(0, 1 << 32),
)
def test_our_reader_finds_every_datagram_where_we_say_it_is(
    place: dict[str, Any], mtu: int, drop: float, skip: int, noise: float, resolution: Any, seed: int
) -> None:
    transits = with_mishaps(both_families())
    options = CaptureOptions(**place, mtu=mtu, drop=drop, skip_ns=skip, noise=noise, resolution=resolution)
    assert_reader_agrees(captured(transits, options, seed), transits)


@pytest.mark.parametrize("link", EVERYWHERE)
@pytest.mark.parametrize("copies", range(2, 7))
def test_all_copies_of_an_any_capture_are_known(link: str, copies: int) -> None:
    transits = both_families()
    capture = captured(transits, CaptureOptions(**EVERYWHERE[link], copies=copies))
    assert_reader_agrees(capture, transits)
    assert len(capture.copies) == len(transits) * (copies - 1)
    assert {len(capture.frames_of(one.number)) for one in transits} == {copies, 3 * copies}


# -- what a capture misses --------------------------------------------------------------------------------------------


def test_a_capture_that_starts_late_and_stops_early() -> None:
    transits = dialogue()
    everything = captured(transits, AT_BROKER).frames
    skip, stop = 3 * STEP_NS, 9 * STEP_NS
    capture = captured(transits, replace(AT_BROKER, skip_ns=skip, stop_ns=stop))
    begin = everything[0].time_ns
    assert capture.frames == [frame for frame in everything if skip <= frame.time_ns - begin < stop]
    missing = {frame.transit for frame in everything} - {frame.transit for frame in capture.frames}
    assert missing
    assert missing <= set(capture.dropped)
    assert all(capture.frame_of(number) is None for number in missing if number is not None)


def test_a_capture_that_loses_frames() -> None:
    transits = [transit(number, CLIENTS[0], BROKER, PUBLISH) for number in range(2000)]
    capture = captured(transits, replace(AT_BROKER, drop=0.25))
    assert 1400 < len(capture.frames) < 1600
    gone = [number for number in range(2000) if capture.frame_of(number) is None]
    assert capture.dropped == gone
    assert len(gone) == 2000 - len(capture.frames)


def test_a_fragment_that_is_lost_takes_its_datagram_along() -> None:
    transits = [transit(number, CLIENTS[0], BROKER, LONG) for number in range(50)]
    capture = captured(transits, replace(AT_BROKER, drop=0.2))
    sizes = Counter(len(capture.frames_of(number)) for number in range(50))
    assert min(sizes[2], sizes[3]) > 0
    for number in range(50):
        assert (capture.frame_of(number) is not None) == (len(capture.frames_of(number)) == 3)
        assert (number in capture.dropped) == (len(capture.frames_of(number)) < 3)


def test_long_frames_are_cut_but_their_length_is_kept() -> None:
    transits = dialogue()
    capture = captured(transits, replace(AT_BROKER, snaplen=100))
    whole = captured(transits, AT_BROKER)
    assert [frame.data for frame in capture.frames] == [frame.data[:100] for frame in whole.frames]
    assert [frame.original_length for frame in capture.frames] == [len(frame.data) for frame in whole.frames]
    read = list(read_frames(in_memory(capture), no_damage))
    assert [(frame.data, frame.original_length) for frame in read] == [
        (frame.data, frame.original_length) for frame in capture.frames
    ]
    for one in transits:
        assert capture.frame_of(one.number) == (None if one.datagram == LONG else whole.frame_of(one.number))
    assert capture.dropped == []


def test_copies_of_frames_that_were_cut_are_still_copies() -> None:
    capture = captured([transit(0, CLIENTS[0], BROKER, b"x" * 200)], CaptureOptions(Point.ANY, snaplen=100))
    assert capture.frame_of(0) is None
    assert capture.copies == {2: 1}
    assert [row.copy_of for row in rows_of(capture).values()] == [None, 1]


# -- the same seed, the same bytes ------------------------------------------------------------------------------------

SAMPLE = CaptureOptions(Point.ANY, link=LinkType.COOKED2, copies=3, drop=0.05, noise=0.5, format="pcapng")
SAMPLE_SHA256 = "7655e4c6bd375b92e9be920510142d6922c1b22d5c69e307734d0406111b879c"
SCRIPT = "from tests.generators.capture.test_capture_point import sample; print(sample(1))"


def sample(seed: int) -> str:
    stream = BytesIO()
    write(captured(with_mishaps(both_families()), SAMPLE, seed), stream, {HOST: "broker.test"})
    return hashlib.sha256(stream.getvalue()).hexdigest()


def test_one_seed_one_file() -> None:
    assert sample(1) == SAMPLE_SHA256
    assert sample(2) != SAMPLE_SHA256


def test_the_same_file_in_another_process() -> None:
    for hash_seed, zone in (("1", "Asia/Tokyo"), ("2", "UTC")):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": zone},
            timeout=120,
        )
        assert done.stdout.strip() == SAMPLE_SHA256


# -- what cannot be meant ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (CaptureOptions(), "host is missing: the address of the broker"),
        (CaptureOptions(Point.CLIENT), "host is missing: the address of the client"),
        (CaptureOptions(host="broker"), "'broker' is not an IP address"),
        (
            CaptureOptions(host="10.9.9.9"),
            "no datagram comes from or goes to 10.9.9.9; hosts of this traffic are 10.0.0.1,",
        ),
    ],
)
def test_a_place_where_no_capture_can_be_taken(options: CaptureOptions, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        captured(dialogue(), options)


def test_no_traffic_makes_an_empty_capture() -> None:
    for options in (replace(AT_BROKER, noise=1.0), CaptureOptions(Point.ANY)):
        capture = captured([], options)
        assert capture.frames == []
        assert list(read_frames(in_memory(capture), no_damage)) == []


def test_a_host_is_known_by_any_spelling() -> None:
    transits = both_families()
    usual = captured(transits, CaptureOptions(host="2001:db8::1"))
    assert captured(transits, CaptureOptions(host="2001:0DB8:0:0::1")).frames == usual.frames
