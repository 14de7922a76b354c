"""Recognise the moments worth saving in a captured run, and word each as a draft for `save_memory`.

The five of the learning cycle: a fix that several attempts went before, a solution that no document tells, an
entry that a run showed to be wrong, a choice with its reason, and what else of weight the session leaves.
A draft too many costs more than one too few: it is read by people. Hence at most five a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from archivist.reading.run import RunReading
from archivist.recall.keywords import Overlap, keywords, matches
from archivist.records import Event, Lesson, LessonType
from archivist.workspace.choices import draft_decisions
from archivist.workspace.drafts import LEAST_WEIGHT, Draft, DraftContext, SaveTrigger, draft_lesson
from archivist.workspace.fixes import draft_conflicts, draft_hard_won_fixes, draft_long_searches
from archivist.workspace.topology import WorkspaceScope

MOST_DRAFTS = 5
_SAME = Overlap(of_finding=0.7, of_lesson=0.4)
# So few words of documents cannot show that something is in none of them.
_FEW_DOCUMENTED_WORDS = 50
_UNDOCUMENTED = 0.5
_CODE = re.compile(r"`([^`\n]+)`")
# So long a message is told from others; “1 failed” stands under many failures.
_QUOTED = re.compile(r"“([^”]{20,})”")


def find_drafts(reading: RunReading, events: Sequence[Event], known: DraftContext) -> list[Draft]:
    """Return what of a run is worth saving, the weightiest first, nothing twice and nothing known already."""
    found = [
        *draft_conflicts(reading, known),
        *draft_hard_won_fixes(reading, events, known),
        *draft_decisions(events, known),
        *draft_long_searches(reading, events, known),
        *draft_undocumented(reading, known),
        *draft_session_lessons(reading, known),
    ]
    kept: list[Draft] = []
    for draft in sorted(found, key=lambda each: -each.weight):
        if len(kept) == MOST_DRAFTS:
            break
        if not any(_repeats(draft, other) for other in kept) and not _is_known(draft, known):
            kept.append(draft)
    return kept


def new_drafts(drafts: Sequence[Draft], earlier: Sequence[Draft]) -> list[Draft]:
    """Return the drafts that say something which earlier ones, of other runs, do not."""
    return [draft for draft in drafts if not any(_repeats(draft, other) for other in earlier)]


def _repeats(draft: Draft, other: Draft) -> bool:
    """Say whether two drafts are about the same: the same event, the same message, or the same words.

    Two lessons of the bank are two things: what says the same was merged there.
    """
    if draft.lesson and other.lesson:
        return draft.lesson == other.lesson
    if set(draft.evidence) & set(other.evidence) or _quotes(draft, other) or _quotes(other, draft):
        return True
    return _says_same(draft, other.title, other.text)


def _quotes(draft: Draft, other: Draft) -> bool:
    """Say whether a draft quotes a message that stands in the other one."""
    return any(
        " ".join(quoted.rstrip("….").split()) in " ".join(other.text.split())
        for quoted in _QUOTED.findall(draft.text)
    )


def _says_same(draft: Draft, title: str, text: str) -> bool:
    if " ".join(draft.title.lower().split()) == " ".join(title.lower().split()):
        return True
    codes, theirs = set(_CODE.findall(f"{draft.title} {draft.text}")), set(_CODE.findall(f"{title} {text}"))
    # The same words about other commands are about something else.
    if codes and theirs and not codes & theirs:
        return False
    words, others = keywords(f"{draft.title} {draft.text}"), keywords(f"{title} {text}")
    return matches(words, others, frozenset(), _SAME)


def _is_known(draft: Draft, known: DraftContext) -> bool:
    if draft.conflicts_with:
        return False
    return any(_says_same(draft, each.entry.title, each.entry.text) for each in known.learnings)


def draft_undocumented(reading: RunReading, known: DraftContext) -> Iterator[Draft]:
    """Draft the lessons of a run whose remedy stands in no document of the workspace."""
    if len(known.words) < _FEW_DOCUMENTED_WORDS:
        return
    for lesson in _run_lessons(reading, known):
        words = keywords(" ".join(lesson.remedies[:1]))
        if words and sum(word not in known.words for word in words) >= _UNDOCUMENTED * len(words):
            yield draft_lesson(lesson, known, SaveTrigger.NON_OBVIOUS_SOLUTION)


def draft_session_lessons(reading: RunReading, known: DraftContext) -> Iterator[Draft]:
    """Draft the lessons that the run was seen to teach, those of weight."""
    for lesson in _run_lessons(reading, known):
        if lesson.importance >= LEAST_WEIGHT:
            yield draft_lesson(lesson, known, SaveTrigger.END_OF_SESSION)


def _run_lessons(reading: RunReading, known: DraftContext) -> list[Lesson]:
    run = reading.episode.id
    return [
        lesson
        for lesson in known.lessons
        if run in lesson.runs
        and lesson.status.is_live
        # To edit a file is no remedy unless it is said how.
        and (set(lesson.remedies) - {"edit"} or lesson.type is LessonType.PREFERENCE)
    ]


def scope_of_project(project: str, scopes: Sequence[WorkspaceScope]) -> str:
    """Return the scope that a run's project belongs to: by its name, else the only workspace, else none."""
    name = project.rstrip("/").rsplit("/", 1)[-1].lower()
    for depth in (3, 2, 1):
        found = [scope for scope in scopes if len(scope.parts) == depth and scope.parts[-1].lower() == name]
        if name and len(found) == 1:
            return str(found[0])
    workspaces = {scope.workspace for scope in scopes}
    return workspaces.pop() if len(workspaces) == 1 else ""
