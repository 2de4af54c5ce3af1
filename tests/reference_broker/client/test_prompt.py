"""Lines that a user types at the prompt, right and wrong."""

import pytest

from pcap_tools import load_dialect
from reference_broker.client import client_for
from reference_broker.client.prompt import Prompt

BROKER = ("127.0.0.1", 50000)


def prompt(dialect: str, **settings: bool | None) -> tuple[Prompt, list[str]]:
    told: list[str] = []
    return Prompt(client_for(load_dialect(dialect), BROKER), told.append, **settings), told  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "datagram"),
    [
        (b"home/fan:ON", b"\x01\x00home/fan:ON"),
        (b"t:12:30", b"\x01\x00t:12:30"),
        (b"room one:a b", b"\x01\x00room one:a b"),
        (b"sub:home/*", b"\x03\x00home/*"),
        (b"unsub:home/*", b"\x05\x00home/*"),
    ],
)
def test_a_line_becomes_a_request(line: bytes, datagram: bytes) -> None:
    typed, told = prompt("colon")
    assert [send.datagram for send in typed.take(line, 0)] == [datagram]
    assert told == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"nonsense", "no colon"),
        (b":x", "topic is empty"),
        (b"sub:", "filter is empty"),
        (b"home/*:ON", "wildcard"),
        (b"\xff\xfe:x", "bad-text"),
    ],
)
def test_a_wrong_line_is_explained_and_nothing_is_sent(line: bytes, what: str) -> None:
    typed, told = prompt("colon")
    assert typed.take(line, 0) == []
    assert what in told[0]
    assert not typed.is_over


def test_the_end_of_the_input_and_exit_end_it() -> None:
    for end in (None, b"exit", b" exit "):
        typed, _ = prompt("colon")
        typed.take(end, 0)
        assert typed.is_over


def test_each_message_may_be_asked_about() -> None:
    typed, told = prompt("colon", subscribes=False, retain=None)
    assert typed.take(b"t:1", 0) == []
    assert typed.hint == "retain it? (y/n)"
    assert typed.take(b"maybe", 0) == []
    assert told == ["please answer y or n"]
    assert [send.datagram for send in typed.take(b"Y", 0)] == [b"\x01\x01t:1"]
    assert typed.hint == "enter topic:payload or exit"


def test_a_subscriber_does_not_publish_and_a_publisher_may_call_a_topic_sub() -> None:
    subscriber, told = prompt("colon", publishes=False)
    assert subscriber.take(b"home/fan:ON", 0) == []
    assert "only subscribes" in told[0]
    publisher, _ = prompt("colon", subscribes=False)
    assert [send.datagram for send in publisher.take(b"sub:x", 0)] == [b"\x01\x00sub:x"]


def test_only_what_the_dialect_has_is_offered() -> None:
    assert prompt("rolebyte")[0].hint == "enter topic:payload, sub:<topic> or exit"
    assert "create:<topic>" in prompt("topicnumber")[0].hint
    assert "create" not in prompt("mqttsn")[0].hint
    assert [send.datagram[:13] for send in prompt("topicnumber")[0].take(b"create:weather", 0)] == [
        b"\x04\0\0\0\0\0weather"
    ]
