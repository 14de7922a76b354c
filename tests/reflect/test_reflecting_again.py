"""Reflecting on a run again changes nothing, in whatever order runs are reflected on, and it ages once."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from archivist import Bank
from archivist.recall.query import Query
from archivist.records import Lesson
from tests.banks import fresh_bank
from tests.conftest import START, TickingClock
from tests.samples import agent_log

_REFUSED = ("Exit code 1\nerror: script build refused: set a region", True)
_FAILED = ("make build", *_REFUSED)
# The same failure is overcome, tried in vain, or left alone, and the words of its lesson count that.
_RUNS = {
    "helped": [_FAILED, ("REGION=eu make build", "build succeeded", False)],
    "in vain": [_FAILED, ("REGION=eu make build", *_REFUSED)],
    "other": [_FAILED, ("make build ZONE=1", "build succeeded", False)],
    "left": [_FAILED],
}


def _captured_runs(bank: Bank, folder: Path, kinds: Sequence[str], days: Sequence[int | None]) -> list[str]:
    runs = []
    for number, (kind, day) in enumerate(zip(kinds, days, strict=True)):
        session = f"s-{number}"
        bank.runs.capture_file(agent_log(folder / f"{session}.jsonl", _RUNS[kind], session=session))
        finished = None if day is None else START + timedelta(days=day)
        with bank.transaction() as writer:
            writer.put(replace(bank.runs.episode(session), finished=finished), "capture")
        runs.append(session)
    return runs


def _known_lessons(bank: Bank) -> list[Lesson]:
    return sorted(bank.lessons.query(Query()), key=lambda lesson: lesson.id)


@settings(max_examples=25)
@given(
    runs=st.lists(
        st.tuples(st.sampled_from(sorted(_RUNS)), st.integers(0, 4) | st.none()), min_size=2, max_size=5
    ),
    order=st.permutations(range(5)),
    again=st.permutations(range(5)),
)
@example(runs=[("helped", 0), ("helped", 1), ("in vain", 2)], order=[0, 1, 2, 3, 4], again=[1, 0, 2, 3, 4])
@example(runs=[("helped", 2), ("helped", 1), ("left", 0)], order=[0, 1, 2, 3, 4], again=[2, 1, 0, 3, 4])
def test_reflecting_again_changes_no_lesson(
    runs: list[tuple[str, int | None]], order: list[int], again: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        bank = fresh_bank(Path(name) / "project", clock=TickingClock())
        kinds, days = zip(*runs, strict=True)
        known = _captured_runs(bank, Path(name), kinds, days)
        for at in order:
            if at < len(known):
                bank.reflect(known[at])
        lessons = _known_lessons(bank)
        for at in again:
            if at < len(known):
                done = bank.reflect(known[at])
                assert (done.created, done.updated) == ((), ())
        assert _known_lessons(bank) == lessons
        bank.close()


def test_a_run_ages_the_bank_once_however_it_is_reflected_on(bank: Bank, tmp_path: Path) -> None:
    first, second = _captured_runs(bank, tmp_path, ["helped", "left"], [0, 1])
    bank.reflect(first)
    list(bank.reflections.reflect_waiting())
    assert [bank.runs.episode(run).number for run in (first, second)] == [1, 2]
    bank.reflect(first)
    assert not bank.lessons.decay(second).was_counted
    assert bank.runs.episode(first).number == 1
