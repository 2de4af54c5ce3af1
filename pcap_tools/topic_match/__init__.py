"""Which topics do which filters match, for whole columns of both; and what a broker that got it wrong may have read.

A filter comes from the network: no regular expressions, and no text that makes matching explode.
"""

from pcap_tools.topic_match.matching import is_wild, matches, wild_flags
from pcap_tools.topic_match.readings import WrongReadings, wrong_reading

__all__ = ["WrongReadings", "is_wild", "matches", "wild_flags", "wrong_reading"]
