"""Scapy layers for every dialect, made from its TOML file.

    >>> from scapy.layers.inet import IP, UDP
    >>> from pcap_tools.layers import load_layer
    >>> colon = load_layer("colon")                     # or load_layer("my.toml")
    >>> packet = IP(dst="10.0.0.2") / UDP() / colon.PUBLISH(topic="home/fan", payload="ON", retain="yes")
    >>> packet[colon.PUBLISH].summary()
    'colon PUBLISH home/fan "ON" retained'

``load_layer`` binds the dialect's UDP ports, so that ``rdpcap``, ``sniff`` and ``sr1`` know its messages. A
dialect loaded later wins a port that both use (50000 is colon's and topicbyte's); ``unload_layer`` gives
the ports back.

**Classes.** ``colon.PUBLISH`` and so on, one for each message; ``colon.Unknown`` for a datagram of no known
message; ``colon.base`` (also ``colon.Colon``) is what they have in common, and ``packet[colon.base]`` finds
any of them. Bytes given to any of these classes make a packet of the class that the codec finds in them.

**Fields** have the dialect's names, except where scapy has taken the name: ``payload`` is ``body``, and
others get an underscore (``time_``, ``copy_``). ``colon.PUBLISH.dialect_name`` maps scapy's name to the
dialect's; constructors take both. A field left None (types, constants, lengths) is worked out; a value that
was set is sent as it is, however wrong, and ``RawVal(b"..")`` puts any bytes in the place of a field. A
field that a datagram does not have is None.

**More than fields.** ``form`` is the form on the wire (constructor: ``form="java"``; else the first that
can hold the values). ``padding`` counts the NULs after the message (constructor: ``padding=0``; else up to
the dialect's ``pad_to``); those that were read are a ``NulPadding`` layer. ``error`` and ``error_offset``
say what is wrong with the datagram as it stands. ``reading()`` is the codec's whole ``Message``. Bytes that
no field took are a ``Raw`` layer.
"""

from pcap_tools.layers.classes import DialectLayers, load_layer, unload_layer
from pcap_tools.layers.packet import DialectPacket, NulPadding

__all__ = ["DialectLayers", "DialectPacket", "NulPadding", "load_layer", "unload_layer"]
