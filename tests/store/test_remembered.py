"""What a long-lived reader keeps: never older than the bank, never from a change that was taken back."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.records import Episode, Event, EventKind
from archivist.store.results import SearchFilter, TextQuery, scope_token


def _count(bank: Bank, made: list[int]) -> int:
    def make() -> int:
        made.append(1)
        return bank.doctor.status()["active_lessons"]

    with bank.reading() as reader:
        return reader.get_cached("lessons", make, kinds=frozenset(("lesson",)))


def test_it_is_made_again_when_anybody_changed_the_bank(bank: Bank) -> None:
    made: list[int] = []
    bank.lessons.add("one")
    assert [_count(bank, made), _count(bank, made)] == [1, 1]
    assert len(made) == 1
    with Bank.open(bank.path) as other:
        other.lessons.add("two")
    assert _count(bank, made) == 2
    assert len(made) == 2


def test_it_is_kept_when_others_than_its_records_changed(bank: Bank) -> None:
    made: list[int] = []
    bank.lessons.add("one")
    for number in range(3):
        assert _count(bank, made) == 1
        bank.stream.log(f"did {number}")
    assert len(made) == 1
    bank.forget("m-001")
    bank.stream.log("did it")
    assert _count(bank, made) == 0


def test_it_is_made_again_when_something_was_erased_or_much_has_happened(bank: Bank) -> None:
    made: list[int] = []
    bank.lessons.add("one")
    entry = bank.stream.log("did it")
    _count(bank, made)
    bank.erasure.erase([entry.id])
    _count(bank, made)
    for number in range(100):
        bank.stream.log(f"did {number}")
    _count(bank, made)
    assert len(made) == 3


def test_nothing_is_kept_of_a_transaction(bank: Bank) -> None:
    made: list[int] = []
    with pytest.raises(ZeroDivisionError), bank.transaction():
        bank.lessons.add("taken back")
        assert _count(bank, made) == 1
        raise ZeroDivisionError
    bank.lessons.add("kept")
    bank.lessons.add("kept too")
    assert _count(bank, made) == 2


def test_documents_are_read_again_when_anybody_changed_them(bank: Bank) -> None:
    def known() -> list[str]:
        with bank.reading() as reader:
            at = reader.documents_at([("r", seq) for seq in range(4)])
            read = reader.indexed_documents([each.place for each in at])
            assert [read[each.place] for each in at] == at
            return [each.record for each in at]

    def said(seq: int) -> Event:
        return Event(run="r", seq=seq, kind=EventKind.MESSAGE, role="user", text=f"said {seq}")

    bank.capture(Episode(id="r"), [said(0)])
    assert known() == known() == ["r#0"]
    with Bank.open(bank.path) as other:
        other.capture(Episode(id="r"), [said(0), said(1)])
    assert known() == ["r#0", "r#1"]
    with pytest.raises(ZeroDivisionError), bank.transaction():
        bank.capture(Episode(id="r"), [said(0), said(1), said(2)])
        assert len(known()) == 3
        raise ZeroDivisionError
    assert known() == ["r#0", "r#1"]


def test_a_common_kind_is_found_in_the_same_order_as_by_its_scope(bank: Bank) -> None:
    for number in range(60):
        bank.lessons.add(f"the cache of job {number} {'fails ' * (number % 7)}".strip())
    for number in range(20):
        bank.stream.log(f"the cache fails {number}", content="cache " * (number % 5))
    within = SearchFilter(groups=((scope_token("kind", "lesson"),),))
    with bank.reading() as reader:
        for limit in (1, 5, 30, 200):
            found = reader.search(TextQuery(("cache", "fails")), search_filter=within, limit=limit)
            kinds = {each.kind for each in reader.indexed_documents([hit.place for hit in found]).values()}
            everything = reader.search(TextQuery(("cache", "fails")), search_filter=SearchFilter(), limit=500)
            known = reader.indexed_documents([hit.place for hit in everything])
            lessons = [hit for hit in everything if known[hit.place].kind == "lesson"]
            assert kinds == {"lesson"}
            assert [hit.place for hit in found] == [hit.place for hit in lessons[:limit]]


def test_the_version_changes_when_another_wrote(bank: Bank) -> None:
    before = bank.version()
    bank.lessons.add("by ourselves")
    assert bank.version() == before
    with Bank.open(bank.path) as other:
        other.lessons.add("by another")
    assert bank.version() != before
