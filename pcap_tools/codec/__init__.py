"""Datagrams and messages, one at a time: detect the dialect, decode, build. Plain Python, against which all are tested."""

from .codec import Codec

__all__ = ["Codec"]
