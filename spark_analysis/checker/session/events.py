"""The messages of a session as columns of integers: what the kernels of the checker work on.

Texts become 64-bit numbers (``kernels.hashing``), so that keys are narrow wherever they are sorted, joined or sent; the
texts themselves stay in the table, to be looked up by row where a finding is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tables.packing import together
from ..kernels.hashing import hash_of, hashes, mix
from ..kernels.searching import places_of
from .policy import Policy

Integers = NDArray[np.int64]
NOTHING = -(1 << 62)  # a number that is not there
TO_BROKER, FROM_BROKER, ELSEWHERE = 1, 0, -1

# What is read of a capture for the checker: columns of `messages`. Which of them must be there: `needs`.
COLUMNS = (
    *("capture", "frame", "time_ns", "src", "sport", "dst", "dport", "dialect", "message", "topic", "filter", "retain"),
    *("payload", "error", "error_offset", "copy_of", "key", "number", "port", "ip_id", "accepted"),
)


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
    ID = 21  # capture and frame as one number: see `datagram_id`
    TOPIC_TEXT = 23  # the topic as it stands in the message
    BESIDE = 22  # of an ACK of the broker: the forward that it stands beside (an ID), -1 for none
    ACCEPTED = 24  # whether the return code accepts the request: 0, 1, -1 for no code


FRAME_BITS = 40


def datagram_id(capture: Integers, frame: Integers) -> Integers:
    """A datagram's identity within its session. In one capture ids rise with the frames."""
    ids: Integers = (capture << FRAME_BITS) | frame
    return ids


def capture_and_frame(datagram: int) -> tuple[int, int]:
    """The two parts of a datagram's id."""
    return datagram >> FRAME_BITS, datagram & ((1 << FRAME_BITS) - 1)


@dataclass(frozen=True)
class Events:
    """Events of a session, or of some of its keys, in the order of the capture; of merged captures in that of time.
    Copies that the capture made are left out.

    ``table`` holds the texts, row by row the same.
    """

    policy: Policy
    columns: dict[Col, Integers]
    table: pa.Table
    captures: tuple[str, ...]

    @property
    def is_merged(self) -> bool:
        """Whether several captures are ordered by time."""
        return len(self.captures) > 1

    @cached_property
    def _by_id(self) -> tuple[Integers, Integers | None]:
        """Ids in order, and their rows; None if these are in order too."""
        ids = self.columns[Col.ID]
        if (ids[1:] >= ids[:-1]).all():
            return ids, None
        order = np.argsort(ids, kind="stable")
        return ids[order], order

    def some(self, rows: NDArray[np.bool_]) -> Events:
        """The events of some rows; what depends on the session is to be filled in again."""
        table = self.table.filter(pa.array(rows)).combine_chunks()
        return Events(self.policy, Columns(table, self.policy, self.columns[Col.CAPTURE][rows]), table, self.captures)

    def chosen(self, rows: Integers) -> Events:
        """The events of some rows, with what was filled in."""
        table = self.table.take(pa.array(rows)).combine_chunks()
        columns = Columns(table, self.policy, self.columns[Col.CAPTURE][rows])
        columns |= {column: values[rows] for column, values in self.columns.items()}
        return Events(self.policy, columns, table, self.captures)

    def rows_of(self, ids: Integers) -> Integers:
        """The rows of datagrams, -1 for those that are not among the events."""
        known, order = self._by_id
        places = places_of(ids, known)
        return np.where(places >= 0, order[places], -1) if order is not None else places

    def is_after(self, time: Integers, ids: Integers, rows: Integers) -> NDArray[np.bool_]:
        """Whether datagrams, given by time and id, come after these rows."""
        later: NDArray[np.bool_] = ids > self.columns[Col.ID][rows]
        if self.is_merged:
            than = self.columns[Col.TIME][rows]
            later = (time > than) | ((time == than) & later)
        return later

    def __len__(self) -> int:
        return len(self.columns[Col.TIME])

    def __getitem__(self, column: Col) -> Integers:
        return self.columns[column]

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


_KEPT_TEXTS = ("src", "sport", "dst", "dport", "message", "topic", "filter")


def kept_rows(events: Events, rows: Integers) -> pa.Table:
    """Rows of events, to be read by `read_kept`: all columns of integers, and texts but for payloads."""
    numbers = {column.name: pa.array(events[column][rows]) for column in Col}
    texts = events.table.select(_KEPT_TEXTS).take(pa.array(rows))
    return pa.table({**numbers, **{name: texts.column(name) for name in _KEPT_TEXTS}})


def read_kept(kept: pa.Table, policy: Policy, captures: Sequence[str]) -> Events:
    """Events that `kept_rows` made a table of."""
    columns = {column: kept.column(column.name).to_numpy() for column in Col}
    return Events(policy, columns, kept.select(_KEPT_TEXTS).combine_chunks(), tuple(captures))


def in_front(kept: Events, events: Events) -> Events:
    """Events with those in front that came before."""
    columns = {column: np.concatenate([kept[column], events[column]]) for column in Col}
    table = together([one.table.select(_KEPT_TEXTS) for one in (kept, events)])
    return Events(events.policy, columns, table, events.captures)


def endpoint_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint_hash(host: str, port: int) -> int:
    return int(mix(np.array([hash_of(host)]), np.array([port]))[0])


def events_of(table: pa.Table, policy: Policy, captures: Sequence[str]) -> Events:
    """The events of rows of one dialect (see `rows_of`), given in any order."""
    capture, frame = _capture_numbers(table, captures), as_ints(table, "frame")
    if len(captures) > 1:
        order = np.lexsort((frame, capture, as_ints(table, "time_ns")))
    else:
        order = np.arange(len(frame)) if (frame[1:] > frame[:-1]).all() else np.argsort(frame, kind="stable")
    if (order[1:] < order[:-1]).any():
        table, capture = table.take(pa.array(order)).combine_chunks(), capture[order]
    return Events(policy, Columns(table, policy, capture), table, tuple(captures))


def rows_of(batches: Sequence[pa.RecordBatch] | pa.Table, dialect: str) -> pa.Table:
    """The rows of one dialect in one piece, without the copies that the capture made."""
    table = batches if isinstance(batches, pa.Table) else pa.Table.from_batches(batches).unify_dictionaries()
    has_copies = table.column("copy_of").null_count < len(table)
    if has_copies or table.column("dialect").unique().to_pylist() != [dialect]:
        wanted = pc.equal(table.column("dialect"), dialect)
        if has_copies:
            wanted = pc.and_(wanted, pc.is_null(table.column("copy_of")))
        table = table.filter(wanted)
    return table.drop_columns(["dialect", "copy_of"]).combine_chunks()


def with_coded_texts(table: pa.Table) -> pa.Table:
    """Topics and filters as dictionaries: of few words, and so quicker to hash, to take and to hand over."""
    for place, name in enumerate(table.column_names):
        if name in ("topic", "filter") and not pa.types.is_dictionary(table.schema.field(name).type):
            table = table.set_column(place, name, table.column(name).combine_chunks().dictionary_encode())
    return table


def _capture_numbers(table: pa.Table, captures: Sequence[str]) -> Integers:
    if len(captures) <= 1:
        return np.broadcast_to(np.int64(0), len(table))
    numbers = {hash_of(name): at for at, name in enumerate(captures)}
    found, where = np.unique(_hashes(table, "capture"), return_inverse=True)
    return np.array([numbers[int(one)] for one in found], np.int64)[where]


class Columns(dict[Col, Integers]):
    """Columns of integers, each made from the table when it is first asked for: few steps need all of them."""

    def __init__(self, table: pa.Table, policy: Policy, capture: Integers) -> None:
        super().__init__({Col.CAPTURE: capture})
        self._table, self._policy = table, policy

    def __missing__(self, column: Col) -> Integers:
        self[column] = made = _MAKERS[column](self, self._table, self._policy)
        return made


Make = Callable[[Columns, pa.Table, Policy], Integers]


def _ints(name: str, absent: int = NOTHING) -> Make:
    return lambda columns, table, policy: as_ints(table, name, absent)


def _texts(name: str) -> Make:
    return lambda columns, table, policy: _hashes(table, name)


def _end(host: Col, port: str) -> Make:
    return lambda columns, table, policy: mix(columns[host], as_ints(table, port))


def _topic(columns: Columns, table: pa.Table, policy: Policy) -> Integers:
    if not policy.topic_is_told:
        return np.zeros(len(table), np.int64)
    return _passed_on(table, policy, columns[Col.MESSAGE], columns[Col.TOPIC_TEXT])


def _name(columns: Columns, table: pa.Table, policy: Policy) -> Integers:
    if policy.dialect.spec.topics.kind == "source-address":
        named: Integers = np.where(policy.publishes[columns[Col.MESSAGE]], columns[Col.SRC_HOST], 0)
        return named
    return _passed_on(table, policy, columns[Col.MESSAGE], columns[Col.TOPIC_TEXT])


def _payload(columns: Columns, table: pa.Table, policy: Policy) -> Integers:
    """Rows that were packed for steps which compare payloads only have their hashes."""
    return as_ints(table, PAYLOAD_HASH, 0) if PAYLOAD_HASH in table.column_names else _hashes(table, "payload")


def _content(columns: Columns, table: pa.Table, policy: Policy) -> Integers:
    texts = mix(columns[Col.TOPIC_TEXT], columns[Col.FILTER])
    content = mix(texts, mix(columns[Col.PAYLOAD], columns[Col.MESSAGE]))
    return mix(content, columns[Col.NUMBER]) if policy.dialect.spec.topics.number else content


PAYLOAD_HASH = "payload_hash"
_MAKERS: dict[Col, Make] = {
    Col.TIME: _ints("time_ns"),
    Col.FRAME: _ints("frame"),
    Col.ID: lambda columns, table, policy: datagram_id(columns[Col.CAPTURE], columns[Col.FRAME]),
    Col.SRC_HOST: _texts("src"),
    Col.DST_HOST: _texts("dst"),
    Col.SRC: _end(Col.SRC_HOST, "sport"),
    Col.DST: _end(Col.DST_HOST, "dport"),
    Col.MESSAGE: lambda columns, table, policy: messages_of(table, policy),
    Col.TOPIC_TEXT: _texts("topic"),
    Col.TOPIC: _topic,
    Col.NAME: _name,
    Col.FILTER: _texts("filter"),
    Col.PAYLOAD: _payload,
    Col.CONTENT: _content,
    Col.KEY: _ints("key"),
    Col.NUMBER: _ints("number"),
    Col.PORT: _ints("port"),
    Col.RETAIN: _ints("retain", -1),
    Col.IP_ID: _ints("ip_id", -1),
    Col.BESIDE: _ints("beside", -1),
    Col.ACCEPTED: _ints("accepted", -1),
}


def as_ints(table: pa.Table, column: str, absent: int = NOTHING) -> Integers:
    if column not in table.column_names or table.column(column).null_count == len(table):
        return np.broadcast_to(np.int64(absent), len(table))
    values = table.column(column)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.int64()).fill_null(absent).to_numpy(), np.int64)


def _hashes(table: pa.Table, column: str) -> Integers:
    if column not in table.column_names or table.column(column).null_count == len(table):
        return np.broadcast_to(np.int64(0), len(table))
    chunks = [hashes(chunk) for chunk in table.column(column).chunks]
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.zeros(0, np.int64), *chunks])


def messages_of(table: pa.Table, policy: Policy) -> Integers:
    """Numbers of messages; those in error have none."""
    values = table.column("message").combine_chunks()
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes_of = {name: at for at, name in enumerate(policy.messages)}  # other dialects' words are among them
    words = [*(codes_of.get(word, -1) for word in coded.dictionary.to_pylist()), -1]
    codes = coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    numbers: Integers = np.array(words, np.int64)[codes]
    if table.column("error").null_count < len(table):
        numbers[~pc.is_null(table.column("error")).to_numpy()] = -1
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


def with_parties(
    events: Events, brokers: Collection[int], hosts: Collection[int], same: Mapping[int, int] | None = None
) -> Events:
    """Say of each event who is the broker and who the client. ``hosts`` are those of the brokers; ``same`` names the
    first end of a broker that has several."""
    columns = events.columns
    known = np.array(sorted(brokers), np.int64)
    to, by = _is_one_of(columns[Col.DST], known), _is_one_of(columns[Col.SRC], known)
    ephemeral = events.policy.dialect.spec.broker.forward_from == "ephemeral"
    if ephemeral:
        by |= np.isin(columns[Col.SRC_HOST], np.array(sorted(hosts), np.int64)) & ~to
    columns[Col.SIDE] = np.where(to & ~by, TO_BROKER, np.where(by & ~to, FROM_BROKER, ELSEWHERE))
    columns[Col.CLIENT] = np.where(to, columns[Col.SRC], columns[Col.DST])
    # A broker that sends from other ports is known by its host.
    ends = (Col.DST_HOST, Col.SRC_HOST) if ephemeral else (Col.DST, Col.SRC)
    columns[Col.BROKER] = as_one(np.where(to, columns[ends[0]], columns[ends[1]]), same or {})
    return events


def as_one(ends: Integers, same: Mapping[int, int]) -> Integers:
    """Ends or hosts of brokers, those of one broker as the same number."""
    for one, first in same.items():
        ends = np.where(ends == one, first, ends)
    return ends


def _is_one_of(values: Integers, known: Integers) -> NDArray[np.bool_]:
    """`np.isin`, quicker for the usual one or two brokers."""
    if len(known) > 4:
        return np.isin(values, known)
    found = np.zeros(len(values), np.bool_)
    for one in known:
        found |= values == one
    return found
