"""Captures of publishes and their ACKs, in which one of ten clients has as large a share as is wanted.

>>> write_publishers(Path("hot.pcap"), 2_000_000, 0.9)      # doctest: +SKIP

Nobody subscribes, so that all packets are some publisher's and its share of them is that of the publishes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pcap_tools.capture import CaptureWriter
from tests.capture.packets import T0, ethernet, ipv4, udp

CLIENTS = 10
BROKER, PORT = "10.0.0.1", 50000
FILE_HEADER = 24
IP_ID, SOURCE, TARGET = 16 + 14 + 4, 16 + 14 + 12, 16 + 14 + 16  # behind the record's header and that of Ethernet
TOPIC, DIGITS = b"\x01\x00t:", 8
PAYLOAD = 16 + 14 + 20 + 8 + len(TOPIC)
GAP_NS, ANSWER_NS = 50_000, 20_000
AT_ONCE = 200_000


def write_publishers(path: Path, packets: int, share: float) -> Path:
    """``share`` of the publishes are the first client's, the others' are even."""
    publish, ack = _records(path)
    with path.open("r+b") as file:
        file.seek(FILE_HEADER)
        for begin in range(0, packets // 2, AT_ONCE):
            numbers = np.arange(begin, min(begin + AT_ONCE, packets // 2))
            file.write(_pairs(publish, ack, numbers, _clients(numbers, share)).tobytes())
        file.truncate()
    return path


def _records(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """One of each as a record of pcap; the file is then as it has to begin."""
    client = "10.0.1.0"
    requests = TOPIC + b"0" * DIGITS
    frames = [
        ethernet(ipv4(udp(requests, PORT, PORT), src=client, dst=BROKER)),
        ethernet(ipv4(udp(b"\x02", PORT, PORT), src=BROKER, dst=client)),
    ]
    with CaptureWriter(path, link_type=1) as out:
        for frame in frames:
            out.write(frame, T0)
    data = np.frombuffer(path.read_bytes(), np.uint8)
    border = FILE_HEADER + 16 + len(frames[0])
    return data[FILE_HEADER:border].copy(), data[border:].copy()


def _clients(numbers: np.ndarray, share: float) -> np.ndarray:
    chance = np.random.default_rng(int(numbers[0])).random(len(numbers))
    return np.where(chance < share, 0, 1 + numbers % (CLIENTS - 1))


def _pairs(publish: np.ndarray, ack: np.ndarray, numbers: np.ndarray, clients: np.ndarray) -> np.ndarray:
    rows = np.tile(np.concatenate([publish, ack]), (len(numbers), 1))
    sent, answered = rows[:, : len(publish)], rows[:, len(publish) :]
    sent[:, SOURCE + 3] = answered[:, TARGET + 3] = clients
    for place in range(DIGITS):
        sent[:, PAYLOAD + DIGITS - 1 - place] = 48 + numbers // 10**place % 10
    for record, delay in ((sent, 0), (answered, ANSWER_NS)):
        record[:, IP_ID], record[:, IP_ID + 1] = numbers >> 8 & 255, numbers & 255
        time = T0 + numbers * GAP_NS + delay
        record[:, :4] = (time // 10**9).astype("<u4").view(np.uint8).reshape(-1, 4)
        record[:, 4:8] = (time % 10**9).astype("<u4").view(np.uint8).reshape(-1, 4)
    return rows
