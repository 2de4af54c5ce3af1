"""The page as a whole: `html_page` takes what `check` found and gives one self-contained HTML text.

>>> result = check(["run.pcap"])                                                             # doctest: +SKIP
>>> Path("report.html").write_text(html_page(result, find_sources(["run.pcap"]), dialects))  # doctest: +SKIP

Everything is bounded: however many sessions, findings, topics or clients there are, a page stays one that can be read.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from os.path import basename
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ...results.safe_text import shown
from ..as_json import troubles
from ..faults import worst_first
from .diagrams import diagrams_of
from .measures import fanout_of, quality_of, timing_of
from .model import OverviewRow, Page, RuleSection, SessionSection, counted, short
from .rules import MOST_FINDINGS, all_rules, rule_sections
from .sentences import UNTESTED, page_sentence, page_verdict, session_sentence

if TYPE_CHECKING:
    from pcap_tools.codec.detect import Dialects
    from pcap_tools.dialect import Dialect

    from ...results.verdicts import CheckResult, SessionResult
    from ...sessions.ingested import Sources

MOST_OVERVIEW = 500
MOST_SESSIONS = 20  # told in full
MOST_WITH_PICTURES = 6  # of them
MOST_DIAGRAMS = 30
MOST_TROUBLES = 20
MOST_RULES = 6  # named in the overview
_ORDER = ("fail", "inconclusive", "pass")


def html_page(result: CheckResult, sources: Sources, dialects: Dialects, most: int = MOST_FINDINGS) -> str:
    """``sources`` and ``dialects`` are those that the result is of: the frames around findings are read again.

    ``most`` findings of a rule are shown.
    """
    return rendered("page.html.j2", _page(result, sources, dialects, most))


def _page(result: CheckResult, sources: Sources, dialects: Dialects, most: int) -> Page:
    places = sorted(range(len(result.sessions)), key=lambda at: (_ORDER.index(result.sessions[at].verdict), at))
    ordered = [result.sessions[at] for at in places]
    told, left = [], MOST_DIAGRAMS
    for number, session in enumerate(ordered[:MOST_SESSIONS], start=1):
        diagrams = diagrams_of(session, sources, dialects, left) if left else {}
        left -= len(diagrams)
        rules = {
            verdict: rule_sections(session, f"s{number}", verdict, diagrams, most, _dialect_of(session, dialects))
            for verdict in ("fail", "inconclusive")
        }
        section = _session(session, f"s{number}", dialects, rules, number <= MOST_WITH_PICTURES)
        told.append(replace(section, name=_name(session, ordered)))
    said = troubles(result)
    several = len(ordered) > 1
    return Page(
        _title(ordered),
        version("topicshark"),
        page_verdict(result),
        page_sentence(result),
        [short(one, 300) for one in said[:MOST_TROUBLES]],
        max(0, len(said) - MOST_TROUBLES),
        [_overview(one, at) for at, one in enumerate(ordered[:MOST_OVERVIEW], start=1)] if several else [],
        max(0, len(ordered) - MOST_OVERVIEW) if several else 0,
        told,
        max(0, len(ordered) - MOST_SESSIONS),
    )


def _title(sessions: Sequence[SessionResult]) -> str:
    captures = [capture for session in sessions for capture in session.captures]
    if len(set(captures)) == 1:
        return short(basename(captures[0]), 80)
    return counted(len(sessions), "session")


def _name(session: SessionResult, sessions: Sequence[SessionResult]) -> str:
    """With its dialect, where another session is called the same: one capture may hold several dialects."""
    name = short(session.name, 80)
    is_shared = sum(one.name == session.name for one in sessions) > 1
    return f"{name}: {short(session.dialect, 30)}" if is_shared else name


def _overview(session: SessionResult, number: int) -> OverviewRow:
    broken = [rule.id for rule in worst_first(session.rules, "fail")]
    more = f" and {len(broken) - MOST_RULES} more" if len(broken) > MOST_RULES else ""
    return OverviewRow(
        f"s{number}" if number <= MOST_SESSIONS else "",
        short(session.name, 60),
        short(session.dialect, 30),
        f"{session.datagrams:,}",
        session.verdict,
        ", ".join(broken[:MOST_RULES]) + more,
    )


def _dialect_of(session: SessionResult, dialects: Dialects) -> Dialect | None:
    return next((one for one in dialects.wanted if one.name == session.dialect), None)


def _session(
    session: SessionResult, anchor: str, dialects: Dialects, rules: dict[str, list[RuleSection]], with_pictures: bool
) -> SessionSection:
    dialect = _dialect_of(session, dialects)
    broker = f"broker {short(session.brokers[0], 60)}" if session.brokers else "no broker found"
    more = f" and {len(session.brokers) - 1} more" if len(session.brokers) > 1 else ""
    tested = sum(rule.verdict not in UNTESTED for rule in session.rules)
    return SessionSection(
        anchor,
        short(session.name, 80),
        f"{short(session.dialect)}; {broker}{more}; {counted(session.datagrams, 'datagram')}; "
        f"{counted(tested, 'rule')} put to the test",
        session.verdict,
        session_sentence(session),
        rules["fail"],
        rules["inconclusive"],
        timing_of(session, with_pictures),
        fanout_of(session, with_pictures),
        quality_of(session),
        all_rules(session, dialect),
        _passed(session),
    )


def _passed(session: SessionResult) -> str:
    """The line that the table of rules is folded into."""
    tested = [rule for rule in session.rules if rule.verdict not in UNTESTED]
    passed = sum(rule.verdict == "pass" for rule in tested)
    return f"{passed:,} of {counted(len(tested), 'rule')} that this traffic put to the test pass"


def rendered(template: str, page: object) -> str:
    """A page as text. Its policy names the style by its hash: nothing else in it can style, load or run anything."""
    style = (files(__package__) / "page.css").read_text("utf-8")
    environment = Environment(
        loader=PackageLoader(__package__, ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_last_gate,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = _prose
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    # The style is a file of ours, not text from a packet.
    whole = environment.get_template(template).render(page=page, style=Markup(style), policy=policy)  # noqa: S704
    return whole.lstrip()


def _last_gate(value: Any) -> Any:
    """Whatever reaches the page can be printed."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _prose(text: str) -> Markup:
    """What stands between two backticks, as in the catalogue of rules, is code."""
    pieces = [escape(shown(piece)) for piece in text.split("`")]
    if len(pieces) % 2 == 0:
        return escape(shown(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if at % 2 else piece for at, piece in enumerate(pieces)
    )
