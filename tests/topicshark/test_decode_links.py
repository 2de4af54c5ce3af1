"""`decode --links` says what the dissector says: on the same capture, frame by frame."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.dissector.tshark import fields_of


@pytest.mark.tshark
@pytest.mark.parametrize("dialect", ["colon", "mqttsn"])
def test_links_are_those_of_the_dissector(dialect: str, tmp_path: Path, run: Run) -> None:
    capture = tmp_path / "run.pcap"
    faults = ("--fault", "ack-missing=0.05", "--fault", "forward-missing=0.1")
    assert run("generate", "building", "-o", capture, "--dialect", dialect, "--rounds", 4, *faults)[0] == 0
    rows = [json.loads(line) for line in run("decode", "--links", "--format", "jsonl", capture)[1].splitlines()]
    names = ("frame.number", "pubsub.ack_to", "pubsub.forward_of", "pubsub.missing", "pubsub.meaning")
    shown = fields_of(capture, *names, home=tmp_path / "home", options=["-2", "-Y", "pubsub"])
    wireshark = {int(cells[0]): cells[1:] for cells in shown}
    acks, forwards = 0, 0
    for row in rows:
        ack_to, forward_of, missing, meaning = wireshark[row["frame"]]
        links = row["links"]
        if meaning == "ack" and ack_to and "ack_to" in links:
            acks += 1
            assert links["ack_to"] == int(ack_to)
        if forward_of and "forward_of" in links:
            forwards += 1
            assert links["forward_of"] == int(forward_of)
        said = sorted(links.get("missing", ()))
        assert missing == (",".join(said) if dialect == "colon" else "")  # with sessions a client may be away
    assert acks > 20
    assert forwards > 20


def test_topic_numbers_have_their_names(tmp_path: Path, run: Run) -> None:
    capture = tmp_path / "run.pcap"
    assert run("generate", "building", "-o", capture, "--dialect", "mqttsn", "--rounds", 1)[0] == 0
    lines = run("decode", "--links", capture)[1].splitlines()
    assert any("PUBLISH 1 " in line and "(home/room1/temperature) → " in line for line in lines)
    assert any("[forward of " in line and "(home/" in line for line in lines)


def test_a_pipe_has_no_links(run: Run) -> None:
    code, _, err = run("decode", "--links", "-i", "lo")
    assert (code, "give a file" in err) == (2, True)
