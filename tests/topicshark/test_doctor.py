"""`topicshark doctor` on this machine, and on one where nothing is installed."""

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import Command
from topicshark.exit_codes import ExitCode

PACKAGES = {"jinja2", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "pydantic", "pyshark", "pyspark"}
PACKAGES |= {"rich", "scapy", "typer"}
TOOLS = {"Java", "tshark", "capinfos", "editcap", "tcpdump", "lua5.2", "lua5.3", "lua5.4", "luacheck"}
RIGHTS = {"Lua plugin folder", "live capture", "network namespaces"}


def fake_tool(folder: Path, name: str, script: str) -> None:
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


def test_this_machine_has_what_is_required(topicshark: Command) -> None:
    answer = topicshark("doctor", "--json")
    assert answer.returncode == ExitCode.CLEAN, answer.stdout
    report = json.loads(answer.stdout)
    checks = {check["name"]: check for check in report["checks"]}
    assert report["complete"] is True
    assert {"Python"} | PACKAGES | TOOLS | RIGHTS <= set(checks)
    assert checks["Python"]["found"].startswith(".".join(map(str, sys.version_info[:3])))
    assert " with Lua 5." in checks["tshark"]["found"]
    assert "with jdk.incubator.vector" in checks["Java"]["found"]
    assert all(check["state"] == "ok" for check in checks.values() if check["required"])


def test_an_empty_path_tells_what_is_missing_and_how_to_get_it(topicshark: Command) -> None:
    answer = topicshark("doctor", "--json", env={"PATH": "", "JAVA_HOME": None})
    assert answer.returncode == ExitCode.FINDINGS
    checks = {check["name"]: check for check in json.loads(answer.stdout)["checks"]}
    assert {name for name, check in checks.items() if check["state"] == "missing"} == {
        "Java",
        "tshark",
        "capinfos",
        "editcap",
    }
    assert "sudo apt-get install openjdk-17-jre-headless" in checks["Java"]["fix"]
    assert checks["tshark"]["fix"] == "sudo apt-get install tshark"
    assert checks["tcpdump"]["state"] == "optional"
    assert checks["luacheck"]["fix"] == "sudo apt-get install lua-check"
    assert all(checks[name]["state"] == "ok" for name in PACKAGES)


def test_the_table_keeps_each_answer_on_one_line_without_colour_in_a_pipe(topicshark: Command) -> None:
    answer = topicshark("doctor", env={"PATH": "", "JAVA_HOME": None})
    lines = [line.split() for line in answer.stdout.splitlines()]
    assert ["MISSING", "tshark", "-", "sudo", "apt-get", "install", "tshark"] in lines
    assert "\x1b" not in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("version", "modules", "complaint"),
    [
        ("1.8.0_402", "jdk.incubator.vector@8", "1.8.0, Spark needs 17 or 21+"),
        ("19.0.2", "jdk.incubator.vector@19", "19.0.2, Spark needs 17 or 21+"),
        ("17.0.1", "java.base@17", "17.0.1 without jdk.incubator.vector, which Spark needs"),
    ],
)
def test_a_java_that_cannot_run_spark_is_named(
    topicshark: Command, tmp_path: Path, version: str, modules: str, complaint: str
) -> None:
    (tmp_path / "bin").mkdir()
    script = f"""case $1 in -version) echo 'openjdk version "{version}"' >&2;; *) echo {modules};; esac"""
    fake_tool(tmp_path / "bin", "java", script)
    answer = topicshark("doctor", "--json", env={"JAVA_HOME": str(tmp_path)})
    assert answer.returncode == ExitCode.FINDINGS
    java = next(check for check in json.loads(answer.stdout)["checks"] if check["name"] == "Java")
    assert java["state"] == "missing"
    assert java["found"] == complaint
    assert f"unset JAVA_HOME ({tmp_path})" in java["fix"]


def test_a_tshark_without_lua_cannot_load_the_dissector(topicshark: Command, tmp_path: Path) -> None:
    fake_tool(tmp_path, "tshark", "echo 'TShark (Wireshark) 4.2.0. Compiled with libpcap, without Lua, with zlib.'")
    answer = topicshark("doctor", "--json", env={"PATH": str(tmp_path)})
    tshark = next(check for check in json.loads(answer.stdout)["checks"] if check["name"] == "tshark")
    assert (tshark["state"], tshark["found"]) == ("missing", "4.2.0 without Lua")


def test_a_tool_that_fails_counts_as_missing(topicshark: Command, tmp_path: Path) -> None:
    fake_tool(tmp_path, "capinfos", "exit 1")
    answer = topicshark("doctor", "--json", env={"PATH": str(tmp_path)})
    capinfos = next(check for check in json.loads(answer.stdout)["checks"] if check["name"] == "capinfos")
    assert capinfos["fix"] == "sudo apt-get install wireshark-common"
