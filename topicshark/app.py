"""How every command's typer app is made, so that all of them look and behave alike.

A command lives in a module below `commands/`, exposes `app`, and has its summary in the table of `main.py`:

    app = new_app()

    @app.command(epilog="Example: topicshark doctor --json")
    def doctor() -> None: ...
"""

from typing import Any

import typer


def new_app(*, add_completion: bool = False, **settings: Any) -> typer.Typer:
    """A typer app with plain help: rendering it through rich doubles the time until it appears.

    Only the main command takes `add_completion`; it completes for all.
    """
    return typer.Typer(
        add_completion=add_completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )
