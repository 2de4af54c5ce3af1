"""Findings as packet comments: what they say, and that no packet can make them say too much."""

from __future__ import annotations

from typing import Any

from spark_analysis.reports.packet_comments import LONGEST, MOST_ON_A_FRAME, packet_comments
from spark_analysis.results.verdicts import Cause, Finding, Place
from tests.spark_analysis.reports import made_results


def finding(frame: int = 7, rule: str = "A-MISSING", level: str = "error", **more: Any) -> Finding:
    detail = {"message": "PUBLISH"} | more.pop("detail", {})
    return made_results.finding(
        rule, frame, **{"level": level, "capture": "run.pcap", "client": None, "related": (), "detail": detail} | more
    )


def test_rule_level_sentence_and_related_frames() -> None:
    assert packet_comments(
        [
            finding(related=(9, 12)),
            finding(frame=8, level="note", related=(3,)),
            finding(frame=9, verdict="inconclusive", reason=None),
            finding(frame=10, verdict="inconclusive", reason="the network doubles datagrams"),
            finding(frame=11, related=(12, Place("two.pcap", 12), Place("two.pcap", 3))),
            finding(frame=12, follows_from=Cause("A-LATE", "run.pcap", 9)),
            finding(frame=13, related=(3,), follows_from=Cause("A-LATE", "two.pcap", 9)),
        ]
    ) == {
        7: ("topicshark A-MISSING (error): PUBLISH is never acknowledged (related: frames 9, 12)",),
        8: ("topicshark A-MISSING (note): PUBLISH is never acknowledged (related: frame 3)",),
        9: ("topicshark A-MISSING (error, cannot tell): PUBLISH is never acknowledged",),
        10: (
            "topicshark A-MISSING (error, cannot tell: the network doubles datagrams): PUBLISH is never acknowledged",
        ),
        11: ("topicshark A-MISSING (error): PUBLISH is never acknowledged (related: frame 12; two.pcap frames 12, 3)",),
        12: ("topicshark A-MISSING (error): PUBLISH is never acknowledged (follows from A-LATE at frame 9)",),
        13: (
            "topicshark A-MISSING (error): PUBLISH is never acknowledged "
            "(related: frame 3; follows from A-LATE at two.pcap frame 9)",
        ),
    }


def test_the_gravest_stand_first_and_the_rest_is_counted() -> None:
    notes = [finding(rule="A-MISDIRECTED", level="note", detail={"other": str(n)}) for n in range(1_500)]
    (texts,) = packet_comments([*notes, finding(rule="W-EMPTY", verdict="inconclusive"), finding()]).values()
    assert len(texts) == MOST_ON_A_FRAME + 1
    assert texts[0].startswith("topicshark A-MISSING (error)")
    assert texts[1] == "topicshark A-MISDIRECTED (note): the ACK of PUBLISH goes to None; 0 asked"
    assert texts[-1] == "topicshark: and 1,482 more findings about this frame (A-MISDIRECTED 1,481, W-EMPTY 1)"


def test_the_same_comment_stands_once() -> None:
    assert len(packet_comments([finding(), finding()])[7]) == 1


def test_hostile_text_is_escaped_and_cut() -> None:
    hostile = 'says "\x1b[31m\u202e\x00\n' + "x" * 10_000 + '"'
    ((text,),) = packet_comments([finding(detail={"message": hostile}, related=tuple(range(20)))]).values()
    assert text.isprintable()
    assert "\\x1b[31m\\xe2\\x80\\xae\\x00\\x0a" in text
    assert text.endswith("… (related: frames " + ", ".join(str(n) for n in range(20)) + ")")
    assert len(text) < LONGEST + 200
