"""Generate docs/rules.md from the rules: ``python -m spark_analysis.checker.rulebook.page > docs/rules.md``."""

from __future__ import annotations

from collections.abc import Iterator

from pcap_tools.dialect import builtin_names, load_dialect
from spark_analysis.checker.rulebook.catalogue import RULES, applies, level_of
from spark_analysis.checker.session.policy import Policy

from .rule import FAMILIES, Rule

HEAD = """\
# The rules

`topicshark check` applies these rules. Each rule has an id, which all reports use; its first letter is the family. A
finding of a rule with level **error** fails the session; a **warning** or a **note** does not. A dialect file can set
other levels under `[rules]`, or switch rules `"off"` ([dialects.md](dialects.md)). A rule that a dialect cannot break
is `n/a` there. A datagram that the *capture* cut short breaks no rule, because its missing bytes are unknown.

Citations in parentheses show which section of a document states the rule for a dialect. For a dialect of your own, its
file states the requirements.

| dialect | document |
|---|---|
| `colon`, `topicbyte`, `portdigits`, `rolebyte` | "report": a student's report on the protocol, for a course, 2021 |
| `topicnumber` | "report": the same, 2018 |
| `mqttsn` | MQTT For Sensor Networks (MQTT-SN), protocol specification, version 1.2 |

This page is generated: `python -m spark_analysis.checker.rulebook.page`.
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
    notes = [dialect.spec.rules.section_of(rule.id), f"level {level} here" if level != rule.level else ""]
    notes = [note for note in notes if note]
    return f"`{dialect.name}`" + (f" ({'; '.join(notes)})" if notes else "")


if __name__ == "__main__":
    print(page(), end="")
