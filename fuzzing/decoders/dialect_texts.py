"""Dialect files as text: a table written as TOML, and a text spoilt as a hand, an editor or an enemy may spoil it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Table = dict[str, Any]

_OTHERS = ["0", "-1", "1", "9", "64", "65535", "65536", "9223372036854775807", "1e309", "nan", "true", "[]", "{}"]
_OTHERS += ['""', '"rest"', '"nul"', '"uint"', '"text"', '"bytes"', '"datagram"', "1979-05-27", '["type"]', "[[]]"]


def toml_text(table: Table) -> str:
    """A table of plain values and of tables of tables."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: Table) -> Iterator[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    for key, value in plain.items():
        yield f"{key} = {_inline(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield f"\n[{key}]"
            for name, entry in value.items():
                yield f"{_inline(name)} = {_inline(entry)}"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_inline(key)} = {_inline(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def spoilt(text: str, rng: random.Random) -> str:
    """The text with one to three things done to it that a hand, an editor or an enemy may do."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        at, line = rng.randrange(len(lines)), rng.randrange(len(lines))
        way = rng.randrange(6)
        if way == 0:
            lines[at] = lines[line]
        elif way == 1:
            del lines[at]
        elif way == 2:
            lines.insert(at, lines[line])
        elif way == 3:
            lines[at] = _other_word(lines[at], rng)
        elif way == 4:
            lines[at] = _other_word(lines[at], rng, rng.choice(lines[line].split() or [""]))
        else:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = (
                lines[at][:place]
                + rng.choice(('"', "{", "}", "[", "]", "=", "\0", "\ud800", "é", "0", "-"))
                + lines[at][place:]
            )
        text = "\n".join(lines)
    return text


def _other_word(line: str, rng: random.Random, other: str | None = None) -> str:
    words = line.split(" ")
    words[rng.randrange(len(words))] = rng.choice(_OTHERS) if other is None else other
    return " ".join(words)
