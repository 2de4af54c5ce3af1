"""What is wrong with a dialect file, said so that its author can mend it: file, line, key, expectation, suggestion."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches

from pcap_tools.errors import TopicsharkError

from .positions import Path


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a dialect file."""

    path: Path
    text: str


class DialectError(TopicsharkError):
    """A dialect file that cannot be used; ``problems`` lists every reason with its line."""

    def __init__(self, source: str, problems: list[Problem], lines: dict[Path, int]) -> None:
        self.source = source
        self.problems = [(line_of(problem.path, lines), problem) for problem in problems]
        super().__init__("\n".join(self._sentence(line, problem) for line, problem in self.problems))

    def _sentence(self, line: int | None, problem: Problem) -> str:
        where = f"{self.source}:{line}" if line else self.source
        key = ".".join(str(part) for part in problem.path)
        return f"{where}: {key}: {problem.text}" if key else f"{where}: {problem.text}"


@dataclass
class Findings:
    """Collects problems while the checks walk over a dialect."""

    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, text: str) -> None:
        problem = Problem(path, text)
        if problem not in self.problems:  # every layout of every form may find it again
            self.problems.append(problem)

    def known(self, path: Path, word: str, words: list[str], what: str) -> bool:
        """Whether ``word`` is one of ``words``; if not, a problem with a suggestion is noted."""
        if word in words:
            return True
        self.add(path, f"there is no {what} {word!r}{suggestion(word, words)}")
        return False


def suggestion(word: str, words: list[str]) -> str:
    """``; did you mean 'topic'?`` for a misspelt word, else the words there are."""
    close = get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; expected one of: {', '.join(words)}" if words else ""


def line_of(path: Path, lines: dict[Path, int]) -> int | None:
    """The line of a key, or of the nearest table around it."""
    for depth in range(len(path), -1, -1):
        if path[:depth] in lines:
            return lines[path[:depth]]
    return None
