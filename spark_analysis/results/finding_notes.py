"""Notes beside a finding's sentence: whom it is about, why it is not certain, which other datagrams belong to it, and
from which other finding it follows."""

from __future__ import annotations

import sys
from os.path import basename
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pcap_tools.escaping import shorten

from .safe_text import shown

if TYPE_CHECKING:
    from .verdicts import Finding


def whose(finding: Finding, width: int = sys.maxsize) -> str:
    """Topic and client unless the sentence names them, in as many characters each: `` [home/x, 10.0.0.2:50000]``."""
    text = shown(finding.text)
    about = [shown(name) for name in (finding.topic, finding.client) if name and shown(name) not in text]
    return f" [{', '.join(shorten(name, width) for name in about)}]" if about else ""


def doubt(finding: Finding) -> str:
    """``cannot tell: datagrams were lost on the way``; nothing for a finding that is certain."""
    if finding.verdict == "fail":
        return ""
    return f"cannot tell: {shown(finding.reason)}" if finding.reason else "cannot tell"


def related_frames(finding: Finding, most: int = sys.maxsize, with_own: bool = False) -> str:
    """``frames 130, 140``; those of other captures follow with the capture's name: ``frame 130; two.pcap frame 7``."""
    frames: dict[str, list[int]] = {finding.capture: [finding.frame] if with_own else []}
    for place in finding.related[:most]:
        frames.setdefault(place.capture, []).append(place.frame)
    parts = [
        f"{other_capture(capture, finding)}frame{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        for capture, numbers in frames.items()
        if numbers
    ]
    return "; ".join(parts) + (" …" if len(finding.related) > most else "")


def follows(finding: Finding) -> str:
    """``follows from A-MISSING at frame 360``; nothing for a finding that follows from no other."""
    cause = finding.follows_from
    if cause is None:
        return ""
    return f"follows from {shown(cause.rule)} at {other_capture(cause.capture, finding)}frame {cause.frame}"


def other_capture(capture: str, finding: Finding) -> str:
    """A name before frames that are not of the finding's own capture; with a folder if the names alone are the same."""
    if capture == finding.capture:
        return ""
    name = basename(capture)
    if name == basename(finding.capture):
        name = "/".join(PurePosixPath(capture).parts[-2:])
    return f"{shown(name)} "
