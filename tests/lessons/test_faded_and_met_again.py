"""What faded and is met again knows what it knew."""

from __future__ import annotations

from pathlib import Path

import pytest

from archivist import Bank
from archivist.config import Config, ReflectRules
from archivist.recall.query import Query
from archivist.records import Status
from tests.banks import fresh_bank
from tests.reflect.test_everyday_briefs import write_log

REFUSED = "$ pilot sync --fast\n! 2\nerror: unexpected argument '--fast' found"
MENDED = (REFUSED, "$ pilot sync --quick\nsynced 12 files")


def live(bank: Bank) -> list[tuple[str, int]]:
    """Return the lessons that are told, with how many runs met each."""
    lessons = bank.lessons.query(Query())
    return [(each.summary, each.frequency) for each in lessons if each.status is Status.ACTIVE]


@pytest.mark.req("N1", "A12")
def test_what_faded_and_is_met_again_has_its_remedy_and_its_runs(tmp_path: Path) -> None:
    # The runs that showed the remedy are no longer compared with.
    bank = fresh_bank(tmp_path / "project", config=Config(reflect=ReflectRules(related_runs=4)))
    sessions = [MENDED, MENDED, *[("$ make docs\nwritten",)] * 25]
    for turn, calls in enumerate([*sessions, (REFUSED,)]):
        if turn == len(sessions):
            assert live(bank) == []
        for episode in bank.runs.capture_file(write_log(tmp_path / f"{turn}.jsonl", calls, turn)).episodes:
            bank.reflect(episode.id)
            bank.lessons.decay(episode.id)
    ((summary, runs),) = live(bank)
    assert "use `pilot sync --quick`" in summary
    assert runs == 3
    bank.close()


@pytest.mark.req("N1", "A12")
def test_what_a_person_forgot_stays_forgotten(bank: Bank, tmp_path: Path) -> None:
    for turn, calls in enumerate([MENDED, MENDED, MENDED]):
        for episode in bank.runs.capture_file(write_log(tmp_path / f"{turn}.jsonl", calls, turn)).episodes:
            bank.reflect(episode.id)
        if turn == 1:
            for lesson in bank.lessons.query(Query()):
                bank.lessons.forget(lesson.id)
    assert live(bank) == []


@pytest.mark.req("N1", "A12")
@pytest.mark.parametrize(("unmet", "is_told"), [(3, True), (11, False), (14, False)])
def test_what_ten_runs_did_not_meet_is_not_told_because_it_faded(
    bank: Bank, tmp_path: Path, unmet: int, is_told: bool
) -> None:
    sessions = [MENDED, MENDED, MENDED, *[("$ make docs\nwritten",)] * unmet]
    for turn, calls in enumerate(sessions):
        for episode in bank.runs.capture_file(write_log(tmp_path / f"{turn}.jsonl", calls, turn)).episodes:
            bank.reflect(episode.id)
            bank.lessons.decay(episode.id)
    assert ("pilot sync --quick" in bank.brief(repo="shop").text) is is_told
