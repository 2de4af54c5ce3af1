"""What is seen of delivery: subscriptions as they stand, what they make due, and what is passed on."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.generators.observers.story import AT_ONCE_NS, SECOND, Seen, Story, frames

LATE_NS = 3 * SECOND
# What a wildcard stands for, by dialect; longer signs first.
WILDCARDS = {
    "colon": {"*": ".*"},
    "keywords": {"**": ".*", "*": "[^/]*"},
    "magicbyte": {"#": ".*"},
    "nibbles": {"+": "[^/]*"},
}
ONE_COPY_EACH = ("magicbyte", "nestedack", "nibbles")  # however many filters match


def wants(dialect: str, text: bytes, topic: bytes) -> bool:
    runs, pattern = WILDCARDS.get(dialect, {}), re.escape(text.decode())
    for at, sign in enumerate(runs):
        pattern = pattern.replace(re.escape(sign), f"\0{at}")  # not yet the run, in which a later sign may stand
    for at, run in enumerate(runs.values()):
        pattern = pattern.replace(f"\0{at}", run)
    return re.fullmatch(pattern, topic.decode(), re.DOTALL) is not None


def subscriptions(seen: Story) -> Iterator[tuple[Seen, list[tuple[str, bytes]]]]:
    """Every row, with the subscriptions that stand when it comes."""
    standing: list[tuple[str, bytes]] = []
    for row in seen.rows:
        if row.error is None and row.to_broker and row.meaning in ("subscribe", "unsubscribe"):
            subscription = _listener(row), row.filter or b""
            repeated = seen.dialect in ("topicbyte", "portdigits")  # counts once more there
            if row.meaning == "unsubscribe":
                standing = [one for one in standing if one != subscription]
            elif repeated or subscription not in standing:
                standing.append(subscription)
        yield row, list(standing)


def _listener(row: Seen) -> str:
    """In portdigits a subscriber says at which port it listens."""
    return f"{row.client.rpartition(':')[0]}:{row.fields['port']}" if "port" in row.fields else row.client


def due(seen: Story) -> Counter[tuple[bytes | None, str]]:
    """How many copies of which payload are due to whom."""
    names = {(row.client, row.fields.get("topic_number")): row.topic for row in seen.of("create", to_broker=True)}
    wanted: Counter[tuple[bytes | None, str]] = Counter()
    for row, standing in subscriptions(seen):
        if not (row.error is None and row.to_broker and row.meaning == "publish"):
            continue
        topic = names.get((row.client, row.fields["topic_number"])) if "topic_number" in row.fields else row.topic
        if any(sign.encode() in (topic or b"") for sign in WILDCARDS.get(seen.dialect, {})):
            continue
        takers = [client for client, text in standing if wants(seen.dialect, text, topic or b"")]
        wanted.update((row.payload, client) for client in (set(takers) if seen.dialect in ONE_COPY_EACH else takers))
    return wanted


def undelivered(seen: Story) -> list[int]:
    """The publishes of which copies are missing, one entry a copy."""
    missing = due(seen) - Counter((row.payload, row.client) for row in _fresh(seen))
    at = {row.payload: row.frame for row in reversed(seen.publishes)}
    return sorted(at[payload] for payload, _ in missing.elements())


def undue(seen: Story) -> list[int]:
    """The forwards that are too many: unknown ones, for nobody who asked, or the last of several."""
    left, found = due(seen), []
    for row in _fresh(seen):
        key = row.payload, row.client
        if left[key] > 0:
            left[key] -= 1
        else:
            found.append(row)
    return frames(found)


def _fresh(seen: Story) -> list[Seen]:
    """Forwards without retained copies."""
    copies = frames(retained_copies(seen))
    return [row for row in seen.forwards if row.frame not in copies]


def published_at(seen: Story) -> dict[bytes | None, Seen]:
    return {row.payload: row for row in reversed(seen.publishes)}


def late_forwards(seen: Story) -> list[int]:
    published = published_at(seen)
    return frames([row for row in seen.forwards if row.time_ns - published[row.payload].time_ns >= LATE_NS])


def overtakings(seen: Story) -> list[tuple[int, int]]:
    """Pairs of forwards to one client of one publisher's messages under one topic, in the other order."""
    published = published_at(seen)
    streams: dict[object, list[Seen]] = defaultdict(list)
    for row in seen.forwards:
        publish = published[row.payload]
        streams[publish.client, publish.topic, row.client].append(row)
    return sorted(
        (earlier.frame, later.frame)
        for rows in streams.values()
        for at, earlier in enumerate(rows)
        for later in rows[at + 1 :]
        if published[earlier.payload].frame > published[later.payload].frame
    )


def retained_copies(seen: Story) -> list[Seen]:
    """Forwards of what was published before their receiver subscribed, just after it did."""
    if not any(row.retain for row in seen.publishes):
        return []
    published, found = published_at(seen), []
    subscribed: dict[str, Seen] = {}
    for row in seen.rows:
        if row.meaning == "subscribe" and row.to_broker:
            subscribed[row.client] = row
        elif row.meaning == "publish" and not row.to_broker and row.client in subscribed:
            asked, publish = subscribed[row.client], published.get(row.payload)
            if publish is not None and publish.frame < asked.frame and row.time_ns - asked.time_ns < AT_ONCE_NS:
                found.append(row)
    return found
