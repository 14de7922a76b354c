"""What a store is asked and answers with besides records; apart from the protocol, for cold processes.

Named tuples, because a cold process waits several times longer for a dataclass to be made.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple


class TextQuery(NamedTuple):
    """What to look for in the text: any of the words, phrases and beginnings of words."""

    words: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    prefixes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.phrases or self.prefixes)


class SearchFilter(NamedTuple):
    """What may be found at all. Of each group of scope tokens a record must have one."""

    groups: tuple[tuple[str, ...], ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    since_cycle: int | None = None
    until_cycle: int | None = None
    min_importance: float = 0.0
    with_hidden: bool = False

    @property
    def has_ranges(self) -> bool:
        """Say whether more than scope tokens decides."""
        ends = (self.since, self.until, self.since_cycle, self.until_cycle)
        return self.min_importance > 0 or any(end is not None for end in ends)


class IndexHit(NamedTuple):
    """One answer of an index: the document's place in it, and a score of which higher is better."""

    place: int
    score: float


class IndexedDocument(NamedTuple):
    """What the index knows of a document without its record; its time in seconds since the epoch."""

    place: int
    kind: str
    record: str
    time: int | None
    cycle: int | None
    importance: float
    speaker: str
    thread: str
    position: int
    superseded_by: str
    is_hidden: int


class PendingEmbedding(NamedTuple):
    """A document that waits for its vector; the revision tells whether it changed meanwhile."""

    place: int
    revision: int
    text: str


class QueuedRun(NamedTuple):
    """A run that waits for reflection, and who holds it until when."""

    run: str
    holder: str
    leased_until: datetime | None
    attempts: int
    error: str


class StoredResponse(NamedTuple):
    """What was answered to a request that may come again."""

    digest: str
    status: int
    body: str
    time: datetime


def split_batches(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Cut a sequence into pieces that fit into one statement."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


class EventSum(NamedTuple):
    """How many events a run has, and the sum of their hashes."""

    run: str
    events: int
    digest: str
