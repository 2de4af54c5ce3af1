"""Captures of running systems: the checker agrees with a person who reads them frame by frame."""

from __future__ import annotations

from pathlib import Path

from tests.spark_analysis.checker.checked import Judged, check

WIRE = ("W-UNKNOWN-TYPE", "W-INCOMPLETE", "W-TRAILING-BYTES", "P-CLIENT-TO-CLIENT")


def said_of(capture: Path) -> Judged:
    return Judged(check([str(capture)], engine="local"))


def checked(said: Judged, *rules: str) -> list[tuple[str, int]]:
    return [(said.rule(rule).verdict, said.rule(rule).checked) for rule in rules]


def test_colon_clean(shared_captures: Path) -> None:
    """Every frame twice, on the `any` interface. Seven requests with seven ACKs: four publishes, two subscriptions, one
    unsubscription. `temp` and `unsub` have no subscriber; `temperature` and `home/room/light` (by `home/*`) have one
    each and come to it before their PUBACK. `temperature` is retained, but nobody subscribes to it afterwards; nor is
    anything published after the unsubscription: those rules have nothing to judge.
    """
    said = said_of(shared_captures / "colon-clean.pcap")
    assert (said.session.dialect, said.session.brokers) == ("colon", ["192.168.10.30:50000"])
    assert (said.session.verdict, said.session.findings, said.session.datagrams) == ("pass", [], 16)
    assert said.session.facts["point"] == "bridge"
    assert checked(said, *WIRE) == [("pass", 16)] * 4
    assert checked(said, "A-MISSING", "A-DUPLICATE", "A-ORDER") == [("pass", 7), ("pass", 7), ("pass", 2)]
    assert checked(said, "D-MISSING", "D-UNEXPECTED") == [("pass", 2), ("pass", 2)]
    unused = ("R-EARLY", "T-MISSING", "T-STALE", "D-AFTER-UNSUBSCRIBE")
    assert checked(said, *unused) == [("not exercised", 0)] * 4


def test_topicbyte(shared_captures: Path) -> None:
    """One SUB of temperature; one MESSAGE of each topic; an ACK for each of the three, and before the one forward there
    is. Nobody subscribes to humidity, so that the original's fault, which files such subscribers under temperature,
    cannot show. There is one copy of each frame.
    """
    said = said_of(shared_captures / "topicbyte.pcap")
    assert (said.session.dialect, said.session.brokers) == ("topicbyte", ["172.20.0.2:50000"])
    assert (said.session.verdict, said.session.findings, said.session.datagrams) == ("pass", [], 7)
    assert checked(said, *WIRE) == [("pass", 7)] * 4
    assert checked(said, "A-MISSING", "A-ORDER") == [("pass", 3), ("pass", 1)]
    assert checked(said, "D-MISSING", "D-UNEXPECTED") == [("pass", 1), ("pass", 1)]
    assert checked(said, "R-MISSING", "T-MISSING") == [("n/a", 0)] * 2
    assert said.qualities == {"exact": 3, "anchored": 0, "resent": 0, "queued": 0, "none": 0}


def test_portdigits(shared_captures: Path) -> None:
    """Three subscriptions of two hosts, three publishes, three forwards from three ports of the broker's, each to the
    port in the subscriber's header (12346 or 12349) and not to the one from which it asked. No ACKs, so no verdict on
    any. Each message is in two fragments: frames are those of the second, which completes it.
    """
    said = said_of(shared_captures / "portdigits.pcap")
    assert (said.session.dialect, said.session.brokers) == ("portdigits", ["172.20.0.2:12345"])
    assert (said.session.verdict, said.session.findings, said.session.datagrams) == ("pass", [], 9)
    assert checked(said, *WIRE) == [("pass", 9)] * 4
    assert checked(said, "D-MISSING", "D-UNEXPECTED", "D-ALTERED") == [("pass", 3)] * 3
    assert {said.verdicts[rule] for rule in said.verdicts if rule[:2] in ("A-", "R-", "T-", "N-", "X-")} == {"n/a"}
