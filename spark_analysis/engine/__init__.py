"""Where the passes run: in this process, or on Spark, in any kind of session."""
