"""What reflections say of six teams, in the words of each: what recurs, what ended it, what is open."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from archivist import Bank
from archivist.records import Entry, EntryType
from archivist.stream.insight_text import Insight, labels_of
from archivist.stream.insights import insights
from archivist.stream.obstacles import read_reports
from archivist.stream.threads import read_threads
from tests.samples import WHEN

# `role|importance|type|text`, one entry a cycle. `ada` is the history of the project whose document this is.
TEAMS = Path(__file__).with_name("teams")
SPRINTS = {1: "Sprint 1: Ship v1.0-alpha", 56: "Sprint 2: SaaS", 110: "Sprint 3: SaaS Container Complete"}


class Told(NamedTuple):
    """What the reflection of a cycle wrote, and what it changed in core memory."""

    cycle: int
    reason: str
    entries: tuple[Entry, ...]
    core: tuple[str, ...]


def _replay(bank: Bank, team: str) -> list[Told]:
    told = []
    lines = (TEAMS / f"{team}.txt").read_text(encoding="utf-8").splitlines()
    for cycle, line in enumerate(lines, 1):
        role, importance, kind, text = line.split("|", 3)
        if team == "ada" and cycle in SPRINTS:
            bank.core.update("status", {"sprint": SPRINTS[cycle]})
        bank.stream.log(
            text, cycle=cycle, role=role, importance=int(importance), type=kind, content=text, prs=()
        )
        done = bank.stream.reflect(if_due=cycle < len(lines))
        if not done.skipped:
            told.append(Told(cycle, done.reason, done.entries, done.told_core))
    return told


# Words that one insight of the whole history must hold together, in its heading and its text.
HEADINGS = {
    "ada": (
        ("(PR #219) took 40 cycles", "Others were faster", "PR #107 5"),
        ("#26 was blocked in 3 cycles", "NPM_TOKEN", "ended in cycle 54", "Asked the human owner"),
        ("trouble with CI", "in 4 cycles", "ended in cycle 79", "CI green again"),
        ("#200 was blocked in 5 cycles", "ended in cycle 120", "finally deployed"),
        ("trouble with Auth E2E (#181) in 3 cycles", "Learnt: “turned out that bcrypt"),
        ("(PR #103) took 11 cycles", "Learnt: “Lesson: PRs that miss a role's turn"),
        ("“Sprint 2: SaaS” ended", "#223", "Left open: #155"),
    ),
    "game": (
        ("a12", "in 3 cycles", "ended in cycle 12", "Learnt: “learned: test every shader"),
        ("trouble with “save migration loses the inventory", "in 3 cycles", "ended in cycle 22"),
        ("decided: swamp level moves to 0.9", "It replaced “swamp level ships in 0.8"),
    ),
    "oncall": (
        ("trouble with “pg-main out of connections” in 3 cycles", "open since cycle 1"),
        ("(#861) took 5 cycles", "done with “", "(cycle 20)", "open redirect in the login"),
        (
            "trouble with “status page certificate” in at least 3 cycles",
            "ended in cycle 24",
            "dns of the status page moves",
        ),
    ),
    "pipeline": (
        ("DATA-117", "ended in cycle 15", "Done about it: “DATA-117: scheduler memory raised"),
        ("DATA-121 was blocked in 3 cycles", "churn definition", "ended in cycle 27"),
        ("PII columns are dropped", "It replaced “PII columns are hashed"),
    ),
    "research": (
        ("7B", "ended in cycle 15", "Learnt: “Found why the 7B run diverges"),
        ("Shared disk is full", "in 3 cycles", "open since cycle 23"),
    ),
    "shop": (
        ("#311 was blocked in 3 cycles", "coupon terms", "ended in cycle 29"),
        ("checkout e2e", "(#315)", "ended in cycle 14"),
        ("(PR #320) took 13 cycles", "product grid"),
        ("decided: summer sale starts without coupons", "It replaced “coupons go live"),
    ),
}


@pytest.mark.req("C7")
@pytest.mark.parametrize("team", HEADINGS)
def test_reflections_say_what_a_lead_wants_to_read(bank: Bank, team: str) -> None:
    told = _replay(bank, team)
    texts = [f"{entry.action} {entry.content}" for each in told for entry in each.entries]
    for words in HEADINGS[team]:
        assert any(all(word in text for word in words) for text in texts), words
    # Ten cycles of a team always hold something to tell, and never more than a reader takes in.
    assert all(1 <= len(each.entries) <= 5 for each in told)
    for each in told:
        for entry in each.entries:
            assert (entry.importance in (9, 10), "Entries: " in entry.content) == (True, True)


@pytest.mark.req("C7")
@pytest.mark.parametrize("team", HEADINGS)
def test_no_reflection_tells_the_same_subject_twice(bank: Bank, team: str) -> None:
    for each in _replay(bank, team):
        evidence = [frozenset(entry.extra["evidence"]) for entry in each.entries]  # type: ignore[call-overload]
        assert len({*evidence}) == len(evidence)
        headings = [entry.action for entry in each.entries]
        for label in ("#26", "#181", "#200", "#311", "#315", "DATA-121"):
            of_sprint = [text for text in headings if label in text and "” ended, finished" not in text]
            assert len(of_sprint) < 2, headings


@pytest.mark.req("C7")
def test_a_strategic_blocker_goes_into_core_and_a_sprint_ends_with_what_it_left(bank: Bank) -> None:
    told = {each.cycle: each for each in _replay(bank, "ada")}
    assert told[96].core == ("status blockers: #200 was blocked in 3 cycles: Vercel deployment",)
    assert told[120].core[0].startswith("no longer in status blockers: #200")
    for cycle in (56, 110):
        assert told[cycle].reason.startswith("sprint boundary")
        (summary,) = [entry for entry in told[cycle].entries if "sprint" in entry.tags]
        assert summary.importance == 10
    # What was finished in the sprint before is not told again.
    assert "PR #100" not in summary.content


@pytest.mark.req("C7")
def test_who_observes_that_nothing_happened_did_nothing_about_it() -> None:
    said = (
        ("#200 is blocked: no account", EntryType.ACTION),
        ("Asked the owner for the account of #200", EntryType.ACTION),
        ("#200 waitlist still not deployed", EntryType.OBSERVATION),
        ("#200 is blocked: no account", EntryType.ACTION),
    )
    (found, *_) = insights([_entry(n, text, type=kind) for n, (text, kind) in enumerate(said, 1)])
    assert "Done about it: “Asked the owner for the account of #200” (cycle 2)." in found.content


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("#200 waitlist finally deployed by the owner, unblocked", True),
        ("#200 waitlist is not deployed yet", False),
        ("Fixed #200: new lock file, rebased PR #219", True),
        ("Fixed #223: new lock file, rebased onto #200", False),
        ("PR #9 closes #200", True),
        ("Phase 1 complete for #200", False),
        ("#200 goes live", True),
        ("#200 should be merged tomorrow", False),
    ],
)
def test_what_a_clause_says_of_an_issue_ends_it(text: str, ended: bool) -> None:
    (thread,) = [each for each in read_threads([_entry(1, text)]) if each.label == "#200"]
    assert (thread.done is not None) is ended


@pytest.mark.req("C7")
def test_a_thread_that_is_reopened_is_open() -> None:
    entries = [_entry(n, text) for n, text in enumerate(("Closed #95", "#95 re-opened for phase 3"), 1)]
    (thread,) = read_threads(entries)
    assert thread.done is None


@pytest.mark.req("C7")
def test_who_is_blocked_and_what_is_missing_are_told_apart() -> None:
    (report,) = read_reports(_entry(1, "NPM_TOKEN still missing, only a human can add it, #26 blocked"))
    assert (report.victims, report.issues, "npm_token" in report.words) == ((26,), (), True)
    (report,) = read_reports(_entry(1, "Growth cannot start, #200 still blocked on Vercel"))
    assert (report.victims, report.said) == ((200,), "Vercel")


@pytest.mark.req("C7")
def test_a_lesson_is_told_with_the_occasion_and_not_twice() -> None:
    entry = _entry(1, "PR #103 waits for a review. Lesson: a missed turn costs a rotation", role="scrum")
    (found,) = insights([entry])
    assert found.action == "Reflection: Lesson: a missed turn costs a rotation"
    assert found.content.startswith("Learnt by scrum in cycle 1 from “PR #103 waits for a review”.")
    assert "a missed turn" not in found.content


@pytest.mark.req("C7")
def test_decisions_without_a_theme_are_not_listed_together() -> None:
    said = ("Review agenda for Monday", "Use camelCase in the API")
    assert insights([_entry(n, text, type=EntryType.DECISION) for n, text in enumerate(said, 1)]) == []


@pytest.mark.req("C7")
def test_tickets_of_other_trackers_are_labels_and_standards_are_not() -> None:
    entry = _entry(1, "DATA-112 reads UTF-8 and SHA-256, see #4 and PR #5")
    assert labels_of(entry) == ("#4", "PR #5", "DATA-112")


def _entry(seq: int, action: str, **fields: object) -> Entry:
    from archivist.stream.entries import find_references

    found = find_references(action)
    known = {"cycle": seq, "importance": 7, "issues": found.issues, "prs": found.prs, **fields}
    return Entry(id=f"e{seq}", seq=seq, time=WHEN, action=action, **known)  # type: ignore[arg-type]


def test_an_insight_has_its_subject() -> None:
    found: list[Insight] = insights([_entry(n, "Blocked by #84") for n in (1, 2)])
    assert [each.about for each in found] == [frozenset({"#84"})]
