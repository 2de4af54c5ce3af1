"""Requests and ACKs of one talk (a client and a broker) in their order: which ACK answers which request.

Requests that are the same come in a *group*: the first send and what repeats it. An ACK answers the oldest open group
that it can, unless its anchor says which. `docs/checking.md` tells why.
"""

from __future__ import annotations

from typing import Any

from numba import types

from pcap_tools.kernels.jit import i64, inlined, kernel

from .hashing import mixed

# Columns of what is paired.
TALK, TIME, MESSAGE, CONTENT, KEY, TOPIC, IP_ID, ROLE, ANCHOR, PAYLOAD, FORWARDED, OWED = range(12)
PAIRED = 12
REQUEST, REPLY = 0, 1

# What a request is to its group.
NEW, RESEND, DOUBLE, EARLY, AFTER_ACK, ACK_LOST, ALTERED = range(7)
# What an ACK is.
ANSWER, ANSWER_AGAIN, DOUBLED, DUPLICATE, STRAY = range(5)
# How sure a pair is.
NONE, EXACT, ANCHORED, RESENT, QUEUED = range(5)
# Whether a row is needed when more has come.
DONE, KNOWN, OPEN = range(3)

DOUBLE_NS = 10_000_000
REPEATED_NS = 50_000_000  # the same again so soon after its ACK is no new request
FRESH_NS = 50_000_000  # what was sent so lately is more likely answered now than what was sent long ago
TWICE_NS = 20_000_000  # an ACK that comes once more comes soon
MOST_BACK = 512
OVER = 6  # resend times after which nothing is sent again, or answered
FEW_BACK = 32
NOTHING = -(1 << 62)  # a key that is not there

_column = types.Array(types.int64, 1, "C")
_matrix = types.Array(types.int64, 2, "C")
_table = types.Array(types.boolean, 2, "C")
_flags = types.Array(types.boolean, 1, "C")


@inlined
def is_doubled(rows: Any, one: Any, other: Any) -> Any:
    """Whether the network made two of one: the same IP id tells, or where there is none, that it comes at once.

    Where one id is 0 and the other is not, the sender counts, and 0 is a number as any.
    """
    if rows[IP_ID, one] > 0 or rows[IP_ID, other] > 0:
        return rows[IP_ID, one] == rows[IP_ID, other] and rows[TIME, other] - rows[TIME, one] < 50 * DOUBLE_NS
    return rows[TIME, other] - rows[TIME, one] < DOUBLE_NS


@inlined
def repeats(
    rows: Any, row: Any, other: Any, last: Any, acked: Any, resend_ns: Any, keyed: Any, went_on: Any, has_resends: Any
) -> Any:
    """What `row` is to the group of `other`, which is the same, whose last send is `last` and whose ACK came at `acked`
    (-1: none); -1 if it is none of it. `went_on`: the sender has asked for something else in between."""
    gap = rows[TIME, row] - rows[TIME, last]
    if is_doubled(rows, last, row):
        return i64(DOUBLE)
    if not rows[OWED, row] or gap > OVER * resend_ns:  # nobody waits for an ACK any more, so nobody sends it again
        return i64(-1)
    if not has_resends and not 8 * resend_ns < 10 * gap < 13 * resend_ns:
        return i64(-1)  # only just when the ACK was late it may be sent again all the same
    if acked < 0:
        return i64(EARLY) if 2 * gap < resend_ns else i64(RESEND)
    if keyed and rows[KEY, row] != NOTHING:
        if gap > 6 * resend_ns:
            return i64(-1)
        return i64(AFTER_ACK) if 10 * gap < 8 * resend_ns else i64(ACK_LOST)
    if went_on or not has_resends:
        return i64(-1)
    if rows[TIME, row] - acked < REPEATED_NS and 10 * gap < 8 * resend_ns:
        return i64(AFTER_ACK)
    return i64(ACK_LOST) if 9 * resend_ns < 10 * gap < 12 * resend_ns else i64(-1)


@inlined
def alters(rows: Any, row: Any, other: Any, last: Any, resend_ns: Any, keyed: Any) -> Any:
    """Whether `row` stands where a resend of `other` would, with another payload."""
    if rows[MESSAGE, row] != rows[MESSAGE, other] or rows[TOPIC, row] != rows[TOPIC, other]:
        return False
    gap = rows[TIME, row] - rows[TIME, last]
    if keyed and rows[KEY, row] != NOTHING:
        return rows[KEY, row] == rows[KEY, other] and gap <= OVER * resend_ns
    return 8 * resend_ns < 10 * gap < 13 * resend_ns


@inlined
def remembered(rows: Any, row: Any, slots: Any) -> Any:
    """The last request of this talk that was the same, -1 for none; from now on it is this one."""
    mask = i64(len(slots) - 1)
    at = mixed(rows[TALK, row], rows[CONTENT, row]) & mask
    while True:
        other = slots[at]
        if other < 0:
            slots[at] = row
            return i64(-1)
        if rows[TALK, other] == rows[TALK, row] and rows[CONTENT, other] == rows[CONTENT, row]:
            slots[at] = row
            return other
        at = (at + 1) & mask


@inlined
def names(rows: Any, row: Any, first: Any, last: Any) -> Any:
    """Whether an ACK names this request: as it was sent first, or last."""
    return rows[KEY, first] == rows[KEY, row] or rows[KEY, last] == rows[KEY, row]


@inlined
def is_over(other: Any, row: Any, rows: Any, group: Any, ack: Any, last: Any, resend_ns: Any) -> Any:
    """Whether nothing can be an answer to `other` any more."""
    return (
        rows[ROLE, other] != REQUEST
        or group[other] != other
        or ack[other] >= 0
        or rows[TIME, row] - rows[TIME, last[other]] > OVER * resend_ns
    )


@kernel(
    _column,
    _matrix,
    types.int64,
    _table,
    _flags,
    types.boolean,
    types.int64,
    types.boolean,
    types.boolean,
    _column,
    _column,
    _column,
    _column,
    _column,
    _column,
    _column,
    _column,
    _column,
    _column,
    _column,
)
def pair(
    order: Any,
    rows: Any,
    known: Any,
    answers: Any,
    is_keyed: Any,
    requests_keyed: Any,
    resend_ns: Any,
    has_resends: Any,
    asker_resends: Any,
    slots: Any,
    turn: Any,
    usual_after: Any,
    latest_after: Any,
    group: Any,
    kind: Any,
    last: Any,
    sends: Any,
    ack: Any,
    acks: Any,
    quality: Any,
) -> None:
    """Fill the last ten arrays. `order` sorts rows by talk, then by place.

    known          the rows before this one were decided by earlier calls: their results are given, and `slots` has
                   those of them that are remembered
    asker_resends  the asking side sends again what is not answered
    slots          room to remember requests in: a power of two, larger than there are rows; -1 where it is free
    turn           how many rows of its talk came before a row
    usual_after, latest_after   hold for the last row of each talk: how long an answer usually takes (-1: not known),
                   and the group of what was asked for last
    group, kind    of a request the first send of its group, of an ACK the group that it answers (-1: none); and what
                   it is to that
    last, sends, ack, acks, quality   hold for the first send of each group
    """
    begin = i64(0)
    head = i64(0)
    usual, latest = i64(-1), i64(-1)
    for at in range(len(order)):
        row = order[at]
        before = order[at - 1] if at > 0 else i64(-1)
        if before < 0 or rows[TALK, row] != rows[TALK, before]:
            if before >= known:
                usual_after[before], latest_after[before] = usual, latest
            begin, head = i64(at), i64(at)
            usual, latest = i64(-1), i64(-1)
            turn[row] = turn[row] if row < known else i64(0)
        elif row >= known:
            turn[row] = turn[before] + 1
            if before < known:
                usual, latest = usual_after[before], latest_after[before]
            if rows[TIME, row] - rows[TIME, before] > OVER * resend_ns:  # what was usual may be so no more
                begin, head = i64(at), i64(at)
                usual, latest = i64(-1), i64(-1)
        if row < known:
            continue
        group[row] = i64(-1)
        if rows[ROLE, row] == REQUEST:
            group[row], kind[row] = row, i64(NEW)
            last[row], sends[row], ack[row], acks[row], quality[row] = row, i64(1), i64(-1), i64(0), i64(NONE)
            while head < at and is_over(order[head], row, rows, group, ack, last, resend_ns):
                head += 1
            other = remembered(rows, row, slots)
            other = group[other] if other >= 0 else other
            found = i64(-1)
            if other >= 0:
                acked = rows[TIME, ack[other]] if ack[other] >= 0 else i64(-1)
                went_on = latest != other
                found = repeats(rows, row, other, last[other], acked, resend_ns, requests_keyed, went_on, has_resends)
            if found < 0 and has_resends and rows[OWED, row] and rows[PAYLOAD, row] != 0:
                for place in range(max(head, at - MOST_BACK), at):
                    other = order[place]
                    if turn[row] - turn[other] > MOST_BACK:
                        continue
                    is_open = rows[ROLE, other] == REQUEST and group[other] == other and ack[other] < 0
                    # Sent often, it is more likely given up, and this the next request.
                    may_be = is_open and sends[other] <= 2
                    if may_be and alters(rows, row, other, last[other], resend_ns, requests_keyed):
                        found = i64(ALTERED)
                        break
            if found == DOUBLE or (found >= 0 and asker_resends):
                group[row], kind[row] = other, found
                sends[other] += 1
                last[other] = row
            if kind[row] != DOUBLE:
                latest = group[row]
            continue
        # An ACK: the network's copy of an earlier one, or which of the open groups may it answer?
        kind[row] = i64(STRAY)
        for place in range(at - 1, max(begin, at - FEW_BACK) - 1, -1):
            other = order[place]
            if turn[row] - turn[other] > FEW_BACK:
                break
            same = rows[ROLE, other] == REPLY and rows[MESSAGE, other] == rows[MESSAGE, row]
            if same and rows[IP_ID, row] > 0 and is_doubled(rows, other, row):
                group[row], kind[row] = group[other], i64(DOUBLED)
                break
        if kind[row] == DOUBLED:
            continue
        while head < at and is_over(order[head], row, rows, group, ack, last, resend_ns):
            head += 1
        keyed = is_keyed[rows[MESSAGE, row]]
        chosen, open_groups, silent, anchored = i64(-1), i64(0), i64(0), False
        rank, oddity = i64(0), i64(0)
        for place in range(head, at):
            other = order[place]
            if rows[ROLE, other] != REQUEST or group[other] != other or ack[other] >= 0:
                continue
            if not answers[rows[MESSAGE, row], rows[MESSAGE, other]]:
                continue
            age = rows[TIME, row] - rows[TIME, last[other]]
            if age > OVER * resend_ns or (keyed and not names(rows, row, other, last[other])):
                continue
            # What an ACK names it answers, late as it may be. Where nothing says when to send again, an ACK may be as
            # late as others were, or nobody knows.
            may_be_late = rows[OWED, other] and (keyed or (not has_resends and (usual < 0 or age < 3 * usual)))
            if 2 * age > 3 * resend_ns and not may_be_late:
                continue
            open_groups += 1
            # Best is the one that the anchor names; then one without forwards, beside which its ACK would stand; of
            # equals the one that has waited as long as is usual, or where nothing is known, the oldest of the fresh.
            mine = rows[ANCHOR, row] >= 0 and group[rows[ANCHOR, row]] == other
            alone = not rows[FORWARDED, other]
            silent += i64(alone)
            worth = i64(3) if mine else i64(2) if alone else i64(1)
            anchored = anchored or mine
            # What is named alike was sent alike, and is answered in order.
            unusual = abs(age - usual) if usual >= 0 and not keyed else i64(age > FRESH_NS)
            if worth > rank or (worth == rank and unusual < oddity):
                chosen, rank, oddity = other, worth, unusual
        if silent == 1 and rank == 2 and open_groups > 1:
            anchored = True
        if chosen >= 0:
            group[row], kind[row] = chosen, i64(ANSWER)
            ack[chosen] = row
            acks[chosen] = i64(1)
            if sends[chosen] > 1:
                quality[chosen] = i64(RESENT)
            elif keyed or open_groups == 1:
                quality[chosen] = i64(EXACT)
                took = rows[TIME, row] - rows[TIME, chosen]
                usual = took if usual < 0 else (3 * usual + took) // 4
            else:
                quality[chosen] = i64(ANCHORED) if anchored else i64(QUEUED)
            continue
        for place in range(at - 1, max(begin, at - MOST_BACK) - 1, -1):
            other = order[place]
            if turn[row] - turn[other] > MOST_BACK:
                break
            if rows[ROLE, other] != REQUEST or group[other] != other or ack[other] < 0:
                continue
            if not answers[rows[MESSAGE, row], rows[MESSAGE, other]]:
                continue
            if keyed and not names(rows, row, other, last[other]):
                continue
            if 2 * (rows[TIME, row] - rows[TIME, last[other]]) > 3 * resend_ns:
                continue
            is_prompt = 2 * (rows[TIME, row] - rows[TIME, last[other]]) < resend_ns
            if acks[other] < sends[other] and is_prompt and not is_doubled(rows, ack[other], row):
                group[row], kind[row] = other, i64(ANSWER_AGAIN)
                acks[other] += 1
                break
            if group[row] < 0 and rows[TIME, row] - rows[TIME, ack[other]] < TWICE_NS:
                group[row] = other
                kind[row] = i64(DOUBLED) if is_doubled(rows, ack[other], row) else i64(DUPLICATE)
    if len(order) > 0 and order[-1] >= known:
        usual_after[order[-1]], latest_after[order[-1]] = usual, latest


@kernel(_column, _matrix, types.int64, types.boolean, types.int64, _column, _column, _column, _column)
def sort_out(
    order: Any, rows: Any, now: Any, requests_keyed: Any, resend_ns: Any, group: Any, last: Any, ack: Any, out: Any
) -> None:
    """Which rows `pair` must be given again when more is to come from `now` on. `OPEN`: its group may get another send
    or ACK, so it is needed with its results. `KNOWN`: it only tells how things stand in its talk. `DONE`: it is not
    needed."""
    twice = 50 * DOUBLE_NS
    for at in range(len(order)):
        row = order[at]
        first = group[row]
        out[row] = DONE
        if first >= 0:
            age = now - rows[TIME, last[first]] - twice
            waits = requests_keyed or (ack[first] < 0 and rows[OWED, first])
            if age <= OVER * resend_ns if waits else 2 * age <= 3 * resend_ns:
                out[row] = OPEN
        if out[row] == DONE:
            is_last = at + 1 == len(order) or rows[TALK, order[at + 1]] != rows[TALK, row]
            age = now - rows[TIME, row]
            if age <= twice or (is_last and age <= OVER * resend_ns):
                out[row] = KNOWN


@kernel(_column, _matrix, _column)
def remember(places: Any, rows: Any, slots: Any) -> None:
    """Enter these rows in `slots`; no two of them are the same request of one talk."""
    for at in range(len(places)):
        remembered(rows, places[at], slots)


@kernel(_column, _matrix, _column, _flags)
def is_remembered(places: Any, rows: Any, slots: Any, out: Any) -> None:
    """Whether `slots` has these rows."""
    mask = i64(len(slots) - 1)
    for at in range(len(places)):
        row = places[at]
        place = mixed(rows[TALK, row], rows[CONTENT, row]) & mask
        while slots[place] >= 0 and not (
            rows[TALK, slots[place]] == rows[TALK, row] and rows[CONTENT, slots[place]] == rows[CONTENT, row]
        ):
            place = (place + 1) & mask
        out[at] = slots[place] == row
