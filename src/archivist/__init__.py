"""Archivist: a memory that lets coding agents learn from their own runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.errors import ArchivistError
    from archivist.records import Actor, Episode, Event, Finding, Lesson

__version__ = "0.1.0"
__all__ = ["Actor", "ArchivistError", "Bank", "Episode", "Event", "Finding", "Lesson", "__version__"]

_HOMES = {
    "Bank": "archivist.bank",
    "ArchivistError": "archivist.errors",
    "Actor": "archivist.records",
    "Episode": "archivist.records",
    "Event": "archivist.records",
    "Finding": "archivist.records",
    "Lesson": "archivist.records",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: importing the package alone must stay free."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
