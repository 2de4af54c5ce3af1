"""Each fault, on a capture: what the truth tells is what the capture shows, and nothing else is wrong in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from generators.simulation.fault import CATALOGUE
from tests.generators.observers import acks as see_acks
from tests.generators.observers import content as see_content
from tests.generators.observers import delivery as see_delivery
from tests.generators.observers import retained as see_retained
from tests.generators.observers.story import Story, story

DIALECTS = Path(__file__).parents[2] / "dialects"
KEYWORDS, MAGICBYTE, NESTEDACK, JAVAINTS, NIBBLES = (
    str(DIALECTS / f"{name}.toml") for name in ("keywords", "magicbyte", "nestedack", "javaints", "nibbles")
)


@dataclass(frozen=True)
class Case:
    """Where a fault is tried, and what shows it: an observer for each rule, and which frame of a label it names."""

    dialects: tuple[str, ...]
    shows: dict[str, Callable[[Story], list[int]]]
    frame: Callable[[list[int]], int] = max
    scenario: str = "building"
    rate: float = 0.3
    sizes: dict[str, int] = field(default_factory=dict)


def wire(error: str, *dialects: str) -> Case:
    return Case(dialects, {f"W-{error.upper()}": see_content.with_error(error)})


def one(rule: str, observer: Callable[[Story], list[int]], *dialects: str, **more: Any) -> Case:
    return Case(dialects, {rule: observer}, **more)


FIRST: dict[str, Any] = {"frame": min}
MANY: dict[str, Any] = {"scenario": "retained", "sizes": {"dashboards": 12, "rounds": 8}}
CASES: dict[str, Case] = {
    "wire-empty": wire("empty", "colon", "mqttsn", "portdigits"),
    "wire-unknown-type": wire("unknown-type", "colon", "rolebyte", "topicnumber"),
    "wire-incomplete": wire("incomplete", "colon", "mqttsn", "topicbyte"),
    "wire-no-delimiter": wire("no-delimiter", "colon", "rolebyte"),
    "wire-bad-magic": wire("bad-magic", MAGICBYTE, JAVAINTS),
    "wire-bad-length": wire("bad-length", "mqttsn", "rolebyte"),
    "wire-bad-value": wire("bad-value", "colon", "portdigits"),
    "wire-bad-text": wire("bad-text", "colon", "topicnumber"),
    "wire-trailing-bytes": wire("trailing-bytes", "topicbyte", MAGICBYTE),
    "wildcard-published": Case(("colon", KEYWORDS), {"W-WILDCARD-TOPIC": see_content.wildcards_published}),
    "wrong-speaker": Case(("colon", "rolebyte", "topicnumber", JAVAINTS), {"P-SPEAKER": see_content.wrong_speakers}),
    "ack-missing": one("A-MISSING", see_acks.unacknowledged, "colon", "topicbyte", "mqttsn", **FIRST),
    "ack-unsolicited": one("A-UNSOLICITED", see_acks.extra_acks, "colon", "topicbyte", "mqttsn"),
    "ack-late": one("A-LATE", see_acks.late_acks, "colon", NIBBLES, "mqttsn"),
    "ack-duplicate": one("A-DUPLICATE", see_acks.extra_acks, "colon", "topicnumber", "mqttsn"),
    "ack-misdirected": one("A-MISDIRECTED", see_acks.extra_acks, "colon", "topicbyte", "mqttsn"),
    "ack-reordered": one("A-ORDER", see_acks.in_the_other_order, "colon", "topicbyte", "topicnumber", **FIRST),
    "ack-of-ack": one("A-ACK-OF-ACK", see_acks.clients_acks, "topicbyte", KEYWORDS),
    "client-ack-missing": one(
        "A-CLIENT-MISSING", see_acks.not_acknowledged_by_client, "topicnumber", NESTEDACK, **FIRST
    ),
    "status-missing": one("A-STATUS-MISSING", see_acks.without_status, "topicnumber", **FIRST),
    "resend-missing": Case(
        ("colon", NIBBLES, "mqttsn"),
        {"R-MISSING": see_acks.sent_once_in_vain, "A-MISSING": see_acks.unacknowledged},
        min,
        rate=0.1,
        sizes={"rounds": 40},
    ),
    "resend-altered": Case(("colon", NIBBLES), {"R-ALTERED": see_acks.resent_otherwise("payload")}),
    "resend-altered-retain": Case(("colon",), {"R-ALTERED-RETAIN": see_acks.resent_otherwise("retain")}),
    "resend-after-ack": Case(("colon", "mqttsn"), {"R-AFTER-ACK": see_acks.sent_again_after_ack}),
    "resend-early": Case(("colon", NIBBLES, "mqttsn"), {"R-EARLY": see_acks.sent_again_early}),
    "forward-missing": Case(
        ("colon", "topicbyte", "topicnumber", KEYWORDS), {"D-MISSING": see_delivery.undelivered}, min
    ),
    "forward-unexpected": Case(("colon", "portdigits", "topicnumber"), {"D-UNEXPECTED": see_delivery.undue}),
    "forward-duplicate": Case(("colon", "topicbyte", NESTEDACK), {"D-DUPLICATE": see_delivery.undue}),
    "forward-altered": Case(("colon", "topicbyte", KEYWORDS), {"D-ALTERED": see_delivery.undue}),
    "forward-misdirected": Case(("colon", "portdigits", NESTEDACK), {"D-MISDIRECTED": see_delivery.undue}),
    "forward-late": Case(("colon", "topicbyte"), {"D-LATE": see_delivery.late_forwards}),
    "forward-reordered": Case(("colon", KEYWORDS), {"D-MISSING": see_delivery.undelivered}, min),
    "forward-after-unsubscribe": Case(
        ("colon", KEYWORDS, NIBBLES), {"D-AFTER-UNSUBSCRIBE": see_delivery.undue}, scenario="churn"
    ),
    "wildcard-one-level": Case(("colon", KEYWORDS, MAGICBYTE), {"D-MISSING": see_delivery.undelivered}, min),
    "wildcard-case-blind": Case(("colon", NESTEDACK), {"D-UNEXPECTED": see_delivery.undue}),
    "wildcard-dot-regex": Case(("colon", NESTEDACK), {"D-UNEXPECTED": see_delivery.undue}, rate=1.0),
    "topic-merged": Case(("topicbyte", "portdigits"), {"D-UNEXPECTED": see_delivery.undue}),
    "retained-missing": Case(("colon", MAGICBYTE), {"T-MISSING": see_retained.retained_missing(False)}, **MANY),
    "retained-cleared": Case(("colon", MAGICBYTE), {"T-CLEARED": see_retained.retained_missing(True)}, **MANY),
    "retained-stale": Case(("colon", MAGICBYTE), {"T-STALE": see_retained.retained_stale}, **MANY),
    "retained-late": Case(("colon", MAGICBYTE), {"T-ORDER": see_retained.retained_out_of_order}, **FIRST, **MANY),
    "number-zero": Case(("topicnumber",), {"N-ZERO": see_content.numbers_used_again}),
    "number-collision": Case(("topicnumber",), {"N-COLLISION": see_content.sent_to_another_topic}, min),
    "loop-broken": Case(("rolebyte",), {"X-LOOP": see_content.without_instruction}),
    "loop-wrong": Case(("rolebyte",), {"X-WRONG-INSTRUCTION": see_content.with_wrong_instruction}),
}
TURNS = [name for name, fault in CATALOGUE.items() if not fault.is_condition]
RUNS = [(name, dialect) for name, case in CASES.items() for dialect in case.dialects]
pytestmark = pytest.mark.xdist_group("faults")  # in one process each run is generated once
EACH_RUN = pytest.mark.parametrize(("name", "dialect"), RUNS, ids=[f"{name}-{Path(on).stem}" for name, on in RUNS])


def stem(dialect: str) -> str:
    """A dialect's name in the name of a test."""
    return Path(dialect).stem


def faulty(name: str, dialect: str) -> Story:
    case = CASES[name]
    return story(dialect, case.scenario, ((name, case.rate),), **case.sizes)


def clean(name: str, dialect: str) -> Story:
    case = CASES[name]
    return story(dialect, case.scenario, **case.sizes)


def test_every_fault_has_a_case() -> None:
    assert sorted(CASES) == sorted(TURNS)


@EACH_RUN
def test_the_capture_shows_what_the_truth_tells(name: str, dialect: str) -> None:
    case, seen = CASES[name], faulty(name, dialect)
    assert seen.labels(), "there must be something to see"
    for rule, observe in case.shows.items():
        told = sorted(case.frame(label["frames"]) for label in seen.labels(rule))
        assert observe(seen) == told


@EACH_RUN
def test_nothing_is_seen_without_faults(name: str, dialect: str) -> None:
    seen = clean(name, dialect)
    assert not seen.labels()
    for observe in CASES[name].shows.values():
        assert observe(seen) == []


@EACH_RUN
def test_labels_are_of_the_faults_rules_and_shown(name: str, dialect: str) -> None:
    fault = CATALOGUE[name]
    for label in faulty(name, dialect).labels():
        assert label["name"] == name
        assert label["rule"] in fault.rules
        assert label["place"] == str(fault.place)
        assert label["shown"]
        assert label["frames"]
        assert label["text"]


@EACH_RUN
def test_the_rest_of_the_truth_still_holds(name: str, dialect: str) -> None:
    """Exchanges and deliveries name frames that are what they are said to be; and no ACK and no forward of the broker's
    is left over that neither they nor a label knows."""
    seen = faulty(name, dialect)
    rows = {row.frame: row for row in seen.rows}
    labelled = {frame for label in seen.labels() for frame in label["frames"]}
    known = set(labelled)
    for exchange in seen.truth["exchanges"]:
        sends = [rows[frame] for frame in exchange["frames"]]
        assert {row.message for row in sends} == {exchange["message"]}
        answers = [rows[frame] for frame in exchange["ack_frames"] if frame is not None]
        assert all(row.meaning == "ack" and row.to_broker is not sends[0].to_broker for row in answers)
        assert all(row.client == sends[0].client for row in answers)
        known |= {row.frame for row in answers}
    altered = {label["frames"][-1] for label in seen.labels("D-ALTERED")}
    for delivery in seen.truth["deliveries"]:
        assert delivery["sent"] == (delivery["frame"] is not None)
        if delivery["sent"]:
            forward, publish = rows[delivery["frame"]], rows[delivery["publish_frame"]]
            assert forward.client == delivery["subscriber"]
            assert (forward.payload == publish.payload) is (forward.frame not in altered)
            known.add(forward.frame)
    due = {row.frame for row in [*seen.forwards, *seen.of("ack", to_broker=False)]}
    assert due <= known


@EACH_RUN
def test_what_was_due_and_did_not_come_is_labelled(name: str, dialect: str) -> None:
    """An exchange without an ACK and a delivery without a forward are there only because of a fault."""
    seen = faulty(name, dialect)
    labelled = Counter(frame for label in seen.labels() for frame in label["frames"])
    for exchange in seen.truth["exchanges"]:
        if exchange["acks_due"] and exchange["ack_frame"] is None:
            assert labelled[exchange["frames"][0]]
    for delivery in seen.truth["deliveries"]:
        if not delivery["sent"]:
            assert labelled[delivery["publish_frame"]]
