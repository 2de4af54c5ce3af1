"""What is seen in the messages themselves: damage, speakers, topic numbers, readings and instructions."""

from __future__ import annotations

from collections.abc import Callable

from tests.generators.observers.delivery import WILDCARDS, undue
from tests.generators.observers.story import Seen, Story, frames

BROKERS_ALONE = {
    "colon": {"PUBACK", "SUBACK", "UNSUBACK"},
    "rolebyte": {"BROKER"},
    "topicnumber": {"MESSAGE"},
    "javaints": {"DELIVER"},
}


def with_error(error: str) -> Callable[[Story], list[int]]:
    return lambda seen: frames([row for row in seen.rows if row.error == error])


def wildcards_published(seen: Story) -> list[int]:
    signs = [sign.encode() for sign in WILDCARDS[seen.dialect]]
    return frames([row for row in seen.publishes if any(sign in (row.topic or b"") for sign in signs)])


def wrong_speakers(seen: Story) -> list[int]:
    return frames([row for row in seen.rows if row.to_broker and row.message in BROKERS_ALONE[seen.dialect]])


def numbers_used_again(seen: Story) -> list[int]:
    """A second topic under a publisher's number 0."""
    first: dict[str, bytes | None] = {}
    zeros = [row for row in seen.of("create", to_broker=True) if row.fields["topic_number"] == 0]
    return frames([row for row in zeros if first.setdefault(row.client, row.topic) != row.topic])


def sent_to_another_topic(seen: Story) -> list[int]:
    """The publishes that came to somebody who did not ask for them."""
    too_many = undue(seen)
    astray = {row.payload for row in seen.forwards if row.frame in too_many}
    return frames([row for row in seen.publishes if row.payload in astray])


def _readings(seen: Story) -> list[tuple[Seen, Seen | None]]:
    """Each reading that came to an instructing dashboard, with what that published before the next one came."""
    instructing = {row.client for row in seen.rows if row.message == "DASHBOARD_PUBLISH"}
    found = []
    for client in sorted(instructing):
        rows = [row for row in seen.rows if row.client == client]
        readings = [row for row in rows if row.message == "BROKER" and (row.payload or b"").isdigit()]
        ends = [*(row.frame for row in readings[1:]), rows[-1].frame + 1]
        for reading, end in zip(readings, ends, strict=True):
            said = [row for row in rows if reading.frame < row.frame < end and row.message == "DASHBOARD_PUBLISH"]
            found.append((reading, said[0] if said else None))
    return found


def without_instruction(seen: Story) -> list[int]:
    return frames([reading for reading, said in _readings(seen) if said is None])


def with_wrong_instruction(seen: Story) -> list[int]:
    found = []
    for reading, said in _readings(seen):
        value = int(reading.payload or b"0")
        right = b"lower_temperature" if value > 30 else b"raise_temperature" if value < 25 else b"good_job"
        found += [said] if said is not None and said.payload != right else []
    return frames(found)
