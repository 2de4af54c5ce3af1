"""From a file or a name to a checked dialect.

``load_dialect("colon")`` finds the built-in ones, ``load_dialect("my.toml")`` a user's own.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path as FilePath

from pydantic import ValidationError

from pcap_tools.errors import TopicsharkError

from .compiler import compile_dialect
from .positions import Path, key_lines
from .problems import DialectError, Findings, Problem, suggestion
from .program import Dialect
from .spec import DialectSpec
from .structure_check import check_structure
from .wording import problems_of

MAX_FILE_BYTES = 1 << 20


def builtin_names() -> list[str]:
    """The dialects that come with topicshark."""
    folder = files("pcap_tools") / "dialects"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_dialect(name_or_file: str | FilePath) -> Dialect:
    """A dialect by its built-in name, or from a TOML file."""
    word = str(name_or_file)
    if not word.endswith(".toml"):
        if word not in builtin_names():
            hint = suggestion(word, builtin_names())
            raise TopicsharkError(f"there is no dialect {word!r}{hint}. A file of your own ends in .toml.")
        return _builtin(word)
    try:
        with open(word, "rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TopicsharkError(f"cannot read the dialect file {word}: {error.strerror}") from error
    if len(raw) > MAX_FILE_BYTES:
        raise TopicsharkError(f"{word}: a dialect file has at most {MAX_FILE_BYTES} bytes")
    try:
        return parse_dialect(raw.decode("utf-8"), word)
    except UnicodeDecodeError as error:
        raise TopicsharkError(f"{word}: not UTF-8 text (byte {error.start})") from error


@cache
def _builtin(name: str) -> Dialect:
    return parse_dialect(builtin_text(name), f"{name}.toml")


def builtin_text(name: str) -> str:
    """The TOML text of a built-in dialect."""
    return (files("pcap_tools") / "dialects" / f"{name}.toml").read_text(encoding="utf-8")


def parse_dialect(text: str, source: str = "<text>") -> Dialect:
    """Read, check and compile the text of a dialect file; ``source`` names it in messages."""
    try:
        table = tomllib.loads(text)
        lines = key_lines(text)
    except (ValueError, RecursionError) as error:  # a syntax error, a number of 5000 digits, 5000 brackets
        raise DialectError(source, [Problem((), str(error))], _line_from(str(error))) from error
    try:
        spec = DialectSpec.model_validate(table)
    except ValidationError as error:
        raise DialectError(source, problems_of(error, table), lines) from error
    findings = Findings()
    check_structure(spec, findings)
    if findings.problems:
        raise DialectError(source, findings.problems, lines)
    return compile_dialect(spec)


def _line_from(message: str) -> dict[Path, int]:
    found = re.search(r"at line (\d+)", message)
    return {(): int(found.group(1))} if found else {}
