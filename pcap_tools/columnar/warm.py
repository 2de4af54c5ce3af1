"""Compile all kernels and keep them: ``python -m pcap_tools.columnar.warm``, once after installing.

Later processes load them in a fraction of a second. Importing a kernel's module compiles it.
"""

from __future__ import annotations

from pcap_tools.columnar.decode import decoder, fields, rule_columns
from pcap_tools.columnar.read.reading import warm_frames
from pcap_tools.topic_match import match_kernel


def warm() -> None:
    """Those that read captures, decode (also for `decode --format jsonl` and `ingest`) and match topics."""
    _ = decoder, fields, rule_columns, match_kernel
    warm_frames()


if __name__ == "__main__":
    warm()
