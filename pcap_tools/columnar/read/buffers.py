"""The one buffer of a reading: a chunk of the capture in front, payloads put together from fragments behind."""

from __future__ import annotations

import numpy as np

# Kernels may read and write this far behind what they were asked to.
PADDING = 64


class Buffer:
    """`data[:room]` is for the capture; behind it payloads are appended until `clear`."""

    def __init__(self, room: int, spare: int = 1 << 16) -> None:
        self.room = room
        self.data = np.zeros(room + spare + PADDING, np.uint8)
        self.tail = room

    def view(self, have: int) -> memoryview:
        """The chunk's part behind its first `have` bytes, to be filled."""
        return self.data[have : self.room].data

    def clear(self) -> None:
        """Forget the payloads behind the chunk."""
        self.tail = self.room

    def widen(self, room: int, have: int) -> None:
        """Make the chunk's part larger, with its first `have` bytes kept and the payloads forgotten."""
        data = np.zeros(room + (len(self.data) - self.room), np.uint8)
        data[:have] = self.data[:have]
        self.data, self.room, self.tail = data, room, room

    def reserve(self, size: int) -> None:
        """Room for `size` bytes of payloads; the buffer may be another one then, with everything at its place."""
        if self.tail + size + PADDING > len(self.data):
            data = np.zeros(self.tail + 2 * size + PADDING, np.uint8)
            data[: self.tail] = self.data[: self.tail]
            self.data = data

    def append(self, payload: bytes) -> int:
        """Where the payload begins."""
        self.reserve(len(payload))
        start = self.tail
        self.tail += len(payload)
        self.data[start : self.tail] = np.frombuffer(payload, np.uint8)
        return start
