"""A lab of real nodes: every node a process of its own at its own address, and all their traffic recorded.

``scenarios.py`` says who plays and what happens, ``network.py`` where they live, ``runner.py`` runs them.
"""

from reference_broker.lab.network import Mode, open_network
from reference_broker.lab.runner import LabError, run
from reference_broker.lab.scenarios import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "LabError", "Mode", "Scenario", "open_network", "run"]
