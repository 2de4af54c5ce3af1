"""Names of sessions from names of captures: unique, safe in a path, and text to every reader of a partitioned folder.

>>> session_names(["/a/run.pcap", "/b/run.pcap.gz", "/b/2024-01-01.pcap"])
['run', 'run-2', 'capture-2024-01-01']
>>> session_names(["/a/run1.pcap", "/a/run2.pcap"], merge=True)
['run1', 'run1']
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from posixpath import basename

from pcap_tools.columnar.read.sources import is_remote

_ENDING = re.compile(r"\.(pcapng|pcap|cap)(?=\d*(\.gz)?$)", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MOST = 100
# Spark reads a partition's value as a number where it can: `1e5` and `007` are not names, nor are these words.
_NUMBERS = {"nan", "inf", "infinity", "null"}


def session_names(captures: Sequence[str], merge: bool = False, taken: Collection[str] = ()) -> list[str]:
    """The session of each capture, none of them among `taken`; with `merge` all are in the one of the first."""
    used = {name.casefold() for name in taken}  # a file system may not tell `A` from `a`
    if merge:
        return [_unique(_name(captures[0]), used)] * len(captures) if captures else []
    return [_unique(_name(capture), used) for capture in captures]


def _name(capture: str) -> str:
    """What the file is called, without its endings; the number of a rotated file stays."""
    name = basename(capture.partition("?")[0] if is_remote(capture) else capture)
    name = _ENDING.sub("", name.strip())
    name = _UNSAFE.sub("_", name.removesuffix(".gz")).strip("._-")[:_MOST]
    return name if name[:1].isalpha() and name.lower() not in _NUMBERS else f"capture-{name}".rstrip("-")


def _unique(name: str, used: set[str]) -> str:
    chosen, number = name, 1
    while chosen.casefold() in used:
        number += 1
        chosen = f"{name}-{number}"
    used.add(chosen.casefold())
    return chosen
