"""Dialects: one TOML file describes a protocol, and everything else follows from it.

>>> from pcap_tools.dialect import load_dialect
>>> sorted(load_dialect("colon").ports)
[50000]
"""

from .load import builtin_names, builtin_text, load_dialect, parse_dialect
from .problems import DialectError
from .program import Dialect, Form, Layout, Step

__all__ = [
    "Dialect",
    "DialectError",
    "Form",
    "Layout",
    "Step",
    "builtin_names",
    "builtin_text",
    "load_dialect",
    "parse_dialect",
]
