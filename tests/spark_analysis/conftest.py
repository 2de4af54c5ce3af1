"""One Spark session for all tests that need one: it takes some 10 s to start."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_analysis.engine.spark_session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    interrupt = signal.getsignal(signal.SIGINT)
    with open_session("local[2,4]") as session:
        signal.signal(signal.SIGINT, interrupt)  # PySpark's own would stay for the tests that follow
        yield session
