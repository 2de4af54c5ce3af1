"""The scapy classes of one dialect, made from its tables when it is loaded."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable
from typing import Any

from scapy.fields import ConditionalField
from scapy.layers.inet import UDP
from scapy.packet import Packet

from pcap_tools.codec import Codec, builder
from pcap_tools.dialect.problems import suggestion
from pcap_tools.dialect.program import Counts, Dialect, Kind, Layout, Step, Value
from pcap_tools.layers.fields import free_name, make_field, merged_names
from pcap_tools.layers.packet import DialectPacket

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
