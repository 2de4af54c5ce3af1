"""The Spark session of a notebook: opened by one line, closed when the kernel ends.

>>> spark = notebook_session("local[*]")                  # doctest: +SKIP
>>> spark = notebook_session("spark://head:7077")         # doctest: +SKIP

Where there is a session already (a hosted notebook, `pyspark` with Jupyter as its driver) that one is taken, whatever
master is named. What Java writes to stderr would land in the notebook, hence not `SparkSession.builder`.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack

from pyspark.sql import SparkSession

from .spark_session import LOCAL, open_session


def notebook_session(master: str = LOCAL) -> SparkSession:
    """One session a kernel; running the cell again gives the same."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    kept = ExitStack()
    session = kept.enter_context(open_session(master))
    atexit.register(kept.close)
    return session
