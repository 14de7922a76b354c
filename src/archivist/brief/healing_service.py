"""Look up what earlier runs did about an error. An agent waits next to its error, so this is kept light.

What decides whether there is anything to say reads single fields of the tables; records are made only for
what is shown.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from archivist import projects
from archivist.brief.healing import (
    MAX_SHOWN,
    failure_family,
    find_recovery,
    is_similar_error,
    names_subject,
    render_recovery,
)
from archivist.brief.select import BriefedLesson, RenderedBrief
from archivist.records.words import NOTES, PART, Status
from archivist.store.filters import any_of, contains_text, equals, one_of
from archivist.store.results import SearchFilter, scope_token

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.reading.failures import Failure
    from archivist.records import Lesson
    from archivist.store.protocol import Reader

_LIVE = one_of("status", (Status.ACTIVE, Status.CANDIDATE))
_FIELDS = ("remedies", "id", "runs", "summary", "rule", "tags", "signature")
# How many of the latest runs are asked what they did about an error, and how many lessons.
_LATEST_RUNS = 500
_MAX_LESSONS = 50
# The end of an output says what failed.
_LAST_CHARACTERS = 2_000
_LAST_LINES = 20
_HITS = 50
_MAX_SIMILAR = 2
# Above this many documents scoring every word took longer than a hook has; only rare words are scored then.
_SCORED = 4_000


def heal(
    bank: Bank, error: str, *, tool: str, command: str, repo: str, run: str, project: str = ""
) -> RenderedBrief:
    """Say what earlier runs did about an error, known by its signature; else what says nearly the same.

    The run that asks is not an earlier one. An error that nobody met gives an empty text.
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
                chosen = tuple(BriefedLesson(lesson) for lesson in found.lessons)
                return RenderedBrief(render_recovery(found, failure.line), chosen)
        similar = _similar_lessons(reader, failure, error, project, run)
        if not similar:
            return RenderedBrief("", ())
        chosen = tuple(BriefedLesson(lesson) for lesson in reader.records("lesson", similar).values())
    from archivist.brief.render import render_brief
    from archivist.brief.request import BriefFormat

    return RenderedBrief(render_brief(chosen, BriefFormat.MARKDOWN), chosen)


def _failure_notes(reader: Reader, key: str, run: str) -> list[dict[str, Any]]:
    """Return the notes of the latest other runs that speak of a failure's kind."""
    spelled = json.dumps(failure_family(key), ensure_ascii=False)[1:-1]
    rows = reader.select_fields(
        "episode", ("id", "extra"), equals("action", None), order=("-finished",), limit=_LATEST_RUNS
    )
    # Most extras are not about the failure; finding that out by text is far cheaper than by parsing them.
    extras = [extra for name, extra in rows if spelled in extra and not _is_same_run(run, name)]
    notes = [json.loads(extra).get(NOTES) for extra in extras]
    return [note for note in notes if isinstance(note, dict)]


def _failure_lessons(reader: Reader, key: str, subject: str, run: str) -> list[Lesson]:
    """Return the live lessons about a failure's key, else about the same failure in other repositories.

    Those that know a remedy come first, then the most frequent.
    """
    names_it = any_of(*((contains_text(field, subject),) for field in ("summary", "rule", "tags")))

    def find_by_signature(*keys: str) -> list[str]:
        rows = reader.select_fields(
            "lesson",
            _FIELDS,
            one_of("signature", keys),
            _LIVE,
            names_it,
            order=("-frequency", "number"),
            limit=_MAX_LESSONS,
        )
        rows.sort(key=lambda row: row[0] == "[]")
        return [str(row[1]) for row in rows if _is_relevant(row, subject, run)][:MAX_SHOWN]

    # One look-up a repository in the index of signatures: no lesson about something else is read.
    ids = find_by_signature(key) or find_by_signature(
        *(f"{name}|{failure_family(key)}" for name in ("", *projects.all_projects(reader)))
    )
    return list(reader.records("lesson", ids).values()) if ids else []


def _is_relevant(row: tuple[Any, ...], subject: str, run: str) -> bool:
    """Say whether a lesson's row names what a failure is about, and another run than this one met it."""
    remedies, _, runs, summary, rule, tags, _ = row
    met_in = json.loads(runs)
    if met_in and all(_is_same_run(run, name) for name in met_in):
        return False
    return names_subject(subject, f"{summary} {rule}", json.loads(remedies), json.loads(tags))


def _is_same_run(run: str, name: str) -> bool:
    """Say whether a name is that of a run, or of the part of it that was done in another repository."""
    return name == run or (bool(run) and name.startswith(f"{run}{PART}"))


def _similar_lessons(
    reader: Reader, failure: Failure | None, error: str, project: str, run: str
) -> list[str]:
    """Return the ids of lessons of the project, and of none, that say most of what a line of an error says.

    A lesson of another repository only sounds like it. One that this run was given need not be said again.
    """
    from archivist.recall.lexical import extract_terms, select_words

    text = failure.line if failure else error[-_LAST_CHARACTERS:]
    subject = failure.subject if failure else ""
    lines = [extract_terms(line).words for line in text.splitlines()[-_LAST_LINES:]]

    def count_documents(word: str, at_most: int) -> int:
        return reader.count_documents_with(word, at_most=at_most)

    query = select_words(extract_terms(text), count_documents, _SCORED)
    if not query.words:
        return []
    is_lesson = SearchFilter(groups=((scope_token("kind", "lesson"),),))
    hits = reader.search(query, search_filter=is_lesson, limit=_HITS)
    documents = reader.indexed_documents([hit.place for hit in hits]).values()
    rows = reader.select_fields(
        "lesson",
        _FIELDS,
        one_of("id", [document.record for document in documents]),
        one_of("repo", (project, "")),
        _LIVE,
        order=("-frequency", "number"),
    )

    def is_similar(row: tuple[Any, ...]) -> bool:
        *_, summary, rule, _, signature = row
        # A lesson about another kind of failure only shares its words.
        if subject and failure and signature and not failure_family(signature).startswith(f"{failure.kind}:"):
            return False
        words = extract_terms(f"{summary} {rule}").words
        return _is_relevant(row, subject, run) and any(is_similar_error(line, words) for line in lines)

    similar = [str(row[1]) for row in rows if is_similar(row)]
    if not similar:
        return []
    from archivist.brief.record_service import briefed_lessons

    known = briefed_lessons(reader, run)
    return [name for name in similar if name not in known][:_MAX_SIMILAR]
