"""`topicshark decode`: what every datagram of a capture says, without Spark.

Small captures are decoded row by row and all else by columns, which is many times faster once it has begun; the text
is the same.
"""

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import repeat
from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.commands.captures.period import Period, Since, Until
from topicshark.exit_codes import ExitCode
from topicshark.progress import with_progress

app = new_app()

PORTLESS = "--port needs exactly one --dialect: topicshark decode --dialect colon --port 1234 capture.pcap"
SMALL = 1 << 20  # bytes; some 12,000 short datagrams take about as long as loading the kernels


class Format(StrEnum):
    TABLE = "table"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Look:
    """What is printed, and how. ``width`` of the terminal, 0 if it is none; ``capture`` is told in JSON if not None."""

    output: Format
    width: int
    capture: str | None
    show_all: bool
    period: Period
    links: dict[int, dict[str, Any]] | None = None  # by frame, where they are asked for


@app.command(
    epilog="Examples: topicshark decode capture.pcap; topicshark decode -i eth0; "
    "ssh host tcpdump -U -w - udp | topicshark decode -"
)
def decode(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Capture: pcap or pcapng, optionally compressed; - for stdin."),
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option("--interface", "-i", metavar="IFACE", help="Capture on this interface (any: all) until Ctrl-C."),
    ] = None,
    dialect: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE.toml", help="Use only this dialect (repeatable). Default: detect."),
    ] = None,
    port: Annotated[list[int] | None, typer.Option(help="Additional UDP port of the dialect (repeatable).")] = None,
    output: Annotated[
        Format, typer.Option("--format", help="Output format: a table, or one JSON object per line.")
    ] = Format.TABLE,
    show_all: Annotated[bool, typer.Option("--all", help="Also show UDP datagrams of no known dialect.")] = False,
    with_links: Annotated[
        bool,
        typer.Option(
            "--links", help="Analyse the file first; add ACKs, forwards, names of topic numbers, subscribers."
        ),
    ] = False,
    since: Since = None,
    until: Until = None,
) -> None:
    """Decode the datagrams of captures, one line each, without Spark.

    A pipe and an interface are decoded as the datagrams come. Datagrams of a dialect that is found only after them
    are printed then. To capture on an interface, dumpcap or tcpdump must be installed and permitted to: see
    topicshark doctor.

    Exit code 0: everything was read. 3: nothing could be read, or no datagram belongs to a known dialect. 4: a capture
    is damaged, or one of several could not be read; the rest was printed.
    """
    from pcap_tools.dialect import load_dialect
    from pcap_tools.errors import TopicsharkError, UsageError
    from pcap_tools.escaping import escape_text
    from topicshark.commands.captures.links import links_of

    named = [load_dialect(name) for name in dialect] if dialect else None
    if (interface is None) == (not files):
        raise UsageError("name captures, or an interface with -i: topicshark decode capture.pcap")
    if port and (named is None or len(named) != 1):
        raise UsageError(PORTLESS)
    ports = dict.fromkeys(port or [], named[0].name if named else "")
    period = Period(since, until)
    period.check()
    if with_links and (interface is not None or any(is_live(file) for file in files or ())):
        raise UsageError("--links needs the whole capture: give a file, not a pipe or an interface")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    outcomes: list[ExitCode] = []
    if interface is not None:
        raise typer.Exit(_decode_interface(interface, named, ports, Look(output, width, None, show_all, period)))
    for file in files or ():
        look = Look(output, width, escape_text(file) if len(files or ()) > 1 else None, show_all, period)
        try:
            if with_links:
                look = replace(look, links=links_of(file, dialect))
            outcomes.append(_decode_file(file, named, ports, look))
        except TopicsharkError as error:
            _say(str(error))
            outcomes.append(ExitCode.UNREADABLE)
    if all(outcome is ExitCode.UNREADABLE for outcome in outcomes):
        raise typer.Exit(ExitCode.UNREADABLE)
    if any(outcome is not ExitCode.CLEAN for outcome in outcomes):
        raise typer.Exit(ExitCode.PARTIAL)


def _decode_file(file: str, named: Any, ports: dict[int, str], look: Look) -> ExitCode:
    from pcap_tools.codec.decoding import Notes

    notes = Notes()
    period = _begins(look.period)
    decoded = (
        _row_by_row if is_small(file) or look.links is not None else _as_it_comes if is_live(file) else _by_columns
    )
    for _ in with_progress(_print(decoded(look, file, named, notes, ports, _tell_evidence(file), period)), "datagrams"):
        pass
    return _outcome(file, named, notes, look)


def _decode_interface(interface: str, named: Any, ports: dict[int, str], look: Look) -> ExitCode:
    """Until Ctrl-C, or until the interface goes away."""
    from pcap_tools.codec.decoding import Notes
    from topicshark.commands.captures.live_capture import captured

    notes = Notes()
    period = _begins(look.period)
    with captured(interface) as stream, suppress(KeyboardInterrupt):
        for _ in _print(_as_it_comes(look, stream, named, notes, ports, _tell_evidence(interface), period)):
            pass
    return _outcome(interface, named, notes, look)


def _outcome(name: str, named: Any, notes: Any, look: Look) -> ExitCode:
    for warning in notes.warnings:
        _say(f"{name}: {warning}")
    for damage in notes.damage:
        _say(str(damage))
    if notes.other and not look.show_all:
        _say(f"{name}: skipped {notes.other} UDP datagrams of no known dialect (--all shows them)")
    if not notes.decoded:
        names = " or ".join(dialect.name for dialect in named) if named else "a known dialect"
        _say(f"{name}: no datagram belongs to {names}" + ("" if named else "; to use your own: --dialect FILE.toml"))
        return ExitCode.UNREADABLE
    return ExitCode.PARTIAL if notes.damage else ExitCode.CLEAN


def _begins(period: Period) -> Callable[[int], tuple[int, int]] | None:
    """What the period is of a capture that begins with a datagram of this time; only the first one counts."""
    if not period:
        return None
    found: list[tuple[int, int]] = []

    def period_of(first_ns: int) -> tuple[int, int]:
        if not found:
            found.append(period.nanoseconds(lambda: first_ns))
        return found[0]

    return period_of


def is_small(file: str) -> bool:
    """Whether it is decoded before the kernels would even be loaded; what cannot be opened is soon told, too."""
    from pcap_tools.capture.streams import MAGIC_BYTES, compression

    try:
        facts = os.stat(file) if file != "-" else None
        if facts is None or not stat.S_ISREG(facts.st_mode) or facts.st_size >= SMALL:
            return False
        with open(file, "rb") as stream:
            return not compression(stream.read(MAGIC_BYTES))
    except OSError:
        return True


def is_live(file: str) -> bool:
    """Whether it is a pipe, which somebody may still write to."""
    try:
        return not stat.S_ISREG((os.fstat(0) if file == "-" else os.stat(file)).st_mode)
    except OSError:
        return False


def _row_by_row(look: Look, *what: Any) -> Iterator[tuple[str, int]]:
    """Text to print, and of how many datagrams it tells."""
    from pcap_tools.codec.decoding import decode_capture

    text_of = _json_of(look) if look.output is Format.JSONL else _line_of(look)
    for row in decode_capture(*what):
        yield text_of(row) if row.message is not None or look.show_all else "", 1


def _by_columns(look: Look, *what: Any) -> Iterator[tuple[str, int]]:
    """The same, many datagrams at a time."""
    from pcap_tools.columnar.text.rows import decode_lines

    return decode_lines(_lines_of(look), *what)


def _as_it_comes(look: Look, *what: Any) -> Iterator[tuple[str, int]]:
    """The same, as many datagrams at a time as are there, and on their way at once."""
    from pcap_tools.columnar.text.rows import decode_live

    for lines in decode_live(_lines_of(look), *what):
        yield lines
        sys.stdout.flush()


def _lines_of(look: Look) -> Any:
    from pcap_tools.columnar.text.json_lines import JsonLines
    from pcap_tools.columnar.text.table_lines import TableLines

    if look.output is Format.JSONL:
        return partial(JsonLines, keep_other=look.show_all, capture=look.capture)
    return partial(TableLines, keep_other=look.show_all, width=look.width)


def _print(texts: Iterable[tuple[str, int]]) -> Iterator[None]:
    """Writes the texts; goes on by one for each datagram, as progress counts them."""
    for text, datagrams in texts:
        sys.stdout.write(text)
        yield from repeat(None, datagrams)


def _tell_evidence(file: str) -> Callable[[list[Any]], None]:
    """Of a live source, in which endpoints are found one after the other, the first are told."""
    told = 0

    def tell(evidence: list[Any]) -> None:
        nonlocal told
        shown = evidence[: max(0, 3 - told)]
        for item in shown:
            _say(f"{file}: {item}")
        if len(evidence) > len(shown) and told <= 3:
            _say(f"{file}: … and {len(evidence) - len(shown)} more endpoints")
            told += 1
        told += len(shown)

    return tell


def _say(text: str) -> None:
    from pcap_tools.escaping import escape_text

    typer.echo("\n".join(escape_text(line) for line in text.splitlines()), err=True)


def _json_of(look: Look) -> Callable[[Any], str]:
    prefix = {} if look.capture is None else {"capture": look.capture}
    links = look.links
    if links is not None:
        return lambda row: (
            json.dumps(prefix | row.as_dict() | {"links": links.get(row.datagram.frame, {})}, ensure_ascii=False) + "\n"
        )
    return lambda row: json.dumps(prefix | row.as_dict(), ensure_ascii=False) + "\n"


def _line_of(look: Look) -> Callable[[Any], str]:
    from pcap_tools.escaping import shorten

    if look.links is not None:
        return lambda row: _linked(row, look) + "\n"
    if look.width:
        return lambda row: shorten(line_of(row), look.width) + "\n"
    return lambda row: line_of(row) + "\n"


def _linked(row: Any, look: Look) -> str:
    """The line, and what the frame has to do with others."""
    from pcap_tools.escaping import shorten
    from topicshark.commands.captures.links import words_of

    topic = row.message.topic if row.message is not None else None
    text = topic.decode(errors="replace") if topic is not None else None
    words = words_of((look.links or {}).get(row.datagram.frame, {}), text)
    line = f"{line_of(row)} {words}".rstrip()
    return shorten(line, look.width) if look.width else line


def line_of(row: Any) -> str:
    """One row of the table: frame, time, from whom to whom, what."""
    datagram = row.datagram
    seconds, rest = divmod(datagram.time_ns, 1_000_000_000)
    clock = datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S") if 0 <= seconds < 1 << 36 else str(seconds)
    ends = f"{datagram.src}:{datagram.sport} → {datagram.dst}:{datagram.dport}"
    return f"{datagram.frame:>6}  {clock}.{rest // 1000:06}  {ends:<42}  {_what(row)}"


def _what(row: Any) -> str:
    """``colon PUBLISH home/fan "ON" retained``, and what is odd about it."""
    from pcap_tools.escaping import escape

    message, copy_of = row.message, row.datagram.copy_of
    words = ["UDP"] if message is None else [message.dialect, message.message or "?"]
    if message is not None:
        about = message.topic if message.topic is not None else message.filter
        words += [escape(about)] if about is not None else []
        words += [f'"{escape(message.payload)}"'] if message.payload is not None else []
        words += ["retained"] if message.retain else []
        words += [f"({message.form})"] if message.form != "documented" else []
        words += [f"+{message.padding} NUL"] if message.padding else []
        words += [f"!! {message.error} at byte {message.error_offset}"] if message.error else []
    words += [f"[copy of {copy_of}]"] if copy_of is not None else []
    return " ".join(words)
