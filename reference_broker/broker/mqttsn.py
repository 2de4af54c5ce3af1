"""MQTT-SN 1.2 sessions on top of the broker: CONNECT, topic ids, QoS -1, 0 and 1, retained, wills, keep-alive.

A topic id belongs to one client. A forward under a topic whose id the client does not know waits for REGISTER and
REGACK. PUBLISH at QoS 1 and REGISTER are sent again, with DUP where there is one, until they are acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.program import Value
from reference_broker.broker.core import Broker
from reference_broker.broker.limits import Limits
from reference_broker.broker.mistakes import Mistake
from reference_broker.broker.mqttsn_session import Forward, Session, Unacknowledged
from reference_broker.messages.sending import SECOND, Endpoint, Send

GATEWAY_ID = 1
KEEP_ALIVE_TOLERANCE = 1.5
MAX_SESSIONS = 10_000
MAX_UNACKNOWLEDGED = 1_000
QOS_MINUS_ONE = 3
NORMAL, PREDEFINED, SHORT = 0, 1, 2
# A stranger who sends these is told to connect. Not for DISCONNECT: two brokers would tell each other for ever.
FOR_CLIENTS_ONLY = frozenset({"REGISTER", "PUBLISH", "SUBSCRIBE", "UNSUBSCRIBE", "PINGREQ"})


class ReturnCode(IntEnum):
    ACCEPTED = 0
    CONGESTION = 1
    INVALID_TOPIC_ID = 2
    NOT_SUPPORTED = 3


class MqttsnBroker(Broker):
    """The broker of a dialect with MQTT-SN sessions; ``predefined`` maps topic ids that need no registration."""

    def __init__(
        self,
        dialect: Dialect,
        limits: Limits | None = None,
        mistakes: Iterable[Mistake] = (),
        predefined: dict[int, bytes] | None = None,
    ) -> None:
        super().__init__(dialect, limits, mistakes)
        self.sessions: dict[Endpoint, Session] = {}
        self.predefined = predefined or {}
        resend = dialect.spec.client.resend
        self._retry_ns = int((resend.after if resend else 10.0) * SECOND)
        self._retries = (resend.limit if resend else None) or 5
        self._by_name: dict[str, Callable[[Session, Message, int], list[Send]]] = {
            "WILLTOPIC": self._will_topic,
            "WILLMSG": self._will_message,
            "REGISTER": self._register,
            "REGACK": self._registered,
            "PUBLISH": self._published,
            "PUBACK": self._settled,
            "SUBSCRIBE": self._subscribed,
            "UNSUBSCRIBE": self._unsubscribed,
            "PINGREQ": self._pinged,
            "DISCONNECT": self._disconnected,
        }
        self._handlers = dict.fromkeys(("publish", "subscribe", "unsubscribe", "create", "ack"), self._other)

    def _other(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        name = message.message or ""
        if name == "SEARCHGW":
            return [self._send("GWINFO", source, gateway_id=GATEWAY_ID)]
        if name == "CONNECT":
            return self._connect(message, source, now)
        if name == "PUBLISH" and message.fields["qos"] == QOS_MINUS_ONE:
            return self._publish_unconnected(message, now)
        session = self.sessions.get(source)
        if session is None:
            return [self._send("DISCONNECT", source)] if name in FOR_CLIENTS_ONLY else []
        session.seen_ns = now
        handler = self._by_name.get(name)
        return handler(session, message, now) if handler else []

    def tick(self, now: int) -> list[Send]:
        """Send again what was not acknowledged; let go of clients that have not been heard of."""
        sends: list[Send] = []
        for session in list(self.sessions.values()):
            silence = now - session.seen_ns
            if session.keep_alive_s and silence > KEEP_ALIVE_TOLERANCE * session.keep_alive_s * SECOND:
                sends += self._lose(session, now)
                continue
            for message_id, waiting in list(session.unacknowledged.items()):
                if waiting.due_ns <= now:
                    sends += self._again(session, message_id, waiting, now)
        return self._allowed(sends, now)

    def _send(self, name: str, to: Endpoint, **fields: Value) -> Send:
        codec = self.replies.codec
        return Send(codec.build(codec.message(name, fields), check=False), to)

    # -- connecting ---------------------------------------------------------------------------------------------

    def _connect(self, message: Message, source: Endpoint, now: int) -> list[Send]:
        if source not in self.sessions and len(self.sessions) >= MAX_SESSIONS and not self._make_room():
            return [self._send("CONNACK", source, return_code=ReturnCode.CONGESTION)]
        known = self.sessions.get(source)
        keep_alive, client_id = message.fields["duration"], message.fields["client_id"]
        is_resend = known is not None and known.connect == message.fields and now < known.connected_ns + self._retry_ns
        renews = bool(message.fields["clean_session"]) and not is_resend
        if known is None or renews or known.client_id != client_id:
            if known is not None:
                self._forget(known)
            known = self.sessions[source] = Session(source, bytes(client_id), int(keep_alive), now)
            known.connect, known.connected_ns = message.fields, now
        known.keep_alive_s, known.seen_ns = int(keep_alive), now
        if message.fields["will"]:
            return [self._send("WILLTOPICREQ", source)]
        known.will = {}
        return [self._send("CONNACK", source, return_code=ReturnCode.ACCEPTED)]

    def _will_topic(self, session: Session, message: Message, now: int) -> list[Send]:
        session.will = {"topic": message.fields.get("will_topic", b""), "qos": message.fields.get("qos", 0)}
        session.will["retain"] = message.fields.get("retain", 0)
        return [self._send("WILLMSGREQ", session.endpoint)]

    def _will_message(self, session: Session, message: Message, now: int) -> list[Send]:
        session.will["data"] = message.fields["will_message"]
        return [self._send("CONNACK", session.endpoint, return_code=ReturnCode.ACCEPTED)]

    def _pinged(self, session: Session, message: Message, now: int) -> list[Send]:
        return [self._send("PINGRESP", session.endpoint)]

    def _disconnected(self, session: Session, message: Message, now: int) -> list[Send]:
        self._forget(session)
        return [self._send("DISCONNECT", session.endpoint)]

    def _make_room(self) -> bool:
        """Let go of the oldest client that has not said a word since it connected: a flood of CONNECT leaves many."""
        silent = next((one for one in self.sessions.values() if one.seen_ns == one.connected_ns), None)
        if silent is None:
            return False
        self._forget(silent)
        return True

    def _forget(self, session: Session) -> None:
        del self.sessions[session.endpoint]
        for text in session.qos_by_filter:
            self.subscriptions.remove(text, session.endpoint)

    def _lose(self, session: Session, now: int) -> list[Send]:
        """A client that fell silent: its last will is published."""
        self.counters["lost: keep-alive"] += 1
        self._forget(session)
        topic, data = session.will.get("topic"), session.will.get("data")
        if not isinstance(topic, bytes) or not isinstance(data, bytes) or not topic:
            return []
        return self._distribute(topic, data, int(session.will["qos"]), bool(session.will["retain"]), now)

    # -- topics -------------------------------------------------------------------------------------------------

    def _register(self, session: Session, message: Message, now: int) -> list[Send]:
        name = message.topic or b""
        fit = name and self._is_fit(name) and not self.subscriptions.index.is_wild(name)
        topic_id = session.topic_id(name) if fit else 0
        code = ReturnCode.ACCEPTED if topic_id else ReturnCode.NOT_SUPPORTED
        message_id = message.fields["message_id"]
        return [self._send("REGACK", session.endpoint, topic_id=topic_id, message_id=message_id, return_code=code)]

    def _registered(self, session: Session, message: Message, now: int) -> list[Send]:
        registered = session.acknowledge("REGISTER", int(message.fields["message_id"]))
        if registered is None:
            return []
        self.accounts.prove(session.endpoint, now)
        topic_id = int(registered.fields["topic_id"])
        if message.fields["return_code"] != ReturnCode.ACCEPTED:
            session.forget_topic_id(topic_id)
            return []
        waiting = session.waiting.pop(topic_id, [])
        return [send for forward in waiting for send in self._forward(session, forward, now)]

    def topic_of(self, message: Message, source: Endpoint) -> bytes | None:
        return self._topic_name(self.sessions.get(source), message)

    def _topic_name(self, session: Session | None, message: Message) -> bytes | None:
        kind = message.fields["topic_id_type"]
        if kind == SHORT:
            return message.topic
        topic_id = int(message.fields["topic_id"])
        if kind == PREDEFINED:
            return self.predefined.get(topic_id)
        return session.topic_names.get(topic_id) if session else None

    # -- publishing ---------------------------------------------------------------------------------------------

    def _publish_unconnected(self, message: Message, now: int) -> list[Send]:
        topic = self._topic_name(None, message)
        if topic is None:
            self.counters["refused: topic"] += 1
            return []
        return self._distribute(topic, message.payload or b"", 0, bool(message.retain), now)

    def _published(self, session: Session, message: Message, now: int) -> list[Send]:
        topic, qos = self._topic_name(session, message), int(message.fields["qos"])
        code = ReturnCode.ACCEPTED
        if qos > 1:
            code = ReturnCode.NOT_SUPPORTED
        elif topic is None or b"\0" in topic or not self._is_fit(topic) or self.subscriptions.index.is_wild(topic):
            code = ReturnCode.INVALID_TOPIC_ID
        elif message.retain and not self.retained.has_room(topic, message.payload or b""):
            code = ReturnCode.CONGESTION
        sends: list[Send] = []
        if code is ReturnCode.ACCEPTED and topic is not None:
            sends += self._distribute(topic, message.payload or b"", qos, bool(message.retain), now)
        if qos or code is not ReturnCode.ACCEPTED:
            number = message.fields.get("topic_id", int.from_bytes(message.topic or b"\0\0", "big"))
            message_id = message.fields["message_id"]
            ack = self._send("PUBACK", session.endpoint, topic_id=number, message_id=message_id, return_code=code)
            sends.append(ack)
        return sends

    def _distribute(self, topic: bytes, data: bytes, qos: int, retain: bool, now: int) -> list[Send]:
        """A publish to everyone who wants it, at the lower of its QoS and theirs."""
        if retain and data:
            self._retain(topic, bytes([qos]) + data)
        elif retain:
            self.on_change({"unretain": topic.hex()})
            self.retained.drop(topic)
        granted: dict[Endpoint, int] = {}
        for text, subscribers in self.subscriptions.matching(topic):
            for endpoint in subscribers:
                wanted = self.sessions[endpoint].qos_by_filter.get(text, 0)
                granted[endpoint] = max(granted.get(endpoint, 0), wanted)
        sends: list[Send] = []
        for endpoint, wanted in granted.items():
            sends += self._forward(self.sessions[endpoint], Forward(topic, data, min(qos, wanted), 0), now)
        return sends

    def _forward(self, session: Session, forward: Forward, now: int) -> list[Send]:
        held = len(session.unacknowledged) + sum(map(len, session.waiting.values()))
        if held >= MAX_UNACKNOWLEDGED:
            self.counters["refused: client does not acknowledge"] += 1
            return []
        is_short = len(forward.topic) == 2
        if not is_short and forward.topic not in session.topic_ids:
            return self._introduce(session, forward, now)
        topic_id = 0 if is_short else session.topic_ids[forward.topic]
        if topic_id in session.waiting:  # its REGISTER is still on its way
            session.waiting[topic_id].append(forward)
            return []
        fields: dict[str, Value] = {"short_topic": forward.topic} if is_short else {"topic_id": topic_id}
        fields |= {"topic_id_type": SHORT if is_short else NORMAL, "data": forward.data}
        fields |= {"qos": forward.qos, "retain": forward.retain, "message_id": 0}
        if forward.qos:
            return [self._send_until_acknowledged(session, "PUBLISH", fields, now)]
        return [self._send("PUBLISH", session.endpoint, **fields)]

    def _introduce(self, session: Session, forward: Forward, now: int) -> list[Send]:
        """Tell a client the id of a topic before the first message of it."""
        topic_id = session.topic_id(forward.topic)
        if not topic_id:
            self.counters["refused: topic ids"] += 1
            return []
        session.waiting[topic_id] = [forward]
        fields: dict[str, Value] = {"topic_id": topic_id, "topic_name": forward.topic}
        return [self._send_until_acknowledged(session, "REGISTER", fields, now)]

    def _send_until_acknowledged(self, session: Session, name: str, fields: dict[str, Value], now: int) -> Send:
        message_id = session.next_message_id()
        fields = fields | {"message_id": message_id}
        self.accounts.await_ack(session.endpoint, now)
        session.unacknowledged[message_id] = Unacknowledged(name, fields, now + self._retry_ns)
        return self._send(name, session.endpoint, **fields)

    def _again(self, session: Session, message_id: int, waiting: Unacknowledged, now: int) -> list[Send]:
        if waiting.tries > self._retries:
            self.counters["given up"] += 1
            del session.unacknowledged[message_id]
            if waiting.name == "REGISTER":
                session.forget_topic_id(int(waiting.fields["topic_id"]))
            return []
        waiting.tries += 1
        waiting.due_ns = now + self._retry_ns
        self.counters["resent"] += 1
        marked = waiting.fields | ({"dup": 1} if waiting.name == "PUBLISH" else {})
        return [self._send(waiting.name, session.endpoint, **marked)]

    def _settled(self, session: Session, message: Message, now: int) -> list[Send]:
        waiting = session.acknowledge("PUBLISH", int(message.fields["message_id"]))
        if waiting is None:
            return []
        self.accounts.prove(session.endpoint, now)
        if message.fields["return_code"] != ReturnCode.INVALID_TOPIC_ID:
            return []
        topic_id = int(waiting.fields.get("topic_id", 0))
        topic = session.topic_names.get(topic_id)
        if topic is None:
            return []
        session.forget_topic_id(topic_id)  # so that it is registered again, and this message follows
        data, qos = bytes(waiting.fields["data"]), int(waiting.fields["qos"])
        return self._forward(session, Forward(topic, data, qos, int(waiting.fields["retain"])), now)

    # -- subscribing --------------------------------------------------------------------------------------------

    def _filter_of(self, message: Message) -> bytes | None:
        if message.fields["topic_id_type"] == PREDEFINED:
            return self.predefined.get(int(message.fields["topic_id"]))
        return message.filter

    def _subscribed(self, session: Session, message: Message, now: int) -> list[Send]:
        text, wanted = self._filter_of(message), int(message.fields["qos"])
        qos = min(wanted, 1) if wanted != QOS_MINUS_ONE else 0
        code = ReturnCode.ACCEPTED
        if not text or not self._is_fit(text):
            code = ReturnCode.INVALID_TOPIC_ID
        elif not self.subscriptions.add(text, session.endpoint):
            code = ReturnCode.CONGESTION
        topic_id = 0
        if code is ReturnCode.ACCEPTED and text is not None:
            session.qos_by_filter[text] = qos
            is_plain = message.fields["topic_id_type"] == NORMAL and not self.subscriptions.index.is_wild(text)
            topic_id = session.topic_id(text) if is_plain else 0
        fields = {"topic_id": topic_id, "message_id": message.fields["message_id"], "return_code": code, "qos": qos}
        sends = [self._send("SUBACK", session.endpoint, **fields)]
        if code is ReturnCode.ACCEPTED and text is not None:
            for topic, kept in self.retained.for_filter(text):
                sends += self._forward(session, Forward(topic, kept[1:], min(kept[0], qos), 1), now)
        return sends

    def _unsubscribed(self, session: Session, message: Message, now: int) -> list[Send]:
        text = self._filter_of(message)
        if text is not None:
            self.subscriptions.remove(text, session.endpoint)
            session.qos_by_filter.pop(text, None)
        return [self._send("UNSUBACK", session.endpoint, message_id=message.fields["message_id"])]
