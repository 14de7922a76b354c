"""What every miner is given."""

from __future__ import annotations

from dataclasses import dataclass

from archivist.records import Category, Scope
from archivist.reflect.candidates import Candidate
from archivist.reflect.cases import Case, cases
from archivist.reflect.importance import importance
from archivist.reflect.kinds import FailureKind
from archivist.reflect.past import Past
from archivist.reflect.reading import Reading
from archivist.reflect.wording import clipped, short_name, tags

COMMON_TO_PROJECTS = 3


@dataclass(frozen=True, slots=True)
class Material:
    """A run, what came before it, and both brought together failure by failure."""

    reading: Reading
    past: Past
    cases: tuple[Case, ...]

    @property
    def project(self) -> str:
        """Return the project's whole name."""
        return self.reading.episode.project

    @property
    def name(self) -> str:
        """Return what people call the project."""
        return short_name(self.project) or "this project"

    def of_kind(self, *kinds: FailureKind) -> list[Case]:
        """Return the cases of these kinds."""
        return [case for case in self.cases if case.kind in kinds]


def gather(reading: Reading, past: Past) -> Material:
    """Bring a run and the past together."""
    return Material(reading, past, tuple(cases(reading, past)))


def candidate(
    material: Material,
    case: Case,
    summary: str,
    *,
    rule: str = "",
    remedies: tuple[str, ...] = (),
    category: Category = Category.TOOL_USAGE,
    words: tuple[str, ...] = (),
    is_answer: bool = False,
) -> Candidate:
    """Make the candidate that a case supports; `is_answer` when knowing it is remedy enough."""
    family = case.key.split("|", 1)[1]
    projects = material.past.projects_with(family) | {material.project}
    is_common = category is Category.TOOL_USAGE and len(projects) >= COMMON_TO_PROJECTS
    signature = case.first.failure.signature
    return Candidate(
        key=case.key,
        summary=clipped(summary),
        rule=rule,
        detail=case.line[:300],
        category=category,
        scope=Scope.TOOL if is_common else Scope.REPO,
        repo=material.project,
        tool=signature.program if category is Category.TOOL_USAGE else "",
        tags=tags(*words, signature.program, signature.error),
        importance=importance(case, has_remedy=bool(remedies) or is_answer),
        events=case.events,
        remedies=remedies,
    )
