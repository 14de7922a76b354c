"""What happens to a bank does not depend on its engine: the same work leaves the same ledger and records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.errors import ArchivistError
from archivist.records import Actor, ActorKind, Episode, Event, EventKind
from archivist.records.kinds import record_types
from archivist.store.erasure import erasure_query
from archivist.store.ledger import RECEIPT_KIND
from tests.banks import fresh_bank
from tests.conftest import CountingIds, TickingClock
from tests.postgres import new_bank

ERASABLE = "Zanzibar"
_TEXTS = st.sampled_from([
    "Use tabs in the Makefile", f"The key of {ERASABLE} expires", "Run the linter, then the tests",
    "nul \x00 inside", "Ünïcode 日本語", f"{ERASABLE.upper()} fails with exit 2",
])  # fmt: skip
_NAMES = st.sampled_from(["m-001", "m-002", "m-003"])
_ACTIONS = st.one_of(
    st.tuples(st.just("add"), _TEXTS),
    st.tuples(st.just("edit"), _NAMES, _TEXTS),
    st.tuples(st.just("forget"), _NAMES),
    st.tuples(st.just("undo"), _NAMES),
    st.tuples(st.just("fact"), st.sampled_from("ab"), _TEXTS),
    st.tuples(st.just("run"), st.sampled_from(["r1", "r2"]), st.lists(_TEXTS, max_size=3)),
    st.tuples(st.just("log"), _TEXTS),
    st.tuples(st.just("brief"), _TEXTS),
    st.tuples(st.just("erase"), _NAMES),
    st.tuples(st.just("erase text"),),
)  # fmt: skip


def _act(bank: Bank, action: tuple[Any, ...]) -> str:
    """Do one thing, and return why it was refused, if it was."""
    match action:
        case "add", text:
            bank.lessons.add(text)
        case "edit", name, text:
            bank.lessons.edit(name, summary=text)
        case "forget", name:
            bank.lessons.forget(name)
        case "undo", name:
            bank.ledger.undo(name)
        case "fact", key, text:
            bank.knowledge.put("test", key, text)
        case "run", run, texts:
            events = [
                Event(run=run, seq=seq, kind=EventKind.MESSAGE, text=text) for seq, text in enumerate(texts)
            ]
            bank.capture(Episode(id=run, task="mend it"), events)
        case "log", text:
            bank.stream.log(text)
        case "brief", text:
            bank.brief(task=text, run="r1")
        case "erase", name:
            bank.erasure.erase([name])
        case _:
            bank.erasure.erase([], matching=ERASABLE)
    return ""


def _open_both(folder: Path) -> Iterator[Bank]:
    how: dict[str, Any] = {"actor": Actor(ActorKind.HUMAN, "ada")}
    yield fresh_bank(folder / "project", clock=TickingClock(), ids=CountingIds(), **how)
    yield Bank.open(new_bank(), clock=TickingClock(), ids=CountingIds(), **how)


def _state(bank: Bank) -> tuple[list[Any], list[Any], list[Any]]:
    with bank.reading() as reader:
        assert reader.verify().problems == ()
        records = [sorted(map(repr, reader.select(kind))) for kind in record_types()]
        # A receipt names the files of its engine; the seals after it differ with it.
        entries = [
            (entry.seq, entry.time, entry.actor, entry.verb, entry.kind, entry.record, payload)
            for entry, payload in reader.ledger()
            if entry.kind != RECEIPT_KIND
        ]
        return entries, records, sorted(map(repr, reader.queued_runs()))


@pytest.mark.req("C12", "N5")
@given(actions=st.lists(_ACTIONS, min_size=1, max_size=12))
@settings(max_examples=12)
def test_the_same_work_leaves_the_same_ledger_records_and_queue(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[Any, ...]]
) -> None:
    first, second = _open_both(tmp_path_factory.mktemp("laws"))
    for action in actions:
        refusals = []
        for bank in (first, second):
            try:
                refusals.append(_act(bank, action))
            except ArchivistError as error:
                refusals.append(error.code)
        assert refusals[0] == refusals[1], action
    states = [_state(bank) for bank in (first, second)]
    for one, other in zip(*states, strict=True):
        assert one == other
    for bank in (first, second):
        bank.close()


@given(actions=st.lists(_ACTIONS, min_size=1, max_size=8))
@settings(max_examples=8)
def test_what_was_erased_is_in_no_row_of_either_engine(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[Any, ...]]
) -> None:
    for bank in _open_both(tmp_path_factory.mktemp("erased")):
        for action in (*actions, ("erase text",)):
            try:
                _act(bank, action)
            except ArchivistError:
                continue
        query = erasure_query(ERASABLE)
        with bank.store.erasing(bank.actor, bank.now()) as eraser:
            assert not any(eraser.find_mentions(query).values())
            assert eraser.count_other_mentions(query) == {}
        with bank.reading() as reader:
            assert reader.count_documents_with([ERASABLE], at_most=9) == [0]
            assert reader.verify().is_whole
        bank.close()
