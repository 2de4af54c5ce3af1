"""The columns of the table ``messages``: one row a datagram."""

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
# Those of few values: Arrow dictionaries, unless plain types are asked for.
CODED = {"src": pa.int32(), "dst": pa.int32()} | dict.fromkeys(
    ("capture", "dialect", "form", "message", "meaning", "error"), pa.int16()
)


def schema_of(columns: frozenset[str], plain: bool) -> pa.Schema:
    """The chosen columns in their order."""
    fields = [field for field in MESSAGES if field.name in columns]
    if plain:
        return pa.schema(fields)
    return pa.schema(
        [
            field.with_type(pa.dictionary(CODED[field.name], pa.string())) if field.name in CODED else field
            for field in fields
        ]
    )
