"""Work on errors: say what earlier runs did about one. Kept light: an agent waits beside its error.

What decides whether there is anything to say reads single fields of the tables; records are made only of what
is told.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from archivist import projects
from archivist.brief.healing import (
    SHOWN,
    failure_family,
    find_recovery,
    is_similar_error,
    names_subject,
    render_recovery,
)
from archivist.brief.select import BriefedLesson, RenderedBrief
from archivist.records.words import NOTES, PART, Status
from archivist.store.filters import any_of, contains_text, equals, one_of
from archivist.store.results import SearchFilter
from archivist.store.scope_tokens import scope_token

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.reading.failures import Failure
    from archivist.records import Lesson
    from archivist.store.protocol import Reader

_LIVE = one_of("status", (Status.ACTIVE, Status.CANDIDATE))
_SAID = ("summary", "rule", "tags")
# So many of the latest runs are asked what they did about an error, and so many lessons.
_LATEST_RUNS = 500
_MOST_LESSONS = 50
_ERROR_WORDS = 2000
_LAST_LINES = 20
_HITS = 50
_MOST_LIKE = 2
# So many documents are scored by an error's words at most.
_SCORED = 4_000


def heal(
    bank: Bank, error: str, *, tool: str, command: str, repo: str, run: str, project: str = ""
) -> RenderedBrief:
    """Say what earlier runs did about an error, known by its signature; else what says nearly the same.

    The run that asks is no earlier one. Nothing is told of an error that nobody met.
    """
    from archivist.reading.failures import detect_failure, failure_key

    failure = detect_failure(tool or "bash", command, None, True, error)
    with bank.reading() as reader:
        if not project:
            project, _ = projects.resolve_project(reader, repo, bank.folder, bank.root)
        if failure is not None:
            key = f"{project}|{failure_key(failure)}"
            lessons = _failure_lessons(reader, key, failure.subject, run)
            found = find_recovery(key, failure.subject, _failure_notes(reader, key, run), lessons)
            if found is not None:
                return RenderedBrief(
                    render_recovery(found, failure.line),
                    tuple(BriefedLesson(lesson) for lesson in found.lessons),
                )
        like = _similar_lessons(reader, failure, error, project, run)
        if not like:
            return RenderedBrief("", ())
        chosen = tuple(BriefedLesson(each) for each in reader.records("lesson", like).values())
    from archivist.brief.render import render_brief
    from archivist.brief.request import BriefFormat

    return RenderedBrief(render_brief(chosen, BriefFormat.MARKDOWN), chosen)


def _failure_notes(reader: Reader, key: str, run: str) -> list[dict[str, Any]]:
    """Return what the latest runs but this one noted, of those that speak of a failure's kind."""
    spelled = json.dumps(failure_family(key), ensure_ascii=False)[1:-1]
    rows = reader.select_fields(
        "episode", ("id", "extra"), equals("action", None), order=("-finished",), limit=_LATEST_RUNS
    )
    told = [extra for name, extra in rows if spelled in extra and not _is_same_run(run, name)]
    notes = [json.loads(extra).get(NOTES) for extra in told]
    return [note for note in notes if isinstance(note, dict)]


def _failure_lessons(reader: Reader, key: str, subject: str, run: str) -> list[Lesson]:
    """Return the live lessons to tell of a failure's key, else of the same failure in other repositories.

    Those that do not name what the failure is about are about another one, and what only this run met is no
    earlier one's. Of the rest those that know a remedy come first, then the most frequent.
    """
    about = any_of(*((contains_text(field, subject),) for field in _SAID))

    def find_by_signature(*keys: str) -> list[str]:
        rows = reader.select_fields(
            "lesson",
            ("remedies", "id", "runs", "summary", "rule", "tags"),
            one_of("signature", keys),
            _LIVE,
            about,
            order=("-frequency", "number"),
            limit=_MOST_LESSONS,
        )
        rows.sort(key=lambda row: row[0] == "[]")
        return [str(row[1]) for row in rows if _is_relevant(row, subject, run)][:SHOWN]

    # By the index of signatures, one look a repository: no lesson is read that is about something else.
    ids = find_by_signature(key) or find_by_signature(
        *(f"{name}|{failure_family(key)}" for name in ("", *projects.all_projects(reader)))
    )
    return list(reader.records("lesson", ids).values()) if ids else []


def _is_relevant(row: tuple[Any, ...], subject: str, run: str) -> bool:
    remedies, _, runs, summary, rule, tags = row
    met_in = json.loads(runs)
    if met_in and all(_is_same_run(run, each) for each in met_in):
        return False
    return names_subject(subject, f"{summary} {rule}", json.loads(remedies), json.loads(tags))


def _is_same_run(run: str, name: str) -> bool:
    """Say whether a run is another one, or the part of it that was done in another repository."""
    return name == run or (bool(run) and name.startswith(f"{run}{PART}"))


def _similar_lessons(
    reader: Reader, failure: Failure | None, error: str, project: str, run: str
) -> list[str]:
    """Return the lessons of the project, and of none, that say most of what a line of an error says.

    What another repository met only sounds like it. What this run alone met, or was told, is no news to it.
    """
    from archivist.recall.lexical import extract_terms, select_words

    text = failure.line if failure else error[-_ERROR_WORDS:]
    lines = [extract_terms(line).words for line in text.splitlines()[-_LAST_LINES:]]

    def count_documents(word: str, at_most: int) -> int:
        return reader.count_documents_with(word, at_most=at_most)

    wanted = select_words(extract_terms(text), count_documents, _SCORED)
    if not wanted.words:
        return []
    hits = reader.search(
        wanted, search_filter=SearchFilter(groups=((scope_token("kind", "lesson"),),)), limit=_HITS
    )
    ids = [each.record for each in reader.indexed_documents([hit.place for hit in hits]).values()]
    rows = reader.select_fields(
        "lesson",
        ("remedies", "id", "runs", "summary", "rule", "tags", "signature"),
        one_of("id", ids),
        one_of("repo", (project, "")),
        _LIVE,
        order=("-frequency", "number"),
    )
    subject = failure.subject if failure else ""
    near = [
        str(row[1])
        for row in rows
        if _is_relevant(row[:6], subject, run)
        and _is_same_kind(row[6], failure)
        and any(is_similar_error(line, extract_terms(f"{row[3]} {row[4]}").words) for line in lines)
    ]
    if not near:
        return []
    from archivist.brief.record_service import briefed_lessons

    # What only sounds like it need not be said twice.
    known = briefed_lessons(reader, run)
    return [each for each in near if each not in known][:_MOST_LIKE]


def _is_same_kind(signature: str, failure: Failure | None) -> bool:
    """Say whether a lesson can be about a failure: one about another kind only shares its words."""
    if failure is None or not failure.subject or not signature:
        return True
    return failure_family(signature).startswith(f"{failure.kind}:")
