"""Which columns of `messages` the rules of a dialect need. A table without one of them is refused, with the rules.

>>> from pcap_tools import load_dialect
>>> needs_of([load_dialect("colon")])["ip_id"]
'rules about doubled datagrams (A-DUPLICATE, D-DUPLICATE)'
>>> "key" in needs_of([load_dialect("colon")])                  # its ACKs come in order
False

A column that only some dialects have is needed for these only. A rule may name more of them (`Rule.columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pcap_tools.codec.answer_key import request_key_of
from pcap_tools.dialect import Dialect
from pcap_tools.dialect.program import Layout

from ..session.events import COLUMNS
from ..session.policy import Policy
from .catalogue import RULES, applies, level_of

# Why a column must be there, for those whose need is not plain from their name.
_WHY = {
    "key": "all rules about ACKs that name what they answer (A-…)",
    "number": "rules about topic numbers (N-…) and all deliveries of dialects that have them",
    "port": "deliveries to subscribers that name a port",
    "ip_id": "rules about doubled datagrams (A-DUPLICATE, D-DUPLICATE)",
    "copy_of": "all rules: copies that the capture made are not to be judged",
    "error": "rules about the wire format (W-…)",
    "error_offset": "rules about the wire format (W-…)",
}


def _layouts(dialect: Dialect) -> Iterator[Layout]:
    return (layout for form in dialect.forms for layout in form.layouts)


# Columns that only some dialects have: which do.
_HAVE: dict[str, Callable[[Dialect], bool]] = {
    "key": lambda dialect: request_key_of(dialect) is not None,
    "number": lambda dialect: dialect.spec.topics.number is not None,
    "port": lambda dialect: dialect.spec.broker.subscriber_port is not None,
    "code": lambda dialect: any(layout.code for layout in _layouts(dialect)),
    "accepted": lambda dialect: any(step.accepted for layout in _layouts(dialect) for step in layout.steps),
    "qos": lambda dialect: any(layout.qos for layout in _layouts(dialect)),
    "dup": lambda dialect: any(layout.dup for layout in _layouts(dialect)),
}
_IF_NAMED = frozenset({"code", "accepted", "qos", "dup"})  # needed only where a rule says so


def needs_of(dialects: Iterable[Dialect]) -> dict[str, str]:
    """The columns that rules of these dialects need, each with the rules."""
    needs = {name: _WHY.get(name, "all rules") for name in COLUMNS if name not in _HAVE}
    for dialect in dialects:
        needs |= {name: _WHY[name] for name in _HAVE if name not in _IF_NAMED and _HAVE[name](dialect)}
        for name in _IF_NAMED:
            rules = _rules_with(name, dialect)
            if rules:
                needs[name] = ", ".join(sorted({*rules, *(needs[name].split(", ") if name in needs else ())}))
    return {name: needs[name] for name in COLUMNS if name in needs}


def _rules_with(column: str, dialect: Dialect) -> list[str]:
    """Those of the dialect's rules that name a column which the dialect has."""
    if not _HAVE[column](dialect):
        return []
    policy = Policy(dialect)
    named = (rule.id for rule in RULES.values() if column in rule.columns)
    return [one for one in named if level_of(one, dialect) != "off" and applies(one, policy) is None]
