"""Vectors as rows of bits, of small integers and of halves; and the scan of the bits.

A search goes from coarse to fine: the bits of everything, the small integers of the few hundred nearest,
the halves of the best. A cold process scans with what Python has, for importing numpy would take it
longer than the scan; a long-lived one keeps the bits in numpy's arrays.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# So many rows of bits lie together in one blob.
BLOCK = 4096
# From so many rows on numpy's import is worth its time, and below so many a scan is never worth it.
_WORTH_NUMPY = 250_000
# Up to so many rows a long-lived process keeps the small integers too: a quarter of a kilobyte each.
_KEPT_SMALL = 200_000
# So many of the nearest by their bits are compared again by those.
_RESCORED = 2048
_KEPT_FILTERS = 32
# So many rows at once: what is computed on the way stays in the processor's own memory.
_AT_ONCE = 1 << 15
_LANE = 255


def bit_width(dimensions: int) -> int:
    """Return how many bytes a row of bits has: whole words of 64 bits."""
    return (dimensions + 63) // 64 * 8


def packed(vector: Sequence[float]) -> tuple[bytes, bytes, bytes]:
    """Return a vector's bits, small integers (after their scale) and halves."""
    number = 0
    for place, value in enumerate(vector):
        if value > 0:
            number |= 1 << place
    largest = max(map(abs, vector), default=0.0) or 1.0
    scale = largest / 127
    small = array("b", [round(value / scale) for value in vector])
    bits = number.to_bytes(bit_width(len(vector)), "little")
    return bits, struct.pack("<f", scale) + small.tobytes(), struct.pack(f"<{len(vector)}e", *vector)


def packed_many(rows: NDArray[np.float32]) -> list[tuple[bytes, bytes, bytes]]:
    """Return the same for many vectors at once."""
    import numpy as np

    width = bit_width(rows.shape[1])
    bits = np.zeros((len(rows), width), np.uint8)
    some = np.packbits(rows > 0, axis=1, bitorder="little")
    bits[:, : some.shape[1]] = some
    largest = np.abs(rows).max(axis=1, initial=0.0)
    scales = (np.where(largest > 0, largest, 1.0) / 127).astype("<f4")
    small = np.rint(rows / scales[:, None]).astype(np.int8)
    halves = rows.astype("<f2")
    return [
        (bits[at].tobytes(), scales[at].tobytes() + small[at].tobytes(), halves[at].tobytes())
        for at in range(len(rows))
    ]


def small_dots(query: Sequence[float], rows: Sequence[bytes]) -> list[float]:
    """Return the products of a query with rows of small integers."""
    if len(rows) > 8 and _numpy_is_there():
        import numpy as np

        table = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
        scales = table[:, :4].copy().view("<f4")[:, 0]
        return list((table[:, 4:].view(np.int8) @ np.asarray(query, np.float32) * scales).tolist())
    return [
        struct.unpack_from("<f", row)[0] * sum(map(mul, query, memoryview(row)[4:].cast("b"))) for row in rows
    ]


def half_dots(query: Sequence[float], rows: Sequence[bytes]) -> list[float]:
    """Return the products of a query with rows of halves."""
    if rows and _numpy_is_there():
        import numpy as np

        table = np.frombuffer(b"".join(rows), "<f2").reshape(len(rows), -1)
        return list((table.astype(np.float32) @ np.asarray(query, np.float32)).tolist())
    form = struct.Struct(f"<{len(query)}e")
    return [sum(map(mul, query, form.unpack(row))) for row in rows]


class BitRows:
    """The bits of every document that has a vector, by the document's place."""

    def __init__(self, dimensions: int) -> None:
        self.width = bit_width(dimensions)
        self._blocks: dict[int, bytes] = {}
        self._scans = 0
        self._planes: Any = None
        self._places: Any = None
        self._small: Any = None
        self._parts: dict[int, tuple[Sequence[int], Any, Any]] = {}

    @property
    def is_small(self) -> bool:
        """Say whether Python alone is the quicker scanner for so few rows."""
        return len(self._blocks) * BLOCK <= _WORTH_NUMPY and not (self._scans > 1 or _numpy_is_there())

    def replace(self, blocks: Iterable[tuple[int, bytes]]) -> None:
        """Take blocks in that are new or have changed."""
        for number, bits in blocks:
            self._blocks[number] = bits
            self._planes = self._small = None
            self._parts.clear()

    @property
    def wants_small(self) -> bool:
        """Say whether the small integers should be kept too: in a long-lived process, while they are few."""
        return not self.is_small and self._small is None and len(self._blocks) * BLOCK <= _KEPT_SMALL

    def keep_small(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Keep the small integers of every place that has bits; given in the order of the places."""
        import numpy as np

        if not rows:
            return
        self._load(np)
        table = np.frombuffer(b"".join([row for _, row in rows]), np.uint8).reshape(len(rows), -1)
        kept = table[np.isin(np.asarray([place for place, _ in rows], np.int64), self._places)]
        # Without exactly one row a place the two would not fit together.
        self._small = kept if len(kept) == len(self._places) else None

    def scored(
        self, query: Sequence[float], count: int, allowed: Sequence[int] | None
    ) -> dict[int, float] | None:
        """Return the nearest with their cosines where the small integers are kept, else None."""
        if self._small is None:
            return None
        import numpy as np

        near = self._near_by_numpy(np, query, _RESCORED, allowed)
        rows = self._small[near]
        scores = rows[:, 4:].view(np.int8).astype(np.float32) @ np.asarray(query, np.float32)
        scores *= rows[:, :4].copy().view("<f4")[:, 0]
        best = np.argsort(-scores, kind="stable")[:count]
        return dict(zip(self._places[near[best]].tolist(), scores[best].tolist(), strict=True))

    def products(self, query: Sequence[float], places: Sequence[int]) -> dict[int, float] | None:
        """Return the cosines of some places where the small integers are kept, else None."""
        if self._small is None:
            return None
        import numpy as np

        wanted = np.asarray(places, np.int64)
        at = np.minimum(np.searchsorted(self._places, wanted), len(self._places) - 1)
        at = at[self._places[at] == wanted]
        rows = self._small[at]
        scores = rows[:, 4:].view(np.int8).astype(np.float32) @ np.asarray(query, np.float32)
        scores *= rows[:, :4].copy().view("<f4")[:, 0]
        return dict(zip(self._places[at].tolist(), scores.tolist(), strict=True))

    def nearest(self, query: Sequence[float], count: int, allowed: Sequence[int] | None) -> list[int]:
        """Return the places of about so many rows that agree best with the query, the best first."""
        self._scans += 1
        if not self._blocks or not count:
            return []
        if self.is_small:
            places, rows = self._chosen(allowed)
            return [places[at] for at in _least(_distances(rows, self.width, query), count)]
        import numpy as np

        near = self._near_by_numpy(np, query, count * (10 if allowed is None else 4), allowed)
        bits = np.unpackbits(self._planes[:, near].T.copy().view(np.uint8), axis=1, bitorder="little")
        scores = bits[:, : len(query)].astype(np.float32) @ np.asarray(query, np.float32)
        best = np.argsort(-scores, kind="stable")[:count]
        return list(self._places[near[best]].tolist())

    def _chosen(self, allowed: Sequence[int] | None) -> tuple[Sequence[int], bytes]:
        if allowed is None:
            last = max(self._blocks)
            empty = bytes(BLOCK * self.width)
            every = b"".join([self._blocks.get(number, empty) for number in range(last + 1)]).rstrip(b"\x00")
            count = -(-len(every) // self.width)
            return range(count), every.ljust(count * self.width, b"\x00")
        width, blocks = self.width, self._blocks
        places = [place for place in allowed if place // BLOCK in blocks]
        rows = b"".join(
            blocks[place // BLOCK][(at := place % BLOCK * width) : at + width] for place in places
        )
        return places, rows

    def _near_by_numpy(
        self, np: Any, query: Sequence[float], count: int, allowed: Sequence[int] | None
    ) -> Any:
        """Return which rows, of those that may be found, differ least from the query in their bits."""
        self._load(np)
        at, planes = (None, self._planes) if allowed is None else self._part(np, allowed)
        if not planes.shape[1]:
            return np.zeros(0, np.int64)
        wide = np.zeros(self.width * 8, np.float32)
        wide[: len(query)] = query
        totals = _differences(np, planes, np.packbits(wide > 0, bitorder="little").view("<u8"))
        near = _fewest(np, totals, min(len(totals), max(count, len(totals) // 100)))
        return near if at is None else at[near]

    def _part(self, np: Any, allowed: Sequence[int]) -> tuple[Any, Any]:
        """Return the rows of some places; of the last filters they are kept, for the next question's sake."""
        kept = self._parts.get(id(allowed))
        if kept is None or kept[0] is not allowed:
            at = np.flatnonzero(np.isin(self._places, np.asarray(allowed, np.int64), assume_unique=True))
            if len(self._parts) >= _KEPT_FILTERS:
                self._parts.clear()
            kept = self._parts[id(allowed)] = (allowed, at, np.ascontiguousarray(self._planes[:, at]))
        return kept[1], kept[2]

    def _load(self, np: Any) -> None:
        """Lay the rows out word by word, leaving out the places that have none."""
        if self._planes is not None:
            return
        numbers = sorted(self._blocks)
        rows = np.frombuffer(b"".join(self._blocks[number] for number in numbers), "<u8")
        rows = rows.reshape(-1, self.width // 8)
        places = (np.asarray(numbers, np.int64)[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        is_there = rows.any(axis=1)
        self._places = places[is_there]
        self._planes = np.ascontiguousarray(rows[is_there].T)


def _differences(np: Any, planes: Any, words: Any) -> Any:
    """Return in how many bits each row differs from the query's words."""
    rows = planes.shape[1]
    # Few enough for a byte, but for vectors that are longer or exactly opposite.
    kind = np.uint8 if len(words) <= 4 else np.uint16
    totals = np.empty(rows, kind)
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


def _fewest(np: Any, totals: Any, count: int) -> Any:
    """Return the positions of about the smallest totals, without sorting them all."""
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


def _distances(rows: bytes, width: int, query: Sequence[float]) -> bytes:
    """Return a byte a row: how far its signs are from the query, each weighed by the query's own value.

    All rows at once: a byte of every row is one string, `translate` looks up what it costs, and one addition
    of huge integers sums the columns. The weights are scaled so that no sum leaves its byte.
    """
    count = len(rows) // width
    room = (_LANE - 5 - width) / (sum(map(abs, query)) or 1.0)
    total, seen = 0, 0
    has_gaps = bytes(width) in rows
    for plane in range(width):
        column = rows[plane::width]
        part = query[plane * 8 : plane * 8 + 8]
        if has_gaps:
            seen |= int.from_bytes(column, "little")
        if part:
            costs = _costs(tuple(round(value * room, 3) for value in part))
            total += int.from_bytes(column.translate(costs), "little")
    if not has_gaps:
        return total.to_bytes(count, "little")
    # A row without a bit set is a place that has no vector: as far away as can be.
    absent = seen.to_bytes(count, "little").translate(_IS_EMPTY)
    return (total | int.from_bytes(absent, "little")).to_bytes(count, "little")


_IS_EMPTY = bytes([_LANE]) + bytes(255)


@lru_cache(maxsize=256)
def _costs(weights: tuple[float, ...]) -> bytes:
    costs = [0.0]
    for place, weight in enumerate(weights):
        # What it costs to have this bit set, and not to have it set.
        with_bit, without = (0.0, weight) if weight > 0 else (-weight, 0.0)
        if place == 0:
            costs = [without, with_bit]
        else:
            costs = [cost + without for cost in costs] + [cost + with_bit for cost in costs]
    costs += [0.0] * (256 - len(costs))
    return bytes([int(cost + 0.5) for cost in costs])


def _least(distances: bytes, count: int) -> list[int]:
    """Return the positions of the smallest bytes, the smallest first, without the absent."""
    reached, limit = 0, 0
    for limit in range(_LANE):
        reached += distances.count(limit)
        if reached >= count:
            break
    marks = distances.translate(bytes([1] * (limit + 1) + [0] * (255 - limit)))
    found: list[int] = []
    at = marks.find(1)
    while at >= 0:
        found.append(at)
        at = marks.find(1, at + 1)
    found.sort(key=distances.__getitem__)
    return found[:count]


def _numpy_is_there() -> bool:
    import sys

    return "numpy" in sys.modules
