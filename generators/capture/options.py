"""Options of a capture of simulated traffic; impossible combinations raise `UsageError`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pcap_tools.capture.frame import MAX_CAPTURED
from pcap_tools.errors import UsageError

MIN_COPIES, MAX_COPIES = 2, 6
MAX_VLAN = 4094
MIN_MTU, MAX_MTU = 68, 65_535  # RFC 791; IPv6 asks for more
MIN_MTU_IPV6 = 1280
MAX_NOISE = 100


class Point(StrEnum):
    """At the broker, at one client, or on Linux's ``any`` interface of the machine whose bridge connects all nodes."""

    BROKER = "broker"
    CLIENT = "client"
    ANY = "any"


class LinkType(StrEnum):
    ETHERNET = "ethernet"
    COOKED1 = "cooked1"
    COOKED2 = "cooked2"
    RAW = "raw"
    NULL = "null"

    @property
    def number(self) -> int:
        """The number in capture files: https://www.tcpdump.org/linktypes.html."""
        return {"ethernet": 1, "cooked1": 113, "cooked2": 276, "raw": 101, "null": 0}[self.value]


COOKED = (LinkType.COOKED1, LinkType.COOKED2)


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """
    point       where it is taken; ``host`` is the address there (of the broker or the client), unused for ``any``
    link        None: Ethernet, and cooked1 at point ``any``, which is always cooked
    copies      at point ``any``: how often a frame is seen
    vlan        Ethernet only: the id of an 802.1Q tag, or of the outer and the inner one (QinQ)
    mtu         longer packets travel in fragments
    skip_ns     the capture starts so long after the first frame that it could have seen
    stop_ns     and ends so long after it; None: at the end of the traffic
    drop        the share of the traffic's frames that the capture loses
    snaplen     longer frames are cut
    ip_ids      counted by each sender, or random
    noise       frames of other protocols for each captured frame of the traffic
    """

    point: Point = Point.BROKER
    host: str = ""
    link: LinkType | None = None
    copies: int = 2
    vlan: tuple[int, ...] = ()
    mtu: int = 1500
    skip_ns: int = 0
    stop_ns: int | None = None
    drop: float = 0.0
    snaplen: int = MAX_CAPTURED
    ip_ids: Literal["counted", "random"] = "counted"
    noise: float = 0.0
    format: Literal["pcap", "pcapng"] = "pcap"
    resolution: Literal["us", "ns"] = "ns"

    def __post_init__(self) -> None:
        self._check_words()
        self._check_link()
        self._check_numbers()

    def _check_words(self) -> None:
        _check_word("point", self.point, list(Point))
        if self.link is not None:
            _check_word("link", self.link, list(LinkType))
        _check_word("format", self.format, ["pcap", "pcapng"])
        _check_word("resolution", self.resolution, ["us", "ns"])
        _check_word("ip_ids", self.ip_ids, ["counted", "random"])

    def _check_link(self) -> None:
        link = self.link_type
        if self.point == Point.ANY and link not in COOKED:
            raise UsageError(f"a capture at point any is cooked1 or cooked2, not {link}; leave link out or change it")
        if self.vlan and link != LinkType.ETHERNET:
            raise UsageError(f"VLAN tags are part of Ethernet, and this capture is {link}; leave vlan out")
        if len(self.vlan) > 2:
            raise UsageError(f"a frame has one VLAN tag or two (QinQ), not {len(self.vlan)}")
        for tag in self.vlan:
            _check_range("a VLAN id", tag, 1, MAX_VLAN)

    def _check_numbers(self) -> None:
        _check_range("copies", self.copies, MIN_COPIES, MAX_COPIES)
        _check_range("mtu", self.mtu, MIN_MTU, MAX_MTU)
        _check_range("snaplen", self.snaplen, 1, MAX_CAPTURED)
        _check_range("noise", self.noise, 0, MAX_NOISE)
        if not 0 <= self.drop < 1:
            raise UsageError(f"drop is a share from 0 to below 1 (0.01 loses one frame in a hundred), not {self.drop}")
        if self.skip_ns < 0:
            raise UsageError(f"skip_ns counts from the first frame and cannot be negative, as {self.skip_ns} is")
        if self.stop_ns is not None and self.stop_ns <= self.skip_ns:
            raise UsageError(
                f"the capture would stop ({self.stop_ns} ns) before it starts ({self.skip_ns} ns); "
                "both count from the first frame"
            )

    @property
    def link_type(self) -> LinkType:
        """The link layer of the capture."""
        if self.link is not None:
            return self.link
        return LinkType.COOKED1 if self.point == Point.ANY else LinkType.ETHERNET


def _check_word(name: str, word: str, allowed: list[str] | list[Point] | list[LinkType]) -> None:
    if word not in allowed:
        raise UsageError(f"{name} is {', '.join(allowed[:-1])} or {allowed[-1]}, not {word!r}")


def _check_range(name: str, number: float, low: float, high: float) -> None:
    if not low <= number <= high:
        raise UsageError(f"{name} is {low} to {high}, not {number}")
