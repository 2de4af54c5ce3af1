"""What is seen of acknowledgement and of sending again. A client has one request on its way at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from tests.generators.observers.story import AT_ONCE_NS, MILLISECOND, REQUESTS, SECOND, Seen, Story, frames

RESEND_NS = {
    "colon": 5 * SECOND,
    "javaints": 2_500 * MILLISECOND,
    "mqttsn": 10 * SECOND,
    "nestedack": SECOND // 2,
    "nibbles": SECOND,
}
ACK_COMES_FIRST = {"colon": False, "magicbyte": False, "topicbyte": True, "topicnumber": True}


@dataclass
class Asked:
    """A request with its sends, the ACKs that came for it, and what was sent again after them."""

    sends: list[Seen]
    acks: list[Seen] = field(default_factory=list)
    again: list[Seen] = field(default_factory=list)


def talks(seen: Story) -> tuple[list[Asked], list[Seen]]:
    """All requests, and the ACKs that answer none of them."""
    asked: list[Asked] = []
    extra: list[Seen] = []
    by_client: dict[str, Asked] = {}
    for row in seen.rows:
        current = by_client.get(row.client)
        if row.to_broker and row.meaning in REQUESTS and row.error is None:
            if current is not None and _same(current.sends[0], row):
                (current.again if current.acks else current.sends).append(row)
            else:
                by_client[row.client] = Asked([row])
                asked.append(by_client[row.client])
        elif not row.to_broker and row.meaning == "ack" and row.message not in ("CONNACK", "PINGRESP"):
            if current is None or len(current.acks) >= 1 + len(current.again):
                extra.append(row)
            else:
                current.acks.append(row)
    return asked, extra


def _same(first: Seen, row: Seen) -> bool:
    """The same again, but for the mark of a resend."""
    return {**row.fields, "dup": 0} == {**first.fields, "dup": 0} and row.message == first.message


def unacknowledged(seen: Story) -> list[int]:
    return frames([one.sends[0] for one in talks(seen)[0] if not one.acks])


def extra_acks(seen: Story) -> list[int]:
    return frames(talks(seen)[1])


def late_acks(seen: Story) -> list[int]:
    after = RESEND_NS.get(seen.dialect, SECOND)
    asked = [one for one in talks(seen)[0] if one.acks]
    return frames([one.acks[0] for one in asked if one.acks[0].time_ns - one.sends[0].time_ns > after])


def sent_once_in_vain(seen: Story) -> list[int]:
    return frames([one.sends[0] for one in talks(seen)[0] if not one.acks and len(one.sends) == 1])


def sent_again_after_ack(seen: Story) -> list[int]:
    return frames([row for one in talks(seen)[0] for row in one.again])


def sent_again_early(seen: Story) -> list[int]:
    half = RESEND_NS[seen.dialect] // 2
    pairs = [pair for one in talks(seen)[0] for pair in pairwise(one.sends)]
    return frames([later for before, later in pairs if later.time_ns - before.time_ns < half])


def resent_otherwise(*allowed: str) -> Callable[[Story], list[int]]:
    """Requests in the place of resends: unanswered ones, after which the same comes with another value in a field."""

    def observe(seen: Story) -> list[int]:
        by_client: dict[str, list[Asked]] = defaultdict(list)
        for one in talks(seen)[0]:
            by_client[one.sends[0].client].append(one)
        found = []
        for asked in by_client.values():
            for before, later in pairwise(asked):
                if not before.acks and _differs_in(before.sends[0], later.sends[0]) <= {*allowed, "dup"}:
                    found.append(later.sends[0])
        return frames(found)

    return observe


def _differs_in(one: Seen, other: Seen) -> set[str]:
    return {name for name in one.fields if one.fields[name] != other.fields.get(name)}


def in_the_other_order(seen: Story) -> list[int]:
    """Requests whose ACK does not stand where it should among forwards and status messages."""
    first = ACK_COMES_FIRST[seen.dialect]
    found = []
    for one in talks(seen)[0]:
        request, ack = one.sends[0], one.acks[0]
        rest = [row for row in seen.forwards if row.payload == request.payload and request.meaning == "publish"]
        rest += _statuses(seen, request)
        if any((row.frame < ack.frame) is first for row in rest):
            found.append(request)
    return frames(found)


def _statuses(seen: Story, request: Seen) -> list[Seen]:
    """The status that answers a request comes before the client's next one."""
    mine = [row for row in seen.rows if row.client == request.client and row.frame > request.frame]
    until = next((row.frame for row in mine if row.to_broker and row.meaning in REQUESTS), mine[-1].frame + 1)
    return [row for row in mine if row.meaning == "status" and not row.to_broker and row.frame < until]


def without_status(seen: Story) -> list[int]:
    return frames([one.sends[0] for one in talks(seen)[0] if not _statuses(seen, one.sends[0])])


def clients_acks(seen: Story) -> list[int]:
    """Where clients have nothing to acknowledge."""
    return frames(seen.of("ack", to_broker=True))


def not_acknowledged_by_client(seen: Story) -> list[int]:
    """ACKs of these dialects repeat what they answer, and come at once."""
    acks: dict[object, list[int]] = defaultdict(list)
    for ack in seen.of("ack", to_broker=True):
        acks[_answered(ack)].append(ack.time_ns)
    found = []
    for row in seen.of("publish", "deliver", "status", to_broker=False):
        times = acks[row.client, _essence(seen.dialect, row)]
        if not any(row.time_ns < time < row.time_ns + AT_ONCE_NS for time in times):
            found.append(row)
    return frames(found)


def _essence(dialect: str, row: Seen) -> object:
    return row.data if dialect == "nestedack" else (row.fields.get("topic_number"), row.fields.get("text"))


def _answered(ack: Seen) -> object:
    essence = ack.fields["copy"] if "copy" in ack.fields else (ack.fields["topic_number"], ack.fields["text"])
    return ack.client, essence
