"""Turn what a run went through into candidate lessons, one rule a miner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from archivist.lessons.candidate import Candidate
from archivist.reading.history import RunHistory
from archivist.reading.run import RunReading
from archivist.reading.wording import without_paths
from archivist.records import LessonType
from archivist.reflect.miners import commands, missing, runs, testing, wishes
from archivist.reflect.miners.material import Material, gather_material

__all__ = ["MINERS", "Miner", "mine_candidates"]

Miner = Callable[[Material], Iterable[Candidate]]

# The first miner that reports a failure wins, so the specific ones come before the general ones.
MINERS: tuple[Miner, ...] = (
    wishes.mine_wishes,
    runs.mine_providers,
    missing.mine_missing_modules,
    missing.mine_missing_commands,
    missing.mine_environment,
    commands.mine_prompts,
    testing.mine_flaky,
    commands.mine_timeouts,
    commands.mine_failed_edits,
    missing.mine_missing_files,
    testing.mine_not_your_bug,
    commands.mine_commands,
    commands.mine_recurring,
    runs.mine_thrashing,
    runs.mine_outliers,
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
