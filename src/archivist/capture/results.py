"""The results of finishing runs and of extracting findings. Hooks import the service without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archivist.audit.verdicts import Regression
    from archivist.lessons.standing import AgeingResult
    from archivist.records import Lesson, Verdict
    from archivist.reflect.trigger import ReflectionOutcome


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """Everything that finishing a run did. `events` counts the events that the bank holds of it."""

    run: str
    events: int
    outcome: ReflectionOutcome
    created: tuple[Lesson, ...]
    updated: tuple[Lesson, ...]
    aged: AgeingResult
    verdicts: tuple[Verdict, ...]
    regressions: tuple[Regression, ...]


@dataclass(frozen=True, slots=True)
class FinishResult:
    """The runs that were finished, the lines of their logs that could not be read, and what strayed.

    `strays` say which runs were started in another project than their log is of.
    """

    runs: tuple[FinishedRun, ...]
    skipped: tuple[str, ...]
    strays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractResult:
    """What review findings taught: new lessons, lessons met again, and findings below the threshold.

    `strays` are the files without events.
    """

    created: tuple[Lesson, ...] = ()
    updated: tuple[Lesson, ...] = ()
    slight: int = 0
    skipped: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
