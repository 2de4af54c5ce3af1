"""The options of the Spark source `topicshark`, as the user wrote them: checked, and turned into what they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pcap_tools.columnar.decode.schema import ALL_COLUMNS, ALL_MESSAGES, COLUMNS
from pcap_tools.dialect import Dialect, builtin_names, load_dialect
from pcap_tools.errors import UsageError

# `session` stands first: it is what an analysis groups by.
SOURCE_COLUMNS = ("session", *COLUMNS)
# With those that rules need besides; they are decoded only if asked for.
ALL_SOURCE_COLUMNS = ("session", *ALL_COLUMNS)
SPLIT_MB = 128
SETTLE_SECONDS = 10.0
# Those of Spark itself, which come along with ours.
_OF_SPARK = frozenset({"path", "paths", "checkpointlocation"})
_OURS = ("dialect", "merge", "columns", "splitsize", "keepother", "settle", "maxfilespertrigger")
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class SourceOptions:
    """
    sources      what `load` was given: paths, folders, globs, URIs
    dialects     those to look for
    named        whether the user named them; their own ports are then believed without proof
    columns      in the order of the rows
    split_bytes  how much of a capture is one task
    merge        all captures are one session
    keep_other   datagrams of no known dialect are rows too
    settle       seconds after which a file that no longer changes is finished (streams)
    max_files    of one batch of a stream; None for all there are
    """

    sources: tuple[str, ...]
    dialects: tuple[Dialect, ...]
    named: bool
    columns: tuple[str, ...]
    split_bytes: int
    merge: bool
    keep_other: bool
    settle: float
    max_files: int | None


def parse_options(given: Mapping[str, str]) -> SourceOptions:
    """Raises `UsageError` on what cannot be meant, `DialectError` on a dialect that is not one."""
    options = {name.lower(): value for name, value in given.items()}
    unknown = sorted(options.keys() - _OF_SPARK - set(_OURS))
    if unknown:
        raise UsageError(f"topicshark has no option {unknown[0]!r}; there are: {', '.join(_OURS)}")
    names = _listed(options.get("dialect", ""))
    return SourceOptions(
        sources=_sources(options),
        dialects=tuple(load_dialect(name) for name in names or builtin_names()),
        named=bool(names),
        columns=_columns(options.get("columns")),
        split_bytes=int(_positive(options, "splitsize", SPLIT_MB) * (1 << 20)),
        merge=_flag(options, "merge"),
        keep_other=_flag(options, "keepother"),
        settle=_positive(options, "settle", SETTLE_SECONDS),
        max_files=int(_positive(options, "maxfilespertrigger", 0)) or None,
    )


def check_columns(names: Sequence[str]) -> tuple[str, ...]:
    """The names, if they are columns of the source and each is there once."""
    for place, name in enumerate(names):
        if name not in ALL_SOURCE_COLUMNS:
            raise UsageError(f"topicshark has no column {name!r}; there are: {', '.join(ALL_SOURCE_COLUMNS)}")
        if name in names[:place]:
            raise UsageError(f"the column {name!r} is asked for twice")
    return tuple(names)


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Of these columns of the source, in this order."""
    return pa.schema([("session", pa.string()) if name == "session" else ALL_MESSAGES.field(name) for name in columns])


def _sources(options: Mapping[str, str]) -> tuple[str, ...]:
    """Spark hands several paths on as a JSON list."""
    if "paths" in options:
        return tuple(json.loads(options["paths"]))
    if options.get("path"):
        return (options["path"],)
    raise UsageError('nothing to load: expected spark.read.format("topicshark").load("captures/*.pcap")')


def _listed(text: str) -> list[str]:
    return [name for name in (part.strip() for part in text.split(",")) if name]


def _columns(text: str | None) -> tuple[str, ...]:
    if text is None:
        return SOURCE_COLUMNS
    names = check_columns(_listed(text))
    if not names:
        raise UsageError("the option columns names no column")
    return names


def _flag(options: Mapping[str, str], name: str) -> bool:
    value = _WORDS.get(options.get(name, "false").strip().lower())
    if value is None:
        raise UsageError(f"the option {name} is true or false, not {options[name]!r}")
    return value


def _positive(options: Mapping[str, str], name: str, default: float) -> float:
    if name not in options:
        return default
    try:
        value = float(options[name])
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise UsageError(f"the option {name} is a number above 0, not {options[name]!r}")
    return value
