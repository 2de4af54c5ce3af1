"""Tables that the checker makes besides its findings: requests and their ACKs, forwards that were due, subscriptions.

All times are nanoseconds since the epoch, all frames are Wireshark's numbers.
"""

from __future__ import annotations

import pyarrow as pa

# One row a request with all its sends, in both directions: ``asks`` is "client" or "broker". ``rtt_ns`` is from the
# only send to the ACK; of a request sent again it lies between ``rtt_low_ns`` (last send) and ``rtt_high_ns`` (first
# send). ``quality`` of the match: exact, anchored, resent, queued, none. ``owed``: the dialect demands an ACK.
EXCHANGES = pa.schema(
    [
        ("session", pa.string()),
        ("capture", pa.string()),
        ("client", pa.string()),
        ("message", pa.string()),
        ("asks", pa.string()),
        ("frame", pa.int64()),
        ("time_ns", pa.int64()),
        ("sends", pa.int32()),
        ("last_frame", pa.int64()),
        ("ack_frame", pa.int64()),
        ("ack_time_ns", pa.int64()),
        ("rtt_ns", pa.int64()),
        ("rtt_low_ns", pa.int64()),
        ("rtt_high_ns", pa.int64()),
        ("quality", pa.string()),
        ("owed", pa.bool_()),
    ]
)

# One row for each copy that was due, and for each forward that nothing explains. ``outcome``: delivered, missing,
# unexpected, duplicate, altered, late, misdirected, inconclusive, or optional (due only perhaps, and not seen).
DELIVERIES = pa.schema(
    [
        ("session", pa.string()),
        ("capture", pa.string()),
        ("publish_frame", pa.int64()),
        ("publish_time_ns", pa.int64()),
        ("publisher", pa.string()),
        ("topic", pa.string()),
        ("subscriber", pa.string()),
        ("filter", pa.string()),
        ("frame", pa.int64()),
        ("time_ns", pa.int64()),
        ("latency_ns", pa.int64()),
        ("retained", pa.bool_()),
        ("outcome", pa.string()),
    ]
)

# Who subscribed to what, and for how long; ``until`` is null for those that last to the end of the session.
SUBSCRIPTIONS = pa.schema(
    [
        ("session", pa.string()),
        ("subscriber", pa.string()),
        ("filter", pa.string()),
        ("since_frame", pa.int64()),
        ("since_ns", pa.int64()),
        ("until_frame", pa.int64()),
        ("until_ns", pa.int64()),
    ]
)

# How often each topic was published, whether anyone had subscribed to it or not.
PUBLISHES = pa.schema([("topic", pa.string()), ("publishes", pa.int64())])
