"""What the checker knows of a session as a whole while it looks at one part of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .brokers import Brokers
from .control import Bindings, Subscriptions
from .policy import Policy

Integers = NDArray[np.int64]
RETAINED = pa.schema(
    [(name, pa.int64()) for name in ("name", "topic", "payload", "time", "frame", "capture", "broker")]
    + [("text", pa.string())]
)


class Point(StrEnum):
    """Where the capture was taken, as far as it shows."""

    BROKER = "broker"  # what is seen has arrived at the broker, and all that the broker sent is seen
    BRIDGE = "bridge"  # between all of them: what is seen was sent, but may be lost behind
    CLIENT = "client"  # at one client: what goes to the broker may be lost, others are not seen


@dataclass(frozen=True)
class Context:
    """``begin`` and ``end`` are the first and the last time of the session, ``own`` the part that is to be told of."""

    policy: Policy
    brokers: Brokers
    point: Point
    begin: int
    end: int
    own: tuple[int, int]
    subscriptions: Subscriptions
    bindings: Bindings
    connected: dict[int, tuple[Integers, NDArray[np.bool_]]] = field(default_factory=dict)
    retained: pa.Table = field(default_factory=RETAINED.empty_table)

    def of_part(self, own: tuple[int, int], retained: pa.Table) -> Context:
        """The same for one part, with the messages that were retained before it."""
        return replace(self, own=own, retained=retained)
