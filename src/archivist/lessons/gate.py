"""Decide what becomes of a candidate: a new lesson, a change to a known one, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace

from archivist.access.rights import may_change
from archivist.lessons.candidate import (
    Candidate,
    Provenance,
    Sighting,
    clean_candidate,
    lesson_fields,
)
from archivist.lessons.duplicates import drop_duplicates, is_refined
from archivist.lessons.merge import merge_evidence, merge_versions
from archivist.lessons.quarantine import distrust_imported, lesson_suspicion, suspicion
from archivist.lessons.standing import is_confirmed, merge_sets
from archivist.records import Evidence, Lesson, Source, Status


def admit_candidates(
    candidates: Sequence[Candidate], events: Set[str], *, least_importance: float
) -> list[Candidate]:
    """Return the mined candidates that may become lessons, cleaned, the most important first."""
    admitted = [
        clean_candidate(replace(candidate, importance=min(1.0, max(0.0, candidate.importance))))
        for candidate in candidates
        if candidate.summary.strip() and candidate.events and set(candidate.events) <= events
    ]
    # Suspicious candidates come last: a run keeps few lessons, and they must not displace harmless ones.
    admitted.sort(key=lambda candidate: (bool(candidate_suspicion(candidate)), -candidate.importance))
    return [candidate for candidate in drop_duplicates(admitted) if candidate.importance >= least_importance]


def candidate_suspicion(candidate: Candidate) -> str:
    """Return why a candidate's words must be quarantined, or an empty string."""
    return suspicion(
        candidate.summary, candidate.rule, candidate.detail, *candidate.remedies, *candidate.tags
    )


def comparable_lessons(candidate: Candidate, lessons: Iterable[Lesson]) -> list[Lesson]:
    """Return the lessons that a mined candidate may meet: suspicious words only meet suspicious ones.

    Otherwise the output of a tool could reword a lesson that is believed, or a quarantined lesson could
    absorb a harmless one.
    """
    if candidate_suspicion(candidate):
        return [
            lesson for lesson in lessons if lesson.status is Status.QUARANTINED or lesson_suspicion(lesson)
        ]
    return [
        lesson
        for lesson in lessons
        if lesson.status is not Status.QUARANTINED
        and not (lesson.status.is_retired and lesson_suspicion(lesson))
    ]


def draft_lesson(candidate: Candidate, sighting: Sighting) -> Lesson:
    """Return the lesson that a candidate is as a new record; its id, number and status are still open."""
    said = lesson_fields(candidate)
    unseen_from = sighting.run_count - candidate.runs_since
    if candidate.record is not None:
        return replace(candidate.record, **said, unseen_from=unseen_from)
    return Lesson(
        **(said | {"evidence": merge_evidence(candidate.evidence, _sighting_evidence(candidate, sighting))}),
        id="",
        created=sighting.now,
        updated=sighting.now,
        edited=sighting.now,
        actor=sighting.actor,
        runs=merge_sets(candidate.earlier_runs, (sighting.counted,)),
        origin_run=sighting.run,
        last_seen_run=sighting.run,
        last_seen=sighting.seen,
        unseen_from=unseen_from,
    )


def refine_lesson(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson | None:
    """Return the draft that supersedes a known lesson because it says what to do, or None if it does not."""
    if not known.status.is_live or known.confirmed or not is_refined(candidate, known):
        return None
    draft = draft_lesson(replace(candidate, earlier_runs=known.runs), sighting)
    return replace(
        draft,
        created=known.created,
        origin_run=known.origin_run,
        evidence=merge_evidence(known.evidence, draft.evidence),
        importance=max(known.importance, draft.importance),
        signature=known.signature or draft.signature,
    )


def record_sighting(lesson: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
    """Return the lesson after a run met it; a run counts once, and a retired lesson is not met."""
    if lesson.status.is_retired or {sighting.run, sighting.counted} & set(lesson.runs):
        return lesson
    seen = sighting.seen or sighting.now
    return replace(
        lesson,
        runs=merge_sets(lesson.runs, (sighting.counted,)),
        evidence=merge_evidence(lesson.evidence, _sighting_evidence(candidate, sighting)),
        last_seen_run=sighting.run,
        last_seen=max(seen, lesson.last_seen or seen),
        updated=max(sighting.now, lesson.updated),
        unseen_from=sighting.run_count,
    )


def meet_mined(known: Lesson, candidate: Candidate, _draft: Lesson, sighting: Sighting) -> Lesson:
    """Count the run, and take the newer words unless a person chose the present ones."""
    seen = record_sighting(known, candidate, sighting)
    if known.confirmed or known.source is not Source.ARCHIVIST or known.signature != candidate.key:
        return seen
    worded = replace(
        seen,
        summary=candidate.summary,
        rule=candidate.rule or seen.rule,
        detail=candidate.detail or seen.detail,
        remedies=candidate.remedies or seen.remedies,
        importance=max(seen.importance, candidate.importance),
        tags=merge_sets(seen.tags, candidate.tags) if set(candidate.tags) - set(seen.tags) else seen.tags,
    )
    if worded == seen or (seen.rule and not candidate.rule):
        return seen
    return replace(worded, edited=sighting.now, updated=sighting.now)


def meet_reviewed(known: Lesson, candidate: Candidate, _draft: Lesson, sighting: Sighting) -> Lesson:
    """Count the run in which a reviewer found the same again."""
    return record_sighting(known, candidate, sighting)


def meet_said(known: Lesson, candidate: Candidate, draft: Lesson, sighting: Sighting) -> Lesson:
    """Confirm a lesson that a person states again, with the fields that were stated this time."""
    stated = {name: getattr(draft, name) for name in candidate.given}
    confirmed = replace(known, runs=merge_sets(known.runs, draft.runs), **stated)
    if not is_confirmed(confirmed):
        confirmed = replace(confirmed, confirmed=True)
    return known if confirmed == known else replace(confirmed, updated=sighting.now, edited=sighting.now)


def meet_suggested(known: Lesson, candidate: Candidate, _draft: Lesson, sighting: Sighting) -> Lesson:
    """Count the run, and add the agent's rule and detail where they are missing and it may change them."""
    seen = record_sighting(known, candidate, sighting)
    seen = replace(seen, evidence=merge_evidence(known.evidence, candidate.evidence))
    if known.source is Source.ARCHIVIST and not known.confirmed and may_change(sighting.actor, known):
        seen = replace(seen, rule=seen.rule or candidate.rule, detail=seen.detail or candidate.detail)
    if seen == known:
        return known
    is_reworded = (seen.rule, seen.detail) != (known.rule, known.detail)
    return replace(
        seen,
        last_seen=sighting.now,
        updated=sighting.now,
        edited=sighting.now if is_reworded else known.edited,
    )


def meet_imported(known: Lesson, _candidate: Candidate, draft: Lesson, _sighting: Sighting) -> Lesson:
    """Merge a file's version of a lesson into this bank's, as far as the file is believed."""
    believed = distrust_imported(draft, known)
    return known if believed is known else merge_versions(known, replace(believed, number=known.number))


def meet_shared(known: Lesson, candidate: Candidate, draft: Lesson, sighting: Sighting) -> Lesson:
    """Merge another clone's version; only a sighting elsewhere restarts the count of unseen runs."""
    merged = meet_imported(known, candidate, draft, sighting)
    if set(draft.runs) <= set(known.runs):
        merged = replace(merged, unseen_from=known.unseen_from)
    # Shared lines hold tags in sorted order, which is no change.
    return replace(merged, tags=known.tags) if set(merged.tags) == set(known.tags) else merged


MEETINGS: dict[Provenance, Callable[[Lesson, Candidate, Lesson, Sighting], Lesson]] = {
    Provenance.MINED: meet_mined,
    Provenance.REVIEWED: meet_reviewed,
    Provenance.SAID: meet_said,
    Provenance.SUGGESTED: meet_suggested,
    Provenance.IMPORTED: meet_imported,
    Provenance.SHARED: meet_shared,
}


def _sighting_evidence(candidate: Candidate, sighting: Sighting) -> Evidence:
    return Evidence(
        episodes=(sighting.run,),
        sessions=(sighting.session,) if sighting.session else (),
        trajectories=sighting.trajectories,
        events=candidate.events,
    )
