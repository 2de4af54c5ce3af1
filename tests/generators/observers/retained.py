"""What is seen of retained messages: which are owed to a new subscriber, and which it gets."""

from __future__ import annotations

from collections.abc import Callable

from tests.generators.observers.acks import talks
from tests.generators.observers.delivery import retained_copies, wants
from tests.generators.observers.story import Seen, Story, frames

RETAINED_COMES_FIRST = ("colon", "magicbyte")


def retained_due(seen: Story) -> list[tuple[Seen, Seen, bool]]:
    """Subscription, retained publish that it is owed, and whether a plain one came after that."""
    kept: dict[bytes | None, tuple[Seen, bool]] = {}
    found = []
    for row in seen.rows:
        if row.to_broker and row.meaning == "publish":
            if row.retain:
                kept[row.topic] = row, False
            elif row.topic in kept:
                kept[row.topic] = kept[row.topic][0], True
        elif row.to_broker and row.meaning == "subscribe":
            found += [(row, *kept[topic]) for topic in kept if wants(seen.dialect, row.filter or b"", topic or b"")]
    return found


def _copies_for(seen: Story, subscribe: Seen) -> list[Seen]:
    """Those that come before the client subscribes to something else."""
    later = [row for row in seen.of("subscribe", to_broker=True) if row.client == subscribe.client]
    end = min((row.frame for row in later if row.frame > subscribe.frame), default=seen.rows[-1].frame + 1)
    return [
        row for row in retained_copies(seen) if row.client == subscribe.client and subscribe.frame < row.frame < end
    ]


def retained_missing(was_cleared: bool) -> Callable[[Story], list[int]]:
    """Subscriptions that lack a retained message of a topic (any at all: a stale one is another matter)."""

    def observe(seen: Story) -> list[int]:
        found = []
        for subscribe, kept, is_followed in retained_due(seen):
            came = [row.topic for row in _copies_for(seen, subscribe)]
            if kept.topic not in came and is_followed is was_cleared:
                found.append(subscribe)
        return frames(found)

    return observe


def retained_stale(seen: Story) -> list[int]:
    found = []
    for subscribe, kept, _ in retained_due(seen):
        copies = [row for row in _copies_for(seen, subscribe) if row.topic == kept.topic]
        found += [row for row in copies if row.payload != kept.payload]
    return frames(found)


def retained_out_of_order(seen: Story) -> list[int]:
    found = []
    for one in talks(seen)[0]:
        if one.sends[0].meaning == "subscribe":
            copies, ack = _copies_for(seen, one.sends[0]), one.acks[0]
            first = seen.dialect in RETAINED_COMES_FIRST
            found += [one.sends[0]] if any((row.frame > ack.frame) is first for row in copies) else []
    return frames(found)
