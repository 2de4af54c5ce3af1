"""Many datagrams in one system call: recvmmsg and sendmmsg of Linux, which Python's socket module does not have.

    >>> batches = Batches(bound)                                            # doctest: +SKIP
    >>> for datagram, source in batches.receive(): ...                      # doctest: +SKIP
    >>> for send, code in batches.send(sends): ...                          # doctest: +SKIP

``lost`` counts the datagrams that the system dropped because the buffer of the socket was full.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
from collections.abc import Sequence
from ipaddress import ip_address

from reference_broker.messages.sending import Endpoint, Send

COUNT = 64  # datagrams in one call
MAX_DATAGRAM = 65_535
SEND_BYTES = 2_048  # a longer datagram is sent by a call of its own
MAX_ADDRESSES = 65_536
SO_RXQ_OVFL = 40
_CONTROL_BYTES, _NAME_BYTES = 64, 28
_HEADER = struct.Struct("@PIxxxxPNPNixxxxIxxxx")  # struct mmsghdr: address, iovecs, control data, flags, length
_IOVEC, _CONTROL = struct.Struct("@PN"), struct.Struct("@NiiI")
_LENGTH = 14  # place of the received length in a header, in words of four bytes
_IPV4, _IPV6 = struct.Struct("=H2s4s"), struct.Struct("=H2sI16sI")

_libc = ctypes.CDLL(None, use_errno=True)


class _Table:
    """The memory of one call: headers, and for each datagram its data, address and control data."""

    def __init__(self, data_bytes: int, name_bytes: int, has_control: bool) -> None:
        self._data = ctypes.create_string_buffer(COUNT * data_bytes)
        self._names = ctypes.create_string_buffer(COUNT * _NAME_BYTES)
        self._iovecs = ctypes.create_string_buffer(COUNT * _IOVEC.size)
        self._control = ctypes.create_string_buffer(COUNT * _CONTROL_BYTES)
        self._headers = ctypes.create_string_buffer(COUNT * _HEADER.size)
        self.data, self.names = memoryview(self._data).cast("B"), memoryview(self._names).cast("B")
        self.lengths = memoryview(self._iovecs).cast("B").cast("Q")  # every second one
        self.received = memoryview(self._headers).cast("B").cast("I")
        self.control = memoryview(self._control)
        self.address = ctypes.addressof(self._headers)
        for place in range(COUNT):
            at = ctypes.addressof(self._data) + place * data_bytes
            _IOVEC.pack_into(self._iovecs, place * _IOVEC.size, at, data_bytes)
            name = ctypes.addressof(self._names) + place * _NAME_BYTES
            iovec = ctypes.addressof(self._iovecs) + place * _IOVEC.size
            control = ctypes.addressof(self._control) + place * _CONTROL_BYTES
            parts = (control, _CONTROL_BYTES) if has_control else (0, 0)
            _HEADER.pack_into(self._headers, place * _HEADER.size, name, name_bytes, iovec, 1, *parts, 0, 0)
        self._fresh = self._headers.raw

    def reset(self) -> None:
        """Undo what the system wrote into the headers."""
        ctypes.memmove(self.address, self._fresh, len(self._fresh))


class Batches:
    """One bound UDP socket."""

    def __init__(self, bound: socket.socket) -> None:
        self._socket, self._family = bound, bound.family
        self._fd = bound.fileno()
        self._name_bytes = _NAME_BYTES if self._family == socket.AF_INET6 else 16
        self.lost = 0
        self._sources: dict[bytes, Endpoint] = {}
        self._addresses: dict[Endpoint, bytes] = {}
        with contextlib.suppress(OSError):
            bound.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
        self._in = _Table(MAX_DATAGRAM, self._name_bytes, has_control=True)
        self._out = _Table(SEND_BYTES, self._name_bytes, has_control=False)

    def receive(self) -> list[tuple[bytes, Endpoint]]:
        """What has arrived, at most ``COUNT`` datagrams; does not wait. An error of the socket is an OSError."""
        table = self._in
        table.reset()
        number = _libc.recvmmsg(self._fd, ctypes.c_void_p(table.address), COUNT, socket.MSG_DONTWAIT, None)
        if number < 0:
            code = ctypes.get_errno()
            if code in (errno.EAGAIN, errno.EINTR):
                return []
            raise OSError(code, os.strerror(code))
        found = []
        data, names, received, name_bytes = table.data, table.names, table.received, self._name_bytes
        for place in range(number):
            at, name = place * MAX_DATAGRAM, place * _NAME_BYTES
            raw = bytes(names[name : name + name_bytes])
            source = self._sources.get(raw) or self._source(raw)
            found.append((bytes(data[at : at + received[place * 16 + _LENGTH]]), source))
        if number:
            self._note_losses(number - 1)
        return found

    def _source(self, raw: bytes) -> Endpoint:
        if len(self._sources) >= MAX_ADDRESSES:
            self._sources.clear()
        port = int.from_bytes(raw[2:4], "big")
        if self._family == socket.AF_INET6:
            host = str(ip_address(raw[8:24]))
            if scope := int.from_bytes(raw[24:28], "little"):
                host += f"%{_interface(scope)}"
        else:
            host = ".".join(map(str, raw[4:8]))
        made = self._sources[raw] = host, port
        return made

    def _note_losses(self, place: int) -> None:
        """The last datagram carries the number of all losses before it, if there were any."""
        size, level, kind, lost = _CONTROL.unpack_from(self._in.control, place * _CONTROL_BYTES)
        if size and level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL:
            self.lost = lost
            _CONTROL.pack_into(self._in.control, place * _CONTROL_BYTES, 0, 0, 0, 0)

    def send(self, sends: Sequence[Send]) -> list[tuple[Send, int]]:
        """Send; returns those that the system refused, with its error number."""
        failed: list[tuple[Send, int]] = []
        batch: list[Send] = []
        table, name_bytes = self._out, self._name_bytes
        for send in sends:
            datagram, to, _ = send
            address = self._addresses.get(to) or self._address(to)
            size = len(datagram)
            if size > SEND_BYTES or not address:
                failed += self._flush(batch)
                batch = []
                failed += self._send_alone(send)
                continue
            place = len(batch)
            at, name = place * SEND_BYTES, place * _NAME_BYTES
            table.data[at : at + size] = datagram
            table.names[name : name + name_bytes] = address
            table.lengths[2 * place + 1] = size
            batch.append(send)
            if place + 1 == COUNT:
                failed += self._flush(batch)
                batch = []
        return failed + self._flush(batch)

    def _flush(self, batch: list[Send]) -> list[tuple[Send, int]]:
        failed: list[tuple[Send, int]] = []
        done = 0
        while done < len(batch):
            start = ctypes.c_void_p(self._out.address + done * _HEADER.size)
            number = _libc.sendmmsg(self._fd, start, len(batch) - done, 0)
            if number > 0:
                done += number
            else:
                code = ctypes.get_errno()
                if code != errno.EINTR:
                    failed.append((batch[done], code))
                    done += 1
        return failed

    def _send_alone(self, send: Send) -> list[tuple[Send, int]]:
        try:
            self._socket.sendto(send.datagram, send.to)
        except OSError as error:
            return [(send, error.errno or 0)]
        return []

    def _address(self, to: Endpoint) -> bytes:
        """An address as the system wants it; empty if it is none for this socket or names an interface."""
        host, port = to
        address = b""
        if "%" not in host:
            number = ip_address(host)
            packed, wire_port = number.packed, port.to_bytes(2, "big")
            if self._family == socket.AF_INET6:
                packed = packed if number.version == 6 else b"\0" * 10 + b"\xff\xff" + packed
                address = _IPV6.pack(socket.AF_INET6, wire_port, 0, packed, 0)
            elif number.version == 4:
                address = _IPV4.pack(socket.AF_INET, wire_port, packed) + bytes(8)
        if len(self._addresses) >= MAX_ADDRESSES:
            self._addresses.clear()
        self._addresses[to] = address
        return address


def _interface(scope: int) -> str:
    try:
        return socket.if_indextoname(scope)
    except OSError:
        return str(scope)
