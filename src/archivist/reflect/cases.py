"""Bring together what this run and earlier ones know of each failure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from archivist.reflect.kinds import FailureKind
from archivist.reflect.past import Past
from archivist.reflect.reading import CODE_KINDS, Met, Reading, place
from archivist.reflect.remedies import Remedy, Way


@dataclass(frozen=True, slots=True)
class Case:
    """One failure that the run met: every time here, and what earlier runs of the project say.

    `runs` counts this run too; `untouched` the runs that met it before they changed anything of the project.
    """

    key: str
    met: tuple[Met, ...]
    runs: int
    untouched: int
    subjects: tuple[str, ...]
    remedies: tuple[tuple[Remedy, int], ...]
    places: tuple[str, ...]

    @property
    def first(self) -> Met:
        """Return the first time that the run met it."""
        return self.met[0]

    @property
    def kind(self) -> FailureKind:
        """Return what kind of failure it is."""
        return self.first.failure.kind

    @property
    def is_of_code(self) -> bool:
        """Say whether it can be the task's own failure."""
        return self.kind in CODE_KINDS

    @property
    def cost(self) -> int:
        """Return how many calls it cost this run."""
        return sum(met.cost for met in self.met)

    @property
    def events(self) -> tuple[str, ...]:
        """Return the events that show it, failure and cure, a handful."""
        found = [met.act.event.id for met in self.met[:4]]
        found += [act.event.id for met in self.met[:4] if met.cure for act in met.cure.acts[:2]]
        return tuple(dict.fromkeys(found))

    def best(self, *ways: Way) -> Remedy | None:
        """Return what helped most often, in one of the ways when any are given."""
        return next((remedy for remedy, _ in self.remedies if not ways or remedy.way in ways), None)


def cases(reading: Reading, past: Past) -> list[Case]:
    """Return the failures of a run, each once, in the order they were met."""
    by_key: dict[str, list[Met]] = {}
    for met in reading.met:
        by_key.setdefault(met.key, []).append(met)
    return [_case(reading, past, key, those) for key, those in by_key.items()]


def _case(reading: Reading, past: Past, key: str, those: list[Met]) -> Case:
    before = past.sightings(reading.episode.project, key)
    subjects = Counter(dict.fromkeys((met.failure.subject for met in those if met.failure.subject), 1))
    remedies = Counter(dict.fromkeys((met.cure.remedy for met in those if met.cure), 1))
    places = Counter(dict.fromkeys(filter(None, map(place, those)), 1))
    return Case(
        key=key,
        met=tuple(those),
        runs=before.runs + 1,
        untouched=before.untouched + any(met.is_untouched for met in those),
        subjects=_ordered(subjects + before.subjects),
        remedies=_whole(remedies + before.remedies),
        places=_ordered(places + before.places),
    )


def _ordered(found: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(found, key=lambda each: (-found[each], each)))


def _whole(found: Counter[Remedy]) -> tuple[tuple[Remedy, int], ...]:
    """Order remedies by how many runs they helped; one change in several files is one remedy."""
    united: dict[tuple[Way, str, str], tuple[dict[str, None], int]] = {}
    for remedy, runs in sorted(found.items(), key=lambda item: (-item[1], item[0].text, item[0].files)):
        name = (remedy.way, remedy.text, remedy.instead)
        files, count = united.get(name, ({}, 0))
        united[name] = ({**files, **dict.fromkeys(remedy.files)}, max(count, runs))
    ranked = sorted(united.items(), key=lambda item: (-item[1][1], item[0][0] is Way.EDIT, item[0]))
    return tuple((Remedy(*name, tuple(files)[:4]), count) for name, (files, count) in ranked)
