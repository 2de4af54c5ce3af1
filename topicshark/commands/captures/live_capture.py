"""Live capture: what dumpcap or tcpdump records on an interface, as a stream.

    >>> with captured("eth0") as stream:                                   # doctest: +SKIP
    ...     for datagram in read_datagrams(stream):
    ...         print(datagram)

topicshark itself needs no right to capture: the tool has it, or runs as root with topicshark.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

END_S = 5

# Fragments behind the first have no ports, so all fragments are taken.
FILTER = "udp or (ip[6:2] & 0x1fff != 0) or ip6 proto 44"
TOOLS = {
    "dumpcap": ("-q", "-w", "-", "-f", FILTER, "-i"),
    "tcpdump": ("-q", "-U", "--immediate-mode", "-n", "-w", "-", FILTER, "-i"),
}
RIGHTS = """you have no right to capture on {interface}. One of these helps:
  sudo dpkg-reconfigure wireshark-common && sudo adduser $USER wireshark      then log in again
  sudo setcap cap_net_raw,cap_net_admin=eip {tool}
  sudo tcpdump -i {interface} -U -w - udp | topicshark decode -"""


@contextmanager
def captured(interface: str) -> Iterator[BinaryIO]:
    """The stream of a capture on `interface`, which ends with the context."""
    from pcap_tools.errors import TopicsharkError, UsageError

    if not interface or interface.startswith("-"):
        raise UsageError(f"-i {interface}: not the name of an interface")
    name = next((name for name in TOOLS if shutil.which(name)), None)
    if name is None:
        raise TopicsharkError("live capture needs dumpcap or tcpdump; on Debian and Ubuntu: sudo apt install tcpdump")
    with tempfile.TemporaryFile() as complaints:
        # In a group of its own: Ctrl-C reaches topicshark alone, which then ends the tool.
        process = subprocess.Popen(
            [name, *TOOLS[name], interface], stdout=subprocess.PIPE, stderr=complaints, process_group=0
        )
        stream: Any = process.stdout
        try:
            if not stream.peek(1):  # the header comes at once, or never
                process.wait()
                complaints.seek(0)
                raise TopicsharkError(_refusal(interface, name, complaints.read(4096).decode(errors="replace")))
            yield stream
        finally:
            process.terminate()
            stream.close()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _refusal(interface: str, name: str, said: str) -> str:
    if "ermi" in said:  # permission, permitted: each tool and libpcap has its own words
        return RIGHTS.format(interface=interface, tool=shutil.which(name))
    reason = next((line for line in said.splitlines() if line.startswith(f"{name}:")), said.strip())
    return f"cannot capture on {interface}: {reason}"
