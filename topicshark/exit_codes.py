"""What the command's exit status says; the same for every command."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Leave a command with `raise typer.Exit(ExitCode.FINDINGS)`."""

    CLEAN = 0
    """Success, no problems found."""
    FINDINGS = 1
    """The command ran and found problems, for example findings at error level or a missing required tool."""
    USAGE = 2
    """The command line is wrong."""
    UNREADABLE = 3
    """No usable input: nothing could be read from it."""
    PARTIAL = 4
    """Some input was unusable. The results are valid for the rest."""

    BUG = 70
    """An unexpected error, after its traceback (EX_SOFTWARE; Python's own 1 would read as findings)."""
    INTERRUPTED = 130
    """Ctrl-C, as shells report it (128 + SIGINT)."""
    PIPE_CLOSED = 141
    """The reader closed the pipe (`topicshark ... | head`), as shells report it (128 + SIGPIPE)."""
