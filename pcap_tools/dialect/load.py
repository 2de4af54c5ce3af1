"""From a file or a name to a checked dialect.

``load_dialect("colon")`` finds the built-in ones, ``load_dialect("my.toml")`` a user's own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from pcap_tools.errors import TopicsharkError

from .compiler import compile_dialect
from .positions import Path, key_lines
from .problems import DialectError, Findings, Problem, suggestion
from .program import Dialect
from .rules_of_shape import check_shape
from .spec import DialectSpec

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
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DialectError(source, [Problem((), str(error))], _line_from(str(error))) from error
    lines = key_lines(text)
    try:
        spec = DialectSpec.model_validate(table)
    except ValidationError as error:
        raise DialectError(source, _problems(error, table), lines) from error
    findings = Findings()
    check_shape(spec, findings)
    if findings.problems:
        raise DialectError(source, findings.problems, lines)
    return compile_dialect(spec)


def _line_from(message: str) -> dict[Path, int]:
    found = re.search(r"at line (\d+)", message)
    return {(): int(found.group(1))} if found else {}


def _problems(error: ValidationError, table: Mapping[str, Any]) -> list[Problem]:
    """Pydantic's findings, once each, in our words and with our paths."""
    told: dict[Path, str] = {}
    for item in error.errors(include_url=False, include_context=True):
        path = _real_path(item["loc"], table, missing=item["type"] == "missing")
        told.setdefault(path, _in_words(item, path))
    return [Problem(path, text) for path, text in told.items()]


def _real_path(loc: tuple[int | str, ...], table: Any, missing: bool) -> Path:
    """Pydantic's location less the names of union members, which stand in no file."""
    path: list[int | str] = []
    for step, part in enumerate(loc):
        if isinstance(table, dict) and (part in table or (missing and step == len(loc) - 1)):
            path.append(part)
            table = table.get(part)
        elif isinstance(table, list) and isinstance(part, int) and part < len(table):
            path.append(part)
            table = table[part]
    return tuple(path)


def _in_words(item: Any, path: Path) -> str:
    if item["type"] == "extra_forbidden":
        return f"unknown key{suggestion(str(path[-1]), _keys_at(path[:-1]))}"
    if item["type"] == "missing":
        return "this key is missing"
    if item["type"] == "literal_error":
        words = re.findall(r"'([^']*)'", str(item["ctx"]["expected"]))
        return f"unknown word {item['input']!r}{suggestion(str(item['input']), words)}"
    text = str(item["msg"]).removeprefix("Value error, ")
    given = item["input"]
    shown = f" (got {given!r})" if isinstance(given, str | int | float | bool) else ""
    return text[0].lower() + text[1:] + shown


def _keys_at(path: Path) -> list[str]:
    """The keys that a table of a dialect file may have."""
    model: type[BaseModel] | None = DialectSpec
    is_entry = False  # the next part names an entry of a table of tables, such as a message
    for part in path:
        if is_entry or isinstance(part, int):
            is_entry = False
            continue
        if model is None:
            return []
        named = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        annotation = named.get(str(part))
        model, is_entry = _table_model(annotation), get_origin(annotation) is dict
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _table_model(annotation: Any) -> type[BaseModel] | None:
    """The pydantic model inside ``dict[str, Annotated[list[Model], ...]]`` and the like."""
    if isinstance(annotation, type) and not get_origin(annotation) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = _table_model(argument)
        if found is not None:
            return found
    return None
