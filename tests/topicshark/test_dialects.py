"""`topicshark dialects`: listed, shown, and a wrong file refused in a way that helps."""

from pathlib import Path

import pytest

from pcap_tools.dialect import builtin_names
from tests.conftest import Command
from topicshark.exit_codes import ExitCode


def test_list_names_all_six(topicshark: Command) -> None:
    answer = topicshark("dialects", "list")
    assert answer.returncode == ExitCode.CLEAN
    for name in ("colon", "topicbyte", "portdigits", "topicnumber", "rolebyte", "mqttsn"):
        assert f"\n{name} " in "\n" + answer.stdout


def test_show_tells_messages_field_by_field(topicshark: Command) -> None:
    answer = topicshark("dialects", "show", "colon")
    assert "PUBLISH (publish): type: u8 = 1 | retain: u8 no=0 yes=1 | topic: text until ':'" in answer.stdout


@pytest.mark.parametrize("name", builtin_names())
def test_what_show_prints_as_toml_is_a_sound_dialect(topicshark: Command, tmp_path: Path, name: str) -> None:
    file = tmp_path / "copy.toml"
    file.write_text(topicshark("dialects", "show", name, "--toml").stdout)
    assert topicshark("dialects", "check", str(file)).returncode == ExitCode.CLEAN


def test_a_wrong_file_is_refused_with_line_key_and_suggestion(topicshark: Command, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        'name = "my"\ntitle = "Mine"\n[fields]\ntype = { kind = "unit", size = 1 }\n'
        '[messages]\nHI = { when = { type = 1 }, layuot = ["type"] }\n'
    )
    answer = topicshark("dialects", "check", str(file))
    assert answer.returncode == ExitCode.UNREADABLE
    first, second = answer.stderr.splitlines()
    assert "my.toml:4: fields.type.kind" in first
    assert "did you mean 'uint'?" in first
    assert "my.toml:6: messages.HI" in second
    assert "did you mean 'layout'?" in second


def test_an_unknown_name_gets_a_suggestion(topicshark: Command) -> None:
    answer = topicshark("dialects", "show", "colom")
    assert answer.returncode == ExitCode.UNREADABLE
    assert "did you mean 'colon'?" in answer.stderr
