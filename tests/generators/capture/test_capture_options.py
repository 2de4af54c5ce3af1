"""What cannot be meant is refused, with a sentence that says what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from generators.capture.options import CaptureOptions, LinkType, Point
from pcap_tools.errors import UsageError


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"point": "router"}, "point is broker, client or any, not 'router'"),
        ({"link": "token ring"}, "link is ethernet, cooked1, cooked2, raw or null, not 'token ring'"),
        ({"format": "erf"}, "format is pcap or pcapng, not 'erf'"),
        ({"resolution": "ms"}, "resolution is us or ns, not 'ms'"),
        ({"point": Point.ANY, "link": LinkType.ETHERNET}, "any is cooked1 or cooked2, not ethernet; leave link out"),
        ({"point": Point.ANY, "vlan": (5,)}, "VLAN tags are part of Ethernet, and this capture is cooked1"),
        ({"link": LinkType.RAW, "vlan": (5,)}, "this capture is raw; leave vlan out"),
        ({"vlan": (1, 2, 3)}, r"one VLAN tag or two \(QinQ\), not 3"),
        ({"vlan": (0,)}, "a VLAN id is 1 to 4094, not 0"),
        ({"vlan": (4095,)}, "a VLAN id is 1 to 4094, not 4095"),
        ({"copies": 1}, "copies is 2 to 6, not 1"),
        ({"copies": 7}, "copies is 2 to 6, not 7"),
        ({"mtu": 67}, "mtu is 68 to 65535, not 67"),
        ({"mtu": 65_536}, "mtu is 68 to 65535, not 65536"),
        ({"skip_ns": -1}, "skip_ns counts from the first frame and cannot be negative"),
        ({"skip_ns": 5, "stop_ns": 5}, "would stop .5 ns. before it starts"),
        ({"stop_ns": -1}, "would stop"),
        ({"drop": -0.1}, "drop is a share from 0 to below 1"),
        ({"drop": 1.0}, "drop is a share from 0 to below 1"),
        ({"drop": float("nan")}, "drop is a share from 0 to below 1"),
        ({"snaplen": 0}, "snaplen is 1 to 262144, not 0"),
        ({"snaplen": 262_145}, "snaplen is 1 to 262144, not 262145"),
        ({"noise": -1}, "noise is 0 to 100, not -1"),
        ({"noise": float("inf")}, "noise is 0 to 100, not inf"),
    ],
)
def test_what_cannot_be_asked_for(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        CaptureOptions(**options)


def test_the_link_type_follows_the_point_unless_it_is_named() -> None:
    assert CaptureOptions().link_type is LinkType.ETHERNET
    assert CaptureOptions(Point.CLIENT).link_type is LinkType.ETHERNET
    assert CaptureOptions(Point.ANY).link_type is LinkType.COOKED1
    assert CaptureOptions(Point.ANY, link=LinkType.COOKED2).link_type is LinkType.COOKED2
    assert CaptureOptions(link=LinkType.NULL).link_type is LinkType.NULL
