"""The client that a dialect asks for."""

from typing import Any

from pcap_tools.dialect import Dialect
from reference_broker.client import Client
from reference_broker.mqttsn_client import MqttsnClient
from reference_broker.sending import Endpoint


def client_for(dialect: Dialect, broker: Endpoint, form: str | None = None, **settings: Any) -> Client:
    """A client of this dialect; ``settings`` are those of ``Client``, with sessions those of ``MqttsnClient``."""
    kind = MqttsnClient if dialect.spec.broker.sessions == "mqtt-sn" else Client
    return kind(dialect, broker, form, **settings)
