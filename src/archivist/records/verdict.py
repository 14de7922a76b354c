"""Whether what was given to a run helped."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from archivist.records.run_words import Effect, Following


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one briefed or withheld lesson in one run.

    `failed` says whether the failure occurred that the lesson is about; None when nobody can know.
    """

    run: str
    lesson: str
    time: datetime
    effect: Effect
    following: Following = Following.UNKNOWN
    failed: bool | None = None
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the one name a run's verdict on a lesson has, so that judging twice is judging once."""
        return f"{self.run}:{self.lesson}"
