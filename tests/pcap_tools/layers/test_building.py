"""Building packets, valid ones with little said and invalid ones on purpose."""

import pytest
from scapy.fields import RawVal
from scapy.layers.inet import IP, UDP
from scapy.packet import Padding, Raw

from pcap_tools.errors import UsageError
from pcap_tools.layers import load_layer, unload_layer
from tests.pcap_tools.layers.loaded import layers_of

colon, mqttsn, topicbyte = layers_of("colon"), layers_of("mqttsn"), layers_of("topicbyte")
portdigits, rolebyte, topicnumber = layers_of("portdigits"), layers_of("rolebyte"), layers_of("topicnumber")


class TestLittleSaid:
    def test_types_and_delimiters_are_worked_out(self) -> None:
        assert bytes(colon.PUBLISH(topic="temp", payload="123", retain="yes")) == bytes.fromhex("010174656d703a313233")

    def test_lengths_are_worked_out(self) -> None:
        assert bytes(rolebyte.SENSOR_PUBLISH(topic="t/1", value="20")) == b"\x03\x06t/1 20"

    def test_the_form_is_an_option_and_not_on_the_wire(self) -> None:
        assert bytes(topicbyte.SUB(topic="temperature")) == b"\x02\x0a"
        assert bytes(topicbyte.SUB(topic="temperature", form="java")) == bytes.fromhex("aced00057702020a")

    def test_fields_choose_the_variant(self) -> None:
        assert bytes(mqttsn.PUBLISH(short_topic="ab", data="x")) == bytes.fromhex("080c02 6162 0000 78")
        assert bytes(mqttsn.PUBLISH(topic_id=5, data="x")) == bytes.fromhex("080c00 0005 0000 78")
        assert bytes(mqttsn.PUBLISH(topic_id_type="predefined", topic_id=5)) == bytes.fromhex("070c01 0005 0000")

    def test_a_long_message_takes_the_form_that_can_hold_it(self) -> None:
        packet = mqttsn.PUBLISH(topic_id=5, data=bytes(300))
        assert packet.form == "long"
        assert bytes(packet)[:4] == bytes.fromhex("01 0135 0c")

    def test_an_optional_field_is_absent_until_it_is_set(self) -> None:
        packet = mqttsn.DISCONNECT()
        assert bytes(packet) == b"\x02\x18"
        assert "duration" not in packet.show(dump=True)
        packet.duration = 60
        assert bytes(packet) == bytes.fromhex("04 18 003c")

    def test_only_the_fields_of_this_form_and_variant_are_shown(self) -> None:
        shown = mqttsn.PUBLISH(topic_id=5).show(dump=True)
        assert "topic_id " in shown
        assert "short_topic" not in shown
        assert "mark" not in shown


class TestPadding:
    def test_a_dialect_that_pads_pads(self) -> None:
        assert len(topicnumber.PUBLICATION(text="hi")) == 1400
        assert len(portdigits.PUBLISH(text="hi", form="java")) == 1500

    def test_unless_told_otherwise(self) -> None:
        assert bytes(topicnumber.PUBLICATION(text="hi", padding=0)) == b"\x05\0\0\0\0\0hi"
        assert bytes(colon.PUBACK(padding=3)) == b"\x02\0\0\0"

    def test_udp_counts_it(self) -> None:
        packet = IP(dst="10.0.0.2") / UDP() / colon.base(b"\x02\0\0\0")
        assert IP(bytes(packet))[UDP].len == 8 + 4

    def test_it_can_be_taken_off(self) -> None:
        packet = topicnumber.base(bytes(topicnumber.PUBLICATION(text="hi")))
        packet.padding = 0
        assert bytes(packet) == b"\x05\0\0\0\0\0hi"
        assert Padding not in packet

    def test_padding_of_the_link_layer_is_not_ours(self) -> None:
        datagram = bytes(IP(dst="10.0.0.2") / UDP() / colon.PUBACK(padding=2)) + bytes(17)
        load_layer("colon")
        packet = IP(datagram)
        unload_layer("colon")
        assert packet[colon.PUBACK].padding == 2
        assert bytes(packet) == datagram


class TestOnPurposeInvalid:
    @pytest.mark.parametrize(
        ("packet", "datagram", "error"),
        [
            (colon.PUBLISH(type=9, topic="a"), b"\x09\x00a:", "unknown-type"),
            (colon.PUBLISH(retain=7, topic="a"), b"\x01\x07a:", "bad-value"),
            (colon.PUBLISH(topic=b"\xff"), b"\x01\x00\xff:", "bad-text"),
            (colon.PUBLISH(topic=RawVal(b"no delimiter")), b"\x01\x00no delimiter", "no-delimiter"),
            (colon.PUBACK() / b"junk", b"\x02junk", "trailing-bytes"),
            (rolebyte.SENSOR_PUBLISH(length=99, topic="a", value="b"), b"\x03\x63a b", "bad-length"),
            (rolebyte.SENSOR_PUBLISH(length=b"", topic="a", value="b"), b"\x03a b", "bad-length"),
            (mqttsn.PUBACK(length=200), bytes.fromhex("c80d 0000 0000 00"), "bad-length"),
            (layers_of("magicbyte").ACK(magic=b"\xa6"), b"\xa6\x41", "bad-magic"),
            (portdigits.PUBLISH(port=b"12a45", text="x"), b"12a45101x", "bad-value"),
            (colon.Unknown(type=9) / b"junk", b"\x09junk", "unknown-type"),
            (colon.base(), b"", "empty"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_it_is_built_as_told_and_says_what_is_wrong(self, packet: object, datagram: bytes, error: str) -> None:
        assert bytes(packet) == datagram  # type: ignore[call-overload]
        assert packet.error == error  # type: ignore[attr-defined]
        assert error in packet.summary()  # type: ignore[attr-defined]

    def test_a_number_too_big_is_cut_to_its_bits(self) -> None:
        assert bytes(colon.PUBACK(type=0x102)) == b"\x02"


class TestChangingWhatWasRead:
    def test_a_field(self) -> None:
        packet = colon.base(b"\x01\x00home/fan:ON")
        packet.body = "OFF"
        assert bytes(packet) == b"\x01\x00home/fan:OFF"

    def test_the_length_stays_as_read_until_it_is_deleted(self) -> None:
        packet = rolebyte.base(b"\x03\x03a b")
        packet.value = "longer"
        assert packet.error == "bad-length"
        del packet.length
        assert bytes(packet) == b"\x03\x08a longer"

    def test_a_damaged_message_keeps_to_what_was_read(self) -> None:
        packet = colon.base(b"\x01\x00no delimiter")
        assert (packet.topic, packet[Raw].load) == (None, b"no delimiter")
        packet.retain = 1
        assert bytes(packet) == b"\x01\x01no delimiter"

    def test_an_unknown_message_too(self) -> None:
        packet = colon.base(b"\x09rest")
        packet.type = 8
        assert bytes(packet) == b"\x08rest"

    def test_bits_beside_a_changed_one(self) -> None:
        nibbles = layers_of("nibbles")
        packet = nibbles.base(b"\x25a=b")
        packet.sequence = 6
        assert bytes(packet) == b"\x26a=b"

    def test_the_form(self) -> None:
        packet = topicbyte.base(b"\x03\x0aT:1")
        packet.form = "java"
        assert bytes(packet) == bytes.fromhex("aced0005 77 07 030a 0003 543a31")


class TestUsersMistakes:
    def test_an_unknown_field(self) -> None:
        with pytest.raises(UsageError, match=r"colon PUBLISH has no field 'tpic'.*topic"):
            colon.PUBLISH(tpic="a")

    def test_an_unknown_value_name(self) -> None:
        with pytest.raises(UsageError, match="maybe"):
            colon.PUBLISH(retain="maybe")
        packet = colon.PUBLISH()
        with pytest.raises(UsageError, match="maybe"):
            packet.retain = "maybe"

    def test_an_unknown_form(self) -> None:
        with pytest.raises(UsageError, match=r"topicbyte has no form 'jawa'.*java"):
            topicbyte.SUB(form="jawa")

    def test_an_unknown_message(self) -> None:
        with pytest.raises(AttributeError, match=r"colon has no message 'PUBLSH'.*PUBLISH"):
            _ = colon.PUBLSH

    def test_a_value_that_is_neither_number_nor_bytes(self) -> None:
        packet = colon.PUBLISH(topic=5)
        with pytest.raises(UsageError, match="topic"):
            bytes(packet)
        assert "cannot be built" in packet.summary()
