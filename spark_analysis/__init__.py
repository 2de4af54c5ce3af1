"""Captures of any number and size on Spark: ingest to Parquet, and the analyses on top of it."""
