"""What `check`, `report`, `timing` and `fanout` share: options, the run of the checker, what is told, exit codes."""

import os
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from topicshark.commands.captures.period import NO_PERIOD, Period, begin_of
from topicshark.exit_codes import ExitCode
from topicshark.progress import spark_stages


def spool_stdin(context: typer.Context, sources: list[str]) -> list[str]:
    """Stdin as a file, until the command has ended: captures are read in parts, and more than once."""
    if "-" not in sources:
        return sources
    folder = context.with_resource(TemporaryDirectory(prefix="topicshark-"))
    spooled = os.path.join(folder, "stdin.pcap")
    with open(spooled, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
    return list(dict.fromkeys(spooled if source == "-" else source for source in sources))


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        callback=spool_stdin,
        help="Captures (pcap or pcapng, optionally compressed), folders, globs, URIs, Parquet; - for stdin.",
    ),
]
DialectNames = Annotated[
    list[str] | None,
    typer.Option("--dialect", metavar="NAME|FILE.toml", help="Use only this dialect (repeatable). Default: detect."),
]
Ports = Annotated[list[int] | None, typer.Option("--port", help="Additional UDP port of the dialect (repeatable).")]
Brokers = Annotated[
    list[str] | None,
    typer.Option("--broker", metavar="HOST[:PORT]", help="Broker address (repeatable). Default: detect."),
]
Merge = Annotated[bool, typer.Option("--merge", help="Treat all captures as one session.")]
Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Spark master URL. Default: all cores of this machine.")
]


class Engine(StrEnum):
    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


EngineChoice = Annotated[
    Engine,
    typer.Option("--engine", help="Where to run: spark, local (this process), or auto (Spark for large input)."),
]


@dataclass(frozen=True)
class CheckOptions:
    """What is to be checked, and how; the options above."""

    sources: list[str]
    dialect: list[str] | None
    port: list[int] | None
    broker: list[str] | None
    merge: bool
    engine: Engine
    master: str | None
    period: Period = NO_PERIOD


def run_check(
    options: CheckOptions, rules: tuple[str, ...] = (), most_findings: int = 1_000, summaries: bool = False
) -> Any:
    """The result, once what could not be read is told on stderr."""
    block_pandas_import()
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.check import check

    result = check(
        options.sources,
        dialects=wanted_dialects(options.dialect, options.port or ()),
        brokers=tuple(options.broker or ()),
        merge=options.merge,
        engine=options.engine.value,
        rules=rules,
        limit=most_findings,
        summaries=summaries,
        master=options.master,
        stage=spark_stages,
        period=options.period.nanoseconds(lambda: begin_of(options.sources)) if options.period else None,
    )
    _tell(result)
    return result


def _tell(result: Any) -> None:
    from spark_analysis.reports.as_json import troubles
    from spark_analysis.results.safe_text import shown

    for sentence in troubles(result):
        typer.echo(shown(sentence), err=True)
    if not was_judged(result):
        typer.echo("no datagram matches a selected dialect; to use your own: --dialect FILE.toml", err=True)


def was_judged(result: Any) -> bool:
    return any(session.datagrams for session in result.sessions)


def exit_code(result: Any) -> ExitCode:
    """How well the input could be read: nothing judged is never a pass."""
    if not was_judged(result):
        return ExitCode.UNREADABLE
    return ExitCode.PARTIAL if result.partial or result.failed else ExitCode.CLEAN


def verdict_code(result: Any) -> ExitCode:
    """The same where rules are judged: a broken one of level error goes first."""
    is_broken = any(session.verdict == "fail" for session in result.sessions)
    return ExitCode.FINDINGS if is_broken else exit_code(result)


class _NoPandas:
    """An import finder that refuses pandas."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pandas":
            raise ImportError("not needed")


def block_pandas_import() -> None:
    """Keep pyarrow from importing pandas, which takes half a second. Call it before pyarrow is first used.

    pyarrow imports pandas to recognise a Series among its inputs. No command passes one. ``to_pandas`` still works
    afterwards. Without effect where pandas has already been imported.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.scalar(0)  # pyarrow looks for pandas at the first value
    finally:
        sys.meta_path.remove(finder)
