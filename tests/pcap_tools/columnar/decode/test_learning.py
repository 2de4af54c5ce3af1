"""Learned from batches, a detector knows what it knows after `learn` of each datagram: to the last bit."""

from pathlib import Path

import pytest

from generators.capture.capture_point import write
from generators.generate import GeneratorOptions, generate
from pcap_tools.capture import read_datagrams
from pcap_tools.codec.detect import Detector
from pcap_tools.columnar.decode import learning
from pcap_tools.columnar.decode.learning import find_dialects
from pcap_tools.columnar.read.reading import read_file
from pcap_tools.dialect import builtin_names, load_dialect
from tests.pcap_tools.capture import packets as p

DIALECTS = [load_dialect(name) for name in builtin_names()]
FAULTS = {"wire-incomplete": 0.1, "wire-unknown-type": 0.1}


def learned(capture: Path, most: int) -> Detector:
    """One datagram after the other."""
    detector = Detector(DIALECTS)
    for count, datagram in enumerate(read_datagrams(capture)):
        if count == most:
            break
        if datagram.copy_of is None:
            detector.learn(datagram)
    return detector


@pytest.mark.parametrize("rows", [7, 100, 65536])
@pytest.mark.parametrize(
    "order",
    [
        GeneratorOptions("building", dialects=("colon",), capture={"noise": 0.3}, faults=FAULTS),
        GeneratorOptions("building", dialects=("topicnumber",), sensors=3, rounds=3),
        GeneratorOptions("building", dialects=("mqttsn",), capture={"point": "any"}),
        GeneratorOptions("mixed", dialects=("rolebyte", "portdigits", "topicbyte")),
    ],
    ids=["faults", "padded", "copies", "several"],
)
def test_tallies_are_those_of_single_datagrams(tmp_path: Path, order: GeneratorOptions, rows: int) -> None:
    capture = tmp_path / "run.pcapng"
    write(generate(order).capture, capture)
    one_by_one, at_once = learned(capture, 5000), Detector(DIALECTS)
    found = find_dialects(read_file(capture, rows=rows), at_once)
    assert len(at_once.tallies) > 10
    assert at_once.tallies == one_by_one.tallies
    assert found.evidence == one_by_one.decide()
    assert found.evidence
    assert found.routes == one_by_one.routes()


@pytest.mark.parametrize(("datagrams", "size", "wanted"), [(2, 1 << 20, 2), (100, 9, 3), (100, 8, 2), (100, 1, 1)])
def test_no_more_is_learned_from_than_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, datagrams: int, size: int, wanted: int
) -> None:
    capture = tmp_path / "run.pcap"
    frames = [p.ethernet(p.ipv4(p.udp(b"abcd", sport=port, dport=50000))) for port in range(1, 9)]
    capture.write_bytes(p.pcap(frames))
    monkeypatch.setattr(learning, "LEARN_DATAGRAMS", datagrams)
    monkeypatch.setattr(learning, "LEARN_BYTES", size)
    detector = Detector(DIALECTS)
    find_dialects(read_file(capture, rows=3), detector)
    assert {port for _, port in detector.tallies} - {50000} == set(range(1, wanted + 1))
