"""Work on logs: read a file in its format, clean it, store its runs, let them wait for reflection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist import projects
from archivist.access.rights import Layer, Verb, reads, writes
from archivist.audit.verdicts import Regression
from archivist.audit.verdicts import judge_lessons as judge_lessons
from archivist.brief.request import BriefRequest
from archivist.capture.clean import Cleaner
from archivist.capture.formats.registry import LogOrigin, SkippedRecord, read_log
from archivist.capture.outcomes_file import outcome_of
from archivist.capture.recorder import BEGAN, FOLDER
from archivist.capture.runs import LATEST, find_run
from archivist.errors import InputError
from archivist.paths import is_folder
from archivist.records import (
    Episode,
    EpisodeStatus,
    Event,
    Verdict,
)
from archivist.records.episode import merge_episode
from archivist.records.words import NOTES as NOTES
from archivist.records.words import PART
from archivist.reflect.findings import Extraction
from archivist.service import BankService, require_name
from archivist.store.filters import equals

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.brief.select import RenderedBrief
    from archivist.lessons.service import AgeingResult
    from archivist.reflect.trigger import ReflectionOutcome

# How many events are held before they are written: enough for speed, few enough for memory.
_BATCH = 2_000
_REASONS_KEPT = 20
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What a log held: its runs, how many events came in, what was left out, which secrets came out."""

    file: str
    episodes: tuple[Episode, ...] = ()
    events: int = 0
    changed: int = 0
    skipped: int = 0
    reasons: tuple[str, ...] = ()
    secrets: Mapping[str, int] = field(default_factory=dict)
    is_unchanged: bool = False


@dataclass(frozen=True, slots=True)
class CaptureOverrides:
    """What the caller knows better than the log.

    With a folder the project is that of its repository: a subagent that began in another is filed there.
    """

    run: str = ""
    project: str = ""
    folder: str = ""
    status: EpisodeStatus | None = None
    outcomes: Mapping[str, EpisodeStatus] = field(default_factory=dict)


def capture_file(
    bank: Bank, path: Path, *, format_name: str = "auto", overrides: CaptureOverrides | None = None
) -> CaptureResult:
    """Take a log in. The same file again changes nothing; a longer version adds what is new."""
    overrides = overrides or CaptureOverrides()
    digest = _digest(path, overrides)
    runs = _captured_runs(bank, digest)
    if runs is not None:
        return CaptureResult(str(path), runs, is_unchanged=True)
    intake = _Intake(bank, overrides)
    origin = LogOrigin(path_name=path.name, run=overrides.run, project=overrides.project)
    for item in read_log(path, origin, format_name):
        intake.add(item)
    captured = replace(intake.finish(), file=str(path))
    with bank.transaction() as writer:
        writer.mark_file_captured(digest, [episode.id for episode in captured.episodes])
    return captured


class _Intake:
    """Hold a batch of events until it is written. A run's record comes after its events."""

    def __init__(self, bank: Bank, overrides: CaptureOverrides) -> None:
        self._bank = bank
        self._known = overrides
        self._cleaner = Cleaner()
        self._events: list[Event] = []
        # By folder and where the run began: the project of another repository, nothing for the run's own.
        self._elsewhere: dict[tuple[str, str], str] = {}
        self._parts: dict[str, tuple[str, str, str]] = {}
        self._episodes: list[Episode] = []
        self._reasons: Counter[str] = Counter()
        self._count = 0
        self._changed = 0

    def add(self, item: Event | Episode | SkippedRecord) -> None:
        match item:
            case Event():
                self._count += 1
                self._events.append(self._assign_part(self._cleaner.event(item)))
                if len(self._events) >= _BATCH:
                    self._write()
            case Episode():
                self._episodes.append(self._apply_outcome(self._assign_project(self._cleaner.episode(item))))
            case SkippedRecord():
                self._reasons[f"{item.where}: {item.reason}"] += 1

    def finish(self) -> CaptureResult:
        with self._bank.transaction() as writer:
            self._write()
            stored = []
            runs = {episode.id: episode for episode in self._episodes}
            parts = (
                self._build_part(runs[run], name, project, folder)
                for name, (run, project, folder) in self._parts.items()
                if run in runs
            )
            for episode in (*self._episodes, *parts):
                before = writer.get(Episode, episode.id)
                stored.append(merge_episode(before, episode) if before else episode)
                self._changed += writer.put(stored[-1], "capture")
                if self._changed:
                    writer.queue(episode.id)
        return CaptureResult(
            file="",
            episodes=tuple(stored),
            events=self._count,
            changed=self._changed,
            skipped=sum(self._reasons.values()),
            reasons=tuple(reason for reason, _ in self._reasons.most_common(_REASONS_KEPT)),
            secrets=dict(self._cleaner.secrets),
        )

    def _write(self) -> None:
        with self._bank.transaction() as writer:
            for run, events in _group_by_run(self._events).items():
                self._changed += writer.put_events(run, events, "capture")
        self._events.clear()

    def _assign_part(self, event: Event) -> Event:
        """Return what was done in another repository as a part of its run that is filed there."""
        if BEGAN not in event.extra:
            return event
        folder, began = str(event.extra[FOLDER]), str(event.extra[BEGAN])
        event = replace(event, extra={name: each for name, each in event.extra.items() if name != BEGAN})
        project = self._foreign_project(folder, began)
        if not project:
            return event
        part = f"{event.run}{PART}{project}"
        self._parts.setdefault(part, (event.run, project, folder))
        return replace(event, run=part)

    def _foreign_project(self, folder: str, began: str) -> str:
        if (folder, began) not in self._elsewhere:
            root = self._bank.root
            with self._bank.reading() as reader:
                project = projects.foreign_project(reader, Path(folder), Path(began), root)
                is_own = project and project == projects.project_at(reader, Path(began), root)
            self._elsewhere[folder, began] = "" if is_own else project
        return self._elsewhere[folder, began]

    def _build_part(self, run: Episode, name: str, project: str, folder: str) -> Episode:
        """Return the part of a run that was done elsewhere, as a run of its own below it."""
        kept = {FOLDER: folder, projects.CHECKOUT: projects.checkout_info(Path(folder), self._bank.root)}
        extra = {**run.extra, **kept}
        return replace(run, id=name, parent=run.id, project=project, usage=None, extra=extra)

    def _assign_project(self, episode: Episode) -> Episode:
        """File a run under another name when its project's is that of another repository."""
        folder = episode.extra.get(FOLDER)
        if not isinstance(folder, str) or not is_folder(Path(folder)):
            return episode
        if self._known.project:
            is_led = episode.parent and self._known.folder
            project = self._foreign_project(folder, self._known.folder) if is_led else ""
            return replace(episode, project=project or episode.project)
        with self._bank.reading() as reader:
            project = projects.project_of_run(reader, episode.project, Path(folder), self._bank.root)
        return replace(episode, project=project)

    def _apply_outcome(self, episode: Episode) -> Episode:
        status = outcome_of(episode, self._known.outcomes) or (
            self._known.status if not episode.parent else None
        )
        return replace(episode, status=status) if status else episode


def _group_by_run(events: Iterable[Event]) -> dict[str, list[Event]]:
    runs: dict[str, list[Event]] = {}
    for event in events:
        runs.setdefault(event.run, []).append(event)
    return runs


def _digest(path: Path, overrides: CaptureOverrides) -> str:
    """Return the hash of a file and of what was said about it: either one changing makes it news."""
    digest = sha256(
        repr(
            (overrides.run, overrides.project, overrides.status, sorted(overrides.outcomes.items()))
        ).encode()
    )
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except FileNotFoundError:
        raise InputError(f"no such file: {str(path)!r}", hint="check its name and the folder") from None
    except IsADirectoryError:
        raise InputError(f"{str(path)!r} is a folder", hint="name the files in it") from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}", hint="check its rights") from error
    return digest.hexdigest()


def _captured_runs(bank: Bank, digest: str) -> tuple[Episode, ...] | None:
    """Return the runs of a file that was captured before, unless one of them has gone since."""
    with bank.reading() as reader:
        names = reader.file_runs(digest)
        if names is None:
            return None
        episodes = [reader.get(Episode, name) for name in names]
    found = tuple(episode for episode in episodes if episode is not None)
    return found if len(found) == len(episodes) else None


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """Everything that finishing a run did."""

    run: str
    events: int
    extraction: Extraction
    aged: AgeingResult
    verdicts: tuple[Verdict, ...]
    regressions: tuple[Regression, ...]


def capture(bank: Bank, episode: Episode, events: Iterable[Event]) -> Episode:
    """Take a run in with its events. Taking the same run again changes nothing."""
    require_name(episode.id, "run")
    with bank.transaction() as writer:
        known = writer.get(Episode, episode.id)
        # What was tried is written by those who log attempts, not by whoever brings a run of the same name.
        if episode.action or (known and known.action):
            bank.require(Layer.EPISODES, Verb.WRITE)
        episode = merge_episode(known, episode) if known else episode
        writer.put(episode, "capture")
        writer.put_events(episode.id, events, "capture")
    return episode


def open_run(bank: Bank, run: str, task: str, domain: str, repo: str = "") -> None:
    """Record that a run has begun; one that is known already is left as it is."""
    with bank.transaction() as writer:
        if writer.get(Episode, run) is None:
            begun = Episode(id=run, project=repo, task=task, domain=domain, started=bank.now())
            capture(bank, begun, ())


def finish(
    bank: Bank,
    episode: Episode,
    events: Sequence[Event],
    *,
    status: EpisodeStatus | None,
    domain: str,
    global_bank: Bank | None,
) -> FinishedRun:
    """Close a run: capture, extract, decay, audit and look for regressions, as one change."""
    from archivist.core.proposals_service import propose_rules_quietly

    with bank.transaction() as writer:
        known = writer.get(Episode, episode.id)
        finished = episode.finished or (known.finished if known else None) or bank.now()
        told = [status, episode.status, known.status if known else None]
        # Nobody said what it came to.
        closed = next(
            (each for each in told if each and each is not EpisodeStatus.RUNNING), EpisodeStatus.PARTIAL
        )
        episode = replace(episode, status=closed, finished=finished)
        capture(bank, episode, events)
        extraction = bank.reflections.extract(episode.id, domain=domain)
        aged = bank.lessons.decay(episode.id)
        verdicts = bank.audit(episode.id, global_bank=global_bank) if events else []
        came_back = bank.audits.regressions(episode.id)
    propose_rules_quietly(bank)
    return FinishedRun(episode.id, len(events), extraction, aged, tuple(verdicts), tuple(came_back))


def list_runs(
    bank: Bank, project: str, task: str, limit: int | None, after: Sequence[object] | None = None
) -> list[Episode]:
    """Return the runs, the latest first, of one project or task; behind a place in that order."""
    conditions = [equals(field, value) for field, value in (("project", project), ("task", task)) if value]
    with bank.reading() as reader:
        return reader.select(Episode, *conditions, order=LATEST, after=after, limit=limit)


def to_trajectory(bank: Bank, run: str) -> dict[str, object]:
    """Return a run as an ATIF trajectory."""
    from archivist.exchange.atif import to_atif

    with bank.reading() as reader:
        return to_atif(find_run(reader, run), reader.select(Event, equals("run", run), order=("seq",)))


@dataclass(frozen=True, slots=True)
class FinishedLog:
    """What closing a run by its agent's own log did, and which lines of the log were left out."""

    run: str
    events: int
    outcome: ReflectionOutcome
    aged: AgeingResult
    verdicts: tuple[Verdict, ...]
    left_out: tuple[str, ...] = ()


def finish_log(
    bank: Bank, path: Path, overrides: CaptureOverrides | None, global_bank: Bank | None
) -> list[FinishedLog]:
    """Capture a log, reflect on its runs, let each age the bank and judge what each was told."""
    from archivist.core.proposals_service import propose_rules_quietly
    from archivist.lessons.service import AgeingResult
    from archivist.reflect.trigger import ReflectionTrigger

    captured = capture_file(bank, path, overrides=overrides)
    done = []
    for episode in captured.episodes:
        outcome = bank.reflections.maybe_reflect(ReflectionTrigger(episode.id))
        # A subagent's part is not a run of its own to the lessons that fade.
        aged = AgeingResult(was_counted=False) if episode.parent else bank.lessons.decay(episode.id)
        verdicts = tuple(bank.audit(episode.id, global_bank=global_bank)) if captured.events else ()
        left_out = tuple(f"{path}: {reason}" for reason in captured.reasons)
        done.append(FinishedLog(episode.id, captured.events, outcome, aged, verdicts, left_out))
    propose_rules_quietly(bank)
    return done


class Runs(BankService):
    """The runs of agents, and the one way in for them."""

    @writes(Layer.RUNS)
    def record_episode(self, episode: Episode) -> Episode:
        """Record what a run was; a run that is known already is brought up to date."""
        return self._bank.capture(episode, ())

    @writes(Layer.RUNS)
    def capture(self, episode: Episode, events: Iterable[Event]) -> Episode:
        """Take a run in with its events. Taking the same run again changes nothing."""
        return capture(self._bank, episode, events)

    @writes(Layer.RUNS)
    def capture_file(
        self, path: str | Path, *, format_name: str = "auto", overrides: CaptureOverrides | None = None
    ) -> CaptureResult:
        """Take a log of a known format in, cleaned; its runs wait for reflection."""
        return capture_file(self._bank, Path(path), format_name=format_name, overrides=overrides)

    @reads(Layer.RUNS)
    def episode(self, run: str) -> Episode:
        """Return a run's record."""
        with self._bank.reading() as reader:
            return find_run(reader, run)

    @reads(Layer.RUNS)
    def episodes(
        self,
        *,
        project: str = "",
        task: str = "",
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[Episode]:
        """Return the runs, the latest first, of one project or task; behind a place in that order."""
        return list_runs(self._bank, project, task, limit, after)

    @reads(Layer.RUNS)
    def to_atif(self, run: str) -> dict[str, object]:
        """Return a run as an ATIF trajectory."""
        return to_trajectory(self._bank, run)

    @writes(Layer.RUNS)
    def start_run(
        self,
        /,
        run: str,
        request: BriefRequest | None = None,
        *,
        global_bank: Bank | None = None,
        **fields: Any,
    ) -> RenderedBrief:
        """Open a run and brief it: what an orchestrator calls before it spawns agents."""
        asked = request or BriefRequest(**fields)
        with self._bank.transaction():
            open_run(self._bank, run, asked.task, asked.domain, asked.repo)
            return self._bank.brief(asked.for_run(run), global_bank=global_bank)

    @writes(Layer.RUNS)
    def finish_run(
        self,
        episode: Episode,
        events: Sequence[Event],
        *,
        status: EpisodeStatus | None = None,
        domain: str = "",
        global_bank: Bank | None = None,
    ) -> FinishedRun:
        """Close a run: capture, extract, decay, audit and look for regressions, as one change."""
        return finish(self._bank, episode, events, status=status, domain=domain, global_bank=global_bank)

    @writes(Layer.RUNS)
    def finish_log(
        self, path: str | Path, *, overrides: CaptureOverrides | None = None, global_bank: Bank | None = None
    ) -> list[FinishedLog]:
        """Close the runs of an agent's own log: capture, reflect, age the bank, judge what each was told."""
        return finish_log(self._bank, Path(path), overrides, global_bank)
