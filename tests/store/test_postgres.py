"""What only the PostgreSQL engine must do: walls between banks, restarts, a server without vectors."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import (
    BankLockedError,
    BankTooNewError,
    BankUnreachableError,
    InputError,
    NoBankError,
)
from archivist.records import Actor, ActorKind, Event, EventKind, Lesson
from archivist.store.filters import above, equals
from archivist.store.postgres.connection import describe_url, number_marks, split_url
from archivist.store.postgres.store import PostgresStore
from archivist.store.results import SearchFilter, TextQuery
from tests.postgres import Server, new_bank, new_database, shared_database, shared_server
from tests.samples import WHEN, lesson

ACTOR = Actor(ActorKind.HUMAN, "ada")


def _put(store: PostgresStore, *made: Lesson) -> None:
    with store.writing(ACTOR, WHEN) as writer:
        for each in made:
            writer.put(each, "add")


def test_a_statement_that_names_no_bank_is_refused() -> None:
    with pytest.raises(AssertionError, match="names no bank"):
        number_marks("SELECT * FROM lessons")
    sql = "SELECT a FROM t WHERE bank = :bank AND b = ? AND c = ? OR bank = :bank"
    assert number_marks(sql) == "SELECT a FROM t WHERE bank = $1 AND b = $2 AND c = $3 OR bank = $1"


@pytest.mark.req("M8")
def test_two_banks_of_one_database_know_nothing_of_each_other() -> None:
    first, second = (PostgresStore.open(new_bank(), create=True) for _ in range(2))
    _put(first, lesson("same", summary="Rotate the keys"))
    with second.reading() as reader:
        assert reader.get(Lesson, "same") is None
        assert reader.search(TextQuery(("keys",)), search_filter=SearchFilter(), limit=9) == []
        assert (reader.last_entry(), reader.document_count()) == (0, 0)
    _put(second, lesson("same", summary="Something else"))
    with first.reading() as reader:
        found = reader.get(Lesson, "same")
        assert found is not None
        assert found.summary == "Rotate the keys"
        assert reader.verify().is_whole
    first.close()
    second.close()


@pytest.mark.req("M8")
def test_row_level_security_is_a_second_wall() -> None:
    urls = [new_bank() for _ in range(2)]
    for url in urls:
        store = PostgresStore.open(url, create=True)
        _put(store, lesson("a"))
        store.close()
    role = f"reader_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(shared_database(), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role}")
        owner.execute(f"GRANT USAGE ON SCHEMA archivist TO {role}")
        owner.execute(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA archivist TO {role}")
        owner.execute(f"SET ROLE {role}")
        count = "SELECT count(*) FROM archivist.{}"
        for table in ("lessons", "ledger", "documents", "banks"):
            # Whoever names no bank sees none, whatever the statement says.
            owner.execute("SET archivist.bank = ''")
            assert owner.execute(count.format(table)).fetchone() == (0,)
            owner.execute("SELECT set_config('archivist.bank', %s, false)", (split_url(urls[0])[1],))
            assert owner.execute(count.format(table)).fetchone() == (1,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            owner.execute("INSERT INTO archivist.banks (bank) VALUES ('another')")
        owner.execute("RESET ROLE")
        with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
            owner.execute("DELETE FROM archivist.ledger")
        owner.execute(f"DROP OWNED BY {role}")
        owner.execute(f"DROP ROLE {role}")


@pytest.fixture(scope="module")
def texts_store() -> Iterator[PostgresStore]:
    store = PostgresStore.open(new_bank(), create=True)
    yield store
    store.close()


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=4, unique=True))
def test_any_text_comes_back_and_sorts_by_its_bytes(texts_store: PostgresStore, texts: list[str]) -> None:
    made = [lesson(f"{number}", number=number, domain=text) for number, text in enumerate(texts, 1)]
    _put(texts_store, *made)
    with texts_store.reading() as reader:
        ids = [each.id for each in made]
        rows = reader.select_fields("lesson", ("id", "domain"), order=("domain",))
        found = [domain for name, domain in rows if name in ids]
        assert found == sorted(texts, key=str.encode)
        assert [each.domain for each in made] == [reader.get(Lesson, name).domain for name in ids]  # type: ignore[union-attr]
        least = min(texts, key=str.encode)
        assert reader.count("lesson", above("domain", least)) >= len(texts) - 1
        assert reader.count("lesson", equals("domain", texts[0])) >= 1


def test_a_bank_that_another_process_writes_is_waited_for_and_no_longer() -> None:
    url = new_bank()
    first, second = PostgresStore.open(url, create=True), PostgresStore.open(url)
    with first.writing(ACTOR, WHEN) as writer:
        writer.put(lesson("a"), "add")
        with (
            pytest.raises(BankLockedError, match=r"0\.1 s"),
            second.writing(ACTOR, WHEN, lock_timeout_s=0.1),
        ):
            raise AssertionError("two writers at once")
        # Readers do not wait, and see what is committed.
        with second.reading() as reader:
            assert reader.get(Lesson, "a") is None
    version = second.version()
    _put(first, lesson("b", number=2))
    assert second.version() != version
    first.close()
    second.close()


def test_a_bank_is_made_only_when_it_is_asked_for() -> None:
    url = new_bank()
    with pytest.raises(NoBankError):
        PostgresStore.open(url)
    PostgresStore.open(url, create=True).close()
    PostgresStore.open(url).close()
    with pytest.raises(InputError, match="names no bank"):
        PostgresStore.open(shared_database(), create=True)


@pytest.mark.parametrize(
    ("url", "bank"),
    [
        ("postgresql://h/d#one", "one"),
        ("postgresql://h/d?bank=a%2Fb&sslmode=require", "a/b"),
        ("postgresql://h/d#a%20b", "a b"),
        ("postgresql://h/d", ""),
    ],
)
def test_a_url_names_the_bank(url: str, bank: str) -> None:
    assert split_url(url)[1] == bank
    assert "bank=" not in split_url(url)[0]


def test_no_message_shows_a_password() -> None:
    word = uuid.uuid4().hex
    url = f"postgresql://ada:{word}@127.0.0.1:1/nowhere#x"
    assert describe_url(url) == "postgresql://127.0.0.1:1/nowhere"
    with pytest.raises(BankUnreachableError) as refused:
        PostgresStore.open(url)
    assert word not in f"{refused.value} {refused.value.hint}"


def test_a_server_that_is_down_is_said_at_once() -> None:
    begin = time.monotonic()
    with pytest.raises(BankUnreachableError, match="cannot be used"):
        PostgresStore.open("postgresql://postgres@127.0.0.1:1/x#y")
    assert time.monotonic() - begin < 5


def test_a_server_that_is_starting_is_waited_for(tmp_path: Path) -> None:
    said = [("57P03", "the database system is starting up")] * 3 + [("28000", 'role "x" does not exist')]

    def refuse(listener: socket.socket) -> None:
        while said:
            client, _ = listener.accept()
            with client:
                client.recv(8192)
                code, text = said.pop(0)
                body = f"SFATAL\0VFATAL\0C{code}\0M{text}\0\0".encode()
                client.sendall(b"E" + struct.pack("!I", 4 + len(body)) + body)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / ".s.PGSQL.5432"))
        listener.listen()
        Thread(target=refuse, args=(listener,), daemon=True).start()
        url = f"postgresql://x@/x?host={quote(str(tmp_path))}#x"
        # As long as for a bank that another process writes, which a hook gives a second.
        with pytest.raises(BankUnreachableError, match="starting up"):
            PostgresStore.open(url, busy_timeout_s=0)
        with pytest.raises(BankUnreachableError, match="does not exist"):
            PostgresStore.open(url, busy_timeout_s=20)
    assert not said


def test_a_database_of_a_later_version_is_refused() -> None:
    url = new_database(shared_server())
    PostgresStore.open(f"{url}#x", create=True).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO archivist.migrations VALUES ('lessons.of_tomorrow')")
    with pytest.raises(BankTooNewError, match="of_tomorrow"):
        PostgresStore.open(f"{url}#x")


def test_what_was_indexed_before_words_had_the_mark_of_their_bank_is_found_afterwards() -> None:
    url = new_database(shared_server())
    text = "Rotate the keys; the keys' \\\\ path is C:\\\\keys"
    for name in ("x", "o'ther\\\\bank"):
        with Bank.open(f"{url}#{quote(name)}", create=True) as bank:
            bank.lessons.add(text, tags=("it's",))
    with psycopg.connect(url, autocommit=True) as connection:
        before = connection.execute(
            "SELECT bank, id, words FROM archivist.documents ORDER BY 1, 2"
        ).fetchall()
        connection.execute(
            "UPDATE archivist.documents SET words = (SELECT string_agg(quote_literal("
            "regexp_replace(lexeme, '^([#@]?)' || left(md5(bank), 6), '\\1'))"
            " || coalesce(':' || array_to_string(positions, ','), ''), ' ') FROM unnest(words))::tsvector"
        )
        connection.execute("DELETE FROM archivist.migrations WHERE name = 'mark words with their bank'")
    with Bank.open(f"{url}#x") as bank:
        assert [hit.kind for hit in bank.recall("rotate keys").hits] == ["lesson"]
    with psycopg.connect(url, autocommit=True) as connection:
        after = connection.execute("SELECT bank, id, words FROM archivist.documents ORDER BY 1, 2").fetchall()
    assert after == before


@pytest.fixture
def bare_url() -> str:
    """Return a database whose owner may not add the extension for vectors."""
    url = new_database(shared_server(), with_vectors=False)
    role = f"owner_{uuid.uuid4().hex[:8]}"
    name = url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"ALTER DATABASE {name} OWNER TO {role}")
    return url.replace("postgres@", f"{role}@")


def test_without_vectors_words_are_found_and_the_remedy_is_said(bare_url: str) -> None:
    with Bank.open(f"{bare_url}#x", actor=ACTOR) as bank:
        bank.lessons.add("Use tabs in the Makefile")
        list(bank.vectors.embed_waiting())
        found = bank.recall("how is the makefile indented")
        assert [hit.name for hit in found.hits] == ["m-001"]
        is_well, text = bank.store.check_engine()
        assert not is_well
        assert "CREATE EXTENSION vector" in text
    # The administrator adds it, and the next set-up takes it up.
    from archivist.store.postgres.maintenance import set_up_server

    name = bare_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(shared_server().replace("/postgres?", f"/{name}?"), autocommit=True) as admin:
        admin.execute("CREATE EXTENSION vector")
    set_up_server(bare_url)
    with Bank.open(f"{bare_url}#x", actor=ACTOR) as bank:
        assert len(list(bank.vectors.embed_waiting())) == 1
        assert bank.store.check_engine()[0]


def test_an_error_of_a_statement_that_was_not_waited_for_is_said_and_nothing_is_written() -> None:
    store = PostgresStore.open(new_bank(), create=True)

    def write_twice() -> None:
        with store.writing(ACTOR, WHEN) as writer:
            writer.put(lesson("a", number=1), "add")
            writer.put(lesson("b", number=1), "add")
            writer.set_setting("after", "it")

    with pytest.raises(psycopg.errors.UniqueViolation):
        write_twice()
    with store.reading() as reader:
        assert (reader.count("lesson"), reader.last_entry(), reader.setting("after")) == (0, 0, "")
    # The connection is as good as before.
    with store.writing(ACTOR, WHEN) as writer:
        writer.put(lesson("a", number=1), "add")
    with store.reading() as reader:
        assert reader.verify().is_whole
        assert reader.document_count() == 1
    store.close()


@pytest.mark.parametrize("count", [1, 3, 17, 300, 1_111])
def test_many_rows_are_written_as_one_by_one(count: int) -> None:
    """Of one INSERT are at most 256 rows, in a few sizes: none is lost or doubled at the seams."""
    store = PostgresStore.open(new_bank(), create=True)
    events = [
        Event(
            run="r", seq=seq, kind=EventKind.MESSAGE, text=f"word{seq} \x00 \x01",
            exit_code=seq if seq % 3 else None, duration_s=seq / 7 if seq % 2 else None,
        )
        for seq in range(1, count + 1)
    ]  # fmt: skip
    with store.writing(ACTOR, WHEN) as writer:
        assert writer.put_events("r", events, "capture") == count
    with store.reading() as reader:
        assert reader.select(Event, order=("seq",)) == events
        assert reader.document_count() == count
        found = reader.search(TextQuery((f"word{count}",)), search_filter=SearchFilter(), limit=9)
        assert len(found) == 1
    with store.writing(ACTOR, WHEN) as writer:
        assert writer.put_events("r", events, "capture") == 0
    assert store.find_damage() == []
    store.close()


# A server that restarts

_WRITER = """
import sys
from datetime import UTC, datetime
from archivist.errors import BankUnreachableError
from archivist.records import Actor, ActorKind
from archivist.store.postgres.store import PostgresStore
from tests.samples import lesson
store = PostgresStore.open(sys.argv[1])
for number in range(int(sys.argv[3])):
    name = f"{sys.argv[2]}-{number}"
    while True:
        try:
            with store.writing(Actor(ActorKind.AGENT, sys.argv[2]), datetime.now(UTC)) as writer:
                writer.put(lesson(name, number=writer.next_number()), "add")
            break
        except BankUnreachableError as error:
            # Another client was quicker after the restart.
            assert "nothing was written" in str(error), error
    print(name, flush=True)
"""


@pytest.mark.req("C12")
def test_a_restart_while_eight_clients_write_loses_nothing() -> None:
    server, each = Server(is_durable=True), 60
    try:
        url = f"{new_database(server.url)}#busy"
        PostgresStore.open(url, create=True).close()
        clients = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, url, f"c{number}", str(each)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(8)
        ]
        # In the middle of the work: when all have written, and one of them some. A server that a client never
        # reached is not waited for.
        for client in clients:
            assert client.stdout is not None
            client.stdout.readline()
        for mode, client in (("fast", clients[0]), ("immediate", clients[1])):
            assert client.stdout is not None
            for _ in range(10):
                client.stdout.readline()
            server.stop(mode)
            server.start()
        said = [client.communicate(timeout=120) for client in clients]
        told = {name for out, _ in said for name in out.split()}
        assert [client.returncode for client in clients] == [0] * 8, [error[-800:] for _, error in said]
        store = PostgresStore.open(url)
        with store.reading() as reader:
            kept = {name for (name,) in reader.select_fields("lesson", ("id",))}
            assert kept == {f"c{number}-{step}" for number in range(8) for step in range(each)}
            assert told <= kept
            assert reader.last_entry() == 8 * each
            assert reader.verify().is_whole
        store.close()
    finally:
        server.delete()


def _cut(store: PostgresStore) -> None:
    """Cut every connection to a store's database, as a restart of the server does."""
    url = store._pool.url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def lonely_store() -> Iterator[PostgresStore]:
    """Open a bank in a database of its own, whose connections can be cut."""
    store = PostgresStore.open(f"{new_database(shared_server())}#x", create=True)
    yield store
    store.close()


def test_a_transaction_whose_connection_is_cut_is_written_all_the_same(lonely_store: PostgresStore) -> None:
    with lonely_store.writing(ACTOR, WHEN) as writer:
        writer.put(lesson("a", number=1), "add")
        _cut(lonely_store)
        writer.put(lesson("b", number=2), "add")
        _cut(lonely_store)
    with lonely_store.reading() as reader:
        first = reader.count("lesson")
        _cut(lonely_store)
        assert (first, reader.count("lesson")) == (2, 2)
        assert reader.verify().is_whole
        assert reader.last_entry() == 2


def test_a_transaction_is_not_repeated_over_the_change_of_somebody_else(lonely_store: PostgresStore) -> None:
    other = PostgresStore.open(f"{lonely_store._pool.url}#x")
    refused = pytest.raises(BankUnreachableError, match="nothing was written")
    with refused, lonely_store.writing(ACTOR, WHEN) as writer:
        writer.put(lesson("a", number=1), "add")
        _cut(lonely_store)
        _put(other, lesson("b", number=2))
        writer.put(lesson("c", number=3), "add")
    with other.reading() as reader:
        assert [name for (name,) in reader.select_fields("lesson", ("id",))] == ["b"]
    other.close()


def test_a_commit_that_reached_the_server_is_not_done_twice(
    lonely_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is cut after the server has committed and before it could say so."""
    commit: Any = psycopg.Connection.execute

    def cut_after_commit(self: psycopg.Connection, query: str, *more: object, **named: object) -> object:
        done = commit(self, query, *more, **named)
        if query == "COMMIT":
            monkeypatch.undo()
            self.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return done

    with lonely_store.writing(ACTOR, WHEN) as writer:
        writer.put(lesson("a", number=1), "add")
        monkeypatch.setattr(psycopg.Connection, "execute", cut_after_commit)
    with lonely_store.reading() as reader:
        assert (reader.count("lesson"), reader.last_entry()) == (1, 1)


def test_leases_go_to_one_holder_each_across_processes() -> None:
    store = PostgresStore.open(new_bank(), create=True)
    with store.writing(ACTOR, WHEN) as writer:
        for number in range(20):
            writer.queue(f"r{number:02}")
    second = PostgresStore.open(f"{store._pool.url}#{store.bank}")
    taken: list[str] = []
    for holder, each in (("a", store), ("b", second)) * 5:
        with each.writing(ACTOR, WHEN) as writer:
            taken += writer.lease(holder, WHEN + timedelta(hours=1), limit=2)
    assert sorted(taken) == [f"r{number:02}" for number in range(20)]
    store.close()
    second.close()
