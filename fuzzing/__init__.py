"""Fuzzing. The differential one: all decoders must say the same of every datagram, valid or not.

    python -m fuzzing.decoders.differential --help

A tool for those who work on topicshark; it is not installed.
"""
