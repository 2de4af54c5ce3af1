"""Building what answers a message: its ACK, its status message, its forward. Used by the broker and by clients."""

from __future__ import annotations

from enum import StrEnum

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Dialect, Extent, Kind, Layout, Value
from pcap_tools.dialect.spec import ForwardSpec


class Sentence(StrEnum):
    """The sentences of status messages; ``{}`` stands for the topic. The original's where it is known: its subscriber
    asks again after exactly that of ``NO_SUCH_TOPIC``, and after no other."""

    PUBLISHED = "The topic {} was published."
    NOT_PUBLISHED = "The topic {} could not be published."
    SUBSCRIBED = "The topic {} is subscribed to."
    NO_SUCH_TOPIC = "This topic does not exist."
    UNSUBSCRIBED = "The topic {} is no longer subscribed to."
    NOT_SUBSCRIBED = "The topic {} was not subscribed to."
    CREATED = "The topic {} was created."
    NOT_CREATED = "The topic {} could not be created."

    def about(self, topic: bytes | None) -> str:
        return self.replace("{}", (topic or b"").decode(errors="replace"))


REFUSALS = (Sentence.NOT_PUBLISHED, Sentence.NO_SUCH_TOPIC, Sentence.NOT_SUBSCRIBED, Sentence.NOT_CREATED)


def is_refusal(text: bytes) -> bool:
    """Whether a status message says that a request was refused.

    >>> is_refusal(b"The topic home was not subscribed to."), is_refusal(b"The topic home was created.")
    (True, False)
    """
    return any(
        text.startswith(head.encode()) and text.endswith(tail.encode())
        for head, _, tail in (sentence.partition("{}") for sentence in REFUSALS)
    )


class Replies:
    """Answers in the words of one dialect, in the form in which the request came."""

    def __init__(self, dialect: Dialect) -> None:
        self.codec = Codec(dialect)
        self._spec = dialect.spec
        self._constant_acks: dict[tuple[str, str], bytes] = {}
        self._acks = {name: self._ack_of(name) for name in dialect.messages}

    def _ack_of(self, message: str) -> str | None:
        """The message that acknowledges another; ACKs themselves get none, which is how ACK loops are avoided."""
        if any(variant.means == "ack" for variant in self._spec.messages[message]):
            return None
        for name, variants in self._spec.messages.items():
            if any(message in variant.acks or "any" in variant.acks for variant in variants):
                return name
        return None

    def ack(self, message: Message, datagram: bytes) -> bytes | None:
        """The ACK of a message, or None where the dialect has none for it."""
        name = self._acks.get(message.message or "")
        if name is None:
            return None
        by = self._spec.messages[name][0].acks_by
        if by == "order":
            key = (name, message.form)
            if key not in self._constant_acks:
                self._constant_acks[key] = self._build(name, message.form, {})
            return self._constant_acks[key]
        layout = self._layout(name, message.form)
        if by == "echo":
            return self._build(name, message.form, shared_fields(layout, message.fields))
        if by == "copy":
            holder = next(
                step.name
                for step in reversed(layout.steps)
                if step.extent is not Extent.FIXED and step.kind not in NUMBERS
            )
            return self._build(name, message.form, {holder: datagram})
        same = {by: message.fields[by]} if by in message.fields else {}
        return self._build(name, message.form, same | self._shared_topic_id(layout, message))

    def _shared_topic_id(self, layout: Layout, message: Message) -> dict[str, Value]:
        """An ACK that has room for the topic's number repeats it."""
        number = self._spec.topics.number
        if number and layout.step(number) and number in message.fields:
            return {number: message.fields[number]}
        return {}

    def nak(self, message: Message) -> bytes | None:
        """The refusal of a message: what it said, under the dialect's word for no."""
        name = self._spec.broker.nak
        if name is None:
            return None
        return self._build(name, message.form, shared_fields(self._layout(name, message.form), message.fields))

    def ack_in_place_of(self, nak: Message, request: str) -> Message:
        """The ACK that would have come had a request not been refused."""
        name = self._acks.get(request) or request
        fields = shared_fields(self._layout(name, nak.form), nak.fields)
        return self.codec.message(name, fields, form=nak.form)

    def status(self, message: Message, text: str) -> bytes | None:
        """The status message that follows a request, with a sentence in it."""
        name = self._spec.broker.status.get(message.message or "")
        if name is None:
            return None
        field = self._layout(name, message.form).payload
        return self._build(name, message.form, {field: text.encode()} if field else {})

    def forward_topic(self, message: Message) -> bytes | None:
        """The topic under which a publish is passed on."""
        how = self._spec.broker.forward.get(message.message or "", "same-bytes")
        if not isinstance(how, ForwardSpec):
            return message.topic
        return self._passed_on(how, message).topic

    def forward(self, message: Message, datagram: bytes) -> bytes:
        """What is passed on of a publish."""
        how = self._spec.broker.forward.get(message.message or "", "same-bytes")
        return datagram if not isinstance(how, ForwardSpec) else self.codec.build(self._passed_on(how, message))

    def _passed_on(self, how: ForwardSpec, message: Message) -> Message:
        layout = self._layout(how.becomes, message.form)
        fields = shared_fields(layout, message.fields)
        if how.topic_without and layout.topic:
            topic = fields[layout.topic]
            if isinstance(topic, bytes):
                fields[layout.topic] = topic.replace(how.topic_without.encode(), b"", 1)
        for name, value in how.set.items():
            fields[name] = value.encode() if isinstance(value, str) else value
        return self.codec.message(how.becomes, fields, form=message.form)

    def _layout(self, name: str, form: str) -> Layout:
        found = self.codec.dialect.form(form) or self.codec.dialect.forms[0]
        return found.layouts_of(name)[0]

    def _build(self, name: str, form: str, fields: dict[str, Value]) -> bytes:
        return self.codec.build(self.codec.message(name, fields, form=form))


def shared_fields(layout: Layout, fields: dict[str, Value]) -> dict[str, Value]:
    """The values that another message has a place for; what selects or measures it is worked out anew."""
    return {
        step.name: fields[step.name]
        for step in layout.steps
        if step.name in fields and step.guard is None and not step.counts and step.kind is not Kind.MAGIC
    }
