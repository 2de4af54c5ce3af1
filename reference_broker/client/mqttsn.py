"""An MQTT-SN 1.2 client without I/O: connects before its first request, registers topics, keeps the session alive.

It publishes at QoS -1 (topics of two characters or predefined ones, without a connection), 0, 1 and 2, and subscribes
at QoS 0 to 2. It may leave a will, keep its session (``clean_session=False``), and sleep between two looks at what the
broker has kept for it (``sleep_s``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from pcap_tools.codec.message import Message
from pcap_tools.dialect.program import Dialect, Value
from pcap_tools.errors import UsageError
from reference_broker.client.core import Client
from reference_broker.client.go_back_n import AckKey
from reference_broker.client.requests import Event, EventKind, Outcome, Request
from reference_broker.messages.sending import SECOND, Endpoint, Send

KEEP_ALIVE_S = 60
PING_AFTER = 0.8  # of the keep-alive time, so that a lost PINGREQ can be sent again in time
QOS_MINUS_ONE = 3
NORMAL, PREDEFINED, SHORT = 0, 1, 2
SHORT_BYTES = 2
ACCEPTED, INVALID_TOPIC_ID = 0, 2
REMEMBERED_IDS = 64
RETURN_CODES = {1: "congestion", 2: "invalid topic id", 3: "not supported"}


class MqttsnClient(Client):
    """See ``Client``; ``qos`` holds for publishes and subscriptions alike."""

    def __init__(
        self,
        dialect: Dialect,
        broker: Endpoint,
        form: str | None = None,
        *,
        client_id: bytes = b"topicshark",
        qos: int = 1,
        keep_alive_s: int = KEEP_ALIVE_S,
        clean_session: bool = True,
        will: tuple[bytes, bytes] | None = None,
        predefined: Mapping[int, bytes] = {},
        sleep_s: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(dialect, broker, form, **settings)
        if qos not in (-1, 0, 1, 2):
            raise UsageError(f"QoS {qos} is not supported; there are -1, 0, 1 and 2")
        self.qos = qos
        self._client_id, self._keep_alive_s = client_id, keep_alive_s
        self._is_clean, self._will, self._sleep_s = clean_session, will, sleep_s
        self._predefined = dict(predefined)
        self._predefined_ids = {topic: number for number, topic in predefined.items()}
        self._is_asleep = False
        self._incoming: OrderedDict[int, None] = OrderedDict()  # QoS 2, until PUBREL
        self._connection: Request | None = None
        self._is_connected = False
        self._registrations: dict[bytes, Request] = {}
        self._topic_ids: dict[bytes, int] = {}
        self._topic_names: dict[int, bytes] = {}
        self._subscriptions: dict[bytes, None] = {}
        self._seen: OrderedDict[int, tuple[bytes | None, bytes | None]] = OrderedDict()
        self._last_sent_ns = 0
        self._reconnect_after_ns = 0

    # -- what a user asks for -------------------------------------------------------------------------------------

    def publish(
        self, topic: bytes, payload: bytes, now: int, retain: bool = False, more: Mapping[str, Value] = {}
    ) -> list[Send]:
        if not topic or any(wildcard in topic for wildcard in (b"#", b"+")):
            raise UsageError(f"not a topic to publish to: {topic.decode(errors='replace')!r}")
        fields: dict[str, Value] = {"qos": self.qos % 4, "retain": int(retain), "data": payload, **more}
        needs_id = topic not in self._predefined_ids and len(topic) != SHORT_BYTES
        if topic in self._predefined_ids:
            fields |= {"topic_id_type": PREDEFINED, "topic_id": self._predefined_ids[topic]}
        elif not needs_id:
            fields |= {"topic_id_type": SHORT, "short_topic": topic}
        elif self.qos < 0:
            raise UsageError(
                "at QoS -1 a topic has two characters or is predefined (it is sent without a registration)"
            )
        else:
            fields |= {"topic_id_type": NORMAL, "topic_id": 0}  # written when the registration has told it
        if self.qos > 0:
            fields["message_id"] = self._fresh_id(16)
        sends = self._connect(now) if self.qos >= 0 else []
        needs = [self._connection] if self._connection is not None and self.qos >= 0 else []
        if needs_id:
            sends += self._register(topic, needs, now)
            needs = [self._registrations[topic]]
        return sends + self._enqueue(Request(self.compose.message("PUBLISH", fields), topic, needs), now)

    def subscribe(self, text: bytes, now: int, more: Mapping[str, Value] = {}) -> list[Send]:
        return self._ask("SUBSCRIBE", text, {"qos": max(self.qos, 0), **more}, now)

    def unsubscribe(self, text: bytes, now: int, more: Mapping[str, Value] = {}) -> list[Send]:
        return self._ask("UNSUBSCRIBE", text, more, now)

    def close(self, now: int) -> list[Send]:
        """DISCONNECT, which the broker answers with the same."""
        return self.request(self.compose.message("DISCONNECT", {}), now) if self._is_connected else []

    def _ask(self, name: str, text: bytes, more: Mapping[str, Value], now: int) -> list[Send]:
        if not text:
            raise UsageError("the filter is empty")
        fields: dict[str, Value] = {"message_id": self._fresh_id(16)}
        if text in self._predefined_ids:
            fields |= {"topic_id_type": PREDEFINED, "topic_id": self._predefined_ids[text]}
        else:
            fields["topic_name"] = text
        if text not in self._predefined_ids and len(text) == SHORT_BYTES and not text.endswith((b"#", b"+")):
            fields["topic_id_type"] = SHORT
        message = self.compose.message(name, fields | dict(more))
        sends = self._connect(now)
        needs = [self._connection] if self._connection is not None else []
        return sends + self._enqueue(Request(message, text, needs), now)

    def _connect(self, now: int) -> list[Send]:
        if self._connection is not None:
            return []
        fields: dict[str, Value] = {"protocol_id": 1, "duration": self._keep_alive_s}
        fields |= {"clean_session": int(self._is_clean), "will": int(self._will is not None)}
        self._connection = Request(self.compose.message("CONNECT", fields | {"client_id": self._client_id}))
        return self._enqueue(self._connection, now)

    def _register(self, topic: bytes, needs: list[Request], now: int) -> list[Send]:
        if topic in self._registrations:
            return []
        fields: dict[str, Value] = {"topic_id": 0, "message_id": self._fresh_id(16), "topic_name": topic}
        self._registrations[topic] = Request(self.compose.message("REGISTER", fields), topic, needs)
        return self._enqueue(self._registrations[topic], now)

    # -- the session ----------------------------------------------------------------------------------------------

    def tick(self, now: int) -> Outcome:
        has_timer = bool(self._keep_alive_s or self._sleep_s)
        if not self._is_connected or not self.is_idle or not has_timer or self._ping_due() > now:
            return super().tick(now)
        if self._is_asleep:
            return self.request(self.compose.message("PINGREQ", {"client_id": self._client_id}), now), []
        if self._sleep_s is not None:
            return self.request(self.compose.message("DISCONNECT", {"duration": self._sleep_s}), now), []
        return self.request(self.compose.message("PINGREQ", {}), now), []

    def next_due(self) -> int | None:
        due = super().next_due()
        if due is None and self._is_connected and (self._keep_alive_s or self._sleep_s):
            return self._ping_due()
        return due

    def _ping_due(self) -> int:
        """When to ping; a client that is to sleep goes to sleep as soon as it has nothing to do."""
        if self._sleep_s is not None:
            return self._last_sent_ns + int(self._sleep_s * SECOND) if self._is_asleep else self._last_sent_ns
        return self._last_sent_ns + int(PING_AFTER * self._keep_alive_s * SECOND)

    def _sent(self, request: Request, datagrams: list[bytes], now: int) -> list[Send]:
        self._last_sent_ns = now
        return super()._sent(request, datagrams, now)

    def _prepare(self, request: Request) -> None:
        topic, fields = request.topic or b"", request.message.fields
        if request.message.message == "PUBLISH" and fields.get("topic_id_type") == NORMAL:
            request.message.fields = fields | {"topic_id": self._topic_ids.get(topic, 0)}

    def _must_wait(self, request: Request, now: int) -> bool:
        """A second copy of CONNECT that comes late would undo what was asked for after the first."""
        late_connect = ("CONNACK", None) in self._last_keys and now < self._quiet_until
        return late_connect or super()._must_wait(request, now)

    def _is_answer(self, message: Message) -> bool:
        return super()._is_answer(message) or message.message == "DISCONNECT"

    def expects_ack(self, message: Message, datagram: bytes) -> bool:
        """DISCONNECT is answered with the same, which is no ACK."""
        return message.message != "DISCONNECT" and super().expects_ack(message, datagram)

    def _key_for(self, message: Message, datagram: bytes) -> AckKey | None:
        if message.message == "DISCONNECT":
            return "DISCONNECT", None
        if message.message == "PUBLISH" and message.fields["qos"] == 2:
            return "PUBREC", message.fields["message_id"]
        if message.message == "PUBLISH" and message.fields["qos"] != 1:
            return None
        return super()._key_for(message, datagram)

    def _key_of(self, ack: Message) -> AckKey:
        """At QoS 2 a PUBACK is a refusal, in place of PUBREC."""
        key = super()._key_of(ack)
        is_refusal = ack.message == "PUBACK" and ack.fields["return_code"] != ACCEPTED
        if is_refusal and self._current is not None and ("PUBREC", key[1]) in self._current.window.keys:
            return "PUBREC", key[1]
        return key

    def _answered_late(self, ack: Message, key: AckKey, now: int) -> Outcome:
        if ack.message == "DISCONNECT" and self._is_connected:
            sends, events = self._reconnect(now)
            return sends, [Event(EventKind.UNEXPECTED, ack, why="the broker has ended the session"), *events]
        if ack.message == "CONNACK" and self._is_connected:
            return self._start_over(now), []
        return super()._answered_late(ack, key, now)

    def _start_over(self, now: int) -> list[Send]:
        """A second CONNECT has arrived and made the broker forget: tell it again what we want."""
        wanted = list(self._subscriptions)
        self._registrations, self._topic_ids, self._topic_names, self._subscriptions = {}, {}, {}, {}
        return [send for text in wanted for send in self.subscribe(text, now)]

    def _reconnect(self, now: int) -> Outcome:
        """The broker knows us no more: connect again and ask again for what we had and what is on its way.

        A broker that ends every session at once gets no more than one try in the time of a resend."""
        pending = [self._current, *self._queue] if self._current is not None else list(self._queue)
        wanted = list(self._subscriptions)
        self._current = None
        self._queue.clear()
        self._forget()
        is_too_soon = now < self._reconnect_after_ns
        self._reconnect_after_ns = now + self.timing.resend_after_ns
        if is_too_soon:
            return [], [self._fail(request) for request in pending]
        sends = [send for text in wanted for send in self.subscribe(text, now)]
        for request in pending:
            sends += self._ask_again(request, now)
        return sends, []

    def _ask_again(self, request: Request, now: int) -> list[Send]:
        topic, message = request.topic or b"", request.message
        if message.message == "PUBLISH":
            return self.publish(topic, message.payload or b"", now, bool(message.retain))
        if message.message == "SUBSCRIBE":
            return self.subscribe(topic, now)
        return self.unsubscribe(topic, now) if message.message == "UNSUBSCRIBE" else []

    def _forget(self) -> None:
        self._connection, self._is_connected, self._is_asleep = None, False, False
        self._registrations, self._topic_ids, self._topic_names, self._subscriptions = {}, {}, {}, {}

    def _fail(self, request: Request) -> Event:
        if request is self._connection:
            self._connection = None
        if request.topic is not None and self._registrations.get(request.topic) is request:
            del self._registrations[request.topic]
        if request.message.message == "PINGREQ":
            self._forget()
        return super()._fail(request)

    def _settled(self, request: Request, ack: Message) -> Event:
        code = ack.fields.get("return_code", ACCEPTED)
        if code != ACCEPTED:
            return self._turned_down(request, int(code))
        topic_id, topic = int(ack.fields.get("topic_id", 0)), request.topic or b""
        name = request.message.message
        if name == "CONNECT":
            self._is_connected = True
        elif name == "DISCONNECT" and request.message.fields.get("duration"):
            self._is_asleep = True
        elif name == "DISCONNECT":
            self._forget()
        elif name == "PUBLISH" and ack.message == "PUBREC":
            released = self.compose.message("PUBREL", {"message_id": request.message.fields["message_id"]})
            self._queue.appendleft(Request(released, request.topic))
        elif name == "REGISTER":
            self._topic_ids[topic] = topic_id
        elif name == "SUBSCRIBE":
            self._subscriptions[topic] = None
            if topic_id:
                self._topic_names[topic_id] = topic
        elif name == "UNSUBSCRIBE":
            self._subscriptions.pop(topic, None)
        return super()._settled(request, ack)

    def _turned_down(self, request: Request, code: int) -> Event:
        failure = self._fail(request)
        if code == INVALID_TOPIC_ID and request.topic is not None:
            self._registrations.pop(request.topic, None)
            self._topic_ids.pop(request.topic, None)
        why = RETURN_CODES.get(code, f"return code {code}")
        return Event(EventKind.REFUSED, request.message, failure.topic, request.sends, why=why)

    # -- messages -------------------------------------------------------------------------------------------------

    def _received(self, message: Message, datagram: bytes, source: Endpoint) -> Outcome:
        name = message.message
        if name == "REGISTER":
            self._topic_names[int(message.fields["topic_id"])] = message.topic or b""
            ack = self._replies.ack(message, datagram)
            return [Send(ack, source)] if ack is not None else [], []
        if name in ("WILLTOPICREQ", "WILLMSGREQ") and self._will is not None:
            answer = ("WILLTOPIC", "will_topic") if name == "WILLTOPICREQ" else ("WILLMSG", "will_message")
            text = self._will[name == "WILLMSGREQ"]
            return [Send(self._replies.codec.build(self.compose.message(answer[0], {answer[1]: text})), source)], []
        if name == "PUBREL":
            self._incoming.pop(int(message.fields["message_id"]), None)
            ack = self._replies.ack(message, datagram)
            return [Send(ack, source)] if ack is not None else [], []
        if name != "PUBLISH":
            return super()._received(message, datagram, source)
        return self._published(message, source)

    def _published(self, message: Message, source: Endpoint) -> Outcome:
        topic, qos = message.topic, message.fields["qos"]
        if message.fields["topic_id_type"] != SHORT:
            topic_id = int(message.fields["topic_id"])
            is_predefined = message.fields["topic_id_type"] == PREDEFINED
            topic = (self._predefined if is_predefined else self._topic_names).get(topic_id)
        if qos == 2 and topic is not None:
            message_id = int(message.fields["message_id"])
            ack = self._replies.codec.build(self.compose.message("PUBREC", {"message_id": message_id}))
            if message_id in self._incoming:
                return [Send(ack, source)], []
            self._incoming[message_id] = None
            if len(self._incoming) > REMEMBERED_IDS:
                self._incoming.popitem(last=False)
            return [Send(ack, source)], [Event(EventKind.RECEIVED, message, topic)]
        acks = [self._puback(message, topic, source)] if qos in (1, 2) else []
        if topic is None:
            return acks, [Event(EventKind.UNEXPECTED, message, why="its topic id was never registered")]
        return acks, [Event(EventKind.RECEIVED, message, topic, duplicate=self._came_before(message))]

    def _puback(self, message: Message, topic: bytes | None, source: Endpoint) -> Send:
        number = message.fields.get("topic_id", int.from_bytes(message.topic or b"\0\0", "big"))
        fields: dict[str, Value] = {"topic_id": number, "message_id": message.fields["message_id"]}
        fields["return_code"] = ACCEPTED if topic is not None else INVALID_TOPIC_ID
        return Send(self._replies.codec.build(self.compose.message("PUBACK", fields)), source)

    def _came_before(self, message: Message) -> bool:
        """The same id with the same content a short while ago: sent again, or doubled by the network."""
        if message.fields["qos"] != 1:
            return False
        message_id, content = int(message.fields["message_id"]), (message.topic, message.payload)
        before = self._seen.get(message_id) == content
        self._seen[message_id] = content
        self._seen.move_to_end(message_id)
        if len(self._seen) > REMEMBERED_IDS:
            self._seen.popitem(last=False)
        return before
