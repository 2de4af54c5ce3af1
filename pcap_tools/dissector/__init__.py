"""The Wireshark dissector: a hand-written Lua engine (``lua/*.lua``) and the tables of the dialects, as one file.

>>> from pcap_tools.dialect import load_dialect
>>> from pcap_tools.dissector import lua_tables
>>> lua_tables([load_dialect("colon")]).splitlines()[1]
'ts.dialects = {'
"""

from .writer import dissector_text, lua_tables, write_dissector

__all__ = ["dissector_text", "lua_tables", "write_dissector"]
