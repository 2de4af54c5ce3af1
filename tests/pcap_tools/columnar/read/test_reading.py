"""The kernels read what the pure-Python reader reads: every row, every damage, every warning, every refusal."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcap_tools.capture import CaptureError
from pcap_tools.columnar.read.reading import CHUNK, read_file
from pcap_tools.errors import UsageError
from tests.pcap_tools.capture import packets as p
from tests.pcap_tools.capture.test_damage import BLOCK, FRAME, PCAP, PCAPNG, RECORD, SEEDS
from tests.pcap_tools.columnar.captures import by_kernels, by_python, cut_and_corrupt, files, rows_of

FILES = files()


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file(name: str) -> None:
    expected = by_python(FILES[name])
    assert by_kernels(FILES[name]) == expected
    assert by_kernels(FILES[name], rows=7) == expected


def test_the_files_say_something() -> None:
    """A comparison of nothing with nothing would prove nothing."""
    results = {name: by_python(content) for name, content in FILES.items()}
    assert sum(bool(result.rows) for result in results.values()) > 0.8 * len(results)
    assert any(row.copy_of for row in results["later 1"].rows)
    assert any(row.copy_of for row in results["copies 113 1"].rows)
    assert results["many trains"].warnings


@pytest.mark.parametrize("name", ["colon-clean", "topicbyte", "portdigits"])
def test_real_captures(shared_captures: Path, name: str) -> None:
    path = shared_captures / f"{name}.pcap"
    assert by_kernels(path) == by_python(path)
    assert by_kernels(path).rows


@pytest.mark.parametrize("start", [PCAP, PCAPNG])
def test_cut_at_every_byte(start: bytes) -> None:
    whole = start + (RECORD if start is PCAP else BLOCK)
    for size in range(len(whole)):
        assert by_kernels(whole[:size]) == by_python(whole[:size])


def test_records_over_chunk_borders(tmp_path: Path) -> None:
    """Two chunks and a half, with records of every length, one of them a block larger than a chunk."""
    sizes = [n * 37 % 3001 for n in range(7000)]
    frames = [p.ethernet(p.ipv4(p.udp(bytes([n % 251]) * size))) for n, size in enumerate(sizes)]
    path = tmp_path / "large"
    for content in (p.pcap(frames), p.pcapng(frames) + p.block(5, bytes(CHUNK + 9)) + p.enhanced(FRAME, 1)):
        assert len(content) > 2 * CHUNK
        path.write_bytes(content)
        assert by_kernels(path) == by_python(path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_long_runs_of_usual_frames_with_others_between_them(order: str) -> None:
    """Usual frames go a shorter way, which every other one leaves; runs are shorter and longer than a stride."""
    usual = [p.ethernet(p.ipv4(p.udp(bytes([n]) * n))) for n in range(50)]
    others = [
        *(p.ethernet(part) for part in p.ipv4_fragments(p.udp(bytes(3000)), 1480, ident=9)),
        p.ethernet(p.ipv6(p.udp(b"six"))),
        p.ethernet(p.ipv4(p.udp(b"tagged")), tags=[0x8100]),
        p.ethernet(p.ipv4(b"no UDP", protocol=6)),
        bytes(14),
        b"",
    ]
    frames = []
    for run, other in zip((1, 0, 20_000, 300, 200, 9_000, 3), others, strict=False):
        frames += [usual[n % 50] for n in range(run)] + [other]
    content = p.pcap([*frames, *usual], order=order)
    expected = by_python(content)
    assert len(expected.rows) > 29_500
    assert by_kernels(content) == expected
    assert by_kernels(content, rows=1_000) == expected


def test_fragments_over_chunk_borders(tmp_path: Path) -> None:
    body = p.udp(bytes(60_000))
    packets = [one for n in range(200) for one in p.ipv4_fragments(body, 1480, ident=n)]
    path = tmp_path / "large"
    path.write_bytes(p.pcap([p.ethernet(packet) for packet in packets], step=1000))
    assert by_kernels(path) == by_python(path)


@pytest.mark.parametrize(
    "content", [b"", b"\xd4\xc3", b"text, but long enough" * 9, b"\0\1\2\3", gzip.compress(b"x", mtime=0)]
)
def test_what_is_no_capture(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.pcap"
    path.write_bytes(content)
    assert by_kernels(path) == by_python(path)
    assert by_kernels(path).error
    for missing in (tmp_path, tmp_path / "missing.pcap", "nul\0byte"):
        with pytest.raises(CaptureError, match="cannot be opened"):
            list(read_file(missing))
    with pytest.raises(UsageError):
        list(read_file(cast(BinaryIO, 42)))


@pytest.mark.parametrize("name", ["soup 0", "copies 276 1", "later 2"])
def test_gzip_and_streams(tmp_path: Path, name: str) -> None:
    content = FILES[name]
    expected = by_python(content)
    packed = gzip.compress(content)
    assert by_kernels(packed) == expected
    path = tmp_path / "packed"
    path.write_bytes(packed)
    assert by_kernels(path) == expected
    path.write_bytes(packed[: len(packed) // 2])
    assert by_kernels(path) == by_python(path)
    assert by_kernels(path).damage


def test_stdin() -> None:
    code = "from pcap_tools.columnar.read.reading import read_file; print(sum(b.count for b in read_file('-')))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=PCAP, capture_output=True, check=True, timeout=120)
    assert done.stdout.split() == [b"2"]


def test_a_live_pipe_is_read_as_it_comes() -> None:
    """A datagram is given before the one after it has been captured."""
    out, into = os.pipe()
    with open(out, "rb", buffering=0) as stream, open(into, "wb", buffering=0) as writer:
        writer.write(PCAP)
        batches = read_file(cast(BinaryIO, stream))
        seen = [next(batches).count]

        def finish() -> None:
            writer.write(RECORD)
            writer.close()

        later = threading.Thread(target=finish)
        later.start()
        seen += [batch.count for batch in batches]
        later.join()
    assert seen == [2, 1]


def test_a_given_stream_stays_open() -> None:
    stream = io.BytesIO(PCAP)
    assert len(rows_of(read_file(stream))) == 2
    assert not stream.closed


# --- Anything at all ------------------------------------------------------------------------------------------------


@given(st.sampled_from([seed[:24] for seed in SEEDS]), st.binary(max_size=400))
def test_random_bytes_behind_a_good_header(head: bytes, content: bytes) -> None:
    assert by_kernels(head + content) == by_python(head + content)


@given(st.sampled_from(SEEDS), st.data())
def test_mutated_captures(seed: bytes, data: st.DataObject) -> None:
    content = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content)))
        size = data.draw(st.integers(0, 8))
        content[at : at + size] = data.draw(st.binary(max_size=8))
    assert by_kernels(bytes(content)) == by_python(bytes(content))


@pytest.mark.parametrize("name", sorted(FILES)[::5])
def test_large_files_with_a_few_bad_bytes(name: str) -> None:
    for seed in range(4):
        content = cut_and_corrupt(FILES[name], seed)
        assert by_kernels(content) == by_python(content)
