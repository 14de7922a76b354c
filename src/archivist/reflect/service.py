"""Reflect on runs: context → summary → candidates → gate → store → messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import TYPE_CHECKING, Any

from archivist import bus as messages
from archivist.access.rights import Layer, reads, writes
from archivist.brief.select import GENERAL
from archivist.capture.clean import clean_name
from archivist.capture.results import ExtractResult
from archivist.capture.runs import counted_run, find_run, is_run_of, require_own_run, resolve_run
from archivist.clock import to_text
from archivist.config import Config, LessonRules
from archivist.errors import ArchivistError, BankError
from archivist.files.processes import is_process_gone, name_process
from archivist.lessons.candidate import Candidate, KeptLesson, LessonChange, Sighting
from archivist.recall.keywords import says_nothing
from archivist.records import (
    ARCHIVIST,
    ActorKind,
    Brief,
    Category,
    Episode,
    EpisodeKind,
    Event,
    EventKind,
    Evidence,
    Finding,
    Lesson,
    LessonType,
    Provenance,
    Scope,
    Severity,
    Source,
    Status,
    Usage,
)
from archivist.records.lesson import LONGEST_CHARACTERS
from archivist.records.plain import to_plain
from archivist.records.run_words import DECIDED, LEFT_FAILING, EpisodeStatus
from archivist.records.words import BY_MODEL, NOTES
from archivist.reflect.trigger import (
    ReflectionOutcome,
    ReflectionTrigger,
    Scenario,
    is_recurring_failure,
    is_reflection_enabled,
    scenario_of,
)
from archivist.service import BankService
from archivist.store.filters import (
    Condition,
    any_of,
    at_least,
    at_most,
    contains_item,
    equals,
    not_equals,
    one_of,
)
from archivist.text import shorten

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.reading.history import RunHistory
    from archivist.reading.run import RunReading
    from archivist.reflect.summary import RunSummary
    from archivist.store.protocol import Writer
    from archivist.store.results import QueuedRun

# The importance of a lesson by the severity of its finding, until verdicts say more.
IMPORTANCE = {Severity.BUG: 0.8, Severity.WARNING: 0.6, Severity.INFO: 0.4, Severity.RECOMMENDATION: 0.3}
# From this importance on a lesson is announced by itself.
_HIGHLIGHT_AT = 0.8
# Four times the longest summary.
_LONGEST_FINDING = 4 * LONGEST_CHARACTERS
_NOT_ASKED = "the configuration does not ask for it"
# What later runs are told as it was noted is noted of the user's own runs alone.
_NOTHING_TOLD: dict[str, Any] = {"failures": {}, "works": [], "asked": [], "noise": {}}
# Of a longer run the beginning and the end are read, so that memory stays bounded.
_EVENTS_A_SIDE = 4_000
# The runs that an agent reflects on in one call; a statement of SQLite has 32,766 variables at most.
_MOST_OF_AGENT = 10_000
_LIVE = (Status.ACTIVE, Status.CANDIDATE, Status.QUARANTINED)
# An orchestrator writes its progress file when its agents have ended.
_LEAST_COMPARED = 5
_PROGRESS_GRACE = timedelta(minutes=10)
# A lease is renewed so many times before it would end: two renewals may fail.
_RENEWALS = 3


def make_finding_candidate(
    finding: Finding, event: str, *, domain: str, rules: LessonRules, fixed_in: str = ""
) -> Candidate:
    """Make the candidate of a finding; below the configured severity it may only meet a known lesson.

    The domain is the run's, the finding's category a tag. `fixed_in` names the run whose fix had to be fixed
    again: what was tried and failed is an anti-pattern.
    """
    category = finding.category.strip()
    is_bad = bool(fixed_in) or finding.severity is Severity.BUG
    # The run keeps the whole; judging 30 kB took a second.
    told = shorten(finding.description.strip(), _LONGEST_FINDING)
    return Candidate(
        summary=shorten(told, LONGEST_CHARACTERS),
        detail=told if len(told) > LONGEST_CHARACTERS else "",
        rule=f"The fix of {fixed_in} did not hold and was fixed again" if fixed_in else "",
        type=LessonType.ANTI_PATTERN if fixed_in else LessonType.PATTERN,
        category=Category.ANTI_PATTERN if is_bad else Category.HEURISTIC,
        scope=Scope.PROJECT,
        domain=domain or GENERAL,
        tags=(category,) if category else (),
        importance=IMPORTANCE[finding.severity],
        severity=finding.severity,
        origin=finding.found_by,
        events=(event,),
        is_known_only=finding.severity.rank < rules.candidate_severity.rank or says_nothing(told),
        is_finding=True,
    )


@dataclass(frozen=True, slots=True)
class ReflectionContext:
    """Everything that reflection on a run reads."""

    config: Config
    episode: Episode
    events: tuple[Event, ...]
    related: tuple[Episode, ...]
    lessons: tuple[Lesson, ...]
    progress: str

    @property
    def usage(self) -> Usage | None:
        """Return what the run spent."""
        return self.episode.usage

    @property
    def usual_tokens(self) -> float:
        """Return the median of the tokens that earlier runs of the project took; 0 if they are too few."""
        own = [run for run in self.related if run.project == self.episode.project]
        spent = sorted(tokens for run in own if (tokens := int(notes_of(run).get("tokens") or 0)))
        return spent[len(spent) // 2] if len(spent) >= _LEAST_COMPARED else 0


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
    """Load what reflection on a run needs, in one view of the bank; `memo` keeps runs read before."""
    with bank.reading() as reader:
        episode = find_run(reader, run)
        if notes_of(episode).get(LEFT_FAILING) and DECIDED not in episode.extra:
            episode = replace(episode, status=EpisodeStatus.SUCCESS)
        of_run = equals("run", run)
        if reader.count(Event, of_run) <= 2 * _EVENTS_A_SIDE:
            events = reader.select(Event, of_run, order=("seq",))
        else:
            events = reader.select(Event, of_run, order=("seq",), limit=_EVENTS_A_SIDE)
            events += reversed(reader.select(Event, of_run, order=("-seq",), limit=_EVENTS_A_SIDE))
        # The latest own runs that were reflected on before, without this one.
        memo = {} if memo is None else memo
        is_own = equals("provenance", Provenance.MINED)
        others: list[Condition] = [not_equals("id", episode.id), equals("action", None), is_own]
        if NOTES in episode.extra and episode.finished:
            # A run that is read again knows what it knew: later runs counted what they share with it.
            before = at_most("finished", to_text(episode.finished))
            others.append(any_of((before,), (equals("finished", None),)))
        limit = bank.config.reflect.related_runs
        latest = reader.select_fields(Episode, ("id",), *others, order=("-finished", "-id"), limit=limit)
        # In one go: on a server each question is a way there and back.
        memo |= reader.records("episode", [other for (other,) in latest if other not in memo])
        known = (memo[other] for (other,) in reversed(latest) if other in memo)
        related = [other for other in known if NOTES in other.extra]
        lessons = reader.select(Lesson, one_of("status", _LIVE), one_of("repo", (episode.project, "")))
    progress = _progress_of(bank, episode)
    return ReflectionContext(bank.config, episode, tuple(events), tuple(related), tuple(lessons), progress)


def reflect(
    bank: Bank,
    run: str,
    scenario: Scenario | None = None,
    memo: dict[str, Episode] | None = None,
    domain: str = "",
    *,
    is_ageing: bool = False,
) -> Reflection:
    """Learn from one run and from the findings of its reviewers. Reflecting on it again changes nothing.

    With `is_ageing` the run ages the bank in the same transaction.
    """
    # To learn from findings, and to list what waits, must not cost the 50 ms that the miners take to import.
    from archivist.lessons import gate
    from archivist.reflect.miners import mine_candidates

    looked = bank.now()
    run = clean_name(run)
    seen = load_context(bank, run, memo)
    why = scenario or scenario_of(seen.episode)
    session = seen.episode.session
    bank.announce(messages.REFLECTION_START, run=run, session=session, scenario=why.value)
    reading = read_context(seen)
    digest = _digest_of(reading)
    candidates = gate.admit_candidates(
        mine_candidates(reading, history_of(seen)),
        {event.id for event in seen.events},
        least_importance=seen.config.reflect.min_importance_to_persist,
    )
    story = tell_run(seen, reading)
    found = bank.reflections.extract(seen.episode.id, domain=domain)
    with bank.transaction():
        created, updated = _persist(bank, seen, candidates, story, digest, reading, looked)
        if is_ageing:
            # Together: the run leaves the queue with its lessons, and nobody would age the bank later.
            _age(bank, run)
    if memo is not None:
        memo[run] = bank.runs.episode(run)
    learnt = (*found.created, *created), (*found.updated, *updated)
    result = Reflection(run, why, story, len(reading.met), *learnt)
    _announce_result(bank, result, seen.episode)
    return result


def tell_run(seen: ReflectionContext, reading: RunReading) -> RunSummary:
    """Return the account of a run, with what is known of its project besides."""
    from archivist.reflect.summary import Background, summarise_run

    background = Background(seen.lessons, seen.progress, seen.usual_tokens)
    return summarise_run(seen.episode, seen.events, reading, background)


def read_context(seen: ReflectionContext) -> RunReading:
    """Read the run of a context, with what the project's runs before it noted."""
    from archivist.lessons.risky_text import borrowed_voice, suspicion
    from archivist.reading.run import read_run

    def judge(*texts: str) -> str:
        # As the gate judges a lesson on a failure: what a digest holds is told without it.
        return suspicion(*texts) or borrowed_voice(*texts)

    of_project = (episode for episode in seen.related if episode.project == seen.episode.project)
    earlier = [notes_of(episode) for episode in of_project] if seen.episode.project else []
    return read_run(seen.episode, seen.events, suspicion=judge, earlier=earlier)


def history_of(seen: ReflectionContext) -> RunHistory:
    """Return the related runs as miners compare with them."""
    from archivist.reading.history import PastRun, RunHistory

    return RunHistory(
        [
            PastRun(
                run=episode.id,
                project=episode.project,
                provider=episode.provider,
                digest=notes_of(episode),
                task=episode.task,
                model=episode.model,
                parent=episode.parent,
                started=episode.started,
            )
            for episode in seen.related
        ]
    )


def make_sighting(bank: Bank, writer: Writer, episode: Episode) -> Sighting:
    """Return the sighting of what was learnt from a run: a session with its parts counts once."""
    now, session = bank.now(), writer.get(Episode, counted_run(writer, episode)) or episode
    is_own_run = writer.is_own_run(episode.id)
    origin = None if is_own_run else writer.run_origin(episode.id)
    return Sighting(
        provenance=Provenance.MINED,
        actor=ARCHIVIST,
        now=now,
        run_count=session.number or writer.run_count() + 1,
        run=episode.id,
        counted=session.id,
        session=episode.session,
        trajectories=episode.trajectories,
        project=episode.project,
        seen=episode.finished or episode.started or now,
        is_own_run=is_own_run,
        brought_by=origin.actor.name if origin and origin.actor.kind is ActorKind.AGENT else "",
        is_again=NOTES in episode.extra,
    )


def _learn_findings_only(bank: Bank, run: str, scenario: Scenario, domain: str = "") -> ReflectionOutcome:
    """Learn what reviewers found in a run that the configuration does not ask to reflect on."""
    found = bank.reflections.extract(run, domain=domain)
    return ReflectionOutcome(
        run,
        scenario,
        "skipped",
        created=len(found.created),
        updated=len(found.updated),
        summary=_NOT_ASKED,
        created_lessons=found.created,
        updated_lessons=found.updated,
    )


def _decide_scenario(bank: Bank, run: str, scenario: Scenario | None) -> tuple[Scenario, bool]:
    """Return why to reflect on a run, and whether to. A recurring failure is always reflected on."""
    rules = bank.config.reflect
    why = scenario or scenario_of(bank.runs.episode(run))
    if is_reflection_enabled(why, rules):
        return why, True
    if not rules.enabled:
        return why, False
    # The failures are stored all the same, so that later runs can see a pattern.
    seen = load_context(bank, run)
    reading = read_context(seen)
    digest = to_plain(_digest_of(reading))
    with bank.acting_as(ARCHIVIST).transaction() as writer:
        current = find_run(writer, run)
        if not writer.is_own_run(run):
            digest = {**digest, **_NOTHING_TOLD}
        writer.put(replace(current, extra={**current.extra, NOTES: digest}), "note")
    earlier = [_failures(notes_of(episode)) for episode in seen.related]
    met = [each.key for each in reading.met if each.key in _failures(digest)]
    if is_recurring_failure(met, earlier, at_runs=rules.pattern_at_runs):
        return Scenario.PATTERN_DETECTED, True
    return why, False


def _age(bank: Bank, run: str) -> None:
    """Let a run of the user's own age the bank; a subagent's is part of its session, which does."""
    with bank.reading() as reader:
        episode = find_run(reader, run)
        is_counted = counted_run(reader, episode) == episode.id and reader.is_own_run(run)
    if is_counted:
        bank.lessons.decay(run)


def _error_text(error: Exception) -> str:
    return error.message if isinstance(error, ArchivistError) else repr(error)


def _persist(
    bank: Bank,
    seen: ReflectionContext,
    candidates: Sequence[Candidate],
    story: RunSummary,
    digest: dict[str, Any],
    reading: RunReading,
    looked: datetime,
) -> tuple[tuple[Lesson, ...], tuple[Lesson, ...]]:
    """Write the run's account and what it teaches, as one change in the archivist's name."""
    from archivist.reading.run import run_tags
    from archivist.reflect.summary import settle_status

    episode = seen.episode
    archivist = bank.acting_as(ARCHIVIST)
    with archivist.transaction() as writer:
        sighting = make_sighting(bank, writer, episode)
        dated = list(_cite_earlier(writer, seen, candidates, sighting))
        # However often a run is looked at; what agents suggested or reviewers found is counted apart.
        made = equals("origin_run", episode.id), equals("provenance", Provenance.MINED)
        room = max(0, bank.config.reflect.max_memories_per_run - writer.count(Lesson, *made))
        kept = archivist.lessons.keep_many(dated, sighting, max_created=room)
        created, updated = split_kept(kept)
        # What a model told of the same events stays; it is not asked again.
        by_model = notes_of(find_run(writer, episode.id)).get(BY_MODEL) or {}
        account = by_model.get("account") if by_model.get("events") == len(seen.events) else {}
        noted = to_plain({**digest, **asdict(story), **(account or {})})
        noted |= {BY_MODEL: by_model} if by_model else {}
        if not sighting.is_own_run:
            noted |= _NOTHING_TOLD
        settled = settle_status(episode, seen.events, reading).status
        noted |= {LEFT_FAILING: True} if settled is not episode.status else {}
        # What came in since we looked is not in it yet.
        writer.dequeue_run(episode.id, looked)
        current = find_run(writer, episode.id)
        is_settled = LEFT_FAILING in noted or LEFT_FAILING in notes_of(current)
        status = settled if is_settled else current.status
        # What an earlier look wrote is told anew by a later one; what others wrote stays.
        summary = noted["outcome"] if has_our_summary(current) else current.summary
        tags = tuple(dict.fromkeys((*current.tags, *run_tags(reading))))
        usage = current.usage
        if calls := len(reading.acts):
            # Reflection also sees the failures that a pipe or a wrapper hides.
            failed = sum(act.has_failed for act in reading.acts)
            usage = replace(usage or Usage(), efficiency=round(1 - failed / calls, 3))
        noted_run = replace(
            current, status=status, summary=summary, tags=tags, usage=usage,
            extra={**current.extra, NOTES: noted},
        )  # fmt: skip
        writer.put(noted_run, "reflect")
    return created, updated


def split_kept(kept: Iterable[KeptLesson]) -> tuple[tuple[Lesson, ...], tuple[Lesson, ...]]:
    """Return the lessons that are new, and those that were met again or refined."""
    kept = list(kept)
    changed = (LessonChange.MET, LessonChange.REFINED)
    return (
        tuple(each.lesson for each in kept if each.is_new),
        tuple(each.lesson for each in kept if each.change in changed),
    )


def has_our_summary(episode: Episode) -> bool:
    """Say whether reflection wrote a run's summary, or nobody did yet."""
    return episode.summary in ("", notes_of(episode).get("outcome"))


def _cite_earlier(
    writer: Writer, seen: ReflectionContext, candidates: Sequence[Candidate], sighting: Sighting
) -> Iterator[Candidate]:
    """Yield candidates with the earlier runs of the project that met the same."""
    from archivist.lessons.standing import merge_evidence

    is_healer = seen.episode.kind is EpisodeKind.HEALER_RUN
    for candidate in candidates:
        # Whoever brings a log can write into it what its user typed.
        if candidate.type is LessonType.PREFERENCE and not sighting.is_own_run:
            continue
        met_in = [
            each
            for each in seen.related
            if candidate.key in _failures(notes_of(each)) or each.id in candidate.earlier_runs
        ]
        shown = [_failures(notes_of(each)).get(candidate.key, {}).get("events") or () for each in met_in]
        evidence = Evidence(
            episodes=tuple(each.id for each in met_in), events=tuple(chain.from_iterable(shown))
        )
        earlier = tuple(counted_run(writer, each) for each in met_in)
        source = Source.HEALER if is_healer else candidate.source
        evidence = merge_evidence(candidate.evidence, evidence)
        yield replace(candidate, earlier_runs=earlier, evidence=evidence, source=source)


def notes_of(episode: Episode) -> dict[str, Any]:
    """Return what reflection noted about a run."""
    notes = episode.extra.get(NOTES)
    return notes if isinstance(notes, dict) else {}


def _digest_of(reading: RunReading) -> dict[str, Any]:
    """Return what is noted of a run, with what its user asked for.

    A later run that hears a request again tells it, so nothing suspicious.
    """
    from archivist.lessons.risky_text import suspicion
    from archivist.reflect.miners.wishes import find_typed_requests

    requests = (request for _, made in find_typed_requests(reading) for request in made)
    asked = [request.as_row() for request in requests if not suspicion(request.words, "")]
    return {**reading.digest, "asked": asked}


def _failures(digest: dict[str, Any]) -> dict[str, Any]:
    return digest.get("failures") or {}


def _announce_result(bank: Bank, done: Reflection, episode: Episode) -> None:
    added = len(done.created)
    about = {"run": done.run, "session": episode.session, "scenario": done.scenario.value}
    if added:
        bank.announce(messages.MEMORIES_ADDED, **about, count=added)
    told = [
        lesson
        for lesson in (*done.created, *done.updated)
        if lesson.status is not Status.QUARANTINED and not lesson.is_waiting
    ]
    for lesson in told:
        is_pattern = lesson.frequency == bank.config.reflect.pattern_at_runs
        if lesson.importance >= _HIGHLIGHT_AT or is_pattern:
            scenario = Scenario.PATTERN_DETECTED if is_pattern else done.scenario
            bank.announce(
                messages.MEMORY_HIGHLIGHT,
                **about | {"scenario": scenario.value},
                lesson=lesson.short_id,
                summary=lesson.summary,
                importance=lesson.importance,
            )
    bank.announce(
        messages.REFLECTION_COMPLETE,
        **about,
        created=added,
        updated=len(done.updated),
    )
    if bank.config.reflect.write_progress:
        from archivist.files.write import replace_file
        from archivist.reflect.progress import append_lessons

        path = _progress_file(bank)
        before = _read_progress(path)
        day = (episode.finished or episode.started or bank.now()).date()
        after = append_lessons(before, f"{day}, run {done.run}", told)
        # A link leads to somebody else's file; what was learnt is in the bank all the same.
        if after != before and not path.is_symlink():
            replace_file(path, after.encode())


def _progress_file(bank: Bank) -> Path:
    return bank.path.absolute().parent.parent / "progress.md"


def _progress_of(bank: Bank, episode: Episode) -> str:
    """Return the progress file without our own section, if it was written while the run lasted."""
    from archivist.reflect.progress import read_progress

    path = _progress_file(bank)
    if episode.started is None or not path.is_file():
        return ""
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    if not episode.started <= written <= (episode.finished or bank.now()) + _PROGRESS_GRACE:
        return ""
    return read_progress(_read_progress(path))[0]


def _read_progress(path: Path) -> str:
    from archivist.files.open import read_bounded

    return read_bounded(path).decode("utf-8", "replace") if path.is_file() else ""


def is_abandoned(queued: QueuedRun) -> bool:
    """Say whether the process that reflected on a run has ended without saying how it went."""
    return bool(queued.holder and queued.leased_until) and is_process_gone(queued.holder)


@contextmanager
def _renewed_lease(bank: Bank, run: str, holder: str) -> Iterator[None]:
    """Renew a lease while the block works, on a connection of its own: the block's may be in a view."""
    lease_s, is_over = bank.config.reflect.lease_s, Flag()

    def renew() -> None:
        while not is_over.wait(lease_s / _RENEWALS):
            # A bank that cannot be written now can be at the next renewal.
            with (
                suppress(BankError),
                type(bank).open(bank.path, create=False, actor=bank.actor, config=bank.config) as own,
                own.transaction() as writer,
            ):
                if not writer.extend_lease(run, holder, bank.now() + timedelta(seconds=lease_s)):
                    return

    Thread(target=renew, daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


class Reflections(BankService):
    """What is learnt from runs."""

    @writes(Layer.RUNS)
    def extract(self, run: str, *, domain: str = "") -> ExtractResult:
        """Learn from the review findings of a captured run."""
        bank = self._bank
        run = clean_name(run)
        with bank.transaction() as writer:
            episode = find_run(writer, run)
            require_own_run(bank, writer, run)
            is_review = (equals("run", run), equals("kind", EventKind.VERDICT))
            reviews = writer.select(Event, *is_review, order=("seq",))
            counted = writer.select(Lesson, contains_item("runs", run)) if reviews else []
            # A finding that a lesson cites was extracted before, whatever became of that lesson.
            cited = {event for lesson in counted for event in lesson.evidence.events}
            fixed_again = bank.audits.fixed_again(run) if reviews else {}
            told = writer.select_fields(Brief, ("domain",), equals("run", run), order=("-time", "-id"))
            domain = domain or episode.domain or next((name for (name,) in told if name), "")
            # A finding is cited by its event and its index there.
            candidates = [
                make_finding_candidate(
                    finding,
                    f"{event.id}.{at}",
                    domain=domain,
                    rules=bank.config.lessons,
                    fixed_in=fixed_again.get(f"{event.id}.{at}", ""),
                )
                for event in reviews
                for at, finding in enumerate(event.findings)
                if f"{event.id}.{at}" not in cited
            ]
            if not candidates:
                return ExtractResult()
            now = bank.now()
            sighting = Sighting(
                provenance=Provenance.REVIEWED,
                actor=bank.actor,
                now=now,
                run_count=episode.number or writer.run_count() + 1,
                run=run,
                counted=run,
                seen=now,
                is_own_run=writer.is_own_run(run),
            )
        kept = bank.lessons.keep_many(candidates, sighting)
        latest = {each.lesson.id: each.lesson for each in kept if each.change is not LessonChange.DROPPED}
        new = dict.fromkeys(each.lesson.id for each in kept if each.is_new)
        met = dict.fromkeys(each.lesson.id for each in kept if each.change is LessonChange.MET)
        return ExtractResult(
            updated=tuple(latest[lesson] for lesson in met if lesson not in new),
            created=tuple(latest[lesson] for lesson in new),
            slight=sum(each.change is LessonChange.DROPPED for each in kept),
        )

    @writes(Layer.RUNS)
    def reflect(self, run: str, *, scenario: Scenario | None = None) -> Reflection:
        """Learn from a captured run without a language model. Reflecting on it again changes nothing.

        It ages the bank, once, as in `reflect_waiting`.
        """
        with self._bank.reading() as reader:
            run = resolve_run(reader, run)
            require_own_run(self._bank, reader, clean_name(run))
        return reflect(self._bank, run, scenario, is_ageing=True)

    @writes(Layer.RUNS)
    def maybe_reflect(self, trigger: ReflectionTrigger) -> ReflectionOutcome:
        """Reflect when the configuration asks for it. Never raises: the outcome says what went wrong."""
        bank, run = self._bank, clean_name(trigger.run)
        scenario = Scenario.SESSION_COMPLETE
        try:
            asked = Scenario(trigger.scenario) if trigger.scenario else None
            with bank.reading() as reader:
                require_own_run(bank, reader, run)
            scenario, is_wanted = _decide_scenario(bank, run, asked)
            if not is_wanted:
                return _learn_findings_only(bank, run, scenario, trigger.domain)
            done = reflect(bank, run, scenario, domain=trigger.domain)
        except Exception as error:  # noqa: BLE001 a run must not fail because its memory did
            reason = _error_text(error)
            bank.announce(messages.REFLECTION_FAILED, run=run, scenario=scenario.value, error=reason)
            return ReflectionOutcome(
                run, scenario, "skipped", error=reason, summary=f"reflection failed: {reason}"
            )
        return ReflectionOutcome(
            run,
            scenario,
            "reflected",
            created=len(done.created),
            updated=len(done.updated),
            summary=done.account.outcome,
            created_lessons=done.created,
            updated_lessons=done.updated,
        )

    @writes(Layer.RUNS)
    def reflect_waiting(
        self, *, scenario: Scenario | None = None
    ) -> Iterator[Reflection | ReflectionOutcome]:
        """Reflect on every queued run, oldest first, as the iterator is consumed; each ages the bank.

        An agent reflects only on its own that are queued now.
        Each run is leased: two processes never reflect on the same one. The lease of a process that is gone
        ends at once, of one on another machine when its time is over. A failure is an outcome, and the run
        stays queued.
        """
        bank = self._bank
        holder = f"{name_process()}:{bank.new_id(bank.now())}"
        errors: dict[str, str] = {}
        memo: dict[str, Episode] = {}
        own: list[str] = []
        if is_agent := bank.actor.kind is ActorKind.AGENT:
            with bank.reading() as reader:
                queued = (each.run for each in reader.queued_runs())
                own = [run for run in queued if is_run_of(reader, run, bank.actor)][:_MOST_OF_AGENT]
        try:
            while own or not is_agent:
                with bank.transaction() as writer:
                    writer.expire_leases({each.holder for each in writer.queued_runs() if is_abandoned(each)})
                    until = bank.now() + timedelta(seconds=bank.config.reflect.lease_s)
                    run = next(iter(writer.lease(holder, until, runs=own)), "")
                if not run:
                    break
                done: Reflection | ReflectionOutcome
                try:
                    with _renewed_lease(bank, run, holder):
                        why, is_wanted = _decide_scenario(bank, run, scenario)
                        if is_wanted:
                            done = reflect(bank, run, why, memo, is_ageing=True)
                        else:
                            done = _learn_findings_only(bank, run, why)
                            _age(bank, run)
                except Exception as failure:  # noqa: BLE001 one run that breaks a miner must not stop the others
                    # The lease is kept until the end, so that this round does not try the run again.
                    errors[run] = _error_text(failure)
                    done = ReflectionOutcome(run, scenario or Scenario.BATCH, "skipped", error=errors[run])
                except BaseException:
                    # An interrupt says nothing about the run.
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

    @reads(Layer.RUNS)
    def recent_runs(self, days: int) -> list[str]:
        """Return the runs that ended within the last days, oldest first; to an agent only its own."""
        since = self._bank.now() - timedelta(days=days)
        # Logged attempts have an action; there is nothing to reflect on in them.
        ended = (at_least("finished", to_text(since)), equals("action", None))
        with self._bank.reading() as reader:
            names = [
                name for (name,) in reader.select_fields(Episode, ("id",), *ended, order=("finished", "id"))
            ]
            return [name for name in names if is_run_of(reader, name, self._bank.actor)]

    @reads(Layer.RUNS)
    def abandoned_runs(self) -> list[str]:
        """Return the runs whose reflection was killed, and that the next reflection takes over."""
        return [queued.run for queued in self.waiting_runs() if is_abandoned(queued)]

    @reads(Layer.RUNS)
    def waiting_runs(self) -> list[QueuedRun]:
        """Return the runs that are queued for reflection."""
        with self._bank.reading() as reader:
            return reader.queued_runs()
