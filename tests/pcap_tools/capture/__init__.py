"""Tests of pcap_tools.capture; the judge is the real tshark."""
