"""Put scored documents in order: what was replaced below its replacement, later words above earlier ones.

A memory that gives an amended decision second place gives the wrong answer, however well the old words fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from archivist.recall.merits import Score
from archivist.stores.answers import Placed

# Of so many first hits it is asked whether they speak of the same thing.
_COMPARED = 10


def ranked(scored: Mapping[int, Score]) -> list[int]:
    """Return the places by their scores, equal ones in a stable order."""
    return sorted(scored, key=lambda place: (-round(scored[place].total, 9), place))


def pairs_to_compare(order: Sequence[int], placed: Mapping[int, Placed]) -> list[tuple[int, int]]:
    """Return the pairs among the first hits that could be an earlier and a later word on one subject."""
    return [
        (one, other)
        for one, other in combinations(order[:_COMPARED], 2)
        if placed[one].kind == placed[other].kind and _later(placed[other], placed[one]) is not None
    ]


def amended(
    order: Sequence[int],
    placed: Mapping[int, Placed],
    likeness: Mapping[tuple[int, int], float],
    same_subject: float,
) -> tuple[list[int], dict[int, int]]:
    """Return the order in which later words on a subject stand right above the earlier ones.

    The second value says for each earlier document which later one stands above it for this reason.
    """
    result = list(order)
    replaced: dict[int, int] = {}
    for (one, other), alike in likeness.items():
        later = _later(placed[other], placed[one])
        if alike < same_subject or later is None:
            continue
        newer, older = (other, one) if later else (one, other)
        replaced.setdefault(older, newer)
        _put_above(result, newer, older)
    return result, replaced


def superseded(order: Sequence[int], placed: Mapping[int, Placed]) -> tuple[list[int], dict[int, int]]:
    """Return the order in which what was superseded stands below what superseded it."""
    by_record = {(placed[place].kind, placed[place].record): place for place in order}
    result = list(order)
    replaced = {}
    for older in order:
        newer = by_record.get((placed[older].kind, placed[older].superseded_by))
        if newer is not None:
            replaced[older] = newer
            _put_above(result, newer, older)
    return result, replaced


def _put_above(order: list[int], newer: int, older: int) -> None:
    if order.index(newer) > order.index(older):
        order.remove(newer)
        order.insert(order.index(older), newer)


def _later(one: Placed, other: Placed) -> bool | None:
    """Say whether one is later than the other; None when it cannot be known."""
    if one.thread and one.thread == other.thread:
        return one.position > other.position
    if one.time is None or other.time is None or one.time == other.time:
        return None
    return one.time > other.time
