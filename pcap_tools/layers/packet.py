"""What the scapy packets of all dialects have in common: the codec reads them, the builder writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from scapy.fields import StrField
from scapy.layers.inet import UDP
from scapy.packet import NoPayload, Packet, Padding

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message, WireError
from pcap_tools.dialect.problems import suggestion
from pcap_tools.dialect.program import Counts, Dialect, Form, Kind, Layout, Step, Value
from pcap_tools.errors import UsageError
from pcap_tools.escaping import escape, escape_text, shorten
from pcap_tools.layers.building import Choice, choose, is_absent, to_message


class AlsoKnownAs:
    """Found by ``packet[X]`` and ``X in packet`` under one of its base classes, too."""

    __slots__ = ()
    known_as: ClassVar[type[Packet] | None] = None

    def _own(self, cls: Any) -> Any:
        known = self.known_as
        return type(self) if known is not None and cls in (known, known.__name__) else cls

    def haslayer(self, cls: Any, _subclass: bool | None = None) -> int:
        return super().haslayer(self._own(cls), _subclass)  # type: ignore[misc, no-any-return]

    def getlayer(self, cls: Any, *args: Any, **filters: Any) -> Any:
        return super().getlayer(self._own(cls), *args, **filters)  # type: ignore[misc]


class _CountedField(StrField):
    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        return f"<{len(x)} NULs>" if isinstance(x, bytes) and not x.strip(b"\0") else super().i2repr(pkt, x)


class NulPadding(AlsoKnownAs, Padding):
    """The NULs that a sender put after its message; ``packet[Padding]`` finds it too."""

    name = "Padding"
    known_as = Padding
    show_summary = False  # the message's own summary counts them
    fields_desc: ClassVar[Any] = [_CountedField("load", b"")]

    def self_build(self) -> bytes:
        return Packet.self_build(self)

    def build_padding(self) -> bytes:
        return self.payload.build_padding()


def acknowledges(dialect: Dialect, reply: tuple[Message, bytes], request: tuple[Message, bytes]) -> bool:
    """Each side is a message and its datagram."""
    answer, asked = reply[0], request[0]
    return any(
        _matches(dialect, variant.acks_by, reply, request)
        for variant in dialect.spec.messages.get(answer.message or "", [])
        if "any" in variant.acks or asked.message in variant.acks
    )


def _matches(dialect: Dialect, by: str, reply: tuple[Message, bytes], request: tuple[Message, bytes]) -> bool:
    (answer, answer_bytes), (asked, asked_bytes) = reply, request
    if by == "order":
        return True
    form = dialect.form(answer.form)
    if by == "echo":
        return _echo(answer, answer_bytes, form) == _echo(answer, asked_bytes, form)
    if by == "copy":
        copied = asked_bytes[: len(asked_bytes) - asked.padding]
        return bool(copied) and copied in answer_bytes
    return by in answer.fields and answer.fields[by] == asked.fields.get(by)


def _echo(answer: Message, datagram: bytes, form: Form | None) -> bytes:
    """A datagram without what makes ``answer`` an ACK, and without padding."""
    blanked = bytearray(datagram)
    for step in answer.layout.steps if answer.layout else ():
        if step.guard is not None and step.name in answer.ranges:
            start, end = answer.ranges[step.name]
            for at, mask in enumerate(_mask(step, end - start), start):
                if at < len(blanked):
                    blanked[at] &= ~mask & 0xFF
    return bytes(blanked).rstrip(b"\0") if form and form.nul_padding else bytes(blanked)


def _mask(step: Step, size: int) -> bytes:
    if step.kind is Kind.BITS:
        return ((1 << step.bits) - 1 << step.shift).to_bytes(size, "big")
    return b"\xff" * size


WIDTH = 40  # of one value


def summarize(title: str, name: str | None, message: Message) -> str:
    r"""``colon PUBLISH home/fan "ON" retained``, with what is wrong in brackets.

    ``name`` is the message that was meant; only a datagram that says the same has anything to tell.
    """
    parts = [title]
    if message.message == name and message.layout is not None:
        parts += _columns(message) or _fields(message)
    if message.padding:
        parts.append(f"+{message.padding} NULs")
    if message.error is not None:
        parts.append(f"[{message.error} at {message.error_offset}]")
    return " ".join(parts)


def _columns(message: Message) -> list[str]:
    parts = [_text(column) for column in (message.topic, message.filter) if column is not None]
    if message.payload is not None:
        parts.append(f'"{_text(message.payload)}"')
    return [*parts, "retained"] if parts and message.retain else parts


def _fields(message: Message) -> list[str]:
    steps = message.layout.steps if message.layout else ()
    return [
        f"{step.name}={_value(step, message.fields[step.name])}"
        for step in steps
        if step.name in message.fields and _is_telling(step)
    ]


def _is_telling(step: Step) -> bool:
    return step.guard is None and step.kind is not Kind.MAGIC and step.counts is Counts.NOTHING


def _value(step: Step, value: Value) -> str:
    if isinstance(value, bytes):
        return f'"{_text(value)}"'
    return escape_text(step.name_of(value) or str(value))


def _text(data: bytes) -> str:
    return shorten(escape(data[: WIDTH * 4]), WIDTH)


if TYPE_CHECKING:
    from pcap_tools.layers.classes import DialectLayers

__all__ = ["DialectPacket", "NulPadding"]

UDP_HEADER = 8
_SCAPYS_OPTIONS = ("_internal", "_underlayer", "_parent", "post_transform", "stop_dissection_after")


class DialectPacket(AlsoKnownAs, Packet):
    """One datagram of a dialect. ``pcap_tools.layers`` tells how to use these."""

    __slots__ = ["_form", "_layout", "_padding", "_partial", "_took"]
    _form: str | None  # None: to be found
    _layout: Layout | None  # as read, until a field changes
    _padding: int | None  # NULs to add; None: as many as the dialect wants
    _partial: bool  # what was not read stays away when building
    _took: bytes | None  # what the fields of a damaged datagram stand for, until one changes

    # Each class of a dialect has its own.
    dialect_layers: ClassVar[DialectLayers] = None  # type: ignore[assignment]
    message_name: ClassVar[str | None] = None
    dialect_name: ClassVar[dict[str, str]] = {}
    scapy_name: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        _pkt: bytes = b"",
        *args: Any,
        form: str | None = None,
        padding: int | None = None,
        **fields: Any,
    ) -> None:
        self._form = self._layout = self._took = self._padding = None
        self._partial = self.message_name is None
        named = {self._name_in_scapy(name): value for name, value in fields.items()}
        self._with_words(lambda: super(DialectPacket, self).__init__(_pkt, *args, **named))
        if form is not None:
            self.form = form
        if padding is not None:
            self.padding = padding

    def _name_in_scapy(self, name: str) -> str:
        own = self.scapy_name.get(name, name)
        if own not in self.dialect_name and own not in _SCAPYS_OPTIONS:
            raise UsageError(f"{self._name} has no field {name!r}{suggestion(name, list(self.dialect_name))}")
        return own

    def _with_words(self, set_values: Callable[[], None]) -> None:
        try:
            set_values()
        except KeyError as error:
            raise UsageError(f"{self._name}: no field has a value called {error}") from error

    @property
    def _codec(self) -> Codec:
        return self.dialect_layers.codec

    # -- what there is beside fields -----------------------------------------------------------------------

    @property
    def form(self) -> str:
        """The form of the dialect on the wire."""
        return self._form or choose(*self._wanted())[0].name

    @form.setter
    def form(self, name: str) -> None:
        if self._codec.dialect.form(name) is None:
            names = [form.name for form in self._codec.dialect.forms]
            raise UsageError(f"{self._codec.dialect.name} has no form {name!r}{suggestion(name, names)}")
        self._changed()
        self._form = name

    @property
    def padding(self) -> int:
        """The NULs after the message."""
        return self.reading().padding

    @padding.setter
    def padding(self, size: int) -> None:
        below: Packet = self
        while not isinstance(below.payload, NulPadding | NoPayload):
            below = below.payload
        if isinstance(below.payload, NulPadding):
            below.payload = below.payload.payload
        self._changed()
        self._padding = size

    def reading(self) -> Message:
        """What the codec says about the datagram as it stands."""
        datagram = self.do_build()
        return self._codec.decode(datagram, self._told_length(len(datagram)))

    @property
    def error(self) -> WireError | None:
        return self.reading().error

    @property
    def error_offset(self) -> int | None:
        return self.reading().error_offset

    def _told_length(self, size: int) -> int:
        """The datagram's true length, where a capture cut it short."""
        told = self.underlayer.len if isinstance(self.underlayer, UDP) else None
        return max(size, told - UDP_HEADER) if isinstance(told, int) else size

    # -- reading -------------------------------------------------------------------------------------------

    @classmethod
    def dispatch(cls, _pkt: bytes = b"", *_: Any, **__: Any) -> type[Packet]:
        """The class for these bytes; scapy calls it as ``dispatch_hook`` of every class of a dialect."""
        if not _pkt:
            return cls
        return cls.dialect_layers.class_of(cls.dialect_layers.codec.decode(bytes(_pkt)).message)

    def dissect(self, s: bytes) -> None:
        message = self._codec.decode(s, self._told_length(len(s)))
        read = {name: value for name, value in message.fields.items() if name in self.scapy_name}
        took = max((message.ranges[name][1] for name in read), default=0)
        end = len(s) - message.padding
        self.fields = {own: read.get(name) for own, name in self.dialect_name.items()}
        self._form, self._layout, self._padding = message.form, message.layout, 0
        self._partial = message.error is not None or self.message_name is None
        self._took = s[:took] if self._partial else None
        self.raw_packet_cache, self.raw_packet_cache_fields = s[:took], {}
        self.explicit = 1
        self.do_dissect_payload(s[took:end])
        if message.padding:
            self.add_payload(NulPadding(s[end:], _internal=1, _underlayer=self))

    # -- building ------------------------------------------------------------------------------------------

    def _given(self) -> dict[str, Any]:
        """The fields that somebody set, by the dialect's names."""
        return {self.dialect_name[own]: value for own, value in self.fields.items() if value is not None}

    def _wanted(self) -> tuple[Any, str | None, str | None, dict[str, Any]]:
        return self._codec.dialect, self.message_name, self._form, self._given()

    def _choice(self) -> Choice:
        """Form and layout: as read, until a field changes; then by what was set (a default chooses no layout)."""
        form = self._codec.dialect.form(self._form) if self._layout and self._form else None
        return (form, self._layout) if form and self._layout else choose(*self._wanted())

    def has_step(self, name: str) -> bool:
        """Is this field of the dialect on the wire, in this packet's form and variant?"""
        given = self._given()
        if self._partial:
            return name in given
        steps = self._choice()[1].steps
        return any(step.name == name and not is_absent(steps, at, given) for at, step in enumerate(steps))

    def self_build(self) -> bytes:
        if self.raw_packet_cache is not None:
            return self.raw_packet_cache
        if self._took is not None:
            return self._took
        values = {name: self.getfieldval(own) for own, name in self.dialect_name.items()}
        given = self._given() if self._partial else {name: v for name, v in values.items() if v is not None}
        return self._codec.build(to_message(self._codec.dialect, self._choice(), given, self._partial), check=False)

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        whole = pkt + pay
        if self._padding is not None:
            return whole + bytes(self._padding)
        form = self._codec.dialect.form(self.form)
        return whole.ljust(form.pad_to, b"\0") if form and form.nul_padding and self.message_name else whole

    def do_build_ps(self) -> Any:
        datagram, read = self.do_build(), self.reading()
        rows = [
            (field, field.i2repr(self, read.fields[name]), datagram[slice(*read.ranges[name])])
            for own, name in self.dialect_name.items()
            if name in read.fields and (field := self.get_field(own))
        ]
        return datagram, [*self.payload.build_ps(internal=1)[1], (self, rows)]

    # -- keeping what is no field --------------------------------------------------------------------------

    def _changed(self) -> None:
        self._layout = self._took = None
        self.raw_packet_cache = self.raw_packet_cache_fields = None

    def setfieldval(self, attr: str, val: Any) -> None:
        self._with_words(lambda: super(DialectPacket, self).setfieldval(attr, val))
        if attr in self.dialect_name:
            self._changed()

    def delfieldval(self, attr: str) -> None:
        super().delfieldval(attr)
        if attr in self.dialect_name:
            self._changed()

    def _carry(self, clone: Any) -> Any:
        for slot in DialectPacket.__slots__:
            object.__setattr__(clone, slot, getattr(self, slot))
        return clone

    def copy(self) -> Any:
        return self._carry(super().copy())

    def clone_with(self, payload: Any = None, **kargs: Any) -> Any:
        return self._carry(super().clone_with(payload, **kargs))

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.form == other.form  # type: ignore[attr-defined]

    __hash__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as bytes and the name of the dialect, since the class is no module's."""
        from pcap_tools.layers.classes import restore

        state = super().__reduce__()[2]
        if isinstance(state, dict):
            state.pop("extra_slots", None)  # the bytes say it all
        return restore, (self.dialect_layers.source, type(self).__name__, self.build()), state

    def _command(self, json: bool = False) -> list[tuple[str, Any]]:
        shown = super()._command(json)
        return shown if json or not self._form else [*shown, ("form", repr(self._form))]

    # -- conversation --------------------------------------------------------------------------------------

    def hashret(self) -> bytes:
        return self._codec.dialect.name.encode()

    def answers(self, other: Packet) -> int:
        if not isinstance(other, self.dialect_layers.base):
            return 0
        reply, request = (self.reading(), self.do_build()), (other.reading(), other.do_build())
        return int(acknowledges(self._codec.dialect, reply, request))

    def mysummary(self) -> Any:
        try:
            return summarize(str(self._name), self.message_name, self.reading()), [UDP]
        except UsageError as error:
            return f"{self._name} [cannot be built: {error}]", [UDP]
