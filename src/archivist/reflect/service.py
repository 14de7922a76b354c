"""Work on reflection: trigger → context → account → candidates → gate → merge → persist → messages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist import bus as messages
from archivist.access.rights import Layer, reads, writes
from archivist.audit.verdicts import judge_lessons as judge_lessons
from archivist.brief.select import GENERAL
from archivist.capture.clean import clean_name
from archivist.capture.runs import find_run, root_run
from archivist.clock import to_text
from archivist.config import Config
from archivist.errors import ArchivistError
from archivist.lessons import gate
from archivist.lessons.candidate import Candidate, LessonChange, Provenance, Sighting
from archivist.reading.history import PastRun, RunHistory
from archivist.reading.run import read_run
from archivist.records import (
    ARCHIVIST,
    Episode,
    Event,
    EventKind,
    Lesson,
    Status,
    Usage,
)
from archivist.records.plain import to_plain
from archivist.records.words import NOTES as NOTES
from archivist.reflect.findings import Extraction, make_finding_candidate, run_findings
from archivist.reflect.miners import mine_candidates
from archivist.reflect.progress import with_lessons
from archivist.reflect.summary import RunSummary, summarise_run
from archivist.reflect.trigger import (
    ReflectionOutcome,
    ReflectionTrigger,
    Scenario,
    is_recurring_failure,
    is_reflection_enabled,
    scenario_of,
)
from archivist.service import BankService
from archivist.store.filters import at_least, contains_item, equals, not_equals, one_of
from archivist.store.protocol import Reader

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.results import QueuedRun

_HIGHLIGHT_AT = 0.8
_NOT_ASKED = "the configuration does not ask for it"
# More events than this on each side and what they hold would no longer fit into bounded memory.
_EVENTS_A_SIDE = 4_000
_LIVE = (Status.ACTIVE, Status.CANDIDATE, Status.QUARANTINED)


@dataclass(frozen=True, slots=True)
class ReflectionContext:
    """Everything that reflection looks at."""

    config: Config
    episode: Episode
    events: tuple[Event, ...]
    related: tuple[Episode, ...]
    lessons: tuple[Lesson, ...]
    progress: str
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Reflection:
    """What was learnt from one run."""

    run: str
    scenario: Scenario
    account: RunSummary
    failures: int
    created: tuple[Lesson, ...] = ()
    updated: tuple[Lesson, ...] = ()


def load_context(bank: Bank, run: str, memo: dict[str, Episode] | None = None) -> ReflectionContext:
    """Gather what reflection on a run needs, in one view of the bank; `memo` keeps runs read before."""
    with bank.reading() as reader:
        episode = find_run(reader, run)
        events = _events(reader, run)
        related = _related_runs(
            reader, episode, bank.config.reflect.related_runs, {} if memo is None else memo
        )
        lessons = reader.select(Lesson, one_of("status", _LIVE), one_of("repo", (episode.project, "")))
    path = _progress_file(bank)
    progress = path.read_text("utf-8", "replace") if path.is_file() else ""
    return ReflectionContext(
        bank.config, episode, tuple(events), related, tuple(lessons), progress, episode.usage
    )


def reflect(
    bank: Bank,
    run: str,
    scenario: Scenario | None = None,
    memo: dict[str, Episode] | None = None,
    domain: str = "",
) -> Reflection:
    """Learn from one run and from the findings of its reviewers. Reflecting on it again changes nothing."""
    looked = bank.now()
    run = clean_name(run)
    seen = load_context(bank, run, memo)
    why = scenario or scenario_of(seen.episode)
    bank.announce(messages.REFLECTION_START, run=run, scenario=why.value)
    reading = read_run(seen.episode, seen.events)
    digest = reading.digest
    past = RunHistory([_past_run(each) for each in seen.related])
    candidates = gate.admit_candidates(
        mine_candidates(reading, past),
        {event.id for event in seen.events},
        least_importance=seen.config.reflect.min_importance_to_persist,
    )
    told = [each for each in candidates if not gate.candidate_suspicion(each)]
    story = summarise_run(seen.episode, seen.events, reading, told)
    found = extract(bank, seen.episode.id, domain)
    created, updated = _persist(bank, seen, candidates, story, digest, looked)
    if memo is not None:
        memo[run] = bank.runs.episode(run)
    result = Reflection(
        run, why, story, _count_failures(digest), (*found.created, *created), (*found.met, *updated)
    )
    _announce_result(bank, result)
    return result


def maybe_reflect(bank: Bank, trigger: ReflectionTrigger) -> ReflectionOutcome:
    """Reflect when the configuration asks for it. Never raises: the outcome says what went wrong."""
    scenario = trigger.scenario or Scenario.SESSION_COMPLETE
    # What went wrong is announced and stored with the run's name.
    trigger = replace(trigger, run=clean_name(trigger.run))
    try:
        scenario, is_asked = _decide_scenario(bank, trigger.run, trigger.scenario)
        if not is_asked:
            return _learn_findings_only(bank, trigger.run, scenario, trigger.domain)
        done = reflect(bank, trigger.run, scenario, domain=trigger.domain)
    except Exception as error:  # noqa: BLE001 a run must not fail because its memory did
        reason = _error_text(error)
        bank.announce(messages.REFLECTION_FAILED, run=trigger.run, scenario=scenario.value, error=reason)
        return ReflectionOutcome(
            trigger.run, scenario, "skipped", error=reason, summary=f"reflection failed: {reason}"
        )
    return ReflectionOutcome(
        trigger.run,
        scenario,
        "reflected",
        created=len(done.created),
        updated=len(done.updated),
        summary=done.account.outcome,
        created_lessons=done.created,
        updated_lessons=done.updated,
    )


def _learn_findings_only(bank: Bank, run: str, scenario: Scenario, domain: str = "") -> ReflectionOutcome:
    """Learn what reviewers found in a run that the configuration does not ask to reflect on."""
    found = extract(bank, run, domain)
    return ReflectionOutcome(
        run,
        scenario,
        "skipped",
        created=len(found.created),
        updated=len(found.met),
        summary=_NOT_ASKED,
        created_lessons=found.created,
        updated_lessons=found.met,
    )


def reflect_waiting(
    bank: Bank, *, scenario: Scenario | None = None
) -> Iterator[Reflection | ReflectionOutcome]:
    """Reflect on every run that waits, oldest first; a failure is an outcome, and the run waits again.

    Each run is leased: two processes never reflect on the same one, and a crash gives it back in time.
    """
    holder = f"{os.getpid()}-{bank.new_id(bank.now())}"
    errors: dict[str, str] = {}
    memo: dict[str, Episode] = {}
    try:
        while run := _lease(bank, holder):
            try:
                done = _reflect_if_wanted(bank, run, scenario, memo)
            except Exception as failure:  # noqa: BLE001 one run that breaks a miner must not stop the others
                # Its lease is kept until the end, so that this round does not try it again.
                errors[run] = _error_text(failure)
                done = ReflectionOutcome(run, scenario or Scenario.BATCH, "skipped", error=errors[run])
            except BaseException:
                # Somebody stopped us, which says nothing of the run.
                with bank.transaction() as writer:
                    writer.release_lease(run, holder)
                raise
            else:
                with bank.transaction() as writer:
                    writer.end_lease(run, holder)
            yield done
    finally:
        with bank.transaction() as writer:
            for run, error in errors.items():
                writer.end_lease(run, holder, error)


def _reflect_if_wanted(
    bank: Bank, run: str, scenario: Scenario | None, memo: dict[str, Episode]
) -> Reflection | ReflectionOutcome:
    """Reflect on a run unless the configuration does not ask for runs like it."""
    why, is_asked = _decide_scenario(bank, run, scenario)
    return reflect(bank, run, why, memo) if is_asked else _learn_findings_only(bank, run, why)


def _decide_scenario(bank: Bank, run: str, scenario: Scenario | None) -> tuple[Scenario, bool]:
    """Return why to reflect on a run and whether it is asked for; a pattern always asks for itself."""
    rules = bank.config.reflect
    why = scenario or scenario_of(bank.runs.episode(run))
    if is_reflection_enabled(why, rules):
        return why, True
    if rules.enabled and _is_pattern(bank, run):
        return Scenario.PATTERN_DETECTED, True
    return why, False


def _is_pattern(bank: Bank, run: str) -> bool:
    """Note the failures of a run that is not reflected on, and say whether one of them makes a pattern."""
    seen = load_context(bank, run)
    digest = to_plain(read_run(seen.episode, seen.events).digest)
    with bank.acting_as(ARCHIVIST).transaction() as writer:
        current = find_run(writer, run)
        writer.put(replace(current, extra={**current.extra, NOTES: digest}), "note")
    earlier = [_digest(each).get("failures") or () for each in seen.related]
    at_runs = bank.config.reflect.pattern_at_runs
    return is_recurring_failure(digest.get("failures") or (), earlier, at_runs=at_runs)


def _error_text(error: Exception) -> str:
    return error.message if isinstance(error, ArchivistError) else repr(error)


def _lease(bank: Bank, holder: str) -> str:
    """Take the run that has waited longest; an empty name when none waits."""
    with bank.transaction() as writer:
        until = bank.now() + timedelta(seconds=bank.config.reflect.lease_s)
        return next(iter(writer.lease(holder, until)), "")


def recent_runs(bank: Bank, days: int) -> list[str]:
    """Return the runs that ended within the last days, oldest first."""
    since = bank.now() - timedelta(days=days)
    with bank.reading() as reader:
        # Attempts are logged without anything to reflect on.
        ended = (at_least("finished", to_text(since)), equals("action", None))
        episodes = reader.select(Episode, *ended, order=("finished", "id"))
    return [episode.id for episode in episodes]


def _persist(
    bank: Bank,
    seen: ReflectionContext,
    candidates: Sequence[Candidate],
    story: RunSummary,
    digest: dict[str, Any],
    looked: datetime,
) -> tuple[list[Lesson], list[Lesson]]:
    """Write the run's account and what it teaches, as one change in the archivist's name."""
    episode = seen.episode
    archivist = bank.acting_as(ARCHIVIST)
    with archivist.transaction() as writer:
        now = bank.now()
        sighting = Sighting(
            provenance=Provenance.MINED,
            actor=ARCHIVIST,
            now=now,
            run_count=episode.number or writer.run_count() + 1,
            run=episode.id,
            counted=root_run(writer, episode),
            session=episode.session,
            trajectories=episode.trajectories,
            project=episode.project,
            seen=episode.finished or episode.started or now,
        )
        dated = []
        for candidate in candidates:
            earlier = tuple(root_run(writer, each) for each in seen.related if _has_met(each, candidate))
            dated.append(replace(candidate, earlier_runs=earlier))
        most = bank.config.reflect.max_memories_per_run
        kept = archivist.lessons.keep_many(dated, sighting, max_created=most)
        created = [each.lesson for each in kept if each.is_new]
        changed = (LessonChange.MET, LessonChange.REFINED)
        updated = [each.lesson for each in kept if each.change in changed]
        noted = to_plain({**digest, **asdict(story)})
        # What came in since we looked is not in it yet.
        writer.dequeue_run(episode.id, looked)
        current = find_run(writer, episode.id)
        # What an earlier look wrote is told anew by a later one; what others wrote stays.
        is_ours = current.summary in ("", _digest(current).get("outcome"))
        summary = story.outcome if is_ours else current.summary
        writer.put(replace(current, summary=summary, extra={**current.extra, NOTES: noted}), "reflect")
    return created, updated


def _events(reader: Reader, run: str) -> list[Event]:
    """Return a run's events in order; of an endless run its beginning and its end."""
    if reader.count(Event, equals("run", run)) <= 2 * _EVENTS_A_SIDE:
        return reader.select(Event, equals("run", run), order=("seq",))
    first = reader.select(Event, equals("run", run), order=("seq",), limit=_EVENTS_A_SIDE)
    last = reader.select(Event, equals("run", run), order=("-seq",), limit=_EVENTS_A_SIDE)
    return [*first, *reversed(last)]


def _related_runs(
    reader: Reader, episode: Episode, limit: int, memo: dict[str, Episode]
) -> tuple[Episode, ...]:
    """Return the runs that were reflected on before, the latest ones, this one left out."""
    others = (not_equals("id", episode.id), equals("action", None))
    rows = reader.select_fields(Episode, ("id",), *others, order=("-finished", "-id"), limit=limit)
    found = []
    for (run,) in reversed(rows):
        if run not in memo:
            each = reader.get(Episode, run)
            if each is None:
                continue
            memo[run] = each
        if NOTES in memo[run].extra:
            found.append(memo[run])
    return tuple(found)


def _past_run(episode: Episode) -> PastRun:
    return PastRun(
        run=episode.id,
        project=episode.project,
        provider=episode.provider,
        model=episode.model,
        status=episode.status.value,
        finished=episode.finished,
        digest=_digest(episode),
        task=episode.task,
    )


def _digest(episode: Episode) -> dict[str, Any]:
    notes = episode.extra.get(NOTES)
    return notes if isinstance(notes, dict) else {}


def _has_met(episode: Episode, candidate: Candidate) -> bool:
    return candidate.key in _digest(episode).get("failures", {})


def _count_failures(digest: dict[str, Any]) -> int:
    return sum(int(each.get("n", 1)) for each in (digest.get("failures") or {}).values())


def _announce_result(bank: Bank, done: Reflection) -> None:
    added = len(done.created)
    if added:
        bank.announce(messages.MEMORIES_ADDED, run=done.run, scenario=done.scenario.value, count=added)
    told = [lesson for lesson in (*done.created, *done.updated) if lesson.status is not Status.QUARANTINED]
    for lesson in told:
        is_pattern = lesson.frequency == bank.config.reflect.pattern_at_runs
        if lesson.importance >= _HIGHLIGHT_AT or is_pattern:
            scenario = Scenario.PATTERN_DETECTED if is_pattern else done.scenario
            bank.announce(
                messages.MEMORY_HIGHLIGHT,
                lesson=lesson.short_id,
                summary=lesson.summary,
                importance=lesson.importance,
                scenario=scenario.value,
            )
    bank.announce(
        messages.REFLECTION_COMPLETE,
        run=done.run,
        scenario=done.scenario.value,
        created=added,
        updated=len(done.updated),
    )
    if bank.config.reflect.write_progress:
        _write_progress(bank, told)


def _progress_file(bank: Bank) -> Path:
    return bank.path.absolute().parent.parent / "progress.md"


def _write_progress(bank: Bank, lessons: Sequence[Lesson]) -> None:
    path = _progress_file(bank)
    before = path.read_text("utf-8", "replace") if path.is_file() else ""
    after = with_lessons(before, lessons)
    if after != before:
        path.write_text(after, encoding="utf-8")


def extract(bank: Bank, run: str, domain: str) -> Extraction:
    """Learn from the review findings of a captured run."""
    run = clean_name(run)
    with bank.transaction() as writer:
        episode = find_run(writer, run)
        found = run_findings(_events_of_kind(writer, run, EventKind.VERDICT))
        # A finding that a lesson cites was extracted before, whatever became of that lesson.
        counted = writer.select(Lesson, contains_item("runs", run)) if found else []
        cited = {event for lesson in counted for event in lesson.evidence.events}
        domain = domain or episode.domain or GENERAL
        candidates = [
            make_finding_candidate(each, domain=domain, rules=bank.config.lessons)
            for each in found
            if each.id not in cited
        ]
        if not candidates:
            return Extraction()
        now = bank.now()
        sighting = Sighting(
            provenance=Provenance.REVIEWED,
            actor=bank.actor,
            now=now,
            run_count=episode.number or writer.run_count() + 1,
            run=run,
            counted=run,
            seen=now,
        )
        kept = bank.lessons.keep_many(candidates, sighting)
    return Extraction(
        met=tuple(each.lesson for each in kept if each.change is LessonChange.MET),
        created=tuple(each.lesson for each in kept if each.is_new),
        slight=sum(each.change is LessonChange.DROPPED for each in kept),
    )


def _events_of_kind(reader: Reader, run: str, kind: EventKind) -> list[Event]:
    return reader.select(Event, equals("run", run), equals("kind", kind), order=("seq",))


class Reflections(BankService):
    """What is learnt from runs."""

    @writes(Layer.RUNS)
    def extract(self, run: str, *, domain: str = "") -> Extraction:
        """Learn from the review findings of a captured run."""
        return extract(self._bank, run, domain)

    @writes(Layer.RUNS)
    def reflect(self, run: str, *, scenario: Scenario | None = None) -> Reflection:
        """Learn from a captured run without a language model. Reflecting on it again changes nothing."""
        return reflect(self._bank, run, scenario)

    @writes(Layer.RUNS)
    def maybe_reflect(self, trigger: ReflectionTrigger) -> ReflectionOutcome:
        """Reflect when the configuration asks for it; never raises into a run."""
        return maybe_reflect(self._bank, trigger)

    @writes(Layer.RUNS)
    def reflect_waiting(
        self, *, scenario: Scenario | None = None
    ) -> Iterator[Reflection | ReflectionOutcome]:
        """Reflect on every run that waits, oldest first, as the iterator is drawn."""
        return reflect_waiting(self._bank, scenario=scenario)

    @reads(Layer.RUNS)
    def recent_runs(self, days: int) -> list[str]:
        """Return the runs that ended within the last days, oldest first."""
        return recent_runs(self._bank, days)

    @reads(Layer.RUNS)
    def waiting_runs(self) -> list[QueuedRun]:
        """Return the runs that wait for reflection."""
        with self._bank.reading() as reader:
            return reader.queued_runs()
