"""What was given to a run, and whether it helped."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from archivist.records.words import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The record of having put lessons in front of somebody; `run` is empty when it was a plain query."""

    id: str
    time: datetime
    run: str = ""
    domain: str = ""
    role: str = ""
    lessons: tuple[str, ...] = ()
    extra: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one briefed lesson in one run."""

    run: str
    lesson: str
    time: datetime
    effect: Effect
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the one name a run's verdict on a lesson has, so that judging twice is judging once."""
        return f"{self.run}:{self.lesson}"
