"""Why reflection runs, and whether it should."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from archivist.config import ReflectRules
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Lesson


class Scenario(StrEnum):
    """Why a run is reflected on."""

    SESSION_COMPLETE = "session_complete"
    SESSION_FAILED = "session_failed"
    HEALER_INVOCATION = "healer_invocation"
    MANUAL = "manual"
    PATTERN_DETECTED = "pattern_detected"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class ReflectionTrigger:
    """A reason to reflect on a run: a scenario or its plain name; without one it follows from the run."""

    run: str
    scenario: Scenario | str | None = None
    # The domain of findings that name none.
    domain: str = ""


@dataclass(frozen=True, slots=True)
class ReflectionOutcome:
    """The result of a trigger. `error` is empty unless reflection failed; it never raises."""

    run: str
    scenario: Scenario
    status: str
    created: int = 0
    updated: int = 0
    summary: str = ""
    error: str = ""
    created_lessons: tuple[Lesson, ...] = ()
    updated_lessons: tuple[Lesson, ...] = ()


def scenario_of(episode: Episode) -> Scenario:
    """Return the scenario that follows from a finished run."""
    if episode.kind is EpisodeKind.HEALER_RUN:
        return Scenario.HEALER_INVOCATION
    if episode.status in (EpisodeStatus.FAILED, EpisodeStatus.ABORTED):
        return Scenario.SESSION_FAILED
    return Scenario.SESSION_COMPLETE


def is_recurring_failure(failures: Iterable[str], earlier: Iterable[Iterable[str]], *, at_runs: int) -> bool:
    """Say whether a run met a failure that enough runs have met, this one included."""
    counts = Counter(key for keys in earlier for key in set(keys))
    return any(counts[key] + 1 >= at_runs for key in failures)


def is_reflection_enabled(scenario: Scenario, rules: ReflectRules) -> bool:
    """Say whether the configuration asks for reflection in this scenario."""
    if not rules.enabled:
        return False
    wanted = {
        Scenario.SESSION_COMPLETE: rules.on_session_success,
        Scenario.SESSION_FAILED: rules.on_session_failure,
        Scenario.HEALER_INVOCATION: rules.on_healer_invocation,
    }
    return wanted.get(scenario, True)
