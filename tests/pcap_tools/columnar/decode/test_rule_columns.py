"""The columns that rules need besides those of `decode`: by hand, then against the truth of the scalar decoder.

The keys below were worked out from the definition of FNV-1a, by other code than that which is judged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pcap_tools.codec import Codec
from pcap_tools.codec.answer_key import answer_key, fnv1a, request_key_of, subscriber_port, topic_number
from pcap_tools.columnar.decode.decoder import Decoder
from pcap_tools.columnar.decode.schema import ALL_COLUMNS, ALL_MESSAGES, COLUMNS, MESSAGES
from pcap_tools.dialect import Dialect, builtin_names
from pcap_tools.dialect.load import parse_dialect
from tests.pcap_tools.columnar.batches import batch_of, datagrams_for, datagrams_of
from tests.vectors import dialect_of, load_vectors, own_dialect_names

from .test_decoder import learned

NAMES = [*builtin_names(), *own_dialect_names()]
KEYS = ["key", "number", "port"]
ROLES = ["code", "accepted", "qos", "dup"]
NOTHING_HASHED = 0x4BF29CE484222325
TEMP_HASHED = 0x7A4CF6EF19D2F987

# dialect, datagram, key, number, port
BY_HAND: list[tuple[str, str, int | None, int | None, int | None]] = [
    ("colon", "01 00 613a62", None, None, None),
    ("colon", "02", None, None, None),
    ("topicnumber", "05 07 00000002 3231", 0x16EA6E75B7CC02E5, 2, None),
    ("topicnumber", "05 07 00000002 3231" + 1392 * "00", 0x16EA6E75B7CC02E5, 2, None),
    ("topicnumber", "00 07 00000002 3231" + 40 * "00", 0x16EA6E75B7CC02E5, 2, None),
    ("topicnumber", "00 07 00000002 3232", 0x16EA6B75B7CBFDCC, 2, None),
    ("topicnumber", "04 00 00000000", 0x64BC4FD9252BE94F, 0, None),
    ("topicnumber", "09 07 00000002 3231", None, None, None),  # no such type
    ("mqttsn", "09 0a 0005 0102 612f62", 258, 5, None),  # REGISTER
    ("mqttsn", "07 0b 0005 0102 00", 258, 5, None),
    ("mqttsn", "09 0c 20 0005 0007 6869", 7, 5, None),  # PUBLISH, short and long form
    ("mqttsn", "01 000b 0c 20 0005 0007 6869", 7, 5, None),
    ("mqttsn", "09 0c 22 6162 0007 6869", 7, None, None),  # to a short topic
    ("mqttsn", "07 0d 0005 0007 00", 7, 5, None),  # PUBACK
    ("mqttsn", "07 0d 0005 0007 09", None, None, None),  # with a return code that there is not
    ("mqttsn", "07 04 04 01 003c 63", None, None, None),  # CONNECT
    ("portdigits", "3132333436 30 3031", None, None, 12346),
    ("portdigits", "0102030406 00 0001 aced000577 0d 000b 7375627363726962696e67", None, None, 12346),
    ("portdigits", "3939393939 30 3031", None, None, 99999),
    ("portdigits", "3132333436 30 3030 78", None, None, None),  # no such topic
    ("nestedack", "50 30303031 3034 74656d70 3231", 0x3E4A84A7B4263707, None, None),
    ("nestedack", "41434b 5030303031303474656d703231", 0x3E4A84A7B4263707, None, None),
    ("nestedack", "41434b 5030303031303474656d703232", 0x3E4A85A7B42638BA, None, None),
    ("nestedack", "41434b", NOTHING_HASHED, None, None),
    ("nibbles_of_an_echo", "1c 4d c5 03 6869", 0x2DA1B41C01F972C3, None, None),  # c5 6869 is repeated
    ("nibbles_of_an_echo", "f3 4d c5 03 6869", 0x2DA1B41C01F972C3, None, None),
    ("wide", "01 74656d70 ffffffffffffffff 7fffffff 78", TEMP_HASHED, -1, (1 << 31) - 1),
    ("wide", "02 74656d70 0000000000000001 80000000 78", TEMP_HASHED, 1, None),
    ("wide", "03", None, None, None),
    ("absent", "01 05 0006 0007", 5, 6, 7),
    ("absent", "01 05", 5, None, None),
    ("absent", "01", None, None, None),
    ("boxed", "01 74656d70", 0x4277271F6904E7FA, None, None),
    ("boxed", "02 05 0174656d70", 0x4277271F6904E7FA, None, None),
]

# dialect, datagram, code, accepted, qos, dup
ROLES_BY_HAND: list[tuple[str, str, int | None, bool | None, int | None, bool | None]] = [
    ("mqttsn", "03 05 00", 0, True, None, None),  # CONNACK
    ("mqttsn", "03 05 01", 1, False, None, None),  # congestion
    ("mqttsn", "01 0005 05 00", 0, True, None, None),  # in the long form
    ("mqttsn", "08 13 60 0001 0002 02", 2, False, -1, False),  # SUBACK: no such topic
    ("mqttsn", "08 13 20 0001 0002 00", 0, True, 1, False),
    ("mqttsn", "07 0b 0005 0102 03", 3, False, None, None),  # REGACK: not supported
    ("mqttsn", "07 0d 0005 0007 09", 9, False, None, None),  # PUBACK with a code that there is not: an error
    ("mqttsn", "06 0d 0005 0007", None, None, None, None),  # PUBACK that ends before it
    ("mqttsn", "09 0c a0 0005 0007 6869", None, None, 1, True),  # PUBLISH that is sent again
    ("mqttsn", "09 0c 20 0005 0007 6869", None, None, 1, False),
    ("mqttsn", "09 0c 62 6869 0000 6869", None, None, -1, False),
    ("mqttsn", "09 0c 40 0005 0007 6869", None, None, 2, False),
    ("mqttsn", "01 000b 0c 80 0005 0000 6869", None, None, 0, True),
    ("mqttsn", "09 0c 23 0005 0007 6869", None, None, 1, False),  # with a kind of topic that there is not
    ("mqttsn", "03 1b 00", 0, True, None, None),  # WILLTOPICRESP
    ("mqttsn", "03 1d 02", 2, False, None, None),  # WILLMSGRESP
    ("mqttsn", "04 0e 0007", None, None, None, None),  # PUBCOMP
    ("rolebyte", "07 0a", 10, True, None, None),
    ("rolebyte", "07 0b", 11, False, None, None),
    ("rolebyte", "07", None, None, None, None),
    ("lengthorcode", "7f 00", 0, True, None, None),
    ("lengthorcode", "7f 02", 2, False, None, None),
    ("lengthorcode", "10 03 613d62", None, None, None, None),  # there it is a length
    ("colon", "02", None, None, None, None),
    ("answers", "01 ffffffffffffffff 07 00000000", -1, True, 7, False),
    ("answers", "01 fffffffffffffffe 01 00000000", -2, False, 1, False),
    ("answers", "01 0000000000000000 02 00000100", 0, False, 100, True),
    ("answers", "02 05 ff", -1, None, 5, None),
    ("answers", "02 05", None, None, 5, None),
    ("answers", "03 80000000 05", None, None, None, True),
    ("answers", "04 ffffffffffffffff", None, None, None, None),  # not an answer
    ("answers", "03 7fffffff", None, None, (1 << 31) - 1, None),
]

OWN = {
    "answers": """
        header = ["type"]
        fields.type   = { kind = "uint", size = 1 }
        fields.code   = { kind = "uint", size = 8, accepted = [0xFFFFFFFFFFFFFFF, 18446744073709551615] }
        fields.status = { kind = "int", size = 1 }
        fields.qos    = { kind = "uint", size = 1, values = { "100" = 2, "exactly once" = 1 }, open = true }
        fields.level  = { kind = "uint", size = 4 }
        fields.dup    = { kind = "uint", size = 4, order = "little" }
        fields.again  = { kind = "digits", size = 1, coding = "binary" }
        messages.ACK     = { when = { type = 1 }, layout = ["code", "qos", "dup"], means = "ack", acks = "any" }
        messages.TALK    = { when = { type = 4 }, layout = ["code"] }
        [messages.STATUS]
        when = { type = 2 }
        layout = ["qos", "status"]
        optional_from = "status"
        means = "status"
        code = "status"
        [messages.PUBLISH]
        when = { type = 3 }
        layout = ["level", "again"]
        optional_from = "again"
        means = "publish"
        qos = "level"
        dup = "again"
        """,
    "nibbles_of_an_echo": """
        header = ["type", "flag", "mark", "low", "high", "length", "text"]
        fields.type   = { kind = "uint", bits = 4 }
        fields.flag   = { kind = "uint", bits = 4 }
        fields.mark   = { kind = "magic", hex = "4d" }
        fields.low    = { kind = "uint", bits = 4 }
        fields.high   = { kind = "uint", bits = 4 }
        fields.length = { kind = "uint", size = 1, counts = ["length", "text"] }
        fields.text   = { kind = "text" }
        messages.PUBLISH = { when = { type = 1 }, means = "publish" }
        messages.ACK     = { when = { type = 15 }, means = "ack", acks = "any", acks_by = "echo" }""",
    "wide": """
        header = ["type", "id", "number", "port", "text"]
        fields.type   = { kind = "uint", size = 1 }
        fields.id     = { kind = "text", size = 4 }
        fields.number = { kind = "uint", size = 8 }
        fields.port   = { kind = "uint", size = 4 }
        fields.text   = { kind = "text" }
        messages.PUBLISH = { when = { type = 1 }, means = "publish" }
        messages.ACK     = { when = { type = 2 }, means = "ack", acks = "any", acks_by = "id" }
        messages.PING    = { when = { type = 3 }, header = false, layout = ["type"] }
        topics = { kind = "number", number = "number" }
        broker = { subscriber_port = "port" }""",
    "absent": """
        header = ["type", "id", "number", "port"]
        fields.type   = { kind = "uint", size = 1 }
        fields.id     = { kind = "uint", size = 1 }
        fields.number = { kind = "uint", size = 2 }
        fields.port   = { kind = "uint", size = 2 }
        messages.PUBLISH = { when = { type = 1 }, means = "publish", optional_from = "id" }
        messages.ACK     = { when = { type = 2 }, means = "ack", acks = "any", acks_by = "id" }
        topics = { kind = "number", number = "number" }
        broker = { subscriber_port = "port" }""",
    "boxed": """
        header = ["type"]
        fields.type = { kind = "uint", size = 1 }
        fields.text = { kind = "text" }
        fields.copy = { kind = "bytes", prefix = "u8" }
        messages.PUBLISH = { when = { type = 1 }, layout = ["text"], means = "publish" }
        messages.ACK     = { when = { type = 2 }, layout = ["copy"], means = "ack", acks = "any", acks_by = "copy" }""",
}  # fmt: skip


def dialect_named(name: str) -> Dialect:
    if name not in OWN:
        return dialect_of(name)
    return parse_dialect(f'name = "{name}"\ntitle = "for one test"\nports = {{ broker = [41000] }}\n{OWN[name]}')


def truth(dialect: Dialect, payload: bytes, length: int | None = None) -> dict[str, int | None]:
    message = Codec(dialect).decode(payload, length)
    values = answer_key(dialect, message, payload), topic_number(dialect, message), subscriber_port(dialect, message)
    return dict(zip(KEYS, values, strict=True))


def roles(dialect: Dialect, payload: bytes, length: int | None = None) -> dict[str, int | None]:
    message = Codec(dialect).decode(payload, length)
    return {name: getattr(message, name) for name in ROLES}


def columns(dialect: Dialect, batch: Any, names: list[str] = KEYS) -> list[dict[str, int | None]]:
    decoded = Decoder([dialect], columns=names).decode(batch)
    decoded.validate(full=True)
    rows: list[dict[str, int | None]] = decoded.to_pylist()
    return rows


@pytest.mark.parametrize(("name", "datagram", "key", "number", "port"), BY_HAND)
def test_by_hand(name: str, datagram: str, key: int | None, number: int | None, port: int | None) -> None:
    payload, dialect = bytes.fromhex(datagram), dialect_named(name)
    assert truth(dialect, payload) == {"key": key, "number": number, "port": port}
    assert columns(dialect, batch_of([payload])) == [{"key": key, "number": number, "port": port}]


@pytest.mark.parametrize(("name", "datagram", "code", "accepted", "qos", "dup"), ROLES_BY_HAND)
def test_codes_and_flags_by_hand(
    name: str, datagram: str, code: int | None, accepted: bool | None, qos: int | None, dup: bool | None
) -> None:
    payload, dialect = bytes.fromhex(datagram), dialect_named(name)
    want = {"code": code, "accepted": accepted, "qos": qos, "dup": dup}
    assert roles(dialect, payload) == want
    assert columns(dialect, batch_of([payload]), ROLES) == [want]
    for column in ROLES:
        assert columns(dialect, batch_of([payload]), [column]) == [{column: want[column]}]


@pytest.mark.parametrize(
    ("text", "value"), [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)]
)
def test_the_hash_is_fnv_1a_as_published_but_for_the_highest_bit(text: bytes, value: int) -> None:
    assert fnv1a(text) == value % (1 << 63)


def test_no_dialect_has_two_ways_to_tie() -> None:
    """Only the first would count."""
    for name in NAMES:
        messages = dialect_of(name).spec.messages.values()
        ways = {one.acks_by for variants in messages for one in variants if one.acks} - {"order"}
        found = request_key_of(dialect_of(name))
        assert ways == ({found.by} if found else set()), name


@pytest.mark.parametrize("name", NAMES)
def test_fuzz_columns_are_those_of_the_truth(name: str) -> None:
    dialect = dialect_of(name)
    payloads = [vector.datagram for vector in load_vectors() if vector.dialect == name]
    payloads += datagrams_for(dialect, 1_000, 3)
    batch = batch_of(payloads, missing=[9 * (row % 7 == 6) for row in range(len(payloads))])
    rows = [(datagram.payload, datagram.length) for datagram in datagrams_of(batch)]
    want = [truth(dialect, *row) for row in rows]
    assert columns(dialect, batch) == want
    assert columns(dialect, batch, ROLES) == [roles(dialect, *row) for row in rows]
    assert columns(dialect, batch, [*KEYS, *ROLES]) == [truth(dialect, *row) | roles(dialect, *row) for row in rows]
    said = {column for row in want for column, value in row.items() if value is not None}
    spec = dialect.spec
    asked = (request_key_of(dialect), spec.topics.number, spec.broker.subscriber_port)
    assert said == {column for column, there in zip(KEYS, asked, strict=True) if there}


@pytest.mark.parametrize(
    "wanted",
    [["key"], ["number", "ip_id"], ["port", "frame"], ["ip_id"], ["code"], ["accepted", "frame"], ["dup", "qos"]],
)
def test_a_column_is_the_same_alone(wanted: list[str]) -> None:
    dialect = dialect_of("mqttsn")
    batch = batch_of(list(datagrams_for(dialect, 300, 5)))
    everything = Decoder([dialect], columns=ALL_COLUMNS, plain=True).decode(batch)
    alone = Decoder([dialect], columns=wanted, plain=True).decode(batch)
    assert everything.schema == ALL_MESSAGES
    assert alone == everything.select(alone.schema.names)


def test_who_asks_for_no_columns_gets_those_of_messages() -> None:
    assert Decoder([dialect_of("mqttsn")], plain=True).schema == MESSAGES
    assert list(ALL_COLUMNS) == [*COLUMNS, "key", "number", "port", "ip_id", *ROLES]


def test_several_dialects_and_datagrams_of_none() -> None:
    detector, batch = learned()
    known = [codec.dialect for codec in detector.codecs.values()]
    found = Decoder(known, detector.routes(), [*KEYS, "dialect"], plain=True, keep_other=True).decode(batch)  # type: ignore[arg-type]
    nothing = dict.fromkeys(KEYS)
    want = []
    for datagram in datagrams_of(batch):  # type: ignore[arg-type]
        codec = detector.codec_for(datagram)
        said = truth(codec.dialect, datagram.payload) if codec else nothing
        want.append({"dialect": codec.dialect.name if codec else None, **said})
    assert found.to_pylist() == want
    assert {row["key"] for row in want if row["dialect"] == "mqttsn"} > {1}


def test_ip_id_is_that_of_the_batch_and_null_for_ipv6() -> None:
    batch = batch_of([b"\x02"] * 4)
    batch.ip_id = np.array([0, 65535, -1, 7], np.int32)
    decoded = Decoder([dialect_of("colon")], columns=["ip_id"]).decode(batch)
    assert decoded.to_pylist() == [{"ip_id": 0}, {"ip_id": 65535}, {"ip_id": None}, {"ip_id": 7}]
