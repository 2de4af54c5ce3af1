"""Which line of a TOML text holds which key: what tomllib knows and does not tell.

Walks a text that tomllib has accepted, so it only needs to find its way, not to judge.
"""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.S)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}\n#]*")


class _Walker:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Path, int] = {}
        self.array_counts: dict[Path, int] = {}

    def line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def take(self, literal: str) -> bool:
        if self.text.startswith(literal, self.at):
            self.at += len(literal)
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.at)
        if not found:
            return None
        self.at = found.end()
        return found.group()

    def key(self) -> Path:
        parts: list[str | int] = []
        while True:
            self.blank()
            quoted = self.match(_STRING)
            parts.append(quoted[1:-1] if quoted is not None else self.match(_BARE_KEY) or "")
            self.blank()
            if not self.take("."):
                return tuple(parts)

    def value(self, path: Path) -> None:
        self.blank()
        self.lines.setdefault(path, self.line())
        if self.match(_STRING) is not None:
            return
        if self.take("["):
            self.items(path, "]")
        elif self.take("{"):
            self.items(path, "}")
        else:
            self.match(_BARE_VALUE)

    def items(self, path: Path, end: str) -> None:
        index = 0
        while True:
            self.blank()
            if self.take(end) or self.at >= len(self.text):
                return
            if end == "}":
                self.pair(path)
            else:
                self.value((*path, index))
            index += 1
            self.blank()
            self.take(",")

    def pair(self, prefix: Path) -> None:
        line = self.line()
        key = self.key()
        for depth in range(1, len(key) + 1):
            self.lines.setdefault(prefix + key[:depth], line)
        self.take("=")
        self.value(prefix + key)

    def header(self) -> Path:
        line, is_array = self.line(), self.take("[[")
        if not is_array:
            self.take("[")
        path = self.key()
        self.take("]]" if is_array else "]")
        if is_array:
            index = self.array_counts[path] = self.array_counts.get(path, -1) + 1
            path = (*path, index)
        for depth in range(1, len(path) + 1):
            self.lines.setdefault(path[:depth], line)
        return path

    def document(self) -> dict[Path, int]:
        prefix: Path = ()
        while True:
            self.blank()
            if self.at >= len(self.text):
                return self.lines
            if self.text[self.at] == "[":
                prefix = self.header()
            else:
                self.pair(prefix)


def key_lines(text: str) -> dict[Path, int]:
    """The line (from 1) of each key path of a valid TOML text."""
    return _Walker(text).document()
