"""Read captured runs for what is worth saving, and pass it to `save_memory`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads, writes
from archivist.capture.runs import LATEST
from archivist.projects import names_of, without_others
from archivist.reading.run import read_run
from archivist.recall.keywords import keywords
from archivist.records import Actor, ActorKind, Episode, Event, Lesson, Provenance
from archivist.service import BankService
from archivist.store.filters import equals, one_of
from archivist.workspace.drafts import (
    Draft,
    DraftContext,
    find_drafts,
    new_drafts,
    scope_in_text,
    scope_of_project,
)
from archivist.workspace.files_service import Topology, read_corpus
from archivist.workspace.learnings import learnings_of
from archivist.workspace.markdown_service import Workspace
from archivist.workspace.save import MemoryItem, MemoryKind, OnConflict, SaveOutcome, SaveResult
from archivist.workspace.topology import FileKind

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.filters import Condition
    from archivist.store.protocol import Reader

LATEST_RUNS = 10
# The last calls of a run show how it ended; reading 20,000 takes about a second.
_MAX_EVENTS = 20_000


class RunDrafts(NamedTuple):
    """The drafts of one run, the date on which it ended, and who reported it if it was not captured here."""

    run: str
    drafts: tuple[Draft, ...]
    day: date | None = None
    said_by: Actor | None = None


class DraftCoverage(NamedTuple):
    """How many runs were read for drafts, how many exist, and how many of those read await reflection."""

    runs: int
    known: int
    waiting: int


class Drafts(BankService):
    """The triggers of the learning cycle, over the captured runs of the bank."""

    def __init__(self, bank: Bank, topology: Topology) -> None:
        super().__init__(bank)
        self._topology = topology

    @reads(Layer.WORKSPACE)
    def collect(
        self, runs: Sequence[str] = (), *, scope: str = "", latest: int = LATEST_RUNS
    ) -> list[RunDrafts]:
        """Return the drafts of the named runs, or of the latest ones; nothing that is saved already.

        Without a name, runs of other repositories than the caller's are left out.
        """
        sources = read_corpus([self._topology]).sources
        words = frozenset(word for source in sources for word in keywords(source.text))
        known = DraftContext(learnings=learnings_of(sources), words=words)
        scopes = self._topology.scopes()
        found: list[RunDrafts] = []
        for episode in self._episodes(runs, latest):
            with self._bank.reading() as reader:
                of_run = equals("run", episode.id)
                latest_first = reader.select(Event, of_run, order=("-seq",), limit=_MAX_EVENTS)
                told = one_of("status", ("active", "candidate")), equals("is_waiting", 0)
                names = ("", *names_of(reader, episode.project))
                lessons = tuple(reader.select(Lesson, *told, one_of("repo", names)))
                origin = None if reader.is_own_run(episode.id) else reader.run_origin(episode.id)
            events = latest_first[::-1]
            place = scope or scope_in_text(episode.task, scopes) or scope_of_project(episode.project, scopes)
            context = replace(known, lessons=lessons, scope=place)
            offered = find_drafts(read_run(episode, events), events, context)
            drafts = new_drafts(offered, [draft for run in found for draft in run.drafts])
            if drafts:
                ended = episode.finished or episode.started
                said_by = origin.actor if origin else None
                if said_by and said_by.kind is not ActorKind.AGENT:
                    said_by = Actor(ActorKind.AGENT, "import")
                day = ended.date() if ended else None
                found.append(RunDrafts(episode.id, tuple(drafts), day, said_by))
        return found

    @writes(Layer.WORKSPACE)
    def save(
        self, run_drafts: Sequence[RunDrafts], *, on_conflict: OnConflict | str = OnConflict.REFUSE
    ) -> list[SaveOutcome]:
        """Pass drafts to `save_memory`. By default a draft that contradicts an entry is not saved.

        What an agent or a file said of a run is saved as an agent's words, whoever saves it.
        """
        rule = OnConflict(on_conflict)
        bank = self._bank
        outcomes: list[SaveOutcome] = []
        for source, draft in ((run, draft) for run in run_drafts for draft in run.drafts):
            who = bank.actor if bank.actor.kind is ActorKind.AGENT else source.said_by or bank.actor
            workspace = Workspace(self._topology.root, self._topology.rules, now=bank.now, actor=who)
            kind = MemoryKind.DECISION if draft.kind is FileKind.DECISIONS else MemoryKind.LESSON
            if draft.conflicts_with and rule is OnConflict.REFUSE:
                path, _, line = draft.conflicts_with.rpartition(":")
                reason = "a run showed that the entry no longer holds"
                place = (path, int(line), reason, draft.conflicts_with)
                outcomes.append(SaveOutcome(SaveResult.CONFLICT, draft.title, kind, draft.scope, *place))
                continue
            own = {name: getattr(draft, name) for name in ("text", "title", "category", "tags")}
            item = MemoryItem(**own, kind=kind, date=source.day)
            outcomes += workspace.save_memory([item], draft.scope, on_conflict=rule)
        return outcomes

    @reads(Layer.WORKSPACE)
    def coverage(self, runs: Sequence[str] = (), *, latest: int = LATEST_RUNS) -> DraftCoverage:
        """Return how many runs are read for drafts, how many exist, and how many await reflection."""
        with self._bank.reading() as reader:
            waiting = {queued.run for queued in reader.queued_runs()}
            known = reader.count(Episode, equals("parent", ""), *self._own_runs(reader))
        names = [episode.id for episode in self._episodes(runs, latest)]
        return DraftCoverage(len(names), known, sum(name in waiting for name in names))

    def _episodes(self, runs: Sequence[str], latest: int) -> list[Episode]:
        if runs:
            return [self._bank.runs.episode(run) for run in runs]
        with self._bank.reading() as reader:
            # What an agent or a file says of a run is read only if a person names the run.
            wanted = equals("parent", ""), equals("provenance", Provenance.MINED), *self._own_runs(reader)
            return reader.select(Episode, *wanted, order=LATEST, limit=latest)

    def _own_runs(self, reader: Reader) -> list[Condition]:
        """Return the conditions for runs of the repository at hand, and of that which drafts are saved in."""
        folders = (self._bank.folder, self._topology.root) if self._bank.folder else ()
        of_run = "episode", "project"
        return [each for at in folders for each in without_others(reader, *of_run, at, self._bank.root)]
