"""A capture in pyshark with the dissector loaded, also where an event loop runs already, as in Jupyter."""

from __future__ import annotations

import asyncio
import os
import queue
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from pcap_tools.dialect import builtin_names, load_dialect
from pcap_tools.dissector import write_dissector
from pcap_tools.errors import TopicsharkError

_AHEAD = 64  # packets that wait to be taken
_POLL_S = 0.1
_END = object()


def open_pyshark(
    capture: str | os.PathLike[str],
    *,
    dialects: Sequence[str | os.PathLike[str]] = (),
    display_filter: str = "pubsub",
    **options: Any,
) -> PysharkPackets:
    """Open a capture in `pyshark <https://github.com/KimiNewt/pyshark>`_ with the dissector loaded.

    >>> with open_pyshark("building.pcap") as packets:                           # doctest: +SKIP
    ...     for packet in packets:
    ...         print(packet.number, packet.pubsub.message, packet.pubsub.get("topic"))

    dialects         names or TOML files besides the built-in ones
    display_filter   only packets that match this Wireshark filter
    options          passed on to ``pyshark.FileCapture``

    pyshark runs an event loop, and Jupyter runs one already: two in one thread raise ``RuntimeError: This event loop is
    already running``. So pyshark gets a thread, and packets come through a queue of bounded length.
    """
    if shutil.which("tshark") is None and "tshark_path" not in options:
        raise TopicsharkError("pyshark needs tshark, which is not installed; see topicshark doctor")
    if not Path(capture).is_file():
        raise TopicsharkError(f"{os.fspath(capture)}: no such file")
    return PysharkPackets(os.fspath(capture), dialects, display_filter, options)


class PysharkPackets:
    """Iterates over the packets once. Leaving the `with` block ends tshark; so does reading to the end."""

    def __init__(
        self, capture: str, dialects: Sequence[str | os.PathLike[str]], display_filter: str, options: dict[str, Any]
    ) -> None:
        self._capture, self._filter, self._options = capture, display_filter, options
        self._dialects = [
            load_dialect(name) for name in dict.fromkeys((*builtin_names(), *(os.fspath(one) for one in dialects)))
        ]
        self._queue: queue.Queue[Any] = queue.Queue(_AHEAD)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()
        while not self._closed.is_set():
            packet = self._queue.get()
            if packet is _END:
                self.close()
            elif isinstance(packet, Exception):
                self.close()
                raise TopicsharkError(f"{self._capture}: tshark failed: {packet}") from packet
            else:
                yield packet

    def close(self) -> None:
        """End tshark."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _read(self) -> None:
        """In its own thread with its own event loop."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        with TemporaryDirectory(prefix="topicshark-") as folder:
            dissector = Path(folder) / "dissector.lua"
            write_dissector(self._dialects, dissector)
            script = ["-X", f"lua_script:{dissector}", *self._options.pop("custom_parameters", ())]
            try:
                reading = _file_capture()(
                    self._capture,
                    display_filter=self._filter,
                    keep_packets=False,
                    custom_parameters=script,
                    eventloop=loop,
                    **self._options,
                )
                self._pass_on(reading)
            except Exception as error:
                self._put(error)
            finally:
                loop.close()
        self._put(_END)

    def _pass_on(self, reading: Any) -> None:
        packets = iter(reading)
        try:
            for packet in packets:
                if not self._put(packet):
                    break
        finally:
            packets.close()
            reading.close()

    def _put(self, packet: Any) -> bool:
        """Wait for room in the queue; False: closed."""
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._queue.put(packet, timeout=_POLL_S)
                return True
        return False


def _file_capture() -> Any:
    """pyshark's FileCapture, but it waits for a tshark that has written everything. pyshark kills it, which races with
    its exit: then asyncio logs a warning, and a tshark that failed may pass for one that succeeded."""
    import pyshark
    from pyshark.capture.capture import TSharkCrashException

    class FileCapture(pyshark.FileCapture):  # type: ignore[misc]
        async def _cleanup_subprocess(self, process: Any) -> None:
            self._running_processes.discard(process)
            if not self._eof_reached and process.returncode is None:
                process.kill()
            await process.stdout.read()  # `wait` returns only once the pipe is empty
            code = await process.wait()
            if self._eof_reached and code:
                raise TSharkCrashException(self._last_error_line or f"exit code {code}")

    return FileCapture
