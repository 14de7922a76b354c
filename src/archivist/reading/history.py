"""What earlier runs of the bank met, as later ones need to know it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from statistics import median
from typing import Any

from archivist.reading.remedies import Remedy, from_digest


@dataclass(frozen=True, slots=True)
class PastRun:
    """One earlier run with the digest that reading it left."""

    run: str
    project: str
    provider: str
    model: str
    status: str
    finished: datetime | None
    digest: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""


@dataclass(frozen=True, slots=True)
class FailureHistory:
    """What earlier runs of a project know of one failure: how many met it, on what, and what helped.

    `command` and `line` are of the first that met it. `shown` has, for each remedy, the call that it first
    helped and what that had said; `tried` what worked and what was done in vain, run by run, oldest first.
    """

    runs: int = 0
    failures: int = 0
    untouched: int = 0
    fleeting: int = 0
    subjects: Counter[str] = field(default_factory=Counter)
    remedies: Counter[Remedy] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    command: str = ""
    line: str = ""
    shown: Mapping[Remedy, tuple[str, str]] = field(default_factory=dict)
    tried: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    tasks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AttemptCounts:
    """How a purpose went: how often it succeeded, failed, timed out, and the seconds that it took."""

    ok: int = 0
    failed: int = 0
    timeout: int = 0
    seconds: float = 0.0

    def __add__(self, other: AttemptCounts) -> AttemptCounts:
        return AttemptCounts(
            self.ok + other.ok,
            self.failed + other.failed,
            self.timeout + other.timeout,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class TypicalRun:
    """The middle of what runs of a project took, and how many runs that is the middle of."""

    runs: int
    duration_s: float
    cost_usd: float
    tokens: float


class RunHistory:
    """Earlier runs, asked by project, failure, purpose and provider."""

    def __init__(self, runs: Sequence[PastRun]) -> None:
        self._runs = runs

    @cached_property
    def _by_project(self) -> dict[str, list[PastRun]]:
        found: dict[str, list[PastRun]] = {}
        for run in self._runs:
            found.setdefault(run.project, []).append(run)
        return found

    def runs_of(self, project: str) -> Sequence[PastRun]:
        """Return the earlier runs of a project, oldest first. Runs of no project have nothing in common."""
        return self._by_project.get(project, []) if project else []

    def failure_history(self, project: str, key: str) -> FailureHistory:
        """Return what the project's runs know of a failure."""
        runs = [run for run in self.runs_of(project) if _digest_part(run, "failures").get(key)]
        found = [_digest_part(run, "failures")[key] for run in runs]
        subjects: Counter[str] = Counter()
        remedies: Counter[Remedy] = Counter()
        places: Counter[str] = Counter()
        shown: dict[Remedy, tuple[str, str]] = {}
        tried: list[tuple[frozenset[str], frozenset[str]]] = []
        for entry in found:
            helped = [from_digest(value) for value in entry.get("remedies") or ()]
            for remedy, (command, line) in zip(helped, entry.get("shown") or (), strict=False):
                shown.setdefault(remedy, (str(command), str(line)))
            tried.append((frozenset(each.text for each in helped), frozenset(entry.get("in_vain") or ())))
            subjects.update(dict.fromkeys(entry.get("subjects") or (), 1))
            remedies.update(dict.fromkeys(helped, 1))
            places.update(dict.fromkeys(entry.get("places") or (), 1))
        return FailureHistory(
            runs=len(found),
            failures=sum(int(entry.get("n") or 0) for entry in found),
            untouched=sum(bool(entry.get("untouched")) for entry in found),
            fleeting=sum(bool(entry.get("fleeting")) for entry in found),
            subjects=subjects,
            remedies=remedies,
            places=places,
            command=str(found[0].get("command") or "") if found else "",
            line=str(found[0].get("line") or "") if found else "",
            shown=shown,
            tried=tuple(tried),
            tasks=frozenset(run.task or run.run for run in runs),
        )

    def has_passed(self, project: str, key: str, call: str) -> bool:
        """Say whether a test call went well in an untouched project after a run had met a failure there."""
        has_failed = False
        for run in self.runs_of(project):
            if has_failed and call in (run.digest.get("passed") or ()):
                return True
            has_failed = has_failed or key in _digest_part(run, "failures")
        return False

    def projects_with(self, family: str) -> frozenset[str]:
        """Return the projects whose runs met a failure of a family."""
        return frozenset(
            run.project for run in self._runs if f"{run.project}|{family}" in _digest_part(run, "failures")
        )

    def attempts(self, project: str, purpose: str) -> dict[str, AttemptCounts]:
        """Return how each provider fared with a purpose in a project."""
        found: dict[str, AttemptCounts] = {}
        for provider, attempts in self._attempts(project, purpose):
            found[provider] = found.get(provider, AttemptCounts()) + attempts
        return found

    def _attempts(self, project: str, purpose: str) -> Iterator[tuple[str, AttemptCounts]]:
        for run in self.runs_of(project):
            entry = _digest_part(run, "attempts").get(purpose)
            if entry and run.provider:
                yield (
                    run.provider,
                    AttemptCounts(
                        int(entry.get("ok") or 0),
                        int(entry.get("failed") or 0),
                        int(entry.get("timeout") or 0),
                        float(entry.get("seconds") or 0),
                    ),
                )

    def typical_run(self, project: str) -> TypicalRun | None:
        """Return the middle of what the project's runs took, or None when there are none."""
        runs = [run.digest for run in self.runs_of(project) if run.digest]
        if not runs:
            return None
        middle = {
            name: median([float(run.get(name) or 0) for run in runs])
            for name in ("duration_s", "cost_usd", "tokens")
        }
        return TypicalRun(len(runs), middle["duration_s"], middle["cost_usd"], middle["tokens"])


def _digest_part(run: PastRun, name: str) -> Mapping[str, Any]:
    part = run.digest.get(name)
    return part if isinstance(part, Mapping) else {}
