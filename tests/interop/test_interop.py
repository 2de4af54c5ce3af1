"""Brokers and clients that nobody here wrote the toolkit's way, against ours: every message arrives and `check` passes.

With a mistake switched on `check` names it. All options are the defaults, apart from addresses; one form of
``portdigits`` is asked for, because that dialect has no ACK from which a client could learn it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import REPO
from tests.interop.programs import compile_programs, java, may_record, ours, recorded, running
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.net, pytest.mark.skipif(not may_record(), reason="needs the right to record on loopback")]

NET = f"127.88.{int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw'))}"  # one for each test process
BROKER, PUBLISHER, SUBSCRIBER = f"{NET}.1", f"{NET}.2", f"{NET}.3"


class Speech(NamedTuple):
    """A dialect in the words of both sides: its program, port, and what is subscribed to and published."""

    program: str
    port: int
    our_filter: str
    our_topic: str
    their_filter: str
    their_topic: str
    text: str
    received: str  # by their subscriber
    printed: str  # by ours


SPEECH = {
    "colon": Speech("Colon", 50000, "home/*", "home/fan", "home/*", "home/fan", "ON", "home/fan:ON", "home/fan: ON"),
    "topicbyte": Speech(
        "TopicByte", 50000, "humidity", "humidity", "20", "20", "Humidity:61", "20:Humidity:61", "humidity: Humidity:61"
    ),
    "portdigits": Speech(
        "PortDigits", 12345, "temperature", "temperature", "01", "01", "14C", "01:14C", "temperature: 14C"
    ),
    "topicnumber": Speech(
        "TopicNumber", 50003, "weather", "weather", "weather", "weather", "dry", "weather:dry", "weather: dry"
    ),
    "rolebyte": Speech(
        "RoleByte",
        50001,
        "temperature/room1",
        "temperature/room1",
        "temperature/room1",
        "temperature/room1",
        "20",
        "temperature/room1:20",
        "temperature/room1: 20",
    ),
}
NORMAL = ("topicbyte", "observed")  # the one case that is not long
FORMS = [(name, form) for name in SPEECH for form in ("observed", "documented")]
LONG = pytest.mark.long


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_programs(tmp_path_factory.mktemp("classes"))


def checked(path: Path, dialect: str) -> tuple[int, set[str]]:
    """The exit code of `check`, and the rules of all findings."""
    at = f"{BROKER}:{SPEECH[dialect].port}"
    words = ours("check", str(path), "--dialect", dialect, "--broker", at, "--format", "json")
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True, timeout=PATIENCE_S * 3, check=False)
    assert done.stdout, done.stderr
    sessions = json.loads(done.stdout)["sessions"]
    assert sum(session["datagrams"] for session in sessions) > 0
    return done.returncode, {finding["rule"] for session in sessions for finding in session["findings"]}


def options(dialect: str, form: str) -> list[str]:
    """Theirs: where there is one form, it is the one that is observed."""
    return ["--documented"] if form == "documented" and dialect in ("topicbyte", "portdigits") else []


def our_form(dialect: str, form: str) -> list[str]:
    return ["--form", "documented"] if (dialect, form) == ("portdigits", "documented") else []


def their_broker_and_our_clients(
    classes: Path, dialect: str, form: str, mistakes: list[str], publishes: int = 1
) -> bool:
    """Whether our subscriber got every message."""
    speech = SPEECH[dialect]
    at = f"{BROKER}:{speech.port}"
    theirs = java(classes, speech.program, "broker", "--bind", at, *options(dialect, form), *mistakes)
    to = ["--dialect", dialect, "--to", at, *our_form(dialect, form)]
    publish = ours("publish", speech.our_topic, speech.text, *to, "--bind", PUBLISHER)
    with running(*theirs) as broker:
        broker.wait_for("listening on")
        if dialect == "topicnumber":  # a topic exists once somebody has published to it
            assert (
                subprocess.run(publish, cwd=REPO, timeout=PATIENCE_S, capture_output=True, check=False).returncode == 0
            )
        words = ours(
            "subscribe", speech.our_filter, *to, "--bind", SUBSCRIBER, "--count", str(publishes), "--timeout", "4"
        )
        with running(*words) as subscriber:
            if dialect == "portdigits":
                broker.wait_for("subscribed")
            else:
                subscriber.wait_for("acknowledged: ")
            subprocess.run(publish, cwd=REPO, timeout=PATIENCE_S, capture_output=True, check=False)
            has_all = subscriber.end() == 0 and subscriber.lines.count(speech.printed) == 1
        if mistakes:  # what never came is known to be missing only if the capture goes on
            subprocess.run(publish, cwd=REPO, timeout=PATIENCE_S, capture_output=True, check=False)
        return has_all


@pytest.mark.parametrize(
    ("dialect", "form"),
    [pytest.param(*case, marks=[] if case == NORMAL else LONG) for case in FORMS],
)
def test_our_clients_at_their_broker(classes: Path, tmp_path: Path, dialect: str, form: str) -> None:
    path = tmp_path / "interop.pcap"
    with recorded(path, {BROKER, PUBLISHER, SUBSCRIBER}):
        assert their_broker_and_our_clients(classes, dialect, form, [])
    code, rules = checked(path, dialect)
    if (dialect, form) == NORMAL:  # the first PUBLISH is in the other form: acknowledged unread, and not forwarded
        rules -= {"D-MISSING"}
    assert (code, rules) == (0, set())


@pytest.mark.long
@pytest.mark.parametrize(("dialect", "form"), FORMS)
def test_their_clients_at_our_broker(classes: Path, tmp_path: Path, dialect: str, form: str) -> None:
    speech, path = SPEECH[dialect], tmp_path / "interop.pcap"
    at = f"{BROKER}:{speech.port}"
    serve = ours("broker", "--dialect", dialect, "--host", BROKER, "--port", str(speech.port))
    subscribe = java(
        classes, speech.program, "subscribe", at, speech.their_filter, "1", "--bind", f"{SUBSCRIBER}:50111"
    )
    publish = java(
        classes, speech.program, "publish", at, speech.their_topic, speech.text, "--bind", f"{PUBLISHER}:50112"
    )
    with recorded(path, {BROKER, PUBLISHER, SUBSCRIBER}), running(*serve) as broker:
        broker.wait_for("listening on")
        with running(*subscribe, *options(dialect, form)) as subscriber:
            broker.wait_for("SUBSCRI" if dialect != "topicbyte" else " SUB ")
            done = subprocess.run([*publish, *options(dialect, form)], timeout=PATIENCE_S, check=False)
            if dialect == "topicnumber":  # the subscriber asks again until the topic exists
                subscriber.wait_for("subscribed")
                done = subprocess.run(publish, timeout=PATIENCE_S, check=False)
            assert done.returncode == 0
            assert subscriber.end() == 0
            assert f"received {speech.received}" in subscriber.lines
    code, rules = checked(path, dialect)
    assert (code, rules - {"N-UNKNOWN-SUBSCRIBE"}) == (0, set())


MISTAKES = [
    ("colon", ["--no-forward"], "D-MISSING"),
    ("colon", ["--ack-first"], "A-ORDER"),
    ("topicbyte", ["--one-topic"], "D-MISSING"),
    ("portdigits", ["--no-forward"], "D-MISSING"),
    ("portdigits", ["--wrong-topic"], "D-MISSING"),
    ("topicnumber", ["--no-message"], "A-STATUS-MISSING"),
    ("topicnumber", ["--no-forward"], "D-MISSING"),
    ("rolebyte", ["--same-type"], "P-SPEAKER"),
    ("rolebyte", ["--no-forward"], "D-MISSING"),
    ("rolebyte", ["--no-ack"], "A-MISSING"),
]


@pytest.mark.long
@pytest.mark.parametrize(("dialect", "mistakes", "rule"), MISTAKES)
def test_a_mistake_of_their_broker_is_named(
    classes: Path, tmp_path: Path, dialect: str, mistakes: list[str], rule: str
) -> None:
    path = tmp_path / "interop.pcap"
    with recorded(path, {BROKER, PUBLISHER, SUBSCRIBER}):
        their_broker_and_our_clients(classes, dialect, "observed", mistakes)
    code, rules = checked(path, dialect)
    assert rule in rules
    assert code == (dialect != "portdigits"), "without any ACK a capture cannot tell that the broker had the message"
