"""Work on errors: say what earlier runs did about one. Kept light: an agent waits beside its error.

What decides whether there is anything to say reads single fields of the tables; records are made only of what
is told.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from archivist.brief.healing import family_of, recovery, told
from archivist.brief.selection import Chosen, Told
from archivist.desks import projects
from archivist.records.words import NOTES, Status
from archivist.stores.answers import Within
from archivist.stores.filters import any_of, equals, holds, one_of
from archivist.stores.tokens import scope_token

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.records import Lesson
    from archivist.reflect.failures import Failure
    from archivist.stores.protocol import Reader

_LIVE = one_of("status", (Status.ACTIVE, Status.CANDIDATE))
_SAID = ("summary", "rule", "tags")
# So many of the latest runs are asked what they did about an error, and so many lessons.
_LATEST_RUNS = 500
_MOST_LESSONS = 50
_ERROR_WORDS = 2000
_LEAST_LIKE = 0.6
_HITS = 50
# So many documents are scored by an error's words at most.
_SCORED = 4_000
_TELLING_WORDS = 4


def heal(bank: Bank, error: str, *, tool: str, command: str, repo: str, run: str) -> Told:
    """Say what earlier runs did about an error, known by its signature; else what is most like its words.

    The run that asks is no earlier one.
    """
    from archivist.reflect.failures import detect, family

    failure = detect(tool or "bash", command, None, True, error)
    with bank.reading() as reader:
        project = projects.named(reader, repo) if repo else projects.only(reader)
        if failure is not None:
            key = f"{project}|{family(failure)}"
            lessons = [each for each in _about_failure(reader, key, failure.subject) if each.runs != (run,)]
            found = recovery(key, failure.subject, _notes_on(reader, key, run), lessons)
            if found is not None:
                return Told(told(found, failure.line), tuple(Chosen(lesson) for lesson in found.lessons))
    like = _like_the_error(bank, failure.line if failure else error, project)
    if not like:
        return Told("", ())
    from archivist.desks.sessions import told_in

    with bank.reading() as reader:
        # What only sounds like it need not be said twice.
        known = told_in(reader, run)
    chosen = [
        Chosen(each)
        for each in like
        if _can_be(each, failure) and each.runs != (run,) and each.id not in known
    ]
    if not chosen:
        return Told("", ())
    from archivist.brief.forms import BriefFormat
    from archivist.brief.rendering import render

    return Told(render(chosen, BriefFormat.MARKDOWN), tuple(chosen))


def _notes_on(reader: Reader, key: str, run: str) -> list[dict[str, Any]]:
    """Return what the latest runs but this one noted, of those that speak of a failure's kind."""
    spelled = json.dumps(family_of(key), ensure_ascii=False)[1:-1]
    rows = reader.select_fields(
        "episode", ("id", "extra"), equals("action", None), order=("-finished",), limit=_LATEST_RUNS
    )
    notes = [json.loads(extra).get(NOTES) for name, extra in rows if spelled in extra and name != run]
    return [note for note in notes if isinstance(note, dict)]


def _about_failure(reader: Reader, key: str, subject: str) -> list[Lesson]:
    """Return the live lessons of a failure's key, else those of the same failure in other repositories.

    Of many the most frequent; those that do not name what the failure is about are about another one.
    """
    about = any_of(*((holds(field, subject),) for field in _SAID))

    def signed(*keys: str) -> list[str]:
        rows = reader.select_fields(
            "lesson",
            ("id",),
            one_of("signature", keys),
            _LIVE,
            about,
            order=("-frequency", "number"),
            limit=_MOST_LESSONS,
        )
        return [str(row[0]) for row in rows]

    # By the index of signatures, one look a repository: no lesson is read that is about something else.
    ids = signed(key) or signed(*(f"{name}|{family_of(key)}" for name in ("", *projects.every(reader))))
    return list(reader.records("lesson", ids).values()) if ids else []


def _like_the_error(bank: Bank, error: str, project: str) -> list[Lesson]:
    """Return the lessons that hold most of an error's words; of a few common words nothing can be told."""
    from archivist.recall.lexical import terms

    text = error[-_ERROR_WORDS:]
    if len(terms(text).words) < _TELLING_WORDS or not _is_any_like(bank, text):
        return []
    from archivist.recall.query import LIVE, Query

    asked = Query(text=text, kinds=("lesson",), statuses=LIVE, repo=project, limit=2)
    return [bank.get(hit.id) for hit in bank.recall(asked).hits if hit.why.why.words >= _LEAST_LIKE]


def _can_be(lesson: Lesson, failure: Failure | None) -> bool:
    """Say whether a lesson can be about a failure: one about another kind only shares its words."""
    if failure is None or not failure.subject or not lesson.signature:
        return True
    return family_of(lesson.signature).startswith(f"{failure.kind}:")


def _is_any_like(bank: Bank, text: str) -> bool:
    """Say whether the words alone let any lesson hope; recall with its vectors takes far longer."""
    from archivist.recall import lexical
    from archivist.recall.fusion import fuse

    counts: dict[str, int] = {}
    with bank.reading() as reader:

        def holding(word: str, at_most: int) -> int:
            counts[word] = reader.holding(word, at_most=at_most)
            return counts[word]

        wanted = lexical.chosen(lexical.terms(text), holding, _SCORED)
        hits = reader.search(wanted, within=Within(groups=((scope_token("kind", "lesson"),),)), limit=_HITS)
        looked_for = {word: counts[word] for word in counts if word in wanted.words or not counts[word]}
        ideal = lexical.coverage(looked_for, reader.document_count())
    found = fuse({hit.place: hit.score for hit in hits}, ideal, {}, None)
    return any(each.words >= _LEAST_LIKE for each in found.values())
