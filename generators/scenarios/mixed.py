"""Several dialects at once, each in a building and a network of its own, seen from ``any``, between other traffic."""

from __future__ import annotations

from dataclasses import replace

from generators.capture.options import CaptureOptions, Point
from generators.scenarios.building import populate
from generators.scenarios.script import Script, Setting
from generators.simulation.site import Site
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError

NOISE = 0.3


def mixed(setting: Setting) -> Script:
    if setting.form is not None and len(setting.dialects) > 1:
        raise UsageError("a form belongs to one dialect; leave it out where several take part")
    sites = [_site(setting, dialect, number) for number, dialect in enumerate(setting.dialects)]
    return Script(sites, capture=CaptureOptions(point=Point.ANY, noise=NOISE))


def _site(setting: Setting, dialect: Dialect, number: int) -> Site:
    site = populate(replace(setting, dialects=(dialect,)), setting.site(dialect, number))
    for node in site.nodes:
        node.name = f"{dialect.name}-{node.name}"
    return site
