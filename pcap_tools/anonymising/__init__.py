"""A capture without names: addresses, topics and payloads are replaced, all else stays as it was.

    >>> anonymise("field.pcap", "public.pcapng", Key(bytes(32))).frames                    # doctest: +SKIP
    18211

The same key gives the same replacement, in every file. What is replaced has the length that it had, and what the rules
of a dialect look at is kept: ports, times, numbers, separators and wildcards, errors at their places.

addresses  begin alike if they began alike; private, loopback, link-local and multicast ones stay of that kind
topics     level by level: letters become letters, digits digits, other characters stay; what begins alike begins alike
payloads   likewise; numbers stay where the dialect judges readings. Words that the dialect itself says stay
the rest   bytes of no dialect become 0xFF; frames without UDP keep their headers, with zeros behind
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path

from pcap_tools.capture import CaptureWriter, Frame, Interface, read_frames
from pcap_tools.capture.damage import Damage
from pcap_tools.capture.ip import UDP, Packet, read_packet
from pcap_tools.capture.link import PARSERS
from pcap_tools.capture.writer import new_file
from pcap_tools.codec import Codec
from pcap_tools.codec.answer_key import COPY, copy_of_request, request_key_of
from pcap_tools.codec.decoding import Notes, Row, decode_capture
from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.program import Charset, Extent, Kind, Step
from pcap_tools.errors import TopicsharkError, UsageError

KEY_BYTES = 32
_LEAST_KEY = 16
_CACHED = 1 << 16
_ETHERNET, _COOKED1, _COOKED2 = 1, 113, 276
_UDP_HEADER = 8
_MOST_NESTED = 4
_PRIVATE = ((b"\x0a", 8), (b"\xac\x10", 12), (b"\xc0\xa8", 16), (b"\xa9\xfe", 16))
_OCTETS = [octet for octet in range(1, 224) if octet not in (10, 100, 127, 169, 172, 192, 198, 203)]
_DIGITS, _LETTERS = 10, 26


class Key:
    """The secret that all replacements hang on."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) < _LEAST_KEY:
            raise UsageError(f"a key has at least {_LEAST_KEY} bytes, not {len(secret)}")
        self._secret = blake2b(secret, digest_size=64).digest()

    def number(self, *about: bytes) -> int:
        """The same for the same words, and not to be guessed without the key."""
        text = b"".join(struct.pack(">I", len(one)) + one for one in about)
        return int.from_bytes(blake2b(text, key=self._secret, digest_size=8).digest(), "big")


def read_key(path: Path) -> Key:
    """The key in a file; if there is no file, a new key is written there, for its owner only."""
    try:
        return Key(path.read_bytes())
    except FileNotFoundError:
        secret = os.urandom(KEY_BYTES)
    except OSError as error:
        raise TopicsharkError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
    except OSError as error:
        raise TopicsharkError(f"{path}: cannot be written: {error.strerror}") from error
    return Key(secret)


# --- Addresses ------------------------------------------------------------------------------------------------------


class Addresses:
    """Packed addresses to others of the same kind, each to one of its own."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self.ip = lru_cache(_CACHED)(self._ip)
        self.mac = lru_cache(_CACHED)(self._mac)

    def _ip(self, packed: bytes) -> bytes:
        address = ip_address(packed)
        if address.is_multicast or address.is_loopback or address.is_unspecified or packed == b"\xff" * 4:
            return packed
        if len(packed) == 4:
            kept = next((bits for start, bits in _PRIVATE if _begins(packed, start, bits)), 0)
            return self._bits(packed, kept) if kept else self._public(packed)
        kept = 3 if packed[0] >> 5 == 1 else 8 if packed[0] in (0xFC, 0xFD) else 16
        return self._bits(packed, kept)

    def _public(self, packed: bytes) -> bytes:
        """The first octet to one that is public, too. Where a network of 8 bits has special parts, 16 bits stay."""
        if packed[0] not in _OCTETS:
            return self._bits(packed, 16)
        order = sorted(_OCTETS, key=lambda octet: self._key.number(b"octet", bytes([octet])))
        return bytes([order[_OCTETS.index(packed[0])]]) + self._bits(packed, 8)[1:]

    def _bits(self, packed: bytes, kept: int) -> bytes:
        """Each bit behind those kept is turned or not, as the bits before it say."""
        length = 8 * len(packed)
        value, flips = int.from_bytes(packed, "big"), 0
        for at in range(kept, length):
            before = value >> (length - at)
            flips = flips << 1 | self._key.number(b"address", bytes([length, at]), before.to_bytes(16, "big")) & 1
        return (value ^ flips).to_bytes(len(packed), "big")

    def _mac(self, address: bytes) -> bytes:
        """Of a group it stays; else one that is administered locally."""
        if not address or address[0] & 1 or not any(address):
            return address
        made = self._key.number(b"mac", address).to_bytes(8, "big")[: len(address)]
        return bytes([made[0] & 0xFC | 2]) + made[1:]


def _begins(packed: bytes, start: bytes, bits: int) -> bool:
    shift = 32 - bits
    return int.from_bytes(packed, "big") >> shift == int.from_bytes(start.ljust(4, b"\0"), "big") >> shift


# --- Texts ----------------------------------------------------------------------------------------------------------


class Texts:
    """Topics and payloads of one dialect."""

    def __init__(self, key: Key, dialect: Dialect) -> None:
        self._key, spec = key, dialect.spec
        if spec.topics.kind == "source-address":
            raise TopicsharkError(f"topics of {dialect.name} are addresses, whose texts have lengths of their own")
        self._separator = (spec.topics.separator or "").encode()
        self._wildcards = {wildcard.encode() for wildcard in spec.topics.wildcards}
        loop, prefixes = spec.application.loop, spec.application.prefixes
        self._suffix = loop.suffix.encode() if loop else b""
        self._own_topics = {topic.encode() for topic in prefixes}
        self._own_payloads = {one.reply.encode() for one in loop.replies} if loop else set()
        if loop:
            self._own_payloads.add(loop.completion.encode())
        self._prefixes = sorted((text.encode() for text in prefixes.values() if text), key=len, reverse=True)
        self._keeps_numbers = loop is not None or bool(prefixes)
        self.topic = lru_cache(_CACHED)(self._topic)
        self.payload = lru_cache(_CACHED)(self._payload)

    def _topic(self, text: bytes, charset: Charset) -> bytes:
        return text if text in self._own_topics else self._levels(text, charset, False)

    def _payload(self, text: bytes, charset: Charset) -> bytes:
        if text.rstrip(b"\0") in self._own_payloads:
            return text
        kept = next((prefix for prefix in self._prefixes if text.startswith(prefix)), b"")
        return kept + self._levels(text[len(kept) :], charset, self._keeps_numbers)

    def _levels(self, text: bytes, charset: Charset, keeps_digits: bool) -> bytes:
        """Payloads by levels, too: an acknowledgement may repeat a topic."""
        levels = text.split(self._separator) if self._separator else [text]
        return self._separator.join(self._level(level, charset, keeps_digits) for level in levels)

    def _level(self, level: bytes, charset: Charset, keeps_digits: bool) -> bytes:
        if level in self._wildcards:
            return level
        suffix = self._suffix if self._suffix and level.endswith(self._suffix) else b""
        return self._replaced(level[: len(level) - len(suffix)], charset, keeps_digits) + suffix

    def _replaced(self, text: bytes, charset: Charset, keeps_digits: bool) -> bytes:
        """Each byte by one of its kind, which those before it decide; upper case is the same as lower case there."""
        made, seen = bytearray(), bytearray()
        left = 0  # bytes that a character of UTF-8 still has
        for at, byte in enumerate(text):
            first, count, left = _kind_of(byte, charset, left, text[at - 1] if at else 0)
            if count > 1 and not (keeps_digits and count == _DIGITS):
                turn = 1 + self._key.number(b"text", bytes(seen)) % (count - 1)
                byte = first + (byte - first + turn) % count
            made.append(byte)
            seen += text[at : at + 1].lower()
        return bytes(made)


def _kind_of(byte: int, charset: Charset, left: int, before: int) -> tuple[int, int, int]:
    """The first byte of its kind and how many there are, 1 if it stays; and how many bytes its character still has."""
    if byte < 0x80:
        for first, count in ((0x30, _DIGITS), (0x41, _LETTERS), (0x61, _LETTERS)):
            if first <= byte < first + count:
                return first, count, 0
        return byte, 1, 0
    if charset not in (Charset.UTF8, Charset.JAVA):
        return 0x80, 0x80, 0
    if byte >= 0xC0:
        return byte, 1, 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
    # The byte behind these may not be any one: it would make a character that does not exist.
    is_free = left > 0 and before not in (0xC0, 0xE0, 0xED, 0xF0, 0xF4)
    return (0x80, 0x40, max(0, left - 1)) if is_free else (byte, 1, max(0, left - 1))


# --- Datagrams ------------------------------------------------------------------------------------------------------


class Payloads:
    """Payloads of datagrams, in whatever dialect."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._texts: dict[str, Texts] = {}
        self._codecs: dict[str, Codec] = {}

    def replaced(self, row: Row, dialects: dict[str, Dialect]) -> tuple[bytes, bool]:
        """The payload of a datagram, and whether it is read as the one before was."""
        payload, message = row.datagram.payload, row.message
        if message is None:
            return b"\xff" * len(payload), True
        name = message.dialect
        if name not in self._texts:
            self._texts[name], self._codecs[name] = Texts(self._key, dialects[name]), Codec(dialects[name])
        return self._whole(payload, message, row.datagram.length, 0)

    def _whole(self, payload: bytes, message: Message, length: int, depth: int) -> tuple[bytes, bool]:
        before, made = _reading(message), b""
        for blank in _BLANKS:
            made = self._message(payload, message, blank, depth)
            if _reading(self._codecs[message.dialect].decode(made, length)) == before:
                return made, True
        return made, False

    def _message(self, payload: bytes, message: Message, blank: re.Pattern[bytes], depth: int) -> bytes:
        texts, codec = self._texts[message.dialect], self._codecs[message.dialect]
        made, told = bytearray(payload), bytearray(len(payload))
        layout = message.layout
        steps = {step.name: step for step in layout.steps} if layout is not None else {}
        topics = {layout.topic, layout.filter} if layout is not None else set()
        for name, (begin, end) in message.ranges.items():
            told[begin:end] = b"\1" * (end - begin)
            step, value = steps.get(name), message.fields.get(name)
            if step is None or not isinstance(value, bytes) or not _is_free(step):
                continue
            at = begin + (step.size if step.extent is Extent.PREFIX else 0)
            if payload[at : at + len(value)] != value:
                at = payload.find(value, begin, end)
            if at >= 0 and depth < _MOST_NESTED and _holds_datagram(codec.dialect, message, step):
                inner, _ = self._whole(value, codec.decode(value), len(value), depth + 1)
                made[at : at + len(value)] = inner
            elif at >= 0:
                replaced = texts.topic if name in topics else texts.payload
                made[at : at + len(value)] = replaced(value, step.charset)
        untold = bytes(0 if is_told else byte for byte, is_told in zip(payload, told, strict=True))
        for word in blank.finditer(untold):
            made[word.start() : word.end()] = b"x" * len(word[0])
        return bytes(made)


# What stands behind an error, or behind the message. Some of it may be what the error is about: then only words go.
_BLANKS = (re.compile(rb"[0-9A-Za-z\x80-\xff]"), re.compile(rb"[A-Za-z]{3,}[0-9]*"))


def _holds_datagram(dialect: Dialect, message: Message, step: Step) -> bool:
    """Whether a field is a whole datagram: the copy in an acknowledgement, or what a forwarder of MQTT-SN wraps."""
    if dialect.spec.broker.sessions == "mqtt-sn" and message.message == "FORWARDED":
        return step.name == "inner"
    key = request_key_of(dialect)
    if key is None or key.by != COPY or message.message not in key.acks or message.layout is None:
        return False
    return copy_of_request(message.layout) == step


def _is_free(step: Step) -> bool:
    """It may hold any text."""
    return step.kind in (Kind.TEXT, Kind.BYTES) and step.guard is None


def _reading(message: Message) -> tuple[object, ...]:
    """All that rules look at but the texts."""
    sizes = {name: len(value) if isinstance(value, bytes) else value for name, value in message.fields.items()}
    return message.form, message.message, message.error, message.error_offset, message.padding, sizes


# --- Frames ---------------------------------------------------------------------------------------------------------


@dataclass
class Anonymised:
    """What was written. ``changed``: datagrams that are read in another way than before; ``other``: those of no known
    dialect, which hold nothing now."""

    frames: int = 0
    messages: int = 0
    other: int = 0
    changed: int = 0
    damage: list[Damage] = field(default_factory=list)


def anonymise(
    source: str,
    target: str | os.PathLike[str],
    key: Key,
    dialects: Sequence[Dialect] | None = None,
    ports: dict[int, str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Anonymised:
    """Write a pcapng with the same frames, without names. ``dialects`` and ``ports`` are those of ``decode_capture``.

    Comments, names and other options of the capture are left out. Damage ends it behind the last whole frame.
    """
    if os.path.exists(target) and os.path.exists(source) and os.path.samefile(source, target):
        raise UsageError(f"{os.fspath(target)}: is the capture itself; write to another file")
    copy = _Copy(source, key, list(dialects) if dialects is not None else None, ports or {})
    with new_file(target) as stream:
        writer: CaptureWriter | None = None
        interfaces: dict[tuple[int, int], int] = {}
        for frame, data in copy.frames():
            place = frame.link_type, frame.interface
            if writer is None:
                writer = CaptureWriter(stream, "pcapng", interfaces=[Interface(place[0])])
                interfaces[place] = 0
            elif place not in interfaces:
                interfaces[place] = writer.add_interface(Interface(place[0]))
            original = frame.original_length & 0xFFFFFFFF
            writer.write(data, max(0, frame.time_ns), interface=interfaces[place], original_length=original)
            copy.done.frames += 1
            if progress:
                progress(copy.done.frames)
        if not copy.done.messages:
            raise TopicsharkError(f"{source}: no datagram belongs to a known dialect; nothing was written")
    return copy.done


class _Copy:
    def __init__(self, source: str, key: Key, dialects: list[Dialect] | None, ports: dict[int, str]) -> None:
        self.done = Anonymised()
        self._source, self._dialects, self._ports = source, dialects, ports
        self._addresses, self._payloads = Addresses(key), Payloads(key)
        self._known: dict[str, Dialect] = {}
        for dialect in dialects if dialects is not None else _built_in():
            self._known[dialect.name] = dialect

    def frames(self) -> Iterator[tuple[Frame, bytes]]:
        """Each frame with its new bytes. A reading of its own replaces the datagrams that come in fragments first."""
        pieces = self._fragments()
        rows = self._rows(self.done.damage.append)
        row = next(rows, None)
        for frame in read_frames(self._source, lambda damage: None):
            own: bytes | None = None
            while row is not None and row.datagram.frame <= frame.number:
                if row.datagram.frame == frame.number and len(row.datagram.frames) == 1:
                    own = self._replaced(row)
                row = next(rows, None)
            yield frame, self._frame(frame, own, pieces.get(frame.number))

    def _rows(self, on_damage: Callable[[Damage], None]) -> Iterator[Row]:
        notes = Notes()
        yield from decode_capture(self._source, self._dialects, notes, self._ports)
        for damage in notes.damage:
            on_damage(damage)

    def _replaced(self, row: Row) -> bytes:
        made, is_same = self._payloads.replaced(row, self._known)
        self.done.messages += row.message is not None
        self.done.other += row.message is None
        self.done.changed += not is_same
        return made

    def _fragments(self) -> dict[int, bytes]:
        """By frame, what it holds of the payload of a datagram that came in several."""
        whole: dict[int, tuple[bytes, int]] = {}  # by frame: all of the datagram, and the UDP length
        for row in self._rows(lambda damage: None):
            if len(row.datagram.frames) > 1:
                made = self._replaced(row)
                whole.update(dict.fromkeys(row.datagram.frames, (made, row.datagram.length)))
        pieces = {}
        for frame in read_frames(self._source, lambda damage: None) if whole else ():
            packet = _packet(frame)
            if frame.number in whole and packet is not None and packet.fragment is not None:
                made, _ = whole[frame.number]
                head = packet.data[packet.start : packet.start + _UDP_HEADER] if not packet.fragment.offset else b""
                udp = head.ljust(_UDP_HEADER, b"\0") + made
                udp = udp[:6] + b"\0\0" + udp[8:]  # a checksum of 0 is none
                begin = packet.fragment.offset
                pieces[frame.number] = udp[begin : begin + packet.end - packet.start]
        return pieces

    def _frame(self, frame: Frame, payload: bytes | None, piece: bytes | None) -> bytes:
        data = bytearray(frame.data)
        self._link_addresses(data, frame.link_type)
        link = PARSERS[frame.link_type](frame.data) if frame.link_type in PARSERS else None
        if link is None:
            return bytes(len(data))
        packet = _packet(frame)
        if packet is None:
            data[link[1] :] = bytes(len(data) - link[1])
            return bytes(data)
        self._ip_header(data, link[1], packet)
        body = bytes(data[packet.start : packet.end])
        data[packet.start :] = bytes(len(data) - packet.start)
        if piece is not None:
            new = piece
        elif payload is not None and packet.fragment is None:
            new = body[:6] + b"\0\0" + payload
        else:
            new = body[:4] if packet.protocol == UDP and packet.fragment is None else b""
        new = new[: len(body)]
        data[packet.start : packet.start + len(new)] = new
        if payload is not None and packet.fragment is None:
            self._checksum(data, packet, link[1], body)
        return bytes(data)

    def _link_addresses(self, data: bytearray, link_type: int) -> None:
        places: list[tuple[int, int]] = []
        if link_type == _ETHERNET:
            places = [(0, 6), (6, 12)]
        elif link_type == _COOKED1 and len(data) >= 16:
            places = [(6, 6 + min(8, int.from_bytes(data[4:6], "big")))]
        elif link_type == _COOKED2 and len(data) >= 20:
            places = [(12, 12 + min(8, data[11]))]
        for begin, end in places:
            address = bytes(data[begin:end])
            data[begin:end] = self._addresses.mac(address) if len(address) == end - begin else bytes(len(address))

    def _ip_header(self, data: bytearray, at: int, packet: Packet) -> None:
        if len(packet.src) == 4:
            header = (data[at] & 15) * 4
            data[at + 12 : at + 20] = self._addresses.ip(packet.src) + self._addresses.ip(packet.dst)
            data[at + 20 : at + header] = b"\1" * (header - 20)  # options may hold addresses; 1 is none
            data[at + 10 : at + 12] = b"\0\0"
            struct.pack_into(">H", data, at + 10, 0xFFFF - _sum(bytes(data[at : at + header])))
            return
        data[at + 8 : at + 40] = self._addresses.ip(packet.src) + self._addresses.ip(packet.dst)
        kind, place = data[at + 6], at + 40
        while place + 8 <= packet.start:
            size = 8 if kind == 44 else (data[place + 1] + 1) * 8
            if kind != 44:
                data[place + 2 : min(place + size, packet.start)] = bytes(min(place + size, packet.start) - place - 2)
            kind, place = data[place], place + size

    def _checksum(self, data: bytearray, packet: Packet, at: int, before: bytes) -> None:
        """Right if the datagram is whole; 0, which is none, if it was or is not."""
        length = int.from_bytes(before[4:6], "big")
        if not any(before[6:8]) or packet.start + length > len(data) or length < _UDP_HEADER:
            return
        ends = bytes(data[at + 12 : at + 20] if len(packet.src) == 4 else data[at + 8 : at + 40])
        udp = bytes(data[packet.start : packet.start + length])
        found = 0xFFFF - _sum(ends + struct.pack(">HH", UDP, length) + udp)
        struct.pack_into(">H", data, packet.start + 6, found or 0xFFFF)


def _built_in() -> list[Dialect]:
    from pcap_tools.dialect import builtin_names, load_dialect

    return [load_dialect(name) for name in builtin_names()]


def _packet(frame: Frame) -> Packet | None:
    link = PARSERS[frame.link_type](frame.data) if frame.link_type in PARSERS else None
    if link is None:
        return None
    return read_packet(frame.data, link[0], link[1], max(len(frame.data), frame.original_length))


def _sum(data: bytes) -> int:
    """The ones' complement sum of 16-bit words is the number they make, modulo 0xFFFF."""
    return int.from_bytes(data if len(data) % 2 == 0 else data + b"\0", "big") % 0xFFFF
