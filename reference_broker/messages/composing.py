"""From words to requests: which message of a dialect publishes, subscribes, unsubscribes or creates, and its fields."""

from __future__ import annotations

from collections.abc import Mapping

from pcap_tools.codec import Codec
from pcap_tools.codec.message import Message
from pcap_tools.dialect.kinds import NUMBERS
from pcap_tools.dialect.program import Dialect, Form, Layout, Step, Value
from pcap_tools.errors import UsageError
from reference_broker.messages.replies import shared_fields
from reference_broker.topic_index import index_for

MAX_DATAGRAM = 65_507


class Composer:
    """Writes a client's requests. ``role`` picks among messages that mean the same but come from different roles
    (``rolebyte``: a sensor's publish or a dashboard's); input that the dialect cannot carry is a ``UsageError``."""

    def __init__(self, dialect: Dialect, form: str | None = None, role: str | None = None) -> None:
        self._dialect, self._form, self.role = dialect, form, role
        self._codec = Codec(dialect)
        self._index = index_for(dialect.spec.topics)
        if form is not None and dialect.form(form) is None:
            names = ", ".join(known.name for known in dialect.forms)
            raise UsageError(f"{dialect.name} has no form {form!r}; it has: {names}")
        if role is not None and role not in dialect.spec.ports:
            raise UsageError(f"{dialect.name} has no role {role!r}; it has: {', '.join(dialect.spec.ports)}")

    def publish(self, topic: bytes, payload: bytes, retain: bool = False, more: Mapping[str, Value] = {}) -> Message:
        layout = self.layout("publish")
        if self._index.is_wild(topic):
            raise UsageError(f"a wildcard cannot be published to: {topic.decode(errors='replace')}")
        fields = dict(more) | self._named(layout, layout.topic, topic, "topic")
        if layout.payload is not None:
            fields |= self._named(layout, layout.payload, payload, "payload")
        elif payload:
            raise UsageError(f"{layout.message} of {self._dialect.name} has no place for a payload")
        if retain and layout.retain is None:
            raise UsageError(f"{self._dialect.name} cannot retain messages")
        if layout.retain is not None:
            fields[layout.retain] = int(retain)
        return self.message(layout.message, fields)

    def subscribe(self, text: bytes, more: Mapping[str, Value] = {}) -> Message:
        return self._about(self.layout("subscribe"), text, more)

    def unsubscribe(self, text: bytes, more: Mapping[str, Value] = {}) -> Message:
        return self._about(self.layout("unsubscribe"), text, more)

    def create(self, topic: bytes, more: Mapping[str, Value] = {}) -> Message:
        layout = self.layout("create")
        return self.message(layout.message, dict(more) | self._named(layout, layout.topic, topic, "topic"))

    def room_for_payload(self, topic: bytes) -> int:
        """How many bytes of payload a datagram takes."""
        bare = self.publish(topic, b"")
        form = self._dialect.form(bare.form)
        return ((form.pad_to if form else 0) or MAX_DATAGRAM) - bare.length + bare.padding

    def in_form(self, message: Message, form: str) -> Message:
        """The same message in another form."""
        other = Composer(self._dialect, form, self.role)
        name = message.message or ""
        return other.message(name, shared_fields(other._layouts()[name], message.fields))

    def can(self, meaning: str) -> bool:
        """Whether the dialect has a request of this meaning."""
        return bool(self._names(meaning))

    def can_retain(self) -> bool:
        return self.can("publish") and self.layout("publish").retain is not None

    def message(self, name: str, fields: Mapping[str, Value]) -> Message:
        """A message that can be built: it is tried here, so that what is wrong is told to whoever asked for it."""
        known = self._codec.message(name, dict(fields), form=self._form)
        size, form = len(self._codec.build(known)), self._dialect.form(known.form)
        most = (form.pad_to if form else 0) or MAX_DATAGRAM
        if size > most:
            raise UsageError(f"{name} would take {size} bytes; a datagram of {self._dialect.name} has at most {most}")
        return known

    def layout(self, meaning: str) -> Layout:
        """The first layout of the request with this meaning that the role sends."""
        names = self._names(meaning)
        if not names:
            raise UsageError(f"{self._dialect.name} has no message to {meaning}")
        spec = self._dialect.spec.messages
        mine = [name for name in names if self.role is not None and spec[name][0].sender == self.role]
        return self._layouts()[(mine or names)[0]]

    def _names(self, meaning: str) -> list[str]:
        return [name for name, layout in self._layouts().items() if layout.meaning == meaning]

    def _layouts(self) -> dict[str, Layout]:
        form: Form = self._dialect.form(self._form or "") or self._dialect.forms[0]
        first: dict[str, Layout] = {}
        for layout in form.layouts:
            first.setdefault(layout.message, layout)
        return first

    def _about(self, layout: Layout, text: bytes, more: Mapping[str, Value]) -> Message:
        return self.message(layout.message, dict(more) | self._named(layout, layout.filter, text, "filter"))

    def _named(self, layout: Layout, name: str | None, text: bytes, what: str) -> dict[str, Value]:
        if name is None:
            return {}
        if not text and what != "payload":
            raise UsageError(f"the {what} is empty")
        step = layout.step(name)
        return {name: value_of(step, text)} if step is not None else {}


def value_of(step: Step, text: bytes) -> Value:
    """What a user's word is in a field: itself, or the number that the dialect has for it."""
    if step.kind not in NUMBERS:
        return text
    word = text.decode(errors="replace")
    for number, name in step.names:
        if name == word:
            return number
    if not word.isascii() or not word.isdigit():
        words = ", ".join(name for _, name in step.names) or "a number"
        raise UsageError(f"{step.name} takes {words}, not {word!r}")
    return int(word)
