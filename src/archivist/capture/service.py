"""Take runs in, start them and finish them: the one way into a bank for an episode and its events.

Kept light at import: a session's start goes through here while an agent waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from archivist.access.rights import Layer, decides, reads, writes
from archivist.brief.select import BriefRequest
from archivist.capture.clean import clean_name
from archivist.capture.intake_service import CaptureOverrides as CaptureOverrides
from archivist.capture.intake_service import CaptureResult as CaptureResult
from archivist.capture.intake_service import Intake
from archivist.capture.runs import (
    LATEST,
    claim_run,
    find_run,
    is_run_of,
    of_task,
    require_own_run,
    resolve_run,
    root_run,
    shorten_ids,
    without_bank_notes,
)
from archivist.errors import BankError, InputError, NotFoundError
from archivist.paths import bank_name
from archivist.records.episode import Episode, require_readable
from archivist.records.run_words import FOLDER, ROLE, EpisodeKind, EpisodeStatus
from archivist.records.words import ActorKind, Provenance
from archivist.service import BankService, require_name
from archivist.store.filters import contains_item, contains_text, equals, not_equals, one_of, refuse_many

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.brief.select import RenderedBrief
    from archivist.capture.recorder import LogItem
    from archivist.capture.results import ExtractResult, FinishedRun, FinishResult
    from archivist.reading.timeline import EventOutline, ToolUse
    from archivist.records import Event
    from archivist.store.filters import Condition
    from archivist.store.protocol import Reader, Writer

    LogSource: TypeAlias = str | Path | Iterable[LogItem]

# Where a run notes the bank with which it was shared.
SHARED = "shared_with"
# Review events may lack all marks of a format, so a log that no format recognises is read as review events.
_FALLBACK_FORMAT = "archeflow"


class Runs(BankService):
    """The runs of agents, and the one way in for them."""

    def __init__(self, bank: Bank) -> None:
        super().__init__(bank)
        # The folders whose repository's names were looked up by this process.
        self._named_folders: set[str] = set()

    @reads(Layer.RUNS)
    def outcomes_in(self, path: Path) -> dict[str, EpisodeStatus]:
        """Read a file that gives an outcome per run, for `CaptureOverrides`."""
        return read_outcomes(path)

    @writes(Layer.RUNS)
    def take(
        self,
        items: Iterable[LogItem],
        overrides: CaptureOverrides | None = None,
        *,
        verb: str = "capture",
        is_log: bool = False,
    ) -> CaptureResult:
        """Take episodes, events and skipped lines in: clean, file, store, queue for reflection.

        Taking the same again changes nothing. Only runs with events wait for reflection. With `is_log` the
        items tell their runs from the beginning: those of a run of which the bank knows more change nothing.
        """
        intake = Intake(self._bank, overrides or CaptureOverrides(), verb, is_log=is_log)
        for item in items:
            intake.add(item)
        return intake.finish()

    @writes(Layer.RUNS)
    def capture(self, episode: Episode, events: Iterable[Event]) -> Episode:
        """Take a run in with its events. Taking the same run again changes nothing."""
        require_name(episode.id, "run")
        return self.take((*events, require_readable(episode))).episodes[0]

    @writes(Layer.RUNS)
    def record_episode(self, episode: Episode) -> Episode:
        """Record what a run was; a known run is brought up to date."""
        return self.capture(episode, ())

    @writes(Layer.RUNS)
    def note_on_run(self, run: str, name: str, value: object) -> None:
        """Keep a value under a name on a run, such as whether its log came; an unknown run keeps nothing."""
        with self._bank.transaction() as writer:
            episode = writer.get(Episode, run) if run else None
            if episode is not None:
                noted = replace(episode, extra={**episode.extra, name: value})
                self.take((noted,), CaptureOverrides(is_filed=True))

    @reads(Layer.RUNS)
    def runs_with_note(self, runs: Iterable[str], name: str) -> set[str]:
        """Return which of these runs keep a value under a name."""
        with self._bank.reading() as reader:
            found = (reader.get(Episode, run) for run in runs)
            return {episode.id for episode in found if episode is not None and name in episode.extra}

    @writes(Layer.RUNS)
    def capture_file(
        self, path: str | Path, *, format_name: str = "auto", overrides: CaptureOverrides | None = None
    ) -> CaptureResult:
        """Take a log of a known format in. The same file again changes nothing, a longer one adds."""
        return self._take_file(Path(path), overrides or CaptureOverrides(), format_name, {})

    def _take_file(
        self,
        path: Path,
        overrides: CaptureOverrides,
        format_name: str,
        numbers: dict[str, set[int]],
        *,
        fallback: str = "",
    ) -> CaptureResult:
        from archivist.capture.formats import LogOrigin, read_log
        from archivist.files.open import digest_file

        # Of the file, and of the overrides that change what is stored of it.
        said = (overrides.run, overrides.project, overrides.status, sorted(overrides.outcomes.items()))
        digest = digest_file(path, repr(said).encode())
        with self._bank.reading() as reader:
            names = reader.file_runs(digest)
            found = [reader.get(Episode, name) for name in names or ()]
            provenances = reader.run_provenances(names or ())
            for name in names or ():
                require_own_run(self._bank, reader, name)
        episodes = tuple(episode for episode in found if episode is not None)
        # A file is known unless one of its runs was erased since, or an agent brought it before its user.
        is_own = self._bank.actor.kind is ActorKind.AGENT or all(each.is_own for each in provenances.values())
        if names is not None and len(episodes) == len(names) and is_own:
            return CaptureResult(str(path), episodes, is_unchanged=True)
        origin = LogOrigin(path.name, overrides.run, overrides.project, path.absolute().parent, numbers)
        taken = self.take(read_log(path, origin, format_name, fallback=fallback), overrides, is_log=True)
        with self._bank.transaction() as writer:
            writer.mark_file_captured(digest, [episode.id for episode in taken.episodes])
            self._note_names(writer, taken.episodes)
        return taken._replace(file=str(path))

    def note_name(self, name: str) -> None:
        """Note that a person calls the repository of the folder so, unless another one has the name."""
        from archivist.projects import note_name

        if name and self._bank.actor.kind is ActorKind.HUMAN:
            with self._bank.transaction() as writer:
                note_name(writer, name, self._bank.folder, self._bank.root)

    def _note_names(self, writer: Writer, episodes: Sequence[Episode]) -> None:
        """Note which names of projects are one repository's: lessons are told under each of them."""
        from archivist import projects
        from archivist.paths import is_folder
        from archivist.records.plain import canonical_json

        folders = {str(episode.extra.get(FOLDER) or "") for episode in episodes} - self._named_folders
        self._named_folders |= folders
        for folder in folders:
            if is_folder(Path(folder)):
                names = projects.find_names(writer, Path(folder), self._bank.root)
                if names != writer.json_setting(projects.PROJECT_NAMES):
                    writer.set_setting(projects.PROJECT_NAMES, canonical_json(names))

    def _known_session(self, path: Path, named: str, format_name: str) -> str:
        """Return the known run that a log itself names, where the caller names another: it is one run."""
        if not named:
            return ""
        from archivist.capture.formats import read_log
        from archivist.records import Event

        items = read_log(path, format_name=format_name, fallback=_FALLBACK_FORMAT)
        own = clean_name(next((item.run for item in items if isinstance(item, Event)), ""))
        with self._bank.reading() as reader:
            episode = reader.get(Episode, own) if own not in ("", clean_name(named)) else None
            is_known = episode is not None and is_run_of(reader, own, self._bank.actor)
            return root_run(reader, episode) if episode is not None and is_known else ""

    def _join_run(self, named: str, session: str, global_bank: Bank | None) -> None:
        """Make a run that was started under another name, and has no events, a part of its session."""
        from archivist.records import Brief

        name = clean_name(named)
        for bank in filter(None, (self._bank, global_bank)):
            with bank.transaction() as writer:
                if writer.count("event", equals("run", name)):
                    return
                for brief in writer.select(Brief, equals("run", name)):
                    writer.put(replace(brief, run=session), "finish")
        with self._bank.transaction() as writer:
            started = writer.get(Episode, name)
            if started is not None:
                started = replace(started, status=EpisodeStatus.SUCCESS, finished=self._bank.now())
                writer.put(replace(started, parent=session), "finish")

    def _take_sources(
        self,
        sources: Sequence[LogSource],
        overrides: CaptureOverrides,
        format_name: str,
        is_strict: bool,
        global_bank: Bank | None = None,
    ) -> tuple[dict[str, Episode], tuple[str, ...], tuple[str, ...]]:
        """Take logs and items in; return the runs by id, the lines that were left out, and the strays."""
        if is_strict:
            from archivist.capture.formats import refuse_bad_lines

            paths = [Path(source) for source in sources if isinstance(source, str | Path)]
            refuse_bad_lines(paths, overrides.run, format_name, fallback=_FALLBACK_FORMAT)
        taken = []
        numbers: dict[str, set[int]] = {}
        for source in sources:
            if not isinstance(source, str | Path):
                taken.append(self.take(source, overrides))
                continue
            path, known = Path(source), overrides
            if session := self._known_session(path, overrides.run, format_name):
                known = overrides._replace(run=session)
            done = self._take_file(path, known, format_name, numbers, fallback=_FALLBACK_FORMAT)
            if len(sources) > 1 and done.skipped and not done.episodes and done.is_without_events:
                # A pattern of names also finds what lists the runs.
                done = CaptureResult(strays=(f"{path} holds no events of a run: left out",))
            same = f"run {overrides.run} is the session {session}, which the bank knows: it counts once"
            taken.append(done._replace(strays=(*done.strays, same)) if session else done)
            if session:
                self._join_run(overrides.run, session, global_bank)
        # A format names the run that began a log last; of reviews, the last run in a log is the latest.
        is_review = format_name == _FALLBACK_FORMAT
        listed = (reversed(each.episodes) if is_review else each.episodes for each in taken)
        episodes = {episode.id: episode for some in listed for episode in some}
        skipped = (f"{each.file}: {reason}".removeprefix(": ") for each in taken for reason in each.reasons)
        return episodes, tuple(dict.fromkeys(skipped)), tuple(line for each in taken for line in each.strays)

    @reads(Layer.RUNS)
    def episode(self, run: str) -> Episode:
        """Return a run's record, by its id or the only beginning of one."""
        with self._bank.reading() as reader:
            return find_run(reader, resolve_run(reader, run))

    @reads(Layer.RUNS)
    def event(self, name: str) -> Event:
        """Return what happened in a run, by the run's id and its number there: `RUN#14`."""
        from archivist.records import Event

        run, _, number = name.rpartition("#")
        episode = self.episode(run)
        with self._bank.reading() as reader:
            event = reader.get(Event, f"{episode.id}#{number}")
        if event is None:
            raise NotFoundError("event", name, hint=f"archivist episodes atif {episode.id} prints them all")
        return event

    @reads(Layer.RUNS)
    def short_ids(self, runs: Iterable[str]) -> dict[str, str]:
        """Return the shortest beginnings by which runs are found."""
        with self._bank.reading() as reader:
            return shorten_ids(runs, (row[0] for row in reader.select_fields(Episode, ("id",))))

    @reads(Layer.RUNS)
    def provenance(self, run: str) -> Provenance:
        """Return where a run comes from: own runs are mined, agents suggest theirs, files import others."""
        with self._bank.reading() as reader:
            found = reader.run_provenances((run,))
        if run not in found:
            raise NotFoundError("run", run)
        return found[run]

    @reads(Layer.RUNS)
    def episodes(
        self,
        *,
        project: str = "",
        task: str = "",
        text: str = "",
        tags: Sequence[str] = (),
        after: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> list[Episode]:
        """Return the runs, the latest first, of a project or task, with a text in the task, with all tags.

        `after` goes on. Without a project, those of other repositories than the caller's are left out; `*`
        names all.
        """
        from archivist.projects import without_others

        conditions: list[Condition] = [contains_text("task", text)] if text else []
        refuse_many("tags", tags)
        conditions += [contains_item("tags", tag) for tag in tags]
        conditions += [equals("project", project)] if project not in ("", "*") else []
        conditions += [of_task(task)] if task else []
        with self._bank.reading() as reader:
            if not project:
                conditions += without_others(reader, "episode", "project", self._bank.folder, self._bank.root)
            return reader.select(Episode, *conditions, order=LATEST, after=after, limit=limit)

    @reads(Layer.RUNS)
    def projects(self) -> list[str]:
        """Return the projects that runs and lessons are about, by name."""
        from archivist.projects import all_projects

        with self._bank.reading() as reader:
            return sorted(all_projects(reader))

    @reads(Layer.RUNS)
    def outline(self, run: str) -> list[EventOutline]:
        """Return the events of a run in order, without their outputs."""
        from archivist.clock import from_text
        from archivist.reading.timeline import EventOutline
        from archivist.records import Event, EventKind

        fields = ("seq", "time", "kind", "role", "tool", "text", "is_error", "exit_code")
        with self._bank.reading() as reader:
            rows = reader.select_fields(Event, fields, equals("run", run), order=("seq",))
        return [
            EventOutline(
                seq, from_text(time) if time else None, EventKind(kind), role, tool, text, bool(error or code)
            )
            for seq, time, kind, role, tool, text, error, code in rows
        ]

    @reads(Layer.RUNS)
    def events(self, run: str, seqs: Iterable[int]) -> list[Event]:
        """Return these events of a run, in order."""
        with self._bank.reading() as reader:
            found = reader.records("event", [f"{run}#{seq}" for seq in seqs])
        return sorted(found.values(), key=lambda event: event.seq)

    @reads(Layer.RUNS)
    def tool_uses(self, episodes: Sequence[Episode]) -> list[ToolUse]:
        """Count the programs that these runs called, by provider."""
        from archivist.reading.timeline import count_tools
        from archivist.records import Event

        providers = {each.id: each.provider or "unknown" for each in episodes}
        fields = ("run", "tool", "text", "is_error")
        with self._bank.reading() as reader:
            rows = reader.select_fields(Event, fields, one_of("run", list(providers)), not_equals("tool", ""))
        return count_tools((providers[run], tool, text, bool(failed)) for run, tool, text, failed in rows)

    @reads(Layer.RUNS)
    def to_atif(self, run: str) -> dict[str, object]:
        """Return a run as an ATIF trajectory."""
        from archivist.exchange.files import to_atif
        from archivist.records import Event

        with self._bank.reading() as reader:
            episode = find_run(reader, resolve_run(reader, run))
            return to_atif(episode, reader.select(Event, equals("run", episode.id), order=("seq",)))

    @decides(Layer.RUNS)
    def share(self, run: str, target: Bank) -> CaptureResult:
        """Copy a run with its parts and subagents' runs to another bank, where it waits for reflection.

        Only people and orchestrators decide about that. The same run again adds what is new.
        """
        family, events = self.run_family(run)
        shared = target.runs.take((*events, *reversed(family)), CaptureOverrides(is_filed=True))
        self.note_on_run(family[0].id, SHARED, bank_name(target.path))
        return shared

    @reads(Layer.RUNS)
    def run_family(self, run: str) -> tuple[list[Episode], list[Event]]:
        """Return a run with its parts and subagents' runs, and all their events, for another bank."""
        from archivist.records import Event

        family: list[Episode] = []
        events: list[Event] = []
        with self._bank.reading() as reader:
            waiting = [find_run(reader, resolve_run(reader, run))]
            for episode in waiting:
                waiting += reader.select(Episode, equals("parent", episode.id), order=("id",))
                events += reader.select(Event, equals("run", episode.id), order=("seq",))
                family.append(without_bank_notes(episode))
        return family, events

    @writes(Layer.RUNS)
    def start_run(
        self,
        /,
        run: str,
        request: BriefRequest | None = None,
        *,
        agent: str = "",
        kind: EpisodeKind | None = None,
        global_bank: Bank | None = None,
        **fields: Any,
    ) -> RenderedBrief:
        """Open a run and brief it: what an orchestrator calls before it spawns agents.

        `agent` is who does it, by default the acting agent; the provider asked for is the harness it runs in.
        """
        asked = request or BriefRequest(**fields)
        with self._bank.transaction() as writer:
            name = clean_name(run)
            claim_run(writer, name, self._bank.actor)
            if writer.get(Episode, name) is None:
                project, extra = self._place_of_start(writer, asked.repo)
                extra |= {ROLE: role} if (role := asked.role or self._bank.actor.role) else {}
                self.record_episode(
                    Episode(
                        id=name,
                        project=project,
                        task=asked.task,
                        agent=agent or self._bank.agent_name,
                        provider=asked.provider,
                        domain=asked.domain,
                        kind=kind or EpisodeKind.ORCHESTRATOR_RUN,
                        started=self._bank.now(),
                        extra=extra,
                    )
                )
            return self._bank.brief(asked.for_run(name), global_bank=global_bank)

    def _place_of_start(self, reader: Reader, repo: str) -> tuple[str, dict[str, object]]:
        """Return the project of a run that starts, and what it keeps of the repository of its folder."""
        from archivist import projects

        folder, root = self._bank.folder, self._bank.root
        if folder is None:
            return repo, {}
        here = projects.project_at(reader, folder, root)
        project = projects.resolve_name(reader, repo, folder, root) if repo else here
        return project, {projects.CHECKOUT: projects.checkout_info(folder, root)} if project == here else {}

    @writes(Layer.RUNS)
    def finish(
        self,
        *sources: LogSource,
        overrides: CaptureOverrides | None = None,
        format_name: str = "auto",
        domain: str = "",
        is_strict: bool = False,
        global_bank: Bank | None = None,
    ) -> FinishResult:
        """Close runs: take them in, reflect, age the bank, audit, look for regressions.

        A source is a log of any known format, or episodes and events in memory. Without one, the overrides
        name a run that was captured, started or briefed before. With `is_strict` one bad line refuses all.
        """
        from archivist.capture.results import FinishResult
        from archivist.records import Brief

        overrides = overrides or CaptureOverrides()
        if not sources:
            with self._bank.reading() as reader:
                name = clean_name(overrides.run)
                if reader.get(Episode, name) is None and not reader.count(Brief, equals("run", name)):
                    hint = "name its log, or begin with archivist run start --run ID"
                    raise NotFoundError("run", overrides.run, hint=hint)
        given = sources or ([Episode(id=overrides.run)],)
        episodes, skipped, strays = self._take_sources(given, overrides, format_name, is_strict, global_bank)
        runs = [
            self._finish_run(episode, domain, global_bank, is_named_only=not sources)
            for episode in episodes.values()
        ]
        self._bank.proposals.propose_rules_quietly()
        # A bank that another process writes is pruned by the next run.
        with suppress(BankError):
            self._bank.erasure.prune_if_due()
        self._bank.stream.reflect(if_due=True)
        return FinishResult(tuple(runs), skipped, strays)

    def _finish_run(
        self, episode: Episode, domain: str, global_bank: Bank | None, *, is_named_only: bool
    ) -> FinishedRun:
        from archivist.capture.results import FinishedRun
        from archivist.clock import from_text
        from archivist.lessons.standing import AgeingResult
        from archivist.reflect.trigger import ReflectionOutcome, ReflectionTrigger, scenario_of

        bank = self._bank
        status = episode.status
        if status is EpisodeStatus.RUNNING:
            # A log that does not tell its outcome got part of the way. A caller who only names the run
            # reports no trouble.
            status = EpisodeStatus.SUCCESS if is_named_only else EpisodeStatus.PARTIAL
        with bank.transaction() as writer:
            finished = episode.finished
            if finished is None and not is_named_only:
                # A log without an end stopped with its last event, whenever it is read.
                times = writer.select_fields("event", ("time",), equals("run", episode.id))
                finished = max((from_text(time) for (time,) in times if time), default=None)
            episode = replace(episode, status=status, finished=finished or bank.now())
            writer.put(episode, "capture")
            events = writer.count("event", equals("run", episode.id))
        if is_named_only and not events:
            outcome = ReflectionOutcome(episode.id, scenario_of(episode), "skipped", summary="no events")
        else:
            outcome = bank.reflections.maybe_reflect(ReflectionTrigger(episode.id, domain=domain))
        # What a subagent did is part of its session, which ages the bank once.
        aged = AgeingResult(was_counted=False) if episode.parent else bank.lessons.decay(episode.id)
        verdicts = bank.audit(episode.id, global_bank=global_bank) if events else ()
        regressions = bank.audits.regressions(episode.id)
        return FinishedRun(
            run=episode.id,
            events=events,
            outcome=outcome,
            created=outcome.created_lessons,
            updated=outcome.updated_lessons,
            aged=aged,
            verdicts=tuple(verdicts),
            regressions=tuple(regressions),
        )

    @writes(Layer.RUNS)
    def finish_run(
        self,
        episode: Episode,
        events: Iterable[Event],
        *,
        status: EpisodeStatus | None = None,
        domain: str = "",
        global_bank: Bank | None = None,
    ) -> FinishedRun:
        """Finish one run whose events are at hand."""
        from archivist.capture.formats.native import complete_run

        require_name(episode.id, "run")
        done = self.finish(
            complete_run(episode, events),
            overrides=CaptureOverrides(status=status),
            domain=domain,
            global_bank=global_bank,
        )
        return done.runs[0]

    @writes(Layer.RUNS)
    def extract(
        self, *paths: str | Path, run: str = "", domain: str = "", is_strict: bool = False
    ) -> ExtractResult:
        """Take review events in and learn from their findings, nothing else. Twice changes nothing."""
        from archivist.capture.results import ExtractResult

        overrides = CaptureOverrides(run=run)
        episodes, skipped, strays = self._take_sources(paths, overrides, _FALLBACK_FORMAT, is_strict)
        learnt = [self._bank.reflections.extract(name, domain=domain) for name in episodes]
        return ExtractResult(
            created=tuple(lesson for each in learnt for lesson in each.created),
            updated=tuple(lesson for each in learnt for lesson in each.updated),
            slight=sum(each.slight for each in learnt),
            skipped=skipped,
            strays=strays,
        )


def read_outcomes(path: Path) -> dict[str, EpisodeStatus]:
    """Read a file that gives an outcome per run."""
    from archivist.capture.status import parse_outcomes
    from archivist.files.open import read_bounded
    from archivist.files.parse import parse_json

    value = parse_json(read_bounded(path), repr(str(path)))
    hint = '{"run id": "success", …}'
    if not isinstance(value, dict):
        raise InputError(f"{str(path)!r} is not a JSON object", hint=hint)
    if outcomes := parse_outcomes(value):
        return outcomes
    raise InputError(f"{str(path)!r} names no outcomes", hint=hint)
