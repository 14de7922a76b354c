"""What a store answers with besides records; apart from the protocol, which nothing needs at run time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer of the text index; a higher score is better."""

    kind: str
    id: str
    score: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run that waits for reflection, and who holds it until when."""

    run: str
    holder: str
    leased_until: datetime | None
    attempts: int
    error: str


def batched(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Cut a sequence into pieces that fit into one statement."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
