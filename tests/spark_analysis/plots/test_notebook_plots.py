"""Pictures that the notebooks end in: right numbers in the right places, bounded, and hostile names are only text."""

from __future__ import annotations

import io
import warnings

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from pcap_tools import load_dialect
from spark_analysis.plots.filter_matrix import Copies, filter_matrix
from spark_analysis.plots.rule_matrix import rule_matrix
from spark_analysis.plots.style import DARK, svg
from spark_analysis.plots.wire import wire

HOSTILE = "<script>$\\frac{$\x1b[31m\u202e" + "x" * 10_000


def texts(figure: Figure) -> str:
    return "\n".join(one.get_text() for one in figure.findobj(Text) if isinstance(one, Text))


def drawn(figure: Figure) -> bytes:
    """Drawing is when matplotlib would trip over a name."""
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(out, format="png")
    return out.getvalue()


# --- Who fails what --------------------------------------------------------------------------------------------------


def test_rules_that_most_fail_come_first_and_who_fails_nothing_comes_last() -> None:
    failed = {
        "anna": {},
        "bert": {"A-MISSING": 1},
        "carla": {"D-MISSING": 30, "A-MISSING": 3},
        "dora": {"A-MISSING": 0},
    }
    figure = rule_matrix(failed)
    shares, cells = figure.axes
    assert [label.get_text() for label in cells.get_xticklabels()] == ["A-MISSING", "D-MISSING"]
    assert [label.get_text() for label in cells.get_yticklabels()] == ["carla", "bert", "anna", "dora"]
    assert [bar.get_height() for bar in shares.patches] == [50, 25]  # type: ignore[attr-defined]
    # 3 findings are the second shade, 30 the fourth, 1 the first, none is none
    assert cells.images[0].get_array().tolist() == [[2, 4], [1, 0], [0, 0], [0, 0]]  # type: ignore[union-attr]
    assert "2 of 4 fail a rule" in texts(figure)


def test_a_class_of_thousands_is_one_picture() -> None:
    figure = rule_matrix({f"s{number}": {f"R-{number % 50}": 1} for number in range(3_000)})
    assert figure.axes[1].images[0].get_array().shape == (2_000, 30)  # type: ignore[union-attr]
    assert "2,000 of 3,000 captures" in texts(figure)


def test_a_class_without_failures_says_so() -> None:
    assert "nobody fails anything" in texts(rule_matrix({"anna": {}}))


# --- Filters and topics ----------------------------------------------------------------------------------------------


def test_copies_stand_where_their_filter_meets_their_topic() -> None:
    rows = [Copies("home/*", "home/fan", 6, 0), Copies("home/fan", "home/fan", 2, 1), Copies("home/*", "home/tv", 3, 0)]
    figure = filter_matrix({"run": rows, "other": [Copies("home/*", "home/fan", 0, 6)]})
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["home/*", "home/fan"]
    assert [label.get_text() for label in left.get_xticklabels()] == ["home/fan", "home/tv"]
    came, missing = left.collections
    assert came.get_offsets().tolist() == [[0, 0], [0, 1], [1, 0]]  # type: ignore[union-attr]
    assert missing.get_offsets().tolist() == [[0, 1]]  # type: ignore[union-attr]
    assert [one.get_label() for one in right.collections] == ["missing"]
    assert "11 copies came, 1 are missing" in left.get_title(loc="left")


def test_many_filters_are_bounded() -> None:
    rows = [Copies(f"f{number}", f"t{number}", 1, 0) for number in range(500)]
    axes = filter_matrix(dict.fromkeys("abcdef", rows)).axes
    assert len(axes) == 3
    assert len(axes[0].get_yticklabels()) == len(axes[0].get_xticklabels()) == 24


@pytest.mark.parametrize("sessions", [{}, {"run": []}])
def test_no_copies_are_no_picture(sessions: dict[str, list[Copies]]) -> None:
    assert "no filter matched a message" in texts(filter_matrix(sessions))


def test_copies_of_which_the_capture_cannot_tell_draw_nothing() -> None:
    assert filter_matrix({"run": [Copies("a", "b", 0, 0)]}).axes[0].collections[:] == []


# --- Datagrams -------------------------------------------------------------------------------------------------------


def test_each_byte_has_the_colour_of_its_field() -> None:
    figure = wire(load_dialect("colon"), [b"\x01\x00t:ab", b"\x01\x00no", b"\x02"])
    squares = figure.axes[0].patches
    colours = [square.get_facecolor() for square in squares]
    assert len(colours) == 6 + 4 + 1
    # type, retain, topic with its colon, payload
    assert colours[4] == colours[5]
    assert len({*colours[:3], colours[4]}) == 4
    assert colours[6] == colours[0] == colours[10]
    said = texts(figure)
    assert "PUBLISH\npublish" in said
    assert "PUBLISH\nno-delimiter" in said
    assert "PUBACK\nack" in said


def test_long_datagrams_and_many_are_bounded() -> None:
    figure = wire(load_dialect("colon"), [b"\x01\x00" + b"x" * 60_000 + b":"] * 100)
    assert len(figure.axes[0].patches) == 12 * 32


def test_no_datagram_is_no_picture() -> None:
    assert "no datagrams to show" in texts(wire(load_dialect("colon"), [b""]))


# --- All -------------------------------------------------------------------------------------------------------------


def test_hostile_names_are_drawn_as_text() -> None:
    figures = [
        rule_matrix({HOSTILE: {HOSTILE: 1}, "b": {"A-MISSING": 1}}, DARK),
        filter_matrix({HOSTILE: [Copies(HOSTILE, HOSTILE, 1, 1), Copies(None, None, 1, 0)]}, DARK),
        wire(load_dialect("colon"), [b"\x01\x00$\\frac{<script>:$"], DARK),
    ]
    for figure in figures:
        assert len(texts(figure)) < 2_000
        assert drawn(figure).startswith(b"\x89PNG")
        assert "<script" not in svg(figure)
