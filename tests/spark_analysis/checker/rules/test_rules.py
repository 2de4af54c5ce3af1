"""The catalogue of rules: complete, readable, the same as its page, and applied where a dialect can break a rule."""

from __future__ import annotations

import re

import pytest

from generators import faults as _catalogue  # noqa: F401 - enters the faults in the catalogue
from generators.simulation.fault import CATALOGUE
from pcap_tools import load_dialect
from pcap_tools.codec.message import WireError
from pcap_tools.dialect import builtin_names, parse_dialect
from pcap_tools.dialect.load import builtin_text
from spark_analysis.checker.rulebook.catalogue import FAMILIES, RULES, applies, level_of
from spark_analysis.checker.rulebook.page import page
from spark_analysis.checker.session.policy import Policy
from tests.conftest import REPO
from tests.generators.runs import ALL_DIALECTS, named

WARNINGS = {"P-CLIENT-TO-CLIENT", "A-CLIENT-MISSING", "N-UNKNOWN-PUBLISH", "N-UNKNOWN-SUBSCRIBE"}

# By hand, from the reports and the standard: what cannot be broken there.
NOT_APPLICABLE = {
    "colon": "W-BAD-MAGIC W-BAD-LENGTH A-ACK-OF-ACK A-CLIENT-MISSING A-STATUS-MISSING N- X-",
    "topicbyte": "W-NO-DELIMITER W-WILDCARD-TOPIC P-SPEAKER A-LATE A-CLIENT-MISSING A-STATUS-MISSING R- "
    "D-AFTER-UNSUBSCRIBE "
    "T- N- X-",
    "portdigits": "W-NO-DELIMITER W-WILDCARD-TOPIC P-SPEAKER A- R- D-AFTER-UNSUBSCRIBE T- N- X-",
    "topicnumber": "W-NO-DELIMITER W-BAD-MAGIC W-BAD-LENGTH W-BAD-VALUE W-TRAILING-BYTES W-WILDCARD-TOPIC A-LATE R- T- "
    "X-",
    "rolebyte": "W-BAD-MAGIC W-WILDCARD-TOPIC A-LATE A-STATUS-MISSING R- D-AFTER-UNSUBSCRIBE T- N-",
    "mqttsn": "W-NO-DELIMITER P-SPEAKER A-ORDER A-STATUS-MISSING R-ALTERED-RETAIN N- X-",
}


def test_every_error_of_the_wire_has_its_rule() -> None:
    """But for what the capture cut off."""
    errors = {f"W-{error.upper()}" for error in WireError if error is not WireError.CUT}
    assert {name for name in RULES if name.startswith("W-")} == errors | {"W-WILDCARD-TOPIC"}


def test_every_rule_that_a_fault_breaks_is_there_and_an_error() -> None:
    broken = {rule for fault in CATALOGUE.values() for rule in fault.rules}
    assert broken <= set(RULES)
    assert {rule for rule in broken if RULES[rule].level != "error"} == {"A-CLIENT-MISSING"}


def test_levels() -> None:
    assert {rule.id for rule in RULES.values() if rule.level == "warning"} == WARNINGS
    assert {rule.level for rule in RULES.values()} == {"error", "warning"}


def test_rules_come_in_the_order_of_families() -> None:
    letters = "".join(dict.fromkeys(rule.family for rule in RULES.values()))
    assert letters == "".join(FAMILIES) == "WPARDTNX"
    assert [rule.family for rule in RULES.values()] == sorted(
        (rule.family for rule in RULES.values()), key=letters.index
    )


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_told_in_sentences(name: str) -> None:
    rule = RULES[name]
    assert re.fullmatch(r"[WPARDTNX](-[A-Z]+)+", name)
    assert rule.id == name
    assert re.fullmatch(r"[A-Z`][^.]+\.", rule.sentence)
    for text in (rule.meaning, rule.advice):
        assert re.match(r"[A-Z`]", text)
        assert text.endswith(".")


# By hand, from the reports' tables of contents.
TITLES = {
    "colon": {
        "Header Design",
        "Publisher",
        "Subscriber",
        "Broker",
        "PUBLISH Packets",
        "SUBSCRIBE Packets",
        "UNSUBSCRIBE Packets",
        "Acknowledgements & Quality of Service 1",
        "Retained Messages",
    },
    "topicbyte": {"Packet Description", "Broker"},
    "portdigits": {"Key Components", "Broker (manager)", "Protocol and packet encoding"},
    "topicnumber": {
        "Node",
        "Acknowledgements",
        "Broker",
        "Subscriber",
        "Publisher",
        "Use of IP Addresses and Port Numbers",
        "Custom Packet Layout",
    },
    "rolebyte": {"Communication", "Packet Description", "Acknowledgements (ACKs)", "Dashboard", "Broker"},
}


@pytest.mark.parametrize("dialect", builtin_names())
def test_a_dialect_cites_sections_of_its_own_report_by_title(dialect: str) -> None:
    sections = load_dialect(dialect).spec.rules.sections
    cited = [rule for rules in sections.values() for rule in rules]
    assert set(cited) <= RULES.keys()
    assert len(cited) == len(set(cited))
    for section in sections:
        if dialect == "mqttsn":
            assert re.fullmatch(r"MQTT-SN 1\.2, sections? \d[\d.]*((, | and )\d[\d.]*)*", section)
            continue
        assert re.fullmatch(r'report, "[^"]+"((, | and )"[^"]+")*', section)
        assert set(re.findall(r'"([^"]+)"', section)) <= TITLES[dialect]


def test_the_level_of_a_dialects_file_counts() -> None:
    assert level_of("R-ALTERED-RETAIN", load_dialect("colon")) == "note"
    assert level_of("R-ALTERED", load_dialect("colon")) == "error"
    assert level_of("A-CLIENT-MISSING", load_dialect("rolebyte")) == "warning"
    own = parse_dialect(builtin_text("rolebyte") + '\n[rules]\nX-LOOP = "off"\nA-CLIENT-MISSING = "error"\n')
    assert level_of("X-LOOP", own) == "off"
    assert level_of("A-CLIENT-MISSING", own) == "error"


@pytest.mark.parametrize("dialect", builtin_names())
def test_where_a_rule_applies(dialect: str) -> None:
    policy = Policy(load_dialect(dialect))
    marks = NOT_APPLICABLE[dialect].split()
    expected = {name for name in RULES if name in marks or f"{RULES[name].family}-" in marks}
    assert {name for name in RULES if applies(name, policy) is not None} == expected


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_a_rule_that_a_fault_can_break_applies(dialect: str) -> None:
    """What the generators can do to a dialect is decided there by other means, mostly by trying."""
    loaded = load_dialect(named(dialect))
    policy = Policy(loaded)
    for fault in CATALOGUE.values():
        if not fault.is_condition and fault.fits(loaded) is None:
            for rule in fault.rules:
                assert applies(rule, policy) is None, (fault.name, rule)


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_a_reason_is_a_sentence_with_the_dialects_name(dialect: str) -> None:
    loaded = load_dialect(named(dialect))
    reasons = [applies(name, Policy(loaded)) for name in RULES]
    for reason in filter(None, reasons):
        assert loaded.name in reason
        assert len(reason.split()) > 3
        assert not reason.endswith(".")


def test_the_page_is_fresh() -> None:
    written = (REPO / "docs" / "rules.md").read_text()
    assert written == page(), "make it again: python -m spark_analysis.checker.rulebook.page > docs/rules.md"


def test_the_page_names_every_rule() -> None:
    written = (REPO / "docs" / "rules.md").read_text()
    assert re.findall(r"^### (\S+)$", written, re.M) == list(RULES)
