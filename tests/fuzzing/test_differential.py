"""All decoders say what the codec says, in a short run; and the fuzzer would notice if one did not.

`make fuzz` runs the same with 10 million datagrams.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fuzzing.decoders.backends import KINDS, Columnar
from fuzzing.decoders.comparing import Comparison, Tally
from fuzzing.decoders.datagrams import items_of, seeded
from fuzzing.decoders.dialect_rounds import run_round
from fuzzing.decoders.differential import Chunk, Totals, known_dialects, main, mixed_items, run_chunk
from fuzzing.decoders.in_lua import LUAS, Lua
from fuzzing.decoders.outcome import Answer, Failure, Item, Outcome, differing, outcome_of
from pcap_tools.codec import Codec

SEED = 20_261_116


def run(kind: str, count: int) -> Tally:
    if not KINDS[kind].is_there:
        pytest.skip(f"{kind} is not installed")
    _, tally = run_chunk(Chunk(kind, count, f"{SEED} {kind}"))
    assert isinstance(tally, Tally)
    return tally


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("columnar", 20_000),
        ("columnar walk", 2_000),
        ("layers", 2_000),
        *[(lua, 1_700) for lua in LUAS],
        pytest.param("tshark", 500, marks=pytest.mark.tshark),
    ],
)
def test_a_decoder_says_what_the_codec_says(kind: str, count: int) -> None:
    tally = run(kind, count)
    assert tally.datagrams == count
    assert (tally.differing, tally.failures) == (0, 0), "\n\n".join(one.text for one in tally.differences)


def test_random_dialects_are_read_alike_by_all_decoders() -> None:
    kinds = ["columnar", "columnar walk", "layers", *(lua for lua in LUAS if KINDS[lua].is_there)]
    done = run_round(f"{SEED}", kinds)
    assert (done.foreign, done.problems) == (0, [])
    assert done.taken > 5
    assert done.refused > 5
    for kind, tally in done.tallies.items():
        assert tally.datagrams > 300, kind
        assert (tally.differing, tally.failures) == (0, 0), "\n\n".join(one.text for one in tally.differences)


# -- what it is fed with ---------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_datagrams() -> None:
    assert list(mixed_items(300, "7")) == list(mixed_items(300, "7"))
    assert list(mixed_items(300, "7")) != list(mixed_items(300, "8"))


def test_every_message_and_every_error_comes_up() -> None:
    errors = set()
    for dialect in known_dialects().values():
        codec, items = Codec(dialect), items_of(dialect, 300 + 60 * len(dialect.messages), seeded("all"))
        decoded = [codec.decode(item.payload, item.length) for item in items]
        assert {message.message for message in decoded if message.error is None} == set(dialect.messages)
        errors |= {str(message.error) for message in decoded if message.error}
    assert errors == {
        "empty", "unknown-type", "incomplete", "no-delimiter", "bad-magic", "bad-length", "bad-value", "bad-text",
        "trailing-bytes", "cut",
    }  # fmt: skip


# -- it can fail -----------------------------------------------------------------------------------------------------


class Planted(Columnar):
    """A decoder with a fault: after a colon a ``7`` is lost."""

    def decode(self, items: Sequence[Item]) -> list[Answer]:
        return [self._spoilt(item, answer) for item, answer in zip(items, super().decode(items), strict=True)]

    def _spoilt(self, item: Item, answer: Answer) -> Answer:
        if isinstance(answer, Outcome) and b":" in item.payload and b"7" in item.payload.partition(b":")[2]:
            return answer._replace(error_offset=99)
        return answer


def colon_items(*payloads: bytes) -> list[Item]:
    return [Item("colon", payload, len(payload)) for payload in payloads]


def compare(backend: Columnar, items: Sequence[Item]) -> Tally:
    return Comparison("planted", backend, known_dialects()).run(items)


def test_a_planted_difference_is_found_and_minimised() -> None:
    items = colon_items(b"\x01\x00home/fan:ON", b"\x01\x01home/kitchen/lamp:1 2 3 4 5 6 7 8 9", b"\x02")
    tally = compare(Planted(known_dialects()), items)
    assert (tally.datagrams, tally.differing, tally.failures) == (3, 1, 0)
    (difference,) = tally.differences
    assert (difference.part, difference.item.payload) == ("error_offset", b":7")
    assert 'hex = "3a37"' in difference.text
    assert 'error = "unknown-type"\nerror_offset = 0' in difference.text
    assert "planted says 99" in difference.text


def test_a_planted_difference_is_found_among_generated_datagrams() -> None:
    items = list(items_of(known_dialects()["colon"], 3_000, seeded("planted")))
    assert compare(Planted(known_dialects()), items).differing > 0


class Raising(Columnar):
    """A decoder that cannot bear a NUL after an ``a``."""

    def _lines(self, name: str, items: list[Item]) -> list[Answer]:
        if any(b"a\0" in item.payload for item in items):
            raise IndexError("planted")
        return super()._lines(name, items)


def test_an_exception_is_pinned_on_its_datagram_and_minimised() -> None:
    items = colon_items(*[b"\x02"] * 50, b"\x01\x00topic/aa\0b:xyz", *[b"\x01\x00t:1"] * 50)
    tally = compare(Raising(known_dialects()), items)
    assert (tally.datagrams, tally.differing, tally.failures) == (101, 0, 1)
    (difference,) = tally.differences
    assert difference.item.payload == b"a\0"
    assert "IndexError: planted" in difference.text


def test_a_lua_error_is_pinned_on_its_datagram() -> None:
    if not KINDS["lua5.4"].is_there:
        pytest.skip("lua5.4 is not installed")
    backend = Lua(known_dialects(), "lua5.4")
    planted = """local decode = shared.decode
    function shared.decode(dialect, data, length)
        if data:find("xy") then error("planted") end
        return decode(dialect, data, length)
    end"""
    text = backend.dissector.read_text().replace("\nreturn shared\n", f"\n{planted}\nreturn shared\n")
    backend.dissector.write_text(text)
    items = colon_items(b"\x02", b"\x01\x00xyz:1", b"\x04", b"\x01\x00xy:2", b"\x01\x00t:1")
    answers = backend.decode(items)
    assert [isinstance(answer, Failure) for answer in answers] == [False, True, False, True, False]
    assert "planted" in str(answers[1])


def test_a_loader_that_raises_anything_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(text: str) -> None:
        raise KeyError("planted")

    monkeypatch.setattr("fuzzing.decoders.dialect_rounds.parse_dialect", parse)
    totals = Totals()
    totals.add(("dialects", run_round("1", [])))
    assert not totals.is_clean
    assert "foreign exceptions 50" in totals.text()
    assert "KeyError: 'planted'" in totals.text()


@pytest.mark.parametrize("part", [part for part in Outcome._fields if part != "ranges"])
def test_every_part_of_an_outcome_counts(part: str) -> None:
    message = Codec(known_dialects()["colon"]).decode(b"\x01\x01t:1")
    outcome = outcome_of(message)
    other = Outcome._make(b"other" if name == part else value for name, value in outcome._asdict().items())
    assert differing(outcome, other) == part
    assert differing(outcome, outcome) is None


def test_the_order_of_fields_counts() -> None:
    outcome = outcome_of(Codec(known_dialects()["colon"]).decode(b"\x01\x01t:1"))
    assert differing(outcome, outcome._replace(fields=dict(reversed(outcome.fields.items())))) == "order of fields"
    assert differing(outcome, Failure("gone")) == "failure"


def test_a_difference_makes_the_run_fail_and_is_printed() -> None:
    totals = Totals()
    totals.add(("planted", compare(Planted(known_dialects()), colon_items(b"a:7"))))
    assert not totals.is_clean
    assert "[[vector]]" in totals.text()


def test_a_clean_run_prints_its_figures_and_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--codec-columnar", "2e3", "--jobs", "1", "--seed", "5"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split()[:2] == ["columnar", "2,000"]
    assert "seed 5" in out
