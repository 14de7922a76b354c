"""What every miner is given."""

from __future__ import annotations

from dataclasses import dataclass, replace

from archivist.lessons.candidate import Candidate
from archivist.reading.history import RunHistory
from archivist.reading.remedies import WARNING, Remedy, RemedyKind, is_destructive
from archivist.reading.rules import FailureKind
from archivist.reading.run import RunReading
from archivist.reading.wording import advice, clip_words, code, format_run_count, short_name, tags
from archivist.records import Category, Scope
from archivist.reflect.cases import Case, failure_cases
from archivist.reflect.importance import importance

COMMON_TO_PROJECTS = 3


@dataclass(frozen=True, slots=True)
class Material:
    """A run, what came before it, and both brought together failure by failure."""

    reading: RunReading
    past: RunHistory
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


def gather_material(reading: RunReading, history: RunHistory) -> Material:
    """Bring a run and the past together."""
    return Material(reading, history, tuple(failure_cases(reading, history)))


def describe_remedy(case: Case, remedy: Remedy, *, is_whole: bool = False) -> str:
    """Say what to do and how often it was seen to help, where that is less often than the failure was met.

    Only tries are counted against it: a run that met the failure and did nothing says nothing of a remedy. Of
    what can destroy work or data only that it was done, as a warning. `is_whole` where nothing else names the
    command that failed: then the one to use is told and not how the two differ.
    """
    runs = case.runs_helped(remedy)
    if remedy.way in (RemedyKind.STEP, RemedyKind.COMMAND) and is_destructive(remedy.text):
        return f"{format_run_count(runs)} did {code(remedy.text)}, {WARNING}"
    text = advice(replace(remedy, instead="") if is_whole else remedy)
    if vain := case.vain.get(remedy.text, 0):
        return f"{text} (helped in {runs} of {runs + vain} tries)"
    return text if runs >= case.runs else f"{text} (helped in {format_run_count(runs)})"


def make_candidate(
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
    """Make the candidate that a case supports; `is_answer` when knowing it is remedy enough.

    What can destroy work or data may be told, but is nothing to follow: neither a remedy nor a rule.
    """
    harmless = tuple(each for each in remedies if not is_destructive(each))
    if harmless != remedies:
        rule, remedies = "", harmless
    family = case.key.split("|", 1)[1]
    projects = material.past.projects_with(family) | {material.project}
    is_common = category is Category.TOOL_USAGE and len(projects) >= COMMON_TO_PROJECTS
    signature = case.first.failure.signature
    return Candidate(
        key=case.key,
        summary=clip_words(summary),
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
