"""Captures of any size: one simulated run, repeated with new hosts, counters and checksums."""
