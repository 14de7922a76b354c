"""What every store must do with places: go on behind one, whatever the order and what has no value."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archivist.errors import CursorError
from archivist.records import Episode
from archivist.store.filters import one_of
from archivist.store.rows import cursor_of
from tests.contract.test_stores import ACTOR
from tests.engines import ENGINES
from tests.samples import WHEN, lesson

_MOMENT = st.none() | st.integers(0, 3).map(lambda hours: WHEN + timedelta(hours=hours))
_ORDERS = [
    ("-finished", "-started", "id"),
    ("finished", "started", "-id"),
    ("-id",),
    ("task", "-finished", "id"),
]

_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner, max_size=2),
    max_leaves=3,
)


@pytest.mark.parametrize("engine", ENGINES)
@given(
    runs=st.lists(st.tuples(_MOMENT, _MOMENT, st.sampled_from("ab")), max_size=12),
    order=st.sampled_from(_ORDERS),
    most=st.integers(1, 4),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pages_by_place_are_the_whole_order(
    tmp_path_factory: pytest.TempPathFactory,
    engine: str,
    runs: list[tuple[object, object, str]],
    order: tuple[str, ...],
    most: int,
) -> None:
    store = ENGINES[engine](Path(tmp_path_factory.mktemp("places")))
    with store.writing(ACTOR, WHEN) as writer:
        for number, (started, finished, task) in enumerate(runs):
            writer.put(Episode(id=f"r{number:02}", started=started, finished=finished, task=task), "add")  # type: ignore[arg-type]
    seen: list[Episode] = []
    with store.reading() as reader:
        whole = reader.select(Episode, order=order)
        while True:
            after = cursor_of(seen[-1], order) if seen else None
            page = reader.select(Episode, order=order, after=after, limit=most)
            if not page:
                break
            seen += page
    store.close()
    assert seen == whole


@pytest.mark.parametrize("engine", ENGINES)
@given(place=st.lists(_ANYTHING, max_size=4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_no_place_is_refused(
    tmp_path_factory: pytest.TempPathFactory, engine: str, place: list[object]
) -> None:
    store = ENGINES[engine](Path(tmp_path_factory.mktemp("forged")))
    # A run need not have begun or ended, and its name is any text.
    is_one = len(place) == 3 and place[:2] == [None, None] and isinstance(place[2], str)
    with store.reading() as reader, nullcontext() if is_one else pytest.raises(CursorError):
        assert reader.select(Episode, order=_ORDERS[0], after=place) == []
    store.close()


_TEXTS = (
    'a "quoted" one', "back\\slash", "{braces, commas}", "NULL", "nul\x00 and \x01", "", "\u4e2d 'x'", "None",
)  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_a_list_finds_texts_of_any_characters(engine: str, tmp_path: Path) -> None:
    store = ENGINES[engine](tmp_path / "store")
    with store.writing(ACTOR, WHEN) as writer:
        for at, text in enumerate(_TEXTS, 1):
            writer.put(lesson(f"l{at}", number=at, domain=text), "add")
    with store.reading() as reader:
        for at, text in enumerate(_TEXTS, 1):
            found = reader.select_fields("lesson", ("id",), one_of("domain", (text, "nobody's")))
            assert found == [(f"l{at}",)]
        assert reader.count("lesson", one_of("domain", _TEXTS)) == len(_TEXTS)
        assert reader.count("lesson", one_of("number", (2, 3, None))) == 2
    store.close()
