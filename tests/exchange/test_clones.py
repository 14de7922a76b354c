"""Two clones of a project that learnt by themselves, and share through a folder in git."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archivist.bank import Bank
from archivist.recall.query import Query
from archivist.records import Status
from tests.banks import fresh_bank
from tests.conftest import Command, TickingClock
from tests.samples import MISSING_MODULE, agent_log


def _share(folder: Path, *banks: Bank) -> list[Any]:
    """Share in turn, and accept every clone that is named."""
    done = []
    for bank in banks:
        first = bank.exchange.share(folder)
        done.append(bank.exchange.share(folder, trust=tuple(first.waiting)) if first.waiting else first)
    return done


@pytest.fixture
def clones(tmp_path: Path, clock: TickingClock) -> tuple[Bank, Bank]:
    """Return two banks that met the same failure in a run of their own."""
    banks = []
    for name in ("one", "two"):
        bank = fresh_bank(tmp_path / name, clock=clock)
        bank.runs.capture_file(agent_log(tmp_path / f"{name}.jsonl", MISSING_MODULE, session=name))
        bank.reflect(name)
        banks.append(bank)
    return banks[0], banks[1]


@pytest.mark.req("N10")
def test_clones_that_learnt_the_same_failure_have_one_lesson_counted_from_both(
    clones: tuple[Bank, Bank], tmp_path: Path
) -> None:
    one, two = clones
    folder = tmp_path / "shared"
    results = _share(folder, one, two, one, two, one)
    for bank in clones:
        (lesson,) = bank.lessons.query(Query())
        assert (lesson.runs, lesson.frequency, lesson.status) == (("one", "two"), 2, Status.ACTIVE)
        assert set(lesson.evidence.episodes) == {"one", "two"}
    assert len({bank.lessons.query(Query())[0].id for bank in clones}) == 1
    assert [len(done.united) for done in results] == [0, 1, 0, 0, 0]
    lines = {path.name: path.read_bytes() for path in folder.glob("lessons/*.jsonl")}
    _share(folder, two, one)
    assert {path.name: path.read_bytes() for path in folder.glob("lessons/*.jsonl")} == lines
    # The failure met again counts for the one that stayed.
    two.runs.capture_file(agent_log(tmp_path / "later.jsonl", MISSING_MODULE, session="later"))
    two.reflect("later")
    assert [lesson.frequency for lesson in two.lessons.query(Query())] == [3]


@pytest.mark.req("N10")
def test_words_that_a_person_confirmed_stay_whoever_was_first(
    clones: tuple[Bank, Bank], tmp_path: Path
) -> None:
    one, two = clones
    two.lessons.edit("m-001", summary="Install freezegun before the tests")
    _share(tmp_path / "shared", one, two, one)
    for bank in clones:
        (lesson,) = bank.lessons.query(Query())
        assert (lesson.summary, lesson.frequency) == ("Install freezegun before the tests", 2)


@pytest.mark.req("N10")
def test_what_is_not_accepted_is_not_united(clones: tuple[Bank, Bank], tmp_path: Path) -> None:
    one, two = clones
    one.exchange.share(tmp_path / "shared")
    assert two.exchange.share(tmp_path / "shared").united == ()
    assert two.lessons.get("m-001").frequency == 1


@pytest.mark.req("N10")
@pytest.mark.parametrize("last", [0, 1])
def test_words_changed_in_two_clones_are_both_in_the_history(
    tmp_path: Path, clock: TickingClock, last: int
) -> None:
    banks = [fresh_bank(tmp_path / name, clock=clock) for name in ("one", "two")]
    folder = tmp_path / "shared"
    banks[0].lessons.add("Lint first")
    _share(folder, *banks, banks[0])
    texts = ["Lint before you push", "Lint before you commit"]
    for at in (1 - last, last):
        banks[at].lessons.edit("m-001", summary=texts[at])
    (_, done) = _share(folder, *banks)
    ((kept, other),) = done.conflicts
    assert (kept.summary, other.summary) == (texts[1], texts[0])
    _share(folder, *banks)
    for bank, text in zip(banks, texts, strict=True):
        assert bank.lessons.get("m-001").summary == text
        told = {change.after["summary"] for change in bank.ledger.history("m-001") if change.after}
        assert set(texts) <= told
    # It is said once.
    assert all(done.conflicts == () for done in _share(folder, *banks))


@pytest.mark.req("N10")
def test_the_command_says_what_was_united_and_what_conflicts(archivist: Command, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        log = agent_log(tmp_path / f"{name}.jsonl", MISSING_MODULE, session=name)
        for words in (("init",), ("capture", str(log)), ("reflect",), ("share", str(tmp_path / "s"))):
            assert archivist(*words, cwd=tmp_path / name).code == 0
    shared = archivist("share", str(tmp_path / "s"), "--json", cwd=tmp_path / "two")
    (origin,) = json.loads(shared.out)["waiting"]
    told = archivist("share", str(tmp_path / "s"), "--trust", origin, cwd=tmp_path / "two")
    assert "learnt here and elsewhere: m-002, now counted from both (2x); m-001 is superseded" in told.err
