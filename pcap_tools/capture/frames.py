"""Frames of a capture of any supported format, in file order: `read_frames`.

    >>> for frame in read_frames("run.pcapng.gz", on_damage=print):        # doctest: +SKIP
    ...     print(frame.number, frame.time_ns, len(frame.data))

The format is told by the first bytes, never by the file's name. Frame numbers are Wireshark's.
"""

from __future__ import annotations

from collections.abc import Iterator

from pcap_tools.capture.damage import CaptureError, Corrupt, Damage, OnDamage, log_damage
from pcap_tools.capture.frame import Frame
from pcap_tools.capture.pcap import MAGICS, read_pcap
from pcap_tools.capture.pcapng import SECTION_MAGIC, read_pcapng
from pcap_tools.capture.streams import GZIP_MAGIC, Source, Window, open_source, open_window

_SUPPORTED = "pcap and pcapng files are read, also with gzip, zstd or lz4"

# Things that are passed off as captures, and what to do with them.
_FOREIGN = (
    (b"version https://git-lfs", "is a Git LFS pointer, not the capture; fetch it with 'git lfs pull'"),
    (b"\x28\xb5\x2f\xfd", "is compressed twice, with zstd inside; decompress it once"),
    (b"\x04\x22\x4d\x18", "is compressed twice, with lz4 inside; decompress it once"),
    (b"\xfd7zXZ", "is compressed with xz; decompress it first"),
    (b"BZh", "is compressed with bzip2; decompress it first"),
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
    (b"snoop\0\0\0", "is a snoop file; convert it with 'editcap -F pcapng'"),
    (GZIP_MAGIC, "is compressed with gzip twice; decompress it once"),
)


def read_frames(source: Source, on_damage: OnDamage | None = None) -> Iterator[Frame]:
    """Every whole frame of `source`: a path, "-" for stdin, or a binary stream (which stays open).

    Raises `CaptureError`, when the iteration starts, if there is no capture. A capture that is cut or corrupt
    ends after its last good frame with one call of `on_damage`; without it the damage is logged as a warning.
    """
    with open_source(source) as (name, stream):
        window = open_window(stream)
        try:
            yield from frame_parser(name, window)
        except Corrupt as damage:
            (on_damage or log_damage)(Damage(name, damage.offset, damage.text))


def frame_parser(name: str, window: Window) -> Iterator[Frame]:
    """The frames of a source of either format; `name` is for the error."""
    magic = window.data[:4]
    if magic in MAGICS:
        return read_pcap(window)
    if magic == SECTION_MAGIC:
        return read_pcapng(window)
    raise no_capture(name, window)


def no_capture(name: str, window: Window) -> CaptureError:
    """What to raise for a source that begins like no capture: what it is instead, and what to do with it."""
    window.need(0, 64)
    return CaptureError(f"{name}: {_what_it_is(window)}")


def _what_it_is(window: Window) -> str:
    head = window.data[:64]
    if window.trouble:
        return f"no capture can be read: {window.trouble}"
    if not head:
        return "is empty; a capture has at least a file header"
    for start, text in _FOREIGN:
        if head.startswith(start):
            return text
    if all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head):
        return f"is text, not a capture; {_SUPPORTED}"
    return f"is not a capture (it begins with {head[:4].hex(' ')}); {_SUPPORTED}"
