"""Whether what a run was told helped."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from archivist.records.run_words import Effect, Following


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The effect of one briefed or withheld lesson in one run.

    `failed` says whether the lesson's failure occurred; None when that is unknown.
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
        """Return the id of a run's verdict on a lesson: judging it again replaces the verdict."""
        return f"{self.run}:{self.lesson}"
