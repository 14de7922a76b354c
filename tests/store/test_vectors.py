"""Rows of bits, small integers and halves: the same by both ways, near the truth, and found again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from archivist.store.numpy_scan import Planes
from archivist.store.vectors import (
    BLOCK,
    BitRows,
    bit_width,
    float16_dots,
    int8_dots,
    pack_vector,
    pack_vectors,
)

SHORTLIST = 384
ROWS = 5000


def _units(count: int, dimensions: int, seed: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn


def _blocks(
    rows: Sequence[tuple[bytes, bytes, bytes]], dimensions: int, first: int = 0
) -> list[tuple[int, bytes]]:
    """Lay rows of bits out from a place on; what is before and after it stays empty."""
    width = bit_width(dimensions)
    every = bytes(first * width) + b"".join(bits for bits, _, _ in rows)
    every += bytes(-len(every) % (BLOCK * width))
    size = BLOCK * width
    return [(at // size, every[at : at + size]) for at in range(0, len(every), size)]


units = st.builds(_units, st.integers(1, 12), st.sampled_from([3, 8, 64, 100, 256]), st.integers(0, 1000))


@given(units)
def test_one_and_many_are_packed_alike(rows: NDArray[np.float32]) -> None:
    for one, (bits, small, halves) in zip(rows, pack_vectors(rows), strict=True):
        alone = pack_vector(one.tolist())
        assert (alone[0], alone[2]) == (bits, halves)
        assert len(bits) == bit_width(rows.shape[1])
        assert alone[1][:4] == small[:4]
        # A value halfway between two integers may fall to either side.
        theirs, ours = np.frombuffer(small[4:], np.int8), np.frombuffer(alone[1][4:], np.int8)
        assert np.abs(theirs.astype(int) - ours).max() <= 1
        assert (theirs != ours).mean() <= 0.34


def test_zeros_have_no_bit_and_no_length() -> None:
    assert pack_vector([0.0] * 5) == pack_vectors(np.zeros((1, 5), np.float32))[0]
    assert not any(pack_vector([0.0] * 5)[0])
    assert pack_vectors(np.zeros((0, 5), np.float32)) == []


@given(units, st.integers(0, 1000))
def test_products_are_near_the_exact_ones(rows: NDArray[np.float32], seed: int) -> None:
    query = _units(1, rows.shape[1], seed)[0].tolist()
    made = pack_vectors(rows)
    exact = rows @ np.asarray(query, np.float32)
    assert np.allclose(int8_dots(query, [small for _, small, _ in made]), exact, atol=0.03)
    assert np.allclose(float16_dots(query, [halves for _, _, halves in made]), exact, atol=0.002)
    assert int8_dots(query, []) == float16_dots(query, []) == []


def _hits(found: Sequence[int], rows: NDArray[np.float32], query: NDArray[np.float32]) -> int:
    nearest = np.argsort(-(rows @ query), kind="stable")[:10]
    return len(set(nearest.tolist()) & set(found))


@pytest.mark.parametrize("dimensions", [256, 384])
def test_the_shortlist_holds_the_truly_nearest(dimensions: int) -> None:
    rows = _units(ROWS, dimensions, 1)
    bits = BitRows(dimensions)
    bits.replace_blocks(_blocks(pack_vectors(rows), dimensions))
    hits = []
    for query in _units(20, dimensions, 2):
        found = bits.nearest(query.tolist(), SHORTLIST, None)
        assert len(found) == len(set(found)) == SHORTLIST
        hits.append(_hits(found, rows, query))
    assert sum(hits) / len(hits) >= 9


PURE = """
import random, sys
from archivist.store.vectors import BLOCK, BitRows, bit_width, float16_dots, int8_dots, pack_vector

chance = random.Random(1)
def unit(size):
    drawn = [chance.gauss(0, 1) for _ in range(size)]
    length = sum(value * value for value in drawn) ** 0.5
    return [value / length for value in drawn]

SIZE, FIRST = 128, 100
rows = [unit(SIZE) for _ in range(5000)]
made = [pack_vector(row) for row in rows]
width = bit_width(SIZE)
every = bytes(FIRST * width) + b"".join(bits for bits, _, _ in made)
every += bytes(-len(every) % (BLOCK * width))
size = BLOCK * width
blocks = [(at // size, every[at : at + size]) for at in range(0, len(every), size)]
hits = []
for _ in range(8):
    query = unit(SIZE)
    bits = BitRows(SIZE)
    bits.replace_blocks(blocks)
    assert bits.scans_in_python
    found = bits.nearest(query, 384, None)
    assert len(found) == len(set(found)) == 384
    assert all(FIRST <= place < FIRST + len(rows) for place in found), "a hole was found"
    exact = [sum(map(float.__mul__, query, row)) for row in rows]
    nearest = sorted(range(len(rows)), key=lambda at: -exact[at])[:10]
    hits.append(len({FIRST + at for at in nearest} & set(found)))
    few = [3, FIRST + nearest[0], FIRST + nearest[1], FIRST + 77, 99_999_999]
    bits = BitRows(SIZE)
    bits.replace_blocks(blocks)
    assert set(bits.nearest(query, 9, few)) == set(few[1:4])
    small = int8_dots(query, [each[1] for each in made[:20]])
    halves = float16_dots(query, [each[2] for each in made[:20]])
    assert all(abs(one - other) < 0.03 for one, other in zip(small, exact))
    assert all(abs(one - other) < 0.002 for one, other in zip(halves, exact))
assert sum(hits) / len(hits) >= 9, hits
assert "numpy" not in sys.modules
print("ok")
"""


def test_python_alone_finds_the_same_without_importing_numpy() -> None:
    done = subprocess.run([sys.executable, "-c", PURE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("ok\n", "")


@given(st.integers(0, 300), st.integers(1, 40), st.integers(0, 9))
@settings(max_examples=30)
def test_holes_are_never_returned(first: int, count: int, seed: int) -> None:
    rows = _units(count, 64, seed)
    bits = BitRows(64)
    bits.replace_blocks(_blocks(pack_vectors(rows), 64, first))
    found = bits.nearest(rows[0].tolist(), SHORTLIST, None)
    assert set(found) == set(range(first, first + count))
    assert found[0] == first


@given(st.sets(st.integers(0, 9000), max_size=40), st.integers(0, 9))
@settings(max_examples=30)
def test_only_what_is_allowed_is_returned(allowed: set[int], seed: int) -> None:
    rows = _units(600, 64, seed)
    bits = BitRows(64)
    bits.replace_blocks(_blocks(pack_vectors(rows), 64, 4000))
    found = bits.nearest(rows[0].tolist(), SHORTLIST, sorted(allowed))
    assert set(found) == {place for place in allowed if 4000 <= place < 4600}


def test_nothing_is_asked_or_there() -> None:
    bits = BitRows(64)
    query = _units(1, 64, 1)[0].tolist()
    assert bits.nearest(query, 10, None) == []
    bits.replace_blocks(_blocks(pack_vectors(_units(3, 64, 1)), 64))
    assert bits.nearest(query, 0, None) == []
    assert bits.nearest(query, 10, []) == []
    bits.replace_blocks([(0, bytes(BLOCK * bits.width))])
    assert bits.nearest(query, 10, None) == bits.nearest(query, 10, [1, 2]) == []
    bits.planes.patch_int8(0, [])
    assert bits.planes.score_nearest(query, 10, None) == {}
    assert bits.planes.dot_products(query, [0, 1, 10**6]) == {}


def test_where_the_small_integers_are_kept_the_nearest_come_with_their_cosines() -> None:
    rows = _units(ROWS, 256, 4)
    made = pack_vectors(rows)
    bits = BitRows(256)
    bits.replace_blocks(_blocks(made, 256, 50))
    planes = bits.planes
    assert planes.score_nearest(rows[0].tolist(), 10, None) is None
    _keep(planes, [(50 + at, small) for at, (_, small, _) in enumerate(made)])
    hits = []
    for query in _units(10, 256, 5):
        found = planes.score_nearest(query.tolist(), SHORTLIST, None)
        assert found is not None
        exact = rows @ query
        assert all(abs(score - exact[place - 50]) < 0.01 for place, score in found.items())
        assert list(found.values()) == sorted(found.values(), reverse=True)
        hits.append(_hits([place - 50 for place in found], rows, query))
    assert sum(hits) / len(hits) >= 9
    few = planes.score_nearest(rows[0].tolist(), 10, [3, 50, 60, 10**6])
    assert few is not None
    assert list(few) == sorted((50, 60), key=lambda place: -float(rows[0] @ rows[place - 50]))
    one = planes.dot_products(rows[0].tolist(), [50, 10**6])
    assert one is not None
    assert abs(one.pop(50) - 1) < 0.01
    assert one == {}


def test_of_what_changed_the_small_integers_are_wanted_anew_and_of_nothing_else() -> None:
    made = pack_vectors(_units(3 * BLOCK, 64, 6))
    bits = BitRows(64)
    bits.replace_blocks(_blocks(made, 64))
    _keep(bits.planes, [(at, small) for at, (_, small, _) in enumerate(made)])
    query = _units(1, 64, 6)[0].tolist()
    assert bits.planes.blocks_missing_int8() == []
    assert bits.planes.score_nearest(query, 10, None)
    changed = bytearray(dict(_blocks(made, 64))[1])
    changed[: bits.width] = bytes(bits.width)
    bits.replace_blocks([(1, bytes(changed))])
    assert bits.planes.blocks_missing_int8() == [1]
    assert bits.planes.score_nearest(query, 10, None) is None
    bits.planes.patch_int8(1, [(BLOCK + at, made[BLOCK + at][1]) for at in range(BLOCK)])
    found = bits.planes.score_nearest(query, 3 * BLOCK, None)
    assert found is not None
    assert BLOCK not in found
    bits.replace_blocks([(9, bytes(changed))])
    assert bits.planes.blocks_missing_int8() == [9]


def _keep(planes: Planes, rows: list[tuple[int, bytes]]) -> None:
    for number in planes.blocks_missing_int8():
        planes.patch_int8(number, [row for row in rows if row[0] // BLOCK == number])


def test_a_replaced_block_is_seen_at_once() -> None:
    old, new = _units(2, 64, 1)
    bits = BitRows(64)
    for _ in range(2):
        bits.replace_blocks(_blocks(pack_vectors(np.stack([old, new])), 64))
        assert bits.nearest(new.tolist(), 1, None) == [1]
        bits.replace_blocks(_blocks(pack_vectors(np.stack([new, old])), 64))
        assert bits.nearest(new.tolist(), 1, None) == [0]
        bits.replace_blocks(
            [(1, _blocks(pack_vectors(new[None, :]), 64)[0][1]), (0, bytes(BLOCK * bits.width))]
        )
        assert bits.nearest(new.tolist(), 5, None) == [BLOCK]


def test_the_opposite_of_a_query_is_the_last() -> None:
    rows = _units(50, 256, 3)
    query = rows[0]
    bits = BitRows(256)
    bits.replace_blocks(_blocks(pack_vectors(np.vstack([-query[None, :], rows])), 256))
    found = bits.nearest(query.tolist(), SHORTLIST, None)
    assert (found[0], found[-1]) == (1, 0)
