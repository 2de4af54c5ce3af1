"""The broker without I/O: its decisions, tables and limits."""

from collections.abc import Iterable

from pcap_tools.dialect import Dialect
from reference_broker.broker.core import Broker
from reference_broker.broker.limits import Limits
from reference_broker.broker.mistakes import Mistake
from reference_broker.broker.mqttsn import MqttsnBroker

__all__ = ["Broker", "Limits", "Mistake", "MqttsnBroker", "broker_for"]


def broker_for(
    dialect: Dialect, limits: Limits | None = None, mistakes: Iterable[Mistake] = (), naks: bool = False
) -> Broker:
    """The broker that a dialect asks for."""
    if dialect.spec.broker.sessions == "mqtt-sn":
        return MqttsnBroker(dialect, limits, mistakes)
    return Broker(dialect, limits, mistakes, naks)
