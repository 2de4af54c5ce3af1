"""Summaries of a session that can be merged: ACK timing and fan-out."""
