"""Compile all kernels and keep them: ``python -m pcap_tools.columnar.warm``, once after installing.

Later processes load them in a fraction of a second.
"""

from __future__ import annotations

from importlib import import_module, util

import numpy as np

from pcap_tools.dialect import load_dialect

from .datagrams import DatagramBatch
from .decoder import Decoder


def warm() -> None:
    """Compile everything by decoding one datagram, and the kernels that read captures."""
    payload = b"\x01\x00a:b"
    buffer = np.frombuffer(bytearray(payload + bytes(64)), np.uint8)
    wide, narrow, size = np.zeros(1, np.int64), np.zeros(1, np.int32), np.full(1, len(payload), np.int32)
    batch = DatagramBatch(buffer, 1, wide, wide, wide, size, size, narrow, narrow, narrow, narrow, wide, ["127.0.0.1"])
    Decoder([load_dialect("colon")]).decode(batch)
    if util.find_spec(f"{__package__}.reading"):
        import_module(f"{__package__}.reading").warm_frames()


if __name__ == "__main__":
    warm()
