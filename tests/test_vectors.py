"""Every hand-typed vector against the codec: what it reads, where it stops and why, and what it builds from that."""

from __future__ import annotations

import pytest

from pcap_tools.codec import Codec
from pcap_tools.dialect import builtin_names
from tests.vectors import Vector, dialect_of, load_vectors, own_dialect_names

ALL = load_vectors()
VALID = [vector for vector in ALL if vector.error is None]
CODECS = {name: Codec(dialect_of(name)) for name in sorted({vector.dialect for vector in ALL})}


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_decoding_gives_what_the_vector_says(vector: Vector) -> None:
    message = CODECS[vector.dialect].decode(vector.datagram)
    read = {
        "form": message.form,
        "message": message.message,
        "meaning": message.meaning,
        "fields": message.fields,
        "topic": message.topic,
        "filter": message.filter,
        "payload": message.payload,
        "retain": message.retain,
        "code": message.code,
        "accepted": message.accepted,
        "qos": message.qos,
        "dup": message.dup,
        "padding": message.padding,
        "error": message.error and str(message.error),
        "error_offset": message.error_offset,
    }
    assert read == {key: getattr(vector, key) for key in read}
    assert message.length == len(vector.datagram)


@pytest.mark.parametrize("vector", VALID, ids=str)
def test_a_valid_vector_is_built_again_byte_for_byte(vector: Vector) -> None:
    codec = CODECS[vector.dialect]
    assert codec.build(codec.decode(vector.datagram)) == vector.datagram


@pytest.mark.parametrize("vector", ALL, ids=str)
def test_a_cut_capture_says_where_the_datagram_was_cut(vector: Vector) -> None:
    message = CODECS[vector.dialect].decode(vector.datagram, length=len(vector.datagram) + 1)
    assert (str(message.error), message.error_offset) == ("cut", len(vector.datagram))
    assert message.length == len(vector.datagram) + 1


@pytest.mark.parametrize("name", [*builtin_names(), *own_dialect_names()])
def test_the_vectors_cover_every_message_and_every_form(name: str) -> None:
    valid = [vector for vector in VALID if vector.dialect == name]
    assert {vector.message for vector in valid} == set(dialect_of(name).messages)
    assert {vector.form for vector in valid} == {form.name for form in dialect_of(name).forms}


@pytest.mark.parametrize("name", [*builtin_names(), *own_dialect_names()])
def test_the_vectors_of_a_dialect_have_names_of_their_own(name: str) -> None:
    names = [vector.what for vector in ALL if vector.dialect == name]
    assert len(names) == len(set(names)) > 0
