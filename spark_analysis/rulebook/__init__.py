"""The texts of the rules, a file for each few families; ``spark_analysis.rules`` is the table of all of them."""
