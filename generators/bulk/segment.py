"""What `write_bulk` repeats, and what it made of it: a piece of simulated traffic, and the numbering of its tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from generators.bulk.tile_addresses import TileAddresses
from pcap_tools.capture.frame import MAX_CAPTURED
from pcap_tools.capture.link import PARSERS
from pcap_tools.errors import UsageError

# A counter plus a shift must stay below 2**63.
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Segment:
    """Frames as pairs of their time in nanoseconds and their bytes.

    link_type  the number of pcap headers
    prologue   written once: the subscriptions
    body       tiled: whole lives of the varying hosts
    period_ns  from one tile's first frame to the next one's; no less than the body lasts
    varying    addresses of the hosts that are others in each tile, IPv4 in 10.0.0.0/8 or IPv6; all else stays
    marker     stands before a counter of `digits` ASCII digits in a UDP payload of the body
    step       how many counters the body uses: tile k adds k * step to each
    once       no varying host may come again in a later tile: there are no more tiles than addresses
    """

    link_type: int
    prologue: Sequence[tuple[int, bytes]]
    body: Sequence[tuple[int, bytes]]
    period_ns: int
    varying: frozenset[str]
    marker: bytes = b"#"
    digits: int = 9
    step: int = field(kw_only=True)
    once: bool = False

    def __post_init__(self) -> None:
        if self.link_type not in PARSERS:
            raise UsageError(f"link type {self.link_type} is not known; known are {sorted(PARSERS)}")
        if not self.body:
            raise UsageError("a segment without a body cannot be tiled")
        for name, frames in (("prologue", self.prologue), ("body", self.body)):
            for number, (_, frame) in enumerate(frames):
                if len(frame) > MAX_CAPTURED:
                    raise UsageError(f"frame {number} of the {name} has {len(frame)} bytes, above {MAX_CAPTURED}")
        times = [time_ns for time_ns, _ in self.body]
        lasts = max(times) - min(times)
        if self.period_ns < lasts:
            raise UsageError(f"the period is {self.period_ns} ns, but the body lasts {lasts} ns: tiles would overlap")
        if not self.marker or not 1 <= self.digits <= _MAX_DIGITS or self.step < 0:
            raise UsageError(f"a counter has a marker, 1 to {_MAX_DIGITS} digits and a step of at least 0")
        for address in self.varying:
            _check_address(address)

    def varying_hosts(self) -> frozenset[bytes]:
        return frozenset(ip_address(address).packed for address in self.varying)


def _check_address(text: str) -> None:
    try:
        packed = ip_address(text).packed
    except ValueError as error:
        raise UsageError(f"{text!r} is not an IP address") from error
    if len(packed) == 4 and packed[0] != 10:
        raise UsageError(f"a varying host has an address in 10.0.0.0/8, not {text}: others belong to somebody")


@dataclass(frozen=True, slots=True)
class Tiling:
    """What was written: `prologue` frames, then `tiles` times the `body` frames, the last tile cut to end at `packets`.

    `addresses` tells the varying hosts of each tile; `first_ns` and `last_ns` are the times of the first and the last
    frame; `size` is the file's, in bytes.
    """

    prologue: int
    body: int
    tiles: int
    packets: int
    first_ns: int
    last_ns: int
    size: int
    addresses: TileAddresses = field(repr=False, compare=False)

    def number(self, frame: int, tile: int) -> int:
        """The frame number, from 1, of the body's frame `frame` (from 0) in tile `tile` (from 0)."""
        return self.prologue + tile * self.body + frame + 1
