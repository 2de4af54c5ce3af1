"""docs/reference/exit-codes.md: from the enumeration, and from what the commands' help says of theirs."""

import re

from scripts.reference.commands import every_command
from scripts.reference.docstrings import attribute_texts
from scripts.reference.markdown import MADE, table
from topicshark import exit_codes

HEAD = """\
# Exit codes

```sh
topicshark generate building -o run.pcap --fault ack-missing
topicshark check run.pcap > report.txt || echo "exit code $?"     # 1: a rule is broken
```

These codes have the same meaning for every command.
"""
OWN = """\
## By command
Commands not listed here end with 0 on success, and with 2 or 3 otherwise.
"""


def page() -> str:
    texts = attribute_texts(exit_codes)
    codes = [(f"**{code.value}**", texts["ExitCode", code.name]) for code in exit_codes.ExitCode]
    rows = [(f"`topicshark {name}`", told) for name, command in every_command() if (told := _told(command.help or ""))]
    return "\n".join([HEAD, table(("code", "meaning"), codes), OWN, table(("command", "exit code"), rows), MADE, ""])


def _told(text: str) -> str | None:
    """The sentences behind "Exit code" or "Exit codes:", to the end of their paragraph."""
    found = re.search(r"Exit codes?:? (.*?)(\n\n|\Z)", text, re.S)
    return found[1] if found else None
