"""What the real tshark shows is what the codec says: every field with its bytes, the error code and its offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect import builtin_names
from pcap_tools.dialect.program import Extent, Kind, Step
from pcap_tools.dissector import write_dissector
from tests.dissector.datagrams import generated
from tests.dissector.tshark import UDP_PAYLOAD_AT, Shown, pdml, run_tshark, udp_packet, write_pcap
from tests.vectors import dialect_of, load_vectors, own_dialect_names

pytestmark = pytest.mark.tshark

NAMES = [*builtin_names(), *own_dialect_names()]
GENERATED = 10_000
FIRST_PORT = 20_000  # away from all dialects' ports: each dialect is named by Decode As


@pytest.fixture(scope="module")
def dissector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lua") / "dissector.lua"
    write_dissector([dialect_of(name) for name in NAMES], path)
    return path


def compare(work: list[tuple[str, bytes]], dissector: Path, folder: Path) -> None:
    """Every datagram, to the port of its dialect, through one tshark."""
    ports = {name: FIRST_PORT + place for place, name in enumerate(NAMES)}
    frames = [
        (number * 0.01, udp_packet(datagram, ("10.0.0.1", 9), ("10.0.0.2", ports[name])))
        for number, (name, datagram) in enumerate(work)
    ]
    capture = write_pcap(folder / "all.pcap", frames)
    decode_as = [part for name in NAMES for part in ("-d", f"udp.port=={ports[name]},pubsub_{name}")]
    codecs = {name: Codec(dialect_of(name)) for name in NAMES}
    shown = list(pdml(capture, *decode_as, "-J", "pubsub", home=folder / "home", script=dissector))
    assert len(shown) == len(work)
    for (name, datagram), frame in zip(work, shown, strict=True):
        message = codecs[name].decode(datagram)
        where = f"{name}: {datagram.hex()}"
        assert common(frame, datagram) == expected_common(message, datagram), where
        assert own_fields(frame, name) == expected_own(message, codecs[name]), where


def common(shown: Shown, datagram: bytes) -> dict[str, object]:
    """The fields that all dialects have."""
    retain = shown.one("pubsub.retain")
    topic, filter_ = (_text(shown, f"pubsub.{name}") for name in ("topic", "filter"))
    return {
        "dialect": shown.one("pubsub.dialect"),
        "form": shown.one("pubsub.form"),
        "message": shown.one("pubsub.message"),
        "meaning": shown.one("pubsub.meaning"),
        "error": shown.one("pubsub.error"),
        "error_offset": shown.one("pubsub.error_offset"),
        "padding": shown.one("pubsub.padding"),
        "retain": None if retain is None else retain in ("1", "True"),
        "payload": _text(shown, "pubsub.payload"),
        "topic": topic,
        "filter": filter_,
    }


def _text(shown: Shown, name: str) -> bytes | None:
    return shown.raw[name] if name in shown.show else None


def expected_common(message: Message, datagram: bytes) -> dict[str, object]:
    layout = message.layout
    raw: dict[str, bytes | None] = {}
    for column in ("topic", "filter", "payload"):  # the bytes of a number are its bytes, not its digits
        name = getattr(layout, column) if layout else None
        step = layout.step(name) if layout and name else None
        raw[column] = getattr(message, column)
        if step is not None and name in message.ranges and isinstance(message.fields[name], int):
            first, last = message.ranges[name]
            raw[column] = datagram[first:last]
    return {
        "dialect": message.dialect,
        "form": message.form,
        "message": message.message,
        "meaning": message.meaning,
        "error": message.error,
        "error_offset": None if message.error_offset is None else str(message.error_offset),
        "padding": str(message.padding) if message.padding else None,
        "retain": message.retain,
        **raw,
    }


def own_fields(shown: Shown, dialect: str) -> dict[str, tuple[int | bytes, int, int]]:
    """The dialect's own fields: value (numbers as shown, all else as bytes), offset and size."""
    prefix = f"pubsub.{dialect}."
    found: dict[str, tuple[int | bytes, int, int]] = {}
    for name in shown.show:
        if name.startswith(prefix):
            at, size = shown.at[name]
            found[name.removeprefix(prefix)] = (_value(shown, name), at - UDP_PAYLOAD_AT, size)
    return found


def _value(shown: Shown, name: str) -> int | bytes:
    text = shown.show[name][0]
    number = text.removeprefix("-")
    return int(text) if number.isdigit() and name in _NUMBERS else shown.raw[name]


def _number_fields() -> set[str]:
    names = set()
    for name in NAMES:
        for form in dialect_of(name).forms:
            for layout in form.layouts:
                for step in layout.steps:
                    if step.kind in (Kind.UINT, Kind.INT, Kind.BITS, Kind.DIGITS, Kind.VARINT):
                        names.add(f"pubsub.{name}.{step.name}")
    return names


_NUMBERS = _number_fields()


def expected_own(message: Message, codec: Codec) -> dict[str, tuple[int | bytes, int, int]]:
    steps = _steps_of(message, codec)
    found: dict[str, tuple[int | bytes, int, int]] = {}
    for name, value in message.fields.items():
        first, last = message.ranges[name]
        if isinstance(value, bytes):  # the field marks the value: no length in front, no delimiter
            first += steps[name].size if steps[name].extent is Extent.PREFIX else 0
            last = first + len(value)
        found[name] = (value, first, last - first)
    return found


def _steps_of(message: Message, codec: Codec) -> dict[str, Step]:
    form = codec.dialect.form(message.form)
    assert form is not None
    layouts = [message.layout] if message.layout else list(form.layouts)
    return {step.name: step for layout in reversed(layouts) for step in layout.steps}


def test_every_vector(dissector: Path, tmp_path: Path) -> None:
    compare([(vector.dialect, vector.datagram) for vector in load_vectors() if vector.datagram], dissector, tmp_path)


def test_generated_datagrams(dissector: Path, tmp_path: Path) -> None:
    each = -(-GENERATED // len(NAMES))
    work = [(name, datagram) for name in NAMES for datagram in generated(dialect_of(name), each, seed=2) if datagram]
    compare(work, dissector, tmp_path)


def test_a_cut_datagram_says_so(tmp_path: Path) -> None:
    frame = udp_packet(b"\x01\x00home/fan:ON", ("10.0.0.1", 50000), ("10.0.0.2", 50000))
    capture = write_pcap(tmp_path / "cut.pcap", [(0, frame)], snaplen=UDP_PAYLOAD_AT + 6)
    (shown,) = pdml(capture, home=tmp_path / "home")
    assert (shown.one("pubsub.error"), shown.one("pubsub.error_offset")) == ("cut", "6")


def test_info_is_one_telling_line(tmp_path: Path) -> None:
    client, broker, other = ("10.0.0.1", 50000), ("10.0.0.2", 50000), ("10.0.0.3", 50000)
    frames = [
        (0.0, udp_packet(b"\x03\x00home/*", other, broker)),
        (0.1, udp_packet(b"\x04", broker, other)),
        (0.2, udp_packet(b"\x01\x01home/room/light:ON", client, broker)),
        (0.3, udp_packet(b"\x01\x01home/room/light:ON", broker, other)),
        (0.4, udp_packet(b"\x02", broker, client)),
        (0.5, udp_packet(b"\x01\x00a\x1b[31m\n:\xff", client, broker)),
    ]
    capture = write_pcap(tmp_path / "info.pcap", frames)
    columns = ["-o", 'gui.column.format:"Protocol","%p","Info","%i"']
    lines = [line.strip() for line in run_tshark(capture, "-2", *columns, home=tmp_path / "home").splitlines()]
    assert lines[2] == 'colon PUBLISH home/room/light "ON" retained → 1 subscriber'
    assert lines[3] == 'colon PUBLISH home/room/light "ON" retained [forward of 3]'
    assert lines[4] == "colon PUBACK [ACK to 3]"
    assert lines[5].startswith(r'colon PUBLISH a\x1b[31m\x0a "\xff"')
