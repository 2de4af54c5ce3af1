"""A notebook's Spark session: the one that is there is taken, so that running its cell again changes nothing."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_analysis.engine.notebook_session import notebook_session

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_a_session_that_is_open_is_taken_whatever_master_is_named(spark: SparkSession) -> None:
    again = notebook_session("spark://nowhere:7077")
    assert again.sparkContext.applicationId == spark.sparkContext.applicationId
    assert again.range(3).count() == 3
