"""The decoders that are held against the codec: how each is made, and how many datagrams it gets at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import NamedTuple

from fuzzing.decoders.backends import Backend, Columnar, ColumnarWalk, Layers
from fuzzing.decoders.in_lua import LUAS, Lua
from fuzzing.decoders.in_tshark import Tshark
from pcap_tools.dialect import Dialect

Maker = Callable[[Mapping[str, Dialect]], Backend]


class Kind(NamedTuple):
    """A decoder to compare with; ``program`` must be installed."""

    make: Maker
    chunk: int
    program: str | None = None

    @property
    def is_there(self) -> bool:
        return self.program is None or shutil.which(self.program) is not None


def _lua(interpreter: str) -> Maker:
    return lambda dialects: Lua(dialects, interpreter)


KINDS: dict[str, Kind] = {
    "columnar": Kind(Columnar, 10_000),
    "columnar walk": Kind(ColumnarWalk, 2_000),
    "layers": Kind(Layers, 2_000),
    **{name: Kind(_lua(name), 10_000, name) for name in LUAS},
    "tshark": Kind(Tshark, 2_500, "tshark"),
}
