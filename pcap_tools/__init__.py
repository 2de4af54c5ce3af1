"""Everything that touches bytes: dialects, codec, scapy layers, capture files, escaping.

    >>> from pcap_tools import Codec, load_dialect
    >>> Codec(load_dialect("colon")).decode(bytes.fromhex("010174656d703a313233")).topic
    b'temp'

Names are loaded on first use, so that ``topicshark --help`` does not wait for pydantic.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "Codec": "pcap_tools.codec",
    "Message": "pcap_tools.codec.message",
    "Dialect": "pcap_tools.dialect",
    "load_dialect": "pcap_tools.dialect",
    "builtin_names": "pcap_tools.dialect",
    "TopicsharkError": "pcap_tools.errors",
    "UsageError": "pcap_tools.errors",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
