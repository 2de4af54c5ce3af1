"""An annotated capture is the capture: tshark sees the same frames, and the comments where they belong."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pcap_tools.capture import CaptureError, read_frames
from pcap_tools.capture.annotating import MOST_ASIDE, Annotated, annotate_capture
from pcap_tools.errors import UsageError
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.capture.tshark import needs_tshark, run_tshark, tshark_fields

FRAME = p.ethernet(p.ipv4(p.udp(b"payload")))
OTHER = p.ethernet(p.ipv6(p.udp(b"other")))
NAMES = {p.A4: "broker", p.A6: "publisher-1"}
# What a pcapng tells of a frame and a pcap cannot.
ONLY_PCAPNG = ("frame.interface_id", "frame.interface_id_tree", "frame.section_number")


def annotated(folder: Path, content: bytes, comments: Mapping[int, Sequence[str]]) -> tuple[Path, Path, Annotated]:
    source, target = folder / "source.cap", folder / "target.pcapng"
    source.write_bytes(content)
    return source, target, annotate_capture(source, target, comments, NAMES)


def in_tshark(path: Path) -> tuple[list[dict[str, Any]], dict[int, list[str]]]:
    """All that tshark says of frames as such, with their bytes; and apart from that the comments by frame."""
    out = run_tshark(path, "-T", "json", "-x", "-j", "frame pkt_comment", "--no-duplicate-keys")
    frames, comments = [], {}
    for number, layers in enumerate((packet["_source"]["layers"] for packet in json.loads(out)), 1):
        said = layers.pop("pkt_comment", {}).get("frame.comment", [])
        if said:
            comments[number] = said if isinstance(said, list) else [said]
        frames.append(layers)
    return frames, comments


def without(frames: list[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    return [one | {"frame": {key: one["frame"][key] for key in one["frame"] if key not in names}} for one in frames]


def pcap_cases() -> dict[str, bytes]:
    cases = {
        f"{name} {order}": p.pcap([FRAME, OTHER, FRAME], magic=magic, order=order)
        for name, magic, order in (("us", p.MICRO, "<"), ("us", p.MICRO, ">"), ("ns", p.NANO, "<"), ("ns", p.NANO, ">"))
    }
    cases["modified, gzip"] = gzip.compress(p.pcap([FRAME, OTHER, FRAME], magic=p.MODIFIED))
    cases["any"] = p.pcap([p.cooked2(FRAME[14:], ifindex=n) for n in range(3)], link_type=276, magic=p.NANO)
    odd = (p.pcap_record(FRAME), p.pcap_record(FRAME[:20], original=99), p.pcap_record(FRAME[:30], original=3))
    cases["odd lengths"] = p.pcap_header(snaplen=10) + b"".join(odd)
    with_fcs = struct.pack("<I", 1 | 0x04000000 | 2 << 28)  # 2 words of 16 bits
    cases["frame check sequences"] = p.pcap_header()[:20] + with_fcs + p.pcap_record(FRAME + b"\1\2\3\4") * 3
    return cases


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("content", pcap_cases().values(), ids=pcap_cases().keys())
def test_a_pcap_keeps_its_frames(tmp_path: Path, content: bytes) -> None:
    comments = {1: ["first", "a second one, zweit\u00e4"], 3: ["last"]}
    source, target, done = annotated(tmp_path, content, comments)
    before, _ = in_tshark(source)
    after, said = in_tshark(target)
    assert len(before) == 3
    assert without(after, ONLY_PCAPNG) == before
    assert said == comments
    assert done == Annotated(frames=3, comments=3)


@needs_tshark
@pytest.mark.tshark
def test_the_header_of_a_pcap_becomes_an_interface(tmp_path: Path) -> None:
    content = p.pcap_header(113, p.NANO, ">", snaplen=1234) + p.pcap_record(
        p.cooked1(FRAME[14:]), magic=p.NANO, order=">"
    )
    _, target, _ = annotated(tmp_path, content, {})
    told = capinfos(target)
    assert "Capture length = 1234" in told
    assert "Encapsulation = Linux cooked-mode capture v1" in told
    assert "Time resolution = 0x09" in told
    assert "Capture application: topicshark" in told
    assert "made this file from source.cap\n" in told  # not the folder, which is nobody's business


def capinfos(path: Path) -> str:
    return subprocess.run(["capinfos", str(path)], capture_output=True, text=True, check=True, timeout=60).stdout


def every_block(order: str) -> bytes:
    """Two sections of different byte orders, three interfaces with odd clocks, every kind of block."""
    other = ">" if order == "<" else "<"
    names = p.option(1, bytes([10, 1, 0, 2]) + b"mine\0", order) + p.option(0, b"", order)
    flags = p.option(2, struct.pack(order + "I", 1), order) + p.option(0, b"", order)
    head = struct.pack(order + "IIIII", 1, 0, 99, len(FRAME), len(FRAME))
    return b"".join(
        (
            p.block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, 5000), order),  # too long soon
            p.interface(1, order, tsresol=9),
            p.interface(1, order, tsresol=0x8A, tsoffset=1_600_000_000),
            p.block(4, names, order),
            p.enhanced(FRAME, p.T0, order, comments=["kept", "kept too"]),  # 1
            p.enhanced(OTHER, 12345, order, interface_id=1, original=2000),
            p.block(10, struct.pack(order + "II", 0x544C534B, 4) + b"keys", order),  # secrets
            p.obsolete(FRAME + b"\0", p.T0 + 5, order),  # 3
            p.block(0xBAD, struct.pack(order + "I", 32473) + b"own data", order),  # 4 for Wireshark
            p.block(6, head + FRAME + flags, order),  # 5: its options are not comments
            p.block(5, struct.pack(order + "III", 0, 1, 2), order),
            p.block(0x80000777, b"what is this?", order),
            p.section(other),
            p.interface(113, other),
            p.enhanced(p.cooked1(FRAME[14:]), 77, other, comments=["here as well"]),  # 6
            p.enhanced(p.cooked1(OTHER[14:]), 78, other),
        )
    )


def begins(comments: Mapping[int, Sequence[str]]) -> dict[int, list[str]]:
    """tshark cuts what is long."""
    return {number: [text[:40] for text in texts] for number, texts in comments.items()}


NEW = {1: ["new"], 3: ["on an obsolete block", "and more"], 5: ["behind flags"], 6: ["x" * 60_000]}


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize(("order", "pack"), [("<", gzip.compress), (">", bytes)])
def test_a_pcapng_keeps_all_that_it_has(tmp_path: Path, order: str, pack: type[bytes]) -> None:
    source, target, done = annotated(tmp_path, pack(every_block(order)), NEW)
    before, had = in_tshark(source)
    after, has = in_tshark(target)
    assert len(before) == 7
    assert after == before
    assert had == {1: ["kept", "kept too"], 6: ["here as well"]}
    expected = {number: had.get(number, []) + texts for number, texts in NEW.items()}
    assert begins(has) == begins(expected)
    assert done == Annotated(frames=6, comments=5)


@pytest.mark.parametrize("order", "<>")
def test_only_blocks_with_new_comments_change(tmp_path: Path, order: str) -> None:
    content = every_block(order)
    _, target, _ = annotated(tmp_path, content, {})
    record4 = p.option(1, bytes([10, 1, 0, 1]) + b"broker\0", order)
    record6 = p.option(2, bytes.fromhex("20010db8000000000000000000000001") + b"publisher-1\0", order)
    names = p.block(4, record4 + record6 + p.option(0, b"", order), order)
    front = p.interface(1, order, tsresol=9) + p.interface(1, order, tsresol=0x8A, tsoffset=1_600_000_000)
    rest = content[len(p.section(order)) + len(front) :]
    front = p.section(order) + front + names
    assert target.read_bytes() == front + rest
    _, target, _ = annotated(tmp_path, content, {5: ["new"]})
    flags, end = p.option(2, struct.pack(order + "I", 1), order), p.option(0, b"", order)
    body = struct.pack(order + "IIIII", 1, 0, 99, len(FRAME), len(FRAME)) + FRAME + flags
    old, new = p.block(6, body + end, order), p.block(6, body + p.option(1, b"new", order) + end, order)
    assert rest.count(old) == 1
    assert target.read_bytes() == front + rest.replace(old, new)


def test_what_was_annotated_before_does_not_grow(tmp_path: Path) -> None:
    _, once, _ = annotated(tmp_path, every_block("<"), NEW)
    annotate_capture(once, tmp_path / "twice.pcapng", NEW, NAMES)
    assert (tmp_path / "twice.pcapng").read_bytes() == once.read_bytes()


@needs_tshark
@pytest.mark.tshark
def test_names_are_shown_and_those_of_the_file_go_first(tmp_path: Path) -> None:
    own = p.block(4, p.option(1, bytes([10, 1, 0, 1]) + b"gateway\0") + p.option(0, b""))
    for block, shown in ((b"", ["broker", ""]), (own, ["gateway", ""])):
        content = p.section() + p.interface() + block + p.enhanced(FRAME, 1) + p.enhanced(OTHER, 2)
        _, target, _ = annotated(tmp_path, content, {})
        first, second = names_in_tshark(target)
        assert first == [shown[0], ""]
        assert second == ["", "publisher-1"]


def names_in_tshark(path: Path) -> list[list[str]]:
    command = ["tshark", "-N", "n", "-r", str(path), "-T", "fields", "-e", "ip.src_host", "-e", "ipv6.src_host"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return [line.split("\t") for line in out.splitlines()]


@needs_tshark
@pytest.mark.tshark
@pytest.mark.parametrize("order", "<>")
def test_packets_that_cannot_hold_a_comment(tmp_path: Path, order: str) -> None:
    """A simple packet block stays one: as another it would show a time. The section tells its comments."""
    content = (
        p.section(order)
        + p.interface(order=order)
        + p.simple(FRAME, order)
        + p.enhanced(OTHER, 5, order)
        + p.section(order)
        + p.interface(order=order)
        + p.simple(OTHER, order)
    )
    source, target, done = annotated(tmp_path, content, {1: ["one", "uno"], 2: ["two"], 3: ["three"]})
    assert in_tshark(target) == (in_tshark(source)[0], {2: ["two"]})
    assert tshark_fields(target, "frame.time_epoch")[0] == [""]
    told = capinfos(target)
    for text in ("frame 1: one", "frame 1: uno", "frame 3: three"):
        assert f"Capture comment:     {text}\n" in told
    assert done == Annotated(frames=3, comments=1, aside=3)
    annotate_capture(target, tmp_path / "twice.pcapng", {1: ["one", "uno"], 2: ["two"], 3: ["three"]}, NAMES)
    assert (tmp_path / "twice.pcapng").read_bytes() == target.read_bytes()


def test_a_section_holds_so_many_comments_and_no_more(tmp_path: Path) -> None:
    content = p.section() + p.interface() + p.simple(FRAME)
    _, target, done = annotated(tmp_path, content, {1: [str(n) for n in range(MOST_ASIDE + 7)]})
    assert (done.comments, done.aside, done.lost) == (0, MOST_ASIDE, 7)
    assert list(read_frames(target)) == list(read_frames(tmp_path / "source.cap"))


def test_a_block_grows_no_larger_than_readers_accept(tmp_path: Path) -> None:
    full = ["y" * 65_000] * 258
    content = p.section() + p.interface() + p.enhanced(FRAME, 5, comments=full) + p.enhanced(FRAME, 6)
    source, target, done = annotated(tmp_path, content, {1: ["z" * 60_000] * 3, 2: ["two"]})
    assert (done.comments, done.aside) == (1, 3)
    before, after = list(read_frames(source)), list(read_frames(target))
    assert [one._replace(comments=()) for one in after] == [one._replace(comments=()) for one in before]
    assert [len(one.comments) for one in after] == [258, 1]


# --- Damage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [p.pcap([FRAME, OTHER, FRAME]), p.pcapng([FRAME, OTHER, FRAME])])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_all_whole_frames_before_the_damage(tmp_path: Path, content: bytes, pack: type[bytes]) -> None:
    packed = pack(content[:-7]) if pack is bytes else pack(content)[:-40]
    source, target, done = annotated(tmp_path, packed, {1: ["one"], 3: ["never seen"]})
    damages: list[object] = []
    whole = list(read_frames(source, damages.append))
    assert done.damage == damages[0]
    assert 1 <= len(whole) < 3
    assert [one._replace(comments=()) for one in read_frames(target)] == whole
    assert (done.frames, done.comments) == (len(whole), 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"just some text", "is text"),
        (p.pcap_header()[:10], "damaged at byte 0"),
        (p.section()[:10], "damaged at byte 0"),
        (p.pcap_header(0x10000), "link type 65536"),
    ],
)
def test_what_is_no_capture_leaves_the_target_alone(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "target.pcapng").write_text("from yesterday")
    with pytest.raises(CaptureError, match=words):
        annotated(tmp_path, content, {})
    assert (tmp_path / "target.pcapng").read_text() == "from yesterday"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["source.cap", "target.pcapng"]


def test_the_capture_itself_is_not_written_over(tmp_path: Path) -> None:
    source = tmp_path / "run.pcapng"
    source.write_bytes(p.pcapng([FRAME]))
    (tmp_path / "link.pcapng").symlink_to(source)
    for target in ("run.pcapng", "./run.pcapng", "link.pcapng"):
        with pytest.raises(UsageError, match="is the capture itself"):
            annotate_capture(source, tmp_path / target, {1: ["c"]})
    assert source.read_bytes() == p.pcapng([FRAME])


def test_what_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "run.pcap").write_bytes(p.pcap([FRAME]))
    with pytest.raises(CaptureError, match="cannot be written: No such file"):
        annotate_capture(tmp_path / "run.pcap", tmp_path / "absent" / "out.pcapng", {})
