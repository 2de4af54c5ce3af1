"""A capture with more in it: the same frames, with comments on some and names for addresses, as pcapng.

    >>> annotate_capture("run.pcap", "out.pcapng", {23: ["look here"]}, {"10.0.0.1": "broker"})      # doctest: +SKIP

Of a pcapng every block is copied as it is, whatever it holds. Changed are only packet blocks that get a comment, which
comes behind the options they had, and section lengths, which become "unknown". A comment that is there already is not
put there twice. The names stand behind the first interfaces (editcap wants these right behind the header) and in front
of all other names: a reader that lets later names win, as Wireshark does, shows those that the file brought.

A simple packet block has no options, and as an enhanced one it would get a time that it never had. So it stays as it is
and its comments stand in the header of its section, with the frame's number in front ("frame 7: ..."): Wireshark shows
them among the properties of the file. The same is done with a block that would grow beyond what readers accept.

A pcap becomes one section with one interface of the same link type, snaplen and resolution. What the "modified" pcap
says of packet types has no place in a pcapng and is lost; Wireshark does not show it either.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from pcap_tools.capture import pcap, pcapng
from pcap_tools.capture.damage import CaptureError, Corrupt, Damage
from pcap_tools.capture.frame import Frame
from pcap_tools.capture.frames import no_capture
from pcap_tools.capture.pcapng_blocks import Blocks, Option
from pcap_tools.capture.streams import Window, open_source, open_window
from pcap_tools.capture.writer import new_file
from pcap_tools.errors import UsageError
from pcap_tools.escaping import escape_text, shorten

Path = str | os.PathLike[str]
Comments = Mapping[int, Sequence[str]]
Aside = dict[int, list[int]]  # by section: frames whose comments stand in its header

MOST_ASIDE = 1_000  # of a section
TELL_EVERY = 1 << 16
_USER_APPLICATION, _FCS_LENGTH = 4, 13
_FCS_IS_TOLD = 0x04000000
_PACKET_HEAD = 20  # of enhanced and obsolete packet blocks
_SECTION_HEAD = 16
_UNKNOWN_LENGTH = b"\xff" * 8


@dataclass
class Annotated:
    """What was written. ``aside``: comments that stand in a section header; ``lost``: those with no place at all."""

    frames: int = 0
    comments: int = 0
    aside: int = 0
    lost: int = 0
    damage: Damage | None = None


def annotate_capture(
    source: Path,
    target: Path,
    comments: Comments,
    names: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Annotated:
    """Write `target`, with `comments` by frame number and `names` by address; memory does not grow with the capture.

    Damage ends the copy behind the last whole frame, and is told. Raises `CaptureError` if there is nothing to copy,
    and `UsageError` if both paths are one file; `target` is then as it was before.
    """
    if os.path.exists(target) and os.path.exists(source) and os.path.samefile(source, target):
        raise UsageError(f"{os.fspath(target)}: is the capture itself; write to another file")
    with new_file(target) as out:
        copy = _Copy(out, comments, names or {}, progress or (lambda frames: None))
        done = copy.run(source)
        if copy.aside:
            # Only at the end is it known which frames cannot hold their comments, and the header stands in front.
            out.seek(0)
            out.truncate()
            done = _Copy(out, comments, copy.names, copy.progress, copy.aside).run(source)
    return done


@dataclass
class _Copy:
    """One pass over the source. ``known``: what an earlier pass had to put aside; ``aside``: what this one had to."""

    out: BinaryIO
    comments: Comments
    names: Mapping[str, str]
    progress: Callable[[int], None]
    known: Aside = field(default_factory=dict)
    aside: Aside = field(default_factory=dict)
    done: Annotated = field(default_factory=Annotated)
    section: int = -1

    def run(self, source: Path) -> Annotated:
        with open_source(source) as (name, stream):
            window = open_window(stream)
            try:
                for number, block in enumerate(self._blocks(name, window)):
                    self.out.write(block)
                    if number % TELL_EVERY == 0:
                        self.progress(self.done.frames)
            except Corrupt as error:
                self.done.damage = Damage(name, error.offset, error.text)
                if not self.out.tell():
                    raise CaptureError(str(self.done.damage)) from error
        return self.done

    def _blocks(self, name: str, window: Window) -> Iterator[bytes]:
        magic = window.data[:4]
        if magic in pcap.MAGICS:
            return self._from_pcap(os.path.basename(name), window)
        if magic == pcapng.SECTION_MAGIC:
            return self._from_pcapng(window)
        raise no_capture(name, window)

    # --- pcap -----------------------------------------------------------------------------------------------

    def _from_pcap(self, name: str, window: Window) -> Iterator[bytes]:
        window.need(0, pcap.FILE_HEADER)
        head = window.data[: pcap.FILE_HEADER]
        frames = pcap.read_pcap(window)
        blocks, tick = Blocks("<"), 1 if pcap.MAGICS[head[:4]][1] == pcap.NANOSECONDS else 1000
        made_from = f"topicshark annotate made this file from {shorten(escape_text(name), 300)}"
        yield blocks.section([(pcapng.OPT_COMMENT, made_from.encode()), (_USER_APPLICATION, b"topicshark")])
        yield _interface(blocks, head, 9 if tick == 1 else 6)
        if self.names:
            yield blocks.names(self.names)
        for frame in frames:
            texts = self.comments.get(frame.number, ())
            yield blocks.packet(0, frame.time_ns // tick, frame.data, frame.original_length, texts)
            self.done.frames += 1
            self.done.comments += len(texts)

    # --- pcapng ---------------------------------------------------------------------------------------------

    def _from_pcapng(self, window: Window) -> Iterator[bytes]:
        blocks, names, named = Blocks("<"), b"", False
        for block, frame in pcapng.read_blocks(window):
            if names and not named and block.kind != pcapng.INTERFACE:
                named = True
                yield names
            if block.kind == pcapng.SECTION:
                self.section += 1
                blocks = Blocks("<" if block.raw[8:12] == struct.pack("<I", pcapng.BYTE_ORDER_MAGIC) else ">")
                names = names or (blocks.names(self.names) if self.names else b"")
                yield self._section(blocks, block.raw)
            elif frame is not None:
                self.done.frames += 1
                texts = self.comments.get(frame.number)
                yield self._packet(blocks, block.kind, block.raw, frame, texts) if texts else block.raw
            elif block.raw != names:  # those of an annotation before this one would stand twice
                yield block.raw

    def _packet(self, blocks: Blocks, kind: int, raw: bytes, frame: Frame, texts: Sequence[str]) -> bytes:
        captured = len(frame.data)
        begin = 8 + _PACKET_HEAD + captured + -captured % 4
        made = raw if kind == pcapng.SIMPLE else _with_comments(blocks, raw, begin, texts)
        if kind == pcapng.SIMPLE or len(made) > pcapng.MAX_BLOCK:
            self.aside.setdefault(self.section, []).append(frame.number)
            return raw
        self.done.comments += len(texts)
        return made

    def _section(self, blocks: Blocks, raw: bytes) -> bytes:
        raw = raw[:16] + _UNKNOWN_LENGTH + raw[24:]
        frames = self.known.get(self.section, [])
        texts = [f"frame {frame}: {text}" for frame in frames for text in self.comments[frame]]
        shown = texts[:MOST_ASIDE]
        made = _with_comments(blocks, raw, 8 + _SECTION_HEAD, shown) if shown else raw
        if len(made) > pcapng.MAX_BLOCK:
            made, shown = raw, []
        self.done.aside += len(shown)
        self.done.lost += len(texts) - len(shown)
        return made


def _interface(blocks: Blocks, head: bytes, decimals: int) -> bytes:
    """The interface that the header of a pcap describes."""
    order, _ = pcap.MAGICS[head[:4]]
    snaplen, link = struct.unpack_from(order + "II", head, 16)
    link_type = link & pcap.LINK_TYPE_MASK
    if link_type > 0xFFFF:
        raise CaptureError(f"link type {link_type} of this capture has no place in a pcapng, which has types to 65535")
    options: list[Option] = [(pcapng.IF_TSRESOL, bytes([decimals]))]
    if link & _FCS_IS_TOLD:
        options.append((_FCS_LENGTH, bytes([(link >> 28) * 2])))  # there in words of 16 bits, here in bytes
    return blocks.interface(link_type, snaplen, options)


def _with_comments(blocks: Blocks, raw: bytes, begin: int, texts: Sequence[str]) -> bytes:
    """A block, whose options begin at `begin`, with those comments that it does not have yet."""
    body = raw[8:-4]
    options = [blocks.option(pcapng.OPT_COMMENT, text.encode()) for text in texts]
    new = b"".join(option for option in options if option not in body[begin - 8 :])
    if not new:
        return raw
    end = blocks.end_of(body, begin - 8)
    (kind,) = struct.unpack_from(blocks.order + "I", raw)
    return blocks.block(kind, body[:end] + new + (body[end:] or blocks.end_of_options))
