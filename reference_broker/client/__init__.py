"""Clients without I/O, and the sockets and prompts around them."""

from typing import Any

from pcap_tools.dialect import Dialect
from reference_broker.client.core import Client
from reference_broker.client.mqttsn import MqttsnClient
from reference_broker.messages.sending import Endpoint

__all__ = ["Client", "MqttsnClient", "client_for"]


def client_for(dialect: Dialect, broker: Endpoint, form: str | None = None, **settings: Any) -> Client:
    """A client of this dialect; ``settings`` are those of ``Client``, with sessions those of ``MqttsnClient``."""
    kind = MqttsnClient if dialect.spec.broker.sessions == "mqtt-sn" else Client
    return kind(dialect, broker, form, **settings)
