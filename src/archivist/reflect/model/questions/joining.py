"""Ask which lessons say the same, and what several of them have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from archivist.reflect.model.questions import ModelQuestion


@dataclass(frozen=True, slots=True)
class JoinedLesson:
    """One lesson in the place of several.

    kind: "same" when they say the same in other words, "general" when one rule stands behind all of them.
    lessons: their ids, at least two; at least three for a general one.
    summary: one sentence that holds for each of them. rule: "IF … THEN …", or empty.
    """

    kind: Literal["same", "general"]
    lessons: list[str]
    summary: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class JoinedLessons:
    """The groups that were found; none when every lesson says something of its own."""

    groups: list[JoinedLesson]


QUESTION = ModelQuestion(
    "joining",
    1,
    "These are lessons about one project. Which of them say the same, so that one would do? And does one "
    "general rule stand behind three or more of them? Use only commands, files and names that the lessons "
    "have. Different remedies are different lessons.",
    JoinedLessons,
)
