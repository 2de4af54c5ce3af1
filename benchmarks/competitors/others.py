"""Tools one would use instead, on captures of the dialect colon. Each gets the fastest honest use of its API.

dpkt and plain struct know nothing of the dialect: they split messages by a function of four lines, which is less than
the others do (no errors, no padding, no IP options, fragments or VLANs).
"""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

DISSECTOR = Path(__file__).parents[2] / "dissector.lua"
SCRIPT = ["-X", f"lua_script:{DISSECTOR}"]
FIELDS = ["dialect", "form", "message", "meaning", "topic", "retain", "payload", "error", "error_offset"]
NAMES = {1: "PUBLISH", 2: "PUBACK", 3: "SUBSCRIBE", 4: "SUBACK", 5: "UNSUBSCRIBE", 6: "UNSUBACK"}
Columns = tuple[str, int | None, str | None, bytes | None]


def split_colon(datagram: bytes) -> Columns:
    """Message, retain byte, topic or filter, payload."""
    if len(datagram) < 2:
        return NAMES[datagram[0]], None, None, None
    topic, _, payload = datagram[2:].partition(b":")
    return NAMES[datagram[0]], datagram[1], topic.decode(), payload


def tshark_fields(capture: Path, packets: int) -> int:
    """All defaults, and the columns that all dialects share as text."""
    wanted = [part for field in FIELDS for part in ("-e", f"pubsub.{field}")]
    return _tshark(capture, packets, "-T", "fields", *wanted)


def tshark_lines(capture: Path, packets: int) -> int:
    """All defaults: a line of summary a packet."""
    return _tshark(capture, packets)


def tshark_plain(capture: Path, packets: int) -> int:
    """Without any Lua: time, address and payload as text, for a script of one's own."""
    wanted = [part for field in ("frame.time_epoch", "ip.src", "udp.payload") for part in ("-e", field)]
    return _tshark(capture, packets, "-T", "fields", *wanted, script=())


def _tshark(capture: Path, packets: int, *options: str, script: Sequence[str] = SCRIPT) -> int:
    with tempfile.TemporaryDirectory() as home:
        clean = {**os.environ, "HOME": home, "WIRESHARK_CONFIG_DIR": home}
        command = ["tshark", "-r", str(capture), "-c", str(packets), *script, *options]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=clean)
    return packets


def by_pyshark(capture: Path, packets: int) -> int:
    """Through tshark with dissector.lua, as its packet objects."""
    import pyshark

    reading = pyshark.FileCapture(str(capture), keep_packets=False, custom_parameters=["-c", str(packets), *SCRIPT])
    found = sum(bool(packet.pubsub.message) for packet in reading)
    reading.close()
    return found


def by_scapy(capture: Path, packets: int) -> int:
    """PcapReader with the layer that topicshark makes of the dialect."""
    from scapy.utils import PcapReader

    from pcap_tools.layers import load_layer

    colon = load_layer("colon")
    with PcapReader(str(capture)) as reader:
        return sum(colon.base in packet for packet in itertools.islice(reader, packets))


def by_dpkt(capture: Path, packets: int) -> int:
    """Its objects for Ethernet, IP and UDP, the addresses as text, and the message split."""
    import socket

    import dpkt  # type: ignore[import-not-found,import-untyped,unused-ignore]

    found = 0
    with capture.open("rb") as file:
        for _, frame in itertools.islice(dpkt.pcap.Reader(file), packets):
            ip = dpkt.ethernet.Ethernet(frame).data
            row = (socket.inet_ntoa(ip.src), ip.data.sport, socket.inet_ntoa(ip.dst), ip.data.dport)
            found += bool(row and split_colon(ip.data.data))
    return found


def by_struct(capture: Path, packets: int) -> int:
    """One loop over the file's bytes: record header, addresses, ports, the message split."""
    record, udp = struct.Struct("<IIII"), struct.Struct(">4s4sHH")
    found = 0
    with capture.open("rb") as file:
        file.seek(24)
        while found < packets and (head := file.read(16)):
            seconds, nanos, captured, _ = record.unpack(head)
            frame = file.read(captured)
            if frame[12:14] == b"\x08\x00" and frame[14] == 0x45 and frame[23] == 17:
                row = (seconds * 1_000_000_000 + nanos, udp.unpack_from(frame, 26), split_colon(frame[42:]))
                found += bool(row)
    return found


OTHERS: dict[str, Callable[[Path, int], int]] = {
    "tshark-fields": tshark_fields,
    "tshark-lines": tshark_lines,
    "tshark-plain": tshark_plain,
    "pyshark": by_pyshark,
    "scapy": by_scapy,
    "dpkt": by_dpkt,
    "struct": by_struct,
}
