"""Bring together what this run and earlier ones know of each failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archivist.reading.history import RunHistory
from archivist.reading.remedies import Proof, Remedy, RemedyKind, is_destructive, proofs
from archivist.reading.rules import FailureKind
from archivist.reading.run import CODE_KINDS, ObservedFailure, RunReading, test_folder


@dataclass(frozen=True, slots=True)
class Case:
    """One failure that the run met: every time here, and what earlier runs of the project say.

    `runs` counts this run too, `tasks` the different tasks that they were about, `subjects` the runs for each
    subject, `untouched` the runs that met it before they changed anything of the project, `fleeting` those in
    which the very same call went well with nothing done in between. `remedies` are what helped and in how
    many runs, the best proven first; `vain` has the runs that tried one to no avail, by its text. `command`
    and `line` are of the first run that met it; `shown` has those of the call that each remedy helped.
    """

    key: str
    met: tuple[ObservedFailure, ...]
    runs: int
    tasks: int
    untouched: int
    fleeting: int
    subjects: Mapping[str, int]
    remedies: tuple[tuple[Remedy, int], ...]
    vain: Mapping[str, int]
    places: tuple[str, ...]
    command: str
    line: str
    shown: Mapping[Remedy, tuple[str, str]]

    @property
    def first(self) -> ObservedFailure:
        """Return the first time that the run met it."""
        return self.met[0]

    @property
    def kind(self) -> FailureKind:
        """Return what kind of failure it is, as its key says."""
        return FailureKind(self.key.split("|", 1)[1].split(":", 1)[0])

    @property
    def is_of_code(self) -> bool:
        """Say whether it can be the task's own failure."""
        return self.kind in CODE_KINDS

    @property
    def cost(self) -> int:
        """Return how many calls it cost this run, each counted once."""
        return len({at for met in self.met for at in range(met.act.at, met.act.at + met.cost)})

    @property
    def events(self) -> tuple[str, ...]:
        """Return the events that show it, failure and cure, a handful."""
        found = [met.act.event.id for met in self.met[:4]]
        found += [act.event.id for met in self.met[:4] if met.cure for act in met.cure.acts[:2]]
        return tuple(dict.fromkeys(found))

    def runs_helped(self, remedy: Remedy) -> int:
        """Return in how many runs a remedy was seen to work."""
        return next((runs for each, runs in self.remedies if each == remedy), 0)

    def failing_example(self, remedy: Remedy | None = None) -> tuple[str, str]:
        """Return a call that failed and what it said, both of one sighting: that of a remedy, if given."""
        return self.shown.get(remedy, (self.command, self.line)) if remedy else (self.command, self.line)

    def best_remedy(self, *ways: RemedyKind) -> Remedy | None:
        """Return what is best proven to help, in one of the ways when any are given."""
        return next((remedy for remedy, _ in self.remedies if not ways or remedy.way in ways), None)


def failure_cases(reading: RunReading, past: RunHistory) -> list[Case]:
    """Return the failures of a run, each once, in the order they were met."""
    by_key: dict[str, list[ObservedFailure]] = {}
    for met in reading.met:
        by_key.setdefault(met.key, []).append(met)
    return [_case(reading, past, key, those) for key, those in by_key.items()]


def _case(reading: RunReading, past: RunHistory, key: str, those: list[ObservedFailure]) -> Case:
    before = past.failure_history(reading.episode.project, key)
    subjects = Counter(dict.fromkeys((met.failure.subject for met in those if met.failure.subject), 1))
    remedies = Counter(dict.fromkeys((met.cure.remedy for met in those if met.cure), 1))
    places = Counter(dict.fromkeys(filter(None, map(test_folder, those)), 1))
    proven = proofs([*before.tried, _remedy_results(those)])
    return Case(
        key=key,
        met=tuple(those),
        runs=before.runs + 1,
        tasks=len(before.tasks | {reading.episode.task or reading.episode.id}),
        untouched=before.untouched + any(met.is_untouched for met in those),
        fleeting=before.fleeting + any(met.is_fleeting for met in those),
        subjects=_rank_counts(subjects + before.subjects),
        remedies=_rank_remedies(remedies + before.remedies, proven),
        vain={text: proof.vain for text, proof in proven.items() if proof.vain},
        places=tuple(_rank_counts(places + before.places)),
        # The first wording stays, so that a sighting does not change what a lesson quotes.
        command=before.command or those[0].act.display_text,
        line=(before.line if before.command else "") or those[0].failure.line,
        shown={**_calls_by_remedy(those), **before.shown},
    )


def _remedy_results(those: Sequence[ObservedFailure]) -> tuple[frozenset[str], frozenset[str]]:
    """Return what worked in this run, and what was done in vain."""
    worked = frozenset(met.cure.remedy.text for met in those if met.cure)
    return worked, frozenset(text for met in those for text in met.in_vain)


def _calls_by_remedy(those: Sequence[ObservedFailure]) -> dict[Remedy, tuple[str, str]]:
    found: dict[Remedy, tuple[str, str]] = {}
    for met in those:
        if met.cure:
            found.setdefault(met.cure.remedy, (met.act.display_text, met.failure.line))
    return found


def _rank_counts(found: Counter[str]) -> dict[str, int]:
    return {each: found[each] for each in sorted(found, key=lambda each: (-found[each], each))}


def _rank_remedies(found: Counter[Remedy], proven: Mapping[str, Proof]) -> tuple[tuple[Remedy, int], ...]:
    """Order remedies by how well they are proven; one change in several files is one remedy.

    What can destroy work or data is none until a second run has done it.
    """
    files: dict[tuple[RemedyKind, str, str], Counter[str]] = {}
    counts: Counter[tuple[RemedyKind, str, str]] = Counter()
    for remedy, runs in found.items():
        name = (remedy.way, remedy.text, remedy.instead)
        files.setdefault(name, Counter()).update(dict.fromkeys(remedy.files, runs))
        # What is done first helps whatever call came after it.
        counts[name] = max(counts[name], proven[remedy.text].runs if remedy.way is RemedyKind.STEP else runs)
    ranked = sorted(counts, key=lambda name: (proven[name[1]].rank, name[0] is RemedyKind.EDIT, name))
    return tuple(
        (Remedy(*name, _usual_files(files[name])), counts[name])
        for name in ranked
        if counts[name] > 1
        or not (name[0] in (RemedyKind.STEP, RemedyKind.COMMAND) and is_destructive(name[1]))
    )


def _usual_files(files: Counter[str]) -> tuple[str, ...]:
    """Return the files that runs changed as a rule, not those that one of many did."""
    most = max(files.values(), default=0)
    return tuple(file for file in _rank_counts(files) if files[file] * 2 >= most)[:4]
