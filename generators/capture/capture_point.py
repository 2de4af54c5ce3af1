"""A capture of simulated traffic, taken at one point, and which of its frames belong to which crossing.

>>> capture = take(crossings, CaptureOptions(host="10.0.0.1"), Chance(7), {"colon": colon})  # doctest: +SKIP
>>> write(capture, "run.pcap")                                                             # doctest: +SKIP
>>> capture.frame_of(0)                                                                    # doctest: +SKIP
1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import BinaryIO

from generators.capture.noise import Noise, Sent
from generators.capture.observations import View, fragment_times
from generators.capture.options import CaptureOptions, LinkType, Point
from generators.capture.packets import IpPacket, PacketMaker, ip_ids, link_header
from generators.simulation.random_source import Chance
from generators.simulation.transit import Crossing
from pcap_tools.capture import CaptureWriter, Interface
from pcap_tools.dialect import Dialect

_WITHOUT_ARP = (LinkType.RAW, LinkType.NULL)


@dataclass(frozen=True, slots=True)
class CapturedFrame:
    """As the file has it: cut to the snaplen, the time rounded down to the file's resolution.

    crossing   the number of the datagram it is (a part) of; None for noise
    sighting   counts the times that the datagram passed the capture, from 0
    fragment   counts the parts of the datagram, from 0
    """

    time_ns: int
    data: bytes
    original_length: int
    crossing: int | None
    sighting: int = 0
    fragment: int = 0


@dataclass(slots=True)
class Capture:
    """
    frames    in file order; a frame's number is its index + 1
    copies    frame of a later sighting -> frame of the first one of the same pass: what the capture doubled, at point
              ``any``. Of fragmented datagrams the frames that complete them
    dropped   the numbers of the crossings of which the capture lost frames by ``drop``, ``skip_ns`` or ``stop_ns``
    """

    options: CaptureOptions
    frames: list[CapturedFrame]
    copies: dict[int, int] = field(default_factory=dict)
    dropped: list[int] = field(default_factory=list)
    _completed: dict[int, int] = field(default_factory=dict, repr=False)
    _frames_of: dict[int, list[int]] = field(default_factory=dict, repr=False)

    def frame_of(self, crossing: int) -> int | None:
        """The frame by which readers know a datagram: the first that completes it. None: not all of it is there."""
        return self._completed.get(crossing)

    @property
    def noise(self) -> int:
        """How many frames are none of the traffic's."""
        return sum(frame.crossing is None for frame in self.frames)

    def frames_of(self, crossing: int) -> list[int]:
        """All frames of all sightings of a datagram."""
        return list(self._frames_of.get(crossing, ()))


def take(
    crossings: Sequence[Crossing], options: CaptureOptions, chance: Chance, dialects: Mapping[str, Dialect]
) -> Capture:
    """The capture of these crossings, which come in the order of their sending."""
    view = View(crossings, options)
    packets = _packets(crossings, view, PacketMaker(dialects, options.mtu))
    frames: list[CapturedFrame] = []
    for crossing in crossings:
        if crossing.number in packets:
            frames += _frames(crossing, packets[crossing.number], view, options, chance)
    kept, dropped = _lose(sorted(frames, key=_time), options, chance)
    noise = _noise(_sent(kept, crossings, packets), round(options.noise * len(kept)), view, options, chance)
    in_order = sorted(kept + noise, key=_time)
    capture = Capture(options, [_as_filed(frame, options) for frame in in_order], dropped=dropped)
    _index(capture, packets, view.group_size)
    return capture


def write(capture: Capture, target: str | PathLike[str] | BinaryIO, names: Mapping[str, str] | None = None) -> None:
    """To a path, to stdout ("-"), or to a stream, which stays open. Only pcapng holds the names of addresses."""
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


def _packets(crossings: Sequence[Crossing], view: View, maker: PacketMaker) -> dict[int, IpPacket]:
    """Of what passes here, by number: each is built once, however often it is seen."""
    ids = ip_ids(crossings)
    return {one.number: maker.packet(one, ids[one.number]) for one in crossings if view.sees(one)}


def _frames(
    crossing: Crossing, packet: IpPacket, view: View, options: CaptureOptions, chance: Chance
) -> Iterator[CapturedFrame]:
    over_ns = 0
    for count, sighting in enumerate(view.sightings(crossing, chance)):
        place = (sighting.packet_type, sighting.interface)
        header = link_header(options, packet.ethertype, crossing.src[0], crossing.dst[0], place)
        times = fragment_times(sighting, len(packet.parts), over_ns, chance)
        for part, (time_ns, data) in enumerate(zip(times, packet.parts, strict=True)):
            yield CapturedFrame(time_ns, header + data, len(header) + len(data), crossing.number, count, part)
        over_ns = times[-1]


def _lose(
    frames: list[CapturedFrame], options: CaptureOptions, chance: Chance
) -> tuple[list[CapturedFrame], list[int]]:
    """What is left of the frames, which are in order, and the crossings that lost some."""
    kept: list[CapturedFrame] = []
    hit: set[int] = set()
    for frame in frames:
        since_ns = frame.time_ns - frames[0].time_ns
        running = since_ns >= options.skip_ns and (options.stop_ns is None or since_ns < options.stop_ns)
        if running and not chance.happens(options.drop):
            kept.append(frame)
        elif frame.crossing is not None:
            hit.add(frame.crossing)
    return kept, sorted(hit)


def _sent(frames: list[CapturedFrame], crossings: Sequence[Crossing], packets: Mapping[int, IpPacket]) -> list[Sent]:
    """The datagrams of which the capture holds something, with the time of their last frame."""
    last = {frame.crossing: frame.time_ns for frame in frames}
    return [Sent(one, packets[one.number], last[one.number]) for one in crossings if one.number in last]


def _noise(traffic: list[Sent], count: int, view: View, options: CaptureOptions, chance: Chance) -> list[CapturedFrame]:
    if not traffic or not count:
        return []
    frames = []
    for one in Noise(traffic, view.host, options.link_type not in _WITHOUT_ARP, chance).frames(count):
        header = link_header(options, one.ethertype, one.src, one.dst, view.place_of_noise(one.src, one.dst))
        frames.append(CapturedFrame(one.time_ns, header + one.packet, len(header) + len(one.packet), None))
    return frames


def _as_filed(frame: CapturedFrame, options: CaptureOptions) -> CapturedFrame:
    tick_ns = 1 if options.resolution == "ns" else 1000
    return replace(frame, time_ns=frame.time_ns // tick_ns * tick_ns, data=frame.data[: options.snaplen])


def _index(capture: Capture, packets: Mapping[int, IpPacket], group_size: int) -> None:
    """Find the frames that complete datagrams, as readers do: parts of any sighting, until all are there."""
    waiting: dict[int, set[int]] = {}
    leaders: dict[tuple[int, int], int] = {}
    for number, frame in enumerate(capture.frames, 1):
        crossing = frame.crossing
        if crossing is None:
            continue
        capture._frames_of.setdefault(crossing, []).append(number)
        parts, cut = len(packets[crossing].parts), len(frame.data) < frame.original_length
        if parts > 1:
            if cut:
                continue
            there = waiting.setdefault(crossing, set())
            there.add(frame.fragment)
            if len(there) < parts:
                continue
            del waiting[crossing]
        if not cut:
            capture._completed.setdefault(crossing, number)
        leader = leaders.setdefault((crossing, frame.sighting // group_size), number)
        if leader != number:
            capture.copies[number] = leader
