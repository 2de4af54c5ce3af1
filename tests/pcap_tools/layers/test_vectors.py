"""The hand-typed vectors, read by scapy: the same message, fields and errors, and the same bytes again."""

from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Padding, Raw
from scapy.sendrecv import sniff
from scapy.utils import rdpcap, wrpcap

from pcap_tools.layers import load_layer, unload_layer
from tests.pcap_tools.layers.loaded import ALL_DIALECTS, fields_of, layers_of
from tests.vectors import Vector, load_vectors

VECTORS = [vector for vector in load_vectors() if vector.datagram]  # scapy has no layer for no bytes


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_scapy_reads_what_the_vector_says(vector: Vector) -> None:
    layers = layers_of(vector.dialect)
    packet = layers.base(vector.datagram)
    assert type(packet) is (layers.messages[vector.message] if vector.message else layers.Unknown)
    assert fields_of(packet) == vector.fields
    assert (packet.error, packet.error_offset) == (vector.error, vector.error_offset)
    assert (packet.form, packet.padding) == (vector.form, vector.padding)


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_the_bytes_come_back(vector: Vector) -> None:
    packet = layers_of(vector.dialect).base(vector.datagram)
    assert bytes(packet) == vector.datagram
    packet.clear_cache()
    assert bytes(packet) == vector.datagram


@pytest.mark.parametrize("vector", [v for v in VECTORS if v.error is None], ids=str)
def test_a_valid_message_is_built_again_from_its_fields_alone(vector: Vector) -> None:
    cls = layers_of(vector.dialect).messages[vector.message]
    built = cls(form=vector.form, padding=vector.padding, **_named(cls, vector.fields))
    assert bytes(built) == vector.datagram
    assert built.error is None


@pytest.mark.parametrize("vector", [v for v in VECTORS if v.error is None], ids=str)
def test_padding_is_a_layer_and_nothing_else_is_left_over(vector: Vector) -> None:
    packet = layers_of(vector.dialect).base(vector.datagram)
    assert (Padding in packet) == bool(vector.padding)
    assert Raw not in packet
    if vector.padding:
        assert packet[Padding].load == bytes(vector.padding)


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_captures_keep_every_datagram(dialect: str, tmp_path: Path) -> None:
    layers = load_layer(layers_of(dialect).source)
    port = min(layers.dialect.ports)
    frames = [
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        / IP(src="10.0.0.1", dst="10.0.0.2")
        / UDP(sport=40999, dport=port)
        / layers.base(vector.datagram)
        for vector in VECTORS
        if vector.dialect == dialect
    ]
    if not frames:
        pytest.skip(f"no vectors of {dialect}")
    file = str(tmp_path / "written.pcap")
    try:
        wrpcap(file, frames)
        read, sniffed = rdpcap(file), sniff(offline=file)
    finally:
        unload_layer(layers)
    assert [bytes(frame) for frame in read] == [bytes(frame) for frame in frames]
    assert [type(frame[layers.base]) for frame in read] == [type(frame[layers.base]) for frame in frames]
    assert [frame.summary() for frame in sniffed] == [frame.summary() for frame in frames]


def _named(cls: Any, fields: dict[str, Any]) -> dict[str, Any]:
    return {cls.scapy_name[name]: value for name, value in fields.items()}
