"""Loading and unloading: which dialects scapy knows by their UDP ports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scapy.layers.inet import UDP

from pcap_tools.dialect import load_dialect
from pcap_tools.layers.classes import DialectLayers

_made: dict[str, DialectLayers] = {}


def load_layer(name_or_file: str | Path) -> DialectLayers:
    """The scapy classes of a dialect, with its UDP ports bound to them in both directions.

    Loading it again is cheap, takes its ports back from a dialect loaded in between, and sees a changed file.
    """
    source = _source(name_or_file)
    before = _made.get(source)
    layers = _layers(source)
    for known in (before, layers):
        if known is not None:
            _unbind(known)
    ends = [{end: port} for port in sorted(layers.dialect.ports) for end in ("dport", "sport")]
    # In front, since scapy takes the first that fits.
    UDP.payload_guess = [*((end, layers.base) for end in ends), *UDP.payload_guess]
    return layers


def unload_layer(layers: DialectLayers | str | Path) -> None:
    """Take a dialect's ports away from it; its classes keep working."""
    known = layers if isinstance(layers, DialectLayers) else _made.get(_source(layers))
    if known is not None:
        _unbind(known)


def restore(source: str, class_name: str, datagram: bytes) -> Any:
    """A pickled packet; its dialect need not be loaded here."""
    layers = _made.get(source) or _layers(source)
    classes = [layers.base, layers.Unknown, *layers.messages.values()]
    return next(cls for cls in classes if cls.__name__ == class_name)(datagram)


def _source(name_or_file: str | Path) -> str:
    word = str(name_or_file)
    return str(Path(word).resolve()) if word.endswith(".toml") else word


def _layers(source: str) -> DialectLayers:
    dialect = load_dialect(source)
    if source not in _made or _made[source].dialect != dialect:
        _made[source] = DialectLayers(source, dialect)
    return _made[source]


def _unbind(layers: DialectLayers) -> None:
    UDP.payload_guess = [bond for bond in UDP.payload_guess if bond[1] is not layers.base]
