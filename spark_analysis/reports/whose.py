"""Whom a finding is about, where its sentence does not say so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pcap_tools.escaping import shorten

from .safe_text import shown

if TYPE_CHECKING:
    from ..checker.results import Finding


def whose(finding: Finding, width: int = sys.maxsize) -> str:
    """Topic and client, in as many characters each: `` [home/x, 10.0.0.2:50000]``; or nothing."""
    text = shown(finding.text)
    about = [shown(name) for name in (finding.topic, finding.client) if name and shown(name) not in text]
    return f" [{', '.join(shorten(name, width) for name in about)}]" if about else ""
