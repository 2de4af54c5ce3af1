"""A conforming broker for any dialect, and clients to test brokers with. Their cores have no I/O and no clock.

>>> from pcap_tools import load_dialect
>>> from reference_broker import Broker
>>> broker = Broker(load_dialect("colon"))
>>> broker.handle(b"\\x03\\x00home/*", ("10.0.0.2", 50000), now=0)
[Send(datagram=b'\\x04', to=('10.0.0.2', 50000), ephemeral=False)]
"""

from reference_broker.broker import Broker, Limits, Mistake, broker_for
from reference_broker.client import Client, client_for
from reference_broker.messages.sending import Endpoint, Send

__all__ = ["Broker", "Client", "Endpoint", "Limits", "Mistake", "Send", "broker_for", "client_for"]
