"""What the user corrects or wishes for good."""

from __future__ import annotations

import pytest

from archivist.records import LessonType
from archivist.reflect.miners.wishes import wishes

from .scripted import learnt, one, run, user

TASK = user("Fix the parser. Always be careful.")


def test_a_standing_wish_is_a_preference() -> None:
    lesson = one(run(TASK, user("Good. Please always run ruff before committing.")))
    assert lesson.type is LessonType.PREFERENCE
    assert lesson.summary == "The user's wish: always run ruff before committing"
    assert lesson.importance == 0.9
    assert lesson.events == ("run-1#1",)


def test_the_task_itself_is_no_wish() -> None:
    assert learnt(run(TASK)) == []


@pytest.mark.parametrize(
    "message",
    [
        "No, use pnpm instead of npm.",
        "don't use mocks in the integration tests",
        "Stop adding comments to every line.",
        "From now on, write commit messages in English.",
        "We use uv for everything here",
        "I prefer small commits.",
    ],
)
def test_corrections_and_preferences_are_heard(message: str) -> None:
    assert list(wishes(message))


@pytest.mark.parametrize(
    "message",
    [
        "Thanks, that works.",
        "Why did you not use pnpm?",
        "Don't push yet.",
        "continue",
        "<system-reminder>always read the file first</system-reminder>",
        "Please look at the failing test in parser.py",
        "always " + "x" * 2000,
    ],
)
def test_other_talk_is_not(message: str) -> None:
    assert not list(wishes(message))
