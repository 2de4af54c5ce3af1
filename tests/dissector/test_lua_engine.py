"""The decoding engine of dissector.lua, outside of Wireshark, under every Lua that a Wireshark may have."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fuzzing.decoders.in_lua import outcome_of_line
from fuzzing.decoders.outcome import Outcome, outcome_of
from pcap_tools.codec import Codec
from pcap_tools.dialect import builtin_names
from pcap_tools.dissector import write_dissector
from tests.dissector.datagrams import generated
from tests.vectors import dialect_of, load_vectors, own_dialect_names

LUAS = ("lua5.2", "lua5.3", "lua5.4")
DRIVER = Path(__file__).with_name("run_vectors.lua")
NAMES = [*builtin_names(), *own_dialect_names()]
PER_DIALECT = 1500


@pytest.fixture(scope="module")
def dissector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lua") / "dissector.lua"
    write_dissector([dialect_of(name) for name in NAMES], path)
    return path


def run(lua: str, dissector: Path, lines: list[str]) -> list[Outcome]:
    """All datagrams in one process."""
    if shutil.which(lua) is None:
        pytest.skip(f"{lua} is not installed")
    done = subprocess.run(
        [lua, str(DRIVER), str(dissector)], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return [outcome_of_line(line) for line in done.stdout.splitlines()]


def line_of(dialect: str, datagram: bytes, length: int | None = None) -> str:
    return f"{dialect} {datagram.hex() or '-'} {len(datagram) if length is None else length}"


@pytest.mark.parametrize("lua", LUAS)
def test_every_vector(lua: str, dissector: Path) -> None:
    vectors = load_vectors()
    decoded = run(lua, dissector, [line_of(vector.dialect, vector.datagram) for vector in vectors])
    assert len(decoded) == len(vectors)
    for vector, got in zip(vectors, decoded, strict=True):
        want = Outcome(
            vector.form,
            vector.message,
            vector.meaning,
            vector.topic,
            vector.filter,
            vector.payload,
            vector.retain,
            vector.padding,
            vector.error,
            vector.error_offset,
            vector.fields,
            None,
        )
        assert got._replace(ranges=None) == want, str(vector)


@pytest.mark.parametrize("lua", LUAS)
def test_generated_datagrams_as_the_codec(lua: str, dissector: Path) -> None:
    work = [(name, datagram) for name in NAMES for datagram in generated(dialect_of(name), PER_DIALECT, seed=1)]
    decoded = run(lua, dissector, [line_of(name, datagram) for name, datagram in work])
    codecs = {name: Codec(dialect_of(name)) for name in NAMES}
    for (name, datagram), got in zip(work, decoded, strict=True):
        assert got == outcome_of(codecs[name].decode(datagram)), f"{name}: {datagram.hex()}"


@pytest.mark.parametrize("lua", LUAS)
def test_a_datagram_that_the_capture_cut(lua: str, dissector: Path) -> None:
    (got,) = run(lua, dissector, [line_of("colon", b"\x01\x00home/f", length=20)])
    assert (got.error, got.error_offset) == ("cut", 8)


@pytest.mark.parametrize("lua", LUAS)
def test_65000_bytes_of_padding_are_quick(lua: str, dissector: Path) -> None:
    padded = b"\x01\x01temp:12".ljust(65000, b"\0")
    decoded = run(lua, dissector, [line_of("colon", padded)] * 50)
    assert {(got.payload, got.padding, got.error) for got in decoded} == {(b"12", 64991, None)}
