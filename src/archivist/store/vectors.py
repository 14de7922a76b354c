"""Vectors as rows of bits, of small integers and of half floats; and the scan of the bits.

A search goes from coarse to fine: the bits of everything, the small integers of the few hundred nearest,
the half floats of the best. A cold process scans in plain Python, because importing numpy takes longer than
the scan; a long-lived one keeps the bits in numpy arrays.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING

from archivist.store.results import BLOCK as BLOCK

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archivist.store.numpy_scan import Planes

# From this many rows on importing numpy takes less time than a scan in Python.
_WORTH_NUMPY = 250_000
# The largest sum that fits into the byte of a row.
_LANE = 255


def bit_width(dimensions: int) -> int:
    """Return the bytes of a row of bits: whole words of 64 bits."""
    return (dimensions + 63) // 64 * 8


def pack_vector(vector: Sequence[float]) -> tuple[bytes, bytes, bytes]:
    """Return a vector's bits, its small integers after their scale, and its half floats."""
    number = 0
    for place, value in enumerate(vector):
        if value > 0:
            number |= 1 << place
    largest = max(map(abs, vector), default=0.0) or 1.0
    scale = largest / 127
    small = array("b", [round(value / scale) for value in vector])
    bits = number.to_bytes(bit_width(len(vector)), "little")
    return bits, struct.pack("<f", scale) + small.tobytes(), struct.pack(f"<{len(vector)}e", *vector)


def pack_vectors(rows: NDArray[np.float32]) -> list[tuple[bytes, bytes, bytes]]:
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


def int8_dots(query: Sequence[float], rows: Sequence[bytes]) -> list[float]:
    """Return the dot products of a query with rows of small integers."""
    if len(rows) > 8 and "numpy" in sys.modules:
        import numpy as np

        from archivist.store.numpy_scan import score_int8_rows

        table = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
        return list(score_int8_rows(query, table).tolist())
    return [
        struct.unpack_from("<f", row)[0] * sum(map(mul, query, memoryview(row)[4:].cast("b"))) for row in rows
    ]


def float16_dots(query: Sequence[float], rows: Sequence[bytes]) -> list[float]:
    """Return the dot products of a query with rows of half floats."""
    if rows and "numpy" in sys.modules:
        import numpy as np

        table = np.frombuffer(b"".join(rows), "<f2").reshape(len(rows), -1)
        return list((table.astype(np.float32) @ np.asarray(query, np.float32)).tolist())
    form = struct.Struct(f"<{len(query)}e")
    return [sum(map(mul, query, form.unpack(row))) for row in rows]


class BitRows:
    """The bits of every document that has a vector, by the document's place.

    Scanned in plain Python at first, and in numpy arrays when numpy is loaded or worth its import.
    """

    def __init__(self, dimensions: int) -> None:
        self.width = bit_width(dimensions)
        self.blocks: set[int] = set()
        # What Python scans itself, or what the arrays do not contain yet.
        self._bits: dict[int, bytes] = {}
        self._scans = 0
        self._planes: Planes | None = None

    @property
    def scans_in_python(self) -> bool:
        """Say whether plain Python scans so few rows faster."""
        if self._planes is not None:
            return False
        return len(self.blocks) * BLOCK <= _WORTH_NUMPY and not (self._scans > 1 or "numpy" in sys.modules)

    @property
    def planes(self) -> Planes:
        """Return the arrays, with everything in them."""
        from archivist.store.numpy_scan import Planes

        if self._planes is None:
            self._planes = Planes(self.width)
        for number in sorted(self._bits):
            self._planes.patch(number, self._bits[number])
        self._bits.clear()
        return self._planes

    def replace_blocks(self, blocks: Iterable[tuple[int, bytes]]) -> None:
        """Store blocks that are new or have changed."""
        for number, bits in blocks:
            self.blocks.add(number)
            self._bits[number] = bits

    def nearest(self, query: Sequence[float], count: int, allowed: Sequence[int] | None) -> list[int]:
        """Return the places of about `count` rows that agree best with the query, the best first."""
        self._scans += 1
        if not self.blocks or not count:
            return []
        if not self.scans_in_python:
            return self.planes.nearest(query, count, allowed)
        width, blocks = self.width, self._bits
        places: Sequence[int]
        if allowed is None:
            empty = bytes(BLOCK * width)
            rows = b"".join([blocks.get(number, empty) for number in range(max(blocks) + 1)]).rstrip(b"\x00")
            places = range(-(-len(rows) // width))
            rows = rows.ljust(len(places) * width, b"\x00")
        else:
            places = [place for place in allowed if place // BLOCK in blocks]
            rows = b"".join(
                blocks[place // BLOCK][(at := place % BLOCK * width) : at + width] for place in places
            )
        return [places[at] for at in _smallest_positions(_distances(rows, width, query), count)]


def _distances(rows: bytes, width: int, query: Sequence[float]) -> bytes:
    """Return one byte for each row: how far its signs are from the query, weighted by the query's values.

    All rows at once: one byte of every row forms a string, `translate` looks up its cost, and one addition
    of huge integers sums the columns. The weights are scaled so that no sum overflows its byte.
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
            costs = _byte_costs(tuple(round(value * room, 3) for value in part))
            total += int.from_bytes(column.translate(costs), "little")
    if not has_gaps:
        return total.to_bytes(count, "little")
    # A row without a set bit is a place without a vector: it gets the largest distance.
    absent = seen.to_bytes(count, "little").translate(_IS_EMPTY)
    return (total | int.from_bytes(absent, "little")).to_bytes(count, "little")


_IS_EMPTY = bytes([_LANE]) + bytes(255)


@lru_cache(maxsize=256)
def _byte_costs(weights: tuple[float, ...]) -> bytes:
    costs = [0.0]
    for weight in weights:
        # The cost of this bit being set, and of it not being set.
        with_bit, without = (0.0, weight) if weight > 0 else (-weight, 0.0)
        costs = [cost + without for cost in costs] + [cost + with_bit for cost in costs]
    costs += [0.0] * (256 - len(costs))
    return bytes([int(cost + 0.5) for cost in costs])


def _smallest_positions(distances: bytes, count: int) -> list[int]:
    """Return the positions of the smallest bytes, the smallest first, without absent rows."""
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
