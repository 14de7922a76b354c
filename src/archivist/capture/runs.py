"""Find runs: one by its id, the run that a part belongs to, the order of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archivist.capture.clean import clean_name
from archivist.errors import NotFoundError
from archivist.records.episode import Episode
from archivist.service import require_name

if TYPE_CHECKING:
    from archivist.store.protocol import Reader

LATEST = ("-finished", "-started", "id")


def find_run(reader: Reader, run: str) -> Episode:
    """Return a run's episode."""
    require_name(run, "run")
    episode = reader.get(Episode, run) or reader.get(Episode, clean_name(run))
    if episode is None:
        raise NotFoundError("run", run)
    return episode


def root_run(reader: Reader, episode: Episode) -> str:
    """Return the run that a part or a subagent's run belongs to; any other is its own."""
    seen = {episode.id}
    while episode.parent and episode.parent not in seen:
        parent = reader.get(Episode, episode.parent)
        if parent is None:
            return episode.parent
        seen.add(parent.id)
        episode = parent
    return episode.id
