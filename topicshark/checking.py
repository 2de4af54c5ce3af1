"""What `check`, `report`, `timing` and `fanout` share: options, the run of the checker, what is told, exit codes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from topicshark.exit_codes import ExitCode
from topicshark.progress import spark_stages
from topicshark.without_pandas import spare_pandas

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE", help="Captures (pcap or pcapng, optionally gzipped), folders, globs, URIs, Parquet."
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
class Asked:
    """What is to be checked, and how; the options above."""

    sources: list[str]
    dialect: list[str] | None
    port: list[int] | None
    broker: list[str] | None
    merge: bool
    engine: Engine
    master: str | None


def run_check(asked: Asked, rules: tuple[str, ...] = (), most_findings: int = 1_000, summaries: bool = False) -> Any:
    """The result, once what could not be read is told on stderr."""
    spare_pandas()
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.check import check

    result = check(
        asked.sources,
        dialects=wanted_dialects(asked.dialect, asked.port or ()),
        brokers=tuple(asked.broker or ()),
        merge=asked.merge,
        engine=asked.engine.value,
        rules=rules,
        limit=most_findings,
        summaries=summaries,
        master=asked.master,
        stage=spark_stages,
    )
    _tell(result)
    return result


def _tell(result: Any) -> None:
    from spark_analysis.reports.as_json import troubles
    from spark_analysis.reports.safe_text import shown

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
