"""The shape of a dialect file: which keys there are, and what each may hold.

A closed set of field kinds and no expression language, so that every backend can say all of it. Checks that need
only one table stand here; those that look across tables stand in ``rules_of_shape``. Guide: docs/dialects.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

Meaning = Literal["publish", "subscribe", "unsubscribe", "ack", "deliver", "create", "status", "other"]
Level = Literal["error", "warning", "note", "off"]
Span = Literal["any-run", "one-level", "rest-levels", "any-levels", "all"]

PREFIXES = ("u8", "s8", "u16", "u16le", "ascii1", "ascii2", "ascii3", "ascii4", "ascii5")
KEYS_OF_KIND: dict[str, frozenset[str]] = {
    "uint": frozenset({"size", "bits", "order", "values", "open", "counts"}),
    "int": frozenset({"size", "order", "values", "open", "counts"}),
    "digits": frozenset({"size", "coding", "values", "open", "counts"}),
    "text": frozenset({"size", "until", "or_end", "prefix", "charset"}),
    "bytes": frozenset({"size", "until", "or_end", "prefix"}),
    "magic": frozenset({"hex", "ascii"}),
    "java-block": frozenset(),
}


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _port_range(value: Any) -> Any:
    """``[50000, 50001]``, ``50000`` and ``"50003-50006"`` all name ports."""
    if isinstance(value, str):
        first, dash, last = value.partition("-")
        if not (first.strip().isdigit() and (last.strip().isdigit() or not dash)):
            raise ValueError('expected ports as 50000, [50000, 50001] or "50003-50006"')
        low, high = int(first), int(last or first)
        if not 0 < low <= high <= 65535:
            raise ValueError("expected a rising range of ports between 1 and 65535")
        return list(range(low, high + 1))
    return _one_or_many(value)


Port = Annotated[int, Field(ge=1, le=65535)]
Ports = Annotated[list[Port], BeforeValidator(_port_range)]


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FieldSpec(Table):
    """One field: how it is written and where it ends."""

    kind: Literal["uint", "int", "digits", "text", "bytes", "magic", "java-block"]
    size: Annotated[int, Field(ge=1, le=65535)] | None = None
    bits: Annotated[int, Field(ge=1, le=63)] | None = None
    order: Literal["big", "little"] = "big"
    coding: Literal["ascii", "binary"] = "ascii"
    values: dict[str, int] | None = None
    open: bool = False
    counts: Literal["rest", "datagram"] | list[str] | None = None
    until: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    or_end: bool = False
    prefix: Literal[PREFIXES] | None = None  # type: ignore[valid-type]
    charset: Literal["ascii", "utf-8", "java", "latin-1"] = "utf-8"
    hex: Annotated[str, Field(pattern=r"^([0-9a-fA-F]{2}[ \t\r\n]*)+$")] | None = None
    ascii: Annotated[str, Field(min_length=1, pattern=r"^[\x00-\x7f]+$")] | None = None

    @model_validator(mode="after")
    def _keys_fit_kind(self) -> FieldSpec:
        allowed = KEYS_OF_KIND[self.kind]
        for key in sorted(self.model_fields_set - allowed - {"kind"}):
            takes = ", ".join(sorted(allowed)) or "no other key"
            raise ValueError(f"key {key!r} does not go with kind {self.kind!r}, which takes: {takes}")
        getattr(self, "_check_" + self.kind.replace("-", "_"))()
        return self

    def _check_uint(self) -> None:
        if (self.size is None) == (self.bits is None):
            raise ValueError("expected either size (1 to 8 bytes) or bits (1 to 63)")
        if self.size is not None and self.size > 8:
            raise ValueError("expected a size of 1 to 8 bytes")
        if self.bits is not None and (self.counts or self.order == "little"):
            raise ValueError("a bit field takes neither counts nor order")

    def _check_int(self) -> None:
        if self.size is None or self.size > 8:
            raise ValueError("expected a size of 1 to 8 bytes")

    def _check_digits(self) -> None:
        if self.size is None or self.size > 18:
            raise ValueError("expected a size of 1 to 18 digits")

    def _check_text(self) -> None:
        if sum(key is not None for key in (self.size, self.until, self.prefix)) > 1:
            raise ValueError("expected at most one of size, until and prefix (none: to the end)")
        if self.or_end and self.until is None:
            raise ValueError("or_end goes with until")

    _check_bytes = _check_text

    def _check_magic(self) -> None:
        if (self.hex is None) == (self.ascii is None):
            raise ValueError('expected either hex = "AA55" or ascii = "MQTT"')

    def _check_java_block(self) -> None:
        pass


class MessageSpec(Table):
    """One message, or one variant of it: which values select it, its layout, what it means."""

    when: dict[str, Annotated[list[int | str], BeforeValidator(_one_or_many)]] = {}
    sender: str | None = Field(default=None, alias="from")
    forms: list[str] = []
    header: bool = True
    layout: list[str] = []
    optional_from: str | None = None
    means: Meaning | None = None
    acks: Annotated[list[str], BeforeValidator(_one_or_many)] = []
    acks_by: str = "order"
    fill: dict[str, int | str] = {}
    topic: str | None = None
    filter: str | None = None
    payload: str | None = None
    retain: str | None = None


class TopicsSpec(Table):
    """What a topic is and how a filter matches it."""

    kind: Literal["text", "code", "number", "source-address"] = "text"
    separator: str | None = None
    wildcards: dict[str, Span] = {}
    case_sensitive: bool = True
    number: str | None = None
    named_by: str | None = None


class ForwardSpec(Table):
    """How the broker passes a publish on, where not byte for byte."""

    becomes: str = Field(alias="as")
    topic_without: str | None = None
    set: dict[str, int | str] = {}
    fresh: list[str] = []


def _forward(value: Any) -> Any:
    if isinstance(value, str) and value != "same-bytes":
        raise ValueError('expected "same-bytes" or { as = "MESSAGE" }')
    return value


Duty = Literal["forward", "ack", "retained", "status"]


class BrokerSpec(Table):
    """What the broker owes: forwards, acknowledgements and their order, copies, retained messages."""

    forward: dict[str, Annotated[Literal["same-bytes"] | ForwardSpec, BeforeValidator(_forward)]] = {}
    order: dict[Literal["publish", "subscribe", "unsubscribe", "create"], list[Duty]] = {}
    copies: Literal["per-filter", "per-subscriber", "per-subscription"] = "per-subscriber"
    retained: Literal["none", "exact", "matching"] = "none"
    status: dict[str, str] = {}
    nak: str | None = None
    subscriber_port: str | None = None
    forward_from: Literal["broker", "ephemeral"] = "broker"
    sessions: Literal["none", "mqtt-sn"] = "none"


class ResendSpec(Table):
    after: Annotated[float, Field(gt=0)]
    may_change: list[str] = []
    marks: dict[str, int] = {}
    limit: Annotated[int, Field(ge=1)] | None = None


class ClientSpec(Table):
    """What clients owe: resends, and which messages of the broker they acknowledge."""

    resend: ResendSpec | None = None
    acks: list[str] = []


class FormSpec(Table):
    """What differs in one form of the dialect; keys given here go over those of ``fields``."""

    title: str | None = None
    fields: dict[str, dict[str, Any]] = {}
    padding: Literal["none", "nul"] | None = None
    pad_to: Annotated[int, Field(ge=1, le=65507)] | None = None


class DialectSpec(Table):
    """A whole dialect file."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    title: str
    ports: dict[str, Ports] = {}
    padding: Literal["none", "nul"] = "none"
    pad_to: Annotated[int, Field(ge=1, le=65507)] | None = None
    header: list[str] = []
    groups: dict[str, list[str]] = {}
    fields: dict[str, FieldSpec]
    messages: dict[str, Annotated[list[MessageSpec], BeforeValidator(_one_or_many)]]
    forms: dict[str, FormSpec] = {}
    topics: TopicsSpec = TopicsSpec()
    broker: BrokerSpec = BrokerSpec()
    client: ClientSpec = ClientSpec()
    rules: dict[Annotated[str, Field(pattern=r"^[WPARDTNX]-[A-Z0-9]+(-[A-Z0-9]+)*$")], Level] = {}

    @field_validator("messages")
    @classmethod
    def _some_message(cls, value: dict[str, list[MessageSpec]]) -> dict[str, list[MessageSpec]]:
        if not value:
            raise ValueError("expected at least one message")
        return value
