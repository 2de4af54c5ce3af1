"""docs/reference/exit-codes.md: from the enumeration, and from what the commands' help says of theirs."""

import re

from cli import exit_codes
from scripts.reference.commands import every_command
from scripts.reference.docstrings import attribute_texts
from scripts.reference.markdown import MADE, table

HEAD = """\
# Exit codes

```sh
topicshark generate building -o run.pcap --fault ack-missing
topicshark check run.pcap > report.txt || echo "exit code $?"     # 1: a rule is broken
```

Every command ends with one of these, and with the same meaning.
"""
OWN = """\
## What they mean for a command
Commands that are not listed end with 0 when all went well, and with 2 or 3 when it did not.
"""


def page() -> str:
    texts = attribute_texts(exit_codes)
    codes = [(f"**{code.value}**", texts["ExitCode", code.name]) for code in exit_codes.ExitCode]
    rows = [(f"`topicshark {name}`", told) for name, command in every_command() if (told := _told(command.help or ""))]
    return "\n".join([HEAD, table(("code", "meaning"), codes), OWN, table(("command", "exit code"), rows), MADE, ""])


def _told(text: str) -> str | None:
    """The sentences behind "Exit code:", to the end of their paragraph."""
    found = re.search(r"Exit code: (.*?)(\n\n|\Z)", text, re.S)
    return found[1] if found else None
