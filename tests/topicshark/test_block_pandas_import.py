"""A command does not import pandas, which pyarrow would; what asks for pandas gets it."""

import subprocess
import sys

from tests.conftest import REPO

PROGRAM = """
import sys
from topicshark.commands.captures.checking import block_pandas_import

block_pandas_import()
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

texts = pa.array(["a", "b"])
assert pc.equal(texts, "a").to_pylist() == [True, False]
assert texts.take(np.array([1])).to_pylist() == ["b"]
assert "pandas" not in sys.modules
assert texts.to_pandas().tolist() == ["a", "b"]
assert pa.array(sys.modules["pandas"].Series([1, 2])).to_pylist() == [1, 2]
"""


def test_pyarrow_works_without_pandas_and_with_it_afterwards() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
