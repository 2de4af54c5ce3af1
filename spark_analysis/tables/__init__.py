"""Arrow tables of the analysis: their schemas, counts and histograms that can be merged, and tables as bytes."""
