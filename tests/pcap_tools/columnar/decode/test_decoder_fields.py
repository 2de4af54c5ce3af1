"""Every field, error, offset, padding and form is what the codec says: vectors, generated and damaged datagrams.

`make fuzz` runs this with a million datagrams, all dialects together.
"""

from __future__ import annotations

import os

import pytest

from pcap_tools.codec import Codec
from pcap_tools.codec.decoding import Row
from pcap_tools.codec.message import Message
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.fields import RawField, RawResult, decode_fields
from pcap_tools.dialect import Dialect, builtin_names
from tests.pcap_tools.codec.strategies import codec_of
from tests.pcap_tools.columnar.batches import batch_of, datagrams_for, datagrams_of
from tests.vectors import Vector, load_vectors, own_dialect_names

NAMES = [*builtin_names(), *own_dialect_names()]
COUNT = int(os.environ.get("TOPICSHARK_FUZZ", str(2_000 * len(NAMES)))) // len(NAMES)
BATCH = 2_000
CODES = ("code", "accepted", "qos", "dup")


@pytest.mark.parametrize("vector", load_vectors(), ids=str)
def test_a_vector_is_decoded_as_it_says(vector: Vector) -> None:
    dialect, batch = codec_of(vector.dialect).dialect, batch_of([vector.datagram])
    (result,) = decode_fields(dialect, batch)
    assert (result.form, result.error, result.error_offset) == (vector.form, vector.error, vector.error_offset)
    assert {name: field.value for name, field in result.fields.items()} == vector.fields
    assert result.padding == vector.padding
    assert (result.layout.message if result.layout else None) == vector.message
    (codes,) = Decoder([dialect], columns=CODES).decode(batch).to_pylist()
    assert codes == {name: getattr(vector, name) for name in CODES}
    _compare(dialect, [vector.datagram])


@pytest.mark.parametrize("name", NAMES)
def test_fuzz_every_field_and_column_is_that_of_the_codec(name: str) -> None:
    dialect = codec_of(name).dialect
    for seed, first in enumerate(range(0, COUNT, BATCH)):
        _compare(dialect, list(datagrams_for(dialect, min(BATCH, COUNT - first), seed)))


def _compare(dialect: Dialect, payloads: list[bytes]) -> None:
    """By the walk every field, and by the plans every column; every seventh datagram is cut by the capture."""
    codec = Codec(dialect)
    batch = batch_of(payloads, missing=[9 * (row % 7 == 6) for row in range(len(payloads))])
    rows = Decoder([dialect], plain=True).decode(batch).to_pylist()
    results = decode_fields(dialect, batch)
    for datagram, row, result in zip(datagrams_of(batch), rows, results, strict=True):
        message = codec.decode(datagram.payload, datagram.length)
        assert result == _raw(message), datagram.payload.hex()
        expected = Row(datagram, message).as_dict()
        del expected["fields"]
        assert row == {"capture": None, **expected}, datagram.payload.hex()


def _raw(message: Message) -> RawResult:
    fields = {name: RawField(*message.ranges[name], value) for name, value in message.fields.items()}
    return RawResult(message.form, message.layout, message.error, message.error_offset, message.padding, fields)
