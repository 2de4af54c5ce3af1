"""Captures of running systems: no error, no invented message, copies and padding told apart."""

from pathlib import Path

from pcap_tools.codec.decoding import Notes, Row, decode_capture


def decoded(capture: Path) -> list[Row]:
    notes = Notes()
    rows = list(decode_capture(capture, notes=notes))
    assert notes.damage == []
    assert notes.other == 0
    assert all(row.message is not None and row.message.error is None for row in rows)
    return rows


def test_colon_every_frame_twice(shared_captures: Path) -> None:
    rows = decoded(shared_captures / "colon-clean.pcap")
    originals = [row for row in rows if row.datagram.copy_of is None]
    copies = {row.datagram.frame: row.datagram.copy_of for row in rows if row.datagram.copy_of is not None}
    assert copies == {frame + 1: frame for frame in range(1, 32, 2)}
    said = [(m.message, m.topic or m.filter, m.payload, m.retain) for row in originals if (m := row.message)]
    assert said == [
        ("PUBLISH", b"temp", b"12C", False),
        ("PUBACK", None, None, None),
        ("SUBSCRIBE", b"temperature", None, False),
        ("SUBACK", None, None, None),
        ("PUBLISH", b"temperature", b"13C", True),
        ("PUBLISH", b"temperature", b"13C", True),
        ("PUBACK", None, None, None),
        ("SUBSCRIBE", b"home/*", None, False),
        ("SUBACK", None, None, None),
        ("PUBLISH", b"home/room/light", b"ON", False),
        ("PUBLISH", b"home/room/light", b"ON", False),
        ("PUBACK", None, None, None),
        ("PUBLISH", b"unsub", b"temperature", False),  # a slip of the user's: typed at the publisher
        ("PUBACK", None, None, None),
        ("UNSUBSCRIBE", b"temperature", None, False),
        ("UNSUBACK", None, None, None),
    ]


def test_topicbyte_inside_java_blocks(shared_captures: Path) -> None:
    rows = decoded(shared_captures / "topicbyte.pcap")
    said = [(m.form, m.message, m.topic or m.filter, m.payload) for row in rows if (m := row.message)]
    assert said == [
        ("java", "SUB", b"temperature", None),
        ("java", "ACK", None, None),
        ("java", "MESSAGE", b"temperature", b"Temperature:0"),
        ("java", "ACK", None, None),
        ("java", "MESSAGE", b"temperature", b"Temperature:0"),
        ("java", "MESSAGE", b"humidity", b"Humidity:38"),
        ("java", "ACK", None, None),
    ]


def test_portdigits_reassembled_with_padding_apart(shared_captures: Path) -> None:
    rows = decoded(shared_captures / "portdigits.pcap")
    said = [(row.datagram.frame, m.message, m.topic or m.filter, m.payload) for row in rows if (m := row.message)]
    assert said == [
        (2, "SUBSCRIBE", b"temperature", None),
        (6, "SUBSCRIBE", b"wind speed", None),
        (10, "PUBLISH", b"temperature", "14C°".encode()),
        (12, "PUBLISH", b"temperature", "14C°".encode()),
        (18, "PUBLISH", b"wind speed", b"13km/h"),
        (20, "PUBLISH", b"wind speed", b"13km/h"),
        (26, "SUBSCRIBE", b"humidity", None),
        (30, "PUBLISH", b"humidity", b"85 %rh"),
        (32, "PUBLISH", b"humidity", b"85 %rh"),
    ]
    for row in rows:
        assert row.datagram.frames == (row.datagram.frame - 1, row.datagram.frame)
        assert row.message is not None
        block = row.message.fields["block_length"]
        assert isinstance(block, int)
        assert row.message.padding == 1500 - 8 - 6 - block
