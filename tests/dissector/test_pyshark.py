"""pyshark reads our fields. In a process of its own: pyshark leaves an event loop behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dissector.tshark import DISSECTOR, udp_packet, write_pcap

pytestmark = pytest.mark.tshark

SCRIPT = """
import json, sys, pyshark
capture = pyshark.FileCapture(sys.argv[1], custom_parameters=["-X", "lua_script:" + sys.argv[2]])
rows = []
for packet in capture:
    layer = packet.pubsub
    rows.append([layer.dialect, layer.message, layer.get("topic"), layer.get("payload_text"), layer.get("colon_type")])
capture.close()
print(json.dumps(rows))
"""


def test_pyshark_reads_the_fields(tmp_path: Path) -> None:
    frames = [
        (0.0, udp_packet(b"\x01\x01home/fan:ON", ("10.0.0.1", 50000), ("10.0.0.2", 50000))),
        (0.1, udp_packet(b"\x02", ("10.0.0.2", 50000), ("10.0.0.1", 50000))),
    ]
    capture = write_pcap(tmp_path / "two.pcap", frames)
    clean = {**os.environ, "HOME": str(tmp_path), "WIRESHARK_CONFIG_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(capture), str(DISSECTOR)],
        capture_output=True,
        text=True,
        check=True,
        env=clean,
        timeout=120,
    )
    assert json.loads(done.stdout) == [
        ["colon", "PUBLISH", "home/fan", "ON", "1"],
        ["colon", "PUBACK", None, None, "2"],
    ]
