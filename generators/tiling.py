"""A simulated run as a segment to tile: what is written once, what is repeated, and who is another in each repeat."""

from __future__ import annotations

import re

from generators.generate import Made
from generators.segment import Segment, Tiling
from generators.simulation import START_NS
from generators.stage import Site
from generators.vocabulary import COUNTER_DIGITS, COUNTER_MARK
from pcap_tools.errors import UsageError

PAUSE_NS = 100_000_000  # between two tiles
_COUNTER = re.compile(re.escape(COUNTER_MARK) + rb"(\d{%d})" % COUNTER_DIGITS)


def segment_of(made: Made) -> Segment:
    """The segment of a run whose publishers begin once all subscriptions stand, as they do in ``building``."""
    sites = made.script.sites
    if len(sites) > 1 or not sites[0].settled_ns:
        raise UsageError(f"{made.order.scenario} cannot be repeated to make a large capture; building and lossy can")
    site = sites[0]
    begin = START_NS + site.settled_ns
    end = START_NS + site.finished_ns if site.finished_ns is not None else None
    frames = [(frame.time_ns, frame.data) for frame in made.capture.frames]
    body = [one for one in frames if one[0] >= begin and (end is None or one[0] < end)]
    if not body:
        raise UsageError("nobody published anything that the capture holds, so there is nothing to repeat")
    return Segment(
        made.capture.options.link_type.number,
        [one for one in frames if one[0] < begin],
        body,
        body[-1][0] - body[0][0] + PAUSE_NS,
        _publishers(made, site, begin),
        COUNTER_MARK,
        COUNTER_DIGITS,
        step=_counters(made),
    )


def _publishers(made: Made, site: Site, begin: int) -> frozenset[str]:
    """The hosts that say nothing before all subscriptions stand: they may be others in each tile."""
    early = {sent.crossing.src[0] for sent in made.run.sent if sent.crossing.sent_ns < begin}
    return frozenset(node.endpoint[0] for node in site.nodes) - early


def _counters(made: Made) -> int:
    """How many counters the run has used: they count from 1."""
    return max((int(one) for sent in made.run.sent for one in _COUNTER.findall(sent.crossing.datagram)), default=0)


def tiling_facts(tiling: Tiling) -> dict[str, int]:
    """What the truth tells of a tiled capture: frame f of tile 0 is frame f + k * body in tile k."""
    return {
        "prologue": tiling.prologue,
        "body": tiling.body,
        "tiles": tiling.tiles,
        "packets": tiling.packets,
    }
