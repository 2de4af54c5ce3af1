"""Compile the checker's kernels and keep them: ``python -m spark_analysis.checker.kernels.warm``, after installing.

Importing a kernel compiles it, unless that was done before.
"""

from . import answering, expecting, grouping, hashing, matching, pairing, searching, statuses, subscribing

KERNELS = (answering, expecting, grouping, hashing, matching, pairing, searching, statuses, subscribing)
