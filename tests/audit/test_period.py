"""Whether memory helped in a period: the comparison with what was before, and the sentence."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archivist import Bank
from archivist.audit.lift import NO_LIFT, LiftConclusion, lift
from archivist.audit.period import AuditPeriod, answer_period, compare_failures, resolve_period
from archivist.errors import InputError
from archivist.records import Effect, Episode, Following, Verdict
from archivist.records.words import NOTES
from tests.conftest import Command
from tests.samples import WHEN

WEEK = AuditPeriod(WHEN, WHEN + timedelta(days=7), 7)
_counts = st.lists(st.integers(0, 30), min_size=0, max_size=40)


def _fill(bank: Bank) -> None:
    """Write 30 runs a day apart, the last at `WHEN`; from the 16th on each is told one lesson."""
    lesson = bank.lessons.add("Use `make test`")
    with bank.transaction() as writer:
        for at in range(30):
            when = WHEN - timedelta(days=29 - at)
            count = 3 + at % 2 if at < 15 else at % 2
            failures = {f"k{number}": {"command": f"c{number}"} for number in range(count)}
            extra: dict[str, object] = {NOTES: {"failures": failures}}
            run = Episode(
                id=f"run-{at:02d}",
                project="shop",
                started=when,
                finished=when + timedelta(hours=1),
                extra=extra,
            )
            writer.put(run, "reflect")
            if at < 15:
                continue
            verdict = Verdict(
                run=run.id,
                lesson=lesson.id,
                time=WHEN + timedelta(days=99),
                effect=Effect.HELPFUL,
                following=Following.FOLLOWED,
                failed=False,
            )
            writer.put(verdict, "judge")


@given(_counts, _counts)
def test_the_interval_holds_the_difference_and_turns_with_the_sides(
    before: list[int], after: list[int]
) -> None:
    found, turned = compare_failures(before, after), compare_failures(after, before)
    if min(len(before), len(after)) < 8:
        assert found.conclusion is LiftConclusion.TOO_FEW
        return
    assert found.low is not None and found.high is not None and found.difference is not None  # noqa: PT018
    assert found.low <= found.difference <= found.high
    assert turned.difference == pytest.approx(-found.difference)
    assert turned.low == pytest.approx(-found.high)


def test_a_few_runs_that_are_all_alike_prove_no_certainty() -> None:
    alike = compare_failures([1] * 8, [0] * 8)
    assert (alike.low or 0) < -1.5 < -0.5 < (alike.high or 0)
    assert compare_failures([1] * 3 + [0] * 5, [0] * 8).conclusion is LiftConclusion.NOT_SHOWN
    assert compare_failures([3] * 20, [0] * 20).conclusion is LiftConclusion.HELPS
    assert compare_failures([0] * 20, [3] * 20).conclusion is LiftConclusion.HARMS
    assert compare_failures([0] * 9, [0] * 9).conclusion is LiftConclusion.NOT_SHOWN


def test_the_answer_is_one_sentence_with_its_figures() -> None:
    change = compare_failures([3, 2, 4] * 4, [2, 3, 2] * 4)
    answer = answer_period(WEEK, change, lessons=3, told=9, lift=NO_LIFT)
    assert answer.text.startswith(
        "Last 7 days: cannot tell yet, no difference can be shown."
        " 12 runs, 3 lessons told 9 times; failures per run 2.3, in"
    )
    assert "before 3.0 (change -0.7, 95 % interval -" in answer.text
    few = answer_period(WEEK, compare_failures([4], [1, 2]), lessons=1, told=1, lift=NO_LIFT)
    assert few.text == (
        "Last 7 days: cannot tell yet, too few runs."
        " 2 runs, 1 lesson told 1 time; 3 failures met, 4 in 1 run in the 7 days before."
    )
    nothing = answer_period(WEEK, compare_failures([4], []), lessons=0, told=0, lift=NO_LIFT)
    assert nothing.text == "Last 7 days: cannot tell yet, no run to judge. No session was captured yet."


def test_a_bank_that_was_connected_today_says_so_and_when_the_last_session_was(bank: Bank) -> None:
    bank.lessons.add("Test first")
    day = f"{bank.now():%-d %b %Y}"
    fresh = bank.audits.audit_report(resolve_period(bank.now(), days=7)).answer
    assert fresh is not None
    assert fresh.headline == "cannot tell yet, no run to judge"
    assert fresh.figures == f"connected {day}; no session was captured yet"
    old = answer_period(
        WEEK, compare_failures([], []), lessons=0, told=0, lift=NO_LIFT, last_run=WHEN, connected=bank.now()
    )
    assert old.text.endswith(f"Connected {day}; the last session began {WHEN:%-d %b %Y}.")


def test_what_was_not_told_did_not_help_and_chance_outweighs_time() -> None:
    fewer = compare_failures([3] * 20, [0] * 20)
    untold = answer_period(WEEK, fewer, lessons=0, told=0, lift=NO_LIFT)
    assert untold.conclusion is LiftConclusion.TOO_FEW
    told = answer_period(WEEK, fewer, lessons=1, told=20, lift=NO_LIFT)
    assert told.text.startswith("Last 7 days: probably, fewer failures than before. ")
    harmful = lift([True] * 18 + [False] * 2, [False] * 20)
    by_chance = answer_period(WEEK, fewer, lessons=1, told=20, lift=harmful)
    assert by_chance.text.startswith("Last 7 days: no, memory did harm. ")


@pytest.mark.req("F9", "N2")
def test_a_report_counts_the_runs_of_its_period(bank: Bank) -> None:
    _fill(bank)
    until = WHEN + timedelta(hours=1)
    fortnight = resolve_period(bank.now(), since=until - timedelta(days=15), until=until)
    found = bank.audits.audit_report(fortnight)
    assert found.answer is not None
    assert (found.total.told, found.total.helpful) == (15, 15)
    assert found.answer.change[:4] == (15, 8, 15, 52)
    assert found.answer.conclusion is LiftConclusion.HELPS
    # The verdict was written later; its run counts.
    assert [row.lesson for row in found.months] == sorted(
        {f"{WHEN - timedelta(days=at):%Y-%m}" for at in range(15)}
    )
    whole = bank.audits.audit_report()
    assert whole.answer is not None
    assert whole.answer.change == found.answer.change
    assert whole.answer.text.startswith(
        "Since the first brief: probably, fewer failures than before. 15 runs, 1 lesson told 15 times"
    )
    nothing = bank.audits.audit_report(fortnight, project="till")
    assert nothing.answer is not None
    assert nothing.answer.text.startswith(f"{fortnight.name}: cannot tell yet, no run to judge. ")
    with pytest.raises(InputError, match="ends before it begins"):
        resolve_period(bank.now(), since=until, until=WHEN)
    with pytest.raises(InputError, match="ends before it begins"):
        resolve_period(bank.now(), since=bank.now() + timedelta(days=1))
    old = bank.audits.audit_report(resolve_period(bank.now(), until=WHEN - timedelta(days=20)))
    assert old.answer is not None
    assert ": cannot tell yet, too few runs. " in old.answer.text
    assert old.answer.text.endswith("31 failures met, no run before it to compare with.")
    with pytest.raises(InputError, match="days and a date"):
        resolve_period(bank.now(), days=7, until=WHEN)


@pytest.mark.req("F9")
def test_the_command_answers_first(project: Path, archivist: Command) -> None:
    assert archivist("init").code == 0
    with Bank.open(project, create=False) as bank:
        _fill(bank)
    since, until = WHEN - timedelta(days=14, hours=1), WHEN + timedelta(days=1)
    asked = ("--since", f"{since:%Y-%m-%dT%H:%M:%S}", "--until", f"{until:%Y-%m-%dT%H:%M:%S}")
    first, head, *_ = archivist("audit", "report", *asked, cwd=project).out.splitlines()
    assert first.startswith(f"{since:%Y-%m-%d} to ")
    assert ": probably, fewer failures than before. " in first
    assert head.startswith("ID")
    answer = json.loads(archivist("audit", "report", *asked, "--json", cwd=project).out)["answer"]
    assert (answer["text"], answer["conclusion"], answer["change"]["runs"]) == (first, "helps", 15)
    old = archivist("audit", "report", "--days", "1", cwd=project)
    assert old.code == 0
    assert old.out.startswith("Last 24 hours: cannot tell yet, no run to judge. Connected ")
    assert old.out.endswith(f"; the last session began {WHEN:%-d %b %Y}.\n")
    assert archivist("audit", "report", "--days", "1", *asked, cwd=project).code != 0
