"""Write a brief as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from archivist.brief.forms import BriefFormat
from archivist.brief.select import BriefedLesson, says_remedy
from archivist.records import Status

_COUNTED = " (helped in "


def render_brief(chosen: Sequence[BriefedLesson], form: BriefFormat) -> str:
    """Return the brief's text, ending in a newline; nothing chosen gives an empty text."""
    if not chosen:
        return ""
    match form:
        case BriefFormat.KNOWN_ISSUES:
            lines = ["## Known Issues (from past runs)", *(f"- {_known_issue(each)}" for each in chosen)]
        case BriefFormat.MARKDOWN:
            numbered = (f"{place}. {_guideline(each)}" for place, each in enumerate(chosen, 1))
            lines = ["### Project Lessons", "", *numbered]
        case BriefFormat.YAML:
            lines = ["lessons:", *(line for each in chosen for line in _yaml_entry(each))]
        case _:
            assert_never(form)
    return "\n".join(lines) + "\n"


def _known_issue(each: BriefedLesson) -> str:
    lesson = each.lesson
    seen = "seen once" if lesson.status is Status.CANDIDATE else f"seen {lesson.frequency}x"
    marks = [seen, lesson.origin or lesson.source.value]
    if each.is_global:
        marks.append("global")
    return f"{_clean_line(lesson.summary)} [{', '.join(marks)}]"


def _guideline(each: BriefedLesson) -> str:
    lesson = each.lesson
    text = _clean_line(lesson.summary)
    if not says_remedy(lesson):
        text = f"{text.rstrip('.')}. {_clean_line(lesson.rule)}"
    marks = ["seen once" if lesson.frequency <= 1 else f"seen {lesson.frequency}x"]
    text, counted, helped = text.partition(_COUNTED)
    if counted and helped.endswith(")"):
        # How often it was met and how often its remedy helped are one account.
        marks.append(f"helped in {helped[:-1]}")
    else:
        text += counted + helped
    return f"{text} ({', '.join([*marks, 'global'] if each.is_global else marks)})"


def _yaml_entry(each: BriefedLesson) -> list[str]:
    """Return a lesson as an entry of a YAML list; every JSON string is a YAML one."""
    import json

    lesson = each.lesson
    fields: dict[str, object] = {
        "id": each.name,
        "summary": _clean_line(lesson.summary),
        "rule": _clean_line(lesson.rule),
        "category": lesson.category.value,
        "seen": lesson.frequency,
        "last_seen": f"{lesson.last_seen:%Y-%m-%d}" if lesson.last_seen else "",
        "tags": list(lesson.tags),
    }
    if each.is_global:
        fields["scope"] = "global"
    given = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value]
    return [f"- {given[0]}", *(f"  {line}" for line in given[1:])]


def _clean_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    line = one_line(text)
    if line.isprintable():
        return line
    from archivist.text import make_legible

    return make_legible(line)


def one_line(text: str) -> str:
    """Fold white space, so that no lesson can break out of its line."""
    return " ".join(text.split())
