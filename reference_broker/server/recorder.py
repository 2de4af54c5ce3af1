"""A capture of the broker's own traffic, made where it is sent and received: no root, no tcpdump.

What the kernel would have put around each datagram is written anew: IP and UDP headers with right lengths and
checksums.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from pcap_tools.capture import CaptureError, CaptureWriter
from pcap_tools.errors import UsageError
from reference_broker.messages.sending import Endpoint

RAW_IP = 101
UDP = 17
TTL = 64
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_IPV6 = struct.Struct("!IHBB16s16s")
_UDP = struct.Struct("!HHHH")


class Recorder:
    """Writes a pcap file (pcapng where the name ends so). If the file cannot be written any more it says so once and
    records no further: the broker goes on."""

    def __init__(self, path: str, say: Callable[[str], None]) -> None:
        if path == "-":
            raise UsageError("--pcap needs a file: stdout carries the log")
        try:
            self._stream = open(path, "wb")  # noqa: SIM115 - as long as the broker runs
        except OSError as error:
            raise CaptureError(f"{path}: cannot be written: {error.strerror}") from error
        self._writer = CaptureWriter(self._stream, "pcapng" if path.endswith(".pcapng") else "pcap", RAW_IP)
        self._path, self._say = path, say
        self._last_id = 0
        self._failed = False
        self.frames = 0

    def record(self, time_ns: int, source: Endpoint, to: Endpoint, datagram: bytes) -> None:
        if self._failed:
            return
        self._last_id = self._last_id % 0xFFFF + 1
        try:
            self._writer.write(packet(source, to, datagram, self._last_id), time_ns)
            self.frames += 1
        except (CaptureError, UsageError) as error:
            self._fail(str(error))

    def flush(self) -> None:
        """Let readers of the file see all frames so far."""
        if not self._failed:
            try:
                self._stream.flush()
            except OSError as error:
                self._fail(error.strerror or "")

    def close(self) -> None:
        self.flush()
        try:
            self._stream.close()
        except OSError as error:
            self._fail(error.strerror or "")

    def _fail(self, why: str) -> None:
        if not self._failed:
            self._failed = True
            self._say(f"{self._path}: {why}; recorded {self.frames} frames, and no more from now on")


def packet(source: Endpoint, to: Endpoint, datagram: bytes, ip_id: int) -> bytes:
    """The datagram in one IP packet, however long; IPv4 or IPv6 as the addresses are."""
    src, dst = packed(source[0]), packed(to[0])
    length = 8 + len(datagram)
    head = _UDP.pack(source[1], to[1], length, 0)
    checksum = 0xFFFF - _sum(src + dst + struct.pack("!HI", UDP, length) + head + datagram)
    udp = _UDP.pack(source[1], to[1], length, checksum) + datagram
    if len(src) == 16:
        return _IPV6.pack(6 << 28, length, UDP, TTL, src, dst) + udp
    fields = (0x45, 0, 20 + length, ip_id, 0, TTL, UDP)
    header_sum = (0xFFFF - _sum(_IPV4.pack(*fields, 0, src, dst))) % 0xFFFF
    return _IPV4.pack(*fields, header_sum, src, dst) + udp


def _sum(data: bytes) -> int:
    """The ones' complement sum of 16-bit words is the number they make, modulo 0xFFFF."""
    return int.from_bytes(data if len(data) % 2 == 0 else data + b"\0", "big") % 0xFFFF


@lru_cache(maxsize=1024)
def packed(host: str) -> bytes:
    """An address as it stands in a packet; an IPv4 address that an IPv6 socket sees is IPv4."""
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.packed
    return address.packed
