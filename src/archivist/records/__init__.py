"""What is remembered: frozen records, one file a family. Imports nothing else of ours but errors and time.

A family is imported when one of its names is first used: making the classes takes a cold process longer
than reading them from the bank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
        Following,
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
    "Following",
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

_HOMES = {
    "ARCHIVIST": "actor",
    "Actor": "actor",
    "ActorKind": "words",
    "Brief": "loop",
    "Category": "words",
    "Effect": "words",
    "Episode": "episode",
    "EpisodeKind": "words",
    "EpisodeStatus": "words",
    "Event": "episode",
    "EventKind": "words",
    "Evidence": "lesson",
    "Finding": "episode",
    "Following": "words",
    "Lesson": "lesson",
    "LessonType": "words",
    "Scope": "words",
    "Severity": "words",
    "Source": "words",
    "Status": "words",
    "Tally": "lesson",
    "Usage": "episode",
    "Verdict": "loop",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
