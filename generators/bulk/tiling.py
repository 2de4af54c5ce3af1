"""A simulated run as a segment to tile: the part written once, the part repeated, and the hosts new in each repeat.

A repeat must not depend on state that an earlier one left in the broker: subscriptions, retained messages, sessions. So
the whole run is repeated, with a new broker and new clients. Where a scenario gives the time from which such state does
not matter (``Site.settled_ns``), only the part after it is repeated, and the broker stays.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from generators.bulk.segment import Segment, Tiling
from generators.generate import SIZES, GeneratedRun, GeneratorOptions, scenario_named
from generators.simulation.engine import START_NS
from generators.simulation.site import Node, Site, Verb
from generators.simulation.vocabulary import COUNTER_DIGITS, COUNTER_MARK
from pcap_tools.errors import UsageError

PAUSE_NS = 100_000_000  # between two tiles
_COUNTER = re.compile(re.escape(COUNTER_MARK) + rb"(\d{%d})" % COUNTER_DIGITS)


def options_to_repeat(options: GeneratorOptions) -> GeneratorOptions:
    """The same run, made to be repeated: sizes that nobody chose are those of the scenario's tile."""
    scenario = scenario_named(options.scenario)
    if scenario.only_once:
        raise UsageError(
            f"{options.scenario} cannot be repeated to make a large capture: {scenario.only_once}; use another "
            "scenario, such as building or churn"
        )
    sizes: dict[str, Any] = {name: scenario.tile[name] for name in SIZES if getattr(options, name) is None}
    return replace(options, repeated=True, **sizes)


def segment_of(made: GeneratedRun) -> Segment:
    """The segment of a run."""
    begin = _begin(made)
    frames = [(frame.time_ns, frame.data) for frame in made.capture.frames]
    body = [one for one in frames if one[0] >= begin]
    if not body:
        raise UsageError("the capture holds nothing that could be repeated: no message of the clients or the broker")
    return Segment(
        made.capture.options.link_type.number,
        [one for one in frames if one[0] < begin],
        body,
        body[-1][0] - body[0][0] + PAUSE_NS,
        _varying(made, begin),
        COUNTER_MARK,
        COUNTER_DIGITS,
        step=_counters(made),
        once=begin == START_NS,
    )


def _begin(made: GeneratedRun) -> int:
    """When the part to be repeated begins: at the start, unless the broker can go on."""
    begin = START_NS + (_site(made).settled_ns or 0)
    # On a lossy network an early subscription may still have to be sent again.
    is_late = any(sent.first.transit.sent_ns < begin <= sent.transit.sent_ns for sent in made.run.sent)
    return START_NS if is_late else begin


def _site(made: GeneratedRun) -> Site:
    if len(made.script.sites) > 1:
        raise UsageError(f"{made.options.scenario} has several brokers; the run of one of them can be repeated")
    return made.script.sites[0]


def _varying(made: GeneratedRun, begin: int) -> frozenset[str]:
    """The hosts that are new in each tile: all, unless the broker goes on. Then it and those that stay or have said
    something before are the same."""
    site = _site(made)
    clients = [node for node in site.nodes if not _is_named(site, node)]
    if begin == START_NS:
        return frozenset({site.broker[0], *(node.endpoint[0] for node in clients)})
    early = {sent.transit.src[0] for sent in made.run.sent if sent.transit.sent_ns < begin}
    return frozenset(node.endpoint[0] for node in clients if not node.stays) - early


def _is_named(site: Site, node: Node) -> bool:
    """Whether filters may name the host: where addresses are the topics, those of publishers must not change."""
    return site.dialect.spec.topics.kind == "source-address" and any(
        action.node is node and action.verb is Verb.PUBLISH for action in site.actions
    )


def _counters(made: GeneratedRun) -> int:
    """How many counters the run has used: they count from 1."""
    return max((int(one) for sent in made.run.sent for one in _COUNTER.findall(sent.transit.datagram)), default=0)


def tiling_facts(tiling: Tiling) -> dict[str, int]:
    """What the truth tells of a tiled capture: frame f of tile 0 is frame f + k * body in tile k."""
    return {
        "prologue": tiling.prologue,
        "body": tiling.body,
        "tiles": tiling.tiles,
        "packets": tiling.packets,
    }
