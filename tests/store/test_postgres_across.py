"""Search across many banks of one database: one statement says which of them are asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from archivist import Bank
from archivist.recall.query import Query
from archivist.store.postgres.store import PostgresStore
from tests.postgres import new_database, shared_server

TOPICS = ("linter", "cache", "parser", "queue", "router", "scheduler")


@pytest.fixture(scope="module")
def url() -> str:
    url = new_database(shared_server())
    for number in range(24):
        with Bank.open(f"{url}#bank-{number:02d}", create=True) as bank:
            bank.lessons.add(f"Pin the {TOPICS[number % 6]} of service {number} before a release")
            if number == 17:
                bank.lessons.add("Rotate the signing keys with the vault's own tool")
            for _ in bank.vectors.embed_waiting():
                pass
    return url


@pytest.fixture
def banks(url: str) -> Iterator[dict[str, Bank]]:
    with ExitStack() as opened:
        names = [f"bank-{number:02d}" for number in range(24)]
        yield {name: opened.enter_context(Bank.open(f"{url}#{name}")) for name in names}


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the bank of every view that is opened."""
    opened: list[str] = []
    reading = PostgresStore.reading

    def note(store: PostgresStore) -> Any:
        opened.append(store.bank)
        return reading(store)

    monkeypatch.setattr(PostgresStore, "reading", note)
    return opened


@pytest.mark.req("C12")
@pytest.mark.parametrize(
    "question", ["rotate the signing keys", "how do we change certificates and secrets?"]
)
def test_of_many_banks_those_with_the_best_matches_are_asked(
    banks: dict[str, Bank], sessions: list[str], question: str
) -> None:
    first = next(iter(banks.values()))
    found = first.recall_across(banks, question).hits
    assert found[0].bank == "bank-17"
    assert len(set(sessions)) <= 21


def test_few_banks_are_all_asked(banks: dict[str, Bank], sessions: list[str]) -> None:
    few = dict(list(banks.items())[:5])
    few["bank-00"].recall_across(few, "pin the linter")
    assert {*few} <= set(sessions)


def test_a_question_about_one_kind_asks_every_bank(banks: dict[str, Bank], sessions: list[str]) -> None:
    asked = Query(text="rotate the signing keys", kinds=("lesson",))
    assert banks["bank-00"].recall_across(banks, asked).hits[0].bank == "bank-17"
    assert {*banks} <= set(sessions)


def test_a_bank_of_a_file_among_them_is_asked_too(banks: dict[str, Bank], tmp_path: Path) -> None:
    with Bank.open(tmp_path, create=True) as local:
        local.lessons.add("Rotate the signing keys on this laptop")
        found = banks["bank-00"].recall_across({**banks, "laptop": local}, "rotate the signing keys").hits
        assert {hit.bank for hit in found[:2]} == {"bank-17", "laptop"}


@pytest.mark.req("M8")
def test_the_wall_lets_only_named_banks_be_searched_together(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE ROLE visitor_across")
        connection.execute("GRANT USAGE ON SCHEMA archivist TO visitor_across")
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA archivist TO visitor_across")
        connection.execute("SET LOCAL ROLE visitor_across")
        connection.execute("SET LOCAL search_path = archivist, public")
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)
        connection.execute("SET LOCAL archivist.banks = 'bank-01\x1fbank-17'")
        seen = connection.execute("SELECT DISTINCT bank FROM documents ORDER BY 1").fetchall()
        assert seen == [("bank-01",), ("bank-17",)]
        assert connection.execute("SELECT DISTINCT bank FROM vectors ORDER BY 1").fetchall() == seen
        assert connection.execute("SELECT count(*) FROM lessons").fetchone() == (0,)
        changed = connection.execute("UPDATE documents SET importance = 1")
        assert changed.rowcount == 0
        connection.rollback()
