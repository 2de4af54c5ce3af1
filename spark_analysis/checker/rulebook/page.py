"""The page docs/rules.md, made from the table: ``python -m spark_analysis.checker.rulebook.page > docs/rules.md``."""

from __future__ import annotations

from collections.abc import Iterator

from pcap_tools.dialect import builtin_names, load_dialect
from spark_analysis.checker.policy import Policy
from spark_analysis.checker.rules import RULES, applies, level_of

from .rule import FAMILIES, Rule

HEAD = """\
# The rules

What `topicshark check` holds a capture against. Each rule has an id that stands in every report; its first letter is
the family. The level says how much a finding weighs: a failed rule of level **error** fails the session, a **warning**
or a **note** does not. A dialect file sets other levels under `[rules]`, or `"off"` ([dialects.md](dialects.md)). A
rule that a dialect cannot break is `n/a` there. Sections are those of the reports that describe the dialects, by the
reports' numbers; a dialect of your own is held to what its file says.

A datagram that the *capture* cut short breaks no rule: nobody can tell what was in the rest.

This page is made from the table of rules by `python -m spark_analysis.checker.rulebook.page`.
"""


def page() -> str:
    return "\n".join([HEAD, *_overview(), *_details()])


def _overview() -> Iterator[str]:
    yield "| rule | level | what must hold |\n|---|---|---|"
    yield from (f"| [{rule.id}](#{rule.id.lower()}) | {rule.level} | {rule.sentence} |" for rule in RULES.values())
    yield ""


def _details() -> Iterator[str]:
    policies = [Policy(load_dialect(name)) for name in builtin_names()]
    for letter, title in FAMILIES.items():
        yield f"## {letter}: {title}\n"
        for rule in RULES.values():
            if rule.family == letter:
                yield from _about(rule, [policy for policy in policies if applies(rule.id, policy) is None])


def _about(rule: Rule, policies: list[Policy]) -> Iterator[str]:
    yield f"### {rule.id}"
    yield f"**{rule.level.capitalize()}.** {rule.sentence}\n"
    yield f"{rule.meaning} *{rule.advice}*\n"
    yield (
        "Applies to "
        + (", ".join(_where(rule, policy) for policy in policies) or "none of the built-in dialects")
        + ".\n"
    )


def _where(rule: Rule, policy: Policy) -> str:
    dialect = policy.dialect
    level = level_of(rule.id, dialect)
    notes = [rule.section.get(dialect.name, ""), f"here of level {level}" if level != rule.level else ""]
    told = "; ".join(note for note in notes if note)
    return f"`{dialect.name}`" + (f" ({told})" if told else "")


if __name__ == "__main__":
    print(page(), end="")
