"""The scenarios: each a function from a ``Setting`` (dialect, sizes, chance) to a ``Script`` (who does what when).

To add one: write the function in a file here and enter it in ``SCENARIOS`` with a sentence.
"""

from __future__ import annotations

from generators.scenarios.building import building, lossy
from generators.scenarios.churn import churn
from generators.scenarios.fragmented import fragmented
from generators.scenarios.hostile import hostile
from generators.scenarios.mixed import mixed
from generators.scenarios.reports import (
    report_colon,
    report_portdigits,
    report_rolebyte,
    report_topicbyte,
    report_topicnumber,
)
from generators.scenarios.retained import retained
from generators.scenarios.script import Scenario, Script, Setting
from pcap_tools.dialect import builtin_names

SCENARIOS: dict[str, Scenario] = {
    "building": Scenario(building, "sensors publish, dashboards with wildcard filters and actuators receive"),
    "lossy": Scenario(lossy, "the same building over a network that loses, doubles and reorders"),
    "retained": Scenario(retained, "values are retained and replaced; some subscribe before, some after"),
    "churn": Scenario(churn, "subscribers come and go all the time while publishers publish"),
    "fragmented": Scenario(fragmented, "the building with datagrams that travel in IP fragments"),
    "hostile": Scenario(hostile, "malformed datagrams, and valid ones meant to break whoever shows them"),
    "mixed": Scenario(
        mixed, "several dialects at once between other traffic, seen from any", by_default=tuple(builtin_names())
    ),
    "report-colon": Scenario(report_colon, "report 000: a retained message, a wildcard, an unsubscription", "colon"),
    "report-topicbyte": Scenario(report_topicbyte, "report 001: a window opens and closes", "topicbyte"),
    "report-portdigits": Scenario(report_portdigits, "report 002: a laptop, a mobile, three sensors", "portdigits"),
    "report-topicnumber": Scenario(report_topicnumber, "report 003: a topic that must be created", "topicnumber"),
    "report-rolebyte": Scenario(report_rolebyte, "report 004: sensor, dashboard, actuator, frame by frame", "rolebyte"),
}

__all__ = ["SCENARIOS", "Scenario", "Script", "Setting"]
