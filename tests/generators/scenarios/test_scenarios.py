"""The scenarios on every dialect there is: they run, decode, and hold what their truth tells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from generators.generate import GeneratorOptions, generate
from generators.scenarios import SCENARIOS, ScenarioOptions, Script
from generators.scenarios.hostile import FAULTS
from generators.simulation.engine import START_NS, Simulation
from generators.simulation.fault import CATALOGUE
from generators.simulation.random_source import RandomSource
from pcap_tools.dialect import builtin_names
from pcap_tools.errors import UsageError
from tests.generators.runs import ALL_DIALECTS, SMALL, Play, named, play
from tests.vectors import dialect_of

GENERAL = [name for name, scenario in SCENARIOS.items() if scenario.dialect is None]
RETAINING = {"colon", "mqttsn", "magicbyte"}
NOT_FOR = {  # by hand, from the dialects' files
    "retained": set(ALL_DIALECTS) - RETAINING,
    "churn": {"openended"},  # nobody can subscribe
    "fragmented": {"options"},  # 32 bytes, always
}
WITHOUT_UNSUBSCRIBE = {
    "portdigits", "rolebyte", "topicbyte", "bitgroups", "javaints", "littlesigned", "nestedack", "options",
    "twolengths", "varints",
}  # fmt: skip
PAIRS = [(scenario, dialect) for scenario in GENERAL for dialect in ALL_DIALECTS]
POSSIBLE = [(scenario, dialect) for scenario, dialect in PAIRS if dialect not in NOT_FOR.get(scenario, ())]


def staged(scenario: str, dialect: str, **sizes: int) -> Script:
    return SCENARIOS[scenario].build(ScenarioOptions((dialect_of(dialect),), RandomSource(1), **sizes))  # type: ignore[arg-type]


@pytest.mark.parametrize(("scenario", "dialect"), POSSIBLE)
def test_it_decodes_and_holds_what_the_truth_tells(scenario: str, dialect: str, tmp_path: Path) -> None:
    run = play(scenario, tmp_path, dialect, **SMALL)
    check_errors(run)
    check_deliveries(run)
    if scenario not in ("lossy", "hostile"):
        assert run.truth["faults"] == []
        check_nothing_more_is_delivered(run)
        assert all(exchange["ack_frame"] for exchange in run.truth["exchanges"])


def check_errors(run: Play) -> None:
    """Only what a fault did is malformed."""
    wrong = {frame for fault in run.truth["faults"] for frame in fault["frames"]}
    copies = dict(run.truth["capture"]["copies"])
    errors = {copies.get(frame, frame): row.message.error for frame, row in run.rows.items() if row.message}
    assert {frame for frame, error in errors.items() if error is not None} <= wrong


def check_deliveries(run: Play) -> None:
    """Each goes to its subscriber and says what the publish said."""
    for delivery in run.truth["deliveries"]:
        publish, forward = run.shown(delivery["publish_frame"]), run.shown(delivery["frame"])
        host, port = delivery["subscriber"].rsplit(":", 1)
        assert (forward["dst"], forward["dport"]) == (host, int(port))
        assert forward["payload"] == publish["payload"]
        assert forward["meaning"] in ("publish", "deliver")


def check_nothing_more_is_delivered(run: Play) -> None:
    brokers = {site["broker"].rsplit(":", 1)[0] for site in run.truth["sites"]}
    copies = dict(run.truth["capture"]["copies"])
    told = [
        frame
        for frame, row in run.rows.items()
        if row.datagram.src in brokers
        and frame not in copies
        and row.message is not None
        and row.message.meaning in ("publish", "deliver")
    ]
    assert sorted(told) == sorted(delivery["frame"] for delivery in run.truth["deliveries"])


@pytest.mark.parametrize(("scenario", "dialect"), sorted(set(PAIRS) - set(POSSIBLE)))
def test_what_a_dialect_cannot_have_is_refused_with_a_way_out(scenario: str, dialect: str) -> None:
    with pytest.raises(UsageError, match=r"use `building`"):
        generate(GeneratorOptions(scenario, dialects=(named(dialect),)))


# -- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scenario", "dialect"), POSSIBLE)
def test_the_smallest_sizes_do(scenario: str, dialect: str) -> None:
    script = staged(scenario, dialect, sensors=1, dashboards=1, actuators=0, rounds=1)
    assert Simulation(script.sites, 1, script.network).run().sent


@pytest.mark.parametrize("scenario", ["building", "retained", "churn", "fragmented"])
@pytest.mark.parametrize("sizes", [(1, 1, 0, 1), (2, 0, 0, 3), (5, 7, 3, 2)])
def test_sizes_are_honoured(scenario: str, sizes: tuple[int, int, int, int]) -> None:
    sensors, dashboards, actuators, rounds = sizes
    script = staged(scenario, "colon", sensors=sensors, dashboards=dashboards, actuators=actuators, rounds=rounds)
    kinds = Counter(node.name.rstrip("0123456789") for node in script.sites[0].nodes)
    assert kinds == Counter(sensor=sensors, dashboard=dashboards, actuator=actuators)
    run = Simulation(script.sites, 1, script.network).run()
    published = [sent for sent in run.sent if sent.node is not None and sent.message.meaning == "publish"]
    assert len(published) == sensors * rounds


@pytest.mark.slow
@pytest.mark.parametrize("dialect", builtin_names())
@pytest.mark.parametrize("scenario", ["building", "churn"])
def test_300_sensors_do(scenario: str, dialect: str) -> None:
    script = staged(scenario, dialect, sensors=300, rounds=1)
    run = Simulation(script.sites, 1, script.network).run()
    speakers = {sent.transit.src[0] for sent in run.sent if sent.node and sent.node.name.startswith("sensor")}
    assert len(speakers) == 300


def test_sizes_that_make_no_sense_are_refused() -> None:
    for sizes in ({"sensors": 0}, {"dashboards": -1}, {"actuators": -1}, {"rounds": 0}):
        with pytest.raises(UsageError, match=f"{next(iter(sizes))} is "):
            generate(GeneratorOptions("building", **sizes))  # type: ignore[arg-type]


def test_only_mixed_takes_several_dialects() -> None:
    with pytest.raises(UsageError, match="`mixed` takes several"):
        generate(GeneratorOptions("building", dialects=("colon", "rolebyte")))


# -- building: what can be tiled --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", sorted(set(ALL_DIALECTS) - {"mqttsn"}))
@pytest.mark.parametrize("sizes", [{}, {"sensors": 60, "dashboards": 20, "rounds": 2}])
def test_publishers_live_after_all_subscriptions_stand(dialect: str, sizes: dict[str, int]) -> None:
    script = staged("building", dialect, **sizes)
    (site,) = script.sites
    run = Simulation(script.sites, 1, script.network).run()
    assert site.settled_ns is not None
    settled = START_NS + site.settled_ns
    for sent in run.sent:
        name = sent.node.name if sent.node else "broker"
        before = sent.transit.sent_ns < settled
        assert not (before and name.startswith("sensor")), name
        assert before or name != "registrar"
        assert before or sent.message.meaning not in ("subscribe", "unsubscribe")
        assert not before or max(sent.transit.arrived_ns) < settled, "on its way when the publishers begin"


def test_subscribers_say_good_bye_when_publishers_have_gone() -> None:
    script = staged("building", "mqttsn")
    run = Simulation(script.sites, 1, script.network).run()
    leaving = [
        sent.node.name.rstrip("0123456789")
        for sent in run.sent
        if sent.node is not None and sent.message.message == "DISCONNECT"
    ]
    assert leaving == ["sensor"] * 8 + ["dashboard"] * 4 + ["actuator"] * 2


# -- the others, each for what it is there for ------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", sorted(RETAINING))
def test_retained_messages_reach_later_subscribers_and_are_replaced(dialect: str, tmp_path: Path) -> None:
    run = play("retained", tmp_path, dialect)
    retained = [delivery for delivery in run.truth["deliveries"] if delivery["retained"]]
    publishes = {
        frame: row for frame, row in run.rows.items() if row.datagram.dst == "10.0.0.1" and is_publish(run, frame)
    }
    kept = [frame for frame, row in publishes.items() if row.message and row.message.retain]
    assert len(kept) > 20
    assert len(publishes) - len(kept) > 20
    assert {delivery["publish_frame"] for delivery in retained} <= set(kept)
    several = Counter(delivery["frame"] for delivery in run.truth["deliveries"])
    assert max(several.values()) == 1
    for delivery in retained:  # the newest that was kept under its topic, though others were published since
        first = run.rows[delivery["publish_frame"]]
        assert first.message is not None
        later = [
            frame
            for frame in kept
            if delivery["publish_frame"] < frame < delivery["frame"]
            and (row := publishes[frame]).datagram.src == first.datagram.src
            and row.message is not None
            and row.message.topic == first.message.topic
        ]
        assert (
            not later or run.rows[later[0]].datagram.time_ns + 2_000_000 > run.rows[delivery["frame"]].datagram.time_ns
        )
    assert len({delivery["subscriber"] for delivery in retained}) >= 3


def is_publish(run: Play, frame: int) -> bool:
    message = run.rows[frame].message
    return message is not None and message.meaning == "publish"


@pytest.mark.parametrize("dialect", sorted(set(ALL_DIALECTS) - {"openended"}))
def test_subscribers_come_and_go_while_publishers_publish(dialect: str) -> None:
    script = staged("churn", dialect)
    run = Simulation(script.sites, 1, script.network).run()
    asked = [sent for sent in run.sent if sent.node is not None]
    times = {
        meaning: [sent.transit.sent_ns for sent in asked if sent.message.meaning == meaning]
        for meaning in ("publish", "subscribe", "unsubscribe")
    }
    middle = sorted(times["publish"])[len(times["publish"]) // 2]
    assert sum(time > middle for time in times["subscribe"]) >= 2
    assert sum(time < middle for time in times["subscribe"]) >= 2
    assert (len(times["unsubscribe"]) > 20) == (dialect not in WITHOUT_UNSUBSCRIBE)
    assert run.deliveries


@pytest.mark.parametrize("dialect", sorted(set(ALL_DIALECTS) - {"options"}))
def test_all_that_is_published_travels_in_fragments(dialect: str) -> None:
    made = generate(GeneratorOptions("fragmented", dialects=(named(dialect),), **SMALL))
    for sent in made.run.sent:
        frames = made.capture.frames_of(sent.transit.number)
        if sent.message.meaning in ("publish", "deliver"):
            assert len(frames) > 1
    ip_lengths = [int.from_bytes(frame.data[16:18], "big") for frame in made.capture.frames]
    assert max(ip_lengths) <= made.script.capture.mtu


def test_fragments_of_ipv6_are_at_least_as_large_as_it_wants_them() -> None:
    made = generate(GeneratorOptions("fragmented", dialects=("colon",), ipv6=True, **SMALL))
    assert len(made.capture.frames) > len(made.run.sent)
    with pytest.raises(UsageError, match="leave IPv6 out"):
        generate(GeneratorOptions("fragmented", dialects=("rolebyte",), ipv6=True, **SMALL))


def test_hostile_knows_every_fault_of_the_wire() -> None:
    assert set(FAULTS) <= set(CATALOGUE)
    assert {name for name in CATALOGUE if name.startswith("wire-")} <= set(FAULTS)


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_hostile_asks_for_no_fault_that_a_dialect_cannot_have(dialect: str) -> None:
    asked = staged("hostile", dialect).faults
    reasons = {name: CATALOGUE[name].fits(dialect_of(dialect)) for name in FAULTS}
    assert {name: reasons[name] for name in asked} == dict.fromkeys(asked)
    assert all(reasons[name] for name in set(FAULTS) - set(asked))


@pytest.mark.parametrize(
    ("dialect", "form"), [*((name, None) for name in builtin_names()), ("topicbyte", "java"), ("portdigits", "java")]
)
def test_hostile_traffic_is_malformed_in_every_way(dialect: str, form: str | None, tmp_path: Path) -> None:
    """What the truth calls a fault of the wire format the codec finds malformed, and nothing else."""
    run = play("hostile", tmp_path, dialect, form=form)
    wire = [fault for fault in run.truth["faults"] if fault["name"].startswith("wire-")]
    done = {fault["name"] for fault in wire}
    occasions = {name: count["occasions"] for name, count in run.truth["occasions"].items()}
    often = {name for name, count in occasions.items() if count > 60 and name.startswith("wire-")}
    assert often <= done <= set(run.made.script.faults)
    assert len(often) >= 3
    labelled = {frame: fault["name"] for fault in wire for frame in fault["frames"]}
    found = {frame: row.message.error for frame, row in run.rows.items() if row.message and row.message.error}
    assert {frame: f"wire-{error}" for frame, error in found.items()} == labelled


def test_hostile_texts_arrive_as_they_are(tmp_path: Path) -> None:
    """In a dialect that can carry all of them, and without the faults' own ones."""
    run = play("hostile", tmp_path, "asciiheader")
    forwards = [row.message for row in run.rows.values() if row.datagram.src == "10.0.0.1" and row.message]
    payloads = b"\n".join(message.payload or b"" for message in forwards)
    topics = [message.topic or b"" for message in forwards]
    for text in (
        b"\x1b[2J",
        b"<script>",
        b"%n",
        b"../../",
        b"nul\x00",
        b"\xe2\x80\xae",
        b"\xff\xfe",
        b"\r\nSet-Cookie",
    ):
        assert text in payloads
    for text in (b"\x1b[2J", b"<script>", b"%n", b"../../", b"nul\x00", b"\xe2\x80\xae"):
        assert any(text in topic for topic in topics)
    assert max(map(len, topics)) >= 900
    assert max(topic.count(b"/") for topic in topics) >= 50


def test_mixed_has_all_built_in_dialects_apart_and_other_traffic(tmp_path: Path) -> None:
    """Nobody tells the reader which dialect it is, and two of them share a port."""
    run = play("mixed", tmp_path, **SMALL)
    assert [site["dialect"] for site in run.truth["sites"]] == builtin_names()
    assert run.truth["capture"]["point"] == "any"
    assert run.truth["capture"]["noise"] > 100
    nets = {".".join(site["broker"].split(".")[:2]): site["dialect"] for site in run.truth["sites"]}
    assert len(nets) == len(builtin_names())
    transits = {run.made.capture.frame_of(sent.transit.number): sent for sent in run.made.run.sent}
    for frame, sent in transits.items():
        assert frame is not None
        row = run.rows[frame]
        assert row.message is not None
        assert row.message.dialect == sent.site.dialect.name == nets[".".join(row.datagram.src.split(".")[:2])]
        assert row.message.error is None
    names = [node["name"] for site in run.truth["sites"] for node in site["nodes"]]
    assert len(set(names)) == len(names)


def test_mixed_with_dialects_of_the_users_own(tmp_path: Path) -> None:
    run = play("mixed", tmp_path, "nibbles", "keywords", "colon", **SMALL)
    check_errors(run)
    check_deliveries(run)
    assert {row.message.dialect for row in run.rows.values() if row.message} == {"nibbles", "keywords", "colon"}
    with pytest.raises(UsageError, match="a form belongs to one dialect"):
        generate(GeneratorOptions("mixed", form="java"))


@pytest.mark.parametrize("scenario", GENERAL)
def test_every_scenario_can_be_had_in_ipv6(scenario: str) -> None:
    made = generate(GeneratorOptions(scenario, ipv6=True, **SMALL))
    assert all(":" in sent.transit.src[0] for sent in made.run.sent)
    assert all(made.capture.frame_of(sent.transit.number) for sent in made.run.sent if sent.transit.arrived_ns)
