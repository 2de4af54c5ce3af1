"""docs/reference/command.md: every command with its arguments, options and example, from the typer apps."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from scripts.reference.markdown import MADE, code, table
from topicshark.main import COMMANDS, load_command
from topicshark.main import app as main_app

HEAD = """\
# The command

```sh
topicshark --help
topicshark --version
topicshark doctor || test $? = 1        # 1: something that is required is not installed
```

Every command has `--help`. Results go to stdout, progress and warnings to stderr. Output is coloured only on a
terminal, and never with `NO_COLOR` set. [Exit codes](exit-codes.md) have the same meaning for every command.
`topicshark --install-completion` makes your shell complete commands and options.
"""


def every_command() -> Iterator[tuple[str, Any]]:
    """Name and command; those of a group by two words."""
    for name in COMMANDS:
        command = load_command(name)
        yield name, command
        for second, below in getattr(command, "commands", {}).items():
            yield f"{name} {second}", below


def page() -> str:
    main = typer.main.get_command(main_app)
    rows = [(f"[`{name}`](#topicshark-{name})", summary) for name, (_, summary) in COMMANDS.items()]
    options = _options(main, "topicshark")
    parts = [HEAD, table(("command", "what it does"), rows), "Options of `topicshark` itself:\n", options]
    return "\n".join([*parts, *(_about(name, command) for name, command in every_command()), MADE, ""])


def _about(name: str, command: Any) -> str:
    heading = "##" if " " not in name else "###"
    parts = [f"{heading} topicshark {name}", *_paragraphs(command.help or "")]
    example = (command.epilog or "").removeprefix("Example: ")
    if example:
        parts.append(f"    {example}\n")
    if arguments := _rows(command, name, "argument"):
        parts.append(table(("argument", "meaning"), arguments))
    if not getattr(command, "commands", None):
        parts.append(_options(command, name))
    return "\n".join(parts)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) + "\n" for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]


def _options(command: Any, name: str) -> str:
    rows = _rows(command, name, "option")
    return table(("option", "meaning"), rows) if rows else ""


def _rows(command: Any, name: str, kind: str) -> list[tuple[str, str]]:
    """What ``--help`` shows of each argument or option; a placeholder that only repeats the type is left out."""
    context = command.make_context(name, [], resilient_parsing=True)
    records = [one.get_help_record(context) for one in command.params if one.param_type_name == kind]
    return [(code(_plain(shown)), meaning) for shown, meaning in filter(None, records)]


def _plain(shown: str) -> str:
    """`SOURCE... <list[str]>` is `SOURCE...`, `--port <list[int]>` is `--port INT`, `<a|b>` is `a|b`."""
    if not shown.startswith("-"):
        return re.sub(r" <(?:list\[)?(?:str|int|float)\]?>$", "", shown)
    shown = re.sub(r" <(?:list\[)?(str|int|float)(?: range)?\]?>$", lambda found: " " + found[1].upper(), shown)
    return re.sub(r" <(.*)>$", r" \1", shown)
