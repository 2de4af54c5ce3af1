"""Rounds of random dialects: files through the loader, and packets of those it takes through every decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fuzzing.decoders.backends import KINDS
from fuzzing.decoders.comparing import Comparison, Difference, Tally
from fuzzing.decoders.datagrams import items_of, seeded
from fuzzing.decoders.outcome import Item
from fuzzing.decoders.random_dialects import NAMES, dialect_text, spoilt
from pcap_tools.dialect import Dialect, parse_dialect
from pcap_tools.errors import TopicsharkError

TRIES = 25  # files of one round; some ten of them are sound
DATAGRAMS = 60  # for each dialect and decoder


@dataclass
class Round:
    """What the loader did with the files of a round, and what each decoder came to."""

    files: int = 0
    taken: int = 0
    refused: int = 0
    foreign: int = 0
    problems: list[Difference] = field(default_factory=list)
    tallies: dict[str, Tally] = field(default_factory=dict)

    def add(self, other: Round) -> None:
        self.files += other.files
        self.taken += other.taken
        self.refused += other.refused
        self.foreign += other.foreign
        self.problems = (self.problems + other.problems)[:10]
        for kind, tally in other.tallies.items():
            self.tallies.setdefault(kind, Tally()).add(tally)


def run_round(seed: str, kinds: Sequence[str]) -> Round:
    """One round, in whichever process."""
    done = Round()
    texts = _take_files(seed, done)
    if not texts:
        return done
    dialects = {name: parse_dialect(text) for name, text in texts.items()}
    for kind in kinds:
        done.tallies[kind] = _compare(kind, dialects, f"{seed} {kind}")
        for place, difference in enumerate(done.tallies[kind].differences):
            file = texts.get(difference.item.dialect, "")
            whole = f"{difference.text}\n# the dialect:\n{file}"
            done.tallies[kind].differences[place] = difference._replace(text=whole)
    return done


def _take_files(seed: str, done: Round) -> dict[str, str]:
    """Names and texts of the files that the loader takes; each file is offered whole and spoilt."""
    rng, taken = seeded(seed), {}
    for place in range(TRIES):
        name = rng.choice(NAMES) if rng.random() < 0.2 else f"d{place}"
        text = dialect_text(name, rng)
        for offered in (text, spoilt(text, rng)):
            dialect = _load(offered, done)
            if dialect is not None and dialect.name not in taken:
                taken[dialect.name] = offered
    return taken


def _load(text: str, done: Round) -> Dialect | None:
    done.files += 1
    try:
        dialect = parse_dialect(text)
    except TopicsharkError:
        done.refused += 1
        return None
    except Exception as error:  # the loader must never raise anything else; that it did is what we look for
        done.foreign += 1
        done.problems.append(_problem("loader", f"{type(error).__name__}: {error}", text))
        return None
    done.taken += 1
    return dialect


def _compare(kind: str, dialects: dict[str, Dialect], seed: str) -> Tally:
    try:
        comparison = Comparison(kind, KINDS[kind].make(dialects), dialects)
        items = [item for name, one in dialects.items() for item in items_of(one, DATAGRAMS, seeded(seed, name))]
    except Exception as error:  # no decoder, or no datagrams, for dialects that the loader has taken
        text = f"cannot be made for one of {', '.join(dialects)}: {type(error).__name__}: {error}"
        return Tally(failures=1, differences=[_problem(kind, text, "")])
    return comparison.run(items)


def _problem(who: str, text: str, file: str) -> Difference:
    return Difference(who, "failure", Item("", b"", 0), f"# {who}: {text}\n{file}")
