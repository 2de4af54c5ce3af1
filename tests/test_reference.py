"""The reference pages are what the code says now, and say what somebody typed here by hand."""

from __future__ import annotations

import re
import shutil

import pytest

from scripts.reference.pages import PAGES, REPO
from tests.conftest import Command
from topicshark.exit_codes import ExitCode

REFERENCE = REPO / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_fresh(name: str) -> None:
    if name.endswith("lua-fields.md") and shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = REPO / name
    written = path.read_text() if path.exists() else None
    assert written == PAGES[name](), f"{name} is stale; make it again: python -m scripts.reference"


@pytest.mark.parametrize("name", ["check", "generate", "dialects show", "subscribe"])
def test_the_page_of_commands_has_what_the_help_has(topicshark: Command, name: str) -> None:
    """Help is printed by other code, for the terminal."""
    answer = topicshark(*name.split(), "--help")
    page = (REFERENCE / "command.md").read_text()
    section = re.split(r"^##+ ", page.partition(f" topicshark {name}\n")[2], maxsplit=1, flags=re.M)[0]
    options = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", answer.stdout, re.M)) - {"--help"}
    assert options
    assert set(re.findall(r"^\| `(?:-\w, )?(--[\w-]+)", section, re.M)) == options
    example = " ".join(answer.stdout.split("Example: ")[1].split()).replace("- ", "-")
    assert example in section.replace("- ", "-")


LINES = {
    "dialect-format.md": [
        "| `after` | number above 0 | **required** | Seconds without an ACK before a client resends. |",
        '| `order` | `"big"` `"little"` | `"big"` | Byte order of a number. |',
        "| `bits` | whole number from 1 to 63 |  |",
        '| `ports` | table: name → port, list of ports, or `"first-last"` |  |',
        "| `acks` | text, or a list of them |  |",
        "| `case_sensitive` | `true` or `false` | `true` |",
        "| `magic` | constant bytes | `hex`, `ascii` |",
        "| `as` | text | **required** |",
    ],
    "schemas.md": [
        "| `time_ns` | `bigint` | time of capture |",
        "| `related` | `array<struct<capture:string,frame:bigint>>` | other datagrams that belong to it, 20 at most |",
        "| `frame` | `bigint` | frame of the first send |",
        "| `brokers` | `array<struct<host:string,port:int,first:int>>` "
        "| address and port of the brokers, the busiest first |",
        "| `limit_ns` | `bigint` | the time that the dialect allows |",
        "| `key` | `bigint` |",
    ],
    "lua-fields.md": [
        "| `pubsub.ack_time` | relative_time |",
        "| `pubsub.expert.no_ack` | warn | sequence | No ACK was seen |",
        "| `pubsub.mqttsn.topic_id` | uint32 |",
    ],
    "exit-codes.md": ["| **4** | Some input was unusable. The results are valid for the rest. |"],
}


@pytest.mark.parametrize("name", LINES)
def test_a_page_says_what_is_known(name: str) -> None:
    page = (REFERENCE / name).read_text()
    assert [line for line in LINES[name] if f"\n{line}" not in page] == []


def test_every_exit_code_is_told() -> None:
    page = (REFERENCE / "exit-codes.md").read_text()
    assert [int(code) for code in re.findall(r"^\| \*\*(\d+)\*\* \| \w", page, re.M)] == sorted(ExitCode)
