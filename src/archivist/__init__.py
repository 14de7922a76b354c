"""Archivist: a memory that lets coding agents learn from their own runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.bank import Bank
    from archivist.errors import ArchivistError
    from archivist.recall.query import Query
    from archivist.records import Actor, Episode, Event, Finding, Lesson

__version__ = "0.1.0"
__all__ = ["Actor", "ArchivistError", "Bank", "Episode", "Event", "Finding", "Lesson", "Query", "__version__"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: importing the package alone must stay free."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = {"Bank": "bank", "ArchivistError": "errors", "Query": "recall.query"}.get(name, "records")
    return getattr(import_module(f"{__name__}.{home}"), name)
