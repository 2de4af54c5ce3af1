"""What differential fuzzing with random dialects has found, one test each. Vectors cannot say these: they are about
what a dialect file may hold, and the dialects of the tests hold none of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from fuzzing.decoders.backends import KINDS
from fuzzing.decoders.comparing import Comparison
from fuzzing.decoders.outcome import Item, Outcome
from pcap_tools.dialect import Dialect, DialectError, parse_dialect

WORDLESS = """\
name = "wordless"
title = "A number whose name is empty, a topic that may be absent"
ports = { broker = 4000 }
[fields]
type = { kind = "uint", size = 1 }
code = { kind = "uint", size = 1, values = { "" = 0, "on" = 1 } }
topic = { kind = "text" }
[messages]
PUBLISH = { when = { type = 1 }, layout = ["type", "code", "topic"], optional_from = "code", means = "publish" }
SUBSCRIBE = { when = { type = 2 }, layout = ["type", "code"], means = "subscribe", filter = "code" }
"""


VARIANTS = """\
name = "variants"
title = "A message of two variants, of which the second has less"
[fields]
type = { kind = "uint", size = 1 }
code = { kind = "uint", size = 1 }
[[messages.PUBLISH]]
when = { type = 1, code = 1 }
layout = ["type", "code"]
[[messages.PUBLISH]]
when = { type = 1 }
layout = ["type"]
"""


def said(kind: str, dialects: Sequence[Dialect], *payloads: bytes) -> list[Outcome]:
    """What one decoder says of these datagrams in each dialect, which must also be what the codec says."""
    if not KINDS[kind].is_there:
        pytest.skip(f"{kind} is not installed")
    named = {dialect.name: dialect for dialect in dialects}
    backend = KINDS[kind].make(named)
    items = [Item(name, payload, len(payload)) for name in named for payload in payloads]
    tally = Comparison(kind, backend, named).run(items)
    assert (tally.differing, tally.failures) == (0, 0), "\n".join(one.text for one in tally.differences)
    return [answer for answer in backend.decode(items) if isinstance(answer, Outcome)]


@pytest.mark.parametrize("kind", ["columnar", "lua5.2", "lua5.4"])
def test_a_number_whose_name_is_empty_is_shown_as_its_digits(kind: str) -> None:
    empty, named = said(kind, [parse_dialect(WORDLESS)], b"\2\0", b"\2\1")
    assert (empty.filter, named.filter) == (b"0", b"on")


@pytest.mark.tshark
def test_a_publish_without_its_optional_topic_is_no_lua_error() -> None:
    alone, forward = said("tshark", [parse_dialect(WORDLESS)], b"\1", b"\1\1home")
    assert (alone.message, alone.topic, alone.error) == ("PUBLISH", None, None)
    assert forward.topic == b"home"


@pytest.mark.tshark
def test_a_dialect_may_be_called_like_a_field_of_the_dissector() -> None:
    """Its node was shown as that common field, and Wireshark refused a preference that begins with `pubsub`."""
    names = ["topic", "error", "message", "payload", "expert", "pubsub", "pubsub_x"]
    shown = said("tshark", [parse_dialect(WORDLESS.replace("wordless", name)) for name in names], b"\3")
    assert len(shown) == len(names)
    for one in shown:
        assert (one.message, one.topic, one.payload, one.error) == (None, None, None, "unknown-type")
        assert one.fields == {"type": 3}


def test_scapy_builds_a_packet_again_in_the_variant_that_it_was_read_in() -> None:
    """The first variant, which has the same fields and more, took its place."""
    shorter, longer = said("layers", [parse_dialect(VARIANTS)], b"\1", b"\1\1")
    assert (shorter.fields, longer.fields) == ({"type": 1}, {"type": 1, "code": 1})


def refused(text: str) -> str:
    with pytest.raises(DialectError) as caught:
        parse_dialect(text, "my.toml")
    return str(caught.value)


def test_a_form_in_which_no_message_stands_is_refused() -> None:
    """The codec had nothing to decode by, and raised a ValueError."""
    forms = json.dumps(["plain"])
    text = WORDLESS.replace("means =", f"forms = {forms}, means =") + "[forms]\nplain = {}\nother = {}\n"
    assert refused(text) == "my.toml:13: forms.other: no message stands in this form"


def test_a_message_that_is_an_empty_list_is_refused() -> None:
    text = WORDLESS.replace("PUBLISH = {", "PUBLISH = []\nOTHER = {")
    assert refused(text) == "my.toml:9: messages.PUBLISH: expected a table, or a list of one or more"


SIGNS = """\
name = "signs"
title = "A number that is signed in one form and in the other not"
[fields]
type = { kind = "uint", size = 1 }
[messages]
PUBLISH = { when = { type = 1 }, layout = ["type", "number"] }
[forms.narrow.fields]
number = { kind = "int", size = 4 }
[forms.wide.fields]
number = { kind = "uint", size = 8 }
"""


def test_tshark_shows_a_number_as_its_form_has_it_signed_or_not() -> None:
    signed, unsigned = said("tshark", [parse_dialect(SIGNS)], b"\1" + b"\xff" * 4, b"\1" + b"\xff" * 8)
    assert (signed.fields["number"], unsigned.fields["number"]) == (-1, 2**64 - 1)
