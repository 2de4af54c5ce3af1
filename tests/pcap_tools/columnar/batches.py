"""Batches of datagrams without a capture, and datagrams by the thousand to fill them with."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

from pcap_tools.capture import Datagram
from pcap_tools.columnar.read.datagrams import NO_IDENT, DatagramBatch
from pcap_tools.dialect import Dialect
from tests.dissector.datagrams import generated
from tests.vectors import load_vectors

GUARD = 0xEE  # around the datagrams: what a decoder must not take for theirs
ADDRESSES = ["10.0.0.1", "10.0.0.2", "2001:db8::7"]
_NEAR = (0, 1, 0x0A, 0x20, 0x30, 0x39, 0x3A, 0x5C, 0x7F, 0x80, 0xBF, 0xC2, 0xE2, 0xED, 0xF0, 0xFF)


def batch_of(
    payloads: Sequence[bytes], missing: Sequence[int] = (), ports: Sequence[tuple[int, int]] = ()
) -> DatagramBatch:
    """Datagrams one behind the other. ``missing``: how many bytes the capture cut off; ``ports`` of each."""
    count = len(payloads)
    buffer = np.frombuffer(bytearray([GUARD] + list(b"".join(payloads)) + [GUARD] * 64), np.uint8)
    sizes = np.array([len(payload) for payload in payloads], np.int32)
    starts = (np.cumsum(sizes, dtype=np.int64) - sizes + 1).astype(np.int64)
    places = np.arange(count, dtype=np.int32)
    sports, dports = (np.array([pair[side] for pair in ports or [(50000, 50001)] * count], np.int32) for side in (0, 1))
    return DatagramBatch(
        buffer=buffer,
        count=count,
        frame=np.arange(1, count + 1, dtype=np.int64),
        time_ns=np.arange(count, dtype=np.int64) * 1000 + 1_700_000_000_000_000_000,
        start=starts,
        size=sizes,
        length=sizes + np.array(missing or [0] * count, np.int32),
        src=places % np.int32(3),
        dst=(places + np.int32(1)) % np.int32(3),
        sport=sports,
        dport=dports,
        copy_of=np.where(places % 5 == 4, places, 0).astype(np.int64),
        ip_id=np.where(places % 3 == 2, NO_IDENT, places * 7 % 65536).astype(np.int32),
        addresses=list(ADDRESSES),
    )


def datagrams_of(batch: DatagramBatch) -> Iterator[Datagram]:
    """The same as the pure-Python reader would give them."""
    for row in range(batch.count):
        start, frame = int(batch.start[row]), int(batch.frame[row])
        yield Datagram(
            frame=frame,
            time_ns=int(batch.time_ns[row]),
            src=batch.addresses[batch.src[row]],
            sport=int(batch.sport[row]),
            dst=batch.addresses[batch.dst[row]],
            dport=int(batch.dport[row]),
            payload=batch.buffer[start : start + int(batch.size[row])].tobytes(),
            length=int(batch.length[row]),
            frames=(frame,),
            ip_id=None if batch.ip_id[row] == NO_IDENT else int(batch.ip_id[row]),
            packet_type=None,
            interface=0,
            copy_of=int(batch.copy_of[row]) or None,
        )


def datagrams_for(dialect: Dialect, count: int, seed: int) -> Iterator[bytes]:
    """Valid and damaged messages of every layout, and mutants of the dialect's vectors."""
    rng = random.Random(f"{dialect.name} {seed} mutants")
    seeds = [vector.datagram for vector in load_vectors() if vector.dialect == dialect.name]
    yield from generated(dialect, count // 2, seed)
    for _ in range(count - count // 2):
        yield _mutant(rng, seeds)


def _mutant(rng: random.Random, seeds: list[bytes]) -> bytes:
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randrange(4)):
        first, second = sorted(rng.randrange(min(len(data), 80) + 1) for _ in range(2))
        how = rng.randrange(7)
        if how == 0 and first < len(data):
            data[first] = rng.choice((*_NEAR, data[first] ^ 1 << rng.randrange(8)))
        elif how == 1:
            data[first:first] = bytes(rng.choices(_NEAR, k=rng.randrange(1, 5)))
        elif how == 2:
            del data[first:second]
        elif how == 3:
            del data[second:]
        elif how == 4:
            data += bytes(rng.choice((1, 2, 7, 8, 31, 32, 33, 64, 300)))
        elif how == 5:
            data[second:second] = data[first:second] * rng.randrange(1, 4)
        else:
            data[first:] = rng.choice(seeds)[first:]
    return bytes(data)
