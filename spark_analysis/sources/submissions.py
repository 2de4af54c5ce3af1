"""A class's work on disk: each folder directly below the one that is given is a submission.

>>> found = find_submissions(["submissions/"])                                     # doctest: +SKIP
>>> [(one.name, len(one.captures), one.dialect_files) for one in found.submissions]   # doctest: +SKIP
[('anna', 2, ['/home/me/submissions/anna/dialect.toml']), ('bert', 1, [])]

Folders come from strangers. Links in them are not followed: one could lead to the work of somebody else, or to a
device. What cannot be listed is told, and stops nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pcap_tools.errors import TopicsharkError
from pcap_tools.escaping import escape_text

from .captures import find_captures

# Other programs' files that end in .toml, too.
_FOREIGN = {"pyproject.toml", "cargo.toml", "rustfmt.toml", "ruff.toml", "uv.toml", "poetry.toml", "netlify.toml"}
_CHOSEN = "dialect.toml"
_MOST_NAMED = 3


@dataclass(frozen=True)
class Submission:
    """What one folder holds. ``dialect_files``: those nearest to the top; if one is ``dialect.toml``, only that."""

    name: str
    folder: str
    captures: list[str] = field(default_factory=list)
    dialect_files: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Found:
    """``notes``: sentences about what belongs to no submission."""

    submissions: list[Submission]
    notes: list[str]


def find_submissions(sources: Sequence[str]) -> Found:
    """Those of all sources, by name. A source that is no folder, or holds none, is a `TopicsharkError`."""
    folders = [(source, folder) for source in sources for folder in _folders(source)]
    names = Counter(os.path.basename(folder) for _, folder in folders)
    found = []
    for source, folder in folders:
        name = os.path.basename(folder)
        found.append(_submission(name if names[name] == 1 else os.path.join(source, name), folder))
    found.sort(key=lambda one: (one.name.casefold(), one.name))
    return Found(found, [note for source in sources for note in _loose(source)])


def _folders(source: str) -> list[str]:
    """Hidden ones are no submissions, nor is what macOS puts into its archives."""
    top = os.path.abspath(os.path.expanduser(source))
    if not os.path.isdir(top):
        raise TopicsharkError(
            f"{source}: is no folder; --by-directory takes a folder that holds one for each submission"
        )
    try:
        names = sorted(entry.name for entry in os.scandir(top) if entry.is_dir())
    except OSError as error:
        raise TopicsharkError(f"{source}: cannot be listed: {error.strerror}") from error
    found = [os.path.join(top, name) for name in names if name[0] != "." and name != "__MACOSX"]
    if not found:
        raise TopicsharkError(f"{source}: no folders in it; --by-directory judges each folder as one submission")
    return found


def _loose(source: str) -> list[str]:
    captures = _captures_in(os.path.abspath(os.path.expanduser(source)))
    if not captures:
        return []
    return [f"{source}: {_named(captures)} in no folder of a submission, and not judged"]


def _named(captures: Sequence[str]) -> str:
    names = ", ".join(os.path.basename(capture) for capture in captures[:_MOST_NAMED])
    more = f" and {len(captures) - _MOST_NAMED} more" if len(captures) > _MOST_NAMED else ""
    return f"{names}{more} {'is' if len(captures) == 1 else 'are'}"


def _submission(name: str, folder: str) -> Submission:
    captures: list[str] = []
    dialects: dict[int, list[str]] = {}
    problems: list[str] = []

    def unlisted(error: OSError) -> None:
        problems.append(f"{escape_text(error.filename)}: cannot be listed: {error.strerror}")

    for here, below, files in os.walk(folder, onerror=unlisted):
        below[:] = sorted(one for one in below if one[0] != "." and one != "__MACOSX")
        captures += _captures_in(here)
        depth = here.removeprefix(folder).count(os.sep)
        dialects.setdefault(depth, []).extend(os.path.join(here, one) for one in sorted(files) if _is_dialect(one))
    links = [path for path in (*captures, *(path for level in dialects.values() for path in level)) if _is_link(path)]
    problems += [f"{escape_text(path)}: a link or no plain file, and left out" for path in sorted(links)]
    real = {depth: [path for path in level if path not in links] for depth, level in dialects.items()}
    nearest = next((level for _, level in sorted(real.items()) if level), [])
    chosen = [path for path in nearest if os.path.basename(path) == _CHOSEN]
    kept = sorted(path for path in captures if path not in links)
    return Submission(name, folder, kept, chosen or nearest, problems)


def _captures_in(folder: str) -> list[str]:
    try:
        return find_captures([folder])
    except TopicsharkError:  # none in this one; what cannot be listed the walk tells
        return []


def _is_dialect(name: str) -> bool:
    return name[0] != "." and name.lower().endswith(".toml") and name.lower() not in _FOREIGN


def _is_link(path: str) -> bool:
    """Or no file at all: a pipe with the name of a dialect would be waited for."""
    return os.path.islink(path) or not os.path.isfile(path)
