"""What was given to a run; apart from the verdicts, since a cold process tells and judges nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The record of having put lessons in front of somebody; `run` is empty when it was a plain query.

    `withheld` are the lessons that would have been told and were left out, to see whether they help.
    """

    id: str
    time: datetime
    run: str = ""
    domain: str = ""
    role: str = ""
    lessons: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    extra: dict[str, object] = field(default_factory=dict)
