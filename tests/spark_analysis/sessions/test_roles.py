"""Hosts are named for what they do; expectations are written by hand, or are the truth of who made the traffic."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path

import pytest

from pcap_tools.capture import CaptureWriter, read_frames
from pcap_tools.columnar.read.splits import plan_splits
from spark_analysis.sessions import roles
from spark_analysis.sessions.roles import roles_of
from tests.pcap_tools.capture.packets import T0, ethernet, ipv4, udp
from tests.spark_analysis.checker.checked import Talk, wanted_dialects
from topicshark.main import exit_code_of

ALL = wanted_dialects()
BROKER, ANNA, BERT, CARLA, DORA = (f"10.0.0.{n}" for n in range(1, 6))

COLON = """
    1   0 anna > broker SUBSCRIBE filter=home/*
    2   1 broker > anna SUBACK
    3  10 bert > broker PUBLISH topic=home/fan payload=ON
    4  11 broker > anna PUBLISH topic=home/fan payload=ON
    5  12 broker > bert PUBACK
    6  20 carla > broker PUBLISH topic=home/lamp payload=ON
    7  21 broker > carla PUBACK
    8  30 carla > broker SUBSCRIBE filter=garden
    9  31 broker > carla SUBACK
"""


def test_who_publishes_and_who_subscribes(tmp_path: Path) -> None:
    capture = Talk().write(tmp_path / "talk.pcap", COLON)
    expected = {BROKER: "broker", ANNA: "subscriber-1", BERT: "publisher-1", CARLA: "client-1"}
    assert roles_of(str(capture), ALL) == expected


def test_who_only_says_what_nobody_understands_is_a_client(tmp_path: Path) -> None:
    lines = COLON + "10 40 dora > broker hex:ffff\n"
    names = roles_of(str(Talk().write(tmp_path / "talk.pcap", lines)), wanted_dialects(["colon"]))
    assert (names[CARLA], names[DORA]) == ("client-1", "client-2")


def test_who_only_receives_is_a_subscriber(tmp_path: Path) -> None:
    """The capture began late. Here nothing but the port tells who the broker is; or the user does."""
    lines = "1 0 anna > broker PUBLISH topic=a payload=1\n2 1 broker > bert PUBLISH topic=a payload=1"
    capture = str(Talk().write(tmp_path / "talk.pcap", lines))
    assert roles_of(capture, ALL) == {}
    assert roles_of(capture, ALL, [BROKER]) == {BROKER: "broker", ANNA: "publisher-1", BERT: "subscriber-1"}


def test_forwards_from_any_port_of_the_broker(tmp_path: Path) -> None:
    lines = """
        1  0 anna > broker SUBSCRIBE port=38166 topic=1
        2 10 bert > broker PUBLISH port=12345 topic=1 text=14C
        3 11 broker:55555 > anna PUBLISH port=12345 topic=1 text=14C
    """
    capture = Talk("portdigits").write(tmp_path / "talk.pcap", lines)
    assert roles_of(str(capture), ALL) == {BROKER: "broker", ANNA: "subscriber-1", BERT: "publisher-1"}


def test_a_host_that_is_all_at_once(tmp_path: Path) -> None:
    """All on loopback, told apart by ports only: one name cannot say more than that."""
    talk = Talk()
    ends = {"broker": 50000, "anna": 40001, "bert": 40002}
    capture = tmp_path / "loopback.pcap"
    with CaptureWriter(capture) as out:
        for at, line in enumerate(COLON.strip().splitlines()[:5]):
            _, _, src, _, dst, said = line.split(maxsplit=5)
            datagram = udp(talk._datagram(said), ends[src], ends[dst])
            out.write(ethernet(ipv4(datagram, src="127.0.0.1", dst="127.0.0.1")), T0 + at)
    assert roles_of(str(capture), ALL) == {"127.0.0.1": "broker-and-client"}


def test_several_dialects_at_once(tmp_path: Path) -> None:
    """Two brokers; bert publishes in one dialect and subscribes in the other, carla serves one and uses the other."""
    colon = Talk().write(tmp_path / "colon.pcap", "\n".join(COLON.strip().splitlines()[:7]))
    lines = "1 50 bert > carla:50000 SUB topic=10\n2 51 carla:50000 > bert ACK"
    other = Talk("topicbyte").write(tmp_path / "topicbyte.pcap", lines)
    both = tmp_path / "both.pcap"
    with CaptureWriter(both) as out:
        for frame in [*read_frames(colon), *read_frames(other)]:
            out.write(frame.data, frame.time_ns)
    expected = {BROKER: "broker", ANNA: "subscriber-1", BERT: "client-1", CARLA: "broker-and-client"}
    assert roles_of(str(both), ALL) == expected


def test_several_brokers_are_counted(tmp_path: Path) -> None:
    lines = COLON + "10 40 anna > dora SUBSCRIBE filter=x\n11 41 dora > anna SUBACK\n"
    names = roles_of(str(Talk().write(tmp_path / "talk.pcap", lines)), ALL)
    assert (names[BROKER], names[DORA]) == ("broker-1", "broker-2")


def test_groups_are_no_hosts(tmp_path: Path) -> None:
    capture = tmp_path / "group.pcap"
    with CaptureWriter(capture) as out:
        for at, (src, dst) in enumerate([(ANNA, "239.1.1.1"), (ANNA, "255.255.255.255"), (ANNA, BROKER)]):
            datagram = Talk()._datagram("SUBSCRIBE filter=x")
            out.write(ethernet(ipv4(udp(datagram, 50000, 50000), src=src, dst=dst)), T0 + at)
    assert roles_of(str(capture), ALL) == {ANNA: "subscriber-1", BROKER: "broker"}


@pytest.mark.parametrize("family", [["--ipv6"], []])
def test_a_building_by_the_truth_of_who_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: list[str]
) -> None:
    """Also when it is read in several pieces."""
    capture, truth = tmp_path / "building.pcap", tmp_path / "truth.json"
    made = ["generate", "building", "-o", str(capture), "--truth", str(truth)]
    assert exit_code_of(made + family) == 0
    (site,) = json.loads(truth.read_text())["sites"]
    kinds = {"sensor": "publisher", "dashboard": "subscriber", "actuator": "subscriber"}
    expected = {host(one["endpoint"]): kinds[one["name"].rstrip("0123456789")] for one in site["nodes"]}
    expected[host(site["broker"])] = "broker"
    names = roles_of(str(capture), ALL)
    assert {address: name.rstrip("-0123456789") for address, name in names.items()} == expected
    assert len(set(names.values())) == len(names)
    monkeypatch.setattr(roles, "UNIT_BYTES", 4096)
    assert len(plan_splits(str(capture), 4096).splits) > 3
    assert roles_of(str(capture), ALL) == names


def host(endpoint: str) -> str:
    return str(ip_address(endpoint.rpartition(":")[0].strip("[]")))
