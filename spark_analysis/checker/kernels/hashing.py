"""Texts as 64-bit numbers: narrow keys to sort, join and shuffle by. 0 is no text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from pcap_tools.kernels.jit import i64, inlined, kernel, u64

_PRIME: Any = np.uint64(0x9E3779B97F4A7C15)
_OTHER: Any = np.uint64(0xC2B2AE3D27D4EB4F)
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_offsets = types.Array(types.int32, 1, "C", readonly=True)
_out = types.Array(types.int64, 1, "C")


@inlined
def mixed(value: Any, more: Any) -> Any:
    """Two numbers as one."""
    h = (u64(value) ^ (u64(more) * _PRIME)) * _OTHER
    h ^= h >> u64(29)
    h *= _PRIME
    return i64(h ^ (h >> u64(32)))


@kernel(_bytes, _offsets, types.int64, types.int64, _out)
def _hash_texts(data: Any, offsets: Any, first: Any, count: Any, out: Any) -> None:
    for row in range(count):
        begin, end = i64(offsets[first + row]), i64(offsets[first + row + 1])
        h = u64(end - begin) * _PRIME
        for at in range(begin, end):
            h = (h ^ u64(data[at])) * _OTHER
            h ^= h >> u64(31)
        h *= _PRIME
        h ^= h >> u64(32)
        out[row] = i64(h) if h != u64(0) else i64(1)


def hashes(texts: pa.Array) -> NDArray[np.int64]:
    """One number a text; 0 for null. Dictionaries are hashed by their words."""
    if pa.types.is_dictionary(texts.type):
        words = np.append(hashes(texts.dictionary), 0)
        found: NDArray[np.int64] = words[texts.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]
        return found
    out = np.zeros(len(texts), np.int64)
    _, offsets, data = texts.buffers()
    if not len(texts) or offsets is None:
        return out
    starts = np.frombuffer(offsets, np.int32)
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    raw.flags.writeable = False
    starts.flags.writeable = False
    _hash_texts(raw, starts, texts.offset, len(texts), out)
    if texts.null_count:
        out[texts.is_null().to_numpy(zero_copy_only=False)] = 0
    return out


def hash_of(text: str) -> int:
    return int(hashes(pa.array([text], pa.string()))[0])


_PAIR = types.Array(types.int64, 1, "C")


@kernel(_PAIR, _PAIR, _PAIR)
def _mix_all(one: Any, other: Any, out: Any) -> None:
    for row in range(len(one)):
        out[row] = mixed(one[row], other[row])


def mix(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Two columns as one key."""
    out = np.empty(len(one), np.int64)
    _mix_all(np.require(one, np.int64, ["C", "W"]), np.require(other, np.int64, ["C", "W"]), out)
    return out
