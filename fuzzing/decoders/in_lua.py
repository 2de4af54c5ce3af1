"""The engine of dissector.lua under a plain Lua interpreter: one process for a batch of datagrams."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzzing.decoders.outcome import Answer, Failure, Item, Outcome, outcome_of
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.program import Value
from pcap_tools.dissector import write_dissector

LUAS = ("lua5.2", "lua5.3", "lua5.4")  # those that a Wireshark may have
DRIVER = Path(__file__).parents[2] / "tests" / "dissector" / "run_vectors.lua"
LONGEST = 120  # seconds for a batch: more is a hang


class Lua:
    """One interpreter. A Lua error ends its process, so the datagram that it stopped at bears the blame."""

    def __init__(self, dialects: Mapping[str, Dialect], interpreter: str) -> None:
        self._interpreter = interpreter
        self._folder = TemporaryDirectory(prefix="fuzzing-")
        self.dissector = Path(self._folder.name) / "dissector.lua"
        write_dissector(dialects.values(), self.dissector)

    def takes(self, item: Item) -> bool:
        return True

    def decode(self, items: Sequence[Item]) -> list[Answer]:
        try:
            return self._decode(items)
        except subprocess.TimeoutExpired:  # in halves, until one datagram is left that it hangs at
            if len(items) == 1:
                return [Failure(f"no answer within {LONGEST} s")]
        half = len(items) // 2
        return [*self.decode(items[:half]), *self.decode(items[half:])]

    def _decode(self, items: Sequence[Item]) -> list[Answer]:
        answers: list[Answer] = []
        while len(answers) < len(items):
            lines, problem = self._run(items[len(answers) :])
            answers += [outcome_of_line(line) for line in lines]
            if problem is not None:
                answers.append(Failure(problem))
        return answers

    def _run(self, items: Sequence[Item]) -> tuple[list[str], str | None]:
        """The lines of all datagrams, or of those before the one that it failed at, and why."""
        text = "".join(f"{item.dialect} {item.payload.hex() or '-'} {item.length}\n" for item in items)
        done = subprocess.run(
            [self._interpreter, str(DRIVER), str(self.dissector)],
            input=text, capture_output=True, text=True, check=False, timeout=LONGEST,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        if len(lines) == len(items) and not done.stderr:
            return lines, None
        return lines[: len(items) - 1], done.stderr.strip() or f"exit code {done.returncode}"

    def expected(self, message: Message, item: Item) -> Outcome:
        return outcome_of(message)


def outcome_of_line(line: str) -> Outcome:
    """A line of the driver, whose head tells the format."""
    form, message, meaning, topic, filter_, payload, retain, padding, error, offset, *rest = line.split(" ")
    fields: dict[str, Value] = {}
    ranges = {}
    for name, kind, value, span in zip(*[iter(rest)] * 4, strict=True):
        fields[name] = int(value) if kind == "n" else bytes.fromhex(value[1:])
        first, last = span.split("-")
        ranges[name] = (int(first), int(last))
    return Outcome(
        form,
        _word(message),
        _word(meaning),
        _bytes(topic),
        _bytes(filter_),
        _bytes(payload),
        None if retain == "-" else retain == "true",
        int(padding),
        _word(error),
        None if offset == "-" else int(offset),
        fields,
        ranges,
    )


def _word(text: str) -> str | None:
    return None if text == "-" else text


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text[1:])
