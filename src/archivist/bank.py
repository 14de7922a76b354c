"""The one way in: a bank offers every verb on what its vault holds.

The work itself is done at the desks, each imported by the call that needs it: a brief must not wait
for what only reflection uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archivist.access.rights import DENIAL, Layer, decides, reads, writes
from archivist.brief.forms import BriefFormat
from archivist.clock import Clock, system_clock
from archivist.config import Config
from archivist.config.layers import load_effective
from archivist.ids import IdSource, new_id
from archivist.paths import bank_file
from archivist.records.actor import Actor
from archivist.records.words import ActorKind, LessonType
from archivist.vault import BankContext

if TYPE_CHECKING:
    from threading import Event as Signal
    from threading import Thread

    from archivist.access.service import Tokens
    from archivist.archive.service import Documents
    from archivist.audit.report import Report
    from archivist.audit.verdicts import Regression
    from archivist.brief.presets import BriefPreset
    from archivist.brief.select import RenderedBrief
    from archivist.capture.runs_service import AgeingResult, FinishedRun
    from archivist.capture.service import CaptureOverrides, CaptureResult
    from archivist.core.proposals_service import Proposals
    from archivist.core.service import Core
    from archivist.doctor import Check
    from archivist.exchange.files import FileImportResult, LessonFormat
    from archivist.exchange.share import ShareResult
    from archivist.forget.receipt import Receipt
    from archivist.forget.retention import Sizes
    from archivist.forget.service import ErasureTarget, PruneResult
    from archivist.layers.artifacts.service import Artifacts
    from archivist.layers.attempts.service import Attempts
    from archivist.layers.knowledge.service import Knowledge
    from archivist.layers.working.service import WorkingMemory
    from archivist.lessons.suggest_service import SuggestionResult
    from archivist.recall.embedding_service import Progress
    from archivist.recall.query import Query
    from archivist.recall.service import RecallResult
    from archivist.records import Brief, Episode, EpisodeStatus, Event, Lesson, Verdict
    from archivist.reflect.findings import Extraction
    from archivist.reflect.service import FinishedLog, Reflection
    from archivist.reflect.trigger import ReflectionOutcome, ReflectionTrigger, Scenario
    from archivist.store.ledger import LedgerChange, Verification
    from archivist.store.results import QueuedRun
    from archivist.stream.service import Stream
    from archivist.workspace.service import WorkspaceService


class Bank(BankContext):
    """The memory of one project."""

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = True,
        actor: Actor | None = None,
        config: Config | None = None,
        clock: Clock = system_clock,
        ids: IdSource = new_id,
        folder: Path | None = None,
    ) -> Bank:
        """Open the bank of a project folder (or a bank's file), making it when there is none.

        Without a configuration the effective one counts: its file, the global one, the environment.
        `folder` is where the caller works: what no call says otherwise is about the project there.
        """
        from archivist.store.sqlite.store import SqliteStore

        file = bank_file(Path(path))
        settings = config or load_effective(file.parent).config
        store = SqliteStore.open(file, create=create, busy_timeout_s=settings.store.busy_timeout_s)
        who = actor or Actor(ActorKind.HUMAN)
        return cls(store, path=file, actor=who, config=settings, clock=clock, ids=ids, folder=folder)

    # Lessons

    @writes(Layer.LESSONS)
    def add(
        self,
        /,
        summary: str,
        *,
        type: LessonType | str | None = None,  # noqa: A002
        **fields: Any,
    ) -> Lesson:
        """Add a lesson by hand: a preference unless the type is another; active at once, said once.

        What an agent adds is a candidate: a pattern unless the type is another, and never a preference.
        """
        from archivist.lessons import service as lessons

        return lessons.add(self, summary, type, fields)

    @writes(Layer.LESSONS)
    def suggest(
        self, /, summary: str, *, run: str = "", evidence: Sequence[str] = (), **fields: Any
    ) -> SuggestionResult:
        """Keep a lesson in the name of whoever tells it, and say whether it is new or was met again."""
        from archivist.lessons import suggest_service as suggesting

        return suggesting.suggest_or_add(self, summary, run=run, evidence=evidence, **fields)

    @reads(Layer.LESSONS)
    def get(self, name: str) -> Lesson:
        """Return a lesson by its short id or its global one."""
        from archivist.lessons import service as lessons

        return lessons.get(self, name)

    @reads(Layer.LESSONS)
    def get_many(self, names: Iterable[str]) -> list[Lesson]:
        """Return lessons by their ids; for an agent without those that wait for a person."""
        from archivist.lessons import service as lessons

        return lessons.get_readable(self, names)

    @reads(Layer.LESSONS)
    def query(self, query: Query, *, after: Sequence[object] | None = None) -> list[Lesson]:
        """Return the lessons that a query asks for: the best text matches first, else the most frequent.

        Without a text, `after` is a place in that order, behind which they stand.
        """
        from archivist.lessons import service as lessons

        return lessons.query(self, query, after)

    @reads(Layer.LESSONS)
    def recall(self, query: Query) -> RecallResult:
        """Find what answers a question, in every kind of record, the best first, each with its reasons."""
        from archivist.recall import service as recalling

        return recalling.recall(self, query)

    @reads(Layer.LESSONS)
    def views(self, chosen: Sequence[Lesson]) -> list[dict[str, object]]:
        """Return lessons as plain values, with what is counted for each."""
        from archivist.lessons import service as lessons

        return lessons.views(self, chosen)

    @reads(Layer.LESSONS)
    def find_stale(self, lessons: Sequence[Lesson]) -> dict[str, str]:
        """Return, by lesson id, what each that is stale names and is gone from the working tree."""
        from archivist.brief.liveness_service import find_stale

        return find_stale(self.path.parent, lessons)

    @writes(Layer.LESSONS)
    def edit(self, /, name: str, **changes: Any) -> Lesson:
        """Change a lesson's words, scope or weight; its history keeps what it was."""
        from archivist.lessons import service as lessons

        return lessons.edit(self, name, changes)

    @decides(Layer.LESSONS)
    def approve(self, name: str) -> Lesson:
        """Believe a lesson as it stands; out of quarantine only a person lets one."""
        from archivist.lessons import service as lessons

        return lessons.approve(self, name)

    @writes(Layer.LESSONS)
    def forget(self, name: str) -> Lesson:
        """Move a lesson to the archive, whatever its frequency."""
        from archivist.lessons import service as lessons

        return lessons.retire(self, name, "forget")

    @writes(Layer.LESSONS)
    def archive(self, name: str, replacement: str = "") -> Lesson:
        """Retire a lesson; with a replacement it is superseded by that."""
        from archivist.lessons import service as lessons

        return lessons.retire(self, name, "supersede" if replacement else "archive", replacement)

    @writes(Layer.LESSONS)
    def record_usage(self, names: Sequence[str], *, run: str = "") -> Brief | None:
        """Record in one write that these lessons were used; reading alone never does."""
        from archivist.lessons import service as lessons

        return lessons.record_usage(self, names, run)

    # Layers and tiers

    @property
    def knowledge(self) -> Knowledge:
        """Return the desk of facts."""
        from archivist.layers.knowledge.service import Knowledge

        return Knowledge(self)

    @property
    def attempts(self) -> Attempts:
        """Return the desk of the episodic log."""
        from archivist.layers.attempts.service import Attempts

        return Attempts(self)

    @property
    def artifacts(self) -> Artifacts:
        """Return the desk of what runs produced."""
        from archivist.layers.artifacts.service import Artifacts

        return Artifacts(self)

    @property
    def working(self) -> WorkingMemory:
        """Return the desk of the acting agent's scratch."""
        from archivist.layers.working.service import WorkingMemory

        return WorkingMemory(self)

    @property
    def core(self) -> Core:
        """Return the desk of what is always in context."""
        from archivist.core.service import Core

        return Core(self)

    @property
    def proposals(self) -> Proposals:
        """Return the desk of changes that need approval."""
        from archivist.core.proposals_service import Proposals

        return Proposals(self)

    @property
    def stream(self) -> Stream:
        """Return the desk of what agents logged."""
        from archivist.stream.service import Stream

        return Stream(self)

    @property
    def documents(self) -> Documents:
        """Return the desk of the archive."""
        from archivist.archive.service import Documents

        return Documents(self)

    @property
    def workspace(self) -> WorkspaceService:
        """Return the desk of the workspace's markdown."""
        from archivist.workspace.service import WorkspaceService

        return WorkspaceService(self)

    @property
    def tokens(self) -> Tokens:
        """Return the desk of the tokens that let others in."""
        from archivist.access.service import Tokens

        return Tokens(self)

    def version(self) -> int:
        """Return a number that is another one whenever somebody else has changed the bank since."""
        return self._store.version()

    @reads(Layer.BANK)
    def find(self, name: str) -> tuple[str, Any]:
        """Return any record and its kind by its id, its short id or a fact's `category/key`."""
        from archivist.ledger import service as lookup

        return lookup.find(self, name)

    # Ledger

    @reads(Layer.BANK)
    def denials(self, *, limit: int | None = None) -> list[LedgerChange]:
        """Return what was refused to whom, oldest first."""
        with self.reading() as reader:
            return reader.changes(kind=DENIAL, limit=limit)

    @reads(Layer.BANK)
    def history(self, name: str) -> list[LedgerChange]:
        """Return every change of a record, oldest first."""
        from archivist.lessons import service as lessons

        return lessons.history(self, name)

    @writes(Layer.BANK)
    def undo(self, name: str) -> Lesson | Episode | Brief | Verdict | None:
        """Take the last change of a record back; None when that was its making, so that it is gone."""
        from archivist.lessons import service as lessons

        return lessons.undo(self, name)

    @reads(Layer.BANK)
    def verify(self) -> Verification:
        """Check the whole ledger, and every record against it."""
        with self.reading() as reader:
            return reader.verify()

    # Runs

    @writes(Layer.RUNS)
    def record_episode(self, episode: Episode) -> Episode:
        """Record what a run was; a run that is known already is brought up to date."""
        return self.capture(episode, ())

    @writes(Layer.RUNS)
    def capture(self, episode: Episode, events: Iterable[Event]) -> Episode:
        """Take a run in with its events. Taking the same run again changes nothing."""
        from archivist.capture import runs_service as runs

        return runs.capture(self, episode, events)

    @writes(Layer.RUNS)
    def capture_file(
        self, path: str | Path, *, format_name: str = "auto", overrides: CaptureOverrides | None = None
    ) -> CaptureResult:
        """Take a log of a known format in, cleaned; its runs wait for reflection."""
        from archivist.capture import service as capturing

        return capturing.capture_file(self, Path(path), format_name=format_name, overrides=overrides)

    @reads(Layer.RUNS)
    def episode(self, run: str) -> Episode:
        """Return a run's record."""
        from archivist.capture import runs_service as runs

        with self.reading() as reader:
            return runs.find(reader, run)

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
        from archivist.capture import runs_service as runs

        return runs.list_runs(self, project, task, limit, after)

    @reads(Layer.RUNS)
    def to_atif(self, run: str) -> dict[str, object]:
        """Return a run as an ATIF trajectory."""
        from archivist.capture import runs_service as runs

        return runs.to_trajectory(self, run)

    @writes(Layer.RUNS)
    def extract(self, run: str, *, domain: str = "") -> Extraction:
        """Learn from the review findings of a captured run."""
        from archivist.capture import runs_service as runs

        return runs.extract(self, run, domain)

    @writes(Layer.RUNS)
    def decay(self, run: str) -> AgeingResult:
        """Let a run age the bank: lessons that enough runs did not meet fade. A run ages it only once."""
        from archivist.capture import runs_service as runs

        return runs.decay(self, run)

    @writes(Layer.RUNS)
    def start_run(
        self,
        run: str,
        *,
        task: str = "",
        domain: str = "",
        role: str = "",
        repo: str = "",
        provider: str = "",
        form: BriefFormat = BriefFormat.KNOWN_ISSUES,
        is_fenced: bool = False,
        global_bank: Bank | None = None,
    ) -> RenderedBrief:
        """Open a run and brief it: what an orchestrator calls before it spawns agents."""
        from archivist.capture import runs_service as runs

        with self.transaction():
            runs.open_run(self, run, task, domain, repo)
            return self.brief(
                task="" if domain else task,
                domain=domain,
                role=role,
                repo=repo,
                provider=provider,
                run=run,
                form=form,
                is_fenced=is_fenced,
                global_bank=global_bank,
            )

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
        from archivist.capture import runs_service as runs

        return runs.finish(self, episode, events, status=status, domain=domain, global_bank=global_bank)

    @writes(Layer.RUNS)
    def finish_log(
        self, path: str | Path, *, overrides: CaptureOverrides | None = None, global_bank: Bank | None = None
    ) -> list[FinishedLog]:
        """Close the runs of an agent's own log: capture, reflect, age the bank, judge what each was told."""
        from archivist.reflect import service as reflection

        return reflection.finish_log(self, Path(path), overrides, global_bank)

    # Reflection

    @writes(Layer.RUNS)
    def reflect(self, run: str, *, scenario: Scenario | None = None) -> Reflection:
        """Learn from a captured run without a language model. Reflecting on it again changes nothing."""
        from archivist.reflect import service as reflection

        return reflection.reflect(self, run, scenario)

    @writes(Layer.RUNS)
    def maybe_reflect(self, trigger: ReflectionTrigger) -> ReflectionOutcome:
        """Reflect when the configuration asks for it; never raises into a run."""
        from archivist.reflect import service as reflection

        return reflection.maybe_reflect(self, trigger)

    @writes(Layer.RUNS)
    def reflect_waiting(
        self, *, scenario: Scenario | None = None
    ) -> Iterator[Reflection | ReflectionOutcome]:
        """Reflect on every run that waits, oldest first, as the iterator is drawn."""
        from archivist.reflect import service as reflection

        return reflection.reflect_waiting(self, scenario=scenario)

    @reads(Layer.RUNS)
    def recent_runs(self, days: int) -> list[str]:
        """Return the runs that ended within the last days, oldest first."""
        from archivist.reflect import service as reflection

        return reflection.recent_runs(self, days)

    @reads(Layer.RUNS)
    def waiting_runs(self) -> list[QueuedRun]:
        """Return the runs that wait for reflection."""
        with self.reading() as reader:
            return reader.queued_runs()

    # Brief and audit

    @reads(Layer.LESSONS)
    def brief(
        self,
        *,
        domain: str = "",
        role: str = "",
        task: str = "",
        repo: str = "",
        project: str = "",
        provider: str = "",
        tool: str = "",
        tags: Sequence[str] = (),
        run: str = "",
        preset: BriefPreset | None = None,
        max_lessons: int | None = None,
        budget_tokens: int | None = None,
        tokens: Callable[[str], int] | None = None,
        form: BriefFormat = BriefFormat.KNOWN_ISSUES,
        is_fenced: bool = False,
        global_bank: Bank | None = None,
    ) -> RenderedBrief:
        """Say what a new run should know; with a run, record it. `beside` is the global bank.

        With a task, a repository or for a subagent: what that project met, how often, how lately and what
        helped, within a budget that `tokens` counts. Else the documented known issues of a domain and role,
        as many as the rules say unless a budget is named. `repo` is what somebody calls it, `project` exactly
        what the bank does.
        """
        from archivist.brief import service as briefing
        from archivist.brief.presets import BriefPreset, rules_for_preset

        rules = rules_for_preset(
            self.config.brief, preset, max_lessons=max_lessons, budget_tokens=budget_tokens
        )
        audience = briefing.Audience(domain=domain, role=role, provider=provider, tool=tool, tags=tuple(tags))
        if task or repo or project or preset is BriefPreset.SUBAGENT:
            told = briefing.brief_task(
                self,
                audience,
                task=task,
                repo=repo,
                project=project,
                run=run,
                rules=rules,
                form=form,
                is_fenced=is_fenced,
                global_bank=global_bank,
                tokens=tokens,
            )
        else:
            told = briefing.brief_known_issues(
                self,
                audience,
                run=run,
                rules=rules,
                form=form,
                is_fenced=is_fenced,
                global_bank=global_bank,
                budget_tokens=budget_tokens,
                tokens=tokens,
            )
        return _fence_brief(told) if is_fenced else told

    @reads(Layer.LESSONS)
    def reasons(self, brief: RenderedBrief) -> list[str]:
        """Return why each lesson of a brief is told, and what is withheld or stale."""
        from archivist.brief import service as briefing

        return briefing.reasons(self, brief)

    @reads(Layer.LESSONS)
    def heal(
        self,
        error: str,
        *,
        tool: str = "",
        command: str = "",
        repo: str = "",
        project: str = "",
        run: str = "",
        is_fenced: bool = False,
    ) -> RenderedBrief:
        """Say what runs before this one did about an error's output: what worked, in how many of them.

        `repo` is what somebody calls the repository, `project` exactly what the bank does.
        """
        from archivist.brief import healing_service as healing

        told = healing.heal(self, error, tool=tool, command=command, repo=repo, project=project, run=run)
        return _fence_brief(told) if is_fenced else told

    @writes(Layer.RUNS)
    def audit(self, run: str, *, global_bank: Bank | None = None) -> list[Verdict]:
        """Judge each lesson that a run was told by what its reviewers found."""
        from archivist.capture import runs_service as runs

        return runs.audit(self, run, global_bank)

    @reads(Layer.RUNS)
    def audit_report(self) -> Report:
        """Sum up how the briefed lessons did."""
        from archivist.capture import runs_service as runs

        return runs.audit_report(self)

    @reads(Layer.RUNS)
    def regressions(self, run: str) -> list[Regression]:
        """Return what earlier runs had fixed and this one's reviewers found again."""
        from archivist.capture import runs_service as runs

        return runs.find_regressions(self, run)

    # Vectors

    def embed_waiting(self, *, limit: int | None = None) -> Iterator[Progress]:
        """Make the vectors that are missing, a batch at a time as the iterator is drawn."""
        from archivist.recall import embedding_service as embedding

        return embedding.embed_waiting(self, limit=limit)

    def count_unembedded(self) -> int:
        """Return how many texts wait for their vector."""
        if self.embedder is None:
            return 0
        with self.reading() as reader:
            return reader.pending_embedding_count(self.embedder.name)

    def embed_in_background(self) -> tuple[Thread, Signal]:
        """Make the missing vectors in a thread; setting the signal ends it after the batch at hand."""
        from archivist.recall import embedding_service as embedding

        return embedding.embed_in_background(self)

    # Files

    @reads(Layer.BANK)
    def export(self, folder: Path, *, shape: LessonFormat | None = None) -> dict[str, int]:
        """Write the bank as JSON lines in the documents' shapes; return how many lines each file has."""
        from archivist.exchange import service as files
        from archivist.exchange.files import LessonFormat

        return files.export(self, folder, shape or LessonFormat.CROSS_RUN)

    @writes(Layer.BANK)
    def import_files(self, paths: Sequence[Path], *, is_strict: bool = False) -> FileImportResult:
        """Take exported files in: new records are added, known ones merged, bad lines left out."""
        from archivist.exchange import service as files

        return files.import_files(self, paths, is_strict=is_strict)

    @writes(Layer.BANK)
    def share(self, folder: Path) -> ShareResult:
        """Bring the bank and a folder kept in git together: take what others wrote, write what is ours."""
        from archivist.exchange import service as files

        return files.sync_share(self, folder)

    # Forgetting

    @writes(Layer.BANK)
    def find_erasure_targets(self, names: Sequence[str] = (), *, matching: str = "") -> list[ErasureTarget]:
        """Return what erasing would touch: records by their ids, or all that hold a text."""
        from archivist.forget import service as forgetting

        return forgetting.find_erasure_targets(self, self._store, names, matching)

    @writes(Layer.BANK)
    def erase(self, names: Sequence[str] = (), *, matching: str = "") -> Receipt:
        """Erase records, or a text everywhere, down to the raw bytes; the receipt says what was checked."""
        from archivist.forget import service as forgetting

        return forgetting.erase(self, self._store, names, matching)

    @writes(Layer.BANK)
    def prune(self, *, days: int | None = None, is_dry_run: bool = True) -> PruneResult:
        """Let runs go that are older than so many days, except what lessons cite and what waits."""
        from archivist.forget import service as forgetting

        return forgetting.prune(self, self._store, days, is_dry_run=is_dry_run)

    @reads(Layer.BANK)
    def sizes(self) -> Sizes:
        """Return how large the bank is, and what makes it so."""
        return self._store.sizes()

    # The bank itself

    @reads(Layer.BANK)
    def status(self) -> dict[str, int]:
        """Return how much of everything there is."""
        from archivist import doctor as health

        return health.count_records(self)

    @reads(Layer.BANK)
    def health(self) -> list[Check]:
        """Return what is well with the bank and what is not."""
        from archivist import doctor as health

        return health.run_checks(self)

    @reads(Layer.LESSONS)
    def lesson_names(self) -> dict[str, tuple[str, str]]:
        """Return the short id and the words of every lesson by its global id."""
        from archivist.lessons import service as lessons

        return lessons.lesson_names(self)

    @writes(Layer.BANK)
    def reindex(self) -> None:
        """Build everything derived again from the records."""
        self._store.reindex()


def _fence_brief(brief: RenderedBrief) -> RenderedBrief:
    from archivist.brief.fence import fence_brief

    return fence_brief(brief)
