"""What questions to the stream find: reports stay, references are exact, meaning counts at once."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.stream.service import StreamHit


def _log(bank: Bank, *said: str, type: str = "observation") -> None:  # noqa: A002
    for cycle, text in enumerate(said, 1):
        bank.stream.log(text, cycle=cycle, role="qa", importance=6, type=type, content=text)


def _cycles(found: list[StreamHit]) -> list[int]:
    return [hit.entry.cycle for hit in found]


@pytest.mark.req("C5", "A5")
def test_a_report_of_what_happened_is_not_replaced_by_another(bank: Bank) -> None:
    _log(
        bank,
        "Auth E2E tests time out on CI (#181)",
        "Auth E2E tests timed out again on CI, runner has 2 cores (#181)",
        "Auth E2E tests time out a third time (#181); turned out that bcrypt is slow",
    )
    for question in ("did we hit E2E timeouts?", "Auth E2E tests time out"):
        found = bank.stream.search(question)
        assert {1, 2, 3} <= {*_cycles(found)}
        # A note may say why one stands before a higher score.
        notes = [note for hit in found for note in hit.hit.notes]
        assert [note for note in notes if not note.startswith("before 0.")] == []


@pytest.mark.req("C5", "A5")
def test_three_reports_of_one_trouble_are_three_reports(bank: Bank) -> None:
    _log(bank, "Disk pressure on 2 runners", "Disk pressure on 3 runners now", "Disk pressure on 3 runners")
    assert [hit.notes for hit in bank.recall("disk pressure on the runners?").hits] == [()] * 3


@pytest.mark.req("A5")
def test_a_decision_is_still_replaced_by_a_later_one(bank: Bank) -> None:
    said = ("Uploads are retried five times", "Uploads are retried three times from now on")
    _log(bank, *said, type="decision")
    first, second = bank.recall("How many times are uploads retried?").hits
    assert first.notes == ("current: replaces cycle 1 “Uploads are retried five times”",)
    assert second.notes[0].startswith("replaced by cycle 2")


@pytest.mark.req("C5")
def test_how_an_issue_stands_is_answered_by_its_latest_entries(bank: Bank) -> None:
    _log(
        bank,
        "#200 blocked: nobody has the Vercel account, launch on hold",
        "#84 is blocked by the Vercel account",
        "Growth cannot start, #200 still blocked on Vercel",
        "#20 is blocking the launch",
        "#200 waitlist finally deployed on Vercel, unblocked",
    )
    for question in ("what's blocking #200?", "What is the status of #200?", "#200", "is #200 done?"):
        assert _cycles(bank.stream.search(question)) == [5, 3, 1], question
    assert _cycles(bank.stream.search("what's blocking #200?", limit=1)) == [5]
    # What was in the way once is asked for by its words.
    assert _cycles(bank.stream.search("What blocked #200?"))[0] in (1, 3)


@pytest.mark.req("C5")
def test_an_issue_that_no_entry_names_is_not_answered_by_others(bank: Bank) -> None:
    _log(bank, "#26 is blocked: NPM_TOKEN missing", "#840 is blocked by the review")
    for question in ("what's blocking #84?", "#84", "#84 and #85", "what was decided on #84?", "PR #84"):
        assert bank.stream.search(question) == [], question


@pytest.mark.req("C2", "C5")
def test_an_issue_and_a_pull_request_of_one_number_are_one_thread(bank: Bank) -> None:
    _log(bank, "Opened #638 about the lock file", "PR #638 is in review", "Wrote docs", "#638 merged")
    for question in ("#638", "PR #638", "what happened to #638?", "what happened to PR #638?"):
        assert sorted(_cycles(bank.stream.search(question))) == [1, 2, 4], question
    assert sorted(_cycles(bank.stream.search("the lock file", issue=638))) == [1, 2, 4]


@pytest.mark.req("C5")
def test_a_pull_request_is_found_by_its_number_and_several_by_each(bank: Bank) -> None:
    _log(bank, "PR #219 opened", "PR #219 rebased", "#95 closed", "PR #219 merged after 40 cycles")
    for question in ("PR #219", "#219", "what about PR #219?"):
        assert _cycles(bank.stream.search(question)) == [4, 2, 1], question
    assert _cycles(bank.stream.search("#95 and PR #219", limit=2)) == [4, 3]


@pytest.mark.req("C3")
def test_what_is_logged_is_found_by_meaning_without_a_reindex(bank: Bank) -> None:
    _log(bank, *(f"Wrote page {number} of the newsletter" for number in range(120)))
    bank.stream.log("bcrypt takes 9 s per login on the build machine", role="qa")
    assert bank.vectors.count_unembedded() < 48
    result = bank.recall("password hashing is slow")
    assert (result.unembedded, result.hits[0].text.split(": ")[1][:6]) == (0, "bcrypt")
    assert result.hits[0].why.why.meaning > 0


@pytest.mark.req("C3")
def test_nothing_is_embedded_inside_a_transaction(bank: Bank) -> None:
    with bank.transaction():
        _log(bank, *(f"Wrote page {number}" for number in range(30)))
        assert bank.vectors.count_unembedded() == 30
    bank.stream.log("One more", role="qa")
    assert bank.vectors.count_unembedded() == 0


@pytest.mark.req("C11")
def test_an_answer_in_other_words_is_found_by_its_thread(bank: Bank) -> None:
    _log(bank, "Checkout shows items twice (#7)", "Wrote docs", "Keyed the merge by SKU (#7)", "New logo")
    assert _cycles(bank.stream.search("why are items shown twice in the checkout?"))[:2] == [1, 3]
    for said in ("SHOP-4: replica lags at night", "Split the table by month, see SHOP-4", "Lunch"):
        bank.stream.log(said)
    found = [hit.entry.action for hit in bank.stream.search("what about the replica that lags?")]
    assert "Split the table by month, see SHOP-4" in found


@pytest.mark.req("C11")
def test_who_did_something_is_answered_by_that_role(bank: Bank) -> None:
    for role, said in (("qa", "Safari upload fails (#9)"), ("web", "Listen to change events (#9)")):
        bank.stream.log(said, role=role)
    bank.stream.log("Newsletter sent", role="web")
    assert [hit.entry.action for hit in bank.stream.search("what did web do about the Safari upload?")][
        :1
    ] == ["Listen to change events (#9)"]
