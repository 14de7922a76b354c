"""What is said of six whole histories: all that a careful reader would say, and nothing untrue."""

from __future__ import annotations

import pytest

from archivist import Bank
from archivist.stream.insight_text import Insight
from archivist.stream.insights import insights
from tests.stream.histories import HISTORIES, History


def _holding(found: list[Insight], words: tuple[str, ...]) -> list[Insight]:
    return [each for each in found if all(word in f"{each.action}. {each.content}" for word in words)]


@pytest.mark.req("C7")
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_a_history_is_told_as_a_careful_reader_would(history: History) -> None:
    found = insights(history.entries())
    told = [each for each in found if {"blocker", "trouble"} & set(each.tags)]
    expected = [*history.open, *history.ended, *history.troubles]
    for words in expected:
        assert _holding(told, words), (words, [each.action for each in found])
    assert len(told) == len(expected), [each.action for each in told]
    for words in history.ended:
        assert all("ended in cycle" in each.action for each in _holding(told, words))
    for words in (*history.open, *history.troubles):
        assert not any("ended in cycle" in each.action for each in _holding(told, words))
    waiting = [each for each in found if "waiting" in each.tags]
    assert len(waiting) == len(history.waits)
    for words in history.waits:
        assert _holding(waiting, words)
    for each in found:
        assert not [word for word in history.never if word in each.action], each.action


@pytest.mark.req("C7")
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_only_what_is_still_in_the_way_reaches_core(bank: Bank, history: History) -> None:
    for entry in history.entries():
        bank.stream.log(
            entry.action,
            content=entry.content,
            cycle=entry.cycle,
            role=entry.role,
            importance=entry.importance,
            type=entry.type,
        )
    bank.stream.reflect("by hand")
    blockers = bank.core.view().status.blockers
    assert len(blockers) == len(history.core)
    for words, blocker in zip(history.core, blockers, strict=True):
        assert all(word in blocker for word in words)
    assert bank.proposals.list() == []
