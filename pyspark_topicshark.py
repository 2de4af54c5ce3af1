"""Spark looks for a `DefaultSource` in modules called `pyspark_*`: by this one it knows the format `topicshark`."""

from spark_analysis.sources.data_source import TopicsharkSource as DefaultSource

__all__ = ["DefaultSource"]
