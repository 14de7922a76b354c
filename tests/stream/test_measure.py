"""What memory costs and gives, measured on the user's own history."""

from __future__ import annotations

import json

import pytest

from archivist import Bank
from archivist.records import Entry
from archivist.stream.measure import MemoryMeasure, judge, make_questions
from tests.commands import Command
from tests.conftest import START

SUBJECTS = (
    "login page", "payment webhook", "search index", "image cache", "rate limiter", "audit trail",
    "mobile menu",
    "session store", "billing report", "import wizard", "password reset", "usage charts", "backup job",
)  # fmt: skip
DEEDS = ("Designed", "Built", "Tested", "Reviewed", "Shipped")
ROLES = ("design", "dev", "qa", "ops", "growth")


def _tell(bank: Bank, cycles: int = 130) -> None:
    for cycle in range(1, cycles + 1):
        subject = SUBJECTS[cycle % len(SUBJECTS)]
        bank.stream.log(
            f"{DEEDS[cycle % 5]} the {subject}, part {cycle}",
            cycle=cycle,
            role=ROLES[cycle % 5],
            issues=[100 + cycle % len(SUBJECTS)],
            content=f"Notes about the {subject} of cycle {cycle}.",
        )


@pytest.mark.req("C11")
def test_the_bars_hold_on_a_history_that_is_partly_archived(bank: Bank) -> None:
    _tell(bank)
    bank.core.update("status", {"sprint": "Ship the backup job", "blockers": ["CI is down"]})
    found = bank.stream.measure(60)
    assert found.questions >= 40
    assert found.recalled >= 0.9, found.missed
    assert found.relevant >= 0.8
    assert 0 < found.tokens <= 5_000
    assert found.problems == []


@pytest.mark.req("C11")
def test_the_command_prints_the_figures_and_fails_on_a_missed_bar(bank_cli: Command) -> None:
    few = bank_cli("core", "measure")
    assert few.code == 0
    assert "too few entries" in few.err
    for cycle in range(1, 26):
        subject = SUBJECTS[cycle % len(SUBJECTS)]
        bank_cli(
            "stream", "log", f"Built the {subject}, part {cycle}", "--cycle", str(cycle), "--role", "dev"
        )
    ran = bank_cli("core", "measure")
    assert ran.code == 0, ran.out
    assert "questions answered by what is retrieved" in ran.out
    view = json.loads(bank_cli("core", "measure", "--json").out)
    assert view["recalled"] >= 0.9
    missed = MemoryMeasure(tokens=6_000, questions=10, right=0.4, recalled=0.5, relevant=0.7)
    assert len(missed.problems) == 3


def test_questions_are_spread_and_have_answers() -> None:
    entries = [
        Entry(
            id=f"e{n}", seq=n, cycle=n, time=START, role="dev", action=f"Built the {SUBJECTS[n % 13]} part{n}"
        )
        for n in range(1, 61)
    ]
    asked = make_questions(entries, 20)
    assert 15 <= len(asked) <= 20
    assert all(question.answers for question in asked)
    assert make_questions(entries[:10], 20) == []
    assert judge(asked[0], []) == (False, False, 0)
