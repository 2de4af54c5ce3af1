"""Writes bulletin.pcap: a reader follows a topic, a writer posts, the broker replies and forwards."""

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from pcap_tools.layers import load_layer

board = load_layer("bulletin.toml")
broker, reader, writer = ("10.7.0.1", 7400), ("10.7.0.2", 7401), ("10.7.0.3", 7402)


def send(source: tuple[str, int], target: tuple[str, int], message: object) -> object:
    return Ether() / IP(src=source[0], dst=target[0]) / UDP(sport=source[1], dport=target[1]) / message


wrpcap(
    "bulletin.pcap",
    [
        send(reader, broker, board.FOLLOW(sequence=1, topic="campus.?.menu")),
        send(broker, reader, board.REPLY(sequence=1)),
        send(writer, broker, board.POST(sequence=5, topic="campus.hall.menu", body="soup")),
        send(broker, writer, board.REPLY(sequence=5)),
        send(broker, reader, board.POST(sequence=5, topic="campus.hall.menu", body="soup")),
        send(writer, broker, board.POST(sequence=6, topic="campus.hall.menu", body="salad").build()[:-10]),
    ],
)
