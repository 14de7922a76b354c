"""LangGraph's store in a bank: the same answers as LangGraph's own, lives, meaning, threads and access."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from archivist import Bank
from archivist.archive.items_service import Items
from archivist.edges.integrations.langgraph import ArchivistStore
from archivist.errors import InputError
from archivist.records import Actor, ActorKind
from tests.banks import fresh_bank
from tests.conftest import TickingClock

ALL = 1_000


@pytest.fixture
def store(bank: Bank) -> ArchivistStore:
    return ArchivistStore(bank)


@contextmanager
def fresh_store() -> Iterator[ArchivistStore]:
    """Open a store that no other example has written to."""
    with tempfile.TemporaryDirectory() as folder, fresh_bank(folder) as opened:
        yield ArchivistStore(opened)


labels = st.sampled_from(["a", "b", "users", "users/1", "Ä ö", "*x", "a-", "a,b", "…"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
keys = st.one_of(
    st.sampled_from(["k", "k.", ".k", "..", "a..b", "", "a/b"]), st.text("ab.…\x00 ", max_size=4)
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", max_size=3), inner),
    max_leaves=6,
)
values = st.fixed_dictionaries(
    {"n": st.integers(-3, 3), "word": st.sampled_from(["red", "blue", ""]), "any": json_values}
)
comparisons = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), st.integers(-3, 3), min_size=1
)
filters = st.one_of(
    st.none(),
    st.fixed_dictionaries({"word": st.sampled_from(["red", "blue", "green"])}),
    st.fixed_dictionaries({"n": comparisons}),
    st.fixed_dictionaries({"any": json_values}),
    st.fixed_dictionaries({"word": st.just("red"), "n": st.just(1.0)}),
)
conditions = st.lists(
    st.builds(
        MatchCondition,
        st.sampled_from(["prefix", "suffix"]),
        st.lists(st.one_of(labels, st.just("*")), min_size=1, max_size=3).map(tuple),
    ),
    max_size=2,
).map(tuple)
puts = st.tuples(namespaces, keys, st.one_of(st.none(), values)).map(lambda given: PutOp(*given))
gets = st.tuples(namespaces, keys).map(lambda given: GetOp(*given))
searches = st.tuples(st.lists(labels, max_size=2).map(tuple), filters).map(
    lambda given: SearchOp(*given, limit=ALL)
)
listings = st.tuples(
    conditions, st.one_of(st.none(), st.integers(1, 3)), st.integers(0, 5), st.integers(0, 2)
).map(lambda given: ListNamespacesOp(*given))
batches = st.lists(
    st.lists(st.one_of(puts, puts, gets, searches, listings), min_size=1, max_size=5), max_size=6
)


def plain(answer: object) -> object:
    """Return an answer without its times, and what was found in an order of its own."""
    if isinstance(answer, Item):
        return answer.namespace, answer.key, answer.value
    if isinstance(answer, list) and answer and isinstance(answer[0], Item):
        return sorted((plain(each) for each in answer), key=repr)
    return answer


@settings(max_examples=30)
@given(batches)
def test_it_answers_as_the_store_in_memory_does(asked: list[list[Op]]) -> None:
    theirs = InMemoryStore()
    with fresh_store() as ours:
        for ops in asked:
            # Theirs lists a namespace once somebody has looked into it, though nothing is in it.
            for empty in [name for name, held in theirs._data.items() if not held]:
                del theirs._data[empty]
            ordered = sorted(ops, key=lambda op: isinstance(op, GetOp))
            expected = [plain(each) for each in theirs.batch(ordered)]
            assert [plain(each) for each in ours.batch(ordered)] == expected


@settings(max_examples=30)
@given(namespaces, keys, values)
def test_any_value_comes_back_whole(namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> None:
    with fresh_store() as store:
        store.put(namespace, key, value)
        found = store.get(namespace, key)
        assert found is not None
        assert (found.namespace, found.key, found.value) == (namespace, key, value)
        assert store.search(())[0].value == value
        assert store.list_namespaces() == [namespace]


def test_overwriting_keeps_the_first_time_and_moves_the_last(store: ArchivistStore) -> None:
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    second = store.get(("a",), "k")
    assert first is not None
    assert second is not None
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at


def test_a_namespace_is_matched_by_whole_labels(store: ArchivistStore) -> None:
    for namespace in [("user",), ("users",), ("user", "1"), ("user", "10"), ("User", "1"), ("user/1",)]:
        store.put(namespace, "k", {"text": "the same words everywhere"})
    assert {each.namespace for each in store.search(("user",))} == {("user",), ("user", "1"), ("user", "10")}
    assert [each.namespace for each in store.search(("user", "1"))] == [("user", "1")]
    by_meaning = store.search(("user",), query="the same words")
    assert {each.namespace for each in by_meaning} == {("user",), ("user", "1"), ("user", "10")}


def test_pages_hold_every_item_once_the_latest_first(store: ArchivistStore) -> None:
    store.batch([PutOp(("p",), f"k{number}", {"n": number}) for number in range(25)])
    pages = [store.search(("p",), limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert [each.value["n"] for page in pages for each in page] == list(reversed(range(25)))
    assert store.search(("p",), limit=0) == []


bounds = st.one_of(st.integers(-12, 12), st.sampled_from([2**31, 2**63, 2**70, -(2**63), -(2**70)]))


@settings(max_examples=25)
@given(
    st.lists(st.tuples(namespaces, keys, values), max_size=8),
    st.lists(st.tuples(st.lists(labels, max_size=2).map(tuple), filters, bounds, bounds), min_size=1),
)
def test_any_limit_and_offset_cut_the_list_as_those_of_the_store_in_memory_do(
    kept: list[tuple[tuple[str, ...], str, dict[str, Any]]],
    asked: list[tuple[tuple[str, ...], dict[str, Any] | None, int, int]],
) -> None:
    theirs = InMemoryStore()
    with fresh_store() as ours:
        for store in (theirs, ours):
            store.batch([PutOp(*each) for each in kept])
        for prefix, wanted, limit, offset in asked:
            for query in (None, "", "  "):
                found = ours.search(prefix, query=query, filter=wanted, limit=limit, offset=offset)
                expected = theirs.search(prefix, query=query, filter=wanted, limit=limit, offset=offset)
                assert len(found) == len(expected)
                # Theirs are in the order of their coming, ours the latest first.
                whole = ours.search(prefix, filter=wanted, limit=ALL)
                assert found == whole[offset : offset + limit]
            named = ListNamespacesOp(limit=limit, offset=offset)
            assert ours.batch([named]) == theirs.batch([named])


@settings(max_examples=25)
@given(st.integers(0, 5), st.integers(0, 4), st.lists(st.tuples(bounds, st.integers(-12, 5)), min_size=1))
def test_any_limit_and_offset_of_a_query_are_those_of_the_store_in_memory(
    scored: int, unscored: int, asked: list[tuple[int, int]]
) -> None:
    theirs = InMemoryStore(index={"dims": 1, "embed": lambda texts: [[1.0]] * len(texts), "fields": ["$"]})
    with fresh_store() as ours:
        tea = [PutOp(("q",), f"s{each}", {"text": f"a cup of tea, number {each}"}) for each in range(scored)]
        silent = [PutOp(("q",), f"u{each}", {"text": "silent"}, index=False) for each in range(unscored)]
        for store in (theirs, ours):
            store.batch([*tea, *silent])
        for limit, offset in asked:
            # Beyond its last scored item theirs begins with the others anew at each page.
            offset = min(offset, scored)  # noqa: PLW2901
            found = ours.search(("q",), query="a cup of tea", limit=limit, offset=offset)
            expected = theirs.search(("q",), query="a cup of tea", limit=limit, offset=offset)
            assert [each.score is None for each in found] == [each.score is None for each in expected]
            assert len({each.key for each in found}) == len(found)


def test_a_search_that_makes_no_sense_fails_as_in_memory(store: ArchivistStore) -> None:
    theirs = InMemoryStore()
    odd: list[dict[str, Any]] = [
        {"limit": None},
        {"offset": None},
        {"limit": "3"},
        {"limit": 1.5},
        {"filter": {"n": [{"$near": 1}]}},
        {"filter": {"n": [[{"$near": 1, "$gt": 0}]]}},
    ]
    for each in (theirs, store):
        each.put(("p",), "k", {"n": [1]})
        each.put(("p",), "l", {"n": [[1]]})
    for asked in odd:
        with pytest.raises(Exception) as expected:  # noqa: PT011 theirs says which
            theirs.search(("p",), **asked)
        with pytest.raises(type(expected.value)):
            store.search(("p",), **asked)


FOOD = {
    "pizza": {"text": "I love pizza with mushrooms", "kind": "taste"},
    "trains": {"text": "Takes the early train to work", "kind": "habit"},
    "garden": {"text": "Grows tomatoes and basil in the garden", "kind": "habit"},
}


def test_a_query_finds_by_meaning_and_fills_the_rest_without_a_score(store: ArchivistStore) -> None:
    for key, value in FOOD.items():
        store.put(("memories",), key, value)
    store.put(("memories",), "silent", {"text": "pizza, but nobody is to find it"}, index=False)
    found = store.search(("memories",), query="which food does the user like?", limit=10)
    assert found[0].key == "pizza"
    assert found[0].score is not None
    assert {each.key for each in found} == {*FOOD, "silent"}
    assert found[-1].score is None
    habits = store.search(("memories",), query="pizza", filter={"kind": "habit"})
    assert {each.key for each in habits} == {"garden", "trains"}
    two = [each.key for each in store.search(("memories",), query="pizza", limit=2)]
    assert two + [each.key for each in store.search(("memories",), query="pizza", limit=2, offset=2)] == [
        each.key for each in store.search(("memories",), query="pizza", limit=4)
    ]


def test_only_the_fields_that_are_asked_for_are_searched(bank: Bank) -> None:
    store = ArchivistStore(bank, fields=["title"])
    store.put(("d",), "one", {"title": "Sourdough", "body": "volcano"})
    store.put(("d",), "two", {"title": "Rivers", "body": "sourdough"})
    store.put(
        ("d",), "three", {"title": "Clouds", "notes": [{"t": "x"}, {"t": "volcano"}]}, index=["notes[*].t"]
    )
    found = {each.key: each.score for each in store.search(("d",), query="sourdough")}
    assert next(iter(found)) == "one"
    assert found["two"] is None
    assert store.search(("d",), query="volcano")[0].key == "three"
    assert ArchivistStore(bank, fields=()).search(("d",), query="volcano")[0].score is None


def test_many_items_are_found_by_meaning_once_their_vectors_are_made(store: ArchivistStore) -> None:
    store.batch([PutOp(("m",), str(number), {"text": f"invoice number {number}"}) for number in range(120)])
    store.put(("m",), "odd", {"text": "the cat sleeps on the warm radiator"})
    assert store.search(("m",), query="a sleeping cat", limit=3)[0].key == "odd"
    assert store.bank.vectors.count_unembedded() <= 1


def test_an_item_lives_as_long_as_it_should(bank: Bank, clock: TickingClock) -> None:
    store = ArchivistStore(bank, ttl={"default_ttl": 10, "refresh_on_read": True})
    store.put(("t",), "short", {"n": 1})
    store.put(("t", "u"), "long", {"n": 2}, ttl=None)
    clock.now += timedelta(minutes=8)
    assert store.get(("t",), "short") is not None
    clock.now += timedelta(minutes=8)
    assert store.get(("t",), "short", refresh_ttl=False) is not None
    clock.now += timedelta(minutes=3)
    assert store.get(("t",), "short") is None
    assert [each.key for each in store.search(("t",))] == ["long"]
    assert [each.key for each in store.search(("t",), query="anything")] == ["long"]
    assert store.list_namespaces() == [("t", "u")]
    assert store.sweep_ttl() == 1
    assert store.sweep_ttl() == 0
    assert bank.ledger.verify().is_whole


def test_searching_lets_live_and_seldom_writes(bank: Bank, clock: TickingClock) -> None:
    store = ArchivistStore(bank, ttl={"refresh_on_read": True})
    store.put(("t",), "k", {"n": 1}, ttl=1_000)
    before = bank.ledger.verify().entries
    for _ in range(20):
        assert store.search(("t",), query="k")
    assert bank.ledger.verify().entries == before
    clock.now += timedelta(minutes=900)
    store.search(("t",))
    clock.now += timedelta(minutes=900)
    assert store.get(("t",), "k") is not None


def test_what_has_expired_is_swept_with_a_later_write(bank: Bank, clock: TickingClock) -> None:
    store = ArchivistStore(bank, ttl={"sweep_interval_minutes": 5})
    store.put(("t",), "k", {"n": 1}, ttl=1)
    clock.now += timedelta(minutes=6)
    store.put(("t",), "other", {"n": 2})
    assert bank.documents.read("langgraph:t..k") == []


def test_it_works_from_many_threads_and_from_an_event_loop(bank: Bank) -> None:
    store = ArchivistStore(bank)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.put(("w",), f"k{number}", {"n": number}), range(40)))
    assert len(store.search(("w",), limit=ALL)) == 40

    async def work() -> None:
        await asyncio.gather(*(store.aput(("x",), str(number), {"n": number}) for number in range(10)))
        found = await store.aget(("x",), "7")
        assert found is not None
        assert found.value == {"n": 7}
        assert len(await store.asearch(("x",), filter={"n": {"$gte": 5}})) == 5
        await store.adelete(("x",), "7")
        assert await store.aget(("x",), "7") is None
        assert await store.alist_namespaces(prefix=("x",)) == [("x",)]

    asyncio.run(work())


def test_a_filter_does_not_trip_over_what_is_missing(store: ArchivistStore) -> None:
    store.put(("f",), "number", {"n": 3})
    store.put(("f",), "word", {"n": "many"})
    store.put(("f",), "none", {"other": 1})
    assert [each.key for each in store.search(("f",), filter={"n": {"$gt": 2}})] == ["number"]
    assert {each.key for each in store.search(("f",), filter={"n": {"$ne": 3}})} == {"word", "none"}
    with pytest.raises(ValueError, match="Unsupported operator"):
        store.search(("f",), filter={"n": {"$near": 2}})


def test_bad_names_and_values_are_refused_and_nothing_of_the_batch_is_kept(store: ArchivistStore) -> None:
    refused: list[tuple[type[Exception], Callable[[], object]]] = [
        (InvalidNamespaceError, lambda: store.put((), "k", {})),
        (InvalidNamespaceError, lambda: store.put(("a.b",), "k", {})),
        (InvalidNamespaceError, lambda: store.batch([GetOp(("a.b",), "k")])),
        (InvalidNamespaceError, lambda: store.batch([SearchOp(("",))])),
        (ValueError, lambda: store.batch([PutOp((), "k", {})])),
        (ValueError, lambda: store.put(("a",), "k", {}, ttl=float("nan"))),
        (ValueError, lambda: store.put(("a",), "k", {}, ttl=float("inf"))),
        (ValueError, lambda: store.put(("a",), "k", {}, ttl=1e15)),
        (ValueError, lambda: store.put(("a",), "k", {}, ttl=-1)),
        (InputError, lambda: store.put(("a",), "k", {"x": {1, 2}})),
        (InputError, lambda: store.put(("a",), "half \ud800", {"x": 1})),
    ]
    for kind, attempt in refused:
        with pytest.raises(kind):
            attempt()
    with pytest.raises(InputError):
        store.batch([PutOp(("a",), "good", {"x": 1}), PutOp(("a",), "bad", {"x": object()})])
    assert store.search(()) == []


def test_secrets_stay_out_of_the_bank(store: ArchivistStore) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    store.put(("s",), "k", {"note": f"use {token} to push", "deep": [{"github_token": token}]})
    found = store.get(("s",), "k")
    assert found is not None
    assert token not in repr(found.value)
    assert found.value["note"].startswith("use ")
    assert b"q7R8" not in store.bank.path.read_bytes()


def test_items_are_memories_like_any_other(bank: Bank, store: ArchivistStore) -> None:
    store.put(("memories", "ada"), "tea", {"text": "Ada takes her tea with oat milk"})
    (hit,) = bank.documents.search("oat milk in tea")
    assert hit.name.startswith("langgraph:memories.ada..tea")
    agent = bank.acting_as(Actor(ActorKind.AGENT, "graph"))
    ArchivistStore(agent).put(("memories", "ada"), "tea", {"text": "coffee now"})
    assert bank.ledger.verify().is_whole
    bank.erasure.erase(matching="oat milk")
    assert b"oat milk" not in bank.path.read_bytes()


def test_another_text_of_such_a_name_is_left_alone(bank: Bank, store: ArchivistStore) -> None:
    bank.documents.insert("# Not an item", type="research", source="langgraph:odd")
    store.put(("odd",), "k", {"n": 1})
    assert [each.key for each in store.search(())] == ["k"]
    assert store.list_namespaces() == [("odd",)]
    assert Items(bank).sweep() == 0


def test_it_survives_reopening(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "again") as opened:
        ArchivistStore(opened).put(("a", "b"), "k", {"n": [1, {"x": None}]})
    with Bank.open(tmp_path / "again") as opened:
        found = ArchivistStore(opened).get(("a", "b"), "k")
        assert found is not None
        assert found.value == {"n": [1, {"x": None}]}


def test_a_graph_has_no_persons_rights(bank: Bank, store: ArchivistStore) -> None:
    store.put(("a",), "k", {"text": "tea"})
    with bank.reading() as reader:
        (change,) = reader.changes(kind="document")
    assert str(change.entry.actor) == "agent:langgraph"


@pytest.mark.parametrize("ttl", [{"default_ttl": "long"}, {"sweep_interval_minutes": -1}])
def test_a_life_that_is_no_number_is_refused_at_once(bank: Bank, ttl: Any) -> None:
    with pytest.raises(ValueError, match="is not a number of minutes"):
        ArchivistStore(bank, ttl=ttl)
    with pytest.raises(ValueError, match="Unsupported operator") as caught:
        store = ArchivistStore(bank)
        store.put(("a",), "b", {"c": 1})
        store.search(("a",), filter={"c": {"$" + "x" * 50_000: 1}})
    assert len(str(caught.value)) < 1_000
