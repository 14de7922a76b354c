"""Five histories as agents log them: what recurs, whatever its verb, what ended it, what grows."""

from __future__ import annotations

import pytest

from archivist.records import Entry, EntryType
from archivist.stream.entries import find_references
from archivist.stream.insight_text import Insight
from archivist.stream.insights import insights
from tests.samples import WHEN

# `cycle|role|type|importance|action|content`
MOBILE = """
1|dev|action|5|Began with the settings page|
2|dev|observation|6|Archive step says: No profiles for com.acme.app were found|
3|qa|observation|5|pushToken test timed out, a rerun passed|
4|dev|action|5|Added the settings page|Again no archive: No profiles for com.acme.app were found.
5|qa|observation|5|Push token test timed out again|Passed on the second run.
6|pm|decision|7|Keep crash logs for 30 days|Support asks for them.
7|dev|action|6|New icon set|Archived at the third try, No profiles for com.acme.app were found twice.
8|qa|observation|5|The pushToken test times out on the tablet too, a rerun passed|
9|dev|action|7|Fixed the blank screen after login|The session was read before the keychain was unlocked.
11|pm|decision|7|Crash logs are dropped after 7 days, the 30 days rule is gone|They filled the disk.
"""
DATABASE = """
1|dba|observation|5|Replica of orders lags 4 seconds behind|
2|dba|observation|6|Vacuum failed on orders_2024, lock timeout|
3|dba|observation|6|Replica of orders lags 11 seconds behind|
4|dba|observation|6|Nightly vacuum failed|orders_2024 again, lock timeout.
5|dba|action|5|Rewrote the index of customers|
6|dba|observation|7|Replica of orders is 31 seconds behind|
7|dba|observation|6|Vacuum failed a third time, on orders_2024|
8|dba|action|8|Vacuum runs after the export now and succeeds|The export held a lock on orders_2024 until five.
9|dba|action|4|Looked at the dashboards|
"""
SEARCH = """
1|dev|decision|8|Goal for the quarter: full-text search in the browser|
2|dev|action|5|Search ranking by title first|
3|dev|action|5|Docs for the importer|
4|dev|action|6|Tuned the search ranking for short queries|10,000 documents: 40 ms, index of 3 MB.
6|dev|action|5|search ranking: prefer recent pages|
7|dev|decision|9|Goal changes: search moves to the server, the browser index is too large|
8|dev|action|5|Search ranking ported to the server|
"""
TRAINING = """
1|ml|action|6|Run 7 started with batch 64|
2|ml|observation|6|Run 7 stopped: CUDA out of memory in the attention layer|
3|ml|action|6|Retried with batch 32|CUDA out of memory again, an hour later.
4|ml|observation|5|Weekly summary: run 7 stopped twice, CUDA out of memory|
5|ml|action|5|Cleaned the validation set|
6|ml|observation|6|Run 8 died, CUDA out of memory in the attention layer|
7|ml|action|8|Gradient checkpointing on|Run 9 finished the epoch with batch 64, memory stays at 30 GB.
"""
CLI = """
1|agent|action|5|Listed the open tickets|Error: unrecognized subcommand 'ready', used list instead.
2|agent|action|5|Wrote the parser|
3|agent|action|5|Closed two tickets|unrecognized subcommand 'ready' once more.
4|agent|action|6|Merged the parser|
5|agent|observation|5|Linter is not available in the sandbox|
6|agent|observation|5|The linter is still not available in this sandbox|
7|agent|observation|5|Linter not available, sandbox without network|
8|agent|action|4|Read the guide of the sandbox|
"""


def _entries(history: str) -> list[Entry]:
    found = []
    for seq, line in enumerate(history.strip().splitlines(), 1):
        cycle, role, kind, importance, action, content = line.split("|")
        found.append(
            Entry(
                id=f"e{seq}", seq=seq, cycle=int(cycle), time=WHEN, role=role, action=action, content=content,
                importance=int(importance), type=EntryType(kind), issues=find_references(action).issues,
            )
        )  # fmt: skip
    return found


def _told(history: str) -> list[Insight]:
    entries = _entries(history)
    return insights([entry for entry in entries if entry.importance > 4], others=entries)


def _about(history: str, *words: str) -> Insight:
    found = [each for each in _told(history) if all(w in f"{each.action} {each.content}" for w in words)]
    assert found, [f"{each.action} | {each.content}" for each in _told(history)]
    return found[0]


@pytest.mark.req("C7")
@pytest.mark.parametrize(
    ("history", "phrase", "cycles"),
    [
        (MOBILE, "No profiles for com.acme.app were found", "2, 4, 7"),
        (MOBILE, "oken test tim", "3, 5, 8"),
        (DATABASE, "acuum failed", "2, 4, 7"),
        (TRAINING, "CUDA out of memory", "2, 3, 6"),
        (CLI, "unrecognized subcommand 'ready'", "1, 3"),
        (CLI, "not available", "5, 6, 7"),
    ],
)
def test_a_complaint_that_comes_back_is_trouble_whatever_its_verb(
    history: str, phrase: str, cycles: str
) -> None:
    found = _about(history, phrase, "cycles")
    assert "trouble" in found.tags
    assert phrase in found.action
    assert f"Reported in cycles {cycles}." in found.content


@pytest.mark.req("C7")
def test_the_name_of_a_trouble_stands_in_an_entry() -> None:
    for history in (MOBILE, DATABASE, TRAINING, CLI):
        said = " ".join(f"{each.action} {each.content}" for each in _entries(history)).lower()
        for each in _told(history):
            if "trouble" in each.tags:
                name = each.action.split("“")[1].split("”")[0]
                assert name.lower() in said, each.action


@pytest.mark.req("C7")
def test_the_failed_verb_in_its_positive_form_ends_trouble_and_a_rerun_does_not() -> None:
    vacuum = _about(DATABASE, "acuum failed")
    assert vacuum.action.endswith("ended in cycle 8")
    assert "The export held a lock on orders_2024 until five" in vacuum.content
    assert _about(MOBILE, "oken test tim").action.endswith("open since cycle 3")
    assert _about(CLI, "not available").action.endswith("open since cycle 5")


@pytest.mark.req("C7")
def test_a_retelling_is_no_occurrence() -> None:
    found = _about(TRAINING, "CUDA out of memory")
    assert "in 3 cycles" in found.action or "in at least 3 cycles" in found.action


@pytest.mark.req("C7")
def test_what_is_named_later_is_not_called_unnamed() -> None:
    assert "Not named" not in _about(CLI, "not available").content
    assert "Not named" not in _about(TRAINING, "CUDA out of memory").content


@pytest.mark.req("C7")
def test_a_decision_that_was_dropped_does_not_hold() -> None:
    found = _about(MOBILE, "Crash logs are dropped")
    assert "It replaced “Keep crash logs for 30 days” (cycle 6, pm)" in found.content
    assert "Holds" not in found.content
    goal = _about(SEARCH, "Goal changes: search moves to the server")
    assert "replaced “Goal for the quarter: full-text search in the browser”" in goal.content


@pytest.mark.req("C7")
def test_the_same_subject_in_three_cycles_is_a_theme_and_a_rising_number_a_trend() -> None:
    theme = _about(SEARCH, "earch ranking", "cycles 2, 4, 6, 8")
    assert "theme" in theme.tags
    trend = _about(DATABASE, "4 → 11 → 31")
    assert "trend" in trend.tags
    assert trend.action.startswith("Reflection: Replica of orders rose from 4 to 31 between cycles 1 and 6")
    assert "cycle 6: Replica of orders is 31 seconds behind" in trend.content


@pytest.mark.req("C7")
def test_a_figure_is_no_lesson_and_a_cause_is_one() -> None:
    assert not [each for each in _told(SEARCH) if "40 ms" in each.action]
    assert "lesson" in _about(MOBILE, "The session was read before the keychain was unlocked").tags
    assert "keychain" not in _about(MOBILE, "No profiles").content
