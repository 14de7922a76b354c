"""Decide what becomes of a candidate: a new lesson, a change to a known one, or nothing.

The key of a candidate names its phenomenon: the same key is the same lesson, and the same failure of another
script or port is another lesson. Where keys differ otherwise, words decide: summary and rule are compared as
sets of words, tags add a little, and the names in backticks (commands, modules, flags) must overlap. The
weights and the threshold separate the labelled pairs in `tests/lessons/test_duplicates.py` best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from archivist.access.rights import may_change
from archivist.capture.clean import Cleaner
from archivist.cold_start import lazy_pattern
from archivist.lessons.candidate import Candidate, Sighting, clean_candidate, lesson_fields
from archivist.lessons.contradiction import wish_likeness
from archivist.lessons.quarantine import is_quarantined, lesson_suspicion
from archivist.lessons.standing import (
    is_confirmed,
    lesson_text,
    merge_evidence,
    merge_sets,
    merge_versions,
    note_claim,
)
from archivist.reading.failures import have_different_subjects
from archivist.records import Evidence, Lesson, LessonType, Provenance, Source, Status
from archivist.records.words import CLAIMED, MET_HERE, MODEL_ORIGIN

SUMMARY_WEIGHT = 0.6
NAME_WEIGHT = 0.3
RULE_WEIGHT = 0.15
TAG_WEIGHT = 0.05
DUPLICATE_AT = 0.78
# From here on a model is asked whether two lessons say the same.
ALIKE_AT = 0.5

# A finding is a role's hint when the role made at least so many of its sightings, and this share of them.
_LEAST_SIGHTINGS = 3
_HINT_SHARE = 0.75
# How often a remedy helped, as miners say it.
_FIGURE = lazy_pattern(r" \((?:worked|helped) in [^()]{1,40}\)")
_CODE = lazy_pattern(r"`([^`]+)`")
_NAME = lazy_pattern(r"[A-Za-z0-9_][\w.+-]*")
# Words that stand in many commands and identify none.
_COMMON_NAMES = frozenset(["pip", "install", "python", "run", "the", "npm", "git", "add", "use"])


def text_similarity(first: Lesson | Candidate, second: Lesson | Candidate) -> float:
    """Return how alike two lessons are, from 0 to 1; a part that only one of them has is not compared."""
    if first.remedies and second.remedies and {first.type, second.type} == {LessonType.PREFERENCE}:
        return wish_likeness(first, second)
    names, other_names = _names_in_code(first), _names_in_code(second)
    if names and other_names and not names & other_names:
        return 0.0
    parts = [(SUMMARY_WEIGHT, _fuzzy_ratio(first.summary, second.summary))]
    if names and other_names:
        parts.append((NAME_WEIGHT, len(names & other_names) / len(names | other_names)))
    if first.rule and second.rule:
        parts.append((RULE_WEIGHT, _fuzzy_ratio(first.rule, second.rule)))
    tags, other_tags = set(first.tags), set(second.tags)
    if tags and other_tags:
        parts.append((TAG_WEIGHT, len(tags & other_tags) / min(len(tags), len(other_tags))))
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def _names_in_code(lesson: Lesson | Candidate) -> set[str]:
    """Return the names in backticks: what the lesson is about."""
    codes = _CODE.findall(f"{lesson.summary} {lesson.rule}")
    return {name.lower() for code in codes for name in _NAME.findall(code)} - _COMMON_NAMES


def find_duplicate(candidate: Candidate, lessons: Iterable[Lesson]) -> Lesson | None:
    """Return the lesson that a candidate repeats: the one of its key, else the most alike of its scope."""
    best: tuple[float, Lesson] | None = None
    for lesson in lessons:
        if candidate.key and lesson.signature == candidate.key:
            return lesson
        if lesson.repo != candidate.repo or lesson.provider != candidate.provider:
            continue
        if have_different_subjects(lesson.signature, candidate.key) or _are_of_other_failures(
            lesson, candidate
        ):
            continue
        score = text_similarity(candidate, lesson)
        if score >= DUPLICATE_AT and (best is None or score > best[0]):
            best = score, lesson
    return best[1] if best else None


def _are_of_other_failures(first: Lesson | Candidate, second: Lesson | Candidate) -> bool:
    """Say whether one of two is a model's and they are about different failures: words then prove nothing."""
    keys = _failure_of(first), _failure_of(second)
    return MODEL_ORIGIN in (first.origin, second.origin) and "" not in keys and keys[0] != keys[1]


def _failure_of(lesson: Lesson | Candidate) -> str:
    """Return the key of the failure that a lesson is about; what stands beside a lesson notes it."""
    key: str
    held: Mapping[str, object]
    if isinstance(lesson, Candidate):
        key, held = lesson.key, lesson.notes
    else:
        key, held = lesson.signature, lesson.extra
    notes = held.get("model")
    return key or (str(notes.get("failure", "")) if isinstance(notes, dict) else "")


def drop_duplicates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates without those that repeat an earlier, more important one."""
    kept: list[Candidate] = []
    for candidate in candidates:
        is_repeated = any(
            candidate.key == other.key
            or (
                not have_different_subjects(candidate.key, other.key)
                and not _are_of_other_failures(candidate, other)
                and text_similarity(candidate, other) >= DUPLICATE_AT
            )
            for other in kept
        )
        if not is_repeated:
            kept.append(candidate)
    return kept


def _fuzzy_ratio(first: str, second: str) -> float:
    # Most ways in find a twin by its id, key or words, and rapidfuzz takes 8 ms to import.
    from rapidfuzz import fuzz

    # Sorted words ignore their order, sets ignore an added clause; the mean does neither entirely.
    a, b = first.lower(), second.lower()
    return (fuzz.token_sort_ratio(a, b) + fuzz.token_set_ratio(a, b)) / 200


def admit_candidates(
    candidates: Sequence[Candidate], events: Set[str], *, least_importance: float
) -> list[Candidate]:
    """Return the mined candidates that may become lessons, cleaned, the most important first.

    One below the least importance makes no new lesson, but counts where its lesson is known.
    """
    cleaner = Cleaner()
    admitted = [
        clean_candidate(replace(candidate, importance=min(1.0, max(0.0, candidate.importance))), cleaner)
        for candidate in candidates
        if candidate.summary.strip() and candidate.events and set(candidate.events) <= events
    ]
    # Suspicious candidates come last: a run keeps few lessons, and they must not displace harmless ones.
    admitted.sort(key=lambda candidate: (bool(lesson_suspicion(candidate)), -candidate.importance))
    return [
        candidate if candidate.importance >= least_importance else replace(candidate, is_known_only=True)
        for candidate in drop_duplicates(admitted)
    ]


def comparable_lessons(candidate: Candidate, lessons: Iterable[Lesson]) -> list[Lesson]:
    """Return the lessons that a mined candidate may meet: suspicious words only meet suspicious ones.

    Otherwise the output of a tool could reword a lesson that is believed, or a quarantined lesson could
    absorb a harmless one.
    """
    if lesson_suspicion(candidate):
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
    words_from = sighting.words_from
    if candidate.record is not None:
        noted = candidate.record.extra.items()
        extra = {name: value for name, value in noted if name not in (CLAIMED, MET_HERE)}
        draft = replace(
            candidate.record,
            **said,
            extra=extra,
            unseen_from=unseen_from,
            provenance=words_from,
            accepted=sighting.is_accepted,
        )
        # Only a person's own words, or a file that a person accepted, may say that a person agreed.
        is_vouched = words_from is Provenance.TYPED or sighting.is_accepted
        return draft if is_vouched else replace(draft, confirmed=False)
    return Lesson(
        **(said | {"evidence": merge_evidence(candidate.evidence, _sighting_evidence(candidate, sighting))}),
        id="",
        created=sighting.now,
        updated=sighting.now,
        edited=sighting.now,
        actor=sighting.actor,
        runs=merge_sets(candidate.earlier_runs, () if candidate.is_overcome else (sighting.counted,)),
        origin_run=sighting.run,
        last_seen_run=sighting.run,
        last_seen=sighting.seen,
        unseen_from=unseen_from,
        provenance=words_from,
        brought_by=sighting.brought_by,
        extra=dict(candidate.notes),
    )


def adopt_lesson(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
    """Return a lesson that others brought and that the user or an own run has now met: in the words of those.

    What others wrote beside those words, and the runs that they claim, are not believed; how many they
    claim is noted.
    """
    draft = draft_lesson(candidate, sighting)
    extra = {**draft.extra, **note_claim(known)}
    created = min(known.created, draft.created)
    return replace(draft, id=known.id, number=known.number, created=created, extra=extra)


def refine_lesson(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson | None:
    """Return the draft that supersedes a known lesson because it says what to do, or None if it does not."""
    has_remedy, had_remedy = (bool(each.remedies or each.rule) for each in (candidate, known))
    if not known.status.is_live or known.confirmed or had_remedy or not has_remedy:
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


def may_be_superseded(lesson: Lesson) -> bool:
    """Say whether a model's words may take a lesson's place: never a person's own or approved words."""
    is_mined = lesson.provenance is Provenance.MINED and lesson.source is not Source.MANUAL
    return lesson.status.is_live and is_mined and not is_confirmed(lesson) and not lesson.is_waiting


def succeed_lessons(older: Sequence[Lesson], candidate: Candidate, sighting: Sighting) -> Lesson:
    """Return the draft that says in a model's words what some lessons say, with all that they know."""
    first = older[0]
    draft = replace(
        first,
        id="",
        number=0,
        created=min(lesson.created for lesson in older),
        updated=sighting.now,
        edited=sighting.now,
        summary=_with_figure(candidate.summary, first.summary),
        # The condition of the same remedy stays.
        rule=candidate.rule or (first.rule if first.remedies else ""),
        detail=candidate.detail or first.detail,
        signature=candidate.key,
        category=candidate.category,
        tool=candidate.tool,
        actor=sighting.actor,
        origin=candidate.origin,
        importance=max(candidate.importance, *(lesson.importance for lesson in older)),
        remedies=tuple(dict.fromkeys(chain(candidate.remedies, *(lesson.remedies for lesson in older)))),
        extra={**first.extra, **candidate.notes},
    )
    for other in older[1:]:
        draft = replace(
            draft,
            runs=merge_sets(draft.runs, other.runs),
            tags=merge_sets(draft.tags, other.tags),
            evidence=merge_evidence(draft.evidence, other.evidence),
            faded=min(draft.faded, other.faded),
        )
    if not sighting.run:
        return draft
    # A run that was counted already adds what the model cites of it.
    cited = merge_evidence(draft.evidence, _sighting_evidence(candidate, sighting))
    return replace(record_sighting(draft, candidate, sighting), evidence=cited)


def _with_figure(summary: str, counted: str) -> str:
    """Return a summary that says how often the remedy helped, where the mined words do."""
    figure = _FIGURE.search(counted)
    return f"{_FIGURE.sub('', summary).rstrip('.')}{figure[0]}" if figure else summary


def record_sighting(lesson: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
    """Return the lesson after a run met it, once; what people retired is not met, nor what a run overcame."""
    if (
        candidate.is_overcome
        or (lesson.status.is_retired and not lesson.is_found_useless)
        or {sighting.run, sighting.counted} & set(lesson.runs)
    ):
        return lesson
    seen = sighting.seen or sighting.now
    is_met_here = sighting.is_counted and not lesson.provenance.is_own
    return replace(
        lesson,
        extra={**lesson.extra, MET_HERE: True} if is_met_here else lesson.extra,
        runs=merge_sets(lesson.runs, (sighting.counted,)),
        evidence=merge_evidence(lesson.evidence, _sighting_evidence(candidate, sighting)),
        last_seen_run=sighting.run,
        last_seen=max(seen, lesson.last_seen or seen),
        updated=max(sighting.now, lesson.updated),
        unseen_from=sighting.run_count,
    )


def meet_mined(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
    """Count the run, and take the newer words unless a person or a model chose the present ones."""
    seen = record_sighting(known, candidate, sighting)
    if sighting.knows_less_than(known):
        return seen
    is_own = known.source is Source.ARCHIVIST and not known.confirmed
    if is_own and known.origin == MODEL_ORIGIN and known.signature == candidate.key:
        # The words stay a model's; how often its remedy helped is counted.
        return replace(seen, summary=_with_figure(seen.summary, candidate.summary))
    is_chosen = not is_own or known.origin == MODEL_ORIGIN
    if is_chosen or known.signature != candidate.key:
        return seen
    worded = replace(
        seen,
        summary=candidate.summary,
        rule=candidate.rule or seen.rule,
        detail=candidate.detail or seen.detail,
        remedies=candidate.remedies or seen.remedies,
        provider=candidate.provider,
        importance=max(seen.importance, candidate.importance),
        tags=merge_sets(seen.tags, candidate.tags) if set(candidate.tags) - set(seen.tags) else seen.tags,
    )
    if worded == seen or (seen.rule and not candidate.rule):
        return seen
    return replace(worded, edited=sighting.now, updated=sighting.now)


def meet_reviewed(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
    """Count the run and cite the finding, also when another reviewer of the same run had found it before.

    The finding's category becomes a tag, and a fix that had to be fixed again makes it an anti-pattern,
    unless a person chose the lesson's words.
    """
    if known.status.is_retired:
        return known
    seen = record_sighting(known, candidate, sighting)
    cited = merge_evidence(seen.evidence, _sighting_evidence(candidate, sighting))
    if cited != seen.evidence:
        seen = replace(seen, evidence=cited, updated=max(sighting.now, seen.updated))
    if known.provenance is not Provenance.REVIEWED or is_confirmed(known):
        return seen
    changes: dict[str, Any] = {}
    known_tags = {tag.casefold() for tag in seen.tags}
    if new := tuple(tag for tag in candidate.tags if tag.casefold() not in known_tags):
        changes["tags"] = merge_sets(seen.tags, new)
    if candidate.type is LessonType.ANTI_PATTERN and seen.type is not LessonType.ANTI_PATTERN:
        changes |= {"type": candidate.type, "category": candidate.category, "rule": candidate.rule}
        changes["role"] = ""
    return replace(seen, **changes, edited=sighting.now, updated=sighting.now) if changes else seen


def learn_role(lesson: Lesson, finders: Sequence[str], *, now: datetime) -> Lesson:
    """Return the lesson as the hint of the role that mostly finds it, by the role of each sighting.

    When others come to find it too, it is a pattern for all again. What a person chose stays.
    """
    if lesson.provenance is not Provenance.REVIEWED or is_confirmed(lesson):
        return lesson
    if lesson.type is LessonType.ANTI_PATTERN:
        return lesson
    role, count = next(iter(Counter(finders).most_common(1)), ("", 0))
    is_hint = bool(role) and count >= _LEAST_SIGHTINGS and count >= _HINT_SHARE * len(finders)
    kind, role = (LessonType.ARCHETYPE_HINT, role) if is_hint else (LessonType.PATTERN, "")
    if (lesson.type, lesson.role) == (kind, role):
        return lesson
    return replace(lesson, type=kind, role=role, edited=now, updated=now)


def meet_said(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
    """Confirm a lesson that a person states again, with the fields that were stated this time."""
    draft = draft_lesson(candidate, sighting)
    stated = {name: getattr(draft, name) for name in candidate.given}
    confirmed = replace(known, runs=merge_sets(known.runs, draft.runs), **stated)
    if not is_confirmed(confirmed):
        confirmed = replace(confirmed, confirmed=True)
    return known if confirmed == known else replace(confirmed, updated=sighting.now, edited=sighting.now)


def meet_suggested(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
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


def meet_imported(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
    """Merge a file's version of a lesson into this bank's, as far as the file is believed."""
    believed = believe_imported(draft_lesson(candidate, sighting), known)
    if believed is known:
        return known
    believed = replace(believed, number=known.number)
    if known.is_waiting and not believed.is_waiting:
        # The words of this bank's version come from elsewhere: what a person accepted replaces them.
        return believed
    merged = merge_versions(known, believed)
    words_of = known if lesson_text(merged) == lesson_text(known) else believed
    return replace(
        merged,
        provenance=words_of.provenance,
        brought_by=words_of.brought_by,
        accepted=words_of.accepted,
    )


def believe_imported(draft: Lesson, known: Lesson | None) -> Lesson:
    """Return a file's version of a lesson as far as it is believed; the known lesson when it is not.

    Anybody can write into a file that a person approved a lesson. So a file that nobody accepted never
    changes what this bank believes. Suspicious words pass only when this bank approved the same words;
    others are quarantined, and never reword or retire a lesson of this bank.
    """
    if known is not None and draft.is_waiting and not known.is_waiting:
        return known
    is_held = known is not None and known.status is Status.QUARANTINED
    if not is_held and not lesson_suspicion(draft):
        return draft
    if known is None or is_held or known.is_waiting:
        return _quarantine_draft(draft)
    if known.status.is_retired or lesson_text(draft) != lesson_text(known):
        return known
    return _quarantine_draft(draft) if is_quarantined(known) else draft


def _quarantine_draft(draft: Lesson) -> Lesson:
    status = draft.status if draft.status.is_retired else Status.QUARANTINED
    return replace(draft, confirmed=False, status=status)


def meet_shared(known: Lesson, candidate: Candidate, sighting: Sighting) -> Lesson:
    """Merge another clone's version; only a sighting elsewhere restarts the count of unseen runs.

    What the user typed here stays hers, with its words and count; only tags of both are united.
    """
    merged = meet_imported(known, candidate, sighting)
    if known.provenance is Provenance.TYPED:
        tags = merge_sets(known.tags, merged.tags)
        return replace(known, tags=tags, updated=merged.updated) if set(tags) != set(known.tags) else known
    if candidate.record is not None and set(candidate.record.runs) <= set(known.runs):
        merged = replace(merged, unseen_from=known.unseen_from)
    # Shared lines hold tags in sorted order, which is no change.
    return replace(merged, tags=known.tags) if set(merged.tags) == set(known.tags) else merged


def _sighting_evidence(candidate: Candidate, sighting: Sighting) -> Evidence:
    return Evidence(
        episodes=(sighting.run,),
        sessions=(sighting.session,) if sighting.session else (),
        trajectories=sighting.trajectories,
        # A run's trajectory is known by the name of its log.
        logs=sighting.trajectories,
        events=candidate.events,
    )
