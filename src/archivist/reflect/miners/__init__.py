"""Turn what a run went through into candidate lessons, one rule a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from archivist.lessons.candidate import Candidate
from archivist.reading.history import RunHistory
from archivist.reading.run import RunReading
from archivist.reading.wording import without_paths
from archivist.records import LessonType
from archivist.reflect.miners.commands import mine_commands
from archivist.reflect.miners.environment import mine_environment
from archivist.reflect.miners.failed_edits import mine_failed_edits
from archivist.reflect.miners.flaky import mine_flaky
from archivist.reflect.miners.material import Material, gather_material
from archivist.reflect.miners.missing_commands import mine_missing_commands
from archivist.reflect.miners.missing_files import mine_missing_files
from archivist.reflect.miners.missing_modules import mine_missing_modules
from archivist.reflect.miners.not_your_bug import mine_not_your_bug
from archivist.reflect.miners.outliers import mine_outliers
from archivist.reflect.miners.prompts import mine_prompts
from archivist.reflect.miners.providers import mine_providers
from archivist.reflect.miners.recurring import mine_recurring
from archivist.reflect.miners.thrashing import mine_thrashing
from archivist.reflect.miners.timeouts import mine_timeouts
from archivist.reflect.miners.verification import mine_verification
from archivist.reflect.miners.wishes import mine_wishes

__all__ = ["MINERS", "Miner", "mine_candidates"]

Miner = Callable[[Material], Sequence[Candidate]]

# The first that speaks of a failure is the one heard, so the particular go before the general.
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
            found.setdefault(candidate.key, _remove_machine_paths(candidate))
    return sorted(found.values(), key=lambda each: (-each.importance, each.key))


def _remove_machine_paths(candidate: Candidate) -> Candidate:
    """Take out what is true on one machine only; what the user said stays as it was said."""
    if candidate.type is LessonType.PREFERENCE:
        return candidate
    return replace(
        candidate,
        summary=without_paths(candidate.summary),
        rule=without_paths(candidate.rule),
        remedies=tuple(map(without_paths, candidate.remedies)),
    )
