"""`topicshark demo`: the main job end to end on traffic made here, from packets to a report."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from topicshark.app import new_app
from topicshark.progress import spark_stages

app = new_app()

DIALECTS = ("colon", "topicbyte", "rolebyte")
FAULTS = {"ack-missing": 0.02, "forward-missing": 0.01, "forward-duplicate": 0.01, "wire-incomplete": 0.01}
STEPS = 5
FINDINGS_OF_A_RULE = 10


@app.command(epilog="Example: topicshark demo -o demo")
def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")] = Path("demo"),
) -> None:
    """Run the whole toolkit once on generated traffic and write a report.

    Simulate a building with faults in three dialects, ingest the traffic on Spark, check and measure it, and write a
    report and an annotated capture. This takes a minute or two.
    """
    capture, messages = folder / "building.pcap", folder / "messages"
    folder.mkdir(parents=True, exist_ok=True)
    with _step(1, f"Simulate a building: three dialects, with faults ({capture}, truth.json)"):
        truth = _generate(capture, folder / "truth.json")
    with _on_spark() as spark:
        with _step(3, f"Write every message as a row of Parquet ({messages})"):
            _ingest(spark, capture, messages)
        with _step(4, "Compare expected with observed messages"):
            result = _check(spark, messages)
    with _step(5, "Write the report and an annotated capture"):
        _report(result, messages, folder / "report.html")
        _annotate(result, capture, folder / "annotated.pcapng")
    _compare(result, truth)
    _where_to_look(folder)


@contextmanager
def _step(number: int, what: str) -> Iterator[None]:
    typer.echo(f"[{number}/{STEPS}] {what}", err=True)
    start = time.monotonic()
    yield
    typer.echo(f"      {time.monotonic() - start:.1f} s", err=True)


def _generate(capture: Path, truth: Path) -> dict[str, Any]:
    from generators.capture.capture_point import write
    from generators.generate import GeneratorOptions, generate

    order = GeneratorOptions("mixed", dialects=DIALECTS, faults=FAULTS, sensors=4, dashboards=3, actuators=2, rounds=30)
    made = generate(order)
    write(made.capture, capture)
    told = made.truth()
    truth.write_text(json.dumps(told, indent=1) + "\n")
    return told


@contextmanager
def _on_spark() -> Iterator[Any]:
    from spark_analysis.engine.spark_session import PYTHON_WORK, open_session

    with open_session(settings=PYTHON_WORK) as spark:
        typer.echo(f"[2/{STEPS}] Start Spark {spark.version}", err=True)
        yield spark


def _ingest(spark: Any, capture: Path, messages: Path) -> None:
    from spark_analysis.ingest import ingest

    done = ingest(spark, [str(capture)], messages, stage=spark_stages(spark))
    rows = sum(entry.decoded for entry in (*done.ingested, *done.skipped))
    typer.echo(f"      {rows:,} messages", err=True)


def _check(spark: Any, messages: Path) -> Any:
    """From the Parquet, on the session that is there."""
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.check import judge
    from spark_analysis.engine.engines import SparkEngine
    from spark_analysis.pipeline import Options
    from spark_analysis.sessions.ingested import find_sources

    options = Options(wanted_dialects(), limit=sys.maxsize)
    return judge(find_sources([str(messages)]), options, False, SparkEngine(spark, spark_stages(spark)))


def _report(result: Any, messages: Path, page: Path) -> None:
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.reports.html.page import html_page
    from spark_analysis.sessions.ingested import find_sources

    page.write_text(html_page(result, find_sources([str(messages)]), wanted_dialects(), FINDINGS_OF_A_RULE))


def _annotate(result: Any, capture: Path, annotated: Path) -> None:
    from pcap_tools.capture.annotating import annotate_capture
    from pcap_tools.codec.detect import wanted_dialects
    from spark_analysis.reports.packet_comments import packet_comments
    from spark_analysis.sessions.roles import roles_of

    findings = [finding for session in result.sessions for finding in session.findings]
    annotate_capture(capture, annotated, packet_comments(findings), roles_of(str(capture), wanted_dialects()))


def _compare(result: Any, truth: dict[str, Any]) -> None:
    """Verdicts beside what was done, which the checker has not seen."""
    done = Counter(fault["rule"] for fault in truth["faults"])
    found: Counter[str] = Counter()
    unsure: Counter[str] = Counter()
    for session in result.sessions:
        typer.echo(f"{session.dialect}: {session.verdict}, {session.datagrams:,} datagrams")
        errors = [rule for rule in session.rules if rule.level == "error"]
        found.update({rule.id: rule.failed for rule in errors if rule.failed})
        unsure.update({rule.id: rule.inconclusive for rule in errors if rule.inconclusive})
    typer.echo("")
    typer.echo(f"{'broken rule':<20} {'injected':>8} {'found':>6} {'inconclusive':>13}")
    for rule in sorted(done.keys() | found.keys()):
        typer.echo(f"{rule:<20} {done[rule]:>8} {found[rule]:>6} {unsure[rule]:>13}")


def _where_to_look(folder: Path) -> None:
    typer.echo("")
    typer.echo(f"open in a browser:    {folder / 'report.html'}")
    typer.echo(f"open in Wireshark:    wireshark -X lua_script:dissector.lua {folder / 'annotated.pcapng'}")
    typer.echo(f"check it yourself:    topicshark check {folder / 'building.pcap'}")
    typer.echo("check your traffic:   topicshark report your-capture.pcap")
