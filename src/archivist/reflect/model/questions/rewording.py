"""Ask for better words of a lesson that runs ignored or followed in vain."""

from __future__ import annotations

from dataclasses import dataclass

from archivist.reflect.model.questions import ModelQuestion


@dataclass(frozen=True, slots=True)
class RewordedLesson:
    """The same lesson in words that an agent will heed.

    summary: one sentence: when it applies, what goes wrong, what to do instead.
    rule: "IF … THEN …".
    """

    summary: str
    rule: str = ""


QUESTION = ModelQuestion(
    "rewording",
    1,
    "Agents were given this lesson, and it did not help for the reason below. Say the same in clearer "
    "words: begin with the situation in which an agent must think of it, then what to do. Add no fact, "
    "command or name that the lesson does not have; leave none out that an agent needs.",
    RewordedLesson,
)
