"""The columns of the table ``messages``: one row a datagram. ``ALL_MESSAGES`` has those for analyses too."""

from __future__ import annotations

import pyarrow as pa

MESSAGES = pa.schema(
    [
        ("capture", pa.string()),
        ("frame", pa.int64()),
        ("time_ns", pa.int64()),
        ("src", pa.string()),
        ("sport", pa.int32()),
        ("dst", pa.string()),
        ("dport", pa.int32()),
        ("dialect", pa.string()),
        ("form", pa.string()),
        ("message", pa.string()),
        ("meaning", pa.string()),
        ("topic", pa.string()),
        ("filter", pa.string()),
        ("retain", pa.bool_()),
        ("payload", pa.string()),
        ("padding", pa.int32()),
        ("length", pa.int32()),
        ("error", pa.string()),
        ("error_offset", pa.int32()),
        ("copy_of", pa.int64()),
    ]
)
COLUMNS = tuple(MESSAGES.names)
# What ties an ACK to its request, the topic's number, the port a subscriber names, the identification of IPv4; return
# code, whether it accepts, QoS, flag of a resend. All may be null; what they mean: ``pcap_tools.codec.answer_key`` and
# ``pcap_tools.codec.message``.
ALL_MESSAGES = pa.schema(
    [
        *MESSAGES,
        ("key", pa.int64()),
        ("number", pa.int64()),
        ("port", pa.int32()),
        ("ip_id", pa.int32()),
        ("code", pa.int64()),
        ("accepted", pa.bool_()),
        ("qos", pa.int32()),
        ("dup", pa.bool_()),
    ]
)
ALL_COLUMNS = tuple(ALL_MESSAGES.names)
# Of ALL_MESSAGES: raise it with every change of a column, of its type or of what it means. It is in the manifest and in
# the metadata of each Parquet file. 0 stands for files from before there were versions.
SCHEMA_VERSION = 2
# Those of few values: Arrow dictionaries, unless plain types are asked for.
CODED = {"src": pa.int32(), "dst": pa.int32()} | dict.fromkeys(
    ("capture", "dialect", "form", "message", "meaning", "error"), pa.int16()
)


def schema_of(columns: frozenset[str], plain: bool) -> pa.Schema:
    """The chosen columns in their order."""
    fields = [field for field in ALL_MESSAGES if field.name in columns]
    if plain:
        return pa.schema(fields)
    return pa.schema(
        [
            field.with_type(pa.dictionary(CODED[field.name], pa.string())) if field.name in CODED else field
            for field in fields
        ]
    )
