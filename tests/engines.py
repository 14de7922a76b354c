"""The engines of the store, each with how a test opens a fresh bank of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from archivist.store.postgres.store import PostgresStore
from archivist.store.protocol import Store
from archivist.store.sqlite.store import SqliteStore
from tests.banks import lay_bank
from tests.postgres import new_bank


def _sqlite(folder: Path) -> Store:
    return SqliteStore.open(lay_bank(folder / "memory.db"))


def _postgres(_folder: Path) -> Store:
    return PostgresStore.open(new_bank(), create=True)


ENGINES: dict[str, Callable[[Path], Store]] = {"sqlite": _sqlite, "postgres": _postgres}
