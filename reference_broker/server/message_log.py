"""One line a message, safe for a terminal and never a reason to wait: what nobody reads is dropped and counted."""

from __future__ import annotations

import os
import select
from collections import Counter
from datetime import UTC, datetime

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.escaping import escape, shorten
from reference_broker.messages.sending import Endpoint, Send

MAX_PENDING = 1 << 20
PIPE_CHUNK = 4096  # a pipe that is ready takes so much without blocking
MAX_WIDTH = 100


class MessageLog:
    """Lines such as ``12:00:01.250000 127.0.0.1:50000 PUBLISH home/fan "ON" retained -> 2``, with the number of
    datagrams sent in answer at the end."""

    def __init__(self, fd: int, dialect: Dialect, counters: Counter[str]) -> None:
        self._fd, self._counters = fd, counters
        self._codec = Codec(dialect)
        self._pending = bytearray()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._closed = False

    def note(self, time_ns: int, datagram: bytes, source: Endpoint, sends: list[Send]) -> None:
        """Take note of a datagram that was handled."""
        seconds, rest = divmod(time_ns, 1_000_000_000)
        clock = datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")
        what = _in_words(self._codec.decode(datagram))
        host = f"[{source[0]}]" if ":" in source[0] else source[0]
        line = f"{clock}.{rest // 1000:06} {host}:{source[1]} {what} -> {len(sends)}\n".encode()
        if self._closed or len(self._pending) + len(line) > MAX_PENDING:
            self._counters["log lines dropped"] += 1
        else:
            self._pending += line

    def flush(self) -> None:
        """Write what the reader takes at once."""
        while self._pending and not self._closed and self._poll.poll(0):
            try:
                written = os.write(self._fd, self._pending[:PIPE_CHUNK])
            except OSError:  # the reader has gone; that is no reason to stop
                self._closed = True
                return
            del self._pending[:written]


def _in_words(message: Message) -> str:
    words = [message.message or "?"]
    about = message.topic if message.topic is not None else message.filter
    if about is not None:
        words.append(shorten(escape(about), MAX_WIDTH))
    if message.payload is not None:
        words.append(f'"{shorten(escape(message.payload), MAX_WIDTH)}"')
    if message.retain:
        words.append("retained")
    if message.error is not None:
        words.append(f"malformed: {message.error} at byte {message.error_offset}")
    return " ".join(words)
