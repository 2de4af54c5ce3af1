"""Running the real tshark with our dissector: nothing of the user's own, and a Lua error is always noticed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
DISSECTOR = ROOT / "dissector.lua"
RAW_IP = 101
UDP_PAYLOAD_AT = 28

Address = tuple[str, int]
_NOT_XML = re.compile("[\ufffe\uffff\ud800-\udfff]")  # tshark writes them all the same


def run_tshark(
    capture: Path | str,
    *options: str,
    home: Path,
    script: Path | None = DISSECTOR,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> str:
    """stdout of tshark with an empty HOME and configuration. tshark exits 0 on a Lua error, so stderr counts."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    home.mkdir(parents=True, exist_ok=True)
    command = ["tshark", "-n", "-r", str(capture)]
    if script is not None:
        command += ["-X", f"lua_script:{script}"]
        command += [part for argument in arguments for part in ("-X", f"lua_script1:{argument}")]
    clean = {
        **os.environ,
        "HOME": str(home),
        "WIRESHARK_CONFIG_DIR": str(home),
        "LC_ALL": "C.UTF-8",
        **(environment or {}),
    }
    done = subprocess.run([*command, *options], capture_output=True, check=False, env=clean, timeout=280)
    problems = [line for line in done.stderr.decode(errors="replace").splitlines() if "Running as user" not in line]
    assert done.returncode == 0, problems
    assert not problems, problems
    return done.stdout.decode("utf-8", "surrogateescape")


def fields_of(
    capture: Path, *names: str, home: Path, options: Sequence[str] = (), **settings: object
) -> list[list[str]]:
    """One row a frame, one column a field; repeated values are joined with commas."""
    wanted = [part for name in names for part in ("-e", name)]
    text = run_tshark(capture, *options, "-T", "fields", *wanted, home=home, **settings)  # type: ignore[arg-type]
    return [line.split("\t") for line in text.splitlines()]


@dataclass
class Shown:
    """What tshark shows of one frame: our fields by name, each with what it shows, its bytes and its place."""

    show: dict[str, list[str]] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)
    at: dict[str, tuple[int, int]] = field(default_factory=dict)
    masked: dict[str, bool] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)

    def number(self, name: str) -> int:
        """A number, a flag or bits, however they are shown."""
        return int({"True": "1", "False": "0"}.get(self.show[name][0], self.show[name][0]), 0)

    def one(self, name: str) -> str | None:
        values = self.show.get(name)
        return None if values is None else values[0]


def pdml(
    capture: Path, *options: str, home: Path, script: Path | None = DISSECTOR, prefix: str = "pubsub"
) -> Iterator[Shown]:
    """Every frame in tshark's most exact output: values, bytes and positions."""
    text = run_tshark(capture, "-T", "pdml", *options, home=home, script=script)
    root = ElementTree.fromstring(_NOT_XML.sub("?", text))  # noqa: S314
    for packet in root.iter("packet"):
        shown = Shown(layers=[proto.get("name", "") for proto in packet.findall("proto")])
        for item in packet.iter("field"):
            name = item.get("name", "")
            if not name.startswith(prefix):
                continue
            shown.show.setdefault(name, []).append(item.get("show", ""))
            shown.raw[name] = bytes.fromhex(item.get("unmaskedvalue") or item.get("value") or "")
            shown.masked[name] = item.get("unmaskedvalue") is not None
            shown.at[name] = (int(item.get("pos", "0")), int(item.get("size", "0")))
        yield shown


def udp_packet(payload: bytes, source: Address, target: Address, ip_id: int = 1) -> bytes:
    """A UDP datagram in IPv4, without checksums."""
    udp = pack(">HHHH", source[1], target[1], 8 + len(payload), 0) + payload
    addresses = bytes(map(int, source[0].split("."))) + bytes(map(int, target[0].split(".")))
    return pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), ip_id, 0, 64, 17, 0) + addresses + udp


def write_pcap(
    path: Path, frames: Sequence[tuple[float, bytes]], link_type: int = RAW_IP, snaplen: int = 262144
) -> Path:
    """Frames with their times in seconds."""
    with path.open("wb") as out:
        out.write(pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snaplen, link_type))
        for seconds, frame in frames:
            ns = round(seconds * 1e9)
            kept = frame[:snaplen]
            out.write(pack("<IIII", 1_700_000_000 + ns // 10**9, ns % 10**9, len(kept), len(frame)) + kept)
    return path
