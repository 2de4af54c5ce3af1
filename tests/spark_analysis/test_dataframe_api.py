"""The analysis and the command use Spark through DataFrames alone, which also work through Spark Connect.

Read from the syntax trees of all their files: no SparkContext, RDD, object of Java's or pickle, but where a session is
opened and where its progress is shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPO

PACKAGES = ("spark_analysis", "topicshark")
MAY = {"spark_analysis/engine/spark_session.py", "spark_analysis/engine/progress.py"}
BANNED = {"SparkContext", "sparkContext", "_sc", "rdd", "parallelize", "_jvm", "_jdf", "_jsparkSession"}
BANNED_MODULES = {"py4j", "pickle", "cloudpickle"}
FILES = sorted(path for package in PACKAGES for path in (REPO / package).rglob("*.py"))


def complaints(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each use."""
    for node in ast.walk(ast.parse(source)):
        for name in names_in(node):
            parts = name.split(".")
            if BANNED & set(parts) or BANNED_MODULES & set(parts):
                yield getattr(node, "lineno", 0), name


def names_in(node: ast.AST) -> list[str]:
    """Names, attributes and imports; and texts that name one, as `getattr` and `import_module` take them."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(alias.name for alias in node.names)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
        return [node.value]
    return []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPO)))
def test_only_dataframes(path: Path) -> None:
    if str(path.relative_to(REPO)) not in MAY:
        assert list(complaints(path.read_text())) == []


def test_the_files_are_there() -> None:
    names = {str(path.relative_to(REPO)) for path in FILES}
    assert names > MAY | {"spark_analysis/checker/steps.py", "topicshark/commands/captures/check.py"}


def test_what_is_allowed_is_used() -> None:
    """Else the list is longer than it must be."""
    for name in MAY:
        assert list(complaints((REPO / name).read_text())) != [], name


@pytest.mark.parametrize(
    "source",
    [
        "spark.sparkContext.setLogLevel('OFF')",
        "numbers = table.rdd.getNumPartitions()",
        "context.parallelize([1, 2]).map(str)",
        "spark._jvm.java.lang.System.gc()",
        "from py4j.protocol import Py4JError",
        "import py4j",
        "import py4j.java_gateway as gateway",
        "import pickle",
        "from pickle import dumps",
        "from pyspark import cloudpickle",
        "from pyspark import SparkContext",
        "def f():\n    import pickle as p\n    return p",
        "getattr(table, 'rdd')",
        "importlib.import_module('py4j.protocol')",
    ],
)
def test_each_is_noticed(source: str) -> None:
    assert list(complaints(source)) != []


@pytest.mark.parametrize(
    "source", ['"""Made to be pickled, unlike an rdd or a SparkContext."""', "spark.range(3).count()", "pickled = 1"]
)
def test_prose_and_dataframes_are_fine(source: str) -> None:
    assert list(complaints(source)) == []
