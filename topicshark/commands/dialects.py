"""`topicshark dialects`: which protocols are known, what each looks like, and whether a file of one's own is right."""

from typing import Annotated, Any

import typer

from topicshark.app import new_app

app = new_app(epilog="Examples: topicshark dialects list | topicshark dialects check my.toml")


@app.callback()
def dialects() -> None:
    """List, show and check dialects: built-in ones and your own.

    A dialect is a TOML file that describes a protocol. Every tool works from this description.
    """


@app.command("list", epilog="Example: topicshark dialects list")
def list_dialects() -> None:
    """List the built-in dialects."""
    from pcap_tools.dialect import builtin_names, load_dialect

    for name in builtin_names():
        dialect = load_dialect(name)
        ports = _ports(dialect.ports)
        typer.echo(f"{name:<12} {dialect.spec.title}")
        typer.echo(f"{'':<12} ports {ports}; {len(dialect.messages)} messages; {_forms(dialect)}")


@app.command(epilog="Example: topicshark dialects show colon")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE.toml", help="Built-in dialect or dialect file.")],
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the TOML file, as a starting point for your own.")
    ] = False,
) -> None:
    """Show the messages of a dialect, field by field."""
    from pcap_tools.dialect import builtin_text, load_dialect

    dialect = load_dialect(name)
    if toml:
        typer.echo(_text_of(name, builtin_text), nl=False)
        return
    typer.echo(f"{dialect.name}: {dialect.spec.title}")
    for role, ports in dialect.spec.ports.items():
        typer.echo(f"  {role}: UDP {_ports(ports)}")
    for form in dialect.forms:
        title = dialect.spec.forms[form.name].title if form.name in dialect.spec.forms else None
        typer.echo(f"\nform {form.name}" + (f": {title}" if title else ""))
        for layout in form.layouts:
            fields = " | ".join(describe(step) for step in layout.steps)
            typer.echo(f"  {layout.message} ({layout.meaning}): {fields}")


@app.command(epilog="Example: topicshark dialects check my.toml")
def check(file: Annotated[str, typer.Argument(metavar="FILE.toml", help="Dialect file to check.")]) -> None:
    """Check a dialect file and report errors with their lines."""
    from pcap_tools.dialect import load_dialect

    dialect = load_dialect(file)
    typer.echo(f"{file}: {dialect.name} is a valid dialect: {len(dialect.messages)} messages, {_forms(dialect)}")


def _text_of(name: str, builtin_text: Any) -> str:
    if not name.endswith(".toml"):
        return str(builtin_text(name))
    with open(name, encoding="utf-8") as stream:
        return stream.read()


def _ports(ports: Any) -> str:
    """``50001-50003, 50007``."""
    runs: list[list[int]] = []
    for port in sorted(ports):
        if runs and port == runs[-1][-1] + 1:
            runs[-1].append(port)
        else:
            runs.append([port])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) or "none"


def _forms(dialect: Any) -> str:
    names = [form.name for form in dialect.forms]
    return "one form" if len(names) == 1 else f"forms {', '.join(names)}"


def describe(step: Any) -> str:
    """``retain: u8, no=0 yes=1`` for one step of a layout."""
    words = [_kind(step)]
    if step.guard is not None:
        words.append("= " + " or ".join(_literal(value) for value in step.guard))
    elif step.names:
        words.append(" ".join(f"{name}={number}" for number, name in step.names))
    if step.optional:
        words.append("(optional)")
    return f"{step.name}: {' '.join(words)}"


def _literal(value: Any) -> str:
    from pcap_tools.escaping import escape

    return escape(value) if isinstance(value, bytes) else str(value)


def _kind(step: Any) -> str:
    from pcap_tools.dialect.program import Counts, Extent, Kind, Prefix
    from pcap_tools.escaping import escape

    if step.kind is Kind.MAGIC:
        return f"bytes {step.literal.hex()}"
    if step.kind is Kind.BITS:
        return f"{step.bits} bits"
    if step.kind is Kind.DIGITS:
        return f"{step.size} {'binary' if step.binary_digits else 'ASCII'} digits"
    counts = {Counts.REST: ", length of the rest", Counts.DATAGRAM: ", length of the datagram"}.get(step.counts, "")
    counts = ", length of fields" if step.counts is Counts.SPAN else counts
    if step.extent is Extent.ITSELF:
        return f"{step.kind.name.lower()}{counts}"
    if step.kind in (Kind.UINT, Kind.INT):
        sign, order = "u" if step.kind is Kind.UINT else "i", " little-endian" if step.little else ""
        return f"{sign}{step.size * 8}{order}{counts}"
    word = "text" if step.kind is Kind.TEXT else "bytes"
    if step.extent is Extent.UNTIL:
        return f"{word} until {escape(step.literal)!r}" + (" or the end" if step.or_end else "")
    if step.extent is Extent.PREFIX:
        lengths = {Prefix.ASCII: f"{step.size} ASCII digits", Prefix.SIGNED: f"s{step.size * 8}"}
        return f"{word} after its length ({lengths.get(step.prefix, f'u{step.size * 8}')})"
    return f"{word} of {step.size}" if step.extent is Extent.FIXED else f"{word} to the end"
