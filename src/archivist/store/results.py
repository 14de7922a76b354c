"""What a store is asked and answers with besides records; apart from the protocol, for cold processes.

Named tuples, because making a dataclass takes a cold process several times longer.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from archivist.cold_start import blake2s, lazy_pattern

# Rows of bits in one blob.
BLOCK = 4096
_HUMP = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class TextQuery(NamedTuple):
    """The words, phrases and beginnings of words to search for; any of them is enough."""

    words: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    prefixes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.phrases or self.prefixes)


class SearchFilter(NamedTuple):
    """Which documents a search may return.

    A record must have one scope token of each group, and to be found by its words none of the excluded.
    """

    groups: tuple[tuple[str, ...], ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    since_cycle: int | None = None
    until_cycle: int | None = None
    min_importance: float = 0.0
    with_hidden: bool = False
    excluded: tuple[str, ...] = ()

    @property
    def has_ranges(self) -> bool:
        """Say whether more than scope tokens decides."""
        ends = (self.since, self.until, self.since_cycle, self.until_cycle)
        return self.min_importance > 0 or any(end is not None for end in ends)


def range_conditions(search_filter: SearchFilter) -> dict[str, float]:
    """Return the tests of a document `d` that a filter makes besides scope tokens, with their values."""
    since, until = search_filter.since, search_filter.until
    tests = {
        # Documents have whole seconds.
        "d.time >= ?": int(since.timestamp()) if since else None,
        "d.time <= ?": until.timestamp() if until else None,
        "d.cycle >= ?": search_filter.since_cycle,
        "d.cycle <= ?": search_filter.until_cycle,
        "d.importance >= ?": search_filter.min_importance or None,
    }
    return {test: value for test, value in tests.items() if value is not None}


class MatchCounts:
    """How many documents match a query, as far as they were counted, for the next searches."""

    _MOST = 20_000

    def __init__(self) -> None:
        self.match_counts: dict[str, tuple[int, int]] = {}
        self._counted_at = -1

    def drop_stale_counts(self, documents: int) -> None:
        """Drop the counts when the number of documents has changed by more than 2 %."""
        is_stale = abs(documents - self._counted_at) > self._counted_at // 50
        if is_stale or len(self.match_counts) > self._MOST:
            self.match_counts.clear()
            self._counted_at = documents


class IndexHit(NamedTuple):
    """One result of an index: the document's place in it, and a score; higher is better."""

    place: int
    score: float


class IndexedDocument(NamedTuple):
    """What the index knows of a document without its record.

    Its time is in seconds since the epoch, its length in words. The speaker is a name or a sort.
    """

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
    length: int = 0


class PendingEmbedding(NamedTuple):
    """A document without a vector, with the text to embed; the revision tells whether that has changed."""

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
    """The response to a request that may be repeated."""

    digest: str
    status: int
    body: str
    time: datetime


class Sizes(NamedTuple):
    """How large a bank is, how much of that is free, and how much text the records of each kind hold."""

    total: int
    free: int
    kinds: Mapping[str, int]

    def share(self, size: int) -> float:
        """Return the share of a size in all record texts; the index grows in step with them."""
        return size / max(1, sum(self.kinds.values()))

    def estimate_freed(self, size: int) -> int:
        """Estimate how much smaller the bank is without so many bytes of records."""
        return int(self.share(size) * (self.total - self.free))


class Damage(NamedTuple):
    """Something in a bank's file that is not as it was written, and whether a reindex mends it."""

    where: str
    what: str
    is_derived: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def choose_remedy(damage: Sequence[Damage]) -> str:
    """Return what mends all of this damage; empty when there is none."""
    if not damage:
        return ""
    if all(each.is_derived for each in damage):
        return "archivist doctor --reindex builds it again from the records"
    return "archivist salvage copies what can be read into a new bank; archivist restore FILE brings a backup"


def split_batches(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Cut a sequence into pieces that fit into one statement."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


@lru_cache(maxsize=4096)
def scope_token(field: str, value: str) -> str:
    """Return the token for a field's value in the index, whatever characters the value has."""
    return f"{field}{blake2s(value.casefold().encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def split_name(name: str) -> list[str]:
    """Return the parts of a `CamelCase` name in lower case; the index splits other styles itself."""
    return [part.lower() for part in _HUMP.findall(name)]
