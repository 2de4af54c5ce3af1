"""Random dialect files from the whole grammar of docs/dialects.md: most are sound, some are spoilt on purpose.

The loader takes a file or refuses it with the project's own error; those it takes must be read alike by all decoders.
Names and words are often awkward ones: keywords of Lua and Python, attributes of scapy's packets, our own fields.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Table = dict[str, Any]

_OTHERS = ["0", "-1", "1", "9", "64", "65535", "65536", "9223372036854775807", "1e309", "nan", "true", "[]", "{}"]
_OTHERS += ['""', '"rest"', '"nul"', '"uint"', '"text"', '"bytes"', '"datagram"', "1979-05-27", '["type"]', "[[]]"]


def toml_text(table: Table) -> str:
    """A table of plain values and of tables of tables."""
    return "\n".join(_lines(table)) + "\n"


def _lines(table: Table) -> Iterator[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    for key, value in plain.items():
        yield f"{key} = {_inline(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield f"\n[{key}]"
            for name, entry in value.items():
                yield f"{_inline(name)} = {_inline(entry)}"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_inline(key)} = {_inline(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def spoilt(text: str, rng: random.Random) -> str:
    """The text with one to three things done to it that a hand, an editor or an enemy may do."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        at, line = rng.randrange(len(lines)), rng.randrange(len(lines))
        way = rng.randrange(6)
        if way == 0:
            lines[at] = lines[line]
        elif way == 1:
            del lines[at]
        elif way == 2:
            lines.insert(at, lines[line])
        elif way == 3:
            lines[at] = _other_word(lines[at], rng)
        elif way == 4:
            lines[at] = _other_word(lines[at], rng, rng.choice(lines[line].split() or [""]))
        else:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = (
                lines[at][:place]
                + rng.choice(('"', "{", "}", "[", "]", "=", "\0", "\ud800", "é", "0", "-"))
                + lines[at][place:]
            )
        text = "\n".join(lines)
    return text


def _other_word(line: str, rng: random.Random, other: str | None = None) -> str:
    words = line.split(" ")
    words[rng.randrange(len(words))] = rng.choice(_OTHERS) if other is None else other
    return " ".join(words)


NAMES = ["topic", "error", "form", "padding", "pubsub", "own", "end", "class", "message", "payload", "nil", "udp"]
NAMES += ["expert", "pubsub_x", "a23456789_123456789_123456789_12"]
FIELDS = ["type", "retain", "topic", "payload", "filter", "length", "id", "flags", "end", "function", "class", "name"]
FIELDS += ["fields", "time", "underlayer", "self", "form", "padding", "error", "layout", "x", "y", "code"]
WORDS = ("yes", "no", "", "a b", '"quoted"', "\\", "k\u00fcche", "\u202e", "\x1b[31m", "nil", "0", "-1", "]]", "%d%s")
UNTILS = (":", " ", ",", "\n", "\0", "::", "\u00b0", "ab", "aab", "0123456789abcdef", "\u20ac", "\r\n", "\\", "/")
PREFIXES = ("u8", "s8", "u16", "u16le", "ascii1", "ascii2", "ascii3", "ascii4", "ascii5")
MEANINGS = ("publish", "subscribe", "unsubscribe", "ack", "deliver", "create", "status", "other")
SPANS = ("any-run", "one-level", "rest-levels", "any-levels", "all")


@dataclass
class _Draft:
    """A dialect on its way: units are fields that stand together (bits of a byte, a length and what it counts)."""

    rng: random.Random
    fields: dict[str, Table] = field(default_factory=dict)
    units: list[list[str]] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)

    def name(self) -> str:
        free = [word for word in FIELDS if word not in self.fields]
        return self.rng.choice(free) if free and self.rng.random() < 0.8 else f"f{len(self.fields)}"

    def add(self, spec: Table) -> str:
        name = self.name()
        self.fields[name] = spec
        return name

    def is_open(self, name: str) -> bool:
        spec = self.fields[name]
        return spec["kind"] in ("text", "bytes") and not {"size", "until", "prefix"} & spec.keys()


def dialect_text(name: str, rng: random.Random) -> str:
    """The text of one dialect file."""
    draft = _Draft(rng)
    selector = draft.add(_selector(rng))
    header = [[draft.add(_magic(rng))], [selector]] if rng.random() < 0.3 else [[selector]]
    if rng.random() < 0.2:
        header.append([draft.add(_length(rng, rng.choice(("rest", "datagram"))))])
    for _ in range(rng.randint(2, 7)):
        draft.units.append(_unit(draft))
    for place, unit in enumerate(draft.units):
        if rng.random() < 0.15:
            draft.groups[f"group{place}"] = unit
    forms = _forms(draft)
    table: Table = {"name": name, "title": rng.choice(WORDS) + " of rng", "ports": {"broker": rng.randint(1, 65535)}}
    if rng.random() < 0.4:
        table |= {"padding": "nul"} | ({"pad_to": rng.choice((1, 8, 33, 64))} if rng.random() < 0.5 else {})
    table["header"] = [part for unit in header for part in unit]
    table |= {"groups": draft.groups, "fields": draft.fields}
    table["messages"] = _messages(draft, selector, forms)
    table |= {"forms": forms} | _policies(draft, list(table["messages"]))
    return toml_text(table)


# -- fields --------------------------------------------------------------------------------------------------------


def _selector(rng: random.Random) -> Table:
    """What tells the messages apart; numbers 1 to 9 and texts "1" to "9" must fit."""
    size = rng.choice((1, 1, 1, 2, 3, 4, 8))
    sorts: list[Table] = [{"kind": "uint", "size": size}] * 4
    sorts += [{"kind": "uint", "size": size, "order": "little"}, {"kind": "int", "size": size}]
    sorts += [{"kind": "digits", "size": size}, {"kind": "digits", "size": size, "coding": "binary"}]
    sorts += [
        {"kind": "text", "size": 1},
        {"kind": "text", "until": rng.choice(UNTILS)},
        {"kind": "text", "prefix": "u8"},
    ]
    return dict(rng.choice(sorts))


def _magic(rng: random.Random) -> Table:
    if rng.random() < 0.3:
        return {"kind": "java-block"}
    if rng.random() < 0.5:
        return {"kind": "magic", "ascii": rng.choice(("M", "MQTT", "\n\0", "0123456789abcdefgh"))}
    return {"kind": "magic", "hex": rng.randbytes(rng.choice((1, 2, 3, 9, 17))).hex()}


def _length(rng: random.Random, counts: str | list[str]) -> Table:
    if rng.random() < 0.3:
        return {"kind": "digits", "size": rng.choice((1, 2, 3, 5, 18)), "counts": counts}
    if rng.random() < 0.15:
        return {"kind": "varint", "counts": counts}
    size, order = rng.choice((1, 1, 2, 3, 4, 7, 8)), rng.choice(("big", "little"))
    return {"kind": rng.choice(("uint", "int")), "size": size, "order": order, "counts": counts}


def _unit(draft: _Draft) -> list[str]:
    rng = draft.rng
    way = rng.random()
    if way < 0.12:
        return _bits(draft)
    if way < 0.3:
        counted = [draft.add(_some_field(rng, may_be_open=False)) for _ in range(rng.randrange(3))]
        counted.append(draft.add(_some_field(rng, may_be_open=True)))
        length = draft.add(_length(rng, []))
        itself = [length] if rng.random() < 0.2 else []
        draft.fields[length]["counts"] = itself + counted
        between = [draft.add(_some_field(rng, False))] if rng.random() < 0.15 and not itself else []
        return [length, *between, *counted]
    return [draft.add(_some_field(rng, may_be_open=True))]


def _bits(draft: _Draft) -> list[str]:
    left, names = 8 * draft.rng.choice((1, 1, 1, 2, 3, 4, 5, 7, 8)), []
    while left:
        bits = min(draft.rng.choice((1, 2, 3, 4, 7, 8, 13, 31, 33, 63)), left)
        names.append(draft.add({"kind": "uint", "bits": bits} | _values(draft.rng, 0, (1 << bits) - 1)))
        left -= bits
    return names


def _some_field(rng: random.Random, may_be_open: bool) -> Table:
    way = rng.random()
    if way < 0.25:
        size = rng.choice((1, 1, 2, 2, 3, 4, 5, 6, 7, 8))
        kind = rng.choice(("uint", "int"))
        low, high = (0, (1 << 8 * size) - 1) if kind == "uint" else (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1)
        return {"kind": kind, "size": size, "order": rng.choice(("big", "little"))} | _values(rng, low, high)
    if way < 0.35:
        size, coding = rng.choice((1, 2, 4, 9, 10, 15, 16, 18)), rng.choice(("ascii", "binary"))
        return {"kind": "digits", "size": size, "coding": coding} | _values(rng, 0, 10**size - 1)
    if way < 0.42:
        return _magic(rng)
    if way < 0.47:
        return {"kind": "varint"} | _values(rng, 0, (1 << 28) - 1)
    kind = rng.choice(("text", "text", "bytes"))
    charset = {"charset": rng.choice(("ascii", "utf-8", "java", "latin-1"))} if kind == "text" else {}
    ends: list[Table] = [{"size": rng.choice((1, 2, 5, 8, 16, 40))}, {"until": rng.choice(UNTILS)}]
    ends += [{"until": rng.choice(UNTILS), "or_end": True}, {"prefix": rng.choice(PREFIXES)}]
    return {"kind": kind} | charset | rng.choice(ends + [{}] * (2 * may_be_open))


def _values(rng: random.Random, low: int, high: int) -> Table:
    """Names for some numbers; the ends of the range among them."""
    if rng.random() < 0.6:
        return {}
    near = {low, high, 0, 1, min(high, 63), min(high, 64), min(high, 1 << 53), rng.randint(low, high)}
    words = rng.sample(WORDS, k=rng.randint(1, 5))
    # TOML's numbers end at 64 bits with a sign
    numbers = [number for number in rng.sample(sorted(near), k=min(len(near), len(words))) if number < 1 << 63]
    values = dict(zip(words, numbers, strict=False))
    return {"values": values} | ({"open": True} if rng.random() < 0.4 else {}) if values else {}


# -- messages and forms ----------------------------------------------------------------------------------------------


def _messages(draft: _Draft, selector: str, forms: Table) -> Table:
    rng = draft.rng
    is_text = draft.fields[selector]["kind"] == "text"
    numbers = list(range(1, 10)) if rng.random() < 0.9 else [1 << 7 - place % 8 for place in range(9)]
    messages: Table = {}
    for place in range(rng.randint(1, 5)):
        value = numbers[place] if rng.random() < 0.8 else [numbers[place], numbers[-1 - place]]
        when = {selector: _as_text(value) if is_text else value}
        variants = [_message(draft, when, list(forms)) for _ in range(1 + (rng.random() < 0.25))]
        _guard_more(draft, variants[0], has_others=len(variants) > 1)
        messages[rng.choice(("PUBLISH", "Ack", "end", "SUB", "Unknown")) + str(place)] = (
            variants[0] if len(variants) == 1 else variants
        )
    return messages


def _guard_more(draft: _Draft, message: Table, has_others: bool) -> None:
    """One more field that selects: always where another variant would never be reached."""
    numbers = [
        name for name in message["layout"] if draft.fields.get(name, {}).get("kind") in ("uint", "int", "digits")
    ]
    free = [name for name in numbers if not {"values", "counts"} & draft.fields[name].keys()]
    if free and (has_others or draft.rng.random() < 0.1):
        message["when"] = message["when"] | {draft.rng.choice(free): draft.rng.choice((0, 1, [0, 1]))}


def _as_text(value: int | list[int]) -> str | list[str]:
    return [str(number) for number in value] if isinstance(value, list) else str(value)


def _message(draft: _Draft, when: Table, forms: list[str]) -> Table:
    rng = draft.rng
    units = rng.sample(draft.units, k=rng.randrange(len(draft.units) + 1))
    if rng.random() < 0.95:  # what reaches to the end goes last, and there can be one only
        last = [unit for unit in units if draft.is_open(unit[-1]) and "counts" not in draft.fields[unit[0]]]
        units = [unit for unit in units if unit not in last] + last[:1]
    names = [name for unit in units for name in unit]
    grouped = {tuple(members): name for name, members in draft.groups.items()}
    layout = [part for unit in units for part in ([grouped[tuple(unit)]] if tuple(unit) in grouped else unit)]
    if forms and rng.random() < 0.5:
        layout.insert(rng.randrange(len(layout) + 1), "extra?")
    message: Table = {"when": when, "layout": layout, "means": rng.choice(MEANINGS)}
    if names and rng.random() < 0.35:
        message["optional_from"] = rng.choice([unit[0] for unit in units])
    if forms and rng.random() < 0.15:
        message["forms"] = rng.sample(forms, k=1)
    for column in ("topic", "filter", "payload", "retain"):
        if names and rng.random() < 0.3:
            message[column] = rng.choice(names)
    _codes(draft, message, names)
    if message["means"] == "ack":
        message |= {"acks": "any", "acks_by": rng.choice(("order", "echo", "copy", *names))}
    return message


def _codes(draft: _Draft, message: Table, names: list[str]) -> None:
    """Which numbers are a return code, a QoS, the flag of a resend; and which codes accept."""
    rng = draft.rng
    numbers = [name for name in names if draft.fields[name]["kind"] in ("uint", "int", "digits")]
    for column in ("code", "qos", "dup"):
        if numbers and rng.random() < 0.3:
            message[column] = rng.choice(numbers)
    if "code" in message and rng.random() < 0.6:
        code = draft.fields[message["code"]]
        code["accepted"] = rng.choice(list(code.get("values", {"": rng.randrange(2)}).values()))


def _forms(draft: _Draft) -> Table:
    """No forms, or some of which each writes a few fields in another way."""
    rng = draft.rng
    if rng.random() < 0.5:
        return {}
    forms: Table = {}
    for place in range(rng.randint(1, 3)):
        alone = [unit[0] for unit in draft.units if len(unit) == 1]
        changed = [rng.choice(alone)] if alone and rng.random() < 0.7 else []
        fields: Table = {name: _some_field(rng, draft.is_open(name)) for name in changed}
        if rng.random() < 0.4:
            fields["extra"] = _magic(rng) if rng.random() < 0.6 else _some_field(rng, may_be_open=False)
        form: Table = {"fields": fields} if fields else {}
        if rng.random() < 0.3:
            form["padding"] = rng.choice(("nul", "none"))
        forms[f"form{place}"] = form
    return forms


def _policies(draft: _Draft, messages: list[str]) -> Table:
    rng = draft.rng
    wildcards = dict(zip(rng.sample(("*", "+", "#", "%", "?"), k=2), rng.choices(SPANS, k=2), strict=True))
    broker: Table = {"retained": rng.choice(("none", "exact", "matching"))}
    broker["copies"] = rng.choice(("per-filter", "per-subscriber", "per-subscription"))
    forward = [{"as": rng.choice(messages)}, "same-bytes"]
    broker["forward"] = {rng.choice(messages): rng.choice(forward)}
    client: Table = {"acks": rng.sample(messages, k=1)} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        client["resend"] = {"after": 0.5, "may_change": rng.sample(list(draft.fields), k=1)}
    topics: Table = {"separator": rng.choice(("/", ".", "::")), "wildcards": wildcards}
    return {"topics": topics, "broker": broker, "client": client}
