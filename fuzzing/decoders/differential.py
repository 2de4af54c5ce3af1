"""Four decoders, one truth: datagrams by the million through the codec and each other one; differences are printed.

    python -m fuzzing.decoders.differential --codec-columnar 1e7 --layers 1e6 --lua 1e6 --tshark 1e5 --dialects 1000

Prints a table of figures and each difference as a vector ready for tests/vectors; exits 1 if there is any. The same
seed gives the same datagrams, whatever the number of processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fuzzing.decoders.backends import KINDS
from fuzzing.decoders.comparing import Comparison, Tally
from fuzzing.decoders.datagrams import anything, items_of, seeded
from fuzzing.decoders.dialect_rounds import TRIES, Round, run_round
from fuzzing.decoders.in_lua import LUAS
from fuzzing.decoders.outcome import Item
from pcap_tools.dialect import Dialect, builtin_names
from tests.vectors import dialect_of, own_dialect_names

REPORT_EVERY = 15  # seconds


class Chunk(NamedTuple):
    """A piece of work for one process: datagrams from a seed, or some of a corpus, or a round of random dialects."""

    kind: str
    size: int
    seed: str
    items: tuple[Item, ...] = ()


Done = tuple[str, Tally | Round]


@cache
def known_dialects() -> dict[str, Dialect]:
    """The built-in ones and those of the tests."""
    return {name: dialect_of(name) for name in [*builtin_names(), *own_dialect_names()]}


@cache
def _comparison(kind: str) -> Comparison:
    return Comparison(kind, KINDS[kind].make(known_dialects()), known_dialects())


def run_chunk(chunk: Chunk) -> Done:
    """The tally of one chunk, in whichever process."""
    if chunk.kind == "dialects":
        return chunk.kind, run_round(chunk.seed, there(*KINDS))
    comparison = _comparison(chunk.kind)
    items = chunk.items or tuple(mixed_items(chunk.size, chunk.seed, comparison.backend.takes))
    return chunk.kind, comparison.run(items)


def there(*kinds: str) -> list[str]:
    """Those of the decoders whose programs are installed."""
    return [kind for kind in kinds if KINDS[kind].is_there]


def chunks_of(kind: str, count: int, seed: int) -> list[Chunk]:
    """So many datagrams, in pieces that suit the decoder."""
    size = KINDS[kind].chunk
    starts = range(0, count, size)
    return [Chunk(kind, min(size, count - first), f"{seed} {kind} {first}") for first in starts]


def mixed_items(count: int, seed: str, takes: Callable[[Item], bool] = anything) -> Iterator[Item]:
    """So many datagrams that a decoder takes, as many of each dialect."""
    dialects = known_dialects()
    for place, (name, dialect) in enumerate(dialects.items()):
        share = (count + place) // len(dialects)
        yield from items_of(dialect, share, seeded(seed, name), takes)


def corpus_chunks(folder: Path) -> Iterator[Chunk]:
    """Inputs kept by ``fuzzing.decoders.guided``: a byte that chose the dialect, then a datagram."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    payloads = sorted({path.read_bytes()[1:] for path in files})
    for name in known_dialects():
        for first in range(0, len(payloads), 1_000):
            items = tuple(Item(name, payload, len(payload)) for payload in payloads[first : first + 1_000])
            yield from (Chunk(kind, len(items), "", items) for kind in there(*KINDS))


def plan(options: argparse.Namespace) -> list[Chunk]:
    """All chunks, those of slow decoders first so that no process is left alone with them at the end."""
    absent = [kind for kind in ("tshark", LUAS[-1]) if not KINDS[kind].is_there]
    if absent:
        sys.exit(f"fuzzing: {', '.join(absent)} is not installed")
    luas = there(*LUAS)
    counts = {"tshark": options.tshark, "layers": options.layers, "columnar walk": options.walk}
    counts |= {lua: -(-options.lua // len(luas)) for lua in luas} | {"columnar": options.codec_columnar}
    rounds = [Chunk("dialects", TRIES, f"{options.seed} dialects {n}") for n in range(-(-options.dialects // TRIES))]
    chunks = [chunk for kind, count in counts.items() for chunk in chunks_of(kind, count, options.seed)]
    return [*rounds, *(corpus_chunks(options.corpus) if options.corpus else ()), *chunks]


class Totals:
    """What all chunks came to."""

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}
        self.round = Round()

    def add(self, done: Done) -> None:
        kind, result = done
        if isinstance(result, Round):
            self.round.add(result)
        else:
            self.tallies.setdefault(kind, Tally()).add(result)

    def rows(self) -> list[tuple[str, Tally]]:
        random_ones = [(f"{kind}, random dialects", tally) for kind, tally in self.round.tallies.items()]
        return [*self.tallies.items(), *random_ones]

    @property
    def is_clean(self) -> bool:
        return not self.round.foreign and not any(tally.differing or tally.failures for _, tally in self.rows())

    def text(self) -> str:
        """The table of figures, and below it every difference that was kept."""
        head = ("codec beside", "datagrams", "valid", "per second", "differences", "foreign exceptions")
        lines = [_row(*head)]
        for name, tally in self.rows():
            rate = f"{tally.datagrams / max(tally.seconds, 1e-9):,.0f}"
            figures = (tally.datagrams, tally.valid, rate, tally.differing, tally.failures)
            lines.append(_row(name, *(figure if isinstance(figure, str) else f"{figure:,}" for figure in figures)))
        done = self.round
        if done.files:
            loaded = f"taken {done.taken:,}, refused {done.refused:,}, foreign exceptions {done.foreign:,}"
            lines.append(f"dialect files: {done.files:,}; {loaded}")
        kept = [one for _, tally in self.rows() for one in tally.differences]
        return "\n".join([*lines, *(f"\n{one.text}" for one in [*kept, *done.problems])])


def _row(name: str, *figures: str) -> str:
    return f"{name:<32}" + "".join(f"{figure:>20}" for figure in figures)


def run(chunks: Sequence[Chunk], jobs: int) -> Totals:
    """All chunks on so many processes; their results are added up as they come."""
    totals, begin, last = Totals(), time.monotonic(), time.monotonic()
    if jobs == 1:
        for chunk in chunks:
            totals.add(run_chunk(chunk))
        return totals
    with (
        tempfile.TemporaryDirectory(prefix="fuzzing-") as folder,
        multiprocessing.get_context("spawn").Pool(jobs, _work_in, (folder,)) as pool,
    ):
        for number, done in enumerate(pool.imap_unordered(run_chunk, chunks), 1):
            totals.add(done)
            if time.monotonic() - last > REPORT_EVERY:
                last = time.monotonic()
                print(f"{number:,} of {len(chunks):,} chunks, {last - begin:.0f} s", file=sys.stderr)
    return totals


def _work_in(folder: str) -> None:
    """Processes of a pool do not clean up behind themselves, so all of them write where their parent does."""
    tempfile.tempdir = folder


def _count(text: str) -> int:
    return int(float(text))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.decoders.differential", description=__doc__.partition("\n")[0]
    )
    for name, what in (
        ("codec-columnar", "datagrams through the columnar decoder"),
        ("walk", "datagrams through its walk alone, with the range of every field"),
        ("layers", "datagrams through the scapy layers"),
        ("lua", "datagrams through plain Lua, all interpreters together"),
        ("tshark", "datagrams through tshark"),
        ("dialects", "random dialect files, each also spoilt"),
    ):
        parser.add_argument(f"--{name}", type=_count, default=0, metavar="N", help=f"{what}, such as 1e5")
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="what fuzzing.decoders.guided kept, for all dialects and decoders"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 if anything differs."""
    options = _options(arguments)
    begin = time.monotonic()
    totals = run(plan(options), options.jobs)
    print(totals.text())
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024
    seconds = time.monotonic() - begin
    print(f"seed {options.seed}, {seconds:.0f} s on {options.jobs} processes, the largest had {most} MB")
    return 0 if totals.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
