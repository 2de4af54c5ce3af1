"""Capture files: frames and UDP datagrams out of pcap and pcapng, and frames into them.

    >>> from pcap_tools.capture import CaptureWriter, read_datagrams
    >>> for d in read_datagrams("run.pcapng", on_damage=print):             # doctest: +SKIP
    ...     if d.copy_of is None:
    ...         print(d.frame, d.time_ns, f"{d.src}:{d.sport} > {d.dst}:{d.dport}", d.payload)
    >>> with CaptureWriter("out.pcap") as out:                              # doctest: +SKIP
    ...     out.write(ethernet_frame, time_ns=1_700_000_000_000_000_000)

Pure Python with bounded memory: this is the truth that quicker readers are judged against.
"""

from pcap_tools.capture.copies import CopyFinder
from pcap_tools.capture.damage import CaptureError, Damage
from pcap_tools.capture.datagram import Datagram
from pcap_tools.capture.datagrams import read_datagrams
from pcap_tools.capture.frame import Frame
from pcap_tools.capture.frames import read_frames
from pcap_tools.capture.reassembly import Reassembler
from pcap_tools.capture.writer import CaptureWriter, Interface

__all__ = [
    "CaptureError",
    "CaptureWriter",
    "CopyFinder",
    "Damage",
    "Datagram",
    "Frame",
    "Interface",
    "Reassembler",
    "read_datagrams",
    "read_frames",
]
