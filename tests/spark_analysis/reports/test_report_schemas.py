"""JUnit, SARIF and JSON are valid by their schemas, whatever stands in topics and file names.

Others' schemas (tests/schemas) judge JUnit and SARIF. Our own (docs/schemas) are written by hand, and allow no key that
they do not name. The traffic is real: packets with hostile topics, read, decoded and judged by the command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from lxml import etree  # type: ignore[import-untyped]
from referencing import Registry, Resource

from tests.conftest import REPO
from tests.spark_analysis.checker.checked import Talk
from tests.spark_analysis.reports.made_results import hostile_result
from topicshark.main import exit_code_of

OURS, OTHERS = REPO / "docs" / "schemas", REPO / "tests" / "schemas"
# Bytes of topics. The broken UTF-8 holds a lone surrogate.
TOPICS = {
    "escape codes": b"\x1b[31mred\x1b]0;title\x07\x08",
    "nul": b"a\x00b",
    "line ends": b"a\r\nb\xe2\x80\xa8c\xc2\x85",
    "bidi": "\u202eabc\u2066\u200b\ufeff".encode(),
    "broken utf-8": b"\xff\xfe\xed\xa0\x80\xc3",
    "no character": "\ufffe\uffff\U0010ffff".encode(),
    "xml": b"]]><!--&amp;&#0;<x a='1'>",
    "html": b"<script>alert(1)</script>\"'><img src=x onerror=alert(1)>",
    "sarif": b"{0} [link](javascript%3A1) \\u0000 ${x} {{y}}",
    "long": b"x" * 10_000,
}
ODD_FOLDER = "]]><script>\x1b[31m\u202e \udcff %41?#"
# All characters that RFC 3986 knows, and % only before two digits.
URI = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")

Run = Callable[..., tuple[str, Any]]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of one, whose folder has an odd name and whose capture holds publishes that are never acknowledged."""
    folder = tmp_path_factory.mktemp("class") / ODD_FOLDER
    folder.mkdir()
    lines = ["1 0 anna > broker SUBSCRIBE filter=*", "2 1 broker > anna SUBACK"]
    for topic in TOPICS.values():
        number, time = len(lines) + 1, 1_000 * len(lines)
        publish = (b"\x01\x00" + topic.replace(b":", b";") + b":1").hex()
        lines.append(f"{number} {time} bert > broker hex:{publish}")
        lines.append(f"{number + 1} {time + 1} broker > anna hex:{publish}")
    subscribe = b"\x03\x00" + TOPICS["xml"]
    lines.append(f"{len(lines) + 1} 90000 carla > broker hex:{subscribe.hex()}")
    lines.append(f"{len(lines) + 1} 99000 broker > carla SUBACK")
    Talk().write(folder / "run.pcap", "\n".join(lines))
    (folder / "no capture \x1b.pcap").write_text("text")
    return folder


@pytest.fixture
def said(capsysbinary: pytest.CaptureFixture[bytes], hostile: Path) -> Run:
    """What a command prints about the hostile capture; with `--by-directory` about the class."""

    def run(*args: str) -> tuple[str, Any]:
        source = hostile.parent if "--by-directory" in args else hostile
        assert exit_code_of([*args, str(source)]) in (0, 1, 4)
        text = capsysbinary.readouterr().out.decode("utf-8")  # whatever stands in it, it is UTF-8
        return text, json.loads(text) if "json" in args or "sarif" in args else None

    return run


def validator(path: Path) -> Draft202012Validator:
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    stored = [(one.name, Resource.from_contents(json.loads(one.read_text()))) for one in OURS.glob("*.json")]
    return Draft202012Validator(schema, registry=Registry().with_resources(stored))


def problems(path: Path, whole: object) -> list[str]:
    return [f"{error.json_path}: {error.message[:300]}" for error in validator(path).iter_errors(whole)]


@pytest.mark.parametrize(
    ("schema", "command"),
    [
        ("check", ["check"]),
        ("timing", ["timing"]),
        ("fanout", ["fanout"]),
        ("grading", ["check", "--by-directory"]),
    ],
)
def test_json_is_valid(said: Run, schema: str, command: list[str]) -> None:
    text, whole = said(*command, "--format", "json")
    assert problems(OURS / f"{schema}.schema.json", whole) == []
    assert text.replace("\n", "").isprintable()


def test_json_holds_the_hostile_topics_escaped(said: Run) -> None:
    (session,) = said("check", "--format", "json")[1]["sessions"]
    found = {one["topic"] for one in session["findings"] if one["rule"] in ("A-MISSING", "W-BAD-TEXT")} - {None}
    assert len(found) == len(TOPICS)
    assert r"a\x00b" in found
    assert r"\xff\xfe\xed\xa0\x80\xc3" in found
    assert r"\xe2\x80\xaeabc\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf" in found
    assert "x" * 10_000 in found


@pytest.mark.parametrize("command", [["check"], ["check", "--by-directory"]])
def test_sarif_is_valid(said: Run, command: list[str]) -> None:
    text, whole = said(*command, "--format", "sarif")
    assert problems(OTHERS / "sarif-2.1.0.json", whole) == []
    assert text.replace("\n", "").isprintable()
    (run,) = whole["runs"]
    assert len(run["results"]) >= len(TOPICS)
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]]
    places += [one["location"]["uri"] for one in run["artifacts"]]
    assert [place for place in places if not URI.fullmatch(place)] == []


@pytest.mark.parametrize("command", [["check"], ["check", "--by-directory"]])
def test_junit_is_valid(said: Run, command: list[str]) -> None:
    text, _ = said(*command, "--format", "junit")
    root = etree.fromstring(text.encode())
    schema = etree.XMLSchema(etree.parse(OTHERS / "junit-10.xsd"))
    schema.validate(root)
    assert [str(error) for error in schema.error_log] == []
    told = "".join(root.itertext())
    assert all(part in told for part in (r"a\x00b", "]]><!--&amp;&#0;<x a='1'>", "<script>", "x" * 10_000))
    assert root.get("failures") == str(len(root.findall(".//failure")))


def test_a_subscription_with_hostile_text_is_valid_in_fanout(said: Run) -> None:
    (session,) = said("fanout", "--format", "json")[1]["sessions"]
    assert TOPICS["xml"].decode() in {row["filter"] for row in session["filters"]}


def test_text_that_no_decoder_has_seen_is_valid_too() -> None:
    """Results made by hand: hostile text in every place where there is text."""
    from spark_analysis.reports.as_json import check_object
    from spark_analysis.reports.junit import junit_text
    from spark_analysis.reports.sarif import sarif_object

    made = hostile_result()
    made.sessions[0].facts |= {
        "point": "broker",
        "starts_late": False,
        "broker_heard": True,
        "loss_seen": False,
        "begin_ns": 0,
        "end_ns": 1,
    }
    assert problems(OURS / "check.schema.json", check_object(made)) == []
    assert problems(OTHERS / "sarif-2.1.0.json", sarif_object(made)) == []
    schema = etree.XMLSchema(etree.parse(OTHERS / "junit-10.xsd"))
    assert schema.validate(etree.fromstring(junit_text(made).encode())), schema.error_log


# --- The judges themselves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"more": 1}, {"verdict": "great"}, {"captures": []}, {"name": "\x1b"}])
def test_the_schema_of_check_refuses_what_is_wrong(said: Run, change: dict[str, Any]) -> None:
    whole = said("check", "--format", "json")[1]
    whole["sessions"][0] |= change
    assert len(problems(OURS / "check.schema.json", whole)) == 1


@pytest.mark.parametrize("path", sorted(OURS.glob("*.json")), ids=lambda path: path.name)
def test_our_schemas_close_every_object(path: Path) -> None:
    def objects(node: object) -> list[dict[str, Any]]:
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        here = [node] if isinstance(node, dict) and node.get("type") == "object" else []
        return [*here, *(one for child in inner for one in objects(child))]

    found = objects(json.loads(path.read_text()))
    assert found
    for one in found:
        assert one["additionalProperties"] is False or one["propertyNames"], one
        if "which of them" not in one.get("description", ""):  # said of objects whose properties are optional
            assert set(one.get("required", ())) == set(one.get("properties", ()))
