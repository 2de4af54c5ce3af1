"""Pictures of what was measured: functions that take summaries and give matplotlib figures, for reports and notebooks.

>>> from spark_analysis.plots.ack_timing import round_trips
>>> figure = round_trips(session.timing)                            # doctest: +SKIP
>>> figure.savefig("round-trips.svg")                               # doctest: +SKIP

In a notebook a figure as a cell's last line shows itself. Nothing here uses pyplot or changes matplotlib's settings.
"""
