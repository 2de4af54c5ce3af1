"""Figures as pictures inside the page: SVG in `data:` URIs, where a browser runs nothing and loads nothing."""

from __future__ import annotations

from base64 import b64encode
from typing import Protocol

from matplotlib.figure import Figure

from ...plots.style import DARK, LIGHT, Theme, in_theme, svg
from .model import Picture


class Draw(Protocol):
    """A function of `plots`, given what it draws."""

    def __call__(self, *, theme: Theme) -> Figure: ...


_PIXELS = 96  # of CSS, in an inch


def picture(draw: Draw, alt: str) -> Picture:
    """On light and on dark ground."""
    figure = draw(theme=LIGHT)
    light = svg(figure)
    width, height = (round(float(inches) * _PIXELS) for inches in figure.get_size_inches())
    return Picture(_uri(light), _uri(in_theme(light, LIGHT, DARK)), alt, width, height)


def _uri(picture: str) -> str:
    return "data:image/svg+xml;base64," + b64encode(picture[picture.index("<svg") :].encode()).decode()
