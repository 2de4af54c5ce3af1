"""Compile the checker's kernels and keep them: ``python -m spark_analysis.checker.kernels.warm``, after installing.

Importing a kernel compiles it, unless that was done before.
"""

from . import anchoring, answering, expecting, hashing, matching, pairing, statuses

KERNELS = (anchoring, answering, expecting, hashing, matching, pairing, statuses)
