"""What a run was told; apart from the verdicts, which a cold process does not need."""

from dataclasses import dataclass, field
from datetime import datetime

from archivist.records.record import Record


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Brief(Record):
    """The record of lessons that were given to a run; `run` is empty for a plain query.

    `withheld` are selected lessons that were left out at random, to measure whether they help.
    """

    id: str
    time: datetime
    run: str = ""
    domain: str = ""
    role: str = ""
    lessons: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    extra: dict[str, object] = field(default_factory=dict)
