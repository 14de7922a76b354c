"""What earlier runs of the bank met, as reflection on a later run needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from archivist.reading.remedies import Remedy, from_digest


@dataclass(frozen=True, slots=True)
class PastRun:
    """One earlier run with the digest that was stored when it was read."""

    run: str
    project: str
    provider: str
    digest: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""

    def digest_part(self, name: str) -> Mapping[str, Any]:
        """Return a table of the digest; empty when an older version wrote none."""
        part = self.digest.get(name)
        return part if isinstance(part, Mapping) else {}


@dataclass(frozen=True, slots=True)
class FailureHistory:
    """What earlier runs of a project know about one failure: how many met it, where, and what helped.

    `command` and `line` are those of the first run that met it. `shown` has, for each remedy, the call that
    it first helped and its error; `tried` what worked and what was tried in vain, run by run, oldest first.
    """

    runs: int = 0
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
    """How often a purpose succeeded, failed and timed out, and the seconds that it took."""

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
    """The medians of a project's runs, and the number of runs."""

    runs: int
    duration_s: float
    cost_usd: float


class RunHistory:
    """Earlier runs, by project, failure, purpose and provider."""

    def __init__(self, runs: Sequence[PastRun]) -> None:
        self._runs = runs
        self._by_project: dict[str, list[PastRun]] = {}
        for run in runs:
            self._by_project.setdefault(run.project, []).append(run)

    def runs_of(self, project: str) -> Sequence[PastRun]:
        """Return the earlier runs of a project, oldest first. Runs without a project are unrelated."""
        return self._by_project.get(project, []) if project else []

    def failure_history(self, project: str, key: str) -> FailureHistory:
        """Return what the project's runs know about a failure."""
        runs = [run for run in self.runs_of(project) if run.digest_part("failures").get(key)]
        entries = [run.digest_part("failures")[key] for run in runs]
        subjects: Counter[str] = Counter()
        remedies: Counter[Remedy] = Counter()
        places: Counter[str] = Counter()
        shown: dict[Remedy, tuple[str, str]] = {}
        tried: list[tuple[frozenset[str], frozenset[str]]] = []
        for entry in entries:
            helped = [from_digest(value) for value in entry.get("remedies") or ()]
            for remedy, (command, line) in zip(helped, entry.get("shown") or (), strict=False):
                shown.setdefault(remedy, (str(command), str(line)))
            in_vain = frozenset(entry.get("in_vain") or ())
            tried.append((frozenset(remedy.text for remedy in helped), in_vain))
            subjects.update(dict.fromkeys(entry.get("subjects") or (), 1))
            remedies.update(dict.fromkeys(helped, 1))
            places.update(dict.fromkeys(entry.get("places") or (), 1))
        first = entries[0] if entries else {}
        return FailureHistory(
            runs=len(entries),
            untouched=sum(bool(entry.get("untouched")) for entry in entries),
            fleeting=sum(bool(entry.get("fleeting")) for entry in entries),
            subjects=subjects,
            remedies=remedies,
            places=places,
            command=str(first.get("command") or ""),
            line=str(first.get("line") or ""),
            shown=shown,
            tried=tuple(tried),
            tasks=frozenset(run.task or run.run for run in runs),
        )

    def has_passed(self, project: str, key: str, call: str) -> bool:
        """Say whether a test call passed in an unchanged project after an earlier run had met the failure."""
        has_failed = False
        for run in self.runs_of(project):
            if has_failed and call in (run.digest.get("passed") or ()):
                return True
            has_failed = has_failed or key in run.digest_part("failures")
        return False

    def projects_with(self, family: str) -> frozenset[str]:
        """Return the projects whose runs met a failure of a family."""
        return frozenset(
            run.project for run in self._runs if f"{run.project}|{family}" in run.digest_part("failures")
        )

    def attempts(self, project: str, purpose: str) -> dict[str, AttemptCounts]:
        """Return the attempts of each provider at a purpose in a project."""
        found: dict[str, AttemptCounts] = {}
        for run in self.runs_of(project):
            entry = run.digest_part("attempts").get(purpose)
            if entry and run.provider:
                ok, failed, timeout = (int(entry.get(name) or 0) for name in ("ok", "failed", "timeout"))
                counts = AttemptCounts(ok, failed, timeout, float(entry.get("seconds") or 0))
                found[run.provider] = found.get(run.provider, AttemptCounts()) + counts
        return found

    def typical_run(self, project: str) -> TypicalRun | None:
        """Return the medians of the project's runs, or None when there are no runs."""
        digests = [run.digest for run in self.runs_of(project) if run.digest]
        if not digests:
            return None
        duration, cost = (
            median(float(digest.get(name) or 0) for digest in digests) for name in ("duration_s", "cost_usd")
        )
        return TypicalRun(len(digests), duration, cost)
