"""`topicshark publish`, `subscribe` and `play` as a user runs them, against the real broker."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.conftest import REPO, Command
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.net

TOPICSHARK = [sys.executable, "-m", "topicshark.main"]


@contextmanager
def started(*words: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [*TOPICSHARK, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=REPO,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


@contextmanager
def broker(dialect: str, host: str = "127.0.0.1") -> Iterator[str]:
    """A broker; gives what follows --to."""
    with started("broker", "--dialect", dialect, "--host", host, "--port", "0", "--quiet") as process:
        words = until(process, "listening on").split()
        yield f"[{words[2]}]:{words[4]}" if ":" in words[2] else f"{words[2]}:{words[4]}"


@contextmanager
def nobody() -> Iterator[str]:
    """An address, for --to, at which nothing is ever read."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{deaf.getsockname()[1]}"


def until(process: "subprocess.Popen[str]", text: str) -> str:
    """The first line with this text in it."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return line.rstrip("\n")
    raise AssertionError(f"never said {text!r}: {seen}")


def typed(dialect: str, to: str, command: list[str], lines: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*TOPICSHARK, *command, "--dialect", dialect, "--to", to],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        cwd=REPO,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("dialect", "text", "topic", "printed"),
    [
        ("colon", "home/*", "home/fan", "home/fan: ON"),
        ("topicbyte", "humidity", "humidity", "humidity: ON"),
        ("rolebyte", "home/fan", "home/fan", "home/fan: ON"),
        ("mqttsn", "home/+", "home/fan", "home/fan: ON"),
    ],
)
def test_one_publishes_and_another_prints_it(
    topicshark: Command, dialect: str, text: str, topic: str, printed: str
) -> None:
    with (
        broker(dialect) as to,
        started("subscribe", text, "--dialect", dialect, "--to", to, "--count", "1", "--timeout", "300") as listener,
    ):
        until(listener, "acknowledged: SUB" if dialect != "rolebyte" else "acknowledged: DASHBOARD_SUBSCRIBE")
        answer = topicshark("publish", topic, "ON", "--dialect", dialect, "--to", to)
        assert answer.returncode == 0, answer.stderr
        assert f" {topic}" in answer.stdout
        assert answer.stdout.splitlines()[-1].startswith("acknowledged: ")
        assert until(listener, printed) == printed
        assert listener.wait(timeout=PATIENCE_S) == 0


def test_ipv6_and_retained_messages_and_unsubscribing(topicshark: Command) -> None:
    with broker("colon", "::1") as to:
        assert topicshark("publish", "home/fan", "ON", "--retain", "--to", to).returncode == 0
        answer = topicshark("subscribe", "home/*", "--count", "1", "--timeout", "300", "--unsubscribe", "--to", to)
        assert (answer.returncode, answer.stdout) == (0, "home/fan: ON\n")
        assert "acknowledged: UNSUBSCRIBE home/*" in answer.stderr


def test_without_a_broker_it_resends_says_so_and_fails(topicshark: Command) -> None:
    with nobody() as to:
        quick = ("--to", to, "--resend-after", "0.05")
        answer = topicshark("publish", "a", "b", *quick, "--tries", "3")
        assert answer.returncode == 1
        assert answer.stdout == ""
        assert answer.stderr.splitlines() == [
            "no acknowledgement yet, resent: PUBLISH a (send 2)",
            "no acknowledgement yet, resent: PUBLISH a (send 3)",
            "never acknowledged: PUBLISH a (sent 3 times)",
        ]
        answer = topicshark("subscribe", "a", *quick, "--tries", "2")
    assert answer.returncode == 1
    assert "never acknowledged: SUBSCRIBE a" in answer.stderr


def test_fewer_messages_than_wanted_is_a_failure(topicshark: Command) -> None:
    with broker("colon") as to:
        answer = topicshark("subscribe", "a", "--count", "2", "--timeout", "0.5", "--to", to)
    assert answer.returncode == 1
    assert "received 0 of 2 messages" in answer.stderr


def test_a_dialect_without_acknowledgements_says_so(topicshark: Command) -> None:
    with nobody() as to:
        answer = topicshark("publish", "temperature", "14C", "--dialect", "portdigits", "--to", to)
    assert answer.returncode == 0
    assert answer.stderr == "sent; portdigits has no acknowledgement for it\n"


def test_hostile_text_is_escaped(topicshark: Command) -> None:
    with broker("colon") as to, started("subscribe", "*", "--to", to, "--count", "1", "--timeout", "300") as listener:
        until(listener, "acknowledged")
        topicshark("publish", "t", "\x1b[31mred\u202e", "--to", to)
        assert until(listener, "t: ") == "t: \\x1b[31mred\\xe2\\x80\\xae"


def test_the_prompts_of_publisher_and_subscriber() -> None:
    with broker("colon") as to:
        answer = typed("colon", to, ["publish"], ["temperature:12C", "y", "nonsense", "home/fan:ON", "n", "exit"])
        assert answer.returncode == 0
        assert answer.stdout.splitlines() == ["acknowledged: PUBLISH temperature", "acknowledged: PUBLISH home/fan"]
        assert "there is no colon in it" in answer.stderr
        answer = typed("colon", to, ["subscribe"], ["sub:*", "unsub:*"])
        assert answer.stdout == "temperature: 12C\n"
        assert "acknowledged: UNSUBSCRIBE *" in answer.stderr


def test_a_node_both_subscribes_and_publishes() -> None:
    with broker("topicnumber") as to:
        answer = typed("topicnumber", to, ["play", "node"], ["create:weather", "sub:weather", "weather:sunny", "exit"])
    assert answer.returncode == 0
    assert "weather: sunny" in answer.stdout.splitlines()


def test_many_publishers_and_subscribers_at_once() -> None:
    with broker("colon") as to:
        listeners = [started("subscribe", f"room{n}/*", "--to", to, "--count", "4") for n in range(3)]
        with listeners[0] as one, listeners[1] as two, listeners[2] as three:
            for listener in (one, two, three):
                until(listener, "acknowledged")
            speakers = [started("play", "node", "--to", to) for _ in range(2)]
            with speakers[0] as first, speakers[1] as second:
                for speaker in (first, second):
                    assert speaker.stdin is not None
                    for number in range(6):
                        speaker.stdin.write(f"room{number % 3}/x:{number}\n")
                    speaker.stdin.close()
                    speaker.stdin = None
                for listener in (one, two, three):
                    assert listener.wait(timeout=PATIENCE_S) == 0


def test_a_sensor_makes_the_window_open(topicshark: Command) -> None:
    with broker("topicbyte") as to, started("play", "window", "--to", to, "--count", "2") as window:
        until(window, "acknowledged: SUB temperature")
        answer = topicshark(
            "play", "sensor", "--dialect", "topicbyte", "--readings", "61,49", "--every", "0", "--to", to
        )
        assert answer.returncode == 0
        until(window, "opened the window")
        until(window, "closed the window")
        assert window.wait(timeout=PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (["publish", "a*", "b"], 2, "wildcard"),
        (["publish", "a", "b", "--to", "127.0.0.1:99999"], 2, "invalid port"),
        (["publish", "a", "b", "--to", "no.such.host.invalid"], 2, "unknown host or invalid address"),
        (["publish", "a", "b", "--dialect", "colin"], 3, "colon"),
        (["publish", "a", "b", "--form", "java"], 2, "no form"),
        (["publish", "a", "b", "--role", "sensor"], 2, "no role"),
        (["publish", "a", "b", "--set", "colour=red"], 2, "retain"),
        (["publish", "a", "b", "--bind", "192.0.2.1:5"], 3, "cannot listen at 192.0.2.1 port 5"),
        (["publish", "a", "b", "--mistake", "all"], 2, "retain-on-resend, number-zero"),
        (["publish", "a", "b", "--dialect", "rolebyte", "--retain"], 2, "retain"),
        (["subscribe", "wind", "--dialect", "topicbyte"], 2, "temperature, humidity"),
        (["play", "sensor", "--readings", "warm"], 2, "whole numbers"),
    ],
)
def test_wrong_input_is_told_in_one_line(topicshark: Command, words: list[str], code: int, what: str) -> None:
    answer = topicshark(*words)
    assert answer.returncode == code
    assert what in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_message_longer_than_a_packet(topicshark: Command) -> None:
    text = "all the news " * 400
    with broker("topicnumber") as to:
        with started("play", "node", "--dialect", "topicnumber", "--to", to, "--window", "4") as node:
            assert node.stdin is not None
            node.stdin.write("create:news\nsub:news\n")
            node.stdin.flush()
            until(node, "acknowledged: SUBSCRIPTION news")
            answer = topicshark("publish", "news", text, "--dialect", "topicnumber", "--to", to, "--window", "4")
            assert answer.returncode == 0, answer.stderr
            assert until(node, "news: all the news") == f"news: {text}"
        answer = topicshark("publish", "news", text, "--dialect", "topicnumber", "--to", to)
        assert answer.returncode == 2
        assert "at most 1400" in answer.stderr


# -- forms and endings ------------------------------------------------------------------------------------------------

JAVA_ACK = bytes.fromhex("aced00057716010000124f4b202d2052656365697665642074686973")  # a real one


@contextmanager
def java_broker() -> Iterator[tuple[str, list[bytes]]]:
    """Acknowledges every datagram in a Java block, as the original does before it looks; gives what came."""
    came: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))

        def serve() -> None:
            with suppress(OSError):
                while True:
                    datagram, source = bound.recvfrom(65_535)
                    if not datagram:
                        return
                    came.append(datagram)
                    bound.sendto(JAVA_ACK, source)

        thread = threading.Thread(target=serve)
        thread.start()
        port = bound.getsockname()[1]
        try:
            yield f"127.0.0.1:{port}", came
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", ("127.0.0.1", port))
            thread.join(PATIENCE_S)


def test_a_client_follows_the_form_in_which_the_broker_answers(topicshark: Command) -> None:
    """It said "acknowledged" though the broker had acknowledged what it did not understand."""
    with java_broker() as (to, came):
        answer = topicshark("publish", "temperature", "61", "--dialect", "topicbyte", "--to", to)
    assert answer.returncode == 0
    assert "the broker speaks the form 'java': following it" in answer.stderr
    assert came == [b"\x03\x0a61", bytes.fromhex("aced00057706030a00023631")]


def test_a_form_that_was_asked_for_stays(topicshark: Command) -> None:
    with java_broker() as (to, came):
        topicshark("publish", "temperature", "61", "--dialect", "topicbyte", "--to", to, "--form", "documented")
    assert came == [b"\x03\x0a61"]


def test_portdigits_clients_write_the_observed_form_as_nothing_would_tell_them(topicshark: Command) -> None:
    """From the port that was asked for: a publisher does not listen anywhere else."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
    ):
        deaf.bind(("127.0.0.1", 0))
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        one.close()
        to = f"127.0.0.1:{deaf.getsockname()[1]}"
        words = ("publish", "temperature", "14", "--dialect", "portdigits", "--to", to, "--bind", f"127.0.0.1:{port}")
        assert topicshark(*words).returncode == 0
        datagram, source = deaf.recvfrom(2_000)
    assert source == ("127.0.0.1", port)
    assert len(datagram) == 1_500
    assert datagram[5:18] == bytes.fromhex("010001aced0005770400023134")


def test_a_refused_subscription_is_a_failure(topicshark: Command) -> None:
    with broker("topicnumber") as to:
        answer = topicshark("subscribe", "nothing", "--dialect", "topicnumber", "--to", to, "--timeout", "60")
    assert answer.returncode == 1
    assert "refused: MESSAGE: This topic does not exist." in answer.stderr


def test_a_node_stops_after_its_time_and_after_its_messages() -> None:
    with broker("colon") as to:
        with started("play", "node", "--to", to, "--timeout", "0.2") as node:
            assert node.wait(timeout=PATIENCE_S) == 0
        with started("play", "node", "--to", to, "--count", "1") as node:
            assert node.stdin is not None
            node.stdin.write("sub:a\na:x\n")
            node.stdin.flush()
            assert node.wait(timeout=PATIENCE_S) == 0


def test_sigterm_ends_a_subscriber_with_a_goodbye() -> None:
    with broker("mqttsn") as to, started("subscribe", "news", "--dialect", "mqttsn", "--to", to) as listener:
        until(listener, "acknowledged: SUBSCRIBE")
        listener.send_signal(signal.SIGTERM)
        assert until(listener, "acknowledged: DISCONNECT")
        assert listener.wait(timeout=PATIENCE_S) == 0


def test_two_publishers_of_one_message_do_not_share_a_number(topicshark: Command) -> None:
    """Both used number 0, and a broker with shared numbers took the second one's topic for the first one's."""
    with started(
        "broker", "--dialect", "topicnumber", "--port", "0", "--quiet", "--mistake", "shared-numbers"
    ) as process:
        to = f"127.0.0.1:{until(process, 'listening on').split()[4]}"
        for topic in ("one", "two"):
            assert topicshark("publish", topic, "x", "--dialect", "topicnumber", "--to", to).returncode == 0
