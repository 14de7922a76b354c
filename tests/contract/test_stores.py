"""What every store must do, whatever its engine. An engine joins by its opener in tests/engines.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist.records import (
    Actor,
    ActorKind,
    Brief,
    Effect,
    Episode,
    Event,
    EventKind,
    Lesson,
    Status,
    Usage,
    Verdict,
)
from archivist.store.filters import (
    any_of,
    at_least,
    at_most,
    contains_item,
    contains_text,
    equals,
    not_equals,
    one_of,
    one_of_unindexed,
    starts_with,
)
from archivist.store.protocol import Store
from archivist.store.results import SearchFilter, TextQuery, scope_token
from archivist.store.vectors import pack_vector
from tests.engines import ENGINES
from tests.samples import WHEN, finding, lesson, lessons

ACTOR = Actor(ActorKind.AGENT, "claude", "guardian")


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open a fresh store of each engine."""
    opened = ENGINES[request.param](tmp_path / "store")
    yield opened
    opened.close()


def _put(store: Store, *records: Any, verb: str = "add", actor: Actor = ACTOR) -> list[bool]:
    with store.writing(actor, WHEN) as writer:
        return [writer.put(record, verb) for record in records]


def _get(store: Store, kind: type[Any], name: str) -> Any:
    with store.reading() as reader:
        return reader.get(kind, name)


RECORDS = [
    lesson("l-1", tags=("a", "ü"), runs=("r1", "r2"), extra={"x": [1, {"y": None}]}),
    Episode(id="r1", started=WHEN, usage=Usage(cost_usd=0.5, efficiency=1.5), number=1, extra={"z": True}),
    Brief(id="b-1", time=WHEN, run="r1", lessons=("l-1", "l-2")),
    Verdict(run="r1", lesson="l-1", time=WHEN, effect=Effect.HELPFUL),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_as_it_was_put(store: Store, record: Any) -> None:
    assert _put(store, record) == [True]
    assert _get(store, type(record), record.id) == record


@given(made=lessons(number=1))
def test_any_lesson_comes_back_as_it_was_put(tmp_path_factory: pytest.TempPathFactory, made: Lesson) -> None:
    for opener in ENGINES.values():
        store = opener(tmp_path_factory.mktemp("store"))
        _put(store, made)
        assert _get(store, Lesson, made.id) == made
        with store.reading() as reader:
            assert reader.verify().is_whole
        store.close()


def test_putting_the_same_again_changes_nothing(store: Store) -> None:
    _put(store, lesson())
    assert _put(store, lesson()) == [False]
    with store.reading() as reader:
        assert len(reader.changes()) == 1


def test_nothing_there_is_none(store: Store) -> None:
    assert _get(store, Lesson, "nobody") is None


def test_a_block_that_raises_leaves_no_trace(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.writing(ACTOR, WHEN) as writer:
        writer.put(lesson(), "add")
        writer.next_number()
        raise ZeroDivisionError
    with store.reading() as reader:
        assert reader.get(Lesson, "a") is None
        assert reader.changes() == []
    with store.writing(ACTOR, WHEN) as writer:
        assert writer.next_number() == 1


def test_lessons_are_found_by_their_very_words(store: Store) -> None:
    begins = "Pin the linter in requirements-dev.txt, and no "
    texts = (f"{begins}other", f"{begins}less", "Pin", "", "ä" * 50)
    for number, text in enumerate(texts, 1):
        _put(store, lesson(f"l{number}", number=number, summary=text))
    _put(store, lesson("again", number=9, summary="Pin"))
    with store.reading() as reader:
        found = [
            [each.id for each in reader.select(Lesson, equals("summary", text), order=("number",))]
            for text in (*texts, begins, "pin")
        ]
    assert found == [["l1"], ["l2"], ["l3", "again"], ["l4"], ["l5"], [], []]


def test_an_inner_block_acts_in_its_own_name(store: Store) -> None:
    other = Actor(ActorKind.ARCHIVIST)
    with store.writing(ACTOR, WHEN) as outer:
        with store.writing(other, WHEN) as inner:
            inner.put(lesson("theirs"), "add")
        outer.put(lesson("ours", number=2), "add")
    with store.reading() as reader:
        assert [change.entry.actor for change in reader.changes()] == [other, ACTOR]
        assert reader.verify().problems == ()


def test_an_inner_block_joins_the_outer_one(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.writing(ACTOR, WHEN):
        with store.writing(ACTOR, WHEN) as writer:
            writer.put(lesson(), "add")
        raise ZeroDivisionError
    assert _get(store, Lesson, "a") is None


def _ids(store: Store, *conditions: Any, **how: Any) -> list[str]:
    with store.reading() as reader:
        assert reader.count(Lesson, *conditions) == len(reader.select(Lesson, *conditions))
        return [each.id for each in reader.select(Lesson, *conditions, **how)]


def test_conditions_choose_and_order_sorts(store: Store) -> None:
    _put(
        store,
        lesson("a", number=1, domain="code", runs=("r1",), tags=("x",), importance=0.1),
        lesson(
            "b", number=2, domain="code", runs=("r1", "r2", "r3"), faded=1, tags=("x", "y"), importance=0.9
        ),
        lesson(
            "c", number=3, domain="writing", runs=("r1", "r2", "r3"), status=Status.ACTIVE, importance=0.5
        ),
    )
    assert _ids(store, equals("domain", "code"), order=("number",)) == ["a", "b"]
    assert _ids(store, not_equals("domain", "code")) == ["c"]
    assert _ids(store, equals("status", Status.ACTIVE)) == ["c"]
    assert _ids(store, at_least("frequency", 2), order=("-frequency",)) == ["c", "b"]
    assert _ids(store, at_most("importance", 0.5), order=("-importance",)) == ["c", "a"]
    assert _ids(store, contains_item("tags", "y")) == ["b"]
    assert _ids(store, *starts_with("domain", "cod")) == ["a", "b"]
    assert _ids(store, *starts_with("domain", "codd")) == []
    assert _ids(store, contains_item("runs", "r2"), order=("number",)) == ["b", "c"]
    assert _ids(store, one_of("id", ("a", "c")), order=("-number",)) == ["c", "a"]
    assert _ids(store, one_of("id", ())) == []
    assert _ids(store, one_of_unindexed("id", ("a", "c")), order=("-frequency", "-importance", "number")) == [
        "c",
        "a",
    ]
    assert _ids(store, contains_text("domain", "RIT")) == ["c"]
    assert _ids(store, contains_text("domain", "")) == _ids(store)
    either = any_of((equals("domain", "writing"),), (contains_item("tags", "x"), at_least("frequency", 2)))
    assert _ids(store, either, order=("number",)) == ["b", "c"]
    assert _ids(store, order=("number",), limit=2) == ["a", "b"]


def test_an_unknown_field_is_refused(store: Store) -> None:
    with pytest.raises(LookupError), store.reading() as reader:
        reader.select(Lesson, equals("id = '' OR 1", "x"))
    with pytest.raises(LookupError), store.reading() as reader:
        reader.count("lesson", equals("id = '' OR 1", "x"))
    with pytest.raises(LookupError), store.reading() as reader:
        reader.values("lesson", "id = '' OR 1")


def test_a_kind_may_be_named_by_its_word(store: Store) -> None:
    _put(store, *(lesson(f"{number}", number=number, repo=f"r{number % 3}") for number in range(1, 8)))
    with store.reading() as reader:
        conditions = (equals("repo", "r1"),)
        for record in ("lesson", Lesson):
            assert reader.count(record, *conditions) == 3
            assert reader.select_fields(record, ("id",), *conditions, order=("number",)) == [
                ("1",), ("4",), ("7",)
            ]  # fmt: skip
        assert reader.values("lesson", "repo") == ["r0", "r1", "r2"]
        assert reader.values("lesson", "task") == []
        numbers = reader.select_fields("lesson", ("number",), *conditions, order=("number",))
        assert numbers == [(1,), (4,), (7,)]
        assert reader.select_fields("lesson", ("number",), equals("repo", "nobody's")) == []


def test_numbers_are_never_given_twice(store: Store) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        assert [writer.next_number(), writer.next_number()] == [1, 2]
        writer.reserve_number(40)
        writer.reserve_number(7)
        assert writer.next_number() == 41


@pytest.mark.req("N5")
def test_every_change_is_in_the_ledger_with_its_actor(store: Store) -> None:
    _put(store, lesson())
    _put(store, lesson(summary="Other words"), verb="edit")
    with store.writing(ACTOR, WHEN) as writer:
        writer.remove(Lesson, "a", "erase")
    with store.reading() as reader:
        changes = reader.changes(record_id="a")
        assert [change.entry.verb for change in changes] == ["add", "edit", "erase"]
        assert {change.entry.actor for change in changes} == {ACTOR}
        assert [change.after and change.after["summary"] for change in changes] == [
            "Check the null",
            "Other words",
            None,
        ]
        assert [change.entry.previous for change in changes][1:] == [c.entry.hash for c in changes][:-1]
        assert reader.verify().is_whole


@pytest.mark.req("N5")
def test_a_whole_ledger_verifies_with_every_kind_of_record(store: Store) -> None:
    _put(store, *RECORDS)
    with store.writing(ACTOR, WHEN) as writer:
        writer.put_events("r1", [Event(run="r1", seq=1), Event(run="r1", seq=2)], "capture")
    with store.reading() as reader:
        found = reader.verify()
        assert (found.entries, found.erased, found.problems) == (5, 0, ())


def test_events_are_kept_in_order_and_only_once(store: Store) -> None:
    events = [
        Event(
            run="r1",
            seq=seq,
            kind=EventKind.TOOL_CALL,
            time=WHEN + timedelta(seconds=seq),
            tool="bash",
            exit_code=seq,
            is_error=bool(seq),
            duration_s=0.5,
            findings=(finding("x"),),
        )
        for seq in (0, 1, 2)
    ]
    with store.writing(ACTOR, WHEN) as writer:
        assert writer.put_events("r1", reversed(events), "capture") == 3
        assert writer.put_events("r1", events, "capture") == 0
        longer = [*events[:2], replace(events[2], output="more"), Event(run="r1", seq=3)]
        assert writer.put_events("r1", longer, "capture") == 2
        assert writer.put_events("r1", [], "capture") == 0
    with store.reading() as reader:
        assert reader.select(Event, equals("run", "r1"), order=("seq",)) == longer
        assert len(reader.changes(record_id="r1")) == 2
        assert reader.verify().is_whole


def test_tallies_follow_briefs_and_verdicts(store: Store) -> None:
    later = WHEN + timedelta(days=1)
    _put(
        store,
        Brief(id="b1", time=later, lessons=("a", "b")),
        Brief(id="b2", time=WHEN, lessons=("a",)),
        Verdict(run="r1", lesson="a", time=WHEN, effect=Effect.HELPFUL),
        Verdict(run="r2", lesson="a", time=WHEN, effect=Effect.HELPFUL),
        Verdict(run="r3", lesson="a", time=WHEN, effect=Effect.IGNORED),
    )
    _put(store, Verdict(run="r2", lesson="a", time=WHEN, effect=Effect.INEFFECTIVE))

    def check() -> None:
        with store.reading() as reader:
            tally = reader.tallies(["a", "b", "c"])
            assert "c" not in tally
            counted = tally["a"]
            assert (counted.used, counted.last_used) == (2, later)
            assert (counted.helpful, counted.ineffective, counted.ignored) == (1, 1, 1)
            assert tally["b"].used == 1

    check()
    store.reindex()
    check()


def test_the_text_index_finds_words_within_a_scope(store: Store) -> None:
    _put(
        store,
        lesson("a", number=1, summary="Null checks are missing", domain="code"),
        lesson("b", number=2, summary="Null and void", domain="law & order"),
        Episode(id="r1", task="Add null checks"),
    )

    def find(*words: str, kinds: tuple[str, ...] = ("lesson",), scope: tuple[str, ...] = ()) -> list[str]:
        groups = [tuple(scope_token("kind", kind) for kind in kinds), *((token,) for token in scope)]
        with store.reading() as reader:
            within = SearchFilter(groups=tuple(group for group in groups if group))
            hits = reader.search(TextQuery(words), search_filter=within, limit=9)
            assert all(hit.score > 0 for hit in hits)
            placed = reader.indexed_documents([hit.place for hit in hits])
            return [placed[hit.place].record for hit in hits]

    assert sorted(find("null")) == ["a", "b"]
    assert find("null", "checks")[0] == "a"
    assert find("null", scope=(scope_token("domain", "law & order"),)) == ["b"]
    assert find("null", kinds=("episode",)) == ["r1"]
    assert sorted(find("null", kinds=())) == ["a", "b", "r1"]
    assert find("nowhere") == []
    assert find() == []
    _put(store, lesson("a", number=1, summary="Something else"), verb="edit")
    assert find("null") == ["b"]
    store.reindex()
    assert find("null") == ["b"]
    with store.writing(ACTOR, WHEN) as writer:
        writer.remove(Lesson, "b", "erase")
    assert find("null") == []


@given(st.text())
def test_no_word_breaks_the_text_index(tmp_path_factory: pytest.TempPathFactory, word: str) -> None:
    for opener in ENGINES.values():
        store = opener(tmp_path_factory.mktemp("store"))
        with store.reading() as reader:
            words = TextQuery((word,), ((word, word),), (word,))
            assert reader.search(words, search_filter=SearchFilter(), limit=3) == []
            assert reader.count_documents_with([word], at_most=3) == [0]
        store.close()


def test_runs_are_counted_by_their_numbers(store: Store) -> None:
    _put(store, Episode(id="r1", number=1), Episode(id="r2"), actor=Actor(ActorKind.HUMAN))
    with store.reading() as reader:
        assert reader.run_count() == 1


def test_settings_belong_to_the_bank(store: Store) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        writer.set_setting("bank_id", "one")
        writer.set_setting("bank_id", "two")
    with store.reading() as reader:
        assert (reader.setting("bank_id"), reader.setting("nothing")) == ("two", "")


def test_runs_wait_in_order_and_are_leased_to_one_holder(store: Store) -> None:
    later = WHEN + timedelta(hours=1)
    for number, run in enumerate(("r2", "r1", "r3")):
        with store.writing(ACTOR, WHEN + timedelta(seconds=number)) as writer:
            writer.queue(run)
    with store.writing(ACTOR, later) as writer:
        assert writer.lease("me", later + timedelta(minutes=5), limit=2) == ["r2", "r1"]
        assert writer.lease("you", later + timedelta(minutes=5), limit=9) == ["r3"]
        assert writer.lease("them", later + timedelta(minutes=5), limit=9) == []
        assert writer.end_lease("r2", "you") is False
        assert writer.end_lease("r2", "me") is True
        assert writer.end_lease("r1", "me", "it broke") is True
    with store.reading() as reader:
        waiting = {each.run: each for each in reader.queued_runs()}
    assert set(waiting) == {"r1", "r3"}
    assert (waiting["r1"].error, waiting["r1"].holder, waiting["r1"].attempts) == ("it broke", "", 1)
    assert waiting["r3"].leased_until == later + timedelta(minutes=5)


def test_a_lease_that_has_run_out_can_be_taken_and_one_run_can_be_asked_for(store: Store) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        writer.queue("r1")
        writer.queue("r2")
        assert writer.lease("dead", WHEN + timedelta(seconds=5), runs=("r2",)) == ["r2"]
    with store.writing(ACTOR, WHEN + timedelta(seconds=9)) as writer:
        assert writer.lease("heir", WHEN + timedelta(hours=1), runs=("r2",)) == ["r2"]
        assert writer.end_lease("r2", "dead") is False


def test_a_run_that_failed_three_times_is_left_alone(store: Store) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        writer.queue("r1")
    for _ in range(3):
        with store.writing(ACTOR, WHEN) as writer:
            assert writer.lease("me", WHEN + timedelta(hours=1)) == ["r1"]
            writer.end_lease("r1", "me", "again")
    with store.writing(ACTOR, WHEN) as writer:
        assert writer.lease("me", WHEN + timedelta(hours=1)) == []
        writer.queue("r1")
        assert writer.lease("me", WHEN + timedelta(hours=1)) == ["r1"]


def test_a_run_that_was_reflected_on_leaves_the_queue_unless_it_came_again(store: Store) -> None:
    looked = WHEN + timedelta(seconds=5)
    for moment, run in ((WHEN, "held"), (WHEN, "free"), (looked + timedelta(seconds=1), "again")):
        with store.writing(ACTOR, moment) as writer:
            writer.queue(run)
    with store.writing(ACTOR, looked + timedelta(seconds=2)) as writer:
        writer.lease("dead", WHEN + timedelta(hours=1), runs=("held",))
        for run in ("held", "free", "again"):
            writer.dequeue_run(run, looked)
    with store.reading() as reader:
        assert [each.run for each in reader.queued_runs()] == ["again"]


def test_a_lease_that_is_given_back_was_no_attempt(store: Store) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        writer.queue("r1")
        for _ in range(5):
            assert writer.lease("me", WHEN + timedelta(hours=1)) == ["r1"]
            writer.release_lease("r1", "you")
            assert writer.lease("you", WHEN + timedelta(hours=1)) == []
            writer.release_lease("r1", "me")
    with store.reading() as reader:
        assert [(each.attempts, each.holder, each.leased_until) for each in reader.queued_runs()] == [
            (0, "", None)
        ]


def test_a_run_whose_holders_died_three_times_says_so(store: Store) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        writer.queue("r1")
    for hour in range(3):
        with store.writing(ACTOR, WHEN + timedelta(hours=hour)) as writer:
            assert writer.lease("dead", WHEN + timedelta(hours=hour, minutes=5)) == ["r1"]
    with store.writing(ACTOR, WHEN + timedelta(hours=3)) as writer:
        assert writer.lease("heir", WHEN + timedelta(hours=4)) == []
    with store.reading() as reader:
        (left,) = reader.queued_runs()
    assert (left.error, left.holder) == ("every reflection on it was aborted", "")


def test_a_captured_file_is_known_by_its_content(store: Store) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        writer.mark_file_captured("d1", ["r1", "r2"])
    with store.reading() as reader:
        assert (reader.file_runs("d1"), reader.file_runs("d2")) == (["r1", "r2"], None)


# The index


def _said(run: str, *texts: str, **fields: Any) -> list[Event]:
    return [
        Event(run=run, seq=seq, kind=EventKind.MESSAGE, time=WHEN + timedelta(days=seq), text=text, **fields)
        for seq, text in enumerate(texts)
    ]


def _put_events(store: Store, run: str, events: list[Event]) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        writer.put_events(run, events, "capture")


def _place(store: Store, kind: str, record: str) -> int:
    with store.reading() as reader:
        (place,) = reader.index_places(kind, [record])
        assert reader.indexed_documents([place])[place].record == record
        return place


def _found(store: Store, words: TextQuery, within: SearchFilter | None = None) -> list[str]:
    with store.reading() as reader:
        hits = reader.search(words, search_filter=within or SearchFilter(), limit=99)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        placed = reader.indexed_documents([hit.place for hit in hits])
        return [placed[hit.place].record for hit in hits]


def test_words_phrases_and_beginnings_are_found(store: Store) -> None:
    _put(
        store,
        lesson("a", number=1, summary="The build cache is cold"),
        lesson("b", number=2, summary="A cache for the build"),
        lesson("c", number=3, summary="Buildings are tall"),
    )
    assert set(_found(store, TextQuery(("cold",)))) == {"a"}
    assert _found(store, TextQuery(phrases=(("build", "cache"),))) == ["a"]
    assert set(_found(store, TextQuery(prefixes=("cach",)))) == {"a", "b"}
    assert _found(store, TextQuery(("tall",), (("build", "cache"),)))[:2] in (["a", "c"], ["c", "a"])
    with store.reading() as reader:
        assert len(reader.search(TextQuery(("cache",)), search_filter=SearchFilter(), limit=1)) == 1
        assert reader.search(TextQuery(("cache",)), search_filter=SearchFilter(), limit=0) == []


def test_words_are_counted_no_further_than_asked(store: Store) -> None:
    _put(store, *(lesson(f"l{number}", number=number, summary="Null checks") for number in range(1, 6)))
    with store.reading() as reader:
        assert [reader.count_documents_with(["null"], at_most=most) for most in (1, 3, 9)] == [[1], [3], [5]]
        assert reader.count_documents_with(["nobody", "!", "null"], at_most=9) == [0, 0, 5]
        assert reader.document_count() == 5


def test_ranges_and_scopes_hold_for_words_and_vectors(store: Store) -> None:
    _put_events(store, "r1", _said("r1", *["null"] * 4, role="maker", extra={}))
    _put_events(
        store, "r2", [replace(each, extra={"cycle": each.seq}) for each in _said("r2", *["null"] * 4)]
    )
    _put(store, lesson("a", number=1, summary="null", importance=0.9))
    day = timedelta(days=1)
    maker = (scope_token("role", "maker"),)
    run = (scope_token("run", "r1"), scope_token("run", "r2"))
    cases = [
        (SearchFilter(), {"r1#0", "r1#1", "r1#2", "r1#3", "r2#0", "r2#1", "r2#2", "r2#3", "a"}),
        (SearchFilter(since=WHEN + 2 * day), {"r1#2", "r1#3", "r2#2", "r2#3"}),
        (SearchFilter(until=WHEN), {"r1#0", "r2#0", "a"}),
        (SearchFilter(since_cycle=1, until_cycle=2), {"r2#1", "r2#2"}),
        (SearchFilter(min_importance=0.8), {"a"}),
        (SearchFilter((maker,)), {"r1#0", "r1#1", "r1#2", "r1#3"}),
        (SearchFilter((maker, run), since=WHEN + 3 * day), {"r1#3"}),
        (SearchFilter(((scope_token("role", "nobody"),),)), set()),
    ]
    _embed_all(store, "e", 3)
    for within, expected in cases:
        assert set(_found(store, TextQuery(("null",)), within)) == expected
        with store.reading() as reader:
            near = reader.nearest([1.0, 0.0, 0.0], "e", search_filter=within, limit=99)
            placed = reader.indexed_documents([hit.place for hit in near])
            assert {placed[hit.place].record for hit in near} == expected


def test_what_is_hidden_is_found_by_words_only_when_asked_for(store: Store) -> None:
    _put(
        store,
        lesson("a", number=1, summary="null", status=Status.ARCHIVED),
        lesson("b", number=2, summary="null", status=Status.QUARANTINED),
        lesson("c", number=3, summary="null", status=Status.SUPERSEDED, superseded_by="d"),
    )
    assert _found(store, TextQuery(("null",))) == ["c"]
    assert set(_found(store, TextQuery(("null",)), SearchFilter(with_hidden=True))) == {"a", "b", "c"}
    with store.reading() as reader:
        placed = [reader.indexed_documents([_place(store, "lesson", name)]) for name in "ac"]
        hidden, replaced = (next(iter(each.values())) for each in placed)
        assert (bool(hidden.is_hidden), bool(replaced.is_hidden)) == (True, False)
        assert replaced.superseded_by == "d"


def test_who_speaks_is_known_by_name(store: Store) -> None:
    _put_events(store, "r1", _said("r1", "hello", role="Anna Lee"))
    _put_events(store, "r2", _said("r2", "hello", role="user"))
    with store.reading() as reader:
        assert reader.known_speakers(["anna lee", "anna", "user", "ben"]) == {"anna lee"}
        assert reader.known_speakers([]) == set()


def test_a_stream_is_read_by_its_positions(store: Store) -> None:
    _put_events(store, "r1", _said("r1", *"abcde"))
    _put_events(store, "r2", _said("r2", *"abc"))
    _put(store, lesson("a", number=1))
    with store.reading() as reader:
        for first, last, names in ((1, 3, ["r1#1", "r1#2", "r1#3"]), (-2, 0, ["r1#0"])):
            around = reader.documents_at([("r1", position) for position in range(first, last + 1)])
            assert sorted(each.record for each in around) == names
        nowhere = [(thread, position) for thread in ("", "nobody") for position in range(10)]
        assert reader.documents_at(nowhere) == []
        at = reader.documents_at([("r1", 4), ("r2", 0), ("r1", 4), ("r2", 9), ("", 0)])
        assert sorted(each.record for each in at) == ["r1#4", "r2#0"]
        assert reader.documents_at([]) == []


def test_records_are_fetched_by_kind_and_id_and_unknown_ones_left_out(store: Store) -> None:
    _put(store, *RECORDS)
    with store.reading() as reader:
        assert reader.records("lesson", ["l-1", "nobody"]) == {"l-1": RECORDS[0]}
        assert reader.records("episode", ["r1"]) == {"r1": RECORDS[1]}
        assert reader.index_places("lesson", ["nobody"]) == []
        assert reader.indexed_documents([10**6]) == {}


# Vectors


def _embed_all(store: Store, embedder: str, dimensions: int, **of: Sequence[float]) -> int:
    """Store a vector of every text that waits: the given one of its record, else the first direction."""
    with store.reading() as reader:
        waiting = reader.pending_embeddings(embedder, limit=999)
        placed = reader.indexed_documents([each.place for each in waiting])
    first = [1.0] + [0.0] * (dimensions - 1)
    rows = [
        (each.place, each.revision, pack_vector(of.get(placed[each.place].record, first))) for each in waiting
    ]
    with store.writing(ACTOR, WHEN) as writer:
        return writer.put_vectors(embedder, dimensions, rows)


def _nearest(store: Store, query: Sequence[float], embedder: str = "e", limit: int = 9) -> list[str]:
    with store.reading() as reader:
        hits = reader.nearest(query, embedder, search_filter=SearchFilter(), limit=limit)
        placed = reader.indexed_documents([hit.place for hit in hits])
        places = [hit.place for hit in hits]
        cosines = reader.cosines(query, embedder, places)
        assert all(abs(cosines[hit.place] - hit.score) < 0.02 for hit in hits)
        return [placed[place].record for place in places]


def _abc(store: Store) -> None:
    _put(store, *(lesson(name, number=number, summary=name) for number, name in enumerate("abc", 1)))


AXES: dict[str, Sequence[float]] = {"a": (1.0, 0.0, 0.0), "b": (0.8, 0.6, 0.0), "c": (0.0, 0.0, 1.0)}


def test_the_nearest_vectors_are_found_with_their_cosines(store: Store) -> None:
    _abc(store)
    with store.reading() as reader:
        assert reader.embedder_in_use() == ""
        assert reader.nearest([1.0, 0.0, 0.0], "e", search_filter=SearchFilter(), limit=9) == []
        assert reader.pending_embedding_count("e") == 3
        assert {each.text for each in reader.pending_embeddings("e", limit=9)} == {"a", "b", "c"}
        assert len(reader.pending_embeddings("e", limit=2)) == 2
        assert reader.pending_embeddings("e", limit=2, all_or_nothing=True) == []
        assert len(reader.pending_embeddings("e", limit=3, all_or_nothing=True)) == 3
    assert _embed_all(store, "e", 3, **AXES) == 3
    assert _nearest(store, [1.0, 0.0, 0.0]) == ["a", "b", "c"]
    assert _nearest(store, [0.0, 0.1, 0.99], limit=1) == ["c"]
    assert _nearest(store, [0.0, 0.0, 0.0]) == []
    assert _nearest(store, [1.0, 0.0, 0.0], "nobody") == []
    with store.reading() as reader:
        assert (reader.embedder_in_use(), reader.pending_embedding_count("e")) == ("e", 0)
        assert sorted(round(each, 1) for each in reader.sample_cosines([1.0, 0.0, 0.0], "e")) == [
            0.0,
            0.8,
            1.0,
        ]
        assert reader.sample_cosines([1.0, 0.0, 0.0], "nobody") == []
        assert reader.cosines([1.0, 0.0, 0.0], "e", [10**6]) == {}


def test_edits_and_removals_reach_the_vectors(store: Store) -> None:
    _abc(store)
    _embed_all(store, "e", 3, **AXES)
    _put(store, lesson("a", number=1, summary="other"), verb="edit")
    assert _nearest(store, [1.0, 0.0, 0.0]) == ["b", "c"]
    with store.writing(ACTOR, WHEN) as writer:
        writer.remove(Lesson, "b", "erase")
    assert _nearest(store, [1.0, 0.0, 0.0]) == ["c"]
    with store.reading() as reader:
        assert [each.text for each in reader.pending_embeddings("e", limit=9)] == ["other"]
    _embed_all(store, "e", 3, a=(0.0, 1.0, 0.0))
    assert _nearest(store, [0.0, 1.0, 0.0]) == ["a", "c"]


def test_a_vector_of_an_earlier_text_is_refused(store: Store) -> None:
    _abc(store)
    with store.reading() as reader:
        waiting = reader.pending_embeddings("e", limit=9)
    _put(store, lesson("a", number=1, summary="other"), verb="edit")
    with store.writing(ACTOR, WHEN) as writer:
        assert (
            writer.put_vectors("e", 3, [(w.place, w.revision, pack_vector((1.0, 0.0, 0.0))) for w in waiting])
            == 2
        )
        assert writer.put_vectors("e", 3, [(10**6, 0, pack_vector((1.0, 0.0, 0.0)))]) == 0
    with store.reading() as reader:
        assert [each.text for each in reader.pending_embeddings("e", limit=9)] == ["other"]


def test_vectors_of_a_block_that_raises_are_not_there(store: Store) -> None:
    _abc(store)
    with pytest.raises(ZeroDivisionError), store.writing(ACTOR, WHEN) as writer:
        waiting = writer.pending_embeddings("e", limit=1)
        writer.put_vectors("e", 3, [(w.place, w.revision, pack_vector((1.0, 0.0, 0.0))) for w in waiting])
        assert len(writer.nearest([1.0, 0.0, 0.0], "e", search_filter=SearchFilter(), limit=9)) == 1
        raise ZeroDivisionError
    assert _nearest(store, [1.0, 0.0, 0.0]) == []
    assert _embed_all(store, "e", 3, **AXES) == 3
    assert _nearest(store, [1.0, 0.0, 0.0]) == ["a", "b", "c"]


def test_an_edit_that_was_undone_by_an_error_leaves_the_vectors_searchable(store: Store) -> None:
    _abc(store)
    _embed_all(store, "e", 3, **AXES)
    with pytest.raises(ZeroDivisionError), store.writing(ACTOR, WHEN) as writer:
        writer.put(lesson("a", number=1, summary="other"), "edit")
        assert len(writer.nearest([1.0, 0.0, 0.0], "e", search_filter=SearchFilter(), limit=9)) == 2
        raise ZeroDivisionError
    assert _nearest(store, [1.0, 0.0, 0.0]) == ["a", "b", "c"]
    _put(store, lesson("c", number=3, summary="other"), verb="edit")
    assert _nearest(store, [1.0, 0.0, 0.0]) == ["a", "b"]


def test_a_second_embedder_is_searched_when_it_is_told_to_be(store: Store) -> None:
    _abc(store)
    _embed_all(store, "old", 3, **AXES)
    with store.reading() as reader:
        assert reader.pending_embedding_count("new") == 3
    _embed_all(store, "new", 2, a=(0.0, 1.0), b=(1.0, 0.0), c=(1.0, 0.0))
    with store.reading() as reader:
        assert (reader.embedder_in_use(), reader.pending_embedding_count("new")) == ("old", 0)
    assert _nearest(store, [0.0, 0.0, 1.0], "old")[0] == "c"
    with store.writing(ACTOR, WHEN) as writer:
        writer.use_embedder("nobody")
        assert writer.embedder_in_use() == "old"
        writer.use_embedder("new")
    with store.reading() as reader:
        assert reader.embedder_in_use() == "new"
    assert _nearest(store, [0.0, 0.0, 1.0], "old") == []
    assert _nearest(store, [0.0, 1.0], "new", limit=1) == ["a"]


@pytest.mark.parametrize("is_read_between", [True, False])
def test_reindexing_forgets_the_vectors_and_new_ones_are_seen(store: Store, is_read_between: bool) -> None:
    events = [Event(run="r", seq=seq, kind=EventKind.TOOL_CALL, tool="bash", text="ls") for seq in range(9)]
    _put_events(store, "r", events)
    _abc(store)
    _embed_all(store, "e", 3, **AXES)
    assert _nearest(store, [1.0, 0.0, 0.0]) == ["a", "b", "c"]
    store.reindex()
    if is_read_between:
        assert _nearest(store, [1.0, 0.0, 0.0]) == []
    _embed_all(store, "e", 3, **AXES)
    assert _nearest(store, [1.0, 0.0, 0.0]) == ["a", "b", "c"]
    with store.reading() as reader:
        assert reader.verify().is_whole
