"""`topicshark demo`: the main job end to end on traffic made here, as far as the project goes today."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from cli.app import new_app

app = new_app()

DIALECTS = ("colon", "topicbyte", "rolebyte")
FAULTS = {"ack-missing": 0.2, "forward-missing": 0.1, "wire-incomplete": 0.1}
SHOWN = 12  # lines of each kind


@app.command(epilog="Example: topicshark demo -o demo")
def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where to put the files.")] = Path("demo"),
) -> None:
    """Show the main job end to end on traffic made here."""
    from cli.decode import line_of
    from generators.capture_point import write
    from generators.generate import Order, generate
    from pcap_tools.decoding import Notes, decode_capture

    folder.mkdir(parents=True, exist_ok=True)
    capture, truth = folder / "building.pcap", folder / "truth.json"
    _tell(f"Three dialects in one building, with faults, captured on Linux's `any`: {capture}")
    made = generate(Order("mixed", dialects=DIALECTS, faults=FAULTS, sensors=2, dashboards=2, actuators=1, rounds=4))
    write(made.capture, capture)
    told = made.truth()
    truth.write_text(json.dumps(told, indent=1) + "\n")
    notes = Notes()
    rows = list(decode_capture(capture, notes=notes))
    lines = {row.datagram.frame: line_of(row) for row in rows}
    for frame in list(lines)[:SHOWN]:
        typer.echo(lines[frame])
    copies = sum(row.datagram.copy_of is not None for row in rows)
    _tell(f"… {notes.decoded} datagrams decoded, {copies} of them copies that the capture made.")
    rules = Counter(f"{fault['rule']} ({fault['name']})" for fault in told["faults"])
    _tell(f"The faults in it, as {truth} tells them: " + ", ".join(f"{count} {rule}" for rule, count in rules.items()))
    for fault in told["faults"][:SHOWN]:
        typer.echo(f"{fault['rule']}: {fault['text']}")
        for frame in fault["frames"]:
            typer.echo(lines[frame])
    _tell("What the checker says of it, which has not seen the truth:")
    _check(capture)
    _tell(f"Now try:  topicshark check {capture}")
    _tell(f"          wireshark -X lua_script:dissector.lua {capture}")


def _check(capture: Path) -> None:
    """The verdicts, one line for each rule that is broken."""
    from spark_analysis.check import check

    for session in check([str(capture)], engine="local", summaries=False).sessions:
        broken = [rule for rule in session.rules if rule.verdict == "fail"]
        typer.echo(f"{session.dialect}: {session.verdict}, {session.datagrams} datagrams")
        for rule in broken:
            first = next(one for one in session.findings if one.rule == rule.id)
            typer.echo(f"  {rule.id} {rule.failed} times; frame {first.frame}: {first.text}")


def _tell(text: str) -> None:
    typer.echo(text, err=True)
