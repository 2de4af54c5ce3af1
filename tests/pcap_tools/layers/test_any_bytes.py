"""Whatever arrives: no exception, the same bytes again, and no control characters on a terminal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.packet import fuzz

from pcap_tools.dialect import Dialect, Form
from tests.pcap_tools.layers.loaded import ALL_DIALECTS, fields_of, layers_of
from tests.vectors import load_vectors

SEEDS = [vector.datagram[:300] for vector in load_vectors()]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A vector with a few bytes overwritten, cut off or put behind."""
    datagram = bytearray(draw(st.sampled_from(SEEDS)))
    for at, byte in draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), max_size=4)):
        if at < len(datagram):
            datagram[at] = byte
    return bytes(datagram[: draw(st.integers(0, 300))]) + draw(st.binary(max_size=4) | st.just(b"\0\0"))


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
@settings(max_examples=60)
@given(datagram=st.binary(min_size=1, max_size=80) | damaged().filter(bool))
def test_any_bytes_are_read_and_come_back(dialect: str, datagram: bytes) -> None:
    layers = layers_of(dialect)
    packet, message = layers.base(datagram), layers.codec.decode(datagram)
    assert bytes(packet) == datagram
    assert fields_of(packet) == message.fields
    assert (packet.error, packet.error_offset) == (message.error, message.error_offset)
    assert packet.summary().isprintable()
    copy = packet.copy()
    assert copy == packet
    copy.clear_cache()
    assert bytes(copy) == datagram
    assert packet.show(dump=True)


def forms_with(dialect: Dialect, message: str) -> list[Form]:
    return [form for form in dialect.forms if form.layouts_of(message)]


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_fuzzed_packets_build_and_are_read(dialect: str) -> None:
    layers = layers_of(dialect)
    for name, cls in layers.messages.items():
        for form in forms_with(layers.dialect, name):
            datagram = bytes(fuzz(cls(form=form.name)))
            assert bytes(layers.base(datagram)) == datagram


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_a_message_with_nothing_said_is_valid(dialect: str) -> None:
    layers = layers_of(dialect)
    for name, cls in layers.messages.items():
        for form in forms_with(layers.dialect, name):
            read = layers.base(bytes(cls(form=form.name)))
            assert (read.message_name, read.error) == (name, None)
