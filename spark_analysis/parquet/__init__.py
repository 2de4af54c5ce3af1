"""A Parquet writer for what the columnar decoder makes: one page a batch, no value looked at twice."""
