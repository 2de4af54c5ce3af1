"""The dissector as one file: the parts of the engine, and between them the tables of the dialects as Lua.

The tables are the steps that the codec walks and the policy that tracking follows. Values at their default are left
out. Text is written with decimal escapes, so nothing in a dialect file can end a Lua string; the same dialects give the
same text, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

from pcap_tools.capture.copies import MAX_GROUPS, WINDOW_NS
from pcap_tools.codec.detect import step_bits
from pcap_tools.dialect.program import Charset, Counts, Dialect, Extent, Form, Kind, Layout, Prefix, Step, Value
from pcap_tools.dialect.spec import DEFAULT_RESEND_S, DialectSpec, ForwardSpec, MessageSpec
from pcap_tools.errors import TopicsharkError

EXACT = 10**15  # numbers from here on are strings of digits in Lua, whose doubles end at 2^53

_Lua: TypeAlias = "str | bytes | int | float | bool | Sequence[_Lua] | Mapping[str, _Lua] | Mapping[int, _Lua] | None"

_CHARSETS = {Charset.ASCII: "ascii", Charset.UTF8: "utf8", Charset.JAVA: "java"}
_EXTENTS = {Extent.UNTIL: "until", Extent.PREFIX: "prefix", Extent.REST: "rest"}
_PREFIXES = {
    Prefix.UNSIGNED: "unsigned",
    Prefix.SIGNED: "signed",
    Prefix.UNSIGNED_LITTLE: "unsigned_little",
    Prefix.ASCII: "ascii",
}
_COUNTS = {Counts.REST: "rest", Counts.DATAGRAM: "datagram", Counts.SPAN: "span"}


def lua_tables(dialects: Iterable[Dialect]) -> str:
    """The Lua statements that set ``ts.limits``, which Python has too, and ``ts.dialects``."""
    limits = {"copy_window": WINDOW_NS / 1e9, "copy_groups": MAX_GROUPS, "default_resend": DEFAULT_RESEND_S}
    lines = [f"ts.limits = {_lua(limits)}", "ts.dialects = {"]
    for dialect in dialects:
        lines += _dialect_lines(dialect)
    lines.append("}")
    return "\n".join(lines) + "\n"


def quoted(text: str | bytes) -> str:
    r"""A Lua string of these bytes: printable ASCII as it is, everything else as ``\ddd``.

    >>> print(quoted('a"b\\n'), quoted(b"\x00\xff"))
    "a\034b\092n" "\000\255"
    """
    raw = text.encode() if isinstance(text, str) else text
    plain = (chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:03d}" for byte in raw)
    return '"' + "".join(plain) + '"'


def _dialect_lines(dialect: Dialect) -> list[str]:
    head = _entries(_policy(dialect.spec))
    lines = ["    {", *(f"        {entry}," for entry in head), "        forms = {"]
    for form in dialect.forms:
        lines += _form_lines(dialect.spec, form)
    return [*lines, "        },", "    },"]


def _form_lines(spec: DialectSpec, form: Form) -> list[str]:
    indent = " " * 12
    lines = [f"{indent}{{", f"{indent}    name = {quoted(form.name)}, nul_padding = {_lua(form.nul_padding)},"]
    lines.append(f"{indent}    layouts = {{")
    for layout, variant in zip(form.layouts, _variants(spec, form), strict=True):
        lines += _layout_lines(layout, variant, spec.messages[layout.message][0])
    return [*lines, f"{indent}    }},", f"{indent}}},"]


def _variants(spec: DialectSpec, form: Form) -> list[MessageSpec]:
    """What the file says about each layout of a form, in the same order."""
    variants = [variant for variants in spec.messages.values() for variant in variants]
    return [variant for variant in variants if not variant.forms or form.name in variant.forms]


def _layout_lines(layout: Layout, variant: MessageSpec, first: MessageSpec) -> list[str]:
    indent = " " * 20
    place = {step.name: index for index, step in enumerate(layout.steps, 1)}
    head: dict[str, _Lua] = {
        "message": layout.message,
        "meaning": layout.meaning,
        "last_guard": layout.last_guard + 1,
        "topic": place.get(layout.topic or ""),
        "filter": place.get(layout.filter or ""),
        "payload": place.get(layout.payload or ""),
        "retain": place.get(layout.retain or ""),
        "code": place.get(layout.code or "") if layout.meaning == "ack" else None,
        "sender": variant.sender or first.sender,
    }
    if layout.meaning == "ack":
        head["acks"] = list(variant.acks or first.acks)
        head["acks_by"] = variant.acks_by
        head["acks_by_step"] = place.get(variant.acks_by)
    lines = [f"{indent}{{", f"{indent}    {', '.join(_entries(head))},", f"{indent}    steps = {{"]
    lines += [f"{indent}        {_lua(_step(step))}," for step in layout.steps]
    return [*lines, f"{indent}    }},", f"{indent}}},"]


def _step(step: Step) -> dict[str, _Lua]:
    """One step; the indices of steps count from 1 in Lua."""
    spans = step.counts is Counts.SPAN
    return {
        "name": step.name,
        "kind": step.kind.name.lower(),
        "extent": _EXTENTS.get(step.extent),
        "size": step.size or None,
        "little": step.little or None,
        "bits": step.bits or None,
        "shift": step.shift if step.kind is Kind.BITS else None,
        "opens_group": step.opens_group or None,
        "closes_group": step.closes_group or None,
        "binary_digits": step.binary_digits or None,
        "literal": step.literal or None,
        "or_end": step.or_end or None,
        "closes_run": (step.or_end and step.closes_run) or None,
        "prefix": _PREFIXES.get(step.prefix),
        "charset": _CHARSETS.get(step.charset),
        "optional": step.optional or None,
        "guard": None if step.guard is None else [_value(value) for value in step.guard],
        "accepted": list(step.accepted) or None,
        "allowed": None if step.allowed is None else [_value(value) for value in step.allowed],
        "names": {number: word for number, word in step.names if word} or None,  # an empty word is none
        "counts": _COUNTS.get(step.counts),
        "span_first": step.span[0] + 1 if spans else None,
        "span_last": step.span[1] + 1 if spans else None,
        "span_length": step.span_length + 1 if step.span_length >= 0 else None,
        "evidence": round(step_bits(step), 2) or None,
    }


def _policy(spec: DialectSpec) -> dict[str, _Lua]:
    """Everything of the file that is not layout: ports, topics, and what broker and clients owe."""
    resend = spec.client.resend
    return {
        "name": spec.name,
        "title": spec.title,
        "ports": {role: list(ports) for role, ports in spec.ports.items()},
        "topics": {
            "kind": spec.topics.kind,
            "separator": spec.topics.separator,
            "wildcards": dict(spec.topics.wildcards) or None,
            "case_sensitive": spec.topics.case_sensitive,
            "number": spec.topics.number,
            "named_by": spec.topics.named_by,
        },
        "broker": {
            "forward": {message: _forward(how) for message, how in spec.broker.forward.items()},
            "order": {str(request): list(duties) for request, duties in spec.broker.order.items()},
            "copies": spec.broker.copies,
            "retained": spec.broker.retained,
            "subscriber_port": spec.broker.subscriber_port,
            "forward_from": spec.broker.forward_from,
            "sessions": None if spec.broker.sessions == "none" else spec.broker.sessions,
        },
        "client": {
            "acks": list(spec.client.acks),
            "may_change": [*resend.may_change, *resend.marks] if resend else [],
            "resend_after": resend.after if resend else None,
        },
    }


def _forward(how: str | ForwardSpec) -> dict[str, _Lua]:
    if isinstance(how, str):
        return {"same_bytes": True}
    return {"becomes": how.becomes, "topic_without": how.topic_without, "fresh": list(how.fresh) or None}


def _value(value: Value) -> _Lua:
    return str(value) if isinstance(value, int) and abs(value) >= EXACT else value


def _lua(value: _Lua) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return quoted(str(value)) if abs(value) >= EXACT else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str | bytes):
        return quoted(value)
    if isinstance(value, Sequence):
        return "{ " + ", ".join(map(_lua, value)) + " }" if value else "{}"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_entries(value)) + " }" if value else "{}"
    return "nil"


def _entries(table: Mapping[str, _Lua] | Mapping[int, _Lua]) -> list[str]:
    return [f"{_key(key)} = {_lua(value)}" for key, value in table.items() if value is not None]


def _key(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{_lua(key)}]"
    return key if key.isidentifier() and key.isascii() and key not in _KEYWORDS else f"[{quoted(key)}]"


_KEYWORDS = frozenset(
    [
        "and",
        "break",
        "do",
        "else",
        "elseif",
        "end",
        "false",
        "for",
        "function",
        "goto",
        "if",
        "in",
        "local",
        "nil",
        "not",
        "or",
        "repeat",
        "return",
        "then",
        "true",
        "until",
        "while",
    ]
)


TABLES_AFTER = "16_decode.lua"
BEGIN = "-- >>> generated by `topicshark dissector` from the dialect files; do not edit"
END = "-- <<< end of the generated part"


def dissector_text(dialects: Iterable[Dialect]) -> str:
    """The whole of ``dissector.lua`` for these dialects."""
    chosen = list(dialects)
    names = [dialect.name for dialect in chosen]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise TopicsharkError(f"two dialects are called {doubled[0]!r}; each needs a name of its own")
    folder = files("pcap_tools") / "dissector" / "lua"
    parts = sorted((part for part in folder.iterdir() if part.name.endswith(".lua")), key=lambda part: part.name)
    text = [parts[0].read_text(encoding="utf-8"), "\nlocal shared = { arguments = { ... } }\n"]
    for part in parts[1:]:
        text.append(_wrapped(part.name, part.read_text(encoding="utf-8")))
        if part.name == TABLES_AFTER:
            text.append(_tables(chosen))
    text.append("\nreturn shared\n")
    return "".join(text)


def _wrapped(name: str, body: str) -> str:
    """A part as a function that is called at once: it keeps its locals to itself."""
    title = f"-- {'=' * 20} {name} "
    return f"\n{title:=<118}\n;(function(...)\n{body}end)(shared)\n"


def _tables(dialects: list[Dialect]) -> str:
    body = f"-- luacheck: push no max line length\nlocal ts = ...\n{lua_tables(dialects)}-- luacheck: pop\n"
    return f"\n{BEGIN}\n;(function(...)\n{body}end)(shared)\n{END}\n"


def write_dissector(dialects: Iterable[Dialect], path: str | Path) -> None:
    """Write ``dissector.lua`` with these dialects."""
    text = dissector_text(dialects)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise TopicsharkError(f"cannot write {path}: {error.strerror}") from error
