"""Recall as a program uses it: what is found, in which order, why, and that asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.config import Config, RecallRules
from archivist.errors import BankDamagedError
from archivist.recall.query import Query
from archivist.recall.scoring import Weights
from archivist.records import (
    Category,
    Episode,
    EpisodeStatus,
    Event,
    EventKind,
    Lesson,
    LessonType,
    Scope,
    Status,
)
from archivist.store.vectors import pack_vector
from tests.banks import fresh_bank
from tests.conftest import START, CountingIds, TickingClock
from tests.samples import lesson

LATER = START + timedelta(days=3)
HANG = "pytest never finishes while the container is down"
OTHERS = (
    "Use tabs in the Makefile",
    "The logo is blue",
    "Invoices are rounded half up",
    "Write release notes",
)
WORDS = (
    "cache",
    "queue",
    "worker",
    "proxy",
    "index",
    "token",
    "upload",
    "report",
    "branch",
    "schema",
    "broker",
    "dashboard",
    "importer",
)


@pytest.fixture
def other(tmp_path: Path, clock: TickingClock) -> Iterator[Bank]:
    """Open the bank of another project."""
    opened = fresh_bank(tmp_path / "other", clock=clock, ids=CountingIds())
    yield opened
    opened.close()


@pytest.fixture
def with_rules(tmp_path: Path, clock: TickingClock) -> Iterator[Callable[..., Bank]]:
    """Open banks with recall's settings."""
    banks: list[Bank] = []

    def opened(**rules: Any) -> Bank:
        config = Config(recall=RecallRules(**rules))
        banks.append(fresh_bank(tmp_path / f"b{len(banks)}", config=config, clock=clock, ids=CountingIds()))
        return banks[-1]

    yield opened
    for each in banks:
        each.close()


def _names(bank: Bank, text: str, **asked: Any) -> list[str]:
    return [hit.name for hit in bank.recall(Query(text=text, **asked)).hits]


def _embed(bank: Bank) -> None:
    list(bank.vectors.embed_waiting())


def _fill(bank: Bank, *texts: str) -> None:
    with bank.transaction():
        for text in texts:
            bank.lessons.add(text)


def _talk(
    bank: Bank, run: str, *texts: str, role: str = "user", start: datetime = START, **extra: object
) -> None:
    said = Event(run=run, seq=0, kind=EventKind.MESSAGE, role=role, extra=extra)
    events = [
        replace(said, seq=seq, text=text, time=start + timedelta(minutes=seq))
        for seq, text in enumerate(texts)
    ]
    bank.capture(Episode(id=run, started=start), events)


def _raw(bank: Bank, sql: str) -> list[Any]:
    db = apsw.Connection(str(bank.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


# What may be found


@pytest.mark.req("A4")
@pytest.mark.parametrize("is_embedded", [False, True])
def test_every_filter_lets_through_only_what_it_names(bank: Bank, is_embedded: bool) -> None:
    with bank.transaction():
        bank.lessons.add("Cache alpha", scope="tool", tool="bash", tags=("x", "y"), task="t-1")
        bank.lessons.add(
            "Cache beta", scope="provider", provider="openai", tags=("y",), domain="code", role="guardian"
        )
        bank.lessons.add("Cache gamma", type="anti_pattern", category="infra", repo="app", importance=0.9)
    if is_embedded:
        _embed(bank)

    def found(**asked: Any) -> set[str]:
        return {hit.text.split()[1] for hit in bank.recall(Query(text="cache", **asked)).hits}

    assert found() == {"alpha", "beta", "gamma"}
    assert (
        found(scope=Scope.TOOL) == found(tool="bash") == found(task="t-1") == found(tags=("x",)) == {"alpha"}
    )
    assert found(tool="BASH") == {"alpha"}
    assert found(provider="openai") == found(domain="code") == found(role="guardian") == {"beta"}
    assert found(tags=("x", "nothing")) == {"alpha"}
    assert found(tags=("x", "y")) == {"alpha", "beta"}
    assert (
        found(type=LessonType.ANTI_PATTERN)
        == found(category=Category.INFRA)
        == found(repo="app")
        == {"gamma"}
    )
    assert found(min_importance=0.8) == {"gamma"}
    assert found(tags=("y",), provider="nobody") == set()
    assert found(tool="ba") == found(tool="bash*") == found(tool='" OR "') == set()
    assert len(_names(bank, "cache", limit=2)) == 2
    assert _names(bank, "cache", limit=0) == []


def test_a_filter_that_lets_too_many_through_to_name_them_filters_all_the_same(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bank.transaction():
        for number in range(40):
            bank.lessons.add(
                f"Cache note {number}", domain="code" if number % 4 else "prose", importance=number / 40
            )
    _embed(bank)
    asked: list[dict[str, Any]] = [
        {"domain": "prose"},
        {"domain": "prose", "min_importance": 0.5},
        {"min_importance": 0.9},
        {"domain": "nobody"},
    ]
    before = [_names(bank, "store results for later", **each) for each in asked]
    assert before[0]
    monkeypatch.setattr("archivist.store.sqlite.search._ALLOWED", 0)
    with Bank.open(bank.path, clock=bank.now) as again:
        assert [_names(again, "store results for later", **each) for each in asked] == before


@pytest.mark.req("A4")
def test_another_projects_memory_is_never_found(bank: Bank, other: Bank) -> None:
    other.lessons.add(HANG)
    _embed(other)
    bank.lessons.add("The logo is blue")
    _embed(bank)
    for query in (Query(text=HANG), Query(text="tests hang"), Query(text=HANG, statuses=tuple(Status))):
        assert all("blue" in hit.text for hit in bank.recall(query).hits)


def test_every_kind_of_record_is_found_through_one_call(bank: Bank) -> None:
    bank.lessons.add("Restart the broker after a deploy")
    _talk(bank, "r1", "the broker lost its queue", "we restarted it")
    bank.capture(Episode(id="r2", task="Move the broker", status=EpisodeStatus.FAILED), ())
    hits = bank.recall(Query(text="broker")).hits
    assert {hit.kind for hit in hits} == {"lesson", "episode", "event"}
    assert {hit.name for hit in hits if hit.kind != "lesson"} >= {"r2", "r1#0"}
    for kind in ("lesson", "episode", "event"):
        assert {hit.kind for hit in bank.recall(Query(text="broker", kinds=(kind,))).hits} == {kind}
    both = bank.recall(Query(text="broker", kinds=("lesson", "episode"))).hits
    assert {hit.kind for hit in both} == {"lesson", "episode"}


def test_a_run_and_a_role_choose_among_what_was_said(bank: Bank) -> None:
    _talk(bank, "r1", "the broker is slow", role="maker")
    _talk(bank, "r2", "the broker is quick", role="guardian")
    assert _names(bank, "broker", run="r1") == ["r1#0"]
    assert _names(bank, "broker", role="guardian") == ["r2#0"]


@pytest.mark.parametrize("is_embedded", [False, True])
def test_time_and_cycle_have_ends_that_belong_to_them(bank: Bank, is_embedded: bool) -> None:
    for number in range(4):
        start = START + timedelta(days=number, microseconds=700_000)
        _talk(bank, f"r{number}", f"broker note {number}", start=start, cycle=number)
    if is_embedded:
        _embed(bank)
    day = timedelta(days=1, microseconds=700_000)
    assert set(_names(bank, "broker", since=START + 2 * day)) == {"r3#0"}
    assert set(_names(bank, "broker", since=START + day)) == {"r1#0", "r2#0", "r3#0"}
    assert set(_names(bank, "broker", until=START + day)) == {"r0#0", "r1#0"}
    assert set(_names(bank, "broker", since=START + day, until=START + day)) == {"r1#0"}
    assert set(_names(bank, "broker", since_cycle=1, until_cycle=2)) == {"r1#0", "r2#0"}
    assert _names(bank, "broker", since_cycle=0, until_cycle=0) == ["r0#0"]
    assert _names(bank, "broker", since=datetime(2030, 1, 1, tzinfo=UTC)) == []


@pytest.mark.parametrize("is_embedded", [False, True])
def test_what_is_archived_or_quarantined_is_found_only_when_asked_for(bank: Bank, is_embedded: bool) -> None:
    _fill(bank, "Broker one", "Broker two")
    bank.forget("m-001")
    with bank.transaction() as writer:
        writer.put(lesson("q", number=9, summary="Broker nine", status=Status.QUARANTINED), "gate")
    if is_embedded:
        _embed(bank)
    assert _names(bank, "broker") == ["m-002"]
    assert _names(bank, "broker", kinds=("lesson",)) == ["m-002"]
    assert _names(bank, "broker", statuses=(Status.ARCHIVED,)) == ["m-001"]
    assert _names(bank, "broker", statuses=(Status.QUARANTINED,)) == ["m-009"]
    assert set(_names(bank, "broker", statuses=(Status.ACTIVE, Status.ARCHIVED))) == {"m-001", "m-002"}
    bank.ledger.undo("m-001")
    assert set(_names(bank, "broker")) == {"m-001", "m-002"}


def test_a_large_archive_does_not_hide_what_is_live(bank: Bank) -> None:
    with bank.transaction() as writer:
        for number in range(1, 451):
            said = f"Tests hang forever, case {number}"
            writer.put(lesson(f"a{number}", number=number, summary=said, status=Status.ARCHIVED), "add")
        writer.put(lesson("live", number=900, summary=HANG, status=Status.ACTIVE), "add")
    _embed(bank)
    assert _names(bank, "tests hang forever") == ["m-900"]
    assert _names(bank, "tests hang forever", kinds=("lesson",)) == ["m-900"]


# Weights


def _weighed(bank: Bank, **asked: Any) -> list[Any]:
    found = bank.recall(Query(text="broker restart", **asked))
    for hit in found.hits:
        parts, weights = hit.why, found.weights
        total = (
            weights.importance * parts.importance
            + weights.recency * parts.recency
            + weights.relevance * parts.relevance
        )
        assert abs(hit.score - total / sum(weights)) <= 1e-9
    return [found.weights, *found.hits]


def _two_notes(bank: Bank, clock: TickingClock) -> None:
    """Add a light new note that fits well and a weighty old one that fits less."""
    bank.lessons.add("The broker is mentioned in passing", importance=1.0)
    clock.now += timedelta(days=30)
    bank.lessons.add("Restart the broker", importance=0.0)


@pytest.mark.req("A5", "C3")
def test_the_documented_weights_are_in_every_part(bank: Bank, clock: TickingClock) -> None:
    _two_notes(bank, clock)
    weights, *hits = _weighed(bank, preset="archivist")
    assert weights == Weights(importance=0.4, recency=0.3, relevance=0.3)
    by_name = {hit.name: hit.why for hit in hits}
    assert (by_name["m-001"].importance, by_name["m-002"].importance) == (1.0, 0.0)
    assert by_name["m-001"].recency == pytest.approx(0.5, abs=0.01)
    assert by_name["m-002"].recency == pytest.approx(1.0, abs=0.01)
    assert (by_name["m-001"].relevance, by_name["m-002"].relevance) == (0.0, 1.0)


@pytest.mark.req("C3")
def test_the_users_weights_and_half_life_decide(with_rules: Callable[..., Bank], clock: TickingClock) -> None:
    for rules, first, recency in (
        (
            {"generative_recency": 0.0, "generative_relevance": 0.0, "generative_importance": 2.0},
            "m-001",
            0.5,
        ),
        ({"generative_importance": 0.1, "half_life_days": 10.0}, "m-002", 0.125),
        (
            {"generative_importance": 0.0, "generative_relevance": 0.0, "half_life_days": 60},
            "m-002",
            0.5**0.5,
        ),
    ):
        bank = with_rules(preset="generative", **rules)
        _two_notes(bank, clock)
        weights, *hits = _weighed(bank)
        assert weights.importance == rules["generative_importance"]
        assert hits[0].name == first
        assert {hit.name: hit.why for hit in hits}["m-001"].recency == pytest.approx(recency, abs=0.01)


@pytest.mark.req("C3")
def test_cycles_age_what_was_said_in_cycles(with_rules: Callable[..., Bank]) -> None:
    bank = with_rules(preset="generative", half_life_cycles=2.0)
    for cycle in (4, 6):
        _talk(bank, f"r{cycle}", "the broker wants a restart", cycle=cycle)
    hits = bank.recall(Query(text="broker", kinds=("event",), until_cycle=8)).hits
    assert {hit.name: hit.why.recency for hit in hits} == pytest.approx({"r4#0": 0.25, "r6#0": 0.5})


def test_by_default_relevance_decides_alone(bank: Bank, clock: TickingClock) -> None:
    _two_notes(bank, clock)
    weights, *hits = _weighed(bank)
    assert weights == Weights(0.0, 0.0, 1.0)
    assert [hit.name for hit in hits] == ["m-002", "m-001"]
    assert [hit.score for hit in hits] == [hit.score for hit in _weighed(bank, preset="relevance")[1:]]


def test_a_query_for_lessons_weighs_as_documented(bank: Bank) -> None:
    bank.lessons.add("The broker is mentioned in passing", importance=1.0)
    bank.lessons.add("Restart the broker", importance=0.0)
    assert [each.short_id for each in bank.lessons.query(Query(text="broker restart"))] == ["m-001", "m-002"]


@given(st.text(st.characters(exclude_categories=[])) | st.text("broke restat*'\"()-_\ud800\x00", max_size=40))
@settings(max_examples=40)
def test_any_question_is_answered_the_same_each_time(bank: Bank, text: str) -> None:
    if not bank.lessons.query(Query()):
        _fill(bank, "Restart the broker", *OTHERS)
    for preset in ("relevance", "archivist"):
        one, again = (bank.recall(Query(text=text, preset=preset)) for _ in range(2))
        assert [hit.name for hit in one.hits] == [hit.name for hit in again.hits]


@pytest.mark.parametrize("question", ["", "  \n", "?!…", "💥", "\ud800"])
def test_a_question_that_says_nothing_finds_nothing(bank: Bank, question: str) -> None:
    _fill(bank, *OTHERS)
    assert _names(bank, question) == []
    _embed(bank)
    assert _names(bank, question) == []


@pytest.mark.parametrize("preset", ["relevance", "archivist"])
def test_what_nothing_speaks_for_is_no_answer(bank: Bank, preset: str) -> None:
    _fill(bank, *OTHERS, HANG)
    _embed(bank)
    for question in ("x", "restart the broker", "zebra", "the tests hang"):
        for hit in bank.recall(Query(text=question, preset=preset)).hits:
            why = hit.why.why
            assert why.words > 0 or why.meaning > 0 or why.neighbours > 0


def test_a_question_about_something_that_the_bank_does_not_hold_finds_nothing(bank: Bank) -> None:
    for number in range(130):
        _talk(
            bank,
            f"r{number}",
            f"The {WORDS[number % 13]} of service {number} waits for the {WORDS[number % 11]}",
        )
    _talk(bank, "r130", "Sofia keeps the gallery open on Thursdays until nine")
    _embed(bank)
    assert _names(bank, "Who waters the orchids in the greenhouse over the summer holidays?") == []
    assert _names(bank, "When did Melanie paint the lighthouse near the harbour?") == []
    assert _names(bank, "Who waters the orchids outside every morning?") == []
    assert _names(bank, "Until when is the gallery open on Thursdays?")[0] == "r130#0"
    # The date stands in the record's time, not in its words.
    assert "r130#0" in _names(bank, "Did Sofia keep the gallery open on 16 November, 2023?")
    assert _names(bank, "What did we do today?")
    assert _names(bank, "What did we do yesterday?") == []
    _talk(bank, "r131", "The museum shows old pictures of ships until nine in the evening")
    _embed(bank)
    assert _names(bank, "Which paintings of boats does the gallery exhibit at night?")[:1] == ["r131#0"]
    assert _names(bank, "Which engines of cars does the garage repair at night?") == []


def test_what_repeats_a_better_hit_stands_behind_the_others(bank: Bank) -> None:
    for number in range(12):
        _talk(bank, f"r{number}", "address the review feedback")
    _talk(bank, "said", "The review feedback about the cache was addressed in the second commit")
    found = bank.recall(Query(text="address the review feedback", kinds=("event",)))
    assert [hit.name for hit in found.hits[:2]] == ["r0#0", "said#0"]
    assert len(found.hits) == 10
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)


def test_a_fact_says_which_value_it_replaced(bank: Bank) -> None:
    bank.knowledge.put("decision", "previews", "Previews stay in the cache for 24 hours")
    assert bank.recall("How long do previews stay in the cache?").hits[0].notes == ()
    bank.knowledge.put("decision", "previews", "Previews stay in the cache for two hours")
    hit = bank.recall("How long do previews stay in the cache?").hits[0]
    assert hit.notes == ("current: replaces “Previews stay in the cache for 24 hours”",)


def test_entries_of_one_cycle_are_told_apart_by_their_words(bank: Bank) -> None:
    bank.stream.log("Decided: uploads are retried five times")
    bank.stream.log("Decided: uploads are retried three times from now on, five hammered the gateway")
    current, replaced = bank.recall("How many times are uploads retried?").hits
    assert current.notes == ("current: replaces cycle 1 “Decided: uploads are retried five times”",)
    assert replaced.notes[0].startswith("replaced by cycle 1 “Decided: uploads are retried three times")


# Meaning


@pytest.mark.req("A5")
def test_a_paraphrase_that_shares_no_telling_word_is_found_by_meaning(bank: Bank) -> None:
    _fill(bank, *OTHERS, HANG)
    _embed(bank)
    found = bank.recall(Query(text="the tests hang"))
    assert (found.hits[0].name, found.unembedded, found.embedder != "") == ("m-005", 0, True)
    why = found.hits[0].why.why
    assert (why.words, why.cosine is not None, why.meaning > 0) == (0.0, True, True)
    assert bank.lessons.query(Query(text="the tests hang"))[0].short_id == "m-005"


@pytest.mark.req("A5")
def test_what_was_written_a_moment_ago_is_found_by_meaning(bank: Bank) -> None:
    _fill(bank, *OTHERS)
    _embed(bank)
    bank.lessons.add(HANG)
    found = bank.recall(Query(text="the tests hang"))
    assert found.hits[0].name == "m-005"
    assert found.hits[0].why.why.cosine is not None
    # Nothing was missed, though its vector is not stored yet.
    assert (found.unembedded, bank.vectors.count_unembedded()) == (0, 1)


def test_without_an_embedder_the_interface_is_the_same(with_rules: Callable[..., Bank]) -> None:
    bank = with_rules(embedder="none")
    _fill(bank, *OTHERS, HANG)
    assert list(bank.vectors.embed_waiting()) == []
    assert _names(bank, "the tests hang") == []
    found = bank.recall(Query(text="pytest container", preset="archivist"))
    assert ([hit.name for hit in found.hits], found.embedder, found.unembedded) == (["m-005"], "", 0)
    assert found.hits[0].why.why.cosine is None
    assert bank.vectors.count_unembedded() == 0


def test_a_word_that_nothing_held_is_found_as_soon_as_something_does(with_rules: Callable[..., Bank]) -> None:
    bank = with_rules(embedder="none")
    _fill(bank, *(f"Note number {number} on something" for number in range(120)))
    assert _names(bank, "E0308") == _names(bank, "TS2304") == []
    bank.lessons.add("E0308 means that the types differ")
    assert _names(bank, "E0308") == ["m-121"]
    bank.lessons.edit("m-001", summary="TS2304 means that a name is unknown")
    assert _names(bank, "TS2304") == ["m-001"]
    bank.ledger.undo("m-121")
    assert _names(bank, "E0308") == []


def test_words_still_find_what_has_no_vector_when_there_are_many(bank: Bank) -> None:
    _fill(bank, *(f"Note number {number} on something" for number in range(60)), "Restart the broker")
    assert _names(bank, "broker")[0] == "m-061"
    assert bank.recall(Query(text="broker")).unembedded == 61


def test_vectors_made_by_another_process_are_seen(bank: Bank) -> None:
    _fill(bank, *OTHERS)
    _embed(bank)
    asked = {"kinds": ("lesson",)}
    assert "m-005" not in _names(bank, "the tests hang", **asked)
    with Bank.open(bank.path, clock=bank.now) as second:
        second.lessons.add(HANG)
        _embed(second)
    assert _names(bank, "the tests hang", **asked)[0] == "m-005"
    assert _names(bank, "the tests hang")[0] == "m-005"


@pytest.mark.req("A4")
def test_recall_never_writes(bank: Bank) -> None:
    _fill(bank, *OTHERS, HANG)
    _talk(bank, "r1", "the broker is slow", "yes")
    folder = bank.path.parent

    def state() -> tuple[Any, ...]:
        files = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}
        return files, bank.ledger.verify().entries, bank.doctor.status()

    before = state()
    for preset in ("relevance", "archivist", "generative"):
        bank.recall(Query(text="the tests hang", preset=preset, window=2))
    bank.recall(Query(text="broker", tags=("x",), min_importance=0.1))
    assert state() == before


# Changes


def test_edits_and_removals_reach_the_words_and_the_vectors(bank: Bank) -> None:
    _fill(bank, *OTHERS, HANG)
    _embed(bank)
    bank.lessons.edit("m-005", summary="Colours of the chart", tags=())
    for _ in range(2):
        found = {hit.name: hit.why.why.words for hit in bank.recall(Query(text="pytest container")).hits}
        assert found.get("m-005", 0) == 0
        assert _names(bank, "colour of a diagram", limit=1) == ["m-005"]
        _embed(bank)
    bank.ledger.undo("m-005")
    assert _names(bank, "the tests hang", limit=1) == ["m-005"]
    _embed(bank)
    bank.ledger.undo("m-004")
    assert "m-004" not in _names(bank, "write release notes")
    assert _raw(bank, "SELECT count(*) FROM vector_rows") == [(4,)]


def test_a_text_edited_between_embedding_and_storing_keeps_waiting(bank: Bank) -> None:
    bank.lessons.add(HANG)
    assert bank.embedder is not None
    name, dimensions = bank.embedder.name, bank.embedder.dimensions
    with bank.reading() as reader:
        texts = reader.pending_embeddings(name, limit=9)
    made = [(each.place, each.revision, pack_vector(bank.embedder.embed_query(each.text))) for each in texts]
    bank.lessons.edit("m-001", summary="Colours of the chart")
    with bank.transaction() as writer:
        assert writer.put_vectors(name, dimensions, made) == 0
    assert bank.vectors.count_unembedded() == 1


def test_a_vector_never_goes_to_another_text_that_took_the_place(bank: Bank) -> None:
    _talk(bank, "r1", "the broker is slow")
    bank.lessons.add(HANG)
    assert bank.embedder is not None
    name, dimensions = bank.embedder.name, bank.embedder.dimensions
    with bank.reading() as reader:
        texts = reader.pending_embeddings(name, limit=9)
    made = [(each.place, each.revision, pack_vector(bank.embedder.embed_query(each.text))) for each in texts]
    bank.doctor.reindex()
    with bank.reading() as reader:
        now = {each.place: each.text for each in reader.pending_embeddings(name, limit=9)}
    with bank.transaction() as writer:
        writer.put_vectors(name, dimensions, made)
    with bank.reading() as reader:
        still = {each.place for each in reader.pending_embeddings(name, limit=9)}
    then = {each.place: each.text for each in texts}
    assert {place for place in now if now[place] != then.get(place)} <= still


def test_a_place_taken_by_a_new_text_waits_for_its_own_vector(bank: Bank) -> None:
    bank.lessons.add(HANG)
    assert bank.embedder is not None
    with bank.reading() as reader:
        (text,) = reader.pending_embeddings(bank.embedder.name, limit=9)
    bank.ledger.undo("m-001")
    bank.lessons.add("Colours of the chart")
    row = pack_vector(bank.embedder.embed_query(text.text))
    with bank.transaction() as writer:
        writer.put_vectors(bank.embedder.name, bank.embedder.dimensions, [(text.place, text.revision, row)])
    assert bank.vectors.count_unembedded() == 1


def _answers(bank: Bank) -> list[tuple[str, list[tuple[str, float]]]]:
    return [
        (text, [(hit.name, round(hit.score, 4)) for hit in bank.recall(Query(text=text, **asked)).hits])
        for text in ("the tests hang", "broker slow", "colour of a diagram", "rounding")
        for asked in ({}, {"kinds": ("lesson", "event")}, {"preset": "archivist"})
    ]


def test_after_reindexing_the_answers_are_the_same(bank: Bank) -> None:
    _talk(bank, "r1", "the broker is slow", "restart it then", "it helps")
    _fill(bank, *OTHERS, HANG)
    _embed(bank)
    before = [(text, sorted(hits)) for text, hits in _answers(bank)]
    clock_free = [(text, [name for name, _ in hits]) for text, hits in before]
    bank.doctor.reindex()
    _embed(bank)
    after = [(text, [name for name, _ in sorted(hits)]) for text, hits in _answers(bank)]
    assert after == clock_free
    assert bank.ledger.verify().is_whole


def test_reindexing_in_one_process_is_seen_in_another(bank: Bank) -> None:
    calls = [Event(run="r1", seq=seq, kind=EventKind.TOOL_CALL, tool="bash", text="ls") for seq in range(9)]
    bank.capture(Episode(id="r1"), calls)
    _fill(bank, *OTHERS, HANG)
    _embed(bank)
    assert _names(bank, "the tests hang", kinds=("lesson",))[0] == "m-005"
    with Bank.open(bank.path, clock=bank.now) as second:
        second.doctor.reindex()
        _embed(second)
        assert _names(second, "the tests hang", kinds=("lesson",))[0] == "m-005"
    assert _names(bank, "the tests hang", kinds=("lesson",))[0] == "m-005"


# Order


@pytest.mark.req("A4")
@pytest.mark.parametrize("is_embedded", [False, True])
def test_a_superseded_lesson_stands_below_its_replacement_and_says_so(bank: Bank, is_embedded: bool) -> None:
    _fill(bank, "Installs are done with yarn now, yarn installs everything", "pnpm does installs", *OTHERS)
    bank.lessons.archive("m-001", "m-002")
    if is_embedded:
        _embed(bank)
    for preset in ("relevance", "archivist", "generative"):
        hits = {
            hit.name: (at, hit)
            for at, hit in enumerate(bank.recall(Query(text="yarn installs", preset=preset)).hits)
        }
        assert hits["m-002"][0] < hits["m-001"][0]
        assert hits["m-001"][1].notes == ("superseded by m-002",)
        assert hits["m-002"][1].notes == ("current: replaces m-001",)


def test_a_chain_of_replacements_has_the_newest_on_top(bank: Bank) -> None:
    _fill(bank, "Installs: yarn yarn yarn", "Installs: npm", "Installs: pnpm", "Installs: bun", *OTHERS)
    for old, new in (("m-001", "m-002"), ("m-002", "m-003"), ("m-003", "m-004")):
        bank.lessons.archive(old, new)
    assert _names(bank, "installs yarn", limit=4) == ["m-004", "m-003", "m-002", "m-001"]


def test_a_replacement_that_is_gone_is_still_named(bank: Bank) -> None:
    _fill(bank, "Installs are done with yarn", "pnpm everywhere")
    bank.lessons.archive("m-001", "m-002")
    bank.forget("m-002")
    (hit,) = [hit for hit in bank.recall(Query(text="yarn installs")).hits if hit.name == "m-001"]
    assert hit.notes == ("superseded by m-002",)


def test_a_later_message_that_amends_an_earlier_one_stands_above_it(bank: Bank) -> None:
    _talk(
        bank,
        "r1",
        "the deploy target is Heroku and we deploy to it daily",
        "lunch was good",
        "the logo is blue",
    )
    _talk(bank, "r2", "the deploy target is Fly from now on", start=START + timedelta(days=3))
    hits = bank.recall(Query(text="which deploy target do we use for a daily deploy")).hits
    assert [hit.name for hit in hits[:2]] == ["r2#0", "r1#0"]
    assert hits[0].notes == ("current: replaces r1#0",)
    assert hits[1].notes == ("replaced by r2#0: it says “from now on”",)


def test_a_later_message_on_something_else_does_not(bank: Bank) -> None:
    _talk(bank, "r1", "the deploy target is Heroku")
    _talk(bank, "r2", "the logo was changed to green", start=START + timedelta(days=3))
    assert _names(bank, "which deploy target")[0] == "r1#0"


def test_lessons_of_different_repositories_do_not_amend_each_other(bank: Bank, clock: TickingClock) -> None:
    bank.lessons.add("The deploy target of a daily deploy is Heroku", repo="shop")
    clock.now += timedelta(days=1)
    bank.lessons.add("The deploy target is Fly instead", repo="blog")
    hits = bank.recall(Query(text="deploy target of a daily deploy")).hits
    assert ([hit.name for hit in hits], hits[0].notes) == (["m-001", "m-002"], ())


def test_a_message_beside_the_words_sought_is_found_too_and_a_window_shows_its_stream(bank: Bank) -> None:
    words = ["good morning", "how is the broker doing", "port 5672 was blocked", "thanks", "lunch"]
    _talk(bank, "r1", *words)
    _talk(bank, "r2", *(f"other talk {number}" for number in range(5)))
    hits = bank.recall(Query(text="broker", window=1)).hits
    assert hits[0].name == "r1#1"
    assert hits[0].window == (
        "  user: good morning",
        "> user: how is the broker doing",
        "  user: port 5672 was blocked",
    )
    names = [hit.name for hit in hits]
    assert "r1#2" in names[:3]
    assert names.index("r1#2") < min(
        (names.index(name) for name in names if name.startswith("r2")), default=99
    )
    assert bank.recall(Query(text="broker")).hits[0].window == ()


def test_who_is_named_is_heard_and_a_lesson_about_them_is_found(bank: Bank) -> None:
    bank.lessons.add("The maker wants small commits")
    bank.lessons.add("The guardian wants signed commits")
    _talk(bank, "r1", "commits again", role="maker")
    _talk(bank, "r2", "commits again", role="guardian")
    events = _names(bank, "what did the guardian say about commits", kinds=("event",))
    assert events[0] == "r2#0"
    assert _names(bank, "what commits does the guardian want", kinds=("lesson",))[0] == "m-002"


def test_a_long_text_is_shown_short_and_a_rule_with_its_summary(bank: Bank) -> None:
    bank.lessons.add("Brokers block", rule="IF port 5672 is blocked THEN open it")
    _talk(bank, "r1", "broker " + "x " * 2000)
    hits = {hit.kind: hit for hit in bank.recall(Query(text="broker")).hits}
    assert hits["lesson"].text == "Brokers block: IF port 5672 is blocked THEN open it"
    assert len(hits["event"].text) <= 400
    assert hits["event"].time == START


def test_a_later_message_that_need_not_replace_an_earlier_one_is_linked(bank: Bank) -> None:
    _talk(bank, "r1", "incidents are discussed in the channel for fires")
    _talk(bank, "r2", "incidents are now discussed with all of the people on duty by phone", start=LATER)
    hits = bank.recall(Query(text="where are incidents discussed")).hits
    assert [(hit.name, hit.notes) for hit in hits] == [("r2#0", ()), ("r1#0", ("see the later r2#0",))]


def test_hits_of_several_runs_name_their_repositories(bank: Bank) -> None:
    for run, repo in (("r1", "shop"), ("r2", "blog"), ("r3", "")):
        said = Event(run=run, seq=0, kind=EventKind.MESSAGE, role="user", text=f"restart the broker of {run}")
        bank.capture(Episode(id=run, project=repo, started=START), [said])
    hits = bank.recall(Query(text="restart the broker")).hits
    assert {hit.name: hit.repo for hit in hits} == {"r1#0": "shop", "r2#0": "blog", "r3#0": ""}


def test_a_wish_that_is_said_after_a_search_is_found_by_the_next(bank: Bank) -> None:
    question = Query(text="write a function that parses the report", limit=3)
    _talk(bank, "r1", *(f"the report number {n} is parsed by a function" for n in range(6)))
    _embed(bank)
    assert not any("prefer" in hit.text for hit in bank.recall(question).hits)
    _talk(bank, "r2", "I prefer functions that write no report")
    _embed(bank)
    assert any("prefer" in hit.text for hit in bank.recall(question).hits)


@pytest.mark.parametrize("unit", ["a", "has ", "-", "broker ", "x.y.", "é"])
def test_a_question_of_a_hundred_thousand_characters_is_answered(bank: Bank, unit: str) -> None:
    _fill(bank, "Restart the broker", *OTHERS)
    bank.recall(Query(text=unit * (100_000 // len(unit))))


def test_a_changed_record_of_the_same_id_is_one_document(bank: Bank) -> None:
    made = bank.lessons.add("Restart the broker")
    with bank.transaction() as writer:
        writer.put(replace(made, summary="Restart the broker twice"), "edit")
        assert isinstance(writer.get(Lesson, made.id), Lesson)
    assert _names(bank, "broker") == ["m-001"]


def test_a_damaged_index_is_built_anew_from_the_records(bank: Bank) -> None:
    _fill(bank, "Restart the broker", *OTHERS)
    _embed(bank)
    db = apsw.Connection(str(bank.path))
    db.execute(
        "DELETE FROM search_data WHERE id > 10; DELETE FROM documents WHERE id % 2; DELETE FROM vector_rows"
    )
    db.close()
    with pytest.raises(BankDamagedError, match="is damaged") as caught:
        bank.recall(Query(text="broker"))
    assert "doctor --reindex" in caught.value.hint
    bank.doctor.reindex()
    _embed(bank)
    assert bank.recall(Query(text="broker")).hits[0].text == "Restart the broker"
