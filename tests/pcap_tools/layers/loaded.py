"""The layers of every dialect, built-in or of the tests, without leaving a port bound."""

from functools import cache
from typing import Any

from pcap_tools.dialect import builtin_names
from pcap_tools.layers import load_layer, unload_layer
from tests.vectors import DIALECTS, own_dialect_names

ALL_DIALECTS = [*builtin_names(), *own_dialect_names()]


@cache
def layers_of(dialect: str) -> Any:
    layers = load_layer(dialect if dialect in builtin_names() else DIALECTS / f"{dialect}.toml")
    unload_layer(layers)
    return layers


def fields_of(packet: Any) -> dict[str, Any]:
    """What a packet read, by the dialect's names."""
    return {packet.dialect_name[name]: value for name, value in packet.fields.items() if value is not None}
