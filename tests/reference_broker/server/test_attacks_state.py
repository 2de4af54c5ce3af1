"""A state file that is cut, overwritten, half written or of another version: what is whole is kept, and it goes on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from zlib import crc32

import pytest

from pcap_tools.dialect import load_dialect
from reference_broker import broker_for
from reference_broker.messages.sending import SECOND
from reference_broker.server.journal import Journal, JournalError, Record
from reference_broker.server.state import State

CLIENT = ("192.0.2.5", 40_002)


def state_file(path: Path) -> bytes:
    broker = broker_for(load_dialect("colon"))
    state = State(str(path), broker, say=print)
    for number in range(20):
        assert broker.handle(b"\x01\x01kept/%d:x" % number, CLIENT, 0)
    state.commit()
    state.close()
    return path.read_bytes()


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "truncated": (lambda whole: whole[: len(whole) // 2], 8),
    "half-written": (lambda whole: whole[:-10], 19),
    "garbage": (lambda whole: b"\x1b[2J\xff" * 500, 0),
    "garbage-at-the-end": (lambda whole: whole + b"\0" * 4_096, 20),
    "garbage-without-a-line-end": (lambda whole: b"x" * (2 << 20), 0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_file_costs_what_is_damaged_and_no_more(tmp_path: Path, damage: str) -> None:
    alter, least = DAMAGES[damage]
    path, said = tmp_path / "state", list[str]()
    path.write_bytes(alter(state_file(path)))
    broker = broker_for(load_dialect("colon"))
    state = State(str(path), broker, say=said.append)
    assert len(broker.retained) >= least
    assert "damaged at byte" in said[0]
    assert "\x1b" not in said[0]
    assert broker.handle(b"\x01\x01new:x", CLIENT, 0), "it goes on keeping things"
    state.commit()
    state.close()
    again = broker_for(load_dialect("colon"))
    State(str(path), again, say=said.append).close()
    assert dict(again.retained) == dict(broker.retained)


def test_a_state_file_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state"
    header = b'{"topicshark":"state 2","dialect":"colon"}'
    later = b"%08x %s\n" % (crc32(header), header)
    path.write_bytes(later)
    with pytest.raises(JournalError, match="not a state file that this version knows"):
        State(str(path), broker_for(load_dialect("colon")), say=print)
    assert path.read_bytes() == later


def test_a_rewrite_that_a_kill_left_half_written_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(state_file(path) + b"damage, so that it is rewritten")
    (tmp_path / "state.new").write_bytes(b"half a li")
    broker = broker_for(load_dialect("colon"))
    State(str(path), broker, say=print).close()
    assert len(broker.retained) == 20
    assert not (tmp_path / "state.new").exists()
    assert path.read_bytes().count(b"\n") == 21


def test_a_full_disk_that_takes_changes_again_is_mended_without_room_for_a_second_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, said = broker_for(load_dialect("colon")), list[str]()
    state = State(str(tmp_path / "state"), broker, say=said.append)

    def is_full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def cannot_be_rewritten(self: Journal, records: Iterable[Record]) -> str | None:
        raise JournalError("no room for a second file")

    monkeypatch.setattr(Journal, "rewrite", cannot_be_rewritten)
    with monkeypatch.context() as full:
        full.setattr(os, "write", is_full)
        with pytest.raises(JournalError, match="No space left"):
            broker.handle(b"\x01\x01a:x", CLIENT, 0)
    state.tick(2 * SECOND)
    assert [text.endswith("can be written again") for text in said] == [False]
    assert broker.handle(b"\x01\x01a:x", CLIENT, 3 * SECOND)
    state.commit()
    state.tick(4 * SECOND)
    assert [text.endswith("can be written again") for text in said] == [False, True]
    state.close()
