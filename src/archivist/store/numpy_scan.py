"""The bits of a long-lived process in numpy arrays: one slot for each place, patched block by block.

The rows are stored word by word, so that one instruction compares a word of many rows. While there are few
enough, the small integers are kept too, and a search reads nothing from the bank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archivist.store.results import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The small integers take a quarter of a kilobyte for each place: 50 MB for this many places.
_MAX_INT8_ROWS = 200_000
# The nearest by their bits are compared again by their small integers: of the exact ten in 40,000 texts,
# 2,048 found .97 and 4,096 .99, in half a millisecond more.
_RESCORED = 4096
# Intermediate results for this many rows stay in the processor's cache.
_AT_ONCE = 1 << 15
_MAX_FILTERS = 16
_MAX_FILTERED_INT8_ROWS = 16_384


@dataclass(slots=True)
class _FilteredRows:
    """The rows that pass a filter."""

    allowed: Sequence[int]
    at: NDArray[np.int64]
    planes: NDArray[np.uint64]
    small: NDArray[np.uint8] | None = None


class Planes:
    """Every row of bits at its place."""

    def __init__(self, width: int) -> None:
        self._words = width // 8
        self._kind = np.uint8 if self._words <= 4 else np.uint16
        self._planes = np.zeros((self._words, 0), np.uint64)
        # A place without a vector gets the largest difference, in one operation over all rows.
        self._absent = np.zeros(0, self._kind)
        self._used = 0
        self._blocks: set[int] = set()
        self._small = np.zeros((0, 0), np.uint8)
        self._small_blocks: set[int] = set()
        self._parts: dict[int, _FilteredRows] = {}

    def patch(self, number: int, bits: bytes) -> None:
        """Store a block that is new or has changed."""
        have = self._planes.shape[1]
        if (number + 1) * BLOCK > have:
            # An eighth more than needed, so that growing is rare.
            more = max((number + 1) * BLOCK - have, have // 8 // BLOCK * BLOCK)
            self._planes = np.concatenate([self._planes, np.zeros((self._words, more), np.uint64)], axis=1)
            lacking = np.full(more, np.iinfo(self._kind).max, self._kind)
            self._absent = np.concatenate([self._absent, lacking])
        rows = np.frombuffer(bits, "<u8").reshape(BLOCK, self._words)
        slots = slice(number * BLOCK, (number + 1) * BLOCK)
        self._used = max(self._used, slots.stop)
        self._planes[:, slots] = rows.T
        self._absent[slots] = np.where(rows.any(axis=1), 0, np.iinfo(self._kind).max)
        self._blocks.add(number)
        self._small_blocks.discard(number)
        self._parts.clear()

    @property
    def has_int8(self) -> bool:
        """Say whether the small integers of every row are kept."""
        return bool(self._blocks) and self._small_blocks == self._blocks

    def blocks_missing_int8(self) -> list[int]:
        """Return the blocks whose small integers must still be read."""
        if len(self._blocks) * BLOCK > _MAX_INT8_ROWS:
            self._small, self._small_blocks = np.zeros((0, 0), np.uint8), set()
            return []
        return sorted(self._blocks - self._small_blocks)

    def patch_int8(self, number: int, rows: Sequence[tuple[int, bytes]]) -> None:
        """Store the small integers of a block's places."""
        if rows:
            size = len(rows[0][1])
            lacking = self._planes.shape[1] - len(self._small)
            if lacking:
                kept = self._small.reshape(-1, size)
                self._small = np.concatenate([kept, np.zeros((lacking, size), np.uint8)])
            table = np.frombuffer(b"".join([row for _, row in rows]), np.uint8)
            self._small[np.asarray([place for place, _ in rows], np.int64)] = table.reshape(-1, size)
        self._small_blocks.add(number)

    def score_nearest(
        self,
        query: Sequence[float],
        count: int,
        allowed: Sequence[int] | None,
        read_rows: Callable[[Sequence[int]], Mapping[int, bytes]] | None = None,
    ) -> dict[int, float] | None:
        """Return the nearest with their cosines, or None when not all small integers are kept.

        Those of a filter's places are read when they are few, and kept for the next queries with the filter.
        """
        if self.has_int8:
            # In a small bank all are rescored, and their bits tell nothing.
            near = np.flatnonzero(self._absent[: min(self._used, BLOCK)] == 0)
            if allowed is not None or self._used > BLOCK or len(near) > _RESCORED:
                near = self._nearest_places(query, _RESCORED, allowed)
            small = self._small[near]
        elif allowed is not None and read_rows is not None:
            part = self._filtered_rows(allowed)
            if part.small is None and len(allowed) <= _MAX_FILTERED_INT8_ROWS:
                rows = read_rows(allowed)
                known = [rows[place] for place in part.at.tolist() if place in rows]
                if len(known) == len(part.at) and known:
                    part.small = np.frombuffer(b"".join(known), np.uint8).reshape(len(known), -1)
            if part.small is None:
                return None
            differences = self._differences(part.planes, self._query_words(query))
            at = _smallest_positions(differences, _RESCORED // 4)
            near, small = part.at[at], part.small[at]
        else:
            return None
        scores = score_int8_rows(query, small)
        best = np.argsort(-scores, kind="stable")[:count]
        return dict(zip(near[best].tolist(), scores[best].tolist(), strict=True))

    def dot_products(self, query: Sequence[float], places: Sequence[int]) -> dict[int, float] | None:
        """Return the cosines of places that have a vector, or None when the small integers are not kept."""
        at = self._existing_places(places)
        small = self._small[at] if self.has_int8 else self._cached_int8(at)
        if small is None:
            return None
        return dict(zip(at.tolist(), score_int8_rows(query, small).tolist(), strict=True))

    def _cached_int8(self, at: NDArray[np.int64]) -> NDArray[np.uint8] | None:
        """Return the small integers of some places when the rows of one filter contain them all."""
        for part in self._parts.values():
            if part.small is not None:
                rows = np.searchsorted(part.at, at).clip(max=len(part.at) - 1)
                if np.array_equal(part.at[rows], at):
                    found: NDArray[np.uint8] = part.small[rows]
                    return found
        return None

    def nearest(self, query: Sequence[float], count: int, allowed: Sequence[int] | None) -> list[int]:
        """Return the places of about `count` rows that agree best with the query, the best first."""
        near = self._nearest_places(query, count * (10 if allowed is None else 4), allowed)
        bits = np.unpackbits(self._planes[:, near].T.copy().view(np.uint8), axis=1, bitorder="little")
        scores = bits[:, : len(query)].astype(np.float32) @ np.asarray(query, np.float32)
        best = np.argsort(-scores, kind="stable")[:count]
        return list(near[best].tolist())

    def _nearest_places(
        self, query: Sequence[float], count: int, allowed: Sequence[int] | None
    ) -> NDArray[np.int64]:
        """Return the allowed places whose bits differ least from the query."""
        words = self._query_words(query)
        if allowed is None:
            totals = self._differences(self._planes[:, : self._used], words)
            np.bitwise_or(totals, self._absent[: self._used], out=totals)
            near = _smallest_positions(totals, max(count, len(totals) // 100))
            return near[totals[near] < np.iinfo(self._kind).max]
        part = self._filtered_rows(allowed)
        return part.at[_smallest_positions(self._differences(part.planes, words), count)]

    def _query_words(self, query: Sequence[float]) -> NDArray[np.uint64]:
        wide = np.zeros(self._words * 64, np.float32)
        wide[: len(query)] = query
        return np.packbits(wide > 0, bitorder="little").view("<u8")

    def _differences(self, planes: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[Any]:
        """Return the number of bits in which each row differs from the query."""
        rows = planes.shape[1]
        totals = np.empty(rows, self._kind)
        mixed = np.empty(min(rows, _AT_ONCE), np.uint64)
        counted = np.empty(len(mixed), np.uint8)
        for start in range(0, rows, _AT_ONCE):
            part = totals[start : start + _AT_ONCE]
            mix, count = mixed[: len(part)], counted[: len(part)]
            for number, word in enumerate(words):
                np.bitwise_xor(planes[number, start : start + _AT_ONCE], word, out=mix)
                np.bitwise_count(mix, out=count)
                if number:
                    np.add(part, count, out=part)
                else:
                    part[:] = count
        return totals

    def _filtered_rows(self, allowed: Sequence[int]) -> _FilteredRows:
        """Return the rows of a filter's places; those of the last filters are cached."""
        kept = self._parts.get(id(allowed))
        if kept is None or kept.allowed is not allowed:
            at = self._existing_places(allowed)
            if len(self._parts) >= _MAX_FILTERS:
                self._parts.clear()
            kept = self._parts[id(allowed)] = _FilteredRows(
                allowed, at, np.ascontiguousarray(self._planes[:, at])
            )
        return kept

    def _existing_places(self, places: Sequence[int]) -> NDArray[np.int64]:
        at = np.asarray(places, np.int64)
        at = at[at < self._planes.shape[1]]
        return np.asarray(at[self._absent[at] == 0], np.int64)


def score_int8_rows(query: Sequence[float], rows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the dot products of a query with rows of small integers."""
    if not rows.size:
        return np.zeros(0, np.float32)
    values = rows[:, 4:].view(np.int8).astype(np.float32)
    scales = rows[:, :4].copy().view("<f4")[:, 0]
    return np.asarray(scales * (values @ np.asarray(query, np.float32)), np.float32)


def _smallest_positions(totals: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return the positions of about the `count` smallest totals, without sorting all."""
    if len(totals) <= count * 2:
        return np.argsort(totals, kind="stable")[:count]
    sample = np.sort(totals[:: max(1, len(totals) // 4096)])
    limit = int(sample[min(len(sample) - 1, len(sample) * count // len(totals))])
    found = np.flatnonzero(totals <= limit)
    while len(found) < count:
        limit += 2
        found = np.flatnonzero(totals <= limit)
    if len(found) <= count:
        return found
    return found[np.argsort(totals[found], kind="stable")[:count]]
