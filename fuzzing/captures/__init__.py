"""Broken capture files through every reader."""
