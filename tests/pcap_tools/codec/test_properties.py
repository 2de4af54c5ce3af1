"""What holds for every dialect and every datagram: decoding never fails, and building is its inverse."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pcap_tools.codec.message import Message, WireError
from pcap_tools.codec.walk import Walk
from pcap_tools.dialect.program import Counts, Dialect, Form, Kind, Step
from pcap_tools.errors import UsageError

from .strategies import NAMES, codec_of, datagrams, messages

every_dialect = pytest.mark.parametrize("name", NAMES)
some = settings(
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

REPLACEABLE = (Kind.UINT, Kind.INT, Kind.DIGITS, Kind.MAGIC)  # bits share their bytes with others


def _steps(message: Message) -> list[Step]:
    return [step for step in (message.layout.steps if message.layout else ()) if step.name in message.fields]


def _all_steps(name: str) -> list[Step]:
    return [step for form in codec_of(name).dialect.forms for layout in form.layouts for step in layout.steps]


def _has(name: str, *kinds: Kind) -> bool:
    return any(step.kind in kinds for step in _all_steps(name))


def _has_length(name: str) -> bool:
    return any(step.counts is not Counts.NOTHING for step in _all_steps(name))


@every_dialect
@some
@given(data=st.data())
def test_decoding_never_raises_and_its_offsets_lie_in_the_datagram(name: str, data: st.DataObject) -> None:
    datagram = data.draw(datagrams(name))
    message = codec_of(name).decode(datagram)
    assert (message.error is None) == (message.error_offset is None)
    assert 0 <= (message.error_offset or 0) <= len(datagram)
    assert message.message is not None or message.error is not None
    assert 0 <= message.padding <= len(datagram)
    assert message.fields.keys() == message.ranges.keys()
    assert all(0 <= start <= end <= len(datagram) for start, end in message.ranges.values())


@every_dialect
@some
@given(data=st.data())
def test_choosing_form_and_message_is_what_the_page_says(name: str, data: st.DataObject) -> None:
    """docs/decoding.md, "Choosing form and message", without the codec's short cuts."""
    codec, datagram = codec_of(name), data.draw(datagrams(name))
    message = codec.decode(datagram)
    form, walk = _choose(codec.dialect, datagram)
    assert message.form == form.name
    assert message.message == (walk.layout.message if walk and walk.selected else None)
    assert message.fields == (walk.fields if walk else {})
    assert message.error == (walk.error if walk else WireError.EMPTY)
    assert codec.decode_if_valid(datagram) == (message if message.error is None else None)


def _choose(dialect: Dialect, datagram: bytes) -> tuple[Form, Walk | None]:
    if not datagram:
        return dialect.forms[0], None
    results = []
    for form in dialect.forms:
        walks = [Walk(layout, datagram, form.nul_padding) for layout in form.layouts]
        selected = [walk for walk in walks if walk.selected]
        result = selected[0] if selected else max(walks, key=lambda walk: walk.error_offset)
        if result.error is None:
            return form, result
        results.append((form, result))
    return max(results, key=lambda pair: (pair[1].selected, pair[1].error_offset))


@every_dialect
@some
@given(data=st.data())
def test_what_decodes_without_error_is_built_again_byte_for_byte(name: str, data: st.DataObject) -> None:
    codec, datagram = codec_of(name), data.draw(datagrams(name))
    message = codec.decode(datagram)
    assume(message.error is None)
    assert codec.build(message) == datagram


@every_dialect
@some
@given(data=st.data())
def test_what_is_built_decodes_to_the_same_message(name: str, data: st.DataObject) -> None:
    codec, message = codec_of(name), data.draw(messages(name))
    before = deepcopy(message.fields)
    datagram = codec.build(message)
    assert codec.decode(datagram) == message
    assert codec.build(codec.decode(datagram)) == datagram
    assert message.fields == before


# -- invalid on purpose ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in NAMES if _has(name, *REPLACEABLE)])
@some
@given(data=st.data())
def test_any_bytes_can_be_put_in_the_place_of_a_number_or_a_constant(name: str, data: st.DataObject) -> None:
    codec, message = codec_of(name), data.draw(messages(name))
    replaceable = [step.name for step in _steps(message) if step.kind in REPLACEABLE]
    assume(replaceable)
    field, raw = data.draw(st.sampled_from(replaceable)), data.draw(st.binary(max_size=9))
    assume(raw != message.fields[field])
    valid = codec.build(message)
    start, end = codec.decode(valid).ranges[field]
    message.fields[field] = raw
    assert codec.build(message, check=False) == valid[:start] + raw + valid[end:]
    with pytest.raises(UsageError):
        codec.build(message)


@pytest.mark.parametrize("name", [name for name in NAMES if _has_length(name)])
@some
@given(data=st.data())
def test_a_wrong_length_is_written_as_it_is_given(name: str, data: st.DataObject) -> None:
    codec, message = codec_of(name), data.draw(messages(name))
    lengths = [step.name for step in _steps(message) if step.counts is not Counts.NOTHING]
    assume(lengths)
    field, wrong = data.draw(st.sampled_from(lengths)), data.draw(st.integers(0, 255))
    assume(wrong != message.fields[field])
    valid = codec.build(message)
    start, end = codec.decode(valid).ranges[field]
    message.fields[field] = wrong
    built = codec.build(message, check=False)
    behind = len(built) - len(valid[end:])  # a length may have another size
    assert (built[:start], built[behind:]) == (valid[:start], valid[end:])
    assert built[start:behind] != valid[start:end]


@pytest.mark.parametrize(
    ("dialect", "name", "fields", "wrong", "expected"),
    [
        ("colon", "PUBLISH", {"topic": "a", "payload": "b"}, {"type": 9}, "09 00 61 3a 62"),
        ("colon", "PUBLISH", {"topic": "a", "payload": "b"}, {"retain": 7}, "01 07 61 3a 62"),
        ("colon", "PUBLISH", {"topic": "a", "payload": "b"}, {"topic": b"a:\xff"}, "01 00 613aff 3a 62"),
        ("rolebyte", "SENSOR_PUBLISH", {"topic": "a", "value": "1"}, {"length": 200}, "03 c8 61 20 31"),
        ("rolebyte", "SENSOR_PUBLISH", {"topic": "a", "value": "1"}, {"length": b""}, "03 61 20 31"),
        ("rolebyte", "ACK", {}, {"code": 300}, "07 2c"),
        ("mqttsn", "PINGRESP", {}, {"length": 0, "type": 0x03}, "00 03"),
        ("mqttsn", "CONNACK", {"return_code": 0}, {"return_code": b"\x00\x00"}, "03 05 0000"),
        ("mqttsn", "SUBSCRIBE", {"topic_name": "a"}, {"topic_id_type": 7}, "06 12 03 0000 61"),
        ("magicbyte", "ACK", {}, {"magic": b"\x5a"}, "5a 41"),
        ("littlesigned", "ACK", {"id": 1}, {"id": -(1 << 31) - 1}, "ffff ffffff7f"),
        ("nestedack", "SUBSCRIBE", {"topic": "t"}, {"number": 12345}, "53 32333435 3031 74"),
        ("nestedack", "SUBSCRIBE", {"topic": "t"}, {"topic": b"t" * 101}, "53 30303030 3031" + "74" * 101),
        ("bitgroups", "SUBSCRIBE", {"node": b"node01"}, {"node": b"no"}, "23 00 0000 6e6f 00"),
    ],
)
def test_an_invalid_message_is_built_only_on_purpose(
    dialect: str, name: str, fields: dict[str, Any], wrong: dict[str, int | bytes], expected: str
) -> None:
    codec = codec_of(dialect)
    message = codec.message(name, **fields)
    message.fields.update(wrong)
    assert codec.build(message, check=False) == bytes.fromhex(expected)
    with pytest.raises(UsageError):
        codec.build(message)
