"""What a scapy user tries on any layer works on these too."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.config import conf
from scapy.layers.inet import ICMP, IP, UDP, IPerror, UDPerror
from scapy.packet import Packet, Raw, ls
from scapy.utils import hexdump

from pcap_tools.layers import DialectPacket, load_layer, unload_layer
from tests.conftest import REPO
from tests.pcap_tools.layers.loaded import ALL_DIALECTS, layers_of

colon = layers_of("colon")
PUBLISH = b"\x01\x01home/fan:ON"


class TestFields:
    def test_value_names_are_shown_and_taken(self) -> None:
        packet = colon.PUBLISH(retain="yes")
        assert packet.retain == 1
        assert "retain    = yes" in packet.show(dump=True)

    def test_ls_tells_types_and_names(self, capsys: pytest.CaptureFixture[str]) -> None:
        ls(colon.PUBLISH, verbose=True)
        told = capsys.readouterr().out
        assert "ByteEnumField" in told
        assert "yes: 1" in told

    def test_payload_is_called_body(self) -> None:
        packet = colon.base(PUBLISH)
        assert packet.body == b"ON"
        assert colon.PUBLISH.dialect_name["body"] == "payload"
        assert bytes(colon.PUBLISH(topic="a", payload="b")) == bytes(colon.PUBLISH(topic="a", body="b"))

    def test_other_taken_names_get_an_underscore(self) -> None:
        assert layers_of("nestedack").ACK.dialect_name["copy_"] == "copy"

    @pytest.mark.parametrize("dialect", ALL_DIALECTS)
    def test_no_field_hides_an_attribute_of_scapy(self, dialect: str) -> None:
        for cls in layers_of(dialect).messages.values():
            assert not [field.name for field in cls.fields_desc if hasattr(DialectPacket, field.name)]

    def test_lists_of_values_make_several_packets(self) -> None:
        assert [bytes(packet) for packet in colon.PUBLISH(topic="a", retain=[0, 1])] == [b"\x01\0a:", b"\x01\1a:"]


class TestPackets:
    def test_show_shows_what_was_set_and_show2_what_is_sent(self) -> None:
        packet = colon.PUBLISH(topic="a")
        assert "type      = None" in packet.show(dump=True)
        assert "type      = 1" in packet.show2(dump=True)
        assert "colon PUBLISH" in packet.show(dump=True)

    def test_copies_are_equal_and_apart(self) -> None:
        packet = colon.base(PUBLISH)
        for twin in (packet.copy(), copy.deepcopy(packet)):
            assert twin == packet
            twin.topic = "other"
            assert twin != packet
        assert bytes(packet) == PUBLISH

    def test_another_form_is_another_packet(self) -> None:
        topicbyte = layers_of("topicbyte")
        assert topicbyte.SUB(form="java") != topicbyte.SUB()

    @pytest.mark.parametrize("datagram", [PUBLISH, b"\x01\x00broken", b"\x09", b"\x02\0\0"])
    def test_pickle(self, datagram: bytes) -> None:
        packet = colon.base(datagram)
        twin = pickle.loads(pickle.dumps(packet))  # noqa: S301
        assert twin == packet
        assert bytes(twin) == datagram

    def test_pickle_in_a_process_that_has_not_loaded_the_dialect(self, tmp_path: Path) -> None:
        file = tmp_path / "packet"
        file.write_bytes(pickle.dumps(layers_of("nibbles").base(b"\x25a=b")))
        told = subprocess.run(
            [sys.executable, "-c", f"import pickle; print(pickle.load(open({str(file)!r}, 'rb')).summary())"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout == 'nibbles PUBLISH a "b"\n'

    def test_hexdump_and_command(self) -> None:
        packet = colon.base(PUBLISH)
        assert "home/fan" in str(hexdump(packet, dump=True))
        again = eval(packet.command(), {"PUBLISH": colon.PUBLISH})  # noqa: S307
        assert bytes(again) == PUBLISH

    def test_the_bytes_of_each_field_for_drawings(self) -> None:
        built, ((_, rows),) = colon.base(PUBLISH).build_ps()
        assert built == PUBLISH
        assert [(field.name, raw) for field, _, raw in rows] == [
            ("type", b"\x01"),
            ("retain", b"\x01"),
            ("topic", b"home/fan:"),
            ("body", b"ON"),
        ]

    def test_any_class_gives_the_class_of_the_bytes(self) -> None:
        assert type(colon.PUBLISH(b"\x04")) is colon.SUBACK
        assert type(colon.SUBACK(b"\xff")) is colon.Unknown

    def test_layers_are_found_by_class_base_and_name(self) -> None:
        packet = IP() / UDP() / colon.base(PUBLISH)
        for key in (colon.PUBLISH, colon.base, colon.Colon, "PUBLISH", "colon PUBLISH", "Colon"):
            assert packet[key].topic == b"home/fan"
            assert key in packet
        assert colon.PUBACK not in packet
        assert layers_of("mqttsn").base not in packet
        assert Raw not in packet


class TestSummary:
    @pytest.mark.parametrize(
        ("dialect", "datagram", "told"),
        [
            ("colon", PUBLISH, 'colon PUBLISH home/fan "ON" retained'),
            ("colon", b"\x03\x00home/*", "colon SUBSCRIBE home/*"),
            ("colon", b"\x04", "colon SUBACK"),
            ("colon", b"\x02\0\0", "colon PUBACK +2 NULs"),
            ("colon", b"\x01\x00x", "colon PUBLISH retain=no [no-delimiter at 2] / Raw"),
            ("topicbyte", b"\x03\x0aT:1", 'topicbyte MESSAGE temperature "T:1"'),
            ("mqttsn", bytes.fromhex("03 05 00"), "mqttsn CONNACK return_code=accepted"),
            ("colon", b"\x03\x00\x1b[31m\r\n\xff", "colon SUBSCRIBE \\x1b[31m\\x0d\\x0a\\xff [bad-text at 9]"),
            ("colon", b"\x03\x00" + "\u202eevil".encode(), "colon SUBSCRIBE \\xe2\\x80\\xaeevil"),
        ],
    )
    def test_one_telling_line(self, dialect: str, datagram: bytes, told: str) -> None:
        assert layers_of(dialect).base(datagram).summary() == told

    def test_long_text_is_shortened(self) -> None:
        assert len(colon.PUBLISH(topic="t" * 1000, body=bytes(60000)).summary()) < 150

    def test_show_escapes_too(self) -> None:
        shown = colon.PUBLISH(topic="\x1b[31m\u202e").show(dump=True)
        assert "\x1b[31m" not in shown
        assert "\u202e" not in shown


class TestPorts:
    def test_both_directions_and_the_usual_ports(self) -> None:
        rolebyte = load_layer("rolebyte")
        try:
            publish = UDP() / rolebyte.SENSOR_PUBLISH(topic="a", value="1")
            assert (publish.sport, publish.dport) == (50003, 50001)
            for sport, dport in ((9, 50001), (50001, 9)):
                assert rolebyte.ACK in UDP(bytes(UDP(sport=sport, dport=dport) / rolebyte.ACK()))
        finally:
            unload_layer("rolebyte")

    def test_the_later_one_wins_until_it_is_unloaded(self) -> None:
        datagram = bytes(UDP(sport=50000, dport=50000) / Raw(b"\x02"))
        before = list(UDP.payload_guess)
        load_layer("colon")
        topicbyte = load_layer("topicbyte")
        assert topicbyte.base in UDP(datagram)
        assert load_layer("colon") is colon
        assert colon.PUBACK in UDP(datagram)
        unload_layer("colon")
        assert topicbyte.base in UDP(datagram)
        unload_layer(topicbyte)
        assert type(UDP(datagram).payload) is Raw
        assert UDP.payload_guess == before

    def test_a_changed_file_is_seen(self, tmp_path: Path) -> None:
        file = tmp_path / "my.toml"
        text = 'name = "my"\ntitle = "mine"\nports = {{ broker = [{port}] }}\n'
        text += '[fields]\nword = {{ kind = "text" }}\n[messages]\nSAY = {{ layout = ["word"] }}\n'
        file.write_text(text.format(port=41001))
        load_layer(file)
        file.write_text(text.format(port=41002))
        mine = load_layer(str(file))
        try:
            assert mine.SAY in UDP(bytes(UDP(dport=41002) / b"hello"))
            assert mine.base not in UDP(bytes(UDP(dport=41001) / b"hello"))
            assert UDP(bytes(UDP(dport=41001) / b"hello")).haslayer("SAY") == 0
        finally:
            unload_layer(mine)


class TestCut:
    def test_a_snap_length_is_an_error_at_the_first_missing_byte(self) -> None:
        load_layer("colon")
        try:
            whole = bytes(IP(dst="10.0.0.2") / UDP() / colon.base(PUBLISH))
            packet = IP(whole[:-3])[colon.PUBLISH]
        finally:
            unload_layer("colon")
        assert (packet.error, packet.error_offset) == ("cut", len(PUBLISH) - 3)

    def test_a_datagram_quoted_by_icmp(self) -> None:
        load_layer("colon")
        try:
            quoted = bytes(IP(dst="10.0.0.2") / UDP() / colon.base(PUBLISH))
            packet: Packet = IP(bytes(IP() / ICMP(type=3, code=3) / quoted[:32]))
        finally:
            unload_layer("colon")
        assert IPerror in packet
        assert packet[UDPerror].payload.error == "cut"


def test_loading_changes_no_setting_of_scapy() -> None:
    def settings() -> dict[str, Any]:
        return {name: repr(getattr(conf, name)) for name in ("padding", "raw_layer", "checkIPsrc", "debug_dissector")}

    before = settings()
    load_layer("colon")
    unload_layer("colon")
    assert settings() == before


def test_loading_all_built_in_dialects_is_little_work_and_loading_them_again_is_next_to_none() -> None:
    program = """
import sys
from pcap_tools.dialect import builtin_names
from pcap_tools.layers import load_layer

def calls_to_load_all():
    calls = 0
    def count(frame, event, _):
        nonlocal calls
        calls += event in ("call", "c_call")
    sys.setprofile(count)
    for name in builtin_names():
        load_layer(name)
    sys.setprofile(None)
    return calls

print(calls_to_load_all(), calls_to_load_all())
print(*{"numba", "numpy", "pandas", "pyarrow", "pyspark"} & set(sys.modules))
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPO)
    calls, heavy_packages = told.stdout.splitlines()
    first, again = (int(number) for number in calls.split())
    assert first < 1_000_000
    assert again < first / 20
    assert heavy_packages == ""
