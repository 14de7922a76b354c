"""The pages of lessons: search and lists, one lesson with its evidence and history, and changes to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from archivist.access.rights import may_change
from archivist.audit.report import RecommendedStep, recommend_steps
from archivist.edges.views import history_views, hit_view, lesson_views, report_row_view
from archivist.edges.web.rendering import PAGE_SIZE, PageView, Visit, action, page, path_of
from archivist.errors import InputError
from archivist.lessons.service import MOST_MET
from archivist.lessons.standing import lesson_version
from archivist.lessons.support import quote_output
from archivist.recall.query import LIVE, Query
from archivist.records.words import Category, LessonType, Scope, Status

_TELLINGS = 12
_SEEN = 20
_QUOTED_LINES = 20
_HISTORY = 50
_FILTERS = {"type": LessonType, "category": Category, "scope": Scope}


def _read_query(visit: Visit) -> Query:
    """Return the query of the filters; an unknown word asks for nothing."""
    status = visit.query.get("status", "")
    statuses: tuple[Status, ...] = (*LIVE, Status.QUARANTINED)
    if status == "all":
        statuses = tuple(Status)
    elif status in tuple(Status):
        statuses = (Status(status),)
    facets: dict[str, Any] = {}
    for name, words in _FILTERS.items():
        if (value := visit.query.get(name, "")) in tuple(words):
            facets[name] = words(value)
    text, repo = visit.query.get("q", "").strip(), visit.query.get("project", "")
    tags = tuple(filter(None, (visit.query.get("tag", ""),)))
    return Query(text=text, statuses=statuses, repo=repo, tags=tags, limit=PAGE_SIZE + 1, **facets)


@page("/lessons")
def list_lessons(visit: Visit) -> PageView:
    """List lessons: the most frequent first, or the best answers to a question with their scores."""
    bank, query = visit.bank, _read_query(visit)
    next_page, scores, retired = "", {}, 0
    if query.text:
        asked = query._replace(kinds=("lesson",), limit=PAGE_SIZE)
        found = bank.recall(asked)
        scores = {hit.id: hit_view(hit) for hit in found.hits}
        if not scores and not visit.query.get("status"):
            retired = len(bank.recall(asked._replace(statuses=tuple(Status))).hits)
        lessons = bank.lessons.get_many(scores)
    else:
        lessons = bank.lessons.page(query, after=visit.read_cursor())
        next_page, lessons = visit.next_page(lessons, MOST_MET), lessons[:PAGE_SIZE]
    if visit.query.get("status") == "waiting":
        lessons = bank.lessons.waiting(PAGE_SIZE)
        next_page = ""
    return PageView(
        "lessons.html",
        f"Lessons: {query.text}" if query.text else "Lessons",
        {
            "lessons": lesson_views(bank, lessons),
            "scores": scores,
            "retired": retired,
            "next_page": next_page,
            "projects": bank.runs.projects(),
            "filters": {name: list(words) for name, words in _FILTERS.items()},
            "has_any": bool(lessons) or bool(bank.lessons.latest(1)),
        },
    )


@page("/lessons/{name}")
def show_lesson(visit: Visit) -> PageView:
    """Show a lesson: its rule, the calls that taught it, where it was told, and its history."""
    bank = visit.bank
    lesson = bank.lessons.get(visit.names["name"])
    view = lesson_views(bank, [lesson])[0]
    by = lesson.superseded_by and bank.lessons.get_many([lesson.superseded_by])
    history = history_views(bank.ledger.history(lesson.id))
    calls = bank.lessons.cited_calls(lesson)
    for word, event in calls.items():
        quoted = quote_output(event.output, lesson.detail, _QUOTED_LINES)
        calls[word] = replace(event, output="\n".join(quoted))
    verdicts = bank.audits.verdicts(lesson=lesson.id, limit=_TELLINGS)
    seen = lesson.evidence.episodes[::-1][:_SEEN]
    runs = [*seen, *(verdict.run for verdict in verdicts), *(event.run for event in calls.values())]
    cited = [name.rpartition("#")[0] for name in lesson.evidence.events]
    names = bank.audits.run_names([*runs, *cited])
    report = bank.audits.audit_report(lesson=lesson.id)
    rows = report.lessons
    doubts = [each.reason for each in recommend_steps(report) if each.step is not RecommendedStep.KEEP]
    return PageView(
        "lesson.html",
        f"{view['id']}: {lesson.summary[:60]}",
        {
            "lesson": view,
            "calls": calls,
            "cited": [run for run in cited if run in names],
            "seen": seen,
            "runs": names,
            "row": report_row_view(rows[0]) if rows else None,
            "doubt": next(iter(doubts), ""),
            "stale": bank.liveness.find_stale([lesson]).get(lesson.id, ""),
            "verdicts": verdicts,
            "history": history[::-1][:_HISTORY],
            "worded_by": lesson.worded_by,
            "superseded_by": lesson_views(bank, by)[0] if by else None,
            "may_change": visit.may("lessons", "write") and may_change(bank.actor, lesson),
            "is_retired": lesson.status.is_retired,
            "filters": {name: list(words) for name, words in _FILTERS.items()},
            "done": _DONE.get(visit.query.get("done", ""), ""),
        },
    )


# What the page says after a change.
_DONE = {
    "edit": "Saved.",
    "approve": "Approved: runs are told this lesson from now on.",
    "forget": "Forgotten: no run is told this lesson any more.",
    "supersede": "Superseded by the other lesson.",
    "undo": "The last change was undone.",
}


@action("/lessons/{name}/{verb}", shows=show_lesson)
def change_lesson(visit: Visit) -> str:
    """Change a lesson and show it; the ledger names the visitor."""
    bank, form, name, verb = visit.bank, visit.form, visit.names["name"], visit.names["verb"]
    lesson = bank.lessons.get(name)
    visit.require_version(lesson_version(lesson), lesson.short_id)
    match verb:
        case "edit":
            bank.lessons.edit(name, **_read_changes(form))
        case "approve":
            bank.lessons.approve(name, form["version"])
        case "forget":
            bank.forget(name)
        case "supersede":
            if not (replacement := form.get("replacement", "").strip()):
                raise InputError("no lesson that replaces it was named", hint="give its id, such as m-001")
            bank.lessons.archive(name, replacement)
        case "undo":
            bank.ledger.undo(name)
        case _:
            raise InputError(f"no change {verb!r}", hint=", ".join(_DONE))
    return f"{path_of('lessons', name)}?done={verb}"


def _read_changes(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a lesson as its form was filled in."""
    names = ("summary", "rule", "detail", *_FILTERS)
    changes: dict[str, Any] = {key: form[key].strip() for key in names if key in form}
    if "tags" in form:
        changes["tags"] = [tag.strip() for tag in form["tags"].split(",") if tag.strip()]
    if "importance" in form:
        try:
            changes["importance"] = float(form["importance"])
        except ValueError:
            raise InputError("the importance is no number", hint="a number from 0 to 1") from None
    return changes
