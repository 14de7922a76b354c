"""Plans that the user refuses where they are presented, and takes to a new session."""

from __future__ import annotations

from datetime import timedelta

import pytest

from archivist import Bank
from archivist.records import Episode, Event, EventKind
from tests.conftest import START

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."
PLAN = "Implement the following plan:\n\n# Sort the rows by price"


def _run(
    bank: Bank, number: int, task: str, *, plans: bool = False, refused: bool = True, edits: bool
) -> None:
    when, name = START + timedelta(hours=number), f"run-{number}"
    events = [Event(run=name, seq=0, kind=EventKind.MESSAGE, role="user", text=task)]
    if plans:
        extra: dict[str, object] = {"rejected": True} if refused else {}
        presented = Event(run=name, seq=1, kind=EventKind.TOOL_CALL, tool="ExitPlanMode", text="# A plan",
                          output=REFUSED if refused else "ok", is_error=refused, extra=extra)  # fmt: skip
        events.append(presented)
    if edits:
        edit = Event(run=name, seq=2, kind=EventKind.EDIT, tool="Edit", target="src/rows.py",
                     extra={"old": "a", "new": "b"})  # fmt: skip
        events.append(edit)
    bank.capture(Episode(id=name, project="shop", task=task, started=when, finished=when), events)
    bank.reflect(name)


def _told(bank: Bank) -> str:
    text = bank.brief(repo="shop", fence=False).text
    return next((line.partition(". ")[2] for line in text.splitlines() if "plan" in line), "")


@pytest.mark.req("N1")
def test_plans_that_begin_a_new_session_are_presented_and_left(bank: Bank) -> None:
    for number in (0, 2):
        _run(bank, number, f"Sort table {number}", plans=True, edits=False)
        assert not _told(bank)
        _run(bank, number + 1, PLAN, edits=True)
    said = "present a plan and stop: the user takes it to a new session"
    assert _told(bank) == f"{said} (2 plans refused, 2 sessions begun with one)"
    assert "plan" not in bank.sessions.brief_subagent("s-1/a", "shop").text


@pytest.mark.req("N1")
@pytest.mark.parametrize(
    ("refused", "edits", "later"),
    [(False, True, PLAN), (True, True, PLAN), (True, False, "Sort the rows by price")],
    ids=["accepted", "carried out in the same session", "no session begins with a plan"],
)
def test_plans_that_are_carried_out_where_they_are_presented_are_no_habit(
    bank: Bank, later: str, *, refused: bool, edits: bool
) -> None:
    for number in (0, 2, 4):
        _run(bank, number, f"Sort table {number}", plans=True, refused=refused, edits=edits)
        _run(bank, number + 1, later, edits=True)
    assert not _told(bank)
