"""A wrong dialect file is refused with file, line, key, what was expected, and a suggestion for a misspelt word."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcap_tools.dialect import DialectError, builtin_names, builtin_text, load_dialect, parse_dialect
from pcap_tools.errors import TopicsharkError
from tests.vectors import DIALECTS, dialect_of, own_dialect_names

GOOD = """\
name  = "my"
title = "Mine"
ports = { broker = [4000] }

[fields]
type    = { kind = "uint", size = 1 }
topic   = { kind = "text", until = ":" }
payload = { kind = "bytes" }

[messages]
PUBLISH = { when = { type = 1 }, layout = ["type", "topic", "payload"], means = "publish" }
ACK     = { when = { type = 2 }, layout = ["type"], means = "ack", acks = "PUBLISH" }
"""
END = "\nACK "  # cases of (END, "…\nACK ") put lines before the last one


def wrong(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, f"{old!r} must stand once in the good file"
    return GOOD.replace(old, new)


TYPE = '{ kind = "uint", size = 1 }'
TOPIC = '{ kind = "text", until = ":" }'
PAYLOAD = '{ kind = "bytes" }'
LAYOUT = '["type", "topic", "payload"]'

CASES: dict[str, tuple[str, int | None, str]] = {
    # -- TOML itself
    "a brace is missing": (wrong("size = 1 }", "size = 1"), 6, "at line 6"),
    "a quote is missing": (wrong('"Mine"', '"Mine'), 2, "at line 2"),
    "a key twice": (wrong("topic   =", "type    ="), 7, "at line 7"),
    "a field twice in two places": (GOOD + "\n[fields.type]\nsize = 2\n", 14, "at line 14"),
    "a number too great for any computer": (wrong("[4000]", "[" + "9" * 5000 + "]"), None, ""),
    # -- values that cannot occur
    "a number that does not fit selects": (
        wrong('type = 1 }, layout = ["type", "topic', 'type = 300 }, layout = ["type", "topic'),
        11,
        "300 does not fit the field, which holds 0 to 255",
    ),
    "true is no number": (wrong("type = 2", "type = true"), 12, "should be a valid integer"),
    "a named number that does not fit": (
        wrong(TYPE, '{ kind = "uint", size = 1, values = { a = 256 } }'),
        6,
        "256 does not fit",
    ),
    "a selecting number that closed values do not know": (
        wrong(TYPE, '{ kind = "uint", size = 1, values = { a = 1 } }'),
        12,
        "2 is not one of the field's values",
    ),
    "a text that holds its own delimiter selects": (
        wrong('type = 2 }, layout = ["type"]', 'topic = "a:b" }, layout = ["topic"]'),
        12,
        "holds the delimiter",
    ),
    "a group named like a field": (GOOD + '\n[groups]\ntopic = ["type"]\n', 15, "there is a field of this name"),
    "a form that is none": (wrong("ACK     = {", 'ACK     = { forms = ["java"],'), 12, "there is no form 'java'"),
    "an optional number that padding looks like": (
        wrong("ports = { broker = [4000] }", 'padding = "nul"')
        .replace('layout = ["type"]', 'layout = ["type", "n"], optional_from = "n"')
        .replace("[messages]", 'n = { kind = "uint", size = 1 }\n[messages]'),
        13,
        "to tell an absent field",
    ),
    "a field named like a part of a Java block": (
        wrong(PAYLOAD, '{ kind = "java-block" }\npayload_length = { kind = "uint", size = 1 }'),
        9,
        "has a field of this name already",
    ),
    # -- keys
    "a number too great to be printed": (wrong("size = 1", "size = 0x" + "f" * 6000), 6, "fields.type.size: "),
    "a word that is such a number": (wrong('"uint"', "0x" + "f" * 6000), 6, "fields.type.kind: unknown word"),
    "no name": (wrong('name  = "my"\n', ""), None, "name: this key is missing"),
    "no kind": (wrong(TYPE, "{ size = 1 }"), 6, "fields.type.kind: this key is missing"),
    "a misspelt key": (wrong("title =", "titel ="), 2, "titel: unknown key; did you mean 'title'?"),
    "a misspelt table": (wrong("[fields]", "[field]"), 5, "field: unknown key; did you mean 'fields'?"),
    "a misspelt key of a field": (
        wrong("until", "untill"),
        7,
        "fields.topic.untill: unknown key; did you mean 'until'?",
    ),
    "a misspelt key of a message": (
        wrong("acks =", "ack ="),
        12,
        "messages.ACK.ack: unknown key; did you mean 'acks'?",
    ),
    "a key that nothing is like": (wrong("ports =", "zzz ="), 3, "zzz: unknown key; expected one of: name, title"),
    "a misspelt key of the broker": (
        GOOD + '[broker]\ncopys = "per-filter"\n',
        14,
        "broker.copys: unknown key; did you mean 'copies'?",
    ),
    "a misspelt key of a forward": (
        GOOD + '[broker]\nforward = { PUBLISH = { as = "PUBLISH", frehs = [] } }\n',
        14,
        "unknown key; did you mean 'fresh'?",
    ),
    "a misspelt key of the resend": (
        GOOD + "[client]\nresend = { after = 1.0, limits = 3 }\n",
        14,
        "client.resend.limits: unknown key; did you mean 'limit'?",
    ),
    "a field that is no table": (wrong(TYPE, "1"), 6, "fields.type"),
    "no messages": (GOOD[: GOOD.index("PUBLISH")], 10, "messages: expected at least one message"),
    # -- names
    "a name in capitals": (wrong('"my"', '"My"'), 1, "name: "),
    "a name of a field with a hyphen": (
        wrong("payload = {", "pay-load = {").replace('"payload"', '"pay-load"'),
        8,
        "fields.pay-load: expected a name like",
    ),
    "a name of a message with a space": (wrong("ACK ", '"AN ACK" '), 12, "expected a name like"),
    # -- ports
    "a port above 65535": (wrong("[4000]", "[70000]"), 3, "less than or equal to 65535 (got 70000)"),
    "port 0": (wrong("[4000]", "0"), 3, "greater than or equal to 1 (got 0)"),
    "half a range of ports": (
        wrong("[4000]", '"4000-"'),
        3,
        'expected ports as 50000, [50000, 50001] or "50003-50006"',
    ),
    "a falling range of ports": (wrong("[4000]", '"4005-4000"'), 3, "ports.broker: expected a rising range of ports"),
    "a role that no port has": (
        wrong('means = "ack"', 'from = "brokr", means = "ack"'),
        12,
        "messages.ACK.from: there is no role among the ports 'brokr'; did you mean 'broker'?",
    ),
    # -- fields
    "a misspelt kind": (wrong('"uint"', '"unit"'), 6, "fields.type.kind: unknown word 'unit'; did you mean 'uint'?"),
    "size 0": (
        wrong("size = 1", "size = 0"),
        6,
        "fields.type.size: input should be greater than or equal to 1 (got 0)",
    ),
    "a number of nine bytes": (wrong("size = 1", "size = 9"), 6, "fields.type: expected a size of 1 to 8 bytes"),
    "neither size nor bits": (wrong(TYPE, '{ kind = "uint" }'), 6, "expected either size (1 to 8 bytes) or bits"),
    "a key that does not go with the kind": (
        wrong("size = 1", 'size = 1, until = ":"'),
        6,
        "fields.type: key 'until' does not go with kind 'uint', which takes: accepted, bits, counts, open, order, ",
    ),
    "two ends of one text": (wrong('until = ":"', 'until = ":", size = 3'), 7, "at most one of size, until and prefix"),
    "or_end without until": (wrong(PAYLOAD, '{ kind = "bytes", or_end = true }'), 8, "or_end goes with until"),
    "an empty delimiter": (wrong('until = ":"', 'until = ""'), 7, "fields.topic.until: "),
    "a misspelt charset": (wrong("until", 'charset = "utf8", until'), 7, "unknown word 'utf8'; did you mean 'utf-8'?"),
    "a misspelt prefix": (wrong('until = ":"', 'prefix = "u61"'), 7, "unknown word 'u61'; did you mean 'u16'?"),
    "a constant of nothing": (wrong(PAYLOAD, '{ kind = "magic" }'), 8, "expected either hex"),
    "a constant of half a byte": (wrong(PAYLOAD, '{ kind = "magic", hex = "A5A" }'), 8, "fields.payload.hex: "),
    "a constant with a space that is none": (
        wrong(PAYLOAD, '{ kind = "magic", hex = "A5\u00a0A5" }'),
        8,
        "fields.payload.hex: ",
    ),
    "a Java block with a size": (wrong(PAYLOAD, '{ kind = "java-block", size = 2 }'), 8, "which takes: no other key"),
    "two words for one number": (
        wrong("size = 1", "size = 1, values = { yes = 1, on = 1 }"),
        6,
        "fields.type.values: two names for one number",
    ),
    "a word for no number": (wrong("size = 1", 'size = 1, values = { yes = "x" }'), 6, "fields.type.values.yes: "),
    "a length that counts a word": (wrong("size = 1", 'size = 1, counts = "all"'), 6, "fields.type.counts"),
    "a length that counts an unknown field": (
        wrong("size = 1", 'size = 1, counts = ["topix"]'),
        6,
        "fields.type.counts: there is no field 'topix'; did you mean 'topic'?",
    ),
    # -- messages
    "a misspelt field in a layout": (
        wrong(LAYOUT, '["type", "topc", "payload"]'),
        11,
        "messages.PUBLISH.layout: there is no field 'topc'; did you mean 'topic'?",
    ),
    "an empty layout": (wrong('["type"]', "[]"), 12, "messages.ACK.layout: expected at least one field"),
    "a field twice in a layout": (wrong('["type"]', '["type", "type"]'), 12, "the field 'type' stands in it twice"),
    "an open end in the middle": (
        wrong(LAYOUT, '["type", "payload", "topic"]'),
        11,
        "messages.PUBLISH.layout: the field 'payload' reaches to the end, so nothing can follow it",
    ),
    "bits that fill no byte": (wrong("size = 1", "bits = 3"), 11, "bit fields in a row must fill 1 to 8 whole bytes"),
    "a length behind what it counts": (
        wrong(LAYOUT, '["type", "topic", "length", "payload"]').replace(
            "payload = {", 'length = { kind = "uint", size = 1, counts = ["topic"] }\npayload = {'
        ),
        12,
        "'length' must come before the fields it counts, or count itself too",
    ),
    "a number selected by a text": (
        wrong("when = { type = 1 }", 'when = { type = "1" }'),
        11,
        "messages.PUBLISH.when.type: expected a number, since the field is uint",
    ),
    "a text selected by a number": (
        wrong("when = { type = 1 }", "when = { topic = 1 }"),
        11,
        "messages.PUBLISH.when.topic: expected a text, since the field is text",
    ),
    "selected by a field that the layout lacks": (
        wrong("when = { type = 2 }", "when = { topic = 'a' }"),
        12,
        "messages.ACK.when.topic: there is no field in this layout 'topic'; expected one of: type",
    ),
    "two messages with the same when": (
        wrong("when = { type = 2 }", "when = { type = 1 }"),
        12,
        "messages.ACK.when: never selected: PUBLISH takes it first",
    ),
    "an unknown meaning": (wrong('"publish"', '"publsh"'), 11, "unknown word 'publsh'; did you mean 'publish'?"),
    "an ACK of an unknown message": (
        wrong('acks = "PUBLISH"', 'acks = "PUBLISCH"'),
        12,
        "messages.ACK.acks: there is no message 'PUBLISCH'; did you mean 'PUBLISH'?",
    ),
    "acks without being an ACK": (wrong('means = "ack", ', ""), 12, 'messages.ACK.acks: goes with means = "ack"'),
    "an ACK matched by an unknown field": (
        wrong('acks = "PUBLISH"', 'acks = "PUBLISH", acks_by = "echos"'),
        12,
        "messages.ACK.acks_by: there is no field or way of matching 'echos'; did you mean 'echo'?",
    ),
    "a column from a field that the layout lacks": (
        wrong('means = "ack"', 'means = "ack", topic = "topic"'),
        12,
        "messages.ACK.topic: there is no field in this layout 'topic'",
    ),
    "optional from an unknown field": (
        wrong(LAYOUT, LAYOUT + ', optional_from = "paylod"'),
        11,
        "messages.PUBLISH.optional_from: there is no field in this layout 'paylod'; did you mean 'payload'?",
    ),
    "optional from the field that selects": (
        wrong(LAYOUT, LAYOUT + ', optional_from = "type"'),
        11,
        "'type' selects the message, so it must be there",
    ),
    "optional from an empty group": (
        wrong(LAYOUT, LAYOUT + ', optional_from = "flags"').replace("[fields]", "[groups]\nflags = []\n\n[fields]"),
        6,
        "groups.flags: expected at least one field",
    ),
    "a misspelt field in a group": (
        wrong("[fields]", '[groups]\nflags = ["tpe"]\n\n[fields]'),
        6,
        "groups.flags.0: there is no field 'tpe'; did you mean 'type'?",
    ),
    "a variant gone wrong": (
        wrong(END, '\nPING = [\n    { when = { type = 3 }, layout = ["type"] },\n    { layout = ["tpye"] },\n]' + END),
        14,
        "there is no field 'tpye'; did you mean 'type'?",
    ),
    # -- forms
    "a form's key that does not go with the kind": (
        GOOD + '[forms.java]\nfields.type = { until = ":" }\n',
        14,
        "key 'until' does not go with kind 'uint'",
    ),
    "a form's misspelt key": (
        GOOD + "[forms.java]\nfields.type = { sise = 2 }\n",
        14,
        "forms.java.fields.type.sise: unknown key; did you mean 'size'?",
    ),
    "a form's misspelt kind": (
        GOOD + '[forms.java]\nfields.type = { kind = "inr" }\n',
        14,
        "forms.java.fields.type.kind: unknown word 'inr'; did you mean 'int'?",
    ),
    "a field that only one form has": (
        wrong('["type"]', '["mark", "type"]') + '[forms.a]\n[forms.b]\nfields.mark = { kind = "magic", hex = "01" }\n',
        12,
        "a form lacks the field 'mark'; write 'mark?' where a form may do without",
    ),
    "a form's padding": (GOOD + '[forms.a]\npadding = "null"\n', 14, "unknown word 'null'; did you mean 'nul'?"),
    "pad_to without padding": (wrong("[fields]", "pad_to = 100\n[fields]"), 5, 'pad_to: goes with padding = "nul"'),
    # -- policies
    "an unknown level": (
        GOOD + '[rules]\nA-MISSING = "warn"\n',
        14,
        "rules.A-MISSING: unknown word 'warn'; did you mean 'warning'?",
    ),
    "a rule that cannot be": (GOOD + '[rules]\nmissing = "note"\n', 14, "rules.missing"),
    "an unknown wildcard": (
        GOOD + '[topics]\nwildcards = { "*" = "any_run" }\n',
        14,
        "topics.wildcards.*: unknown word 'any_run'; did you mean 'any-run'?",
    ),
    "an unknown number of topics": (
        GOOD + '[topics]\nnumber = "tpic"\n',
        14,
        "topics.number: there is no field 'tpic'; did you mean 'topic'?",
    ),
    "a forward of an unknown message": (
        GOOD + '[broker]\nforward = { PUBLSH = "same-bytes" }\n',
        14,
        "there is no message 'PUBLSH'; did you mean 'PUBLISH'?",
    ),
    "a forward as an unknown word": (
        GOOD + '[broker]\nforward = { PUBLISH = "same-byte" }\n',
        14,
        'expected "same-bytes" or { as = "MESSAGE" }',
    ),
    "an unknown duty": (
        GOOD + '[broker]\norder = { publish = ["send"] }\n',
        14,
        "broker.order.publish.0: unknown word 'send'; expected one of: forward, ack, retained, status",
    ),
    "a client that acknowledges nothing known": (
        GOOD + '[client]\nacks = ["PUBLISCH"]\n',
        14,
        "client.acks.0: there is no message 'PUBLISCH'; did you mean 'PUBLISH'?",
    ),
    "a code that is no field": (
        wrong('acks = "PUBLISH"', 'acks = "PUBLISH", code = "tpye"'),
        12,
        "messages.ACK.code: there is no field in this layout 'tpye'; did you mean 'type'?",
    ),
    "a flag that is a text": (
        wrong('means = "publish"', 'means = "publish", dup = "topic"'),
        11,
        "messages.PUBLISH.dup: expected a number, but the field 'topic' is text",
    ),
    "an accepted code of a text": (wrong(PAYLOAD, '{ kind = "bytes", accepted = 0 }'), 8, "key 'accepted' does not go"),
    "an accepted code that does not fit": (
        wrong(TYPE, '{ kind = "uint", size = 1, accepted = [2, 256] }'),
        6,
        "fields.type.accepted: 256 does not fit: the field holds 0 to 255",
    ),
    "an accepted code that is an error": (
        wrong(TYPE, '{ kind = "uint", size = 1, values = { a = 1, b = 2 }, accepted = 3 }'),
        6,
        "fields.type.accepted: 3 is not one of the field's values: 1, 2",
    ),
    "an accepted code that no message has": (
        wrong(TYPE, '{ kind = "uint", size = 1, accepted = 2 }'),
        6,
        "fields.type.accepted: no message has this code; give one the key code = 'type'",
    ),
    "a resend at once": (GOOD + "[client]\nresend = { after = 0 }\n", 14, "client.resend.after: "),
}


def test_the_good_file_is_good() -> None:
    assert parse_dialect(GOOD, "my.toml").messages == ["PUBLISH", "ACK"]


@pytest.mark.parametrize(("text", "line", "fragment"), list(CASES.values()), ids=list(CASES))
def test_a_wrong_file_is_refused_with_line_key_and_expectation(text: str, line: int | None, fragment: str) -> None:
    with pytest.raises(DialectError) as caught:
        parse_dialect(text, "my.toml")
    where = f"my.toml:{line}: " if line else "my.toml: "
    told = str(caught.value).splitlines()
    assert any(sentence.startswith(where) and fragment in sentence for sentence in told), str(caught.value)
    assert len(set(told)) == len(told)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(DialectError) as caught:
        parse_dialect(wrong("size = 1", "size = 0").replace('"publish"', '"publsh"'), "my.toml")
    assert [line for line, _ in caught.value.problems] == [6, 11]


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_bytes(GOOD.replace("Mine", "M\xeene").encode("latin-1"))
    with pytest.raises(TopicsharkError, match=r"my\.toml: not UTF-8 text \(byte 23\)"):
        load_dialect(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TopicsharkError, match=r"cannot read the dialect file .*none\.toml: No such file"):
        load_dialect(tmp_path / "none.toml")


def test_a_misspelt_dialect_is_suggested() -> None:
    with pytest.raises(TopicsharkError, match=r"there is no dialect 'colom'; did you mean 'colon'\?"):
        load_dialect("colom")


@pytest.mark.parametrize("name", [*builtin_names(), *own_dialect_names()])
def test_every_dialect_loads(name: str) -> None:
    assert dialect_of(name).name == name


# -- nothing but DialectError -------------------------------------------------------------------------------------

TEXTS = [builtin_text(name) for name in builtin_names()]
TEXTS += [(DIALECTS / f"{name}.toml").read_text(encoding="utf-8") for name in own_dialect_names()]
WORDS = sorted({word for text in TEXTS for word in text.replace(",", " ").split()})
HUGE = "0x" + "f" * 6000  # TOML may hold it, but Python does not print it
some = settings(max_examples=150, derandomize=True)


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    """A dialect file with words taken out, put in, swapped or changed."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 3))):
        parts = text.split(" ")
        at = draw(st.integers(0, len(parts) - 1))
        how = draw(st.sampled_from(["remove", "replace", "insert", "number", "noise", "cut line"]))
        if how == "remove":
            del parts[at]
        elif how == "replace":
            parts[at] = draw(st.sampled_from(WORDS))
        elif how == "insert":
            parts.insert(at, draw(st.sampled_from(WORDS)))
        elif how == "number":
            parts[at] = draw(st.integers(-2, 300).map(str) | st.sampled_from([str(1 << 64), HUGE]))
        elif how == "noise":
            parts[at] += draw(st.text(max_size=3))
        else:
            lines = text.splitlines(keepends=True)
            del lines[draw(st.integers(0, len(lines) - 1))]
            parts = "".join(lines).split(" ")
        text = " ".join(parts)
    return text


@some
@given(text=mutated_texts())
def test_a_mutated_dialect_raises_nothing_but_dialect_errors(text: str) -> None:
    with suppress(DialectError):
        parse_dialect(text, "my.toml")


@pytest.mark.parametrize("depth", [50, 300, 330, 480, 495, 990, 5000])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(DialectError):
        parse_dialect(GOOD + "[topics]\nseparator = " + "[" * depth + "]" * depth, "my.toml")
