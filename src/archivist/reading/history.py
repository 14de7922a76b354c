"""What earlier runs of the bank met, as reflection on a later run needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class PastRun:
    """One earlier run with the digest that was stored when it was read."""

    run: str
    project: str
    provider: str
    digest: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    model: str = ""
    parent: str = ""
    started: datetime | None = None

    def digest_part(self, name: str) -> Mapping[str, Any]:
        """Return a table of the digest; empty when an older version wrote none."""
        part = self.digest.get(name)
        return part if isinstance(part, Mapping) else {}


@dataclass(frozen=True, slots=True)
class AttemptCounts:
    """How often a purpose succeeded, failed and timed out, and the seconds that it took."""

    ok: int = 0
    failed: int = 0
    timeout: int = 0
    seconds: float = 0.0

    def __add__(self, other: AttemptCounts) -> AttemptCounts:
        summed = (getattr(self, name) + getattr(other, name) for name in self.__slots__)
        return AttemptCounts(*summed)


class RunHistory:
    """Earlier runs, by project, failure, purpose, provider and model."""

    def __init__(self, runs: Sequence[PastRun]) -> None:
        self._runs = runs
        self._by_project: dict[str, list[PastRun]] = {}
        for run in runs:
            self._by_project.setdefault(run.project, []).append(run)

    def runs_of(self, project: str) -> Sequence[PastRun]:
        """Return the earlier runs of a project, oldest first. Runs without a project are unrelated."""
        return self._by_project.get(project, []) if project else []

    def runs_meeting(self, project: str, key: str) -> list[PastRun]:
        """Return the earlier runs of a project that met a failure, oldest first."""
        return [run for run in self.runs_of(project) if run.digest_part("failures").get(key)]

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

    def has_worked(self, project: str, purpose: str) -> bool:
        """Say whether an earlier run in a project succeeded at a purpose."""
        entries = (run.digest_part("attempts").get(purpose) for run in self.runs_of(project))
        return any(entry.get("ok") for entry in entries if entry)

    def attempts(self, project: str, purpose: str, provider: str = "") -> dict[str, AttemptCounts]:
        """Return the attempts at a purpose in a project: of each provider, or of each model of one."""
        found: dict[str, AttemptCounts] = {}
        for run in self.runs_of(project):
            entry = run.digest_part("attempts").get(purpose)
            name = run.model if provider else run.provider
            if entry and name and run.provider == (provider or run.provider):
                ok, failed, timeout = (int(entry.get(key) or 0) for key in ("ok", "failed", "timeout"))
                counts = AttemptCounts(ok, failed, timeout, float(entry.get("seconds") or 0))
                found[name] = found.get(name, AttemptCounts()) + counts
        return found
