"""Kernels outside pcap_tools/columnar: kept on disk, and compiled again when a file of their folder has changed."""

import os
import subprocess
import sys
from pathlib import Path

PIECE = """
from pcap_tools.kernels.jit import inlined

@inlined
def piece(number):
    return number + {}
"""
KERNEL = """
from numba import types
from pcap_tools.kernels.jit import kernel
from .piece import piece

@kernel(types.int64)
def whole(number):
    return piece(number)

print(whole(1), sum(whole.stats.cache_hits.values()))
"""


def result(folder: Path) -> str:
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[3])])
    command = [sys.executable, "-B", "-c", "import pack.whole"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_changed_piece_is_compiled_again(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    for name, text in (("__init__", ""), ("piece", PIECE.format(1)), ("whole", KERNEL)):
        (pack / f"{name}.py").write_text(text)
    assert [result(tmp_path), result(tmp_path)] == ["2 0", "2 1"]
    (pack / "piece.py").write_text(PIECE.format(20))
    assert result(tmp_path) == "21 0"
