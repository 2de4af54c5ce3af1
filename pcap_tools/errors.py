"""The two exception roots of the project; nothing else leaves its public API on bad input."""


class TopicsharkError(Exception):
    """The input is wrong: a capture, a dialect file, a datagram to build."""


class UsageError(Exception):
    """The caller is wrong: an argument that cannot be meant."""
