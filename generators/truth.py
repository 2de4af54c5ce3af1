"""The ground truth about a generated capture: each fault with its frames, and the complete correct outcome.

It is taken from the simulation. Frames are Wireshark's numbers; ``null`` stands for a datagram that is not in the
capture: never sent, lost before the capture point, or missed by the capture. docs/generating.md explains the keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from generators.capture.options import CaptureOptions
from generators.simulation.activation import Label, Outgoing, Sent
from generators.simulation.fault import CATALOGUE, FaultInjector
from generators.simulation.run import Delivery, Exchange, Run
from generators.simulation.site import Site
from pcap_tools.escaping import escape
from reference_broker import Endpoint

VERSION = 1


class Numbered(Protocol):
    """What the truth asks of a capture, simulated or live."""

    @property
    def options(self) -> CaptureOptions: ...
    @property
    def frames(self) -> Sequence[object]: ...
    @property
    def copies(self) -> Mapping[int, int]: ...
    @property
    def doubles(self) -> Mapping[int, int]: ...
    @property
    def dropped(self) -> Sequence[int]: ...
    @property
    def noise(self) -> int: ...
    def frame_of(self, transit: int) -> int | None: ...


def truth(
    run: Run, capture: Numbered, injectors: Sequence[FaultInjector] = (), about: dict[str, Any] | None = None
) -> dict[str, Any]:
    """All there is to know, ready for JSON. ``about`` stands first: scenario, seed and what else was chosen."""
    teller = _Teller(run, capture)
    return {
        "version": VERSION,
        **(about or {}),
        "sites": [teller.site(site) for site in run.sites],
        "capture": teller.capture_facts(),
        "faults": [teller.fault(label) for label in run.labels],
        "occasions": {one.fault.name: {"occasions": one.occasions, "done": one.done} for one in injectors},
        "exchanges": [teller.exchange(exchange) for exchange in run.exchanges],
        "deliveries": [teller.delivery(delivery) for delivery in run.deliveries],
    }


class _Teller:
    def __init__(self, run: Run, capture: Numbered) -> None:
        self._run, self._capture = run, capture

    def site(self, site: Site) -> dict[str, Any]:
        nodes = [{"name": node.name, "role": node.role, "endpoint": _shown(node.endpoint)} for node in site.nodes]
        return {"dialect": site.dialect.name, "broker": _shown(site.broker), "nodes": nodes}

    def capture_facts(self) -> dict[str, Any]:
        capture, sent = self._capture, self._run.sent
        lost = [self.frame(one) for one in sent if not one.transit.arrived_ns]
        return {
            "point": str(capture.options.point),
            "frames": len(capture.frames),
            "datagrams": sum(self.frame(one) is not None for one in sent),
            "noise": capture.noise,
            "copies": [[later, first] for later, first in sorted(capture.copies.items())],
            "doubles": [list(pair) for pair in sorted(capture.doubles.items())],
            "lost_after_capture": [frame for frame in lost if frame is not None],
            "missed": len(set(capture.dropped)),
        }

    def fault(self, label: Label) -> dict[str, Any]:
        shown_by = [one if isinstance(one, Sent) else one.sent for one in label.shown_by]
        sent = [one for one in shown_by if one is not None]
        frames = [frame for one in sent if (frame := self.frame(one)) is not None]
        ends = dict.fromkeys(_shown(end) for one in sent for end in (one.transit.src, one.transit.dst))
        return {
            "name": label.fault,
            "rule": label.rule,
            "family": label.rule.partition("-")[0],
            "place": str(CATALOGUE[label.fault].place),
            "dialect": sent[0].site.dialect.name if sent else None,
            "frames": sorted(frames),
            "shown": len(frames) == len(shown_by),
            "endpoints": list(ends),
            "topic": None if label.topic is None else escape(label.topic),
            "text": label.text,
        }

    def exchange(self, exchange: Exchange) -> dict[str, Any]:
        first = exchange.sends[0]
        acks = [out.sent for out in exchange.acks if out.sent is not None]
        ack_frames = [self.frame(ack) for ack in acks]
        return {
            "dialect": first.site.dialect.name,
            "message": first.message.message,
            "from": _shown(first.transit.src),
            "to": _shown(first.transit.dst),
            "frames": [self.frame(sent) for sent in exchange.sends],
            "ack_frame": next((frame for frame in ack_frames if frame is not None), None),
            "ack_frames": ack_frames,
            "acks_due": len(exchange.acks),
        }

    def delivery(self, delivery: Delivery) -> dict[str, Any]:
        publish = delivery.publish
        return {
            "dialect": publish.site.dialect.name if publish else None,
            "publish_frame": self.frame(publish) if publish else None,
            "subscriber": _shown(delivery.subscriber),
            "retained": delivery.is_retained,
            "frame": self._of_out(delivery.out),
            "sent": delivery.out.sent is not None,
        }

    def frame(self, sent: Sent) -> int | None:
        return self._capture.frame_of(sent.transit.number)

    def _of_out(self, out: Outgoing) -> int | None:
        return self.frame(out.sent) if out.sent is not None else None


def _shown(endpoint: Endpoint) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
