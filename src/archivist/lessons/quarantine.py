"""Decide which lessons wait for a person: by their words, who worded them and whether a person chose them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.lessons.risky_text import borrowed_voice, suspicion
from archivist.records.words import ActorKind, LessonType, Provenance, Status

if TYPE_CHECKING:
    from archivist.lessons.candidate import Candidate
    from archivist.records import Actor, Lesson

_UNSTATED = "quarantined earlier, for words it no longer has"
# What a lesson that is not from own runs waits for, as people and agents read it.
WAITS_FOR = "a person's approval, or a run of the user's own that meets it"
APPROVAL_HINT = "a person must approve it: archivist lessons approve ID"


def lesson_suspicion(lesson: Lesson | Candidate) -> str:
    """Return why a lesson's or candidate's words are suspicious, whatever its status, or an empty string."""
    # Remedies that are harmless alone may be steps of one command.
    steps = ("\n".join(lesson.remedies),) if len(lesson.remedies) > 1 else ()
    texts = lesson.summary, lesson.rule, lesson.detail, *lesson.remedies, *lesson.tags
    if why := suspicion(*texts, *steps):
        return why
    is_of_failure = lesson.type is not LessonType.PREFERENCE
    if why := borrowed_voice(*texts) if is_of_failure else "":
        return why
    if not lesson.is_finding:
        return ""
    from archivist.lessons.agent_words import finding_suspicion

    return finding_suspicion(lesson.summary, lesson.detail, *lesson.tags)


def quarantine_reason(lesson: Lesson) -> str:
    """Return why a lesson is quarantined; an empty string when it is not."""
    return (lesson_suspicion(lesson) or _UNSTATED) if lesson.status is Status.QUARANTINED else ""


def is_quarantined(lesson: Lesson) -> bool:
    """Say whether a lesson belongs in quarantine: its words are suspicious, and no person chose them.

    A quarantined lesson stays there until a person approves it, however its words change.
    """
    if lesson.confirmed or lesson.status is Status.QUARANTINED:
        return not lesson.confirmed
    return lesson.provenance is not Provenance.TYPED and bool(lesson_suspicion(lesson))


def may_release(actor: Actor, lesson: Lesson) -> bool:
    """Say whether an actor may make a lesson live: what waits or is quarantined only a person may release."""
    is_held = lesson.is_waiting or lesson.status is Status.QUARANTINED
    return not is_held or actor.kind is ActorKind.HUMAN
