"""`--since` and `--until`: the part of a capture to look at.

    >>> Period("+30s", "+1m").nanoseconds(lambda: 1_000_000_000)
    (31000000000, 61000000000)
    >>> Period("2026-11-20T10:15:00Z", None).nanoseconds(lambda: 0)[0]
    1795169700000000000

A moment is a date with time, a time of day (UTC, of the day on which the capture begins), seconds since the epoch, or
the time since the capture's beginning, with a plus.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

import typer

_MOMENT = "10:15:00.5|2026-11-20T10:15:00|1700000000.5|+90s"
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help=f"Only datagrams from this time on: {_MOMENT}.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only datagrams before this time; forms as for --since.")
]

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
EARLIEST, LATEST = -(1 << 63), (1 << 63) - 1
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|s|m|h|d|)", re.ASCII)
_UNITS = {"us": 1_000, "ms": 1_000_000, "": SECOND, "s": SECOND, "m": 60 * SECOND, "h": 3_600 * SECOND, "d": DAY}
_OF_DAY = re.compile(r"(\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?", re.ASCII)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|[+-]\d\d:\d\d)?", re.ASCII)


def duration_ns(text: str) -> int:
    """A time span: `2s`, `500ms`, `1.5h`; without a unit seconds."""
    from pcap_tools.errors import UsageError

    found = _DURATION.fullmatch(text)
    if not found:
        raise UsageError(f"{text}: not a time span; write 2s, 500ms, 5m or 1.5h")
    return min(int(Decimal(found[1]) * _UNITS[found[2]]), LATEST)


@dataclass(frozen=True)
class Period:
    """What the two options say."""

    since: str | None
    until: str | None

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None

    def check(self) -> None:
        """Raises `UsageError` if one of them is no time, before anything is read."""
        for text, option in ((self.since, "--since"), (self.until, "--until")):
            if text is not None:
                _moment(text, lambda: 0, option)

    def nanoseconds(self, begin: Callable[[], int]) -> tuple[int, int]:
        """From, and up to without; ``begin`` is asked for the capture's beginning if it matters."""
        from pcap_tools.errors import UsageError

        since = EARLIEST if self.since is None else _moment(self.since, begin, "--since")
        until = LATEST if self.until is None else _moment(self.until, begin, "--until")
        if since >= until:
            raise UsageError(f"--since {self.since} is not before --until {self.until}")
        return since, until


NO_PERIOD = Period(None, None)


def _moment(text: str, begin: Callable[[], int], option: str) -> int:
    from pcap_tools.errors import UsageError

    try:
        moment = _parsed(text, begin)
    except (ValueError, ArithmeticError):
        moment = None
    if moment is None or not EARLIEST <= moment <= LATEST:
        raise UsageError(f"{option} {text}: not a time; write one of {_MOMENT.replace('|', ', ')}")
    return moment


def _parsed(text: str, begin: Callable[[], int]) -> int | None:
    if text.startswith("+") and _DURATION.fullmatch(text[1:]):
        return begin() + duration_ns(text[1:])
    if found := _OF_DAY.fullmatch(text):
        seconds = int(found[1]) * 3_600 + int(found[2]) * 60 + Decimal(found[3] or 0)
        return begin() // DAY * DAY + int(seconds * SECOND)
    if found := _DATE.fullmatch(text):
        day = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[4] or ''}")
        whole = int((day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp())
        return whole * SECOND + int(Decimal(found[3] or 0) * SECOND)
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return int(Decimal(text) * SECOND)
    return None


def begin_of(sources: list[str]) -> int:
    """When the first datagram of all sources was sent."""
    from spark_analysis.sessions.ingested import find_sources

    found = find_sources(sources)
    entries = [entry for folder in found.folders for group in folder.sessions.values() for entry in group]
    begins = [entry.times[0] for entry in entries if entry.times]
    begins += [begin for capture in found.captures if (begin := capture_begin(capture)) is not None]
    return min(begins, default=0)


def capture_begin(capture: str) -> int | None:
    """When the first datagram of a capture was sent; None if there is none to be read."""
    from pcap_tools.columnar.read.reading import read_file
    from pcap_tools.errors import TopicsharkError

    try:
        first = next(read_file(capture, _ignore, _ignore, rows=16), None)
    except TopicsharkError:
        return None  # the reading that follows says why
    return None if first is None else int(first.time_ns[0])


def _ignore(about: object) -> None:
    """The reading that follows says it."""
