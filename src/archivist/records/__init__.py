"""What is remembered: frozen records, one file a family. Imports nothing else of ours but errors and time."""

from __future__ import annotations

from archivist.records.actor import ARCHIVIST, Actor
from archivist.records.episode import Episode, Event, Finding, Usage
from archivist.records.lesson import Evidence, Lesson, Tally
from archivist.records.loop import Brief, Verdict
from archivist.records.words import (
    ActorKind,
    Category,
    Effect,
    EpisodeKind,
    EpisodeStatus,
    EventKind,
    LessonType,
    Scope,
    Severity,
    Source,
    Status,
)

__all__ = [
    "ARCHIVIST",
    "Actor",
    "ActorKind",
    "Brief",
    "Category",
    "Effect",
    "Episode",
    "EpisodeKind",
    "EpisodeStatus",
    "Event",
    "EventKind",
    "Evidence",
    "Finding",
    "Lesson",
    "LessonType",
    "Scope",
    "Severity",
    "Source",
    "Status",
    "Tally",
    "Usage",
    "Verdict",
]
