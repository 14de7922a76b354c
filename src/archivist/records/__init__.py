"""What is remembered: frozen records, one file a family. Imports nothing else of ours but errors and time.

A family is imported when one of its names is first used: making the classes takes a cold process longer
than reading them from the bank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.records.actor import ARCHIVIST, Actor
    from archivist.records.episode import Episode, Event, Finding, Usage
    from archivist.records.layers import Artifact, Conflict, Fact
    from archivist.records.lesson import Evidence, Lesson, Tally
    from archivist.records.loop import Brief, Verdict
    from archivist.records.tiers import Block, Document, Entry, Folder, Proposal, Working
    from archivist.records.tokens import Token
    from archivist.records.words import (
        Action,
        ActorKind,
        ArtifactType,
        Category,
        ConflictStatus,
        CoreSection,
        DocumentType,
        Effect,
        EntryType,
        EpisodeKind,
        EpisodeStatus,
        EventKind,
        Following,
        LessonType,
        ProposalStatus,
        Scope,
        Severity,
        Source,
        Status,
    )

__all__ = [
    "ARCHIVIST",
    "Action",
    "Actor",
    "ActorKind",
    "Artifact",
    "ArtifactType",
    "Block",
    "Brief",
    "Category",
    "Conflict",
    "ConflictStatus",
    "CoreSection",
    "Document",
    "DocumentType",
    "Effect",
    "Entry",
    "EntryType",
    "Episode",
    "EpisodeKind",
    "EpisodeStatus",
    "Event",
    "EventKind",
    "Evidence",
    "Fact",
    "Finding",
    "Folder",
    "Following",
    "Lesson",
    "LessonType",
    "Proposal",
    "ProposalStatus",
    "Scope",
    "Severity",
    "Source",
    "Status",
    "Tally",
    "Token",
    "Usage",
    "Verdict",
    "Working",
]

_HOMES = {
    "ARCHIVIST": "actor",
    "Action": "words",
    "Actor": "actor",
    "ActorKind": "words",
    "Artifact": "layers",
    "ArtifactType": "words",
    "Block": "tiers",
    "Brief": "loop",
    "Category": "words",
    "Conflict": "layers",
    "ConflictStatus": "words",
    "CoreSection": "words",
    "Document": "tiers",
    "DocumentType": "words",
    "Effect": "words",
    "Entry": "tiers",
    "EntryType": "words",
    "Episode": "episode",
    "EpisodeKind": "words",
    "EpisodeStatus": "words",
    "Event": "episode",
    "EventKind": "words",
    "Evidence": "lesson",
    "Fact": "layers",
    "Finding": "episode",
    "Folder": "tiers",
    "Following": "words",
    "Lesson": "lesson",
    "LessonType": "words",
    "Proposal": "tiers",
    "ProposalStatus": "words",
    "Scope": "words",
    "Severity": "words",
    "Source": "words",
    "Status": "words",
    "Tally": "lesson",
    "Token": "tokens",
    "Usage": "episode",
    "Verdict": "loop",
    "Working": "tiers",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
