"""The building with datagrams longer than the network's packets: what is published travels in fragments."""

from __future__ import annotations

from generators.capture.options import MIN_MTU, MIN_MTU_IPV6, CaptureOptions
from generators.scenarios.building import populate, vocabulary
from generators.scenarios.rooms import LONG_ROOM_BYTES
from generators.scenarios.script import Script, Setting, has_loop
from generators.simulation.site import Site
from pcap_tools.errors import UsageError

USUAL_MTU = 1500
SIZES = (4000, 2000, 1300, 1000, 500, 250, 200, 120, 80, 50, 20, 0)
IP_AND_UDP = {False: 28, True: 48}  # without and with IPv6


def fragmented(setting: Setting) -> Script:
    site = setting.site()
    payload_bytes, datagram_bytes = _most(site)
    mtu = _mtu(site, datagram_bytes + IP_AND_UDP[setting.ipv6], setting.ipv6)
    return Script([populate(setting, site, payload_bytes)], capture=CaptureOptions(mtu=mtu))


def _most(site: Site) -> tuple[int, int]:
    """How long the payloads can be, and how long the datagrams then are at least."""
    if has_loop(site.dialect):
        return 1, LONG_ROOM_BYTES  # readings are numbers there, so it is the topics that are long
    words = vocabulary(site)
    topic = words.topics(1)[0]
    for size in SIZES:
        payload = words.payload(20, topic, size)
        if words.can_publish(topic, payload):
            return size, words.datagram_bytes(topic, payload)
    return 0, 0


def _mtu(site: Site, packet_bytes: int, ipv6: bool) -> int:
    """The usual one; where packets are shorter than that, one that makes two of each."""
    if packet_bytes > USUAL_MTU:
        return USUAL_MTU
    least = MIN_MTU_IPV6 if ipv6 else MIN_MTU
    mtu = max(least, packet_bytes * 2 // 3)
    if mtu >= packet_bytes:
        way_out = "leave IPv6 out, whose packets may be smaller" if ipv6 else "use `building`"
        raise UsageError(
            f"a packet of {site.dialect.name} has {packet_bytes} bytes here, and every link takes {least}, so that it "
            f"never travels in fragments; {way_out}"
        )
    return mtu
