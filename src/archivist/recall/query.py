"""Say what is sought."""

from __future__ import annotations

from dataclasses import dataclass

from archivist.records import Category, LessonType, Scope, Status

LIVE = (Status.ACTIVE, Status.CANDIDATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonQuery:
    """Which lessons are wanted; an empty field asks for nothing. Tags ask for any of them."""

    text: str = ""
    scope: Scope | None = None
    category: Category | None = None
    type: LessonType | None = None
    repo: str = ""
    task: str = ""
    provider: str = ""
    tool: str = ""
    role: str = ""
    domain: str = ""
    tags: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = LIVE
    limit: int | None = None
