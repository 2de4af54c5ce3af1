"""NULs after a message as a scapy layer: part of the datagram, so UDP's length and checksum count them."""

from __future__ import annotations

from typing import Any, ClassVar

from scapy.fields import StrField
from scapy.packet import Packet, Padding


class AlsoKnownAs:
    """Found by ``packet[X]`` and ``X in packet`` under one of its base classes, too."""

    __slots__ = ()
    known_as: ClassVar[type[Packet] | None] = None

    def _own(self, cls: Any) -> Any:
        known = self.known_as
        return type(self) if known is not None and cls in (known, known.__name__) else cls

    def haslayer(self, cls: Any, _subclass: bool | None = None) -> int:
        return super().haslayer(self._own(cls), _subclass)  # type: ignore[misc, no-any-return]

    def getlayer(self, cls: Any, *args: Any, **filters: Any) -> Any:
        return super().getlayer(self._own(cls), *args, **filters)  # type: ignore[misc]


class _CountedField(StrField):
    def i2repr(self, pkt: Packet | None, x: Any) -> str:
        return f"<{len(x)} NULs>" if isinstance(x, bytes) and not x.strip(b"\0") else super().i2repr(pkt, x)


class NulPadding(AlsoKnownAs, Padding):
    """The NULs that a sender put after its message; ``packet[Padding]`` finds it too."""

    name = "Padding"
    known_as = Padding
    show_summary = False  # the message's own summary counts them
    fields_desc: ClassVar[Any] = [_CountedField("load", b"")]

    def self_build(self) -> bytes:
        return Packet.self_build(self)

    def build_padding(self) -> bytes:
        return self.payload.build_padding()
