"""The tools that `benchmarks.rates` sets side by side, each run in a process of its own (see `__main__`).

A tool is a function `(capture, packets) -> messages found`, so that one that finds nothing is noticed.
"""
