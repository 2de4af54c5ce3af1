"""The columnar decoder as its callers use it: columns and types, which datagrams are rows, routes, reuse of batches."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pcap_tools.capture import CaptureWriter
from pcap_tools.codec import Codec
from pcap_tools.codec.decoding import Row
from pcap_tools.codec.detect import Detector
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.schema import COLUMNS, MESSAGES
from pcap_tools.columnar.read.reading import read_file
from pcap_tools.dialect import builtin_names, load_dialect
from pcap_tools.errors import UsageError
from tests.dissector.tshark import RAW_IP, udp_packet
from tests.pcap_tools.columnar.batches import batch_of, datagrams_of

COLON, MQTTSN = load_dialect("colon"), load_dialect("mqttsn")
PAYLOADS = [
    b"\x01\x01home/fan:ON",
    b"\x02",
    b"\x03\x00home/*",
    b"\x01\x00a:b" + bytes(40),
    b"\x01\x07a:b",
    b"\x09",
    b"",
    "\x01\x00k\u00fcche:21\u00b0".encode(),
    b"\x05\x00home/\xff",
]


def expected(batch: object, capture: str | None = None) -> list[dict[str, object]]:
    codec = Codec(COLON)
    rows = [Row(d, codec.decode(d.payload, d.length)).as_dict() for d in datagrams_of(batch)]  # type: ignore[arg-type]
    return [{"capture": capture} | {name: row[name] for name in COLUMNS[1:]} for row in rows]


def test_plain_types_are_exactly_those_of_messages() -> None:
    batch = batch_of(PAYLOADS)
    decoded = Decoder([COLON], plain=True, capture="a.pcap").decode(batch)
    decoded.validate(full=True)
    assert decoded.schema == MESSAGES
    assert decoded.to_pylist() == expected(batch, "a.pcap")


def test_columns_of_few_values_are_dictionaries_with_the_same_values() -> None:
    batch = batch_of(PAYLOADS)
    decoded = Decoder([COLON], capture="a.pcap").decode(batch)
    decoded.validate(full=True)
    assert decoded.to_pylist() == expected(batch, "a.pcap")
    coded = [field.name for field in decoded.schema if pa.types.is_dictionary(field.type)]
    assert coded == ["capture", "src", "dst", "dialect", "form", "message", "meaning", "error"]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("columns", [["payload", "frame"], ["error"], ["copy_of", "retain", "src"], []])
def test_only_the_wanted_columns_are_there_in_the_order_of_the_schema(columns: list[str], plain: bool) -> None:
    batch = batch_of(PAYLOADS)
    decoded = Decoder([COLON], columns=columns, plain=plain).decode(batch)
    assert decoded.schema.names == [name for name in COLUMNS if name in columns]
    if columns:
        assert decoded.to_pylist() == [{name: row[name] for name in decoded.schema.names} for row in expected(batch)]


def test_an_empty_batch_has_no_rows() -> None:
    assert Decoder([COLON]).decode(batch_of([])).num_rows == 0
    assert Decoder([COLON], plain=True).decode(batch_of([])).schema == MESSAGES


def test_results_stay_when_the_buffer_is_filled_again() -> None:
    decoder, batch = Decoder([COLON]), batch_of(PAYLOADS)
    first = decoder.decode(batch)
    before = first.to_pylist()
    second = batch_of(PAYLOADS[::-1])
    second.addresses = batch.addresses
    batch.buffer[:] = 0
    batch.addresses.append("10.9.9.9")
    decoder.decode(second)
    assert first.to_pylist() == before


def test_results_of_a_reading_stay_when_it_goes_on(tmp_path: Path) -> None:
    """A reading fills one buffer again and again, but each batch has arrays of its own."""
    with CaptureWriter(tmp_path / "run.pcap", link_type=RAW_IP) as out:
        for number in range(40):
            out.write(udp_packet(b"\x01\x00t:%d" % number, ("10.0.0.1", 50000), ("10.0.0.2", 50000)), number)
    decoder = Decoder([COLON], columns=["frame", "time_ns", "payload"])
    batches = [decoder.decode(batch) for batch in read_file(tmp_path / "run.pcap", rows=8)]
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert len(batches) == 5
    assert rows == [(number + 1, number, str(number)) for number in range(40)]


def test_rows_behind_count_are_not_looked_at() -> None:
    batch = batch_of(PAYLOADS)
    batch.count = 3
    assert Decoder([COLON], plain=True).decode(batch).to_pylist() == expected(batch)


def test_texts_of_any_amount_have_room() -> None:
    """More than is set aside at first: plain, escaped at four bytes for one, numbers and words."""
    payloads = [b"\x01\x00t:" + bytes([number % 251 + 1]) * 65_000 for number in range(40)]
    (texts,) = Decoder([COLON], columns=["payload"]).decode(batch_of(payloads)).columns
    assert texts.to_pylist() == [row["payload"] for row in expected(batch_of(payloads))]
    numbers = [b"\x07\x0c\x00" + (60_000 + row % 5_000).to_bytes(2, "big") + b"\0\0" for row in range(40_000)]
    (topics,) = Decoder([MQTTSN], columns=["topic"]).decode(batch_of(numbers)).columns
    assert topics.to_pylist() == [str(60_000 + row % 5_000) for row in range(40_000)]
    decoder, words = Decoder([COLON], columns=["message", "src"], plain=True), [b"\x05\x00x"] * 30_000
    assert set(decoder.decode(batch_of(words)).column("message").to_pylist()) == {"UNSUBSCRIBE"}


def test_addresses_that_come_later_are_known() -> None:
    decoder, batch = Decoder([COLON], columns=["src"]), batch_of(PAYLOADS[:2])
    decoder.decode(batch)
    batch.addresses.append("192.0.2.1")
    batch.src[:] = 3
    assert decoder.decode(batch).to_pylist() == [{"src": "192.0.2.1"}] * 2


# -- which dialect --------------------------------------------------------------------------------------------------


MIXED = [
    (b"\x01\x00home/fan:ON", (50000, 50000)),
    (b"\x02", (50000, 50000)),
    (b"\x05\x0d\x00\x01\x00", (1883, 40000)),
    (b"\x09\x0c\x00\x00\x01\x00\x01hi", (40000, 1883)),
    (b"\x12\x34\x01\x00\x00\x01", (40001, 53)),
    (b"\x12\x34\x01\x00\x00\x01", (53, 50000)),
    (b"anything", (40002, 40003)),
    (b"\x03\x00home/*", (41000, 50000)),
    (b"\x01\x00elsewhere/x:1", (61000, 61001)),
    (b"\x03\x00elsewhere/*", (61002, 61001)),
] * 6


def learned(named: bool = False) -> tuple[Detector, object]:
    batch = batch_of([payload for payload, _ in MIXED], ports=[ports for _, ports in MIXED])
    detector = Detector([load_dialect(name) for name in builtin_names()], named)
    for datagram in list(datagrams_of(batch))[:30]:
        detector.learn(datagram)
    detector.decide()
    return detector, batch


@pytest.mark.parametrize("named", [False, True])
def test_each_datagram_is_in_the_dialect_that_the_detector_says(named: bool) -> None:
    detector, batch = learned(named)
    dialects = [codec.dialect for codec in detector.codecs.values()]
    routes = pickle.loads(pickle.dumps(detector.routes()))  # noqa: S301 - what was just written
    decoder = Decoder(dialects, routes, plain=True, keep_other=True)
    codecs = [(datagram, detector.codec_for(datagram)) for datagram in datagrams_of(batch)]  # type: ignore[arg-type]
    rows = [Row(d, codec.decode(d.payload, d.length) if codec else None).as_dict() for d, codec in codecs]
    want = [{"capture": None} | {name: row[name] for name in COLUMNS[1:]} for row in rows]
    assert decoder.decode(batch).to_pylist() == want  # type: ignore[arg-type]
    assert {row["dialect"] for row in want} >= {"colon", "mqttsn", None}
    decoded = sum(codec is not None for _, codec in codecs)
    assert (decoder.decoded, decoder.other) == (decoded, len(codecs) - decoded)


def test_datagrams_of_no_known_dialect_are_left_out_and_counted() -> None:
    detector, batch = learned()
    decoder = Decoder([codec.dialect for codec in detector.codecs.values()], detector.routes(), plain=True)
    known = [d.frame for d in datagrams_of(batch) if detector.codec_for(d)]  # type: ignore[arg-type]
    assert decoder.decode(batch).column("frame").to_pylist() == known  # type: ignore[arg-type]
    assert (decoder.decoded, decoder.other) == (len(known), len(MIXED) - len(known))


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UsageError, match="no column 'topics'"):
        Decoder([COLON], columns=["topics"])
    with pytest.raises(UsageError, match="routes"):
        Decoder([COLON, MQTTSN])
    with pytest.raises(UsageError, match="name of its own"):
        Decoder([COLON, COLON], Detector([COLON]).routes())
    detector, _ = learned()
    with pytest.raises(UsageError, match="not given"):
        Decoder([MQTTSN], detector.routes())
