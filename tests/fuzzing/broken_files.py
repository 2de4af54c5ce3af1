"""One capture of each class of broken file, made by hand, and what must come of it.

Six frames of a talk in colon that breaks no rule: four are in front of the damage, two behind it.
"""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass, field

from tests.pcap_tools.capture import packets as p
from topicshark.exit_codes import ExitCode

CLEAN, UNREADABLE, PARTIAL = ExitCode.CLEAN, ExitCode.UNREADABLE, ExitCode.PARTIAL
PORT = 50000
ANNA, BROKER = "10.0.0.2", "10.0.0.1"

TALK = [b"\x03\x00home/x", b"\x04", b"\x01\x00hall:1", b"\x02", b"\x01\x00hall:2", b"\x02"]
UDPS = [p.udp(said, PORT, PORT) for said in TALK]


def ends(number: int) -> tuple[str, str]:
    """Requests are Anna's, answers the broker's."""
    return (ANNA, BROKER) if number % 2 == 0 else (BROKER, ANNA)


def packet(number: int, body: bytes | None = None, **fields: int) -> bytes:
    src, dst = ends(number)
    return p.ipv4(UDPS[number] if body is None else body, src=src, dst=dst, ident=number + 1, **fields)  # type: ignore[arg-type]


FRAMES = [p.ethernet(packet(number), pad=False) for number in range(len(TALK))]
PCAP = p.pcap(FRAMES[:4])
BLOCKS = p.pcapng(FRAMES[:4])
REST = b"".join(p.pcap_record(frame) for frame in FRAMES[4:])
REST_BLOCKS = b"".join(p.enhanced(frame, p.T0) for frame in FRAMES[4:])
RECORD = p.pcap_record(FRAMES[4])
BLOCK = p.enhanced(FRAMES[4], p.T0)


@dataclass(frozen=True)
class Broken:
    """`frames` are read; then comes the damage at `offset` (None: there is none), of which `words` tell.

    `code` is that of `topicshark decode` for this file alone; `payloads` are those of its datagrams; `counted` is what
    capinfos counts, where it does not count as we do (-1: it cannot read it).
    """

    content: bytes
    frames: int
    offset: int | None = None
    words: str = ""
    code: ExitCode = PARTIAL
    payloads: list[bytes] | None = None
    counted: int | None = None
    times: list[int] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """No capture at all."""
        return self.code is UNREADABLE and not self.frames

    @property
    def said(self) -> list[bytes]:
        return TALK[: self.frames] if self.payloads is None else self.payloads


def _after(good: bytes, bad: bytes, words: str, counted: int | None = None) -> Broken:
    """Four frames, then the damage."""
    return Broken(good + bad, 4, len(good), words, counted=counted)


def _whole(content: bytes, frames: int = 6, **expected: object) -> Broken:
    return Broken(content, frames, code=CLEAN, **expected)  # type: ignore[arg-type]


def _none(content: bytes, words: str, counted: int = -1) -> Broken:
    return Broken(content, 0, None, words, UNREADABLE, counted=counted)


def _length(length: int, at_end: int | None = None) -> bytes:
    first, last = (struct.pack("<I", one) for one in (length, length if at_end is None else at_end))
    return BLOCK[:4] + first + BLOCK[8:-4] + last


def _timed(head: bytes, ticks: list[int]) -> bytes:
    return p.section() + head + b"".join(p.enhanced(frame, n) for frame, n in zip(FRAMES, ticks, strict=True))


def _pcap_at(seconds: list[int]) -> bytes:
    records = (p.pcap_record(frame, when * 10**9) for frame, when in zip(FRAMES, seconds, strict=True))
    return p.pcap_header() + b"".join(records)


def _odd(body: bytes, **fields: int) -> bytes:
    """The third message said with an odd length, between the others."""
    odd = p.ethernet(packet(2, body, **fields), pad=False)
    return p.pcap([*FRAMES[:2], odd, *FRAMES[3:]])


def _bomb() -> bytes:
    """More trains than there is room for; none is ever completed, offsets as large as can be."""
    begun = [p.ipv4(bytes(8), ident=n, offset=65_528 if n % 2 else 8, more=n % 3 > 0) for n in range(5000)]
    return p.pcap([*FRAMES[:4], *(p.ethernet(one) for one in begun), *FRAMES[4:]], step=1000)


def _overlap() -> bytes:
    """The publish of frame 3 in two parts; between them one that covers the second half of the first otherwise."""
    body = UDPS[2]
    parts = [
        packet(2, body[:8], more=True),
        packet(2, b"XXXXXXXX", offset=0, more=True),
        packet(2, body[8:], offset=8),
    ]
    return p.pcap([*FRAMES[:2], *(p.ethernet(one, pad=False) for one in parts), *FRAMES[3:]])


_LATEST = (1 << 62) - (1 << 40)
_ZEROS = 1 << 20
_PACKED = gzip.compress(PCAP + REST, mtime=0)
_STORED = gzip.compress(PCAP + REST, 0, mtime=0)  # the bytes as they are, then eight of checksum and length
_OTHER_ORDER = p.section(">") + p.interface(order=">", tsresol=9) + p.enhanced(FRAMES[4], p.T0, ">")
_THIRD = p.section() + p.interface(tsresol=9) + p.enhanced(FRAMES[5], p.T0)
_TEXT = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 123456\n"
_HALF = [TALK[0], TALK[1], TALK[2][:3], *TALK[3:]]

BROKEN: dict[str, Broken] = {
    "caplen beyond the file": _after(
        PCAP, p.pcap_record(FRAMES[4], captured=70_000), "ends inside the record of frame 5"
    ),
    "caplen beyond the maximum": _after(PCAP, p.pcap_record(FRAMES[4], captured=262_145) + REST, "262145 bytes, more"),
    "caplen beyond the block": _after(
        BLOCKS, p.enhanced(FRAMES[4], 1, captured=500) + REST_BLOCKS, "a packet of 500 bytes"
    ),
    "block length 0": _after(BLOCKS, _length(0) + REST_BLOCKS, "a block length of 0"),
    "block length below 12": _after(BLOCKS, _length(11) + REST_BLOCKS, "a block length of 11"),
    "block length beyond the file": _after(BLOCKS, _length(10_000) + REST_BLOCKS, "ends inside a block of 10000 bytes"),
    "block length beyond the maximum": _after(BLOCKS, _length(1 << 31) + REST_BLOCKS, "a block length of 2147483648"),
    "block length not a multiple of 4": _whole(BLOCKS + _length(len(BLOCK) - 1) + p.enhanced(FRAMES[5], p.T0)),
    "block trailer differs": _after(BLOCKS, _length(len(BLOCK), 99) + REST_BLOCKS, "at its begin and 99 at its end"),
    "caplen over snaplen": _whole(p.pcap_header(snaplen=20) + PCAP[24:] + REST),
    "caplen over snaplen in pcapng": _whole(_timed(p.interface(tsresol=9, snaplen=20), [p.T0] * 6)),
    "last record cut": _after(PCAP, p.pcap_record(FRAMES[4])[:30], "ends inside the record of frame 5, after 30 bytes"),
    "last block cut": _after(BLOCKS, BLOCK[:30], "ends inside a block of"),
    "zero progress by empty records": _whole(p.pcap([*FRAMES[:4], *[b""] * 5000, *FRAMES[4:]]), 5006, payloads=TALK),
    "zero progress by empty blocks": _whole(BLOCKS + p.block(0x80000001, b"") * 5000 + REST_BLOCKS),
    "zero progress by empty options": _whole(
        BLOCKS + p.block(6, struct.pack("<IIIII", 0, 0, 0, 0, 0) + p.option(1, b"") * 5000) + REST_BLOCKS,
        7,
        payloads=TALK,
    ),
    "several sections and byte orders": _whole(BLOCKS + _OTHER_ORDER + _THIRD),
    "if_tsresol of base 2": _whole(
        _timed(p.interface(tsresol=0x94), [1_600_000_000 << 20] * 6), times=[1_600_000_000 * 10**9] * 6
    ),
    "if_tsresol 255": _whole(_timed(p.interface(tsresol=255), [(1 << 64) - 1] * 6), times=[0] * 6),
    "if_tsresol 127": _whole(_timed(p.interface(tsresol=127), [(1 << 64) - 1] * 6), times=[0] * 6),
    "if_tsresol 0": _whole(_timed(p.interface(tsresol=0), [1_600_000_000] * 6), times=[1_600_000_000 * 10**9] * 6),
    "backward times": _whole(_pcap_at([60, 50, 40, 30, 20, 10]), times=[n * 10**10 for n in (6, 5, 4, 3, 2, 1)]),
    "far-future times": _whole(
        _pcap_at([1, 2, 3, 4, 5, 0xFFFFFFFF]), times=[*(n * 10**9 for n in range(1, 6)), 0xFFFFFFFF * 10**9]
    ),
    "times beyond 64 bits": _whole(
        _timed(p.interface(tsresol=0, tsoffset=1 << 62), [1, 1, 1, 1, 1, (1 << 64) - 1]), times=[_LATEST] * 6
    ),
    "unknown link type": Broken(
        p.pcap(FRAMES, 147), 6, None, "frame 1: link type 147 is not known", UNREADABLE, payloads=[]
    ),
    "IP total length too long": _whole(_odd(UDPS[2], total=9999)),
    "IP total length too short": _whole(_odd(UDPS[2], total=31), payloads=_HALF),
    "IP total length below its header": _whole(_odd(UDPS[2], total=12), payloads=[*TALK[:2], *TALK[3:]]),
    "UDP length too long": _whole(_odd(UDPS[2][:4] + b"\xff\xff" + UDPS[2][6:])),
    "UDP length too short": _whole(_odd(UDPS[2][:4] + b"\0\x0b" + UDPS[2][6:]), payloads=_HALF),
    "UDP length below its header": _whole(_odd(UDPS[2][:4] + b"\0\x07" + UDPS[2][6:]), payloads=[*TALK[:2], *TALK[3:]]),
    "fragment bomb": _whole(_bomb(), 5006, payloads=TALK),
    "overlapping fragments": _whole(_overlap(), 8, payloads=TALK),
    "gzip bomb": _whole(gzip.compress(PCAP + REST + bytes(_ZEROS)), 6 + _ZEROS // 16, payloads=TALK),
    "gzip bomb of empty members": _whole(gzip.compress(b"", mtime=0) * 50_000 + _PACKED),
    "truncated gzip": Broken(_STORED[: -8 - 5], 5, len(PCAP) + len(RECORD), "the gzip data ends early"),
    "gzip without its checksum": Broken(_PACKED[:-8], 6, len(PCAP + REST), "the gzip data ends early"),
    "concatenated captures": _after(PCAP, p.pcap(FRAMES[4:]), "another capture begins here", counted=5),
    "concatenated pcap and pcapng": _after(PCAP, p.pcapng(FRAMES[4:]), "another capture begins here"),
    "concatenated gzip": _whole(gzip.compress(PCAP) + gzip.compress(REST)),
    "empty file": _none(b"", "is empty", counted=0),
    "Git LFS pointer": _none(_TEXT, "is a Git LFS pointer, not the capture; fetch it with 'git lfs pull'"),
    "only 0xFF": _none(b"\xff" * 5000, "is not a capture (it begins with ff ff ff ff)"),
    "only 0x00": _none(bytes(5000), "is not a capture (it begins with 00 00 00 00)"),
}
