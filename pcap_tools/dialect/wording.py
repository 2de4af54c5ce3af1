"""What pydantic finds wrong with a dialect file, in the words of this project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from .positions import Path
from .problems import Problem, suggestion
from .spec import DialectSpec


def problems_of(error: ValidationError, table: Mapping[str, Any], within: Path = ()) -> list[Problem]:
    """Pydantic's findings, once each, in our words and with our paths; ``within`` is where the table stands."""
    told: dict[Path, str] = {}
    for item in error.errors(include_url=False, include_context=True):
        path = (*within, *_real_path(item["loc"], table, missing=item["type"] == "missing"))
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
        word = _shown(item["input"])
        hint = suggestion(word.strip("'"), words)
        return f"unknown word {word}{hint}"
    text = str(item["msg"]).removeprefix("Value error, ")
    given = item["input"]
    shown = f" (got {_shown(given)})" if isinstance(given, str | int | float | bool) else ""
    return text[0].lower() + text[1:] + shown


def _shown(given: Any) -> str:
    """What the file says; Python does not print a number of many thousand digits."""
    if isinstance(given, int) and given.bit_length() > 64:
        return f"a number of {given.bit_length()} bits"
    return repr(given)


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
