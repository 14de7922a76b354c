"""What reflection proposes, before the gate decides."""

from __future__ import annotations

from dataclasses import dataclass

from archivist.records import Category, LessonType, Scope, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A lesson that a run suggests, with the events that show it.

    `key` names the phenomenon, the same in every run that meets it: it is how a later run is recognised as
    meeting the lesson again. `remedies` are what made it work, general enough for another run, best first.
    """

    key: str
    summary: str
    rule: str = ""
    detail: str = ""
    type: LessonType = LessonType.PATTERN
    category: Category = Category.HEURISTIC
    scope: Scope = Scope.REPO
    repo: str = ""
    task: str = ""
    provider: str = ""
    tool: str = ""
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    severity: Severity = Severity.WARNING
    events: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
