"""A batch of UDP datagrams as arrays: what the capture half of the columnar reader hands to the decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pcap_tools.kernels.jit import type_of

NO_IDENT = -1


class Rows(NamedTuple):
    """The columns of a batch as kernels take them."""

    frame: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int32]
    length: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    sport: NDArray[np.int32]
    dport: NDArray[np.int32]
    copy_of: NDArray[np.int64]
    ip_id: NDArray[np.int32]


_KINDS = (np.int64,) * 3 + (np.int32,) * 6 + (np.int64, np.int32)
ROWS = type_of(Rows._make(np.zeros(1, kind) for kind in _KINDS))


@dataclass(slots=True)
class DatagramBatch:
    """Datagrams in the order of `read_datagrams`; the first `count` rows of each array are valid.

    The buffer is used again: its bytes are gone when the next batch is asked for. The arrays are the batch's own, and
    may be kept by who does not write to them.

    buffer     bytes of the capture, and payloads put together from fragments; 64 more may be read behind each payload
    start      where the payload begins in `buffer`
    size       how many bytes of it were captured
    length     how many there are as UDP says
    src, dst   places in `addresses`, which only grows over the batches of one reading
    copy_of    the frame that this one repeats, or 0
    ip_id      identification of the IPv4 header, NO_IDENT for IPv6
    """

    buffer: NDArray[np.uint8]
    count: int
    frame: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int32]
    length: NDArray[np.int32]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    sport: NDArray[np.int32]
    dport: NDArray[np.int32]
    copy_of: NDArray[np.int64]
    ip_id: NDArray[np.int32]
    addresses: list[str]

    @property
    def rows(self) -> Rows:
        return Rows(
            self.frame, self.time_ns, self.start, self.size, self.length, self.src, self.dst, self.sport, self.dport,
            self.copy_of, self.ip_id,
        )  # fmt: skip


def empty_batch(rows: int, addresses: list[str], copy_of: NDArray[np.int64]) -> DatagramBatch:
    """Arrays for `rows` datagrams, and no buffer yet."""
    frame, time_ns, start = (_column(rows, np.int64, n) for n in range(3))
    size, length, src, dst, sport, dport, ip_id = (_column(rows, np.int32, n) for n in range(4, 11))
    buffer = np.empty(0, np.uint8)
    return DatagramBatch(
        buffer, 0, frame, time_ns, start, size, length, src, dst, sport, dport, copy_of, ip_id, addresses
    )  # fmt: skip


def _column(rows: int, kind: type, number: int) -> NDArray[Any]:
    """Large arrays begin on a page each; without a shift all columns would fight for the same lines of the cache."""
    shift = 64 * number
    return np.empty(rows + shift, kind)[shift:]
