"""What is remembered: frozen records, one file a family. Imports nothing else of ours but errors and time.

A family is imported when one of its names is first used: making the classes takes a cold process longer
than reading them from the bank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.records.access_token import Token
    from archivist.records.actor import ARCHIVIST, Actor
    from archivist.records.brief import Brief
    from archivist.records.episode import Episode, Event, Finding, Usage
    from archivist.records.layers import Artifact, Conflict, Fact
    from archivist.records.lesson import Evidence, Lesson, Tally
    from archivist.records.run_words import Action, Effect, EpisodeKind, EpisodeStatus, EventKind, Following
    from archivist.records.tier_words import (
        ArtifactType,
        ConflictStatus,
        CoreSection,
        DocumentType,
        EntryType,
        ProposalStatus,
    )
    from archivist.records.tiers import Block, Document, Entry, Folder, Proposal, Working
    from archivist.records.verdict import Verdict
    from archivist.records.words import ActorKind, Category, LessonType, Scope, Severity, Source, Status

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
    "Action": "run_words",
    "Actor": "actor",
    "ActorKind": "words",
    "Artifact": "layers",
    "ArtifactType": "tier_words",
    "Block": "tiers",
    "Brief": "brief",
    "Category": "words",
    "Conflict": "layers",
    "ConflictStatus": "tier_words",
    "CoreSection": "tier_words",
    "Document": "tiers",
    "DocumentType": "tier_words",
    "Effect": "run_words",
    "Entry": "tiers",
    "EntryType": "tier_words",
    "Episode": "episode",
    "EpisodeKind": "run_words",
    "EpisodeStatus": "run_words",
    "Event": "episode",
    "EventKind": "run_words",
    "Evidence": "lesson",
    "Fact": "layers",
    "Finding": "episode",
    "Folder": "tiers",
    "Following": "run_words",
    "Lesson": "lesson",
    "LessonType": "words",
    "Proposal": "tiers",
    "ProposalStatus": "tier_words",
    "Scope": "words",
    "Severity": "words",
    "Source": "words",
    "Status": "words",
    "Tally": "lesson",
    "Token": "access_token",
    "Usage": "episode",
    "Verdict": "verdict",
    "Working": "tiers",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
