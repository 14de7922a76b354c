"""What a statement is to another: measured on pairs as people write them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.workspace import statement_pairs as pairs
from tests.unit.workspace.statement_pairs import Pair

from archivist.recall.embedders.static import StaticEmbedder
from archivist.workspace.similarity import Compared, Likeness, Statement, compare, conflict

EMBEDDER = StaticEmbedder()
SAME = {Likeness.EXACT, Likeness.FUZZY, Likeness.MEANING}


def _compared(pair: Pair) -> Compared:
    old, new = Statement(*pair.old), Statement(*pair.new)
    first, second = EMBEDDER.embed_texts([old.whole, new.whole])
    return compare(old, new, float(first @ second))


def _wrong(found: Sequence[Pair], expected: set[Likeness]) -> list[tuple[str, str, Likeness]]:
    judged = [(pair, _compared(pair).likeness) for pair in found]
    return [(pair.old[0], pair.new[0], likeness) for pair, likeness in judged if likeness not in expected]


@pytest.mark.req("W7")
def test_the_pairs_that_the_thresholds_were_measured_on() -> None:
    assert _wrong(pairs.SAME, SAME) == []
    assert _wrong(pairs.CONFLICT, {Likeness.CONFLICT}) == []
    assert _wrong(pairs.DIFFERENT, {Likeness.DIFFERENT}) == []


@pytest.mark.req("W7")
def test_pairs_that_nothing_was_tuned_on() -> None:
    # The one miss is reported as a conflict, so that a person decides: nothing is dropped unseen.
    assert _wrong(pairs.FRESH_SAME, SAME) == [
        ("Webpack aliases break in Jest", "Jest does not know webpack aliases", Likeness.CONFLICT)
    ]
    assert _wrong(pairs.FRESH_CONFLICT, {Likeness.CONFLICT}) == []
    assert _wrong(pairs.FRESH_DIFFERENT, {Likeness.DIFFERENT}) == []


def test_every_new_subject_is_different_from_every_other() -> None:
    known = [Pair(one.old, other.old) for one in pairs.DIFFERENT for other in pairs.FRESH_DIFFERENT]
    assert _wrong(known, {Likeness.DIFFERENT}) == []


_WORDS = st.sampled_from(
    ["use", "pnpm", "never", "the", "30", "60", "timeout", "is", "not", "enable", "over", "x"]
)


@given(st.lists(_WORDS, min_size=1, max_size=8).map(" ".join))
def test_nothing_contradicts_itself(text: str) -> None:
    statement = Statement("", text)
    assert conflict(statement, statement) == ""
    assert compare(statement, statement, 1.0).likeness is Likeness.EXACT
