"""The catalogue of rules: every id that stands in a finding, with its level, its sentence and where it applies.

>>> from pcap_tools import load_dialect
>>> level_of("R-ALTERED-RETAIN", load_dialect("colon"))
'note'
>>> applies("T-MISSING", Policy(load_dialect("rolebyte")))
'the broker of rolebyte retains nothing'
"""

from __future__ import annotations

from pcap_tools.dialect import Dialect

from ..session.policy import Policy
from . import acks, delivery, wire
from .rule import FAMILIES, Rule

# In the order of families, and in each in that of the files.
RULES: dict[str, Rule] = {rule.id: rule for rule in (*wire.RULES, *acks.RULES, *delivery.RULES)}


def level_of(rule_id: str, dialect: Dialect) -> str:
    """error, warning, note or off: what the dialect's file says, else the rule itself."""
    return dialect.spec.rules.levels.get(rule_id, RULES[rule_id].level)


def applies(rule_id: str, policy: Policy) -> str | None:
    """None where the rule applies, else why not."""
    return RULES[rule_id].applies(policy)


__all__ = ["FAMILIES", "RULES", "Rule", "applies", "level_of"]
