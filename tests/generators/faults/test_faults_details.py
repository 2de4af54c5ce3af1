"""What single faults do beyond the frame that tells of them."""

from __future__ import annotations

import pytest

from tests.generators.faults.test_faults import KEYWORDS, NESTEDACK, clean, faulty, stem
from tests.generators.observers import acks as see_acks
from tests.generators.observers import delivery as see_delivery
from tests.generators.observers.story import Seen, frames, story


@pytest.mark.parametrize("dialect", ["colon", "topicbyte"], ids=stem)
def test_what_overtakes_a_late_message_is_labelled(dialect: str) -> None:
    seen = faulty("forward-late", dialect)
    told = sorted((label["frames"][-2], label["frames"][-1]) for label in seen.labels("D-REORDERED"))
    assert told
    assert see_delivery.overtakings(seen) == told


@pytest.mark.parametrize("dialect", ["colon", KEYWORDS], ids=stem)
def test_messages_come_in_the_other_order(dialect: str) -> None:
    seen = faulty("forward-reordered", dialect)
    told = sorted((label["frames"][-2], label["frames"][-1]) for label in seen.labels("D-REORDERED"))
    assert told
    assert see_delivery.overtakings(seen) == told
    assert see_delivery.overtakings(clean("forward-reordered", dialect)) == []


@pytest.mark.parametrize("dialect", ["colon", "portdigits", NESTEDACK], ids=stem)
def test_what_goes_astray_is_missing_elsewhere(dialect: str) -> None:
    seen = faulty("forward-misdirected", dialect)
    assert see_delivery.undelivered(seen) == sorted(min(label["frames"]) for label in seen.labels())


@pytest.mark.parametrize("dialect", ["colon", "topicbyte", KEYWORDS], ids=stem)
def test_an_altered_message_is_no_other_one(dialect: str) -> None:
    seen = faulty("forward-altered", dialect)
    published = {row.payload for row in seen.publishes}
    changed = {max(label["frames"]) for label in seen.labels()}
    assert {row.frame for row in seen.forwards if row.payload not in published} == changed


@pytest.mark.parametrize("dialect", ["topicbyte", "portdigits"], ids=stem)
def test_the_second_topic_is_missed_by_those_who_get_the_first(dialect: str) -> None:
    seen = faulty("topic-merged", dialect)
    missing = sorted(min(label["frames"]) for label in seen.labels("D-MISSING"))
    assert missing
    assert see_delivery.undelivered(seen) == missing


def test_a_late_ack_comes_once_after_one_resend() -> None:
    seen = faulty("ack-late", "colon")
    late = set(see_acks.late_acks(seen))
    for asked in see_acks.talks(seen)[0]:
        if asked.acks[0].frame in late:
            assert (len(asked.sends), len(asked.acks)) == (2, 1)
            assert asked.acks[0].frame > asked.sends[1].frame


def test_a_misdirected_ack_is_made_good_by_the_resend() -> None:
    seen = faulty("ack-misdirected", "colon")
    assert see_acks.unacknowledged(seen) == []
    resent = [asked for asked in see_acks.talks(seen)[0] if len(asked.sends) == 2]
    assert frames([asked.sends[0] for asked in resent]) == sorted(min(label["frames"]) for label in seen.labels())


def test_an_unsubscribed_client_had_asked_for_it_before() -> None:
    seen = faulty("forward-after-unsubscribe", "colon")
    rows = {row.frame: row for row in seen.rows}
    for label in seen.labels():
        gone, publish, forward = (rows[frame] for frame in label["frames"])
        assert gone.meaning == "unsubscribe"
        assert gone.client == forward.client
        assert see_delivery.wants("colon", gone.filter or b"", publish.topic or b"")


def test_a_wildcard_that_stops_at_a_level_only_spoils_wide_filters() -> None:
    seen = story("colon", "building", (("wildcard-one-level", 1.0),))
    for row, standing in see_delivery.subscriptions(seen):
        if row.to_broker and row.meaning == "publish":
            narrow = [client for client, text in standing if _one_level(text, row.topic or b"")]
            got = {forward.client for forward in seen.forwards if forward.payload == row.payload}
            assert got == set(narrow)


def _one_level(text: bytes, topic: bytes) -> bool:
    wanted, there = text.split(b"/"), topic.split(b"/")
    pairs = zip(wanted, there, strict=False)
    return len(wanted) == len(there) and all(one in (b"*", other) for one, other in pairs)


def test_mqttsn_keeps_silent_when_it_would_send_again() -> None:
    """The broker sends an unacknowledged PUBLISH again; what a fault left out stays out."""
    seen = story("mqttsn", "building", (("forward-missing", 0.3),))
    forwarded = {(row.payload, row.client) for row in seen.forwards}
    missing = [delivery for delivery in seen.truth["deliveries"] if not delivery["sent"]]
    rows = {row.frame: row for row in seen.rows}
    assert len(missing) == len(seen.labels()) > 0
    for delivery in missing:
        assert (rows[delivery["publish_frame"]].payload, delivery["subscriber"]) not in forwarded


def test_mqttsn_sends_again_what_a_client_does_not_acknowledge() -> None:
    seen = story("mqttsn", "building", (("client-ack-missing", 0.1),))
    rows = {row.frame: row for row in seen.rows}
    assert any(len(label["frames"]) > 1 for label in seen.labels())
    for label in seen.labels():
        sends = [rows[frame] for frame in label["frames"]]
        assert len({row.fields["message_id"] for row in sends}) == 1
        answered = [
            row
            for row in seen.of("ack", to_broker=True)
            if row.client == sends[0].client and row.message == "PUBACK" and row.fields["message_id"] in _ids(sends)
        ]
        assert not answered


def _ids(rows: list[Seen]) -> set[int]:
    return {row.fields["message_id"] for row in rows}
