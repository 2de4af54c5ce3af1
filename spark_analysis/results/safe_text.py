"""The last gate before output: whatever a packet or a file name brought, the text can be printed."""

from __future__ import annotations

from typing import Any

from pcap_tools.escaping import escape_text


def shown(text: str | None) -> str:
    r"""Text that is printable stays as it is: decoders have escaped theirs, and twice would read as another text.

    >>> shown("home/x"), shown("\\x1b[31m"), shown("\x1b[31m")
    ('home/x', '\\x1b[31m', '\\x1b[31m')
    """
    if text is None:
        return ""
    return text if text.isprintable() else escape_text(text)


def all_shown(value: Any) -> Any:
    """The same for all texts in lists and dictionaries."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(str(key)): all_shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [all_shown(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float) else shown(str(value))
