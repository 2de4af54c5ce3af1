"""What the command's exit status says; the same for every command."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Leave a command with `raise typer.Exit(ExitCode.FINDINGS)`."""

    CLEAN = 0
    """All went well and nothing was found."""
    FINDINGS = 1
    """All went well and something was found: findings at error level, or `doctor` misses a required tool."""
    USAGE = 2
    """The command line is wrong."""
    UNREADABLE = 3
    """The input is wrong: nothing could be read from it."""
    PARTIAL = 4
    """Some input was wrong: the results are valid for what was read."""

    BUG = 70
    """An unexpected error, after its traceback (EX_SOFTWARE; Python's own 1 would read as findings)."""
    INTERRUPTED = 130
    """Ctrl-C, as shells report it (128 + SIGINT)."""
    PIPE_CLOSED = 141
    """The reader of our output went away (`topicshark ... | head`), as shells report it (128 + SIGPIPE)."""
