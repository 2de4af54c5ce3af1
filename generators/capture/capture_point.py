"""A capture of simulated traffic at one point, and the frames of each transit.

>>> capture = take(transits, CaptureOptions(host="10.0.0.1"), RandomSource(7), {"colon": colon})  # doctest: +SKIP
>>> write(capture, "run.pcap")                                                                  # doctest: +SKIP
>>> capture.frame_of(0)                                                                         # doctest: +SKIP
1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from itertools import accumulate
from os import PathLike
from typing import BinaryIO, NamedTuple

from generators.capture.noise import Noise, Sent
from generators.capture.options import CaptureOptions, LinkType, Point
from generators.capture.packets import BROADCAST, IpPacket, PacketMaker, canonical, ip_ids, link_header
from generators.simulation.network import Transit
from generators.simulation.random_source import RandomSource
from pcap_tools.capture import CaptureWriter, Interface
from pcap_tools.dialect import Dialect
from pcap_tools.errors import UsageError

# What the kernel says of a frame on cooked captures.
TO_US, TO_ALL, TO_GROUP, TO_OTHERS, FROM_US = range(5)

# Bridges see a frame come in for somebody else and go out; further copies come from the devices in between. No later
# one looks like the first: on cooked1, where an IPv6 packet has no id, that would be a new datagram to any reader.
_TYPES = (TO_OTHERS, FROM_US, TO_US, FROM_US, TO_US, FROM_US)
_OWN_INTERFACE = 2
_FIRST_PORT = 10  # interface indexes of the bridge's ports; below are the devices in between

COPY_GAP_NS = (10_000, 60_001)
FRAGMENT_GAP_NS = (1_000, 2_001)


class Observation(NamedTuple):
    """One pass of a datagram. ``arriving``: the time is that of the last fragment; otherwise that of the first."""

    time_ns: int
    arriving: bool
    packet_type: int
    interface: int


class View:
    """The transits that are visible from a capture point."""

    def __init__(self, transits: Sequence[Transit], options: CaptureOptions) -> None:
        self._copies = options.copies
        hosts = {canonical(address) for transit in transits for address, _ in (transit.src, transit.dst)}
        self.host = "" if options.point == Point.ANY else _checked_host(options, hosts)
        in_order = sorted(hosts, key=lambda host: (":" in host, ip_address(host).packed))
        self._ports = {host: port for port, host in enumerate(in_order, _FIRST_PORT)}

    @property
    def group_size(self) -> int:
        """Number of consecutive observations of one pass: all but the first are copies made by the capture."""
        return 1 if self.host else self._copies

    def sees(self, transit: Transit) -> bool:
        """Whether the datagram passes here."""
        src, dst = canonical(transit.src[0]), canonical(transit.dst[0])
        return not self.host or src == self.host or (dst == self.host and bool(transit.arrived_ns))

    def observations(self, transit: Transit, rng: RandomSource) -> list[Observation]:
        """In order of time; none if the datagram does not pass here."""
        src, dst = canonical(transit.src[0]), canonical(transit.dst[0])
        if not self.host:
            return self._on_any(transit, src, dst, rng)
        if src == self.host:
            return [Observation(transit.sent_ns, False, FROM_US, _OWN_INTERFACE)]
        if dst == self.host:
            return [Observation(time_ns, True, TO_US, _OWN_INTERFACE) for time_ns in sorted(transit.arrived_ns)]
        return []

    def _on_any(self, transit: Transit, src: str, dst: str, rng: RandomSource) -> list[Observation]:
        """Losses occur behind the bridge; a duplicate of the network passes the bridge again."""
        devices = (self._ports[src], self._ports[dst], *range(_OWN_INTERFACE + 1, _FIRST_PORT))
        seen = []
        for start_ns in (transit.sent_ns, *sorted(transit.arrived_ns)[1:]):
            time_ns = start_ns
            for packet_type, interface in zip(_TYPES[: self._copies], devices, strict=False):
                seen.append(Observation(time_ns, False, packet_type, interface))
                time_ns += rng.between(*COPY_GAP_NS)
        return seen

    def place_of_noise(self, src: str, dst: str) -> tuple[int, int]:
        """Packet type and interface of a noise frame."""
        interface = _OWN_INTERFACE if self.host else self._ports.get(src, _OWN_INTERFACE)
        if self.host and src == self.host:
            return FROM_US, interface
        if dst == BROADCAST:
            return TO_ALL, interface
        if ip_address(dst).is_multicast:
            return TO_GROUP, interface
        return (TO_US if self.host else TO_OTHERS), interface


def _checked_host(options: CaptureOptions, hosts: set[str]) -> str:
    if not options.host:
        raise UsageError(f"host is missing: the address of the {options.point} at which the capture is taken")
    host = canonical(options.host)
    if hosts and host not in hosts:
        known = ", ".join(sorted(hosts)[:5])
        raise UsageError(f"no datagram comes from or goes to {host}; hosts of this traffic are {known}")
    return host


def fragment_times(observation: Observation, parts: int, not_before_ns: int, rng: RandomSource) -> list[int]:
    """The time of each fragment. An earlier pass of the same datagram ends first, so that readers do not mix them."""
    gaps = [rng.between(*FRAGMENT_GAP_NS) for _ in range(parts - 1)]
    start_ns = observation.time_ns - sum(gaps) if observation.arriving else observation.time_ns
    return list(accumulate(gaps, initial=max(start_ns, not_before_ns)))


_WITHOUT_ARP = (LinkType.RAW, LinkType.NULL)


@dataclass(frozen=True, slots=True)
class CapturedFrame:
    """As the file has it: cut to the snaplen, the time rounded down to the file's resolution.

    transit   the number of the datagram it is (a part) of; None for noise
    observation   counts the times that the datagram passed the capture, from 0
    fragment   counts the parts of the datagram, from 0
    """

    time_ns: int
    data: bytes
    original_length: int
    transit: int | None
    observation: int = 0
    fragment: int = 0


@dataclass(slots=True)
class Capture:
    """
    frames    in file order; a frame's number is its index + 1
    copies    frame of a later observation -> frame of the first one of the same pass: duplicates that a capture at
              point ``any`` makes. For fragmented datagrams, the frames that complete them
    doubles   frame of a datagram that the network doubled -> frame of the first one
    dropped   the numbers of the transits of which the capture lost frames by ``drop``, ``skip_ns`` or ``stop_ns``
    """

    options: CaptureOptions
    frames: list[CapturedFrame]
    copies: dict[int, int] = field(default_factory=dict)
    doubles: dict[int, int] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    _completed: dict[int, int] = field(default_factory=dict, repr=False)
    _frames_of: dict[int, list[int]] = field(default_factory=dict, repr=False)

    def frame_of(self, transit: int) -> int | None:
        """The frame number of a datagram: the first frame that completes it. None: the capture lacks a part."""
        return self._completed.get(transit)

    @property
    def noise(self) -> int:
        """Number of noise frames."""
        return sum(frame.transit is None for frame in self.frames)

    def frames_of(self, transit: int) -> list[int]:
        """All frames of all observations of a datagram."""
        return list(self._frames_of.get(transit, ()))


def take(
    transits: Sequence[Transit], options: CaptureOptions, rng: RandomSource, dialects: Mapping[str, Dialect]
) -> Capture:
    """Capture these transits, which are in order of sending."""
    view = View(transits, options)
    packets = _packets(transits, view, PacketMaker(dialects, options.mtu), options)
    frames: list[CapturedFrame] = []
    for transit in transits:
        if transit.number in packets:
            frames += _frames(transit, packets[transit.number], view, options, rng)
    kept, dropped = _lose(sorted(frames, key=_time), options, rng)
    noise = _noise(_sent(kept, transits, packets), round(options.noise * len(kept)), view, options, rng)
    in_order = sorted(kept + noise, key=_time)
    capture = Capture(options, [_as_filed(frame, options) for frame in in_order], dropped=dropped)
    _index(capture, packets, view.group_size)
    return capture


def write(capture: Capture, target: str | PathLike[str] | BinaryIO, names: Mapping[str, str] | None = None) -> None:
    """Write to a path, to stdout ("-"), or to a stream, which stays open. Only pcapng contains names of addresses."""
    options = capture.options
    number = options.link_type.number
    if options.format == "pcap":
        writer = CaptureWriter(target, "pcap", number, resolution=options.resolution, snaplen=options.snaplen)
    else:
        interface = Interface(number, "any" if options.point == Point.ANY else "eth0")
        writer = CaptureWriter(
            target,
            "pcapng",
            interfaces=[interface],
            names=names,
            resolution=options.resolution,
            snaplen=options.snaplen,
        )
    with writer:
        for frame in capture.frames:
            writer.write(frame.data, frame.time_ns, original_length=frame.original_length)


def _time(frame: CapturedFrame) -> int:
    return frame.time_ns


def _packets(
    transits: Sequence[Transit], view: View, maker: PacketMaker, options: CaptureOptions
) -> dict[int, IpPacket]:
    """The packets that pass here, by number of the transit; each is built once."""
    ids = ip_ids(transits, options.ip_ids == "counted")
    return {one.number: maker.packet(one, ids[one.number]) for one in transits if view.sees(one)}


def _frames(
    transit: Transit, packet: IpPacket, view: View, options: CaptureOptions, rng: RandomSource
) -> Iterator[CapturedFrame]:
    over_ns = 0
    for count, observation in enumerate(view.observations(transit, rng)):
        place = (observation.packet_type, observation.interface)
        header = link_header(options, packet.ethertype, transit.src[0], transit.dst[0], place)
        times = fragment_times(observation, len(packet.parts), over_ns, rng)
        for part, (time_ns, data) in enumerate(zip(times, packet.parts, strict=True)):
            yield CapturedFrame(time_ns, header + data, len(header) + len(data), transit.number, count, part)
        over_ns = times[-1]


def _lose(
    frames: list[CapturedFrame], options: CaptureOptions, rng: RandomSource
) -> tuple[list[CapturedFrame], list[int]]:
    """The remaining frames, in order, and the transits that lost some."""
    kept: list[CapturedFrame] = []
    hit: set[int] = set()
    for frame in frames:
        since_ns = frame.time_ns - frames[0].time_ns
        running = since_ns >= options.skip_ns and (options.stop_ns is None or since_ns < options.stop_ns)
        if running and not rng.happens(options.drop):
            kept.append(frame)
        elif frame.transit is not None:
            hit.add(frame.transit)
    return kept, sorted(hit)


def _sent(frames: list[CapturedFrame], transits: Sequence[Transit], packets: Mapping[int, IpPacket]) -> list[Sent]:
    """The datagrams with at least one frame in the capture, with the time of their last frame."""
    last = {frame.transit: frame.time_ns for frame in frames}
    return [Sent(one, packets[one.number], last[one.number]) for one in transits if one.number in last]


def _noise(
    traffic: list[Sent], count: int, view: View, options: CaptureOptions, rng: RandomSource
) -> list[CapturedFrame]:
    if not traffic or not count:
        return []
    frames = []
    for one in Noise(traffic, view.host, options.link_type not in _WITHOUT_ARP, rng).frames(count):
        header = link_header(options, one.ethertype, one.src, one.dst, view.place_of_noise(one.src, one.dst))
        frames.append(CapturedFrame(one.time_ns, header + one.packet, len(header) + len(one.packet), None))
    return frames


def _as_filed(frame: CapturedFrame, options: CaptureOptions) -> CapturedFrame:
    tick_ns = 1 if options.resolution == "ns" else 1000
    return replace(frame, time_ns=frame.time_ns // tick_ns * tick_ns, data=frame.data[: options.snaplen])


def _index(capture: Capture, packets: Mapping[int, IpPacket], group_size: int) -> None:
    """Find the frames that complete datagrams, as readers do: fragments of any observation, until all are there."""
    waiting: dict[int, set[int]] = {}
    leaders: dict[tuple[int, int], int] = {}
    for number, frame in enumerate(capture.frames, 1):
        transit = frame.transit
        if transit is None:
            continue
        capture._frames_of.setdefault(transit, []).append(number)
        parts, cut = len(packets[transit].parts), len(frame.data) < frame.original_length
        if parts > 1:
            if cut:
                continue
            there = waiting.setdefault(transit, set())
            there.add(frame.fragment)
            if len(there) < parts:
                continue
            del waiting[transit]
        first = capture._completed.setdefault(transit, number) if not cut else number
        leader = leaders.setdefault((transit, frame.observation // group_size), number)
        if leader != number:
            capture.copies[number] = leader
        elif first != number:
            capture.doubles[number] = first
