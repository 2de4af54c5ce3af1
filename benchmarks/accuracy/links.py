"""The dissector's links beside the truth: which ACK, forward, resend and subscription belongs to which frame.

A link is *wrong* if it names a frame that the truth does not: an ACK of another request, a forward of another message.
It is *unsure* if the dissector names several frames and leaves it open. The checker's pairs of the same capture count
too: where both name one frame, it must be the same.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from pcap_tools.dialect import Dialect
from pcap_tools.dissector import write_dissector
from pcap_tools.topic_match import matches

KINDS = ("ack", "forward", "resend", "subscription")
PASSES: dict[str, tuple[str, ...]] = {
    "one pass": (),
    "-2": ("-2", "-Y", "udp"),  # a filter, so that the first pass has fields to ask for
}
MORE_UNSURE = 0.02  # than the checker may be
_COLUMNS = (
    "ack_to",
    "ack_candidate",
    "forward_of",
    "forward_candidate",
    "resend_of",
    "subscribed_in",
    "due",
    "meaning",
    "copy_of",
    "topic",
    "topic_name",
    "filter",
    "ack_quality",
)


@dataclass(frozen=True)
class Said:
    """What the dissector says of one frame."""

    ack_to: int | None
    candidates: tuple[int, ...]
    forward_of: int | None
    resend_of: int | None
    subscribed_in: int | None
    meaning: str
    is_copy: bool
    topic: str
    filter: str
    quality: str


@dataclass
class Count:
    """Links of one kind. ``lacking``: none where the truth has one; ``against``: another than the checker's. The
    checker paired ``judged`` ACKs, and is not sure of ``queued`` of them."""

    all: int = 0
    unsure: int = 0
    wrong: int = 0
    lacking: int = 0
    against: int = 0
    queued: int = 0
    judged: int = 0

    def __iadd__(self, other: Count) -> Count:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        return self


@dataclass
class Links:
    """Of one capture. ``cases``: each link that is wrong, in words."""

    counts: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})
    cases: list[str] = field(default_factory=list)

    @property
    def is_too_unsure(self) -> bool:
        """Of more ACKs than the checker."""
        acks = self.counts["ack"]
        queued = acks.queued / acks.judged if acks.judged else 0.0
        return acks.all > 0 and acks.unsure / acks.all > queued + MORE_UNSURE


def said_by(capture: Path, script: Path, home: Path, options: Sequence[str]) -> dict[int, Said]:
    """What tshark shows, by frame; nothing of the user's own configuration."""
    command = ["tshark", "-n", "-r", str(capture), "-X", f"lua_script:{script}", *options]
    command += ["-T", "fields", "-e", "frame.number", *(p for name in _COLUMNS for p in ("-e", f"pubsub.{name}"))]
    environment = {**os.environ, "HOME": str(home), "WIRESHARK_CONFIG_DIR": str(home), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    if b"Lua" in done.stderr:
        raise RuntimeError(done.stderr.decode(errors="replace"))
    found = {}
    for line in done.stdout.decode("utf-8", "surrogateescape").split("\n"):
        cells = line.split("\t")
        if len(cells) == len(_COLUMNS) + 1:
            found[int(cells[0])] = _said(dict(zip(_COLUMNS, cells[1:], strict=True)))
    return found


def _said(cells: Mapping[str, str]) -> Said:
    def frame(name: str) -> int | None:
        return int(cells[name]) if cells[name] else None

    named = cells["ack_candidate"] or cells["forward_candidate"]
    candidates = tuple(int(one) for one in named.split(",") if one)
    return Said(
        frame("ack_to"),
        candidates,
        frame("forward_of"),
        frame("resend_of"),
        None if cells["due"] else frame("subscribed_in"),  # of a publish: all who subscribed to it
        cells["meaning"],
        bool(cells["copy_of"]),
        cells["topic_name"] or cells["topic"],
        cells["filter"],
        cells["ack_quality"],
    )


@dataclass(frozen=True)
class Truth:
    """The right links, by frame: what each may name.

    ``faulty``: frames that a fault shows, and the others that it shows: what nobody owed belongs to one of these, or to
    nothing.
    """

    request: Mapping[int, frozenset[int]]  # of an ACK: all sends of its request
    first: Mapping[int, frozenset[int]]  # of a request: all sends
    publish: Mapping[int, frozenset[int]]  # of a forward: all sends of its publish
    faulty: Mapping[int, frozenset[int]]
    client: Mapping[int, str]  # of a request of a client's: its end
    subscriber: Mapping[int, str]  # of a forward: where it goes
    same: Mapping[int, int]  # of a frame that the network doubled: the first

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Truth:
        same: dict[int, int] = dict(told["capture"]["doubles"])
        doubles = defaultdict(list)
        for later, one in same.items():
            doubles[one].append(later)

        def every(frames: Iterable[int | None]) -> frozenset[int]:
            known = [one for one in frames if one is not None]
            return frozenset([*known, *(later for one in known for later in doubles[one])])

        request: dict[int, frozenset[int]] = {}
        first: dict[int, frozenset[int]] = {}
        publish: dict[int, frozenset[int]] = {}
        client: dict[int, str] = {}
        subscriber: dict[int, str] = {}
        for exchange in told["exchanges"]:
            sends = every(exchange["frames"])
            client |= dict.fromkeys(sends, exchange["from"])
            first |= dict.fromkeys(sends, sends)
            request |= {ack: sends for ack in exchange["ack_frames"] if ack is not None}
        for delivery in told["deliveries"]:
            if delivery["frame"] is not None:
                one = delivery["publish_frame"]
                sends = first.get(delivery["frame"], frozenset([delivery["frame"]]))
                publish |= dict.fromkeys(sends, first.get(one, every([one])))
                subscriber |= dict.fromkeys(sends, delivery["subscriber"])
        faulty: dict[int, frozenset[int]] = {}
        for fault in told["faults"]:
            frames = every(fault["frames"])
            for one in frames:
                faulty[one] = faulty.get(one, frozenset()) | frames
        return cls(request, first, publish, faulty, client, subscriber, same)

    def whole(self, frame: int) -> int:
        return self.same.get(frame, frame)


@dataclass(frozen=True)
class Checked:
    """The checker's pairs: of an ACK its request, of a forward its publish, and ACKs that it took in order only."""

    request: Mapping[int, int]
    publish: Mapping[int, int]
    queued: frozenset[int]

    @classmethod
    def of(cls, exchanges: pa.Table, deliveries: pa.Table) -> Checked:
        answered = [one for one in exchanges.to_pylist() if one["ack"] is not None]
        pairs = [one for one in deliveries.to_pylist() if one["forward"] and one["publish"] and not one["retained"]]
        return cls(
            {one["ack"]["frame"]: one["frame"] for one in answered},
            {one["forward"]["frame"]: one["publish"]["frame"] for one in pairs},
            frozenset(one["ack"]["frame"] for one in answered if one["quality"] == "queued"),
        )


def judge_capture(path: Path, dialect: Dialect, told: Mapping[str, Any], checked: Checked | None) -> dict[str, Links]:
    """By the passes of tshark; its folders lie beside the capture."""
    home, script = path.parent / "wireshark", path.parent / f"{dialect.name}.lua"
    home.mkdir(exist_ok=True)
    if not script.exists():
        write_dissector([dialect], script)
    truth = Truth.of(told)
    return {
        name: judge(said_by(path, script, home, options), truth, checked, dialect) for name, options in PASSES.items()
    }


def judge(said: Mapping[int, Said], truth: Truth, checked: Checked | None, dialect: Dialect) -> Links:
    """Hold the links of a capture against the truth, and against the checker's."""
    links = Links()
    for frame, one in said.items():
        if one.is_copy or not one.meaning:
            continue
        if one.meaning == "ack":
            _judge_ack(links, frame, one, truth, checked)
        elif one.forward_of is not None or one.candidates or truth.whole(frame) in truth.publish:
            _judge_forward(links, frame, one, truth, checked)
        if one.resend_of is not None:
            _count(links, "resend", frame, one.resend_of, truth.first.get(truth.whole(frame)), truth)
        if one.subscribed_in is not None:
            _judge_subscription(links, frame, one, said, truth, dialect)
    return links


def _judge_subscription(
    links: Links, frame: int, one: Said, said: Mapping[int, Said], truth: Truth, dialect: Dialect
) -> None:
    """Right is a subscription of the receiver, before the forward, whose filter takes the topic."""
    named, topics = one.subscribed_in or 0, dialect.spec.topics
    links.counts["subscription"].all += 1
    asked, receiver = said.get(named), truth.subscriber.get(truth.whole(frame))
    problem = None
    if asked is None or asked.meaning != "subscribe" or named >= frame:
        problem = "is no subscription before it"
    elif receiver and topics.kind != "source-address" and not matches([one.topic], [asked.filter], topics)[1].size:
        problem = f"is of {asked.filter!r}, the topic {one.topic!r}"
    elif receiver and dialect.spec.broker.subscriber_port is None and truth.client.get(named, receiver) != receiver:
        problem = f"is of {truth.client[named]}, the forward goes to {receiver}"
    if problem:
        links.counts["subscription"].wrong += 1
        links.cases.append(f"subscription: frame {frame} names {named}, which {problem}")


def _count(links: Links, kind: str, frame: int, named: int, right: frozenset[int] | None, truth: Truth) -> None:
    count = links.counts[kind]
    count.all += 1
    if named in (right or ()) or named in truth.faulty.get(truth.whole(frame), ()):
        return
    count.wrong += 1
    links.cases.append(f"{kind}: frame {frame} names {named}, right is {sorted(right) if right else 'none'}")


def _judge_ack(links: Links, frame: int, one: Said, truth: Truth, checked: Checked | None) -> None:
    count, right = links.counts["ack"], truth.request.get(truth.whole(frame))
    if checked is not None and frame in checked.request:
        count.judged += 1
        count.queued += frame in checked.queued
        named = checked.request[frame]
        if one.ack_to is not None and one.ack_to not in truth.first.get(named, (named,)):
            count.against += 1
            links.cases.append(f"ack: frame {frame} names {one.ack_to}, the checker {checked.request[frame]}")
    if one.ack_to is not None:
        _count(links, "ack", frame, one.ack_to, right, truth)
    elif one.candidates:
        count.all += 1
        count.unsure += 1
        if right and not right & set(one.candidates):
            count.wrong += 1
            links.cases.append(f"ack: frame {frame} names {one.candidates}, right is {sorted(right)}")
    elif right:
        count.all += 1
        count.lacking += 1
        links.cases.append(f"lack: frame {frame} ({one.quality}) names none, right is {sorted(right)}")


def _judge_forward(links: Links, frame: int, one: Said, truth: Truth, checked: Checked | None) -> None:
    count, right = links.counts["forward"], truth.publish.get(truth.whole(frame))
    if one.candidates:
        count.all += 1
        count.unsure += 1
        if right and not right & set(one.candidates):
            count.wrong += 1
            links.cases.append(f"forward: frame {frame} names {one.candidates}, right is {sorted(right)}")
        return
    if one.forward_of is None:
        if right:
            count.all += 1
            count.lacking += 1
            links.cases.append(f"lack: forward {frame} names none, right is {sorted(right)}")
        return
    _count(links, "forward", frame, one.forward_of, right, truth)
    named = checked.publish.get(frame) if checked is not None else None
    if named is not None and truth.first.get(named, {named}) != truth.first.get(one.forward_of, {one.forward_of}):
        count.against += 1
        links.cases.append(f"forward: frame {frame} names {one.forward_of}, the checker {named}")
