"""Decide which candidates become lessons: evidence resolves, secrets stay out, little things are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from archivist.capture.clean import Cleaner
from archivist.config import Config
from archivist.lessons import quarantine
from archivist.lessons.candidate import Candidate
from archivist.lessons.duplicates import drop_duplicates, is_refined
from archivist.lessons.quarantine import suspicion
from archivist.lessons.standing import merge_sets, record_sighting, with_status
from archivist.records import Actor, Evidence, Lesson, Source, Status


@dataclass(frozen=True, slots=True)
class SightingContext:
    """The run that suggests candidates, as a lesson needs to know it.

    `counted` is the run that it counts as: what a session meets by itself, in its parts and by its subagents
    is met once.
    """

    run: str
    counted: str
    session: str
    trajectories: tuple[str, ...]
    seen: datetime
    now: datetime
    run_count: int
    actor: Actor


def admit_candidates(
    candidates: Sequence[Candidate], events: Set[str], *, least_importance: float
) -> list[Candidate]:
    """Return the candidates that may become lessons, most important first."""
    cleaner = Cleaner()
    passed = [
        replace(
            each,
            summary=cleaner.text(" ".join(each.summary.split())),
            rule=cleaner.text(" ".join(each.rule.split())),
            detail=cleaner.text(each.detail),
            remedies=tuple(cleaner.text(remedy) for remedy in each.remedies),
            importance=min(1.0, max(0.0, each.importance)),
        )
        for each in candidates
        if each.summary.strip() and each.events and set(each.events) <= events
    ]
    # What waits for a person takes no other's place.
    ranked = sorted(passed, key=lambda each: (bool(candidate_suspicion(each)), -each.importance))
    return [each for each in drop_duplicates(ranked) if each.importance >= least_importance]


def candidate_suspicion(candidate: Candidate) -> str:
    """Return why the words of a candidate should wait for a person, or nothing."""
    return suspicion(
        candidate.summary, candidate.rule, candidate.detail, *candidate.remedies, *candidate.tags
    )


def comparable_lessons(candidate: Candidate, lessons: Iterable[Lesson]) -> list[Lesson]:
    """Return the lessons that a candidate can be one with: what waits for a person only meets its like.

    Otherwise the words of a tool's output could take over a lesson that is believed, or one that waits could
    swallow what is harmless.
    """
    if candidate_suspicion(candidate):
        return [
            each for each in lessons if each.status is Status.QUARANTINED or quarantine.lesson_suspicion(each)
        ]
    return [
        each
        for each in lessons
        if each.status is not Status.QUARANTINED
        and not (each.status.is_retired and quarantine.lesson_suspicion(each))
    ]


def create_lesson(
    candidate: Candidate,
    sighting: SightingContext,
    *,
    lesson_id: str,
    earlier_runs: Iterable[str],
    config: Config,
) -> Lesson:
    """Make the lesson that a candidate becomes; earlier runs that met the same count too."""
    lesson = Lesson(
        id=lesson_id,
        created=sighting.now,
        updated=sighting.now,
        edited=sighting.now,
        summary=candidate.summary,
        rule=candidate.rule,
        detail=candidate.detail,
        type=candidate.type,
        category=candidate.category,
        scope=candidate.scope,
        repo=candidate.repo,
        task=candidate.task,
        provider=candidate.provider,
        tool=candidate.tool,
        domain="code",
        tags=candidate.tags,
        importance=candidate.importance,
        severity=candidate.severity,
        evidence=_add_evidence(Evidence(), candidate, sighting),
        source=Source.ARCHIVIST,
        origin="archivist",
        signature=candidate.key,
        remedies=candidate.remedies,
        actor=sighting.actor,
        runs=merge_sets(tuple(earlier_runs), (sighting.counted,)),
        origin_run=sighting.run,
        last_seen_run=sighting.run,
        last_seen=sighting.seen,
        unseen_from=sighting.run_count,
    )
    return with_status(lesson, promote_at_runs=config.lessons.promote_at_runs)


def update_lesson(lesson: Lesson, candidate: Candidate, sighting: SightingContext, config: Config) -> Lesson:
    """Return a known lesson after a run met it again, in newer words unless a person chose its words."""
    promote_at_runs = config.lessons.promote_at_runs
    seen = lesson
    if not lesson.status.is_retired and not {sighting.run, sighting.counted} & set(lesson.runs):
        seen = record_sighting(
            lesson,
            run=sighting.counted,
            event=candidate.events[0],
            now=sighting.now,
            run_count=sighting.run_count,
            promote_at_runs=promote_at_runs,
        )
        seen = replace(
            seen,
            last_seen_run=sighting.run,
            last_seen=max(sighting.seen, lesson.last_seen or sighting.seen),
            evidence=_add_evidence(lesson.evidence, candidate, sighting),
        )
    if lesson.confirmed or lesson.source is not Source.ARCHIVIST or lesson.signature != candidate.key:
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


def refine_lesson(
    lesson: Lesson, candidate: Candidate, sighting: SightingContext, *, lesson_id: str, config: Config
) -> Lesson | None:
    """Return the lesson that supersedes a known one because it says what to do, or None when it does not."""
    if not lesson.status.is_live or lesson.confirmed or not is_refined(candidate, lesson):
        return None
    fresh = create_lesson(candidate, sighting, lesson_id=lesson_id, earlier_runs=lesson.runs, config=config)
    joined = replace(
        fresh,
        created=lesson.created,
        origin_run=lesson.origin_run,
        evidence=_merge_evidence(lesson.evidence, fresh.evidence),
        importance=max(lesson.importance, fresh.importance),
        signature=lesson.signature or fresh.signature,
    )
    return with_status(joined, promote_at_runs=config.lessons.promote_at_runs)


def mark_superseded(lesson: Lesson, by: str, now: datetime) -> Lesson:
    """Return a lesson as superseded by another."""
    return replace(lesson, status=Status.SUPERSEDED, superseded_by=by, updated=now, edited=now)


def _add_evidence(known: Evidence, candidate: Candidate, sighting: SightingContext) -> Evidence:
    fresh = Evidence(
        episodes=(sighting.run,),
        sessions=(sighting.session,) if sighting.session else (),
        trajectories=sighting.trajectories,
        events=candidate.events,
    )
    return _merge_evidence(known, fresh)


def _merge_evidence(first: Evidence, second: Evidence) -> Evidence:
    return Evidence(
        episodes=merge_sets(first.episodes, second.episodes),
        trajectories=merge_sets(first.trajectories, second.trajectories),
        sessions=merge_sets(first.sessions, second.sessions),
        logs=merge_sets(first.logs, second.logs),
        events=merge_sets(first.events, second.events),
    )
