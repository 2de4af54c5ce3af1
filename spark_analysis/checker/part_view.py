"""All that is known of one part of a session when its rules are judged."""

from __future__ import annotations

from dataclasses import dataclass

from .context import Context
from .deliveries import Deliveries
from .events import Events
from .exchanges import Exchanges
from .findings import Findings
from .signs import Signs


@dataclass
class PartView:
    """``asked``: clients ask and the broker acknowledges; ``told``: the other way round."""

    events: Events
    context: Context
    deliveries: Deliveries
    asked: Exchanges
    told: Exchanges
    signs: Signs
    findings: Findings
    starts_late: bool = False
