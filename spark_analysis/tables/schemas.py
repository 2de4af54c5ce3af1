"""The tables of the analysis. A datagram is known by (session, capture, frame) in each of them.

All times are nanoseconds since the epoch, all frames are Wireshark's numbers. Other datagrams than a row's own are
structs of capture and frame, null where there is none.
"""

from __future__ import annotations

import pyarrow as pa

PLACE = pa.struct([("capture", pa.string()), ("frame", pa.int64())])

# One row per request with all its sends, in both directions: ``asks`` is "client" or "broker". ``rtt_ns`` is from the
# only send to the ACK; of a request sent again it lies between ``rtt_low_ns`` (last send) and ``rtt_high_ns`` (first
# send). ``quality`` of the match: exact, anchored, resent, queued, none. ``owed``: the dialect demands an ACK.
EXCHANGES = pa.schema(
    [
        ("session", pa.string()),
        ("capture", pa.string()),
        ("frame", pa.int64()),
        ("time_ns", pa.int64()),
        ("client", pa.string()),
        ("message", pa.string()),
        ("asks", pa.string()),
        ("sends", pa.int32()),
        ("last", PLACE),
        ("ack", PLACE),
        ("ack_time_ns", pa.int64()),
        ("rtt_ns", pa.int64()),
        ("rtt_low_ns", pa.int64()),
        ("rtt_high_ns", pa.int64()),
        ("quality", pa.string()),
        ("owed", pa.bool_()),
    ]
)

# One row per copy that was due, and per forward that nothing explains. ``outcome``: delivered, missing, unexpected,
# duplicate, altered, late, misdirected, inconclusive, or optional (due only perhaps, and not seen). ``publish`` of a
# retained message is the subscription that asks for it.
DELIVERIES = pa.schema(
    [
        ("session", pa.string()),
        ("publish", PLACE),
        ("publish_time_ns", pa.int64()),
        ("publisher", pa.string()),
        ("topic", pa.string()),
        ("subscriber", pa.string()),
        ("filter", pa.string()),
        ("forward", PLACE),
        ("forward_time_ns", pa.int64()),
        ("latency_ns", pa.int64()),
        ("retained", pa.bool_()),
        ("outcome", pa.string()),
    ]
)

# One row per subscription interval; ``until`` is null for those that last to the end of the session.
SUBSCRIPTIONS = pa.schema(
    [
        ("session", pa.string()),
        ("subscriber", pa.string()),
        ("filter", pa.string()),
        ("since", PLACE),
        ("since_ns", pa.int64()),
        ("until", PLACE),
        ("until_ns", pa.int64()),
    ]
)

# What a finding is about, by name; which of them it has depends on its rule. ``case`` tells kinds of one rule apart.
DETAIL = pa.struct(
    [
        ("case", pa.string()),
        ("message", pa.string()),
        ("filter", pa.string()),
        ("expected", pa.string()),
        ("seen", pa.string()),
        ("other", pa.string()),
        ("reading", pa.string()),
        ("count", pa.int64()),
        ("number", pa.int64()),
        ("offset", pa.int64()),
        ("after_ns", pa.int64()),
        ("limit_ns", pa.int64()),
    ]
)

# One row per place where a rule is broken (``state`` fail), or where the capture cannot tell (inconclusive), with the
# ``reason``. ``cause``: the id of the finding that it follows from. ``id`` is the same whenever the finding is made.
FINDINGS = pa.schema(
    [
        ("session", pa.string()),
        ("dialect", pa.string()),
        ("id", pa.string()),
        ("rule", pa.string()),
        ("level", pa.string()),
        ("state", pa.string()),
        ("capture", pa.string()),
        ("frame", pa.int64()),
        ("time_ns", pa.int64()),
        ("related", pa.list_(PLACE)),
        ("client", pa.string()),
        ("topic", pa.string()),
        ("detail", DETAIL),
        ("reason", pa.string()),
        ("cause", pa.string()),
    ]
)

# One row per dialect of a session: its brokers, the busiest first, and where the capture was taken: at the broker, on a
# bridge between all nodes, or at one client. ``first`` of a broker is the place in this list of its first address.
ENDPOINTS = pa.schema(
    [
        ("session", pa.string()),
        ("dialect", pa.string()),
        ("brokers", pa.list_(pa.struct([("host", pa.string()), ("port", pa.int32()), ("first", pa.int32())]))),
        ("point", pa.string()),
        ("begin_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("starts_late", pa.bool_()),
        ("shows_start", pa.bool_()),
        ("is_cut", pa.bool_()),
        ("datagrams", pa.int64()),
    ]
)

# One row per thing that limits the verdicts of a session: ``kind`` in a word, ``text`` in a sentence.
EVIDENCE = pa.schema([("session", pa.string()), ("dialect", pa.string()), ("kind", pa.string()), ("text", pa.string())])

# One row per rule and session: how often it could have been broken, was, and cannot be told.
VERDICTS = pa.schema(
    [
        ("session", pa.string()),
        ("dialect", pa.string()),
        ("rule", pa.string()),
        ("level", pa.string()),
        ("verdict", pa.string()),
        ("checked", pa.int64()),
        ("failed", pa.int64()),
        ("inconclusive", pa.int64()),
    ]
)

# How often each topic was published, whether anyone had subscribed to it or not.
PUBLISHES = pa.schema([("topic", pa.string()), ("publishes", pa.int64())])
