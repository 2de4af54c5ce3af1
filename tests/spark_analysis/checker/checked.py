"""Talks written by hand, and what the checker says of them: text -> datagrams -> a real capture -> `check`.

>>> said = judged(tmp_path, "1 0 anna > broker SUBSCRIBE filter=home/*", ...)               # doctest: +SKIP
>>> said.failed                                                                             # doctest: +SKIP
{'A-MISSING': [1]}

A line of a talk is its frame's number, a time in milliseconds, who speaks to whom, and a message with its fields, or
`hex:` and bytes. What the tests of the checker need of it is imported here and nowhere else.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from pcap_tools import Codec, load_dialect
from pcap_tools.capture import CaptureWriter
from pcap_tools.codec.detect import wanted_dialects
from pcap_tools.columnar.read.splits import plan_splits
from spark_analysis import check as checking
from spark_analysis import pipeline
from spark_analysis.check import check
from spark_analysis.results.verdicts import CheckResult, Finding, RuleVerdict, SessionResult
from tests.pcap_tools.capture.packets import T0, cooked1, ethernet, ipv4, udp

ETHERNET, COOKED = 1, 113
MILLISECOND = 1_000_000
# Who is where. Of colon all have one port; of the others the roles have theirs.
ADDRESSES = {"broker": 1, "anna": 2, "bert": 3, "carla": 4, "dora": 5}
PORTS = {
    "colon": dict.fromkeys(ADDRESSES, 50000),
    "topicbyte": {"broker": 50000, "anna": 50003, "bert": 50002, "carla": 50003, "dora": 50002},
    "portdigits": {"broker": 12345, "anna": 38166, "bert": 40001, "carla": 38167, "dora": 40002},
    "topicnumber": {"broker": 50003, "anna": 50004, "bert": 50002, "carla": 50004, "dora": 50002},
    "rolebyte": {"broker": 50001, "anna": 50002, "bert": 50003, "carla": 50007, "dora": 50004},
    "mqttsn": {"broker": 1883, "anna": 40002, "bert": 40003, "carla": 40004, "dora": 40005},
}


@dataclass(frozen=True)
class Judged:
    """What the checker says of the one session that a talk is."""

    result: CheckResult

    @property
    def session(self) -> SessionResult:
        (session,) = self.result.sessions
        return session

    @property
    def failed(self) -> dict[str, list[int]]:
        """Frames by rule, of all levels."""
        return self._frames("fail")

    @property
    def doubted(self) -> dict[str, list[int]]:
        return self._frames("inconclusive")

    def _frames(self, verdict: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for one in self.session.findings:
            if one.verdict == verdict:
                found.setdefault(one.rule, []).append(one.frame)
        return found

    def finding(self, rule: str) -> Finding:
        """The only one of its rule."""
        (one,) = (one for one in self.session.findings if one.rule == rule)
        return one

    def rule(self, rule: str) -> RuleVerdict:
        (one,) = (one for one in self.session.rules if one.id == rule)
        return one

    @property
    def verdicts(self) -> dict[str, str]:
        return {one.id: one.verdict for one in self.session.rules}

    @property
    def qualities(self) -> dict[str, int]:
        """How sure the pairs of requests and ACKs are, by quality."""
        rows = self.session.timing.rows()
        return {name: sum(row["quality"][name] for row in rows) for name in rows[0]["quality"]}


@dataclass(frozen=True)
class Talk:
    """How a talk is written: its dialect, in which form, and what the capture does with frames.

    ``copies``: taken on all interfaces of a bridge, so that each frame is there twice and a frame's number is twice its
    line's less one. ``same_id``: frames of these numbers have the IP id of the frame that they name.
    """

    dialect: str = "colon"
    form: str | None = None
    copies: bool = False
    same_id: dict[int, int] = field(default_factory=dict)

    def write(self, path: Path, lines: str) -> Path:
        with CaptureWriter(path, link_type=COOKED if self.copies else ETHERNET) as out:
            for number, line in enumerate(_lines(lines), 1):
                written, time, src, sign, dst, said = line.split(maxsplit=5)
                assert (int(written), sign) == (number, ">"), f"line {number} is {line!r}"
                packet = self._packet(number, src, dst, self._datagram(said))
                at = T0 + int(float(time) * MILLISECOND)
                if self.copies:
                    out.write(cooked1(packet, packet_type=3), at)
                    out.write(cooked1(packet, packet_type=4), at + 20_000)
                else:
                    out.write(ethernet(packet), at)
        return path

    def _packet(self, number: int, src: str, dst: str, datagram: bytes) -> bytes:
        (source, sport), (target, dport) = self._end(src), self._end(dst)
        return ipv4(udp(datagram, sport, dport), src=source, dst=target, ident=self.same_id.get(number, number))

    def _end(self, name: str) -> tuple[str, int]:
        """`anna`, or `anna:4711` for another port than hers."""
        who, _, port = name.partition(":")
        return f"10.0.0.{ADDRESSES[who]}", int(port or PORTS[self.dialect][who])

    def _datagram(self, said: str) -> bytes:
        if said.startswith("hex:"):
            return bytes.fromhex(said.removeprefix("hex:"))
        name, *words = shlex.split(said)
        fields = dict(word.split("=", 1) for word in words)
        codec = _codec(self.dialect)
        numbers = codec.dialect.spec.fields
        values = {key: int(text) if numbers[key].kind in ("uint", "digits") else text for key, text in fields.items()}
        built: bytes = codec.build(codec.message(name, values, form=self.form))
        return built


@cache
def _codec(dialect: str) -> Codec:
    return Codec(load_dialect(dialect))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def judged(folder: Path, lines: str, talk: Talk | None = None, brokers: Sequence[str] = ()) -> Judged:
    """Write a talk down as a capture and check it."""
    path = (talk or Talk()).write(folder / "talk.pcap", lines)
    dialects = wanted_dialects([talk.dialect if talk else "colon"])
    return Judged(check([str(path)], dialects=dialects, brokers=brokers, engine="local"))


ROWS_OF_A_BUCKET = 20


def cut(patch: pytest.MonkeyPatch, paths: Sequence[Path], units: int) -> None:
    """From now on captures of about this size are read in so many units, a few more or less, and judged in buckets of
    some 20 rows."""
    size = sum(path.stat().st_size for path in paths) // len(paths)
    patch.setattr(checking, "UNIT_BYTES", size // units)
    patch.setattr(pipeline, "BUCKET_ROWS", ROWS_OF_A_BUCKET)
    counts = [len(plan_splits(str(path), size // units).splits) for path in paths]
    assert sum(counts) >= 0.7 * units * len(paths), counts


__all__ = ["CheckResult", "Judged", "SessionResult", "Talk", "check", "cut", "judged", "wanted_dialects"]
