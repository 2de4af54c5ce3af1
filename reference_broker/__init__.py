"""A broker that does it right, and clients to try brokers with: both without I/O at heart, driven by the dialect.

>>> from pcap_tools import load_dialect
>>> from reference_broker import Broker
>>> broker = Broker(load_dialect("colon"))
>>> broker.handle(b"\\x03\\x00home/*", ("10.0.0.2", 50000), now=0)
[Send(datagram=b'\\x04', to=('10.0.0.2', 50000), ephemeral=False)]
"""

from collections.abc import Iterable

from pcap_tools.dialect import Dialect
from reference_broker.client import Client
from reference_broker.clients import client_for
from reference_broker.core import Broker
from reference_broker.limits import Limits
from reference_broker.mistakes import Mistake
from reference_broker.mqttsn import MqttsnBroker
from reference_broker.sending import Endpoint, Send

__all__ = ["Broker", "Client", "Endpoint", "Limits", "Mistake", "Send", "broker_for", "client_for"]


def broker_for(
    dialect: Dialect, limits: Limits | None = None, mistakes: Iterable[Mistake] = (), naks: bool = False
) -> Broker:
    """The broker that a dialect asks for."""
    if dialect.spec.broker.sessions == "mqtt-sn":
        return MqttsnBroker(dialect, limits, mistakes)
    return Broker(dialect, limits, mistakes, naks)
