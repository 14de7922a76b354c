"""Turn what a run went through into candidate lessons, one rule a miner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from archivist.lessons.candidate import Candidate
from archivist.reading.history import RunHistory
from archivist.reading.run import RunReading
from archivist.reading.wording import without_paths
from archivist.records import LessonType
from archivist.reflect.miners.commands import (
    mine_commands,
    mine_failed_edits,
    mine_prompts,
    mine_recurring,
    mine_timeouts,
)
from archivist.reflect.miners.material import Material, gather_material
from archivist.reflect.miners.missing import (
    mine_environment,
    mine_missing_commands,
    mine_missing_files,
    mine_missing_modules,
)
from archivist.reflect.miners.runs import mine_outliers, mine_providers, mine_thrashing
from archivist.reflect.miners.testing import mine_flaky, mine_not_your_bug, mine_verification
from archivist.reflect.miners.wishes import mine_wishes

__all__ = ["MINERS", "Miner", "mine_candidates"]

Miner = Callable[[Material], Iterable[Candidate]]

# The first miner that reports a failure wins, so the specific ones come before the general ones.
MINERS: tuple[Miner, ...] = (
    mine_wishes,
    mine_providers,
    mine_missing_modules,
    mine_missing_commands,
    mine_environment,
    mine_prompts,
    mine_flaky,
    mine_timeouts,
    mine_failed_edits,
    mine_missing_files,
    mine_not_your_bug,
    mine_commands,
    mine_recurring,
    mine_thrashing,
    mine_verification,
    mine_outliers,
)


def mine_candidates(reading: RunReading, history: RunHistory) -> list[Candidate]:
    """Return what a run suggests, each phenomenon once, the most important first."""
    material = gather_material(reading, history)
    found: dict[str, Candidate] = {}
    for miner in MINERS:
        for candidate in miner(material):
            # Paths are true on one machine only; the user's words stay as they are.
            if candidate.type is not LessonType.PREFERENCE:
                candidate = replace(  # noqa: PLW2901
                    candidate,
                    summary=without_paths(candidate.summary),
                    rule=without_paths(candidate.rule),
                    remedies=tuple(map(without_paths, candidate.remedies)),
                )
            found.setdefault(candidate.key, candidate)
    return sorted(found.values(), key=lambda candidate: (-candidate.importance, candidate.key))
