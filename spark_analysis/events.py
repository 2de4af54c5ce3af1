"""The messages of a session as columns of integers: what the kernels of the checker work on.

Texts become 64-bit numbers (``kernels.hashing``), so that keys are narrow wherever they are sorted, joined or sent; the
texts themselves stay in the table, to be looked up by row where a finding is told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .kernels.hashing import hash_of, hashes, mix
from .policy import Policy

Integers = NDArray[np.int64]
NOTHING = -(1 << 62)  # a number that is not there
TO_BROKER, FROM_BROKER, ELSEWHERE = 1, 0, -1

# What is read of a capture for the checker: columns of `messages`.
COLUMNS = (
    "capture frame time_ns src sport dst dport dialect form message topic filter retain payload error error_offset copy_of key number port ip_id"
).split()


class Col(IntEnum):
    """The columns of an event."""

    TIME = 0
    FRAME = 1
    CAPTURE = 2  # an index into the captures of the session
    SRC = 3  # endpoints: address and port as one number
    DST = 4
    SRC_HOST = 5
    DST_HOST = 6
    MESSAGE = 7  # as numbered by the policy; -1 for a datagram in error
    TOPIC = 8  # as a forward of it would have it
    NAME = 9  # as subscriptions know it
    FILTER = 10
    PAYLOAD = 11
    CONTENT = 12  # all that tells one request from another, but for retain and marks of a resend
    KEY = 13
    NUMBER = 14
    PORT = 15
    RETAIN = 16  # -1 unknown
    IP_ID = 17  # -1 unknown
    BROKER = 18
    CLIENT = 19
    SIDE = 20


@dataclass(frozen=True)
class Events:
    """In the order of the capture; of merged captures in the order of time. Copies that the capture made are left out.

    ``table`` holds the texts, row by row the same. ``rows[Col.X]`` is a column.
    """

    policy: Policy
    rows: Integers
    table: pa.Table
    captures: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.rows.shape[1])

    def __getitem__(self, column: Col) -> Integers:
        return self.rows[column]

    def text(self, column: str, row: int) -> str | None:
        """A text of the table."""
        value: str | None = self.table.column(column)[int(row)].as_py()
        return value

    def source(self, row: int) -> str:
        return endpoint_text(self.text("src", row) or "?", self._port("sport", row))

    def target(self, row: int) -> str:
        return endpoint_text(self.text("dst", row) or "?", self._port("dport", row))

    def _port(self, column: str, row: int) -> int:
        return int(self.table.column(column)[int(row)].as_py())

    def client(self, row: int) -> str:
        """The end that is not the broker."""
        return self.source(row) if self[Col.SIDE][row] == TO_BROKER else self.target(row)

    def taken(self, chosen: NDArray[np.bool_] | Integers) -> Events:
        """Some of the rows."""
        where = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return replace(self, rows=np.ascontiguousarray(self.rows[:, where]), table=self.table.take(pa.array(where)))


def endpoint_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint_hash(host: str, port: int) -> int:
    return int(mix(np.array([hash_of(host)]), np.array([port]))[0])


def events_of(batches: Sequence[pa.RecordBatch], policy: Policy, captures: Sequence[str]) -> Events:
    """The events of one dialect. Of several captures the batches come one capture after the other."""
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    known = pc.equal(table.column("dialect"), policy.dialect.name)
    wanted = pc.and_(known, pc.is_null(table.column("copy_of")))
    if not pc.all(wanted).as_py():
        table = table.filter(wanted).combine_chunks()
    capture = _capture_numbers(table, captures)
    if len(set(capture[:1]) | set(capture[-1:])) > 1:
        order = np.lexsort((_numbers(table, "frame"), capture, _numbers(table, "time_ns")))
        table, capture = table.take(pa.array(order)).combine_chunks(), capture[order]
    return Events(policy, _rows(table, policy, capture), table, tuple(captures))


def _capture_numbers(table: pa.Table, captures: Sequence[str]) -> Integers:
    if len(captures) <= 1:
        return np.zeros(len(table), np.int64)
    numbers = {hash_of(name): at for at, name in enumerate(captures)}
    found, where = np.unique(_hashes(table, "capture"), return_inverse=True)
    return np.array([numbers[int(one)] for one in found], np.int64)[where]


def _rows(table: pa.Table, policy: Policy, capture: Integers) -> Integers:
    rows = np.full((len(Col), len(table)), NOTHING, np.int64)
    rows[Col.TIME], rows[Col.FRAME], rows[Col.CAPTURE] = _numbers(table, "time_ns"), _numbers(table, "frame"), capture
    rows[Col.SRC_HOST], rows[Col.DST_HOST] = _hashes(table, "src"), _hashes(table, "dst")
    rows[Col.SRC] = mix(rows[Col.SRC_HOST], _numbers(table, "sport"))
    rows[Col.DST] = mix(rows[Col.DST_HOST], _numbers(table, "dport"))
    rows[Col.MESSAGE] = _messages(table, policy)
    rows[Col.FILTER], rows[Col.PAYLOAD] = _hashes(table, "filter"), _hashes(table, "payload")
    rows[Col.KEY], rows[Col.NUMBER] = _numbers(table, "key"), _numbers(table, "number")
    rows[Col.PORT] = _numbers(table, "port")
    rows[Col.RETAIN], rows[Col.IP_ID] = _numbers(table, "retain", -1), _numbers(table, "ip_id", -1)
    topic = _hashes(table, "topic")
    rows[Col.NAME] = rows[Col.TOPIC] = _passed_on(table, policy, rows[Col.MESSAGE], topic)
    if policy.dialect.spec.topics.kind == "source-address":
        rows[Col.NAME] = np.where(policy.publishes[rows[Col.MESSAGE]], rows[Col.SRC_HOST], 0)
    if not policy.topic_is_told:
        rows[Col.TOPIC] = 0
    content = mix(mix(topic, rows[Col.FILTER]), mix(rows[Col.PAYLOAD], rows[Col.MESSAGE]))
    rows[Col.CONTENT] = mix(content, rows[Col.NUMBER]) if policy.dialect.spec.topics.number else content
    rows[Col.SIDE] = ELSEWHERE
    return rows


def _numbers(table: pa.Table, column: str, absent: int = NOTHING) -> Integers:
    if column not in table.column_names:
        return np.full(len(table), absent, np.int64)
    values = table.column(column)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.int64()).fill_null(absent).to_numpy(), np.int64)


def _hashes(table: pa.Table, column: str) -> Integers:
    chunks = [hashes(chunk) for chunk in table.column(column).chunks]
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.zeros(0, np.int64), *chunks])


def _messages(table: pa.Table, policy: Policy) -> Integers:
    """Numbers of messages; those in error have none."""
    values = table.column("message").combine_chunks()
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes_of = {name: at for at, name in enumerate(policy.messages)}  # other dialects' words are among them
    words = [*(codes_of.get(word, -1) for word in coded.dictionary.to_pylist()), -1]
    codes = coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    numbers = np.array(words, np.int64)[codes]
    wrong = ~pc.is_null(table.column("error")).to_numpy()
    numbers[wrong] = -1
    return numbers


def _passed_on(table: pa.Table, policy: Policy, message: Integers, topic: Integers) -> Integers:
    """Topics as they are passed on."""
    if not policy.cuts:
        return topic
    made = topic.copy()
    for name, cut in policy.cuts.items():
        rows = np.flatnonzero(message == policy.code(name))
        texts = table.column("topic").take(pa.array(rows)).cast(pa.string())
        made[rows] = np.concatenate(
            [np.zeros(0, np.int64)]
            + [hashes(chunk) for chunk in pc.replace_substring(texts, cut, "", max_replacements=1).chunks]
        )
    return made


def with_parties(events: Events, brokers: Collection[int], hosts: Collection[int]) -> Events:
    """Say of each event who is the broker and who the client. ``hosts`` are those of the brokers."""
    rows = events.rows
    known = np.array(sorted(brokers), np.int64)
    to, by = np.isin(rows[Col.DST], known), np.isin(rows[Col.SRC], known)
    if events.policy.dialect.spec.broker.forward_from == "ephemeral":
        by |= np.isin(rows[Col.SRC_HOST], np.array(sorted(hosts), np.int64)) & ~to
    rows[Col.SIDE] = np.where(to & ~by, TO_BROKER, np.where(by & ~to, FROM_BROKER, ELSEWHERE))
    rows[Col.CLIENT] = np.where(to, rows[Col.SRC], rows[Col.DST])
    # A broker that sends from other ports is known by its host.
    ephemeral = events.policy.dialect.spec.broker.forward_from == "ephemeral"
    ends = (Col.DST_HOST, Col.SRC_HOST) if ephemeral else (Col.DST, Col.SRC)
    rows[Col.BROKER] = np.where(to, rows[ends[0]], rows[ends[1]])
    return events
