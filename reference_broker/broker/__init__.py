"""The broker without I/O: its decisions, tables and limits."""

from collections.abc import Iterable

from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError
from reference_broker.broker.core import Broker
from reference_broker.broker.limits import Limits
from reference_broker.broker.mistakes import Mistake
from reference_broker.broker.mqttsn import Gateway, MqttsnBroker

__all__ = ["Broker", "Gateway", "Limits", "Mistake", "MqttsnBroker", "broker_for"]


def broker_for(
    dialect: Dialect,
    limits: Limits | None = None,
    mistakes: Iterable[Mistake] = (),
    naks: bool = False,
    predefined: dict[int, bytes] | None = None,
    gateway: Gateway | None = None,
) -> Broker:
    """The broker that a dialect asks for. ``predefined`` topic ids and ``gateway`` are for MQTT-SN alone."""
    if dialect.spec.broker.sessions == "mqtt-sn":
        return MqttsnBroker(dialect, limits, mistakes, predefined, gateway)
    if predefined or gateway:
        raise UsageError(f"predefined topic ids and gateways are for MQTT-SN, not for {dialect.name}")
    return Broker(dialect, limits, mistakes, naks)
