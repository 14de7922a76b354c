"""What is remembered: frozen records, one file a family. Imports nothing else of ours but errors and time.

A family is imported when one of its names is first used: making the classes takes a cold process longer
than reading them from the bank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.records.actor import ARCHIVIST, Actor
    from archivist.records.brief import Brief
    from archivist.records.episode import Episode, Usage
    from archivist.records.event import Event, Finding, Verdict
    from archivist.records.layers import Artifact, Conflict, Fact, Task, Token
    from archivist.records.lesson import Evidence, Lesson, Tally
    from archivist.records.run_words import Action, Effect, EpisodeKind, EpisodeStatus, EventKind, Following
    from archivist.records.tier_words import (
        ArtifactType,
        ConflictStatus,
        CoreSection,
        DocumentType,
        EntryType,
        ProposalStatus,
        RetryDecision,
        TaskState,
    )
    from archivist.records.tiers import Block, Document, Entry, Folder, Proposal, Working
    from archivist.records.words import (
        ActorKind,
        Category,
        LessonType,
        Provenance,
        Scope,
        Severity,
        Source,
        Status,
    )

__all__ = [
    "ARCHIVIST", "Action", "Actor", "ActorKind", "Artifact", "ArtifactType", "Block", "Brief", "Category",
    "Conflict", "ConflictStatus", "CoreSection", "Document", "DocumentType", "Effect", "Entry", "EntryType",
    "Episode", "EpisodeKind", "EpisodeStatus", "Event", "EventKind", "Evidence", "Fact", "Finding", "Folder",
    "Following", "Lesson", "LessonType", "Proposal", "ProposalStatus", "Provenance", "RetryDecision", "Scope",
    "Severity", "Source", "Status", "Tally", "Task", "TaskState", "Token", "Usage", "Verdict", "Working",
]  # fmt: skip

_FAMILIES = {
    "actor": "ARCHIVIST Actor",
    "brief": "Brief",
    "episode": "Episode Usage",
    "event": "Event Finding Verdict",
    "layers": "Artifact Conflict Fact Task Token",
    "lesson": "Evidence Lesson Tally",
    "run_words": "Action Effect EpisodeKind EpisodeStatus EventKind Following",
    "tier_words": "ArtifactType ConflictStatus CoreSection DocumentType EntryType ProposalStatus"
    " RetryDecision TaskState",
    "tiers": "Block Document Entry Folder Proposal Working",
    "words": "ActorKind Category LessonType Provenance Scope Severity Source Status",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for family, names in _FAMILIES.items():
        if name in names.split():
            value = getattr(import_module(f"{__name__}.{family}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
