"""Captures and ingested folders as sessions: which belong together, and how their messages are read."""
