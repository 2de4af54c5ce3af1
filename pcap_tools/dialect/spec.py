"""The shape of a dialect file: which keys there are, and what each may hold.

A closed set of field kinds and no expression language, so that every backend can say all of it. Checks that need
only one table stand here; those that look across tables stand in ``structure_check``. Guide: docs/dialects.md; the
string below a key is its line in docs/reference/dialect-format.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from .kinds import KINDS, PREFIXES

Meaning = Literal["publish", "subscribe", "unsubscribe", "ack", "deliver", "create", "status", "other"]
Level = Literal["error", "warning", "note", "off"]
Span = Literal["any-run", "one-level", "rest-levels", "any-levels", "all"]


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

    kind: Literal[tuple(KINDS)]  # type: ignore[valid-type]
    """What its value is."""
    size: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Bytes, of `digits` digits. A number takes 8 at most, `digits` 18."""
    bits: Annotated[int, Field(ge=1, le=63)] | None = None
    """In place of `size`. Bit fields in a row share bytes and must fill them; the first has the highest bits."""
    order: Literal["big", "little"] = "big"
    """Which byte of a number comes first."""
    coding: Literal["ascii", "binary"] = "ascii"
    """`ascii`: `31 32` is 12; `binary`: `01 02` is 12."""
    values: dict[str, int] | None = None
    """Names of numbers. Other numbers are an error, unless `open`."""
    open: bool = False
    """Numbers that have no name are right too."""
    accepted: Annotated[list[int], BeforeValidator(_one_or_many)] = []
    """Of a return code: the numbers that accept the request; all others refuse it."""
    counts: Literal["rest", "datagram"] | list[str] | None = None
    """It is a length: of the rest behind it, of the datagram, or of these fields in a row. Builders work it out."""
    until: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """It ends before this delimiter."""
    or_end: bool = False
    """With `until`: it may also end with the datagram."""
    prefix: Literal[tuple(PREFIXES)] | None = None  # type: ignore[valid-type]
    """Its length stands in front of it, written so. Without `size`, `until` and `prefix` it goes to the end."""
    charset: Literal["ascii", "utf-8", "java", "latin-1"] = "utf-8"
    """Bytes outside of it are an error. `java` is what `writeUTF` writes."""
    hex: Annotated[str, Field(pattern=r"^([0-9a-fA-F]{2}[ \t\r\n]*)+$")] | None = None
    """The constant in hex digits."""
    ascii: Annotated[str, Field(min_length=1, pattern=r"^[\x00-\x7f]+$")] | None = None
    """The constant as text."""

    @model_validator(mode="after")
    def _keys_fit_kind(self) -> FieldSpec:
        kind = KINDS[self.kind]
        for key in sorted(self.model_fields_set - kind.keys - {"kind"}):
            takes = ", ".join(sorted(kind.keys)) or "no other key"
            raise ValueError(f"key {key!r} does not go with kind {self.kind!r}, which takes: {takes}")
        problem = kind.check(self)
        if problem:
            raise ValueError(problem)
        return self


class MessageSpec(Table):
    """One message, or one variant of it: which values select it, its layout, what it means."""

    when: dict[str, Annotated[list[int | str], BeforeValidator(_one_or_many)]] = {}
    """Field to its value or values: all must hold for a datagram to be this message."""
    sender: str | None = Field(default=None, alias="from")
    """The role that alone sends it; unless said, anybody does."""
    forms: list[str] = []
    """It stands in these forms only; unless said, in all."""
    header: bool = True
    """`false`: it does without the common `header`."""
    layout: list[str] = []
    """Its fields in order. `"name?"` stands only in forms that define the field; a group stands for its fields."""
    optional_from: str | None = None
    """The datagram may end before this field."""
    means: Meaning | None = None
    """What lets tools that never heard of the message know what it does."""
    acks: Annotated[list[str], BeforeValidator(_one_or_many)] = []
    """Of an ACK: the messages it answers, or `"any"`."""
    acks_by: str = "order"
    """How it finds its request: `order`, `echo` (the same but for the type), `copy` (it is inside), or a field."""
    fill: dict[str, int | str] = {}
    """Field to the value that builders write where nothing is said."""
    topic: str | None = None
    """The field that is the topic, if it is not called so."""
    filter: str | None = None
    """The field that is the filter, if it is not called so."""
    payload: str | None = None
    """The field that is the payload, if it is not called so."""
    retain: str | None = None
    """The field that is the retain flag, if it is not called so."""
    code: str | None = None
    """The field that is the status or return code, if it is not called so (in an ACK or a status message)."""
    qos: str | None = None
    """The field that is the quality of service, if it is not called so. A word of it that is a number stands for it."""
    dup: str | None = None
    """The field that is the flag of a resend, if it is not called so."""


class TopicsSpec(Table):
    """What a topic is and how a filter matches it."""

    kind: Literal["text", "code", "number", "source-address"] = "text"
    """`code`: numbers with names; `number`: bound to a name by a message; `source-address`: the sender's address."""
    separator: str | None = None
    """What splits a topic into levels."""
    wildcards: dict[str, Span] = {}
    """Wildcard to what it spans; `any-run` is any characters, `all` a filter that is nothing else."""
    case_sensitive: bool = True
    """Whether large and small letters differ."""
    number: str | None = None
    """The field that holds a topic's number."""
    named_by: str | None = None
    """The message that gives a number its name."""


class ForwardSpec(Table):
    """How the broker passes a publish on, where not byte for byte."""

    becomes: str = Field(alias="as")
    """The message that it becomes."""
    topic_without: str | None = None
    """A text that is cut out of the topic."""
    set: dict[str, int | str] = {}
    """Field to the value that the broker writes."""
    fresh: list[str] = []
    """Fields for which the broker has values of its own."""


def _forward(value: Any) -> Any:
    if isinstance(value, str) and value != "same-bytes":
        raise ValueError('expected "same-bytes" or { as = "MESSAGE" }')
    return value


Duty = Literal["forward", "ack", "retained", "status"]


class BrokerSpec(Table):
    """What the broker owes: forwards, acknowledgements and their order, copies, retained messages."""

    forward: dict[str, Annotated[Literal["same-bytes"] | ForwardSpec, BeforeValidator(_forward)]] = {}
    """Publish to how it is passed on; unless said, byte for byte."""
    order: dict[Literal["publish", "subscribe", "unsubscribe", "create"], list[Duty]] = {}
    """Meaning of a request to what it is answered with, in this order."""
    copies: Literal["per-filter", "per-subscriber", "per-subscription"] = "per-subscriber"
    """How many copies somebody gets whose filters overlap, or who subscribes twice."""
    retained: Literal["none", "exact", "matching"] = "none"
    """Which retained messages a new subscriber gets: of the topic that its filter names, or of all that match."""
    status: dict[str, str] = {}
    """Request to the status message that answers it."""
    nak: str | None = None
    """The message that may answer a refused request in place of its ACK; brokers send it only when told to."""
    subscriber_port: str | None = None
    """The field of a subscribe that names the port to forward to."""
    forward_from: Literal["broker", "ephemeral"] = "broker"
    """`ephemeral`: forwards come from any port of the broker."""
    sessions: Literal["none", "mqtt-sn"] = "none"
    """`mqtt-sn`: clients connect, register topics and are kept alive as MQTT-SN 1.2 says."""


DEFAULT_RESEND_S = 1.0  # where a dialect names no time: clients resend then, and an ACK after it is late


class ResendSpec(Table):
    """When and how a client sends a request again."""

    after: Annotated[float, Field(gt=0)]
    """Seconds without an ACK until a request is sent again."""
    may_change: list[str] = []
    """Fields that may differ in a resend."""
    marks: dict[str, int] = {}
    """Field to the value that marks a resend."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """How often at most."""


class ClientSpec(Table):
    """What clients owe: resends, and which messages of the broker they acknowledge."""

    resend: ResendSpec | None = None
    """How requests are sent again; unless said, the dialect does not demand it."""
    acks: list[str] = []
    """Messages of the broker that a client acknowledges."""


class LoopReplySpec(Table):
    """One entry of `replies`: an entry with neither `above` nor `below` is for all other readings, and comes last."""

    above: int | None = None
    """It answers readings above this number."""
    below: int | None = None
    """It answers readings below this number."""
    reply: Annotated[str, Field(min_length=1)]
    """The payload of the reply."""


class LoopSpec(Table):
    """A control loop: a client replies to the reading of another, and a third reports that it was carried out."""

    reading: str
    """The message with the reading, whose payload is a whole number."""
    reply: str
    """The message with the reply; the role that sends it owes the reply."""
    report: str
    """The message that reports that a reply was carried out."""
    suffix: Annotated[str, Field(min_length=1)]
    """What the topic of a reply, and of a report, has behind the topic of the reading."""
    replies: list[LoopReplySpec]
    """The replies in order: the first that fits the reading is due."""
    completion: Annotated[str, Field(min_length=1)]
    """The payload of a report."""


class ApplicationSpec(Table):
    """What the clients say to each other through the broker."""

    prefixes: dict[str, str] = {}
    """Topic to the text that stands before the number of a reading."""
    loop: LoopSpec | None = None
    """The control loop, if there is one."""


class FormSpec(Table):
    """What differs in one form of the dialect; keys given here go over those of ``fields``."""

    title: str | None = None
    """One line for people."""
    fields: dict[str, dict[str, Any]] = {}
    """Field to what differs: keys go over the common ones, another `kind` replaces it whole. New fields too."""
    padding: Literal["none", "nul"] | None = None
    """In place of the dialect's."""
    pad_to: Annotated[int, Field(ge=1, le=65507)] | None = None
    """In place of the dialect's."""


RuleId = Annotated[str, Field(pattern=r"^[WPARDTNX]-[A-Z0-9]+(-[A-Z0-9]+)*$")]


class RulesSpec(Table):
    """What the checker's rules are in this dialect: a key for each rule, and `sections`."""

    levels: dict[RuleId, Level] = Field(default={}, alias="<id>")
    """Id of a rule to its level, where it differs from [the rule's own](../rules.md)."""
    sections: dict[str, list[RuleId]] = {}
    """Section of the dialect's document to the rules that it states, for reports to cite."""

    @model_validator(mode="before")
    @classmethod
    def _levels_apart(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {"<id>": {key: level for key, level in value.items() if key != "sections"}} | {
            key: sections for key, sections in value.items() if key == "sections"
        }

    def section_of(self, rule: str) -> str:
        """The section that states a rule; empty if none is named."""
        return next((section for section, rules in self.sections.items() if rule in rules), "")


class DialectSpec(Table):
    """A whole dialect file."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
    """Its name everywhere: lower-case letters, digits and `_`."""
    title: str
    """One line for people."""
    ports: dict[str, Ports] = {}
    """Role to its UDP ports."""
    padding: Literal["none", "nul"] = "none"
    """`nul`: NULs after the message are padding and not an error."""
    pad_to: Annotated[int, Field(ge=1, le=65507)] | None = None
    """Builders fill up with NULs to this size; decoders do not insist on it."""
    header: list[str] = []
    """Fields that begin every message, before its `layout`."""
    groups: dict[str, list[str]] = {}
    """Name to fields: in a layout the name stands for them."""
    fields: dict[str, FieldSpec]
    """Every field by name."""
    messages: dict[str, Annotated[list[MessageSpec], BeforeValidator(_one_or_many)]]
    """Every message by name: a table, or a list of variants, of which the first that fits is taken."""
    forms: dict[str, FormSpec] = {}
    """How else it stands on the wire. The first form that decodes without an error is the datagram's."""
    topics: TopicsSpec = TopicsSpec()
    """What a topic is and how a filter matches it."""
    broker: BrokerSpec = BrokerSpec()
    """What the broker owes."""
    client: ClientSpec = ClientSpec()
    """What clients owe."""
    application: ApplicationSpec = ApplicationSpec()
    """What the clients say to each other through the broker."""
    rules: RulesSpec = RulesSpec()
    """Levels of rules, and which section of the dialect's document states them."""

    @field_validator("messages")
    @classmethod
    def _some_message(cls, value: dict[str, list[MessageSpec]]) -> dict[str, list[MessageSpec]]:
        if not value:
            raise ValueError("expected at least one message")
        return value
