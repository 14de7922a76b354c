"""What sessions are told: the same as briefs, recorded where it can be, and of large banks the likeliest."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from archivist import Bank
from archivist.brief import service as briefing
from archivist.brief.rank import match_prompt
from archivist.config import BriefRules, Config
from archivist.recall.keywords import keywords
from archivist.records import Brief, Episode, Status
from tests.banks import fresh_bank
from tests.conftest import START, CountingIds, TickingClock
from tests.samples import lesson


def _briefs(bank: Bank) -> list[Brief]:
    with bank.reading() as reader:
        return reader.select(Brief, order=("id",))


def test_a_session_is_opened_once_and_told_each_time(bank: Bank) -> None:
    bank.lessons.add("Prefer small commits")
    first, again = (bank.sessions.brief_session("s-1", "shop") for _ in range(2))
    assert first.text.splitlines()[1:] == again.text.splitlines()[1:]
    assert [(brief.run, len(brief.lessons)) for brief in _briefs(bank)] == [("s-1", 1), ("s-1", 1)]
    assert [(each.id, each.project, each.started is not None) for each in bank.runs.episodes()] == [
        ("s-1", "shop", True)
    ]
    assert bank.sessions.brief_session("", "shop").brief_id == ""
    assert len(_briefs(bank)) == 2


def test_what_is_withheld_by_lot_is_recorded_and_not_brought_up(tmp_path: Path, clock: TickingClock) -> None:
    config = Config(brief=BriefRules(holdout=0.9))
    with fresh_bank(tmp_path, clock=clock, ids=CountingIds(), config=config) as bank:
        bank.lessons.add("Invoice rounding is half up")
        told = [bank.sessions.brief_session(f"s-{number}", "") for number in range(20)]
        assert 0 < sum(bool(each.text) for each in told) < 20
        assert all(bool(brief.lessons) != bool(brief.withheld) for brief in _briefs(bank))
        for number in range(20):
            assert bank.sessions.brief_prompt(f"s-{number}", "", "round the invoice half up") is None


def test_what_a_client_would_cut_off_is_neither_told_nor_recorded(bank: Bank) -> None:
    for number in range(5):
        bank.lessons.add(f"The invoice of case {number} is rounded half up", detail="x", rule="word " * 390)
    told = bank.sessions.brief_prompt("s-1", "", "please look at how the invoice is rounded half up")
    assert told is not None
    assert len(told.text) < 8_000
    (brief,) = _briefs(bank)
    assert brief.lessons == tuple(each.lesson.id for each in told.chosen)
    assert all(each.lesson.summary in told.text for each in told.chosen)


def test_what_comes_from_the_global_bank_is_recorded_there(bank: Bank, tmp_path: Path) -> None:
    with fresh_bank(tmp_path / "global") as beside:
        beside.lessons.add("Answer in plain English")
        told = bank.sessions.brief_session("s-1", "shop", global_bank=beside)
        assert "plain English" in told.text
        assert [(brief.run, len(brief.lessons)) for brief in _briefs(beside)] == [("s-1", 1)]
        assert [brief.lessons for brief in _briefs(bank)] == [()]


@pytest.mark.parametrize(
    ("prompt", "is_brought_up"),
    [
        ("The rounding of invoices is wrong", False),
        ("Why does invoice rounding go half down?", True),
        ("half of it", False),
        ("", False),
        ("!!! ???", False),
    ],
)
def test_a_prompt_brings_up_what_speaks_of_the_same(prompt: str, is_brought_up: bool) -> None:
    known = lesson(summary="Invoice rounding is half up, says the tax office")
    assert bool(match_prompt(keywords(prompt), [known])) is is_brought_up


def test_of_a_large_project_the_same_is_told_as_if_everything_were_weighed(
    tmp_path: Path, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(4)  # noqa: S311 the same bank every time
    runs = 120
    with fresh_bank(tmp_path, clock=clock, ids=CountingIds()) as bank:
        with bank.transaction() as writer:
            for number in range(runs):
                ended = START + timedelta(hours=number)
                writer.put(Episode(id=f"r-{number}", project="shop", finished=ended), "capture")
            for number in range(1_200):
                seen = draw.randrange(runs)
                met = tuple(f"r-{place}" for place in range(draw.choice((1, 1, 1, 2, 2, 3, 4, 6))))
                drawn = lesson(
                    f"l-{number:04d}",
                    number=number + 1,
                    summary=f"alpha{number} beta{number} gamma{number}",
                    repo="shop",
                    runs=met,
                    importance=round(draw.random(), 2),
                    last_seen=START + timedelta(hours=seen),
                    unseen_from=seen + 1,
                    status=Status.ACTIVE if len(met) > 1 else Status.CANDIDATE,
                )
                writer.put(replace(drawn, rule=draw.choice(("", "IF a THEN b"))), "reflect")
        quick = bank.brief(repo="shop").chosen
        monkeypatch.setattr(briefing, "_WEIGHED", 5_000)
        assert quick == bank.brief(repo="shop").chosen
        assert len(quick) == bank.config.brief.max_task_lessons
