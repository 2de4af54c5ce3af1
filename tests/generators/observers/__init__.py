"""A capture as somebody sees it who knows nothing but the protocols: plain conditions, written by hand.

Each observer takes a ``Story`` and returns the frames that tell of something wrong. Nothing of the generators is used
to judge.
"""
