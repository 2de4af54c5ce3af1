"""A user's dialect whose names are all taken: by Python, by scapy, by the layers themselves."""

from pathlib import Path
from typing import Any

import pytest

from pcap_tools.layers import load_layer, unload_layer

AWKWARD = """
name  = "awkward"
title = "Names that are taken, numbers of three bytes, an optional length"
ports = { broker = [41003] }

[fields]
type    = { kind = "uint", size = 1 }
class   = { kind = "uint", size = 3, order = "little", values = { first = 1, second = 2 } }
form    = { kind = "int", size = 3 }
error   = { kind = "uint", size = 1 }
length  = { kind = "uint", size = 1, counts = ["self"] }
self    = { kind = "text" }
payload = { kind = "text" }
body    = { kind = "text", prefix = "u8" }

[messages]
None    = { when = { type = 2 }, layout = ["type"] }
base    = { when = { type = 3 }, layout = ["type", "body", "payload"], means = "publish" }

[messages.Unknown]
when          = { type = 1 }
layout        = ["type", "class", "form", "error", "length", "self"]
optional_from = "length"
"""


@pytest.fixture
def awkward(tmp_path: Path) -> Any:
    file = tmp_path / "awkward.toml"
    file.write_text(AWKWARD)
    layers = load_layer(file)
    unload_layer(layers)
    return layers


def test_messages_with_taken_names(awkward: Any) -> None:
    assert awkward.messages["Unknown"] is awkward.Unknown_
    assert awkward.messages["None"] is awkward.None_
    assert awkward.messages["base"] is awkward.base_
    assert type(awkward.base(b"\x02")) is awkward.None_
    assert type(awkward.base(b"\x09")) is awkward.Unknown


def test_fields_with_taken_names(awkward: Any) -> None:
    assert list(awkward.Unknown_.dialect_name) == ["type", "class_", "form_", "error_", "length", "self_"]
    assert list(awkward.base_.dialect_name) == ["type", "body", "payload_"]


def test_they_are_built_and_read(awkward: Any) -> None:
    packet = awkward.Unknown_(class_="second", form_=-2, self_="abc")
    assert bytes(packet) == bytes.fromhex("01 020000 fffffe 00 03 616263")
    read = awkward.base(bytes(packet))
    assert (read.class_, read.form_, read.error_, read.length, read.self_) == (2, -2, 0, 3, b"abc")
    assert (read.form, read.error) == ("documented", None)


def test_what_is_optional_stays_away(awkward: Any) -> None:
    assert bytes(awkward.Unknown_()) == bytes.fromhex("01 010000 000000 00")
