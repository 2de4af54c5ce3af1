"""The oracle of the topic index: one filter, one topic, the definition of each wildcard and nothing clever."""

from functools import cache


def run_matches(text: bytes, topic: bytes, wildcard: bytes = b"*") -> bool:
    """A wildcard stands for any run of bytes, also none."""

    @cache
    def fits(at: int, topic_at: int) -> bool:
        if at == len(text):
            return topic_at == len(topic)
        if text.startswith(wildcard, at):
            return any(fits(at + len(wildcard), rest) for rest in range(topic_at, len(topic) + 1))
        return topic_at < len(topic) and text[at] == topic[topic_at] and fits(at + 1, topic_at + 1)

    return fits(0, 0)


def level_matches(text: bytes, topic: bytes, separator: bytes = b"/") -> bool:
    """`+` is one level, `#` the rest if it stands last, `**` any number of levels."""
    levels, topic_levels = text.split(separator), topic.split(separator)

    @cache
    def fits(at: int, topic_at: int) -> bool:
        if at == len(levels):
            return topic_at == len(topic_levels)
        if levels[at] == b"#":
            return at == len(levels) - 1
        if levels[at] == b"**":
            return any(fits(at + 1, rest) for rest in range(topic_at, len(topic_levels) + 1))
        if topic_at == len(topic_levels):
            return False
        return levels[at] in (b"+", topic_levels[topic_at]) and fits(at + 1, topic_at + 1)

    return fits(0, 0)
