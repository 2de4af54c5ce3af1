"""Simulated runs hold their invariants; a broker with a mistake does not, and its failure replays from the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from fuzzing.simulations import run as simulation
from fuzzing.simulations.log import takes
from pcap_tools.dialect import Dialect, load_dialect
from pcap_tools.dialect.spec import TopicsSpec
from reference_broker import Broker, Endpoint, Send, broker_for
from reference_broker.broker.retained import Retained
from reference_broker.broker.subscriptions import Subscriptions

SOME = 30


def test_every_dialect_holds_the_invariants_in_a_few_runs(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = 2 * len(simulation.dialects())
    assert simulation.main(["--seeds", str(seeds)]) == 0
    figures = dict(line.rsplit(None, 1) for line in capsys.readouterr().out.splitlines())
    for name in ("deliveries due", "delivered", "retained due", "restarts", "partitions", "datagrams lost"):
        assert int(figures[name].replace(",", "")) > 0, f"nothing was judged: {name}"


def test_a_seed_is_always_the_same_run() -> None:
    assert simulation.judge(7, "colon") == simulation.judge(7, "colon")


# -- a broker that gets it wrong --------------------------------------------------------------------------------------


class Altered:
    """A right broker of which one thing is made wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, alter: Callable[[Broker], None]) -> None:
        def made(dialect: Dialect) -> Broker:
            broker = broker_for(dialect)
            alter(broker)
            return broker

        monkeypatch.setattr("generators.simulation.parties.broker_for", made)


def forgets_every_50th_message(broker: Broker) -> None:
    right, sent = broker.handle, 0

    def handle(datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        nonlocal sent
        kept = []
        for send in right(datagram, source, now):
            sent += len(send.datagram) > 1
            if len(send.datagram) == 1 or sent % 50:
                kept.append(send)
        return kept

    broker.handle = handle  # type: ignore[method-assign]


def keeps_who_left(broker: Broker) -> None:
    class Sticky(Subscriptions):
        def remove(self, text: bytes, endpoint: Endpoint) -> bool:
            return self.has(text, endpoint)

    broker.subscriptions.__class__ = Sticky


def forgets_what_it_retained(broker: Broker) -> None:
    class Leaky(Retained):
        def for_filter(self, text: bytes) -> Iterator[tuple[bytes, bytes] | None]:
            return islice((found for found in super().for_filter(text) if found), 1, None)

    broker.retained.__class__ = Leaky


def keeps_the_first_retained(broker: Broker) -> None:
    class Stubborn(Retained):
        def keep(self, topic: bytes, datagram: bytes, host: str = "", fair: bool = True) -> bool:
            return topic in dict(self) or super().keep(topic, datagram, host, fair)

    broker.retained.__class__ = Stubborn


def says_everything_twenty_times(broker: Broker) -> None:
    right = broker.handle
    broker.handle = lambda datagram, source, now: right(datagram, source, now) * 20  # type: ignore[method-assign]


def falls_over_a_filter(broker: Broker) -> None:
    right = broker.handle

    def handle(datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        if datagram[:2] == b"\x05\x00":
            raise IndexError("unsubscribing")
        return right(datagram, source, now)

    broker.handle = handle  # type: ignore[method-assign]


def cuts_datagrams(broker: Broker) -> None:
    right = broker.handle

    def handle(datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        return [send._replace(datagram=send.datagram[:3]) for send in right(datagram, source, now)]

    broker.handle = handle  # type: ignore[method-assign]


MISTAKES: dict[Callable[[Broker], None], str] = {
    forgets_every_50th_message: "delivered",
    keeps_who_left: "left",
    forgets_what_it_retained: "retained",
    keeps_the_first_retained: "retained",
    says_everything_twenty_times: "bounded",
    falls_over_a_filter: "no crash",
    cuts_datagrams: "sound",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_broker_that_is_wrong_is_caught_and_the_failure_replays_from_its_seed(
    mistake: Callable[[Broker], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Altered(monkeypatch, mistake)
    invariant = MISTAKES[mistake]
    runs = ((seed, simulation.judge(seed, "colon")[0]) for seed in range(SOME))
    seed, failures = next((seed, found) for seed, found in runs if any(one.invariant == invariant for one in found))
    assert simulation.judge(seed, "colon")[0] == failures
    assert simulation.main(["--seeds", "1", "--from", str(seed), "--dialect", "colon"]) == 1
    said = capsys.readouterr().out
    assert f"python -m fuzzing.simulations.run --seeds 1 --from {seed} --dialect colon" in said
    monkeypatch.undo()
    assert simulation.judge(seed, "colon")[0] == [], "a right broker passes the same seed"


# -- the judge's own matcher ------------------------------------------------------------------------------------------

KEYWORDS = TopicsSpec(separator="/", wildcards={"+": "one-level", "**": "any-levels", "#": "rest-levels"})


@pytest.mark.parametrize(
    ("topics", "text", "topic", "wanted"),
    [
        (load_dialect("colon").spec.topics, b"home/*", b"home/a/b", True),
        (load_dialect("colon").spec.topics, b"*.b", b"axb", False),
        (KEYWORDS, b"a/+", b"a/b", True),
        (KEYWORDS, b"a/+", b"a/b/c", False),
        (KEYWORDS, b"a/#", b"a", True),
        (KEYWORDS, b"**/c", b"a/b/c", True),
        (KEYWORDS, b"**/c", b"a/b/cc", False),
        (TopicsSpec(wildcards={"255": "all"}), b"255", b"kitchen", True),
        (TopicsSpec(case_sensitive=False), b"Kitchen", b"kitchen", True),
        (TopicsSpec(), b"Kitchen", b"kitchen", False),
    ],
)
def test_the_judges_matcher(topics: TopicsSpec, text: bytes, topic: bytes, wanted: bool) -> None:
    assert takes(topics, text, topic) is wanted
