"""A broker that does it right, and clients to try brokers with: both without I/O at heart, driven by the dialect.

>>> from pcap_tools import load_dialect
>>> from reference_broker import Broker
>>> broker = Broker(load_dialect("colon"))
>>> broker.handle(b"\\x03\\x00home/*", ("10.0.0.2", 50000), now=0)
[Send(datagram=b'\\x04', to=('10.0.0.2', 50000), ephemeral=False)]
"""

from reference_broker.core import Broker
from reference_broker.limits import Limits
from reference_broker.sending import Endpoint, Send

__all__ = ["Broker", "Endpoint", "Limits", "Send"]
