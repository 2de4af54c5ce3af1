"""The faults as a whole: families, reasons, rates, seeds, and several in one run."""

from __future__ import annotations

import re

import pytest

from generators.generate import GeneratorOptions, generate
from generators.simulation.fault import CATALOGUE
from pcap_tools import load_dialect
from pcap_tools.errors import UsageError
from tests.generators.faults.test_faults import CASES, KEYWORDS, NIBBLES, TURNS, stem
from tests.generators.observers import acks as see_acks
from tests.generators.observers import content as see_content
from tests.generators.observers import delivery as see_delivery
from tests.generators.observers.story import story


def test_every_family_of_rules_has_a_fault() -> None:
    families = {rule.partition("-")[0] for name in TURNS for rule in CATALOGUE[name].rules}
    assert families == set("WPARDTNX")


@pytest.mark.parametrize("name", TURNS)
def test_a_fault_that_does_not_fit_says_why(name: str) -> None:
    names = ["colon", "mqttsn", "portdigits", "rolebyte", "topicbyte", "topicnumber", KEYWORDS, NIBBLES]
    for dialect in names:
        reason = CATALOGUE[name].fits(load_dialect(dialect))
        if reason is not None:
            assert len(reason.split()) > 3
            assert not reason.endswith(".")
            assert dialect not in CASES[name].dialects
            with pytest.raises(UsageError, match=re.escape(reason)):
                generate(GeneratorOptions("building", dialects=(dialect,), faults={name: 0.5}))


@pytest.mark.parametrize("name", ["ack-duplicate", "forward-altered", "wire-bad-text", "resend-early"])
def test_a_rate_is_a_share_of_the_occasions(name: str) -> None:
    truth = story("colon", "building", ((name, 0.1),), rounds=60).truth
    counts = truth["occasions"][name]
    assert counts["done"] == len(truth["faults"])
    assert 0.06 < counts["done"] / counts["occasions"] < 0.14


def test_the_same_seed_tells_the_same() -> None:
    faults = {"ack-missing": 0.1, "forward-late": 0.1, "wire-incomplete": 0.1}
    first, second, other = (
        generate(GeneratorOptions("building", seed, ("colon",), faults=faults)).truth()["faults"] for seed in (5, 5, 6)
    )
    assert first == second
    assert first != other


@pytest.mark.parametrize("name", ["topic-merged", "loop-broken", "number-collision", "wildcard-one-level"])
def test_among_several_dialects_only_those_have_it_that_can(name: str) -> None:
    made = generate(
        GeneratorOptions("mixed", dialects=("colon", "topicbyte", "topicnumber", "rolebyte"), faults={name: 0.5})
    )
    labels = made.truth()["faults"]
    assert labels
    for label in labels:
        assert CATALOGUE[name].fits(load_dialect(label["dialect"])) is None


TOGETHER = ("forward-missing", "forward-altered", "ack-duplicate", "resend-after-ack", "wire-unknown-type")


@pytest.mark.parametrize("dialect", ["colon", NIBBLES], ids=stem)
def test_several_faults_in_one_run_are_told_apart(dialect: str) -> None:
    seen = story(dialect, "building", tuple((name, 0.15) for name in TOGETHER), rounds=20)
    assert {label["name"] for label in seen.labels()} == set(TOGETHER)
    altered = sorted(max(label["frames"]) for label in seen.labels("D-ALTERED"))
    missing = {min(label["frames"]) for label in seen.labels("D-MISSING", "D-ALTERED")}
    assert see_delivery.undue(seen) == altered
    assert set(see_delivery.undelivered(seen)) == missing  # a resend of what is left out is left out as well
    assert see_acks.sent_again_after_ack(seen) == sorted(max(label["frames"]) for label in seen.labels("R-AFTER-ACK"))
    assert see_content.with_error("unknown-type")(seen) == sorted(
        label["frames"][0] for label in seen.labels("W-UNKNOWN-TYPE")
    )
