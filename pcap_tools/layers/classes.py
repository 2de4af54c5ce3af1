"""The scapy classes of one dialect: made from its tables when it is loaded, and bound to its UDP ports."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from scapy import fields as sf
from scapy.fields import ConditionalField
from scapy.layers.inet import UDP
from scapy.packet import Packet
from scapy.volatile import RandNum

from pcap_tools.codec import Codec, builder
from pcap_tools.dialect import load_dialect
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.problems import suggestion
from pcap_tools.dialect.program import Counts, Dialect, Extent, Kind, Layout, Step, Value
from pcap_tools.layers.packet import DialectPacket

BODY = "body"  # what a dialect calls payload; scapy's payload is the next layer
# Parameters of scapy's own functions that take fields as keywords.
_TAKEN = frozenset({"self", "cls", "post_transform"})

_PLAIN: dict[str, Any] = {
    "!B": sf.ByteField, "!b": sf.SignedByteField,
    "!H": sf.ShortField, "!h": sf.SignedShortField, "<H": sf.LEShortField, "<h": sf.LESignedShortField,
    "!I": sf.IntField, "!i": sf.SignedIntField, "<I": sf.LEIntField, "<i": sf.LESignedIntField,
    "!Q": sf.LongField, "!q": sf.SignedLongField, "<Q": sf.LELongField, "<q": sf.LESignedLongField,
}  # fmt: skip
_NAMED: dict[str, Any] = {
    "!B": sf.ByteEnumField, "!H": sf.ShortEnumField, "<H": sf.LEShortEnumField, "!I": sf.IntEnumField,
    "!i": sf.SignedIntEnumField, "<I": sf.LEIntEnumField, "!Q": sf.LongEnumField, "<Q": sf.LELongEnumField,
}  # fmt: skip


class WideNumberField(sf.EnumField[int]):
    """A number of 3, 5, 6 or 7 bytes, or of a size of its own."""

    __slots__ = ["least", "most"]

    def __init__(self, name: str, default: int | None, names: dict[int, str], least: int, most: int) -> None:
        self.least, self.most = least, most
        super().__init__(name, default, names, "q")

    def randval(self) -> Any:
        return RandNum(self.least, self.most)


class DigitsField(WideNumberField):
    """A number written as decimal digits."""


def free_name(name: str, taken: type, others: Iterable[str]) -> str:
    """The scapy name for a dialect's field, where ``others`` are the dialect's further names."""

    def is_free(word: str) -> bool:
        return not (hasattr(taken, word) or keyword.iskeyword(word) or word in _TAKEN)

    if is_free(name):
        return name
    if name == "payload" and BODY not in others:
        return BODY
    while not is_free(name) or name in others:
        name += "_"
    return name


def merged_names(layouts: Iterable[Layout]) -> list[str]:
    """The fields of all layouts in the order of the wire: a new one goes behind the one that it follows."""
    merged: list[str] = []
    for layout in layouts:
        at = 0
        for step in layout.steps:
            if step.name not in merged:
                merged.insert(at, step.name)
            at = merged.index(step.name) + 1
    return merged


def make_field(step: Step, name: str, default: Value | None) -> Any:
    """The scapy field of a step. ``default`` None means that the builder works it out."""
    if step.kind in NUMBERS:
        return _number_field(step, name, default if isinstance(default, int) else None)
    text = default if isinstance(default, bytes) else None
    if step.extent is Extent.FIXED and step.kind is not Kind.MAGIC:
        return sf.StrFixedLenField(name, text, step.size)
    return sf.StrField(name, text)


def _number_field(step: Step, name: str, default: int | None) -> Any:
    names = dict(step.names)
    if step.kind is Kind.BITS and names:
        return sf.BitEnumField(name, default, step.bits, names)
    if step.kind is Kind.BITS:
        return sf.BitField(name, default, step.bits)
    if step.kind is Kind.DIGITS:
        return DigitsField(name, default, names, *NUMBERS[step.kind](step.size, step.bits))
    signed = step.kind is Kind.INT
    letter = {1: "B", 2: "H", 4: "I", 8: "Q"}.get(step.size)
    if letter is None:
        return WideNumberField(name, default, names, *NUMBERS[step.kind](step.size, step.bits))
    fmt = ("<" if step.little and step.size > 1 else "!") + (letter.lower() if signed else letter)
    if not names:
        return _PLAIN[fmt](name, default)
    return _NAMED[fmt](name, default, names) if fmt in _NAMED else sf.EnumField(name, default, names, fmt)


_FROM_BROKER = ("ack", "deliver", "status")


class DialectLayers:
    """The scapy classes of one dialect: ``colon.PUBLISH``, ``colon.Unknown``, their base ``colon.Colon``.

    ``messages`` has the class of each message by name. A message whose name is taken here gets an underscore.
    """

    def __init__(self, source: str, dialect: Dialect) -> None:
        self.source, self.dialect, self.codec = source, dialect, Codec(dialect)
        title = "".join(part.capitalize() for part in dialect.name.split("_"))
        self.base: Any = self._class(title, (DialectPacket,), None, [])
        self.base.known_as = self.base
        self.messages: dict[str, Any] = {}
        self.Unknown: Any = self._class("Unknown", (self.base,), None, _all_layouts(dialect))
        setattr(self, title, self.base)
        for message in dialect.messages:
            word = message
            while hasattr(self, word) or keyword.iskeyword(word):
                word += "_"
            layouts = [layout for layout in _all_layouts(dialect) if layout.message == message]
            self.messages[message] = self._class(word, (self.base,), message, layouts)
            setattr(self, word, self.messages[message])

    def class_of(self, message: str | None) -> type[Packet]:
        """The class for a message of this name, or for none."""
        return self.messages.get(message or "", self.Unknown)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "dialect" not in self.__dict__:
            raise AttributeError(name)
        hint = suggestion(name, self.dialect.messages)
        raise AttributeError(f"{self.dialect.name} has no message {name!r}{hint}")

    def __repr__(self) -> str:
        return f"<scapy layers of {self.dialect.name}: {', '.join(self.messages)}>"

    def _class(self, word: str, bases: tuple[type, ...], message: str | None, layouts: list[Layout]) -> Any:
        names = merged_names(layouts)
        own = {name: free_name(name, DialectPacket, names) for name in names}
        attributes: dict[str, Any] = {
            "__doc__": f"{self.dialect.spec.title}: {message or 'any message'}.",
            "__module__": "pcap_tools.layers",
            "name": f"{self.dialect.name} {message or word}",
            "fields_desc": [_field(name, own[name], layouts, message) for name in names],
            "message_name": message,
            "scapy_name": own,
            "dialect_name": {scapy: name for name, scapy in own.items()},
            "dialect_layers": self,
            "dispatch_hook": classmethod(DialectPacket.dispatch.__func__),  # type: ignore[attr-defined]
        }
        if message is not None and self.dialect.ports:
            attributes["overload_fields"] = {UDP: _usual_ports(self.dialect, message, layouts[0].meaning)}
        metaclass: Any = type(DialectPacket)
        return metaclass(word, bases, attributes)


def _all_layouts(dialect: Dialect) -> list[Layout]:
    return [layout for form in dialect.forms for layout in form.layouts]


def _field(name: str, own: str, layouts: Iterable[Layout], message: str | None) -> Any:
    steps = [layout.step(name) for layout in layouts]
    there = [step for step in steps if step is not None]
    field = make_field(there[0], own, _common_default(there))
    if message is not None and None not in steps and not any(step.optional for step in there):
        return field
    return ConditionalField(field, _is_there(name))


def _is_there(name: str) -> Callable[[Any], bool]:
    return lambda packet: packet.has_step(name)


def _common_default(steps: list[Step]) -> Value | None:
    """The value that all layouts agree on; None where it is worked out, or where the field may be absent."""
    if any(step.guard is not None or step.optional or step.counts is not Counts.NOTHING for step in steps):
        return None
    defaults = {builder.default_value(step) for step in steps}
    return defaults.pop() if len(defaults) == 1 and steps[0].kind is not Kind.MAGIC else None


def _usual_ports(dialect: Dialect, message: str, meaning: str) -> dict[str, int]:
    """What ``UDP()/colon.PUBLISH()`` is sent from and to, unless the user says otherwise."""
    ports = {role: numbers[0] for role, numbers in dialect.spec.ports.items() if numbers}
    broker = ports.get("broker", next(iter(ports.values())))
    others = [role for role in ports if role != "broker"]
    client = ports[others[0]] if others else broker
    sender = dialect.spec.messages[message][0].sender
    if sender == "broker" or (sender is None and meaning in _FROM_BROKER):
        return {"sport": broker, "dport": client}
    return {"sport": ports.get(sender or "", client), "dport": broker}


_made: dict[str, DialectLayers] = {}


def load_layer(name_or_file: str | Path) -> DialectLayers:
    """The scapy classes of a dialect, with its UDP ports bound to them in both directions.

    Loading it again is cheap, takes its ports back from a dialect loaded in between, and sees a changed file.
    """
    source = _source(name_or_file)
    before = _made.get(source)
    layers = _layers(source)
    for known in (before, layers):
        if known is not None:
            _unbind(known)
    ends = [{end: port} for port in sorted(layers.dialect.ports) for end in ("dport", "sport")]
    # In front, since scapy takes the first that fits.
    UDP.payload_guess = [*((end, layers.base) for end in ends), *UDP.payload_guess]
    return layers


def unload_layer(layers: DialectLayers | str | Path) -> None:
    """Take a dialect's ports away from it; its classes keep working."""
    known = layers if isinstance(layers, DialectLayers) else _made.get(_source(layers))
    if known is not None:
        _unbind(known)


def restore(source: str, class_name: str, datagram: bytes) -> Any:
    """A pickled packet; its dialect need not be loaded here."""
    layers = _made.get(source) or _layers(source)
    classes = [layers.base, layers.Unknown, *layers.messages.values()]
    return next(cls for cls in classes if cls.__name__ == class_name)(datagram)


def _source(name_or_file: str | Path) -> str:
    word = str(name_or_file)
    return str(Path(word).resolve()) if word.endswith(".toml") else word


def _layers(source: str) -> DialectLayers:
    dialect = load_dialect(source)
    if source not in _made or _made[source].dialect != dialect:
        _made[source] = DialectLayers(source, dialect)
    return _made[source]


def _unbind(layers: DialectLayers) -> None:
    UDP.payload_guess = [bond for bond in UDP.payload_guess if bond[1] is not layers.base]
