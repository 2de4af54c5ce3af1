"""Captures typed by hand as bytes, and the verdict that a person gives. Format: README.md in this folder.

Nothing here decodes a message: what is typed is what stands in the capture.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.pcap_tools.capture.packets import cooked1, ethernet, ipv4, pcap_header, pcap_record, udp

WILD = Path(__file__).parent
NOT_YET = "not-yet.toml"
ETHERNET, COOKED = 1, 113
START_NS = 1_700_000_000_000_000_000
COPY_NS = 20_000  # how far apart the copies of a frame are on `any`

_SAME_PORT = dict.fromkeys(("broker", "sub", "sub2", "pub", "pub2"), 50000)
_PORTS = {
    "colon": _SAME_PORT,
    "topicbyte": {"broker": 50000, "sub": 50003, "sub2": 50003, "pub": 50002, "pub2": 50002},
    "portdigits": {"broker": 12345, "sub": 38166, "sub2": 38167, "pub": 40001, "pub2": 40002},
    "topicnumber": {"broker": 50003, "sub": 50004, "sub2": 50004, "pub": 50002, "pub2": 50002},
    "rolebyte": {"broker": 50001, "dash": 50002, "dash2": 50002, "sensor": 50003, "actuator": 50007},
    "mqttsn": {"broker": 1883, "sub": 40002, "sub2": 40004, "pub": 40003, "pub2": 40005},
}
_KEYS = {"name", "why", "frames", "dialect", "any", "parties", "merge", "detect", "named_broker"}
_KEYS |= {"verdict", "broker", "errors", "doubts", "maybe", "recognised", "says", "never_says"}
_OPTIONS = {"id", "type", "cut", "part", "pad", "copies", "unreachable"}

Places = dict[str, list[str]]  # by rule: "8" is frame 8 of the first capture, "b:3" frame 3 of the one named b


@dataclass(frozen=True)
class Case:
    """One situation: the captures, how `check` is called, and what a person says of them."""

    name: str
    why: str
    dialect: str
    captures: dict[str, bytes]
    verdict: str
    brokers: list[str] | None
    errors: Places
    doubts: Places
    maybe: Places = field(default_factory=dict)
    recognised: str = ""
    says: Sequence[str] = ()
    never_says: Sequence[str] = ()
    merge: bool = False
    detect: bool = False
    named_brokers: Sequence[str] = ()

    def write(self, folder: Path) -> list[str]:
        """The files, in their order."""
        paths = [folder / f"{name}.pcap" for name in self.captures]
        for path, content in zip(paths, self.captures.values(), strict=True):
            path.write_bytes(content)
        return [str(path) for path in paths]


def load_cases() -> list[Case]:
    """Every case of every file, in the order of the files' names."""
    files = [file for file in sorted(WILD.glob("*.toml")) if file.name != NOT_YET]
    return [_case(file, entry) for file in files for entry in tomllib.loads(file.read_text("utf-8"))["case"]]


def not_yet() -> dict[str, str]:
    """Names of cases that the checker judges wrongly today, and why."""
    entries: dict[str, str] = tomllib.loads((WILD / NOT_YET).read_text("utf-8"))
    return entries


def _case(file: Path, entry: dict[str, Any]) -> Case:
    name = f"{file.stem}: {entry['name']}"
    if unknown := entry.keys() - _KEYS:
        raise ValueError(f"{name}: unknown keys {sorted(unknown)}")
    parties = _parties(entry)
    said = entry["broker"]
    ends = [said] if isinstance(said, str) else said
    return Case(
        name=name,
        why=entry["why"],
        dialect=entry["dialect"],
        captures=_captures(name, entry, parties),
        verdict=entry["verdict"],
        brokers=[end if ":" in end else "{}:{}".format(*parties[end]) for end in ends],
        errors=_places(entry.get("errors", {})),
        doubts=_places(entry.get("doubts", {})),
        maybe=_places(entry.get("maybe", {})),
        recognised=entry.get("recognised", entry["dialect"]),
        says=entry.get("says", ()),
        never_says=entry.get("never_says", ()),
        merge=entry.get("merge", False),
        detect=entry.get("detect", False),
        named_brokers=["{}:{}".format(*parties[end]) for end in entry.get("named_broker", ())],
    )


def _places(told: dict[str, list[int | str]]) -> Places:
    return {rule: sorted(str(place) for place in places) for rule, places in told.items()}


def _parties(entry: dict[str, Any]) -> dict[str, tuple[str, int]]:
    ports = _PORTS[entry["dialect"]]
    usual = {name: (f"10.0.0.{number}", port) for number, (name, port) in enumerate(ports.items(), 1)}
    return usual | {name: _endpoint(text) for name, text in entry.get("parties", {}).items()}


def _endpoint(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


# --- Frames ------------------------------------------------------------------------------------------------


@dataclass
class _Writer:
    """One capture while it is typed. ``packets`` are those of its lines, by frame number, for ICMP errors to quote."""

    parties: dict[str, tuple[str, int]]
    cooked: bool
    content: bytes = b""
    frames: int = 0
    packets: dict[int, bytes] = field(default_factory=dict)

    def line(self, text: str) -> None:
        number, time, src, sign, dst, *tokens = re.findall(r'"[^"]*"|\S+', text)
        if (int(number), sign) != (self.frames + 1, ">"):
            raise ValueError(f"frame {self.frames + 1} is {text!r}")
        options = dict(token.split("=") for token in tokens if _is_option(token))
        if unknown := options.keys() - _OPTIONS:
            raise ValueError(f"{text!r}: unknown {sorted(unknown)}")
        data = b"".join(_bytes(token) for token in tokens if not _is_option(token))
        packet = self._packet(self._end(src), self._end(dst), data.ljust(int(options.get("pad", 0)), b"\0"), options)
        self.packets[self.frames + 1] = packet
        at = START_NS + round(float(time) * 1_000_000)
        for copy in range(int(options.get("copies", 1))):
            kind = int(options.get("type", 0)) + copy
            frame = cooked1(packet, packet_type=kind) if self.cooked else ethernet(packet)
            captured = min(int(options.get("cut", len(frame))), len(frame))
            self.content += pcap_record(frame[:captured], at + copy * COPY_NS, original=len(frame))
            self.frames += 1

    def _packet(self, src: tuple[str, int], dst: tuple[str, int], data: bytes, options: dict[str, str]) -> bytes:
        ident = int(options.get("id", (self.frames + 1) * 40_503 & 0xFFFF))  # as good as random, and never the same
        if "unreachable" in options:
            quoted = self.packets[int(options["unreachable"])]
            return ipv4(bytes([3, 3, 0, 0, 0, 0, 0, 0]) + quoted, src=src[0], dst=dst[0], ident=ident, protocol=1)
        body = udp(data, src[1], dst[1])
        first, _, last = options.get("part", ":").partition(":")
        begin, end = int(first or 0), int(last or len(body))
        return ipv4(body[begin:end], src=src[0], dst=dst[0], ident=ident, offset=begin, more=end < len(body))

    def _end(self, text: str) -> tuple[str, int]:
        """`sub`, `sub:4711` for another port than its own, or an address with a port."""
        name, _, port = text.partition(":")
        host, own = self.parties.get(name, (name, 0))
        return host, int(port or own)


def _captures(name: str, entry: dict[str, Any], parties: dict[str, tuple[str, int]]) -> dict[str, bytes]:
    cooked, writers = entry.get("any", False), dict[str, _Writer]()
    current = ""
    for line in (one.partition("#")[0].strip() for one in entry["frames"].splitlines()):
        if line.startswith("=="):
            current = line.strip("= ")
        elif line:
            current = current or "a"
            try:
                writers.setdefault(current, _Writer(parties, cooked)).line(line)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
    head = pcap_header(COOKED if cooked else ETHERNET)
    return {capture: head + writer.content for capture, writer in writers.items()}


def _is_option(token: str) -> bool:
    return "=" in token and not token.startswith('"')


def _bytes(token: str) -> bytes:
    """``0a1b`` are bytes, ``"temp"`` is text, ``00*5`` five NULs."""
    if token.startswith('"'):
        return token.strip('"').encode()
    digits, _, times = token.partition("*")
    return bytes.fromhex(digits) * int(times or 1)
