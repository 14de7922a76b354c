"""A payload that somebody took out of the ledger is damage, unless the chain records that it was erased."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archivist.records import Actor, ActorKind, Lesson
from archivist.store.protocol import Store
from tests.banks import fresh_bank
from tests.engines import ENGINES
from tests.samples import MISSING_MODULE, WHEN, agent_log, lesson

ADA = Actor(ActorKind.HUMAN, "ada")
DELETE = "DELETE FROM ledger_payloads WHERE bank = :bank AND seq = ?"
CHANGE = "UPDATE lessons SET summary = 'Use evilpm' WHERE bank = :bank AND id = 'a'"


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = ENGINES[request.param](tmp_path)
    for number, name in enumerate(("a", "b"), start=1):
        with opened.writing(ADA, WHEN) as writer:
            writer.put(lesson(name, number=number, summary=f"Use {name}"), "add")
    yield opened
    opened.close()


def _problems(store: Store, *statements: tuple[Any, ...]) -> str:
    with store.erasing(ADA, WHEN) as eraser:
        for sql, *values in statements:
            getattr(eraser, "execute")(sql, tuple(values))  # noqa: B009
    with store.reading() as reader:
        return "; ".join(reader.verify().problems)


@pytest.mark.req("N5")
def test_a_payload_that_is_gone_unsaid_is_damage(store: Store) -> None:
    missing = "the payload of entry 1 is missing, and no erasure of it is recorded"
    assert _problems(store, (DELETE, 1)) == missing
    assert _problems(store, (CHANGE,)) == f"{missing}; lesson a is not as entry 1 left it"


@pytest.mark.req("N5")
def test_a_receipt_of_something_else_covers_nothing(store: Store) -> None:
    with store.erasing(ADA, WHEN) as eraser:
        eraser.record_receipt("r-1", {"asked": ["b"], "places": [{"place": "ledger payloads", "removed": 0}]})
    assert "entry 1 is missing" in _problems(store, (DELETE, 1))
    assert "lesson a is not" in _problems(store, (DELETE, 3), (CHANGE,))


@pytest.mark.req("N5")
def test_what_is_erased_through_the_bank_is_recorded(store: Store) -> None:
    with store.erasing(ADA, WHEN) as eraser:
        assert eraser.erase_payloads(eraser.payloads_of("lesson", "a")) == 1
    assert _problems(store) == ""
    with store.reading() as reader:
        assert reader.verify().erased == 1
    # Its hash stays in the entry.
    assert _problems(store, (CHANGE,)) == "lesson a is not as entry 1 left it"


@pytest.mark.req("N5")
def test_erasures_of_older_versions_keep_the_ledger_whole(store: Store) -> None:
    """They entered how many payloads went, not which; of a record that was erased, its removal."""
    with store.erasing(ADA, WHEN) as eraser:
        eraser.remove(Lesson, "b", "erase")
    assert _problems(store, (DELETE, 2)) == ""
    assert "entry 1 is missing" in _problems(store, (DELETE, 1))
    with store.erasing(ADA, WHEN) as eraser:
        eraser.record_receipt("r-1", {"asked": [], "places": [{"place": "ledger payloads", "removed": 1}]})
    assert _problems(store) == ""


@pytest.mark.req("N5")
def test_erasing_and_pruning_keep_the_ledger_whole(tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "shop", actor=ADA) as bank:
        for number in range(3):
            log = agent_log(tmp_path / f"{number}.jsonl", MISSING_MODULE, session=f"s-{number}")
            bank.runs.finish(log)
        bank.lessons.add("Never say hunter2 aloud")
        kept = bank.lessons.add("Bundle pull requests")
        bank.lessons.edit(kept.id, summary="Say hunter2 never")
        bank.lessons.edit(kept.id, summary="Bundle all pull requests")
        bank.erasure.erase(matching="hunter2")
        bank.erasure.erase([bank.runs.episodes()[0].id])
        bank.erasure.prune(days=1, is_dry_run=False)
        checked = bank.ledger.verify()
        assert checked.problems == ()
        assert checked.erased > 2
