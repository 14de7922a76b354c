"""Work on drafts: read captured runs for what is worth saving, and hand it to `save_memory`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from archivist.access.rights import Layer, reads, writes
from archivist.reading.run import read_run
from archivist.records import Episode, Event, Lesson
from archivist.service import BankService
from archivist.store.filters import equals, one_of
from archivist.workspace import triggers
from archivist.workspace.classify import MemoryKind
from archivist.workspace.corpus import learnings_of, read_corpus, words_of
from archivist.workspace.drafts import Draft, DraftContext
from archivist.workspace.memory import Workspace
from archivist.workspace.save import MemoryItem, OnConflict, SaveOutcome, SaveResult
from archivist.workspace.topology import FileKind, Topology

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.store.protocol import Reader

LATEST_RUNS = 10
# So many of a run's calls are read: the end of a run tells what became of it.
_EVENTS = 20_000


class RunDrafts(NamedTuple):
    """What one run offers, and the day on which it ended."""

    run: str
    drafts: tuple[Draft, ...]
    day: date | None = None


class DraftCoverage(NamedTuple):
    """How many runs were read for drafts, of how many there are, and how many of them wait for reflection."""

    runs: int
    known: int
    waiting: int


class Drafts(BankService):
    """The learning cycle's triggers, over the runs that the bank captured."""

    def __init__(self, bank: Bank, topology: Topology) -> None:
        super().__init__(bank)
        self._topology = topology

    @reads(Layer.WORKSPACE)
    def collect(
        self, runs: Sequence[str] = (), *, scope: str = "", latest: int = LATEST_RUNS
    ) -> list[RunDrafts]:
        """Return what runs offer, those named or the latest ones; nothing that is written down already."""
        sources = read_corpus([self._topology]).sources
        known = DraftContext(learnings=learnings_of(sources), words=words_of(sources))
        scopes = self._topology.scopes()
        found: list[RunDrafts] = []
        for episode in self._episodes(runs, latest):
            with self._bank.reading() as reader:
                events = _latest_events(reader, episode.id)
                lessons = tuple(reader.select(Lesson, one_of("status", ("active", "candidate"))))
            place = scope or triggers.scope_of_project(episode.project, scopes)
            told = replace(known, lessons=lessons, scope=place)
            offered = triggers.find_drafts(read_run(episode, events), events, told)
            drafts = triggers.new_drafts(offered, [draft for each in found for draft in each.drafts])
            if drafts:
                ended = episode.finished or episode.started
                found.append(RunDrafts(episode.id, tuple(drafts), ended.date() if ended else None))
        return found

    @writes(Layer.WORKSPACE)
    def save(
        self, run_drafts: Sequence[RunDrafts], *, on_conflict: OnConflict | str = OnConflict.REFUSE
    ) -> list[SaveOutcome]:
        """Hand drafts to `save_memory`. One that contradicts an entry is left to a person unless said."""
        rule = OnConflict(on_conflict)
        workspace = Workspace(self._topology.root, self._topology.rules, now=self._bank.now)
        outcomes: list[SaveOutcome] = []
        for run in run_drafts:
            for draft in run.drafts:
                if draft.conflicts_with and rule is OnConflict.REFUSE:
                    outcomes.append(_conflict_outcome(draft))
                else:
                    item = _to_memory_item(draft, run.day)
                    outcomes += workspace.save_memory([item], draft.scope, on_conflict=rule)
        return outcomes

    @reads(Layer.WORKSPACE)
    def coverage(self, runs: Sequence[str] = (), *, latest: int = LATEST_RUNS) -> DraftCoverage:
        """Return how many runs are read for drafts, of how many, and how many wait for reflection."""
        with self._bank.reading() as reader:
            waiting = {each.run for each in reader.queued_runs()}
            known = reader.count(Episode, equals("parent", ""))
        names = [each.id for each in self._episodes(runs, latest)]
        return DraftCoverage(len(names), known, sum(name in waiting for name in names))

    def _episodes(self, runs: Sequence[str], latest: int) -> list[Episode]:
        if runs:
            return [self._bank.runs.episode(run) for run in runs]
        return [each for each in self._bank.runs.episodes() if not each.parent][:latest]


def _to_memory_item(draft: Draft, day: date | None) -> MemoryItem:
    return MemoryItem(
        text=draft.text,
        kind=_memory_kind(draft),
        title=draft.title,
        category=draft.category,
        tags=draft.tags,
        date=day,
    )


def _memory_kind(draft: Draft) -> MemoryKind:
    return MemoryKind.DECISION if draft.kind is FileKind.DECISIONS else MemoryKind.LESSON


def _conflict_outcome(draft: Draft) -> SaveOutcome:
    """Say that an entry must be looked at: what a run met speaks against it."""
    path, _, line = draft.conflicts_with.rpartition(":")
    return SaveOutcome(
        SaveResult.CONFLICT,
        draft.title,
        _memory_kind(draft),
        draft.scope,
        path,
        int(line),
        "a run showed that the entry no longer holds",
        draft.conflicts_with,
    )


def _latest_events(reader: Reader, run: str) -> list[Event]:
    latest = reader.select(Event, equals("run", run), order=("-seq",), limit=_EVENTS)
    return latest[::-1]
