"""Insights that reach core memory, rules from failures, and what a sprint leaves open."""

from __future__ import annotations

import pytest

from archivist import Bank


def _log(bank: Bank, *said: str, first: int = 1, **fields: object) -> None:
    for cycle, text in enumerate(said, first):
        bank.stream.log(text, cycle=cycle, role="dev", importance=7, **fields)  # type: ignore[arg-type]


@pytest.mark.req("C7")
def test_the_weightiest_insights_stand_in_core_memory_until_they_are_over(bank: Bank) -> None:
    _log(bank, *["Upload stopped: no such bucket assets-eu"] * 3)
    done = bank.stream.reflect()
    (line,) = bank.core.view().lessons.splitlines()
    assert "no such bucket assets-eu" in line
    assert any(told.startswith("lessons: ") for told in done.told_core)
    _log(bank, "Upload stopped: no such bucket assets-eu", first=4)
    bank.stream.reflect()
    (line,) = bank.core.view().lessons.splitlines()
    assert "in 4 cycles" in line
    _log(bank, "Fixed the upload: bucket assets-eu created", first=5)
    bank.stream.reflect()
    assert "no such bucket" not in bank.core.view().lessons


@pytest.mark.req("C7")
def test_a_sprint_that_ends_leaves_its_open_troubles(bank: Bank) -> None:
    bank.core.update("status", {"sprint": "Alpha"})
    _log(bank, *["Payment webhook times out at the sandbox"] * 3)
    bank.core.update("status", {"sprint": "Beta"})
    done = bank.stream.reflect(if_due=True)
    (summary,) = [entry for entry in done.entries if "sprint" in entry.tags]
    assert "Left open: trouble with" in summary.content
    assert "webhook" in summary.content


@pytest.mark.req("C10")
def test_a_rule_from_failures_does_not_depend_on_their_wording(bank: Bank) -> None:
    _log(bank, *["Push to main rejected, tests failed in login suite"] * 4)
    _log(bank, "Always run the login suite before a push", first=5, type="decision")
    bank.stream.reflect()
    (proposal,) = bank.proposals.list()
    assert "Always run the login suite before a push" in proposal.after


@pytest.mark.req("C6")
def test_a_brief_for_a_role_alone_carries_core_memory(bank: Bank) -> None:
    bank.core.update("status", {"sprint": "Alpha: the parser"})
    assert "Alpha: the parser" in bank.briefs.brief(role="research").text
    assert "Alpha: the parser" not in bank.briefs.brief(role="research", form="yaml").text
