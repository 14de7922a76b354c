"""Keep the section of lessons in a progress file, and read what the file lists as still to be done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.statements import headline
from archivist.records import Lesson
from archivist.text import split_around

HEADING = "## Lessons learned"
# Older sessions leave progress.md, which agents read; their lessons stay in the bank.
_MOST_SESSIONS = 20
_START = "<!-- archivist:lessons -->"
_END = "<!-- /archivist:lessons -->"
# Sections of a progress file that say what is still to be done.
_OPEN_SECTION = lazy_pattern(
    r"#{1,6}.*\b(?:next|todo|to do|remaining|blockers?|blocked|open|left)\b", re.IGNORECASE
)
_OPEN_ITEM = lazy_pattern(r"\s*[-*] \[ \]\s*(.+)")
_ITEM = lazy_pattern(r"\s*(?:[-*]|\d{1,2}[.)])\s+(?!\[[xX]\])(.+)")


class SessionLessons(NamedTuple):
    """What one session taught, as progress.md lists it: the session's name and a line for each lesson."""

    session: str
    lines: tuple[str, ...]


def read_progress(text: str) -> tuple[str, list[SessionLessons]]:
    """Return a progress file without our section, and what the section says of each session."""
    first, *others = split_around(text, _START, _END)
    rest = "\n\n".join((first.rstrip("\n") if others else first, *(part.strip("\n") for part in others)))
    rest = rest.rstrip("\n")
    sessions: list[SessionLessons] = []
    inside = text[len(first) :].split(_END)[:-1] if others else []
    for line in "\n".join(part.partition(_START)[2] for part in inside).splitlines():
        if line.startswith("### "):
            sessions.append(SessionLessons(line.removeprefix("### "), ()))
        elif line.startswith("- "):
            last = sessions.pop() if sessions else SessionLessons("earlier", ())
            sessions.append(last._replace(lines=(*last.lines, line)))
    return f"{rest}\n" if rest.strip() else "", sessions


def render_progress(rest: str, sessions: Iterable[SessionLessons]) -> str:
    """Return a progress file with the lessons of its latest sessions; without any the section goes."""
    told = [each for each in sessions if each.lines][-_MOST_SESSIONS:]
    if not told:
        return rest
    blocks = ["\n".join([f"### {each.session}", "", *each.lines]) for each in told]
    section = "\n\n".join([f"{_START}\n{HEADING}", *blocks]) + f"\n{_END}\n"
    return f"{rest.rstrip(chr(10))}\n\n{section}" if rest else section


def append_lessons(text: str, session: str, lessons: Iterable[Lesson]) -> str:
    """Return a progress file with what a session taught; a session that is told again replaces itself."""
    rest, sessions = read_progress(text)
    name = _plain_line(session)
    kept = [each for each in sessions if each.session != name]
    return render_progress(rest, [*kept, SessionLessons(name, tuple(map(progress_line, lessons)))])


def progress_line(lesson: Lesson) -> str:
    """Return a lesson as a line of progress.md."""
    return f"- {_plain_line(lesson.summary)} ({lesson.short_id})"


def _plain_line(text: str) -> str:
    # A mark of ours in foreign words would end the section.
    return " ".join(text.replace("<!--", "").split())


def open_items(text: str) -> Iterator[str]:
    """Yield what a progress file lists as still to be done."""
    is_open = False
    for line in text.splitlines():
        if line.startswith("#"):
            is_open = bool(_OPEN_SECTION.match(line))
        elif item := _OPEN_ITEM.match(line) or (_ITEM.match(line) if is_open else None):
            yield headline(item[1], 160)
