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
    """One field: its encoding and where it ends."""

    kind: Literal[tuple(KINDS)]  # type: ignore[valid-type]
    """The type of the value."""
    size: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Size in bytes; of `digits`, the number of digits. At most 8 for numbers, 18 for `digits`."""
    bits: Annotated[int, Field(ge=1, le=63)] | None = None
    """Replaces `size`. Consecutive bit fields share bytes and must fill them; the first has the highest bits."""
    order: Literal["big", "little"] = "big"
    """Byte order of a number."""
    coding: Literal["ascii", "binary"] = "ascii"
    """`ascii`: `31 32` is 12; `binary`: `01 02` is 12."""
    values: dict[str, int] | None = None
    """Names of numbers. Any other number is an error unless `open` is set."""
    open: bool = False
    """Numbers without a name are valid too."""
    accepted: Annotated[list[int], BeforeValidator(_one_or_many)] = []
    """For a return code: the numbers that accept the request. All others refuse it."""
    counts: Literal["rest", "datagram"] | list[str] | None = None
    """The field is the length of the rest after it, of the datagram, or of these consecutive fields."""
    until: Annotated[str, Field(min_length=1, max_length=16)] | None = None
    """The delimiter that ends the field."""
    or_end: bool = False
    """With `until`: the field may also end with the datagram."""
    prefix: Literal[tuple(PREFIXES)] | None = None  # type: ignore[valid-type]
    """Encoding of the length in front. Without `size`, `until` and `prefix` the field extends to the end."""
    charset: Literal["ascii", "utf-8", "java", "latin-1"] = "utf-8"
    """Character set; other bytes are an error. `java` is the encoding of `writeUTF`."""
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
    """One message, or one variant of it: the values that select it, its layout and its meaning."""

    when: dict[str, Annotated[list[int | str], BeforeValidator(_one_or_many)]] = {}
    """Field to value or values. A datagram is this message if all of them match."""
    sender: str | None = Field(default=None, alias="from")
    """The only role that sends the message. Default: any."""
    forms: list[str] = []
    """Forms that have the message. Default: all."""
    header: bool = True
    """`false`: the message has no common `header`."""
    layout: list[str] = []
    """The fields in order. `"name?"`: only in forms that define it. The name of a group stands for its fields."""
    optional_from: str | None = None
    """The datagram may end before this field."""
    means: Meaning | None = None
    """The role of the message in the protocol, which all tools go by."""
    acks: Annotated[list[str], BeforeValidator(_one_or_many)] = []
    """For an ACK: the messages that it acknowledges, or `"any"`."""
    acks_by: str = "order"
    """How an ACK matches its request: by `order`, `echo` (same bytes, other type), `copy` (contains it), or a field."""
    fill: dict[str, int | str] = {}
    """Field to the default value that builders write."""
    topic: str | None = None
    """The topic field, if it has another name."""
    filter: str | None = None
    """The filter field, if it has another name."""
    payload: str | None = None
    """The payload field, if it has another name."""
    retain: str | None = None
    """The retain flag, if it has another name."""
    code: str | None = None
    """The return code of an ACK or status message, if it has another name."""
    qos: str | None = None
    """The quality of service, if it has another name. A value named by a number means that number."""
    dup: str | None = None
    """The flag of a resend, if it has another name."""


class TopicsSpec(Table):
    """The form of topics, and how filters match them."""

    kind: Literal["text", "code", "number", "source-address"] = "text"
    """`code`: numbers with names; `number`: bound to a name by a message; `source-address`: the sender's address."""
    separator: str | None = None
    """The separator of topic levels."""
    wildcards: dict[str, Span] = {}
    """Wildcard to what it matches. `any-run`: any characters; `all`: a filter that is only this wildcard."""
    case_sensitive: bool = True
    """Whether upper and lower case differ."""
    number: str | None = None
    """The field that holds a topic's number."""
    named_by: str | None = None
    """The message that gives a number its name."""


class ForwardSpec(Table):
    """How the broker forwards a publish, if not byte for byte."""

    becomes: str = Field(alias="as")
    """The message that the broker sends."""
    topic_without: str | None = None
    """A text that the broker removes from the topic."""
    set: dict[str, int | str] = {}
    """Field to the value that the broker writes."""
    fresh: list[str] = []
    """Fields that the broker fills with its own values."""


def _forward(value: Any) -> Any:
    if isinstance(value, str) and value != "same-bytes":
        raise ValueError('expected "same-bytes" or { as = "MESSAGE" }')
    return value


Duty = Literal["forward", "ack", "retained", "status"]


class BrokerSpec(Table):
    """Duties of the broker: forwards, acknowledgements and their order, copies, retained messages."""

    forward: dict[str, Annotated[Literal["same-bytes"] | ForwardSpec, BeforeValidator(_forward)]] = {}
    """Publish to how the broker forwards it. Default: byte for byte."""
    order: dict[Literal["publish", "subscribe", "unsubscribe", "create"], list[Duty]] = {}
    """Meaning of a request to the responses, in order."""
    copies: Literal["per-filter", "per-subscriber", "per-subscription"] = "per-subscriber"
    """Number of copies for a client with overlapping filters or repeated subscriptions."""
    retained: Literal["none", "exact", "matching"] = "none"
    """Retained messages for a new subscriber: of the topic equal to the filter, or of all matching topics."""
    status: dict[str, str] = {}
    """Request to the status message that the broker sends for it."""
    nak: str | None = None
    """The message that may replace the ACK of a refused request. Brokers send it only if configured to."""
    subscriber_port: str | None = None
    """The field of a subscribe with the port to forward to."""
    forward_from: Literal["broker", "ephemeral"] = "broker"
    """Source port of forwards. `ephemeral`: any port of the broker."""
    sessions: Literal["none", "mqtt-sn"] = "none"
    """`mqtt-sn`: clients connect, register topics and stay alive as specified by MQTT-SN 1.2."""


DEFAULT_RESEND_S = 1.0  # where a dialect names no time: clients resend then, and an ACK after it is late


class ResendSpec(Table):
    """When and how clients resend a request."""

    after: Annotated[float, Field(gt=0)]
    """Seconds without an ACK before a client resends."""
    may_change: list[str] = []
    """Fields that may differ in a resend."""
    marks: dict[str, int] = {}
    """Field to its value in a resend."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of resends."""


class ClientSpec(Table):
    """Duties of clients: resends, and the messages of the broker that they acknowledge."""

    resend: ResendSpec | None = None
    """How clients resend requests. Default: resends are not required."""
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
    """What clients exchange through the broker."""

    prefixes: dict[str, str] = {}
    """Topic to the text that stands before the number of a reading."""
    loop: LoopSpec | None = None
    """The control loop, if there is one."""


class FormSpec(Table):
    """What differs in one form of the dialect; keys given here go over those of ``fields``."""

    title: str | None = None
    """A description in one line."""
    fields: dict[str, dict[str, Any]] = {}
    """Field to what differs: keys override the common ones, another `kind` replaces the field. May add fields."""
    padding: Literal["none", "nul"] | None = None
    """Overrides the setting of the dialect."""
    pad_to: Annotated[int, Field(ge=1, le=65507)] | None = None
    """Overrides the setting of the dialect."""


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
    """Name of the dialect: lower-case letters, digits and `_`."""
    title: str
    """A description in one line."""
    ports: dict[str, Ports] = {}
    """Role to its UDP ports."""
    padding: Literal["none", "nul"] = "none"
    """`nul`: NULs after the message are padding, not an error."""
    pad_to: Annotated[int, Field(ge=1, le=65507)] | None = None
    """Builders pad with NULs to this size. Decoders accept any size."""
    header: list[str] = []
    """Fields at the beginning of every message, before its `layout`."""
    groups: dict[str, list[str]] = {}
    """Name to fields. In a layout, the name stands for these fields."""
    fields: dict[str, FieldSpec]
    """Every field by name."""
    messages: dict[str, Annotated[list[MessageSpec], BeforeValidator(_one_or_many)]]
    """Every message by name: a table, or a list of variants. The first matching variant counts."""
    forms: dict[str, FormSpec] = {}
    """Encodings of the dialect. The first form that decodes without an error is the form of a datagram."""
    topics: TopicsSpec = TopicsSpec()
    """The form of topics, and how filters match them."""
    broker: BrokerSpec = BrokerSpec()
    """Duties of the broker."""
    client: ClientSpec = ClientSpec()
    """Duties of clients."""
    application: ApplicationSpec = ApplicationSpec()
    """What clients exchange through the broker."""
    rules: RulesSpec = RulesSpec()
    """Levels of rules, and which section of the dialect's document states them."""

    @field_validator("messages")
    @classmethod
    def _some_message(cls, value: dict[str, list[MessageSpec]]) -> dict[str, list[MessageSpec]]:
        if not value:
            raise ValueError("expected at least one message")
        return value
