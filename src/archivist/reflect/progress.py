"""Keep a "Lessons learned" section in a progress file: replaced, never repeated."""

from __future__ import annotations

import re
from collections.abc import Sequence

from archivist.records import Lesson

HEADING = "## Lessons learned"
_START = "<!-- archivist:lessons -->"
_END = "<!-- /archivist:lessons -->"
_SECTION = re.compile(rf"\n*{re.escape(_START)}.*?{re.escape(_END)}\n*", re.DOTALL)


def with_lessons(text: str, lessons: Sequence[Lesson]) -> str:
    """Return a progress file's text with these lessons as its section; without any the section goes."""
    rest = _SECTION.sub("\n\n", text).rstrip("\n")
    if not lessons:
        return f"{rest}\n" if rest.strip() else ""
    lines = [f"- {' '.join(lesson.summary.split())} ({lesson.short_id})" for lesson in lessons]
    section = "\n".join([_START, HEADING, "", *lines, _END])
    return f"{rest}\n\n{section}\n" if rest.strip() else f"{section}\n"
