"""A scenario's clients against brokers that are really there: ours, and one that answers nothing."""

import json
import socket
from pathlib import Path

import pytest

from pcap_tools.codec.decoding import decode_capture
from tests.conftest import Command
from tests.reference_broker.running import running_broker

pytestmark = [pytest.mark.net, pytest.mark.xdist_group("live")]  # two runs at once would want the same ports


@pytest.mark.parametrize("dialect", ["colon", "topicbyte", "portdigits", "topicnumber", "rolebyte", "mqttsn"])
def test_the_clients_of_a_building(topicshark: Command, tmp_path: Path, dialect: str) -> None:
    """All requests that a dialect acknowledges are, and what is recorded is what the truth tells."""
    capture, truth = tmp_path / "live.pcap", tmp_path / "truth.json"
    with running_broker(tmp_path, "--dialect", dialect) as broker:
        done = topicshark(
            *("generate", "building", "--dialect", dialect, "--sensors", "3", "--dashboards", "2", "--rounds", "2"),
            *("--to", f"{broker.host}:{broker.port}", "--rate", "60", "-o", str(capture), "--truth", str(truth)),
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(truth.read_text())
    own = [row for row in decode_capture(capture, ports={broker.port: dialect}) if row.message is not None]
    assert told["capture"]["frames"] == len(own)
    assert all(row.message is None or row.message.error is None for row in own)
    by_frame = {row.datagram.frame: row.message for row in own}
    from_clients = [one for one in told["exchanges"] if one["to"] == f"{broker.host}:{broker.port}"]
    assert all(one["ack_frame"] is not None for one in from_clients)
    for exchange in from_clients:
        ack = by_frame[exchange["ack_frame"]]
        assert ack is not None
        assert ack.meaning == "ack"
    assert bool(from_clients) == (dialect != "portdigits")
    assert told["deliveries"]
    for delivery in told["deliveries"]:
        forward = by_frame[delivery["frame"]]
        assert forward is not None
        assert forward.meaning in ("publish", "deliver")


def test_the_capture_has_the_order_in_which_the_broker_sent(topicshark: Command, tmp_path: Path) -> None:
    """However late a client comes to read: forwards before the ACK, as the broker's own recording has them."""
    capture = tmp_path / "live.pcap"
    with running_broker(tmp_path, "--dialect", "colon", "--pcap", str(tmp_path / "broker.pcap")) as broker:
        done = topicshark(
            *("generate", "building", "--to", f"{broker.host}:{broker.port}", "--rate", "300", "-o", str(capture))
        )
    assert done.returncode == 0, done.stderr

    def sent(path: Path) -> list[tuple[str, int, bytes]]:
        rows = decode_capture(path, ports={broker.port: "colon"})
        out = [row.datagram for row in rows if (row.datagram.src, row.datagram.sport) == (broker.host, broker.port)]
        return [(one.dst, one.dport, one.payload) for one in out]

    assert sent(capture) == sent(tmp_path / "broker.pcap")


def test_faults_of_the_clients_go_out(topicshark: Command, tmp_path: Path) -> None:
    capture, truth = tmp_path / "live.pcap", tmp_path / "truth.json"
    with running_broker(tmp_path, "--dialect", "colon") as broker:
        done = topicshark(
            *("generate", "building", "--sensors", "3", "--rounds", "4", "--fault", "wire-no-delimiter=0.5"),
            *("--fault", "ack-missing", "--to", f"{broker.host}:{broker.port}", "--rate", "80"),
            *("-o", str(capture), "--truth", str(truth)),
        )
    assert done.returncode == 0, done.stderr
    assert "ack-missing is the broker's" in done.stderr
    told = json.loads(truth.read_text())
    errors = {
        row.datagram.frame: row.message.error
        for row in decode_capture(capture, ports={broker.port: "colon"})
        if row.message is not None and row.message.error is not None
    }
    assert sorted(errors) == sorted(frame for fault in told["faults"] for frame in fault["frames"])
    assert set(errors.values()) == {"no-delimiter"}


def test_nobody_there(topicshark: Command, tmp_path: Path) -> None:
    """A socket that never answers: every request is resent and given up, and that is said."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        port = deaf.getsockname()[1]
        done = topicshark(
            *("generate", "building", "--dialect", "rolebyte", "--sensors", "1", "--dashboards", "1"),
            *("--actuators", "0", "--rounds", "1", "--to", f"127.0.0.1:{port}", "-o", str(tmp_path / "live.pcap")),
        )
    assert done.returncode == 1
    assert "0 of 2 requests acknowledged" in done.stdout
    assert "is a rolebyte broker running there?" in done.stderr
