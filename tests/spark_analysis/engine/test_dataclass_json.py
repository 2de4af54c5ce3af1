"""Dataclasses through JSON: what comes back is equal, or it is refused; plans of real captures among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from generators.capture.capture_point import write
from generators.capture.options import Point
from generators.generate import GeneratorOptions, generate
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.read.reading import read_batches
from spark_analysis.engine.task_rows import from_json, to_json
from spark_analysis.sources.planning import CapturePlan, plan_capture


class Pair(NamedTuple):
    left: int
    right: str | None


@dataclass(frozen=True)
class Inner:
    pairs: list[Pair]
    by_endpoint: dict[tuple[str, int], tuple[float, str]]


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner | None
    ports: frozenset[int]
    many: tuple[int, ...] = ()
    flag: bool = False


@pytest.mark.parametrize(
    "value",
    [
        Outer("", None, frozenset()),
        Outer("r\udcffn \u2028 \x00 \U0001f980", None, frozenset({1, 2}), (1 << 63, -(1 << 64)), True),
        Outer(
            "x", Inner([Pair(1, None), Pair(2, "b")], {("::1", 5): (0.1, "colon"), ("", 0): (1e300, "")}), frozenset()
        ),
    ],
)
def test_what_is_written_comes_back(value: Outer) -> None:
    text = to_json(value)
    assert text.isascii()
    assert "\n" not in text
    assert from_json(Outer, text) == value


@dataclass(frozen=True)
class Table:
    rows: NDArray[np.int64] | None


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 2)])
def test_arrays_keep_their_shape(shape: tuple[int, ...]) -> None:
    rows = np.arange(np.prod(shape), dtype=np.int64).reshape(shape) - (1 << 62)
    back = from_json(Table, to_json(Table(rows))).rows
    assert back is not None
    assert (back.shape, back.dtype, back.flags.writeable) == (shape, np.dtype("int64"), True)
    assert np.array_equal(back, rows)


@dataclass(frozen=True)
class Odd:
    value: Any


@pytest.mark.parametrize("value", [b"bytes", 1j, object(), np.float64(1), np.zeros(2)])
def test_what_has_no_form_in_json_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="JSON"):
        to_json(Odd(value))


def test_a_type_that_leaves_a_choice_is_refused() -> None:
    with pytest.raises(TypeError, match="more than one way"):
        from_json(int | str, "1")  # type: ignore[arg-type]


@pytest.mark.parametrize("capture", [{"format": "pcapng"}, {"point": Point.ANY}, {"mtu": 68}], ids=str)
def test_splits_of_a_plan_read_the_same_rows_afterwards(tmp_path: Path, capture: dict[str, Any]) -> None:
    """Between them are open fragments, and datagrams that may have copies yet."""
    order = GeneratorOptions("building", 1, ("rolebyte",), sensors=5, rounds=6, capture=capture)
    path, dialects = tmp_path / "run.pcap", wanted_dialects()
    write(generate(order).capture, path)
    plan = plan_capture(str(path), dialects, 3000)
    assert len(plan.splits) > 3
    back = from_json(CapturePlan, to_json(plan))
    assert to_json(back) == to_json(plan)
    assert (back.routes, back.evidence) == (plan.routes, plan.evidence)
    for before, after in zip(plan.splits, back.splits, strict=True):
        rows = [
            [
                Decoder(dialects.wanted, one.routes, plain=True, capture="x").decode(batch)
                for batch in read_batches(split)
            ]
            for one, split in ((plan, before), (back, after))
        ]
        assert rows[0] == rows[1]
