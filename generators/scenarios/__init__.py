"""The scenarios: each a function from a ``ScenarioOptions`` (dialect, sizes, rng) to a ``Script`` (who does what when).

To add one: write the function in a file here and enter it in ``SCENARIOS`` with a sentence.
"""

from __future__ import annotations

from functools import partial

from generators.scenarios.building import building, fragmented, lossy, mixed
from generators.scenarios.churn import churn
from generators.scenarios.hostile import hostile
from generators.scenarios.reports import (
    report_colon,
    report_portdigits,
    report_rolebyte,
    report_topicbyte,
    report_topicnumber,
)
from generators.scenarios.retained import retained
from generators.scenarios.script import Scenario, ScenarioOptions, Script
from pcap_tools.dialect import builtin_names

_report = partial(Scenario, only_once="its hosts are those of the report, and each repeat needs others")

SCENARIOS: dict[str, Scenario] = {
    "building": Scenario(building, "sensors publish, dashboards with wildcard filters and actuators receive"),
    "lossy": Scenario(lossy, "the building over a network that loses, duplicates and reorders datagrams"),
    "retained": Scenario(retained, "retained messages are set and replaced; clients subscribe before and after"),
    "churn": Scenario(
        churn,
        "clients subscribe and unsubscribe all the time while others publish",
        tile={"sensors": 8, "dashboards": 12, "actuators": 12, "rounds": 30},
    ),
    "fragmented": Scenario(fragmented, "the building with datagrams in IP fragments"),
    "hostile": Scenario(hostile, "malformed datagrams, and valid ones that attack programs that display them"),
    "mixed": Scenario(
        mixed,
        "several dialects at once with background traffic, captured on any",
        by_default=tuple(builtin_names()),
        only_once="each repeat needs new hosts, and readers tell dialects that share a port apart by hosts they know",
    ),
    "report-colon": _report(
        report_colon, "run of the colon report: a retained message, a wildcard, an unsubscription", "colon"
    ),
    "report-topicbyte": _report(
        report_topicbyte, "run of the topicbyte report: a window opens and closes", "topicbyte"
    ),
    "report-portdigits": _report(
        report_portdigits, "run of the portdigits report: a laptop, a mobile, three sensors", "portdigits"
    ),
    "report-topicnumber": _report(
        report_topicnumber, "run of the topicnumber report: a topic that must be created first", "topicnumber"
    ),
    "report-rolebyte": _report(
        report_rolebyte, "run of the rolebyte report: sensor, dashboard, actuator, frame by frame", "rolebyte"
    ),
}

__all__ = ["SCENARIOS", "Scenario", "ScenarioOptions", "Script"]
