"""Packets per second of our tools and of those that users would pick instead."""
