"""Tracking takes as long for the last message of a capture as for the first, and keeps no message.

Counted in instructions of Lua, not in seconds.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.dissector.tshark import DISSECTOR

DRIVER = Path(__file__).with_name("count_work.lua")
LUAS = ("lua5.2", "lua5.3", "lua5.4")
TRAFFIC = ("answered", "never_answered", "one_lost_ack", "a_few_lost_acks", "many_hosts")
MESSAGES = 4000  # in each half; their payloads have 400 bytes
MOST_KEPT = 400  # bytes a message, which is mostly two frames: places in arrays, which grow by doubling


@pytest.mark.parametrize("lua", LUAS)
@pytest.mark.parametrize("traffic", TRAFFIC)
def test_the_second_half_takes_no_more_than_the_first(lua: str, traffic: str) -> None:
    if shutil.which(lua) is None:
        pytest.skip(f"{lua} is not installed")
    done = subprocess.run(
        [lua, str(DRIVER), str(DISSECTOR), traffic, str(MESSAGES)], capture_output=True, text=True, check=True
    )
    work, kept = map(float, done.stdout.split())
    assert work < 1.3, f"the second half took {work:.2f} times the work of the first"
    assert kept < MOST_KEPT, f"a message leaves {kept:.0f} bytes"
