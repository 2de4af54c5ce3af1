"""The networks that this machine is attached to. An address there cannot be made up from far away."""

from __future__ import annotations

import socket
import time
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

REFRESH_S = 60.0
ROUTES, ADDRESSES_V6 = Path("/proc/net/route"), Path("/proc/net/if_inet6")

Network = IPv4Network | IPv6Network


class Nearby:
    """Whether an address is on this machine or in a directly attached network.

    >>> Nearby()("127.0.0.5"), Nearby()("203.0.113.9")
    (True, False)
    """

    def __init__(self) -> None:
        self._networks: list[Network] = []
        self._read_at = -REFRESH_S

    def __call__(self, host: str) -> bool:
        address = ip_address(host.partition("%")[0])
        if address.version == 6 and address.ipv4_mapped:
            address = address.ipv4_mapped
        if address.is_loopback:
            return True
        if time.monotonic() - self._read_at > REFRESH_S:
            self._networks, self._read_at = attached_networks(), time.monotonic()
        return any(address in network for network in self._networks)


def attached_networks(routes: Path = ROUTES, addresses: Path = ADDRESSES_V6) -> list[Network]:
    """The networks without a gateway in between; none where the system does not tell."""
    networks: list[Network] = []
    for line in _lines(routes)[1:]:
        _, destination, gateway, _, _, _, _, mask, *_ = line.split()
        if int(gateway, 16) == 0 and int(mask, 16) != 0:
            networks.append(IPv4Network((_ipv4(destination), _ipv4(mask))))
    for line in _lines(addresses):
        address, _, prefix, *_ = line.split()
        networks.append(IPv6Network((int(address, 16), int(prefix, 16)), strict=False))
    return networks


def network(text: str) -> Network:
    """A network as a user writes it: 10.0.0.0/8, 192.0.2.7, fd00::/8."""
    return ip_network(text, strict=False)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _ipv4(word: str) -> str:
    return socket.inet_ntoa(int(word, 16).to_bytes(4, "little"))
