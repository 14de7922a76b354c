"""Both engines rank the same, and a large bank's vectors are found by their index as well as one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest

from archivist.records import Actor, ActorKind, Event, EventKind
from archivist.store.postgres import maintenance, search
from archivist.store.postgres.store import PostgresStore
from archivist.store.protocol import Store
from archivist.store.results import SearchFilter, TextQuery, scope_token
from archivist.store.vectors import pack_vectors
from tests.engines import ENGINES
from tests.postgres import new_database, shared_server
from tests.samples import WHEN

ACTOR = Actor(ActorKind.HUMAN, "ada")
_WORDS = [
    "build", "cache", "cold", "linter", "tests", "hang", "container", "makefile", "tabs", "spaces",
    "null", "check", "migration", "rollback", "index", "query", "timeout", "retry", "token",
    "secret", "deploy", "branch", "merge", "conflict", "running", "failed", "assertion", "import",
    "module", "naïve", "café", "Straße", "getUserName", "parse_file", "release", "notes", "version",
    "pinned", "dependency", "wheel", "socket", "closed",
]  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    """Open a bank of each engine with the same 2,000 texts."""
    rng = random.Random(7)  # noqa: S311
    events = [
        Event(
            run=f"r{number % 10}",
            seq=number,
            kind=EventKind.MESSAGE,
            time=WHEN,
            role=rng.choice(("maker", "guardian", "user")),
            # Some words are in most texts and some in few, as in any log.
            text=" ".join(_WORDS[int(len(_WORDS) * rng.random() ** 2)] for _ in range(rng.randint(3, 60))),
        )
        for number in range(2_000)
    ]
    stores = {name: make(tmp_path_factory.mktemp(name)) for name, make in ENGINES.items()}
    for store in stores.values():
        with store.writing(ACTOR, WHEN) as writer:
            for run in range(10):
                writer.put_events(f"r{run}", [each for each in events if each.run == f"r{run}"], "capture")
    yield stores
    for store in stores.values():
        store.close()


def _questions() -> Iterator[tuple[TextQuery, SearchFilter]]:
    rng = random.Random(11)  # noqa: S311
    roles = [scope_token("role", role) for role in ("maker", "guardian", "user")]
    for number in range(300):
        words = tuple(rng.sample(_WORDS, rng.randint(1, 5)))
        phrase = ((rng.choice(_WORDS), rng.choice(_WORDS)),) if number % 3 == 0 else ()
        prefix = (rng.choice(_WORDS)[:3],) if number % 5 == 0 else ()
        groups = ((rng.choice(roles),),) if number % 4 == 0 else ()
        excluded = (rng.choice(roles),) if number % 7 == 0 else ()
        yield TextQuery(words, phrase, prefix), SearchFilter(groups, excluded=excluded)


def test_both_engines_give_the_same_ten_best_to_three_hundred_questions(filled: dict[str, Store]) -> None:
    for query, within in _questions():
        answers = []
        for store in filled.values():
            with store.reading() as reader:
                hits = reader.search(query, search_filter=within, limit=10)
                known = reader.indexed_documents([hit.place for hit in hits])
                answers.append([(known[hit.place].record, round(hit.score, 4)) for hit in hits])
        assert answers[0] == answers[1], query


def test_both_engines_count_words_and_lengths_alike(filled: dict[str, Store]) -> None:
    for word in (*_WORDS, "cafe", "strasse", "run", "nobody", "user"):
        counts: set[int] = set()
        for store in filled.values():
            with store.reading() as reader:
                counts.add(*reader.count_documents_with([word], at_most=5_000))
        assert len(counts) == 1, word
    lengths = []
    for store in filled.values():
        with store.reading() as reader:
            found = reader.indexed_documents(range(1, 200))
            lengths.append({each.record: each.length for each in found.values()})
    assert lengths[0] == lengths[1]


_DIMENSIONS, _ROWS = 32, 6_000


@pytest.mark.req("C12")
def test_the_index_of_vectors_finds_what_comparing_all_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is 0.97 of the ten nearest, for every filter, in a bank that shares its partition."""
    monkeypatch.setattr(search, "EXACT", 500)
    monkeypatch.setattr(maintenance, "EXACT", 500)
    url = new_database(shared_server())
    store = PostgresStore.open(f"{url}#large", create=True)
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(40, _DIMENSIONS))
    vectors = centres[rng.integers(0, 40, _ROWS)] + 0.5 * rng.normal(size=(_ROWS, _DIMENSIONS))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    roles = ["often"] * 90 + ["rarely"] * 9 + ["seldom"]
    with store.writing(ACTOR, WHEN) as writer:
        events = [
            Event(run="r", seq=n, kind=EventKind.MESSAGE, text=f"t{n}", role=roles[n % 100])
            for n in range(_ROWS)
        ]
        writer.put_events("r", events, "capture")
        pending = writer.pending_embeddings("e", limit=_ROWS)
        packed = pack_vectors(vectors)
        rows = [(each.place, each.revision, packed[each.place - 1]) for each in pending]
        assert writer.put_vectors("e", _DIMENSIONS, rows) == _ROWS
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    assert len(maintenance.set_up_server(url)[1]) == 1
    for role in ("", "often", "rarely", "seldom"):
        within = SearchFilter(((scope_token("role", role),),) if role else ())
        allowed = np.array([not role or roles[n % 100] == role for n in range(_ROWS)])
        hits, wanted = 0, 0
        with store.reading() as reader:
            for query in vectors[:: _ROWS // 40] + 0.1 * rng.normal(size=(40, _DIMENSIONS)):
                cosines = np.where(allowed, vectors @ query, -9)
                best = set((np.argsort(-cosines)[:10] + 1).tolist())
                found = reader.nearest([float(x) for x in query], "e", search_filter=within, limit=10)
                assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
                hits, wanted = hits + len(best & {hit.place for hit in found}), wanted + 10
        assert hits / wanted >= 0.97, (role, hits / wanted)
    store.close()
    with psycopg.connect(url, autocommit=True) as connection:
        used = "SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname LIKE '%hnsw%'"
        # The rarest role has few enough to compare one by one.
        assert connection.execute(used).fetchone() == (3 * 40,)


def test_only_partitions_with_a_large_bank_are_indexed_and_a_killed_build_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(maintenance, "EXACT", 500)
    url = new_database(shared_server())
    PostgresStore.open(f"{url}#any", create=True).close()
    fill = "INSERT INTO archivist.vectors SELECT {}, 1, n, 3, '[1,0,0]' FROM generate_series(1, {}) n"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(fill.format("'small-' || n % 99", 30_000))
        assert maintenance.set_up_server(url)[1] == []
        # At once after the import: the server has no statistics of it yet.
        connection.execute(fill.format("'large'", 600))
        (index,) = maintenance.set_up_server(url)[1]
        assert maintenance.set_up_server(url)[1] == []
        connection.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", (f"archivist.{index}",)
        )
        assert maintenance.set_up_server(url)[1] == [index]
        assert maintenance.describe_server(url).indexes == (index,)
