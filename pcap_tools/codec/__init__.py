"""Datagrams and messages, one at a time: detect the dialect, decode, build. Other decoders are tested against it."""

from .codec import Codec

__all__ = ["Codec"]
