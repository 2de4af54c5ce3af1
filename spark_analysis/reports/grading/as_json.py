"""Grades as an object for ``json.dumps``; its schema is docs/schemas/grading.schema.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...results.safe_text import all_shown
from ..as_json import session_objects
from . import cells

if TYPE_CHECKING:
    from ...results.grades import Grade


def grading_object(grades: Sequence[Grade], most: int) -> dict[str, Any]:
    """``most`` findings of each submission."""
    whole: dict[str, Any] = all_shown(
        {
            "submissions": [_submission(one, most) for one in grades],
            "verdicts": dict(Counter(one.verdict for one in grades)),
        }
    )
    return whole


def _submission(grade: Grade, most: int) -> dict[str, Any]:
    return {
        "submission": grade.submission,
        "dialects": list(grade.dialects),
        "captures": grade.captures,
        "datagrams": grade.datagrams,
        "verdict": grade.verdict,
        "errors": grade.errors,
        "broken": [asdict(one) for one in grade.broken],
        "first": cells.first(grade) or None,
        "problems": list(grade.problems),
        "sessions": session_objects(grade.sessions, most),
    }
