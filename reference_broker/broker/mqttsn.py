"""MQTT-SN 1.2 sessions on top of the broker.

CONNECT with and without clean session, wills and their updates, topic ids (registered, short, predefined), QoS -1 to 2,
retained messages, keep-alive, sleeping clients, gateway discovery, and clients behind a forwarder.

A topic id belongs to one client. A forward under a topic whose id the client does not know waits for REGISTER and
REGACK. What a client must acknowledge is sent again, with DUP where there is one, after T_retry and N_retry times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import count
from typing import NamedTuple

from pcap_tools.codec.message import Message
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.program import Value
from reference_broker.broker.core import REPLAY_SLICE, Broker
from reference_broker.broker.limits import Limits, Shares
from reference_broker.broker.mistakes import Mistake
from reference_broker.broker.mqttsn_session import MAX_INCOMING, Forward, Replay, Session, State, Unacknowledged
from reference_broker.broker.turns import SLICE, Work
from reference_broker.messages.sending import SECOND, Endpoint, Send

KEEP_ALIVE_TOLERANCE = 1.5
MAX_UNACKNOWLEDGED = 1_000
WINDOW = 64  # messages on their way to one client; the others wait
RESEND_BYTES = 1 << 20  # in one tick
CHECK_NS = SECOND  # between two looks at the keep-alive time of a session
CHECKS = 4_096  # in one tick
QOS_MINUS_ONE = 3
NORMAL, PREDEFINED, SHORT = 0, 1, 2
PORT_BITS = 16
# A stranger who sends these is told to connect. Not for DISCONNECT: two brokers would tell each other for ever.
FOR_CLIENTS_ONLY = frozenset(
    {"REGISTER", "PUBLISH", "SUBSCRIBE", "UNSUBSCRIBE", "PINGREQ", "WILLTOPICUPD", "WILLMSGUPD"}
)


class ReturnCode(IntEnum):
    ACCEPTED = 0
    CONGESTION = 1
    INVALID_TOPIC_ID = 2
    NOT_SUPPORTED = 3


class Gateway(NamedTuple):
    """How the broker shows itself as a gateway. It sends ADVERTISE to ``advertise_to`` every so many seconds."""

    gateway_id: int = 1
    advertise_to: Endpoint | None = None
    advertise_s: int = 900  # T_ADV of section 7.2


class MqttsnBroker(Broker):
    """The broker of a dialect with MQTT-SN sessions; ``predefined`` maps topic ids that need no registration."""

    def __init__(
        self,
        dialect: Dialect,
        limits: Limits | None = None,
        mistakes: Iterable[Mistake] = (),
        predefined: dict[int, bytes] | None = None,
        gateway: Gateway | None = None,
    ) -> None:
        super().__init__(dialect, limits, mistakes)
        self.sessions: dict[Endpoint, Session] = {}
        self.predefined = predefined or {}
        self.gateway = gateway or Gateway()
        resend = dialect.spec.client.resend
        self._retry_ns = int((resend.after if resend else 10.0) * SECOND)
        self._retries = (resend.limit if resend else None) or 5
        self._parked: dict[bytes, Session] = {}  # by client id: disconnected, but not cleaned
        self._number = Shares(self.limits.sessions)
        self._held = Shares(self.limits.unacknowledged_bytes)
        self._nodes = _Nodes(self.limits.sessions)
        self._resends: OrderedDict[tuple[Session, int], None] = OrderedDict()  # in the order in which they are due
        self._checks: OrderedDict[Session, int] = OrderedDict()  # when to look at a session again
        self._advertise_ns = 0
        self._by_name: dict[str, Callable[[Session, Message, int], list[Send]]] = {
            "WILLTOPIC": self._will_topic,
            "WILLMSG": self._will_message,
            "WILLTOPICUPD": self._will_topic_updated,
            "WILLMSGUPD": self._will_message_updated,
            "REGISTER": self._register,
            "REGACK": self._registered,
            "PUBLISH": self._published,
            "PUBACK": self._settled,
            "PUBREC": self._received,
            "PUBREL": self._released,
            "PUBCOMP": self._completed,
            "SUBSCRIBE": self._subscribed,
            "UNSUBSCRIBE": self._unsubscribed,
            "PINGREQ": self._pinged,
            "DISCONNECT": self._disconnected,
        }
        self._handlers = dict.fromkeys(("publish", "subscribe", "unsubscribe", "create", "ack"), self._other)

    def _other(self, message: Message, datagram: bytes, source: Endpoint, now: int) -> list[Send]:
        name = message.message or ""
        if name == "FORWARDED":
            return self._forwarded(message, source, now)
        if name == "SEARCHGW":
            return [self._send("GWINFO", source, gateway_id=self.gateway.gateway_id)]
        if name == "CONNECT":
            return self._connect(message, source, now)
        if name == "PUBLISH" and message.fields["qos"] == QOS_MINUS_ONE:
            return self._publish_unconnected(message, source, now)
        session = self.sessions.get(source)
        if name == "PINGREQ" and session is None:
            session = self._moved_sleeper(message, source)
        if session is None or session.state is State.DISCONNECTED:
            return [self._send("DISCONNECT", source)] if name in FOR_CLIENTS_ONLY else []
        session.seen_ns = now
        handler = self._by_name.get(name)
        return handler(session, message, now) if handler else []

    def tick(self, now: int) -> list[Send]:
        """Send again what was not acknowledged; let go of clients that have not been heard of. Only what is due by now
        is looked at, and no more than a slice of it in one tick."""
        sends: list[Send] = []
        for _ in range(min(CHECKS, len(self._checks))):
            session, due_ns = next(iter(self._checks.items()))
            if 0 < due_ns - now <= CHECK_NS:
                break
            del self._checks[session]
            sends += self._checked(session, now)
        done = 0
        for _ in range(min(SLICE, len(self._resends))):
            session, message_id = next(iter(self._resends))
            waiting = session.unacknowledged[message_id]
            if waiting.due_ns > now or done > RESEND_BYTES:
                break
            del self._resends[session, message_id]
            if session.state in (State.ACTIVE, State.AWAKE):
                sends += self._again(session, message_id, waiting, now)
                done += waiting.size
        return self._allowed(sends, now) + self._advertise(now)

    def _advertise(self, now: int) -> list[Send]:
        to, gateway_id, seconds = self.gateway.advertise_to, self.gateway.gateway_id, self.gateway.advertise_s
        if to is None or now < self._advertise_ns:
            return []
        self._advertise_ns = now + seconds * SECOND
        return [self._send("ADVERTISE", to, gateway_id=gateway_id, duration=seconds)]

    def _send(self, name: str, to: Endpoint, **fields: Value) -> Send:
        codec = self.replies.codec
        return Send(codec.build(codec.message(name, fields), check=False), to)

    # -- nodes behind a forwarder -----------------------------------------------------------------------------------

    def _forwarded(self, message: Message, source: Endpoint, now: int) -> list[Send]:
        """The message of a node behind a forwarder; what goes to the node is encapsulated by ``_allowed``."""
        node_id, inner = bytes(message.fields["node_id"]), bytes(message.fields["inner"])
        carried = self.replies.codec.decode_if_valid(inner)
        if carried is None or carried.message in (None, "FORWARDED"):
            self.counters["malformed"] += 1
            return []
        node = self._nodes.endpoint(source, node_id)
        if node is None:
            return self._refuse("sessions", source)
        self.counters[carried.message or "?"] += 1
        sends = self._other(carried, inner, node, now)
        if node not in self.sessions:  # it has no session: its answers are all that it gets
            sends = [self._encapsulated(send) for send in sends]
            self._nodes.forget(node)
        return sends

    def _encapsulated(self, send: Send) -> Send:
        node_id = self._nodes.id_of(send.to)
        if node_id is None:
            return send
        to = send.to[0], send.to[1] & 0xFFFF
        return self._send("FORWARDED", to, control=0, node_id=node_id, inner=send.datagram)

    def _allowed(self, sends: list[Send], now: int) -> list[Send]:
        if self._nodes:
            sends = [self._encapsulated(send) for send in sends]
        return super()._allowed(sends, now)

    # -- connecting ---------------------------------------------------------------------------------------------

    def _connect(self, message: Message, source: Endpoint, now: int) -> list[Send]:
        keep_alive, client_id = int(message.fields["duration"]), bytes(message.fields["client_id"])
        is_clean = bool(message.fields["clean_session"])
        known = self.sessions.get(source)
        is_resend = known is not None and known.connect == message.fields and now < known.connected_ns + self._retry_ns
        if known is None or not is_resend:
            known = self._begin(known, source, client_id, is_clean, now)
            if known is None:
                self._refuse("sessions", source)
                return [self._send("CONNACK", source, return_code=ReturnCode.CONGESTION)]
            known.connect, known.connected_ns, known.is_clean = message.fields, now, is_clean
        known.keep_alive_s, known.seen_ns = keep_alive, now
        if message.fields["will"]:
            return [self._send("WILLTOPICREQ", source)]
        known.will = {}
        if is_resend:
            return [self._send("CONNACK", source, return_code=ReturnCode.ACCEPTED)]
        return self._welcome(known, now)

    def _begin(
        self, known: Session | None, source: Endpoint, client_id: bytes, is_clean: bool, now: int
    ) -> Session | None:
        """The session of a client that connects: the one that it had, or a new one; None if there is no room."""
        old = known if known is not None and known.client_id == client_id else None
        if old is None and client_id:
            old = self._parked.get(client_id)
        if known is not None and old is not known:
            self._forget(known)
        if old is not None and is_clean:
            self._forget(old)
            old = None
        if old is None:
            if not self._number.fits(source[0]) and not self._make_room(source):
                return None
            self._number.take(source[0])
            old = Session(source, client_id, 0, now)
        else:
            self._move(old, source)
        old.state = State.ACTIVE
        old.known.clear()
        if self._parked.get(client_id) is old:
            del self._parked[client_id]
        self.sessions[source] = old
        self._checks[old] = now
        return old

    def _welcome(self, session: Session, now: int) -> list[Send]:
        """CONNACK, and what waited for the client."""
        sends = [self._send("CONNACK", session.endpoint, return_code=ReturnCode.ACCEPTED)]
        return sends + self._resume(session, now)

    def _resume(self, session: Session, now: int) -> list[Send]:
        """A client listens again: what was on its way is sent again, and then what waited. A client that has connected
        anew has to be told the topic ids again (section 6.10)."""
        sends: list[Send] = []
        for message_id, waiting in list(session.unacknowledged.items()):
            topic_id = int(waiting.fields.get("topic_id", 0))
            topic = session.topic_names.get(topic_id, b"")
            needs_id = waiting.name == "PUBLISH" and waiting.fields["topic_id_type"] == NORMAL
            if needs_id and topic not in session.known:
                waiting.is_held_back = True
                self._resends.pop((session, message_id), None)
                if topic_id not in session.waiting:
                    session.waiting[topic_id] = []
                    sends.append(self._register_at(session, topic, topic_id, now))
            elif message_id in session.unacknowledged:
                sends += self._again(session, message_id, waiting, now)
        return sends + self._fill(session, now)

    def _will_topic(self, session: Session, message: Message, now: int) -> list[Send]:
        if not message.fields.get("will_topic"):  # section 6.3: an empty one takes the will back
            session.will = {}
            return self._welcome(session, now)
        session.will = {"topic": message.fields["will_topic"], "qos": message.fields.get("qos", 0)}
        session.will["retain"] = message.fields.get("retain", 0)
        return [self._send("WILLMSGREQ", session.endpoint)]

    def _will_message(self, session: Session, message: Message, now: int) -> list[Send]:
        session.will["data"] = message.fields["will_message"]
        return self._welcome(session, now)

    def _will_topic_updated(self, session: Session, message: Message, now: int) -> list[Send]:
        topic = message.fields.get("will_topic")
        if not topic:
            session.will = {}
        else:
            session.will |= {"topic": topic, "qos": message.fields.get("qos", 0)}
            session.will["retain"] = message.fields.get("retain", 0)
        return [self._send("WILLTOPICRESP", session.endpoint, return_code=ReturnCode.ACCEPTED)]

    def _will_message_updated(self, session: Session, message: Message, now: int) -> list[Send]:
        session.will["data"] = message.fields["will_message"]
        return [self._send("WILLMSGRESP", session.endpoint, return_code=ReturnCode.ACCEPTED)]

    def _pinged(self, session: Session, message: Message, now: int) -> list[Send]:
        """A sleeping client that gives its id wakes up: it gets what waited for it and then PINGRESP (section 6.14)."""
        is_waking = session.state in (State.ASLEEP, State.AWAKE) and bool(message.fields.get("client_id"))
        if not is_waking:
            return [self._send("PINGRESP", session.endpoint)]
        session.state = State.AWAKE
        return self._resume(session, now) + self._back_to_sleep(session)

    def _back_to_sleep(self, session: Session) -> list[Send]:
        """PINGRESP tells a client that woke up that nothing waits for it any more."""
        if session.state is not State.AWAKE or session.unacknowledged or session.queue or session.replays:
            return []
        session.state = State.ASLEEP
        return [self._send("PINGRESP", session.endpoint)]

    def _moved_sleeper(self, message: Message, source: Endpoint) -> Session | None:
        """A sleeping client whose port changed while it slept, known by the id in its PINGREQ."""
        session = self._parked.get(bytes(message.fields.get("client_id", b"")))
        if session is None or session.state is State.DISCONNECTED or session.endpoint[0] != source[0]:
            return None
        self._move(session, source)
        return session

    def _move(self, session: Session, source: Endpoint) -> None:
        """The client of a session is at another endpoint now."""
        if session.endpoint == source:
            return
        self.sessions.pop(session.endpoint, None)
        if session.endpoint[0] != source[0]:
            self._number.give_back(session.endpoint[0])
            self._number.take(source[0], fair=False)
            if session.held:
                self._held.give_back(session.endpoint[0], session.held)
                self._held.take(source[0], session.held, fair=False)
        for text in list(session.qos_by_filter):
            self.subscriptions.remove(text, session.endpoint)
            if not self.subscriptions.add(text, source, fair=False):
                del session.qos_by_filter[text]
        self._nodes.forget(session.endpoint)
        session.endpoint = source
        self.sessions[source] = session

    def _disconnected(self, session: Session, message: Message, now: int) -> list[Send]:
        goodbye = [self._send("DISCONNECT", session.endpoint)]
        duration = message.fields.get("duration")
        if duration:
            session.state, session.keep_alive_s = State.ASLEEP, int(duration)
            self._parked[session.client_id] = session
            return goodbye
        sends = [self._encapsulated(send) for send in goodbye]
        self._end(session)
        return sends

    def _end(self, session: Session) -> None:
        """A connection ends; the session stays if its client wants that."""
        if session.is_clean:
            self._forget(session)
            return
        session.state, session.will = State.DISCONNECTED, {}
        self._checks.pop(session, None)
        self._parked[session.client_id] = session

    def _make_room(self, source: Endpoint) -> bool:
        """Let go of the oldest client that has not said a word since it connected, if its address has more sessions
        than this one: a flood of CONNECT leaves many such."""
        silent = next((one for one in self.sessions.values() if one.seen_ns == one.connected_ns), None)
        if silent is None or self._number.of(silent.endpoint[0]) <= self._number.of(source[0]):
            return False
        self._forget(silent)
        return self._number.fits(source[0])

    def _forget(self, session: Session) -> None:
        session.state = State.DISCONNECTED
        if self.sessions.get(session.endpoint) is session:
            del self.sessions[session.endpoint]
        if self._parked.get(session.client_id) is session:
            del self._parked[session.client_id]
        for text in session.qos_by_filter:
            self.subscriptions.remove(text, session.endpoint)
        self._number.give_back(session.endpoint[0])
        if session.held:
            self._held.give_back(session.endpoint[0], session.held)
            session.held = 0
        for message_id in session.unacknowledged:
            self._resends.pop((session, message_id), None)
        session.unacknowledged.clear()
        self._checks.pop(session, None)
        self._nodes.forget(session.endpoint)

    def _checked(self, session: Session, now: int) -> list[Send]:
        """Look at a session: has its client been silent for too long?"""
        allowed_ns = int(KEEP_ALIVE_TOLERANCE * session.keep_alive_s * SECOND)
        if allowed_ns and now - session.seen_ns > allowed_ns:
            return self._lose(session, now)
        self._checks[session] = now + CHECK_NS
        return []

    def _lose(self, session: Session, now: int) -> list[Send]:
        """A client that fell silent: its last will is published."""
        self.counters["lost: keep-alive"] += 1
        will, endpoint = session.will, session.endpoint
        self._end(session)
        topic, data = will.get("topic"), will.get("data")
        if not isinstance(topic, bytes) or not isinstance(data, bytes) or not topic:
            return []
        return self._distribute(topic, data, int(will["qos"]), bool(will["retain"]), endpoint, now)

    # -- topics -------------------------------------------------------------------------------------------------

    def _register(self, session: Session, message: Message, now: int) -> list[Send]:
        name = message.topic or b""
        fit = name and self._is_fit(name) and not self.subscriptions.index.is_wild(name)
        topic_id = session.topic_id(name) if fit else 0
        if topic_id:
            session.known.add(name)
        code = ReturnCode.ACCEPTED if topic_id else ReturnCode.NOT_SUPPORTED
        message_id = message.fields["message_id"]
        return [self._send("REGACK", session.endpoint, topic_id=topic_id, message_id=message_id, return_code=code)]

    def _registered(self, session: Session, message: Message, now: int) -> list[Send]:
        registered = self._acknowledge(session, "REGISTER", int(message.fields["message_id"]))
        if registered is None:
            return []
        self.accounts.prove(session.endpoint, now)
        topic_id = int(registered.fields["topic_id"])
        if message.fields["return_code"] != ReturnCode.ACCEPTED:
            self._drop_topic(session, topic_id)
            return self._fill(session, now)
        session.known.add(bytes(registered.fields["topic_name"]))
        sends: list[Send] = []
        for message_id, waiting in list(session.unacknowledged.items()):
            if waiting.is_held_back and waiting.fields["topic_id"] == topic_id:
                waiting.is_held_back = False
                sends += self._again(session, message_id, waiting, now)
        for forward in session.waiting.pop(topic_id, []):
            sends += self._go(session, forward, now)
        return sends + self._fill(session, now)

    def _drop_topic(self, session: Session, topic_id: int) -> None:
        """The client does not take a topic id: what waits for it is dropped."""
        for forward in session.forget_topic_id(topic_id):
            self._release(session, forward.size)
        held_back = [
            message_id
            for message_id, waiting in session.unacknowledged.items()
            if waiting.is_held_back and waiting.fields["topic_id"] == topic_id
        ]
        for message_id in held_back:
            self._release(session, session.unacknowledged.pop(message_id).size)

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

    def _publish_unconnected(self, message: Message, source: Endpoint, now: int) -> list[Send]:
        topic = self._topic_name(None, message)
        if topic is None:
            return self._refuse("topic", source)
        return self._distribute(topic, message.payload or b"", 0, bool(message.retain), source, now)

    def _published(self, session: Session, message: Message, now: int) -> list[Send]:
        topic, qos = self._topic_name(session, message), int(message.fields["qos"])
        message_id, data, host = int(message.fields["message_id"]), message.payload or b"", session.endpoint[0]
        if qos == 2 and message_id in session.incoming:  # it was distributed when it came first
            return [self._send("PUBREC", session.endpoint, message_id=message_id)]
        code = ReturnCode.ACCEPTED
        if topic is None or b"\0" in topic or not self._is_fit(topic) or self.subscriptions.index.is_wild(topic):
            code = ReturnCode.INVALID_TOPIC_ID
        elif message.retain and (reason := self.retained.why_not(topic, b"q" + data, host)) is not None:
            self._refuse(reason, session.endpoint)
            code = ReturnCode.CONGESTION
        elif qos == 2 and len(session.incoming) >= MAX_INCOMING:
            code = ReturnCode.CONGESTION
        if code is not ReturnCode.ACCEPTED or topic is None:
            return [self._puback(session, message, code)]
        sends = self._distribute(topic, data, qos, bool(message.retain), session.endpoint, now)
        if qos == 1:
            sends.append(self._puback(session, message, code))
        elif qos == 2:
            session.incoming[message_id] = None
            sends.append(self._send("PUBREC", session.endpoint, message_id=message_id))
        return sends

    def _puback(self, session: Session, message: Message, code: ReturnCode) -> Send:
        number = message.fields.get("topic_id", int.from_bytes(message.topic or b"\0\0", "big"))
        fields = {"topic_id": number, "message_id": message.fields["message_id"], "return_code": code}
        return self._send("PUBACK", session.endpoint, **fields)

    def _released(self, session: Session, message: Message, now: int) -> list[Send]:
        message_id = int(message.fields["message_id"])
        session.incoming.pop(message_id, None)
        return [self._send("PUBCOMP", session.endpoint, message_id=message_id)]

    def _distribute(self, topic: bytes, data: bytes, qos: int, retain: bool, source: Endpoint, now: int) -> list[Send]:
        """A publish to every subscriber, at the lower of its QoS and theirs."""
        if retain and data:
            self._retain(topic, bytes([qos]) + data, source)
        elif retain:
            self.on_change({"unretain": topic.hex()})
            self.retained.drop(topic)
        granted: dict[Endpoint, int] = {}
        for known in self.subscriptions.matching(topic):
            for endpoint in known.subscribers:
                wanted = self.sessions[endpoint].qos_by_filter.get(known.text, 0)
                granted[endpoint] = max(granted.get(endpoint, 0), wanted)
        forwards = self._forward_all(topic, data, qos, granted, now)
        if len(granted) <= SLICE:
            return [send for send in forwards if send is not None]
        return self.turns.begin(source[0], ("publish", source), forwards)

    def _forward_all(self, topic: bytes, data: bytes, qos: int, granted: dict[Endpoint, int], now: int) -> Work:
        for endpoint, wanted in granted.items():
            session = self.sessions.get(endpoint)
            if session is not None:
                yield from self._forward(session, Forward(topic, data, min(qos, wanted), 0), now)
            yield None

    def _forward(self, session: Session, forward: Forward, now: int) -> list[Send]:
        """Send a message, or keep it until the client listens and has acknowledged enough of the others."""
        is_open = session.state in (State.ACTIVE, State.AWAKE)
        if is_open and not forward.qos and self._knows(session, forward.topic):
            return [self._send("PUBLISH", session.endpoint, **self._publish_fields(session, forward))]
        if session.state is State.DISCONNECTED and not forward.qos:
            return []
        waiting = len(session.unacknowledged) + len(session.queue) + sum(map(len, session.waiting.values()))
        if waiting >= MAX_UNACKNOWLEDGED:
            return self._refuse("client does not acknowledge", session.endpoint)
        if not self._held.take(session.endpoint[0], forward.size):
            return self._refuse("unacknowledged bytes", session.endpoint)
        session.held += forward.size
        if not is_open or session.queue or len(session.unacknowledged) >= WINDOW:
            session.queue.append(forward)
            return []
        return self._go(session, forward, now)

    def _knows(self, session: Session, topic: bytes) -> bool:
        """Whether a message of this topic can go at once."""
        if len(topic) == 2 or topic in session.predefined:
            return True
        return topic in session.known and session.topic_ids[topic] not in session.waiting

    def _fill(self, session: Session, now: int) -> list[Send]:
        """Send what waited, as far as the window allows."""
        sends: list[Send] = []
        while session.queue and len(session.unacknowledged) < WINDOW:
            sends += self._go(session, session.queue.popleft(), now)
        if session.replays and not session.queue and len(session.unacknowledged) < WINDOW:
            replay = session.replays.popleft()
            work = self._replay_to(session, replay, now)
            sends += self.turns.begin(session.endpoint[0], ("replay", session.endpoint), work, REPLAY_SLICE)
        return sends + self._back_to_sleep(session)

    def _release(self, session: Session, size: int) -> None:
        if size:
            session.held -= size
            self._held.give_back(session.endpoint[0], size)

    def _go(self, session: Session, forward: Forward, now: int) -> list[Send]:
        """Send a message that was held, or have its topic registered first."""
        topic = forward.topic
        if not self._knows(session, topic):
            topic_id = session.topic_id(topic)
            if not topic_id:
                self._release(session, forward.size)
                return self._refuse("topic ids", session.endpoint)
            if topic_id in session.waiting:  # its REGISTER is still on its way
                session.waiting[topic_id].append(forward)
                return []
            session.waiting[topic_id] = [forward]
            return [self._register_at(session, topic, topic_id, now)]
        fields = self._publish_fields(session, forward)
        if forward.qos:
            return [self._send_until_acknowledged(session, "PUBLISH", fields, forward.size, now)]
        self._release(session, forward.size)
        return [self._send("PUBLISH", session.endpoint, **fields)]

    def _publish_fields(self, session: Session, forward: Forward) -> dict[str, Value]:
        topic = forward.topic
        fields: dict[str, Value]
        if len(topic) == 2:
            fields = {"topic_id_type": SHORT, "short_topic": topic}
        elif topic in session.predefined:
            fields = {"topic_id_type": PREDEFINED, "topic_id": session.predefined[topic]}
        else:
            fields = {"topic_id_type": NORMAL, "topic_id": session.topic_ids[topic]}
        return fields | {"data": forward.data, "qos": forward.qos, "retain": forward.retain, "message_id": 0}

    def _register_at(self, session: Session, topic: bytes, topic_id: int, now: int) -> Send:
        """Tell a client the id of a topic before the first message of it."""
        fields: dict[str, Value] = {"topic_id": topic_id, "topic_name": topic}
        return self._send_until_acknowledged(session, "REGISTER", fields, 0, now)

    def _send_until_acknowledged(
        self, session: Session, name: str, fields: dict[str, Value], size: int, now: int
    ) -> Send:
        message_id = session.next_message_id()
        fields = fields | {"message_id": message_id}
        self.accounts.await_ack(session.endpoint, now)
        self._expect(session, message_id, Unacknowledged(name, fields, now + self._retry_ns, size))
        return self._send(name, session.endpoint, **fields)

    def _expect(self, session: Session, message_id: int, waiting: Unacknowledged) -> None:
        session.unacknowledged[message_id] = waiting
        self._resends[session, message_id] = None
        self._resends.move_to_end((session, message_id))

    def _acknowledge(self, session: Session, name: str, message_id: int) -> Unacknowledged | None:
        waiting = session.awaits(name, message_id)
        if waiting is not None:
            del session.unacknowledged[message_id]
            self._resends.pop((session, message_id), None)
        return waiting

    def _again(self, session: Session, message_id: int, waiting: Unacknowledged, now: int) -> list[Send]:
        if waiting.tries > self._retries:
            self.counters["given up"] += 1
            self._acknowledge(session, waiting.name, message_id)
            self._release(session, waiting.size)
            if waiting.name == "REGISTER":
                self._drop_topic(session, int(waiting.fields["topic_id"]))
            return self._fill(session, now)
        waiting.tries += 1
        waiting.due_ns = now + self._retry_ns
        self._expect(session, message_id, waiting)
        self.counters["resent"] += 1
        marked = waiting.fields | ({"dup": 1} if waiting.name == "PUBLISH" else {})
        return [self._send(waiting.name, session.endpoint, **marked)]

    def _settled(self, session: Session, message: Message, now: int) -> list[Send]:
        message_id, code = int(message.fields["message_id"]), message.fields["return_code"]
        waiting = session.awaits("PUBLISH", message_id)
        if waiting is None or (waiting.fields["qos"] == 2 and code == ReturnCode.ACCEPTED):
            return []  # QoS 2 is acknowledged by PUBREC
        self._acknowledge(session, "PUBLISH", message_id)
        self.accounts.prove(session.endpoint, now)
        topic_id = int(waiting.fields.get("topic_id", 0))
        topic = session.topic_names.get(topic_id) if waiting.fields["topic_id_type"] == NORMAL else None
        if code != ReturnCode.INVALID_TOPIC_ID or topic is None:
            self._release(session, waiting.size)
            return self._fill(session, now)
        self._drop_topic(session, topic_id)  # so that it is registered again, and this message follows
        data, qos = bytes(waiting.fields["data"]), int(waiting.fields["qos"])
        return self._go(session, Forward(topic, data, qos, int(waiting.fields["retain"])), now)

    def _received(self, session: Session, message: Message, now: int) -> list[Send]:
        """PUBREC, the first ACK of QoS 2: from now on PUBREL is sent again and not the message."""
        message_id = int(message.fields["message_id"])
        waiting = session.awaits("PUBLISH", message_id)
        if waiting is not None and waiting.fields["qos"] == 2:
            self.accounts.prove(session.endpoint, now)
            self._release(session, waiting.size)
            released = Unacknowledged("PUBREL", {"message_id": message_id}, now + self._retry_ns, 0)
            self._expect(session, message_id, released)
        elif session.awaits("PUBREL", message_id) is None:
            return []
        return [self._send("PUBREL", session.endpoint, message_id=message_id)]

    def _completed(self, session: Session, message: Message, now: int) -> list[Send]:
        if self._acknowledge(session, "PUBREL", int(message.fields["message_id"])) is None:
            return []
        return self._fill(session, now)

    # -- subscribing --------------------------------------------------------------------------------------------

    def _filter_of(self, message: Message) -> bytes | None:
        if message.fields["topic_id_type"] == PREDEFINED:
            return self.predefined.get(int(message.fields["topic_id"]))
        return message.filter

    def _subscribed(self, session: Session, message: Message, now: int) -> list[Send]:
        text, wanted = self._filter_of(message), int(message.fields["qos"])
        qos = wanted if wanted != QOS_MINUS_ONE else 0
        code, is_repeat = ReturnCode.ACCEPTED, text in session.qos_by_filter
        if not text or not self._is_fit(text):
            code = ReturnCode.INVALID_TOPIC_ID
        elif not is_repeat and (reason := self.subscriptions.why_not(text, session.endpoint)) is not None:
            self._refuse(reason, session.endpoint)
            code = ReturnCode.CONGESTION
        topic_id, is_accepted = 0, code is ReturnCode.ACCEPTED
        if is_accepted and text is not None:
            self.subscriptions.add(text, session.endpoint)
            session.qos_by_filter[text] = qos
            topic_id = self._topic_id_in_suback(session, text, message)
        fields = {"topic_id": topic_id, "message_id": message.fields["message_id"], "return_code": code, "qos": qos}
        sends = [self._send("SUBACK", session.endpoint, **fields)]
        if not is_accepted or text is None or (is_repeat and self._was_replayed(text, session.endpoint, now)):
            return sends
        found = self._replay(text, text, session.endpoint, now)
        return sends + self._in_turn(session.endpoint, self._replay_to(session, Replay(found, qos), now), text, now)

    def _topic_id_in_suback(self, session: Session, text: bytes, message: Message) -> int:
        if message.fields["topic_id_type"] == PREDEFINED:
            topic_id = int(message.fields["topic_id"])
            session.predefined[text] = topic_id
            return topic_id
        is_plain = message.fields["topic_id_type"] == NORMAL and not self.subscriptions.index.is_wild(text)
        topic_id = session.topic_id(text) if is_plain else 0
        if topic_id:
            session.known.add(text)
        return topic_id

    def _replay_to(self, session: Session, replay: Replay, now: int) -> Work:
        """Retained messages to a subscriber, until the window is full: ``_fill`` goes on with the rest."""
        for found in replay.found:
            if session.state is State.DISCONNECTED:
                return
            if found is None:
                yield None
                continue
            topic, kept = found
            yield from self._forward(session, Forward(topic, kept[1:], min(kept[0], replay.qos), 1), now)
            if session.queue:
                session.replays.append(replay)
                return

    def _unsubscribed(self, session: Session, message: Message, now: int) -> list[Send]:
        text = self._filter_of(message)
        if text is not None:
            self.subscriptions.remove(text, session.endpoint)
            session.qos_by_filter.pop(text, None)
        return [self._send("UNSUBACK", session.endpoint, message_id=message.fields["message_id"])]


class _Nodes:
    """Wireless nodes behind forwarders. A node has the address of its forwarder and a port above all real ones, made of
    the forwarder's and a number for the node id; so limits by address hold for a forwarder and its nodes together."""

    def __init__(self, limit: int) -> None:
        self._share = Shares(limit)
        self._endpoints: dict[tuple[Endpoint, bytes], Endpoint] = {}
        self._ids: dict[Endpoint, tuple[Endpoint, bytes]] = {}
        self._numbers = count(1)

    def __len__(self) -> int:
        return len(self._ids)

    def endpoint(self, forwarder: Endpoint, node_id: bytes) -> Endpoint | None:
        """The endpoint that stands for a node; None if its forwarder has too many."""
        known = self._endpoints.get((forwarder, node_id))
        if known is None and self._share.take(forwarder[0]):
            known = forwarder[0], forwarder[1] | next(self._numbers) << PORT_BITS
            self._endpoints[forwarder, node_id] = known
            self._ids[known] = forwarder, node_id
        return known

    def id_of(self, endpoint: Endpoint) -> bytes | None:
        known = self._ids.get(endpoint)
        return known[1] if known is not None else None

    def forget(self, endpoint: Endpoint) -> None:
        key = self._ids.pop(endpoint, None)
        if key is not None:
            del self._endpoints[key]
            self._share.give_back(endpoint[0])
