"""Ask which sentences of the user's own messages are standing wishes, in whatever language."""

from __future__ import annotations

from dataclasses import dataclass

from archivist.reflect.model.questions import ModelQuestion


@dataclass(frozen=True, slots=True)
class FoundWish:
    """A sentence by which the user says how to work from now on.

    quote: the sentence, copied exactly from the message.
    event: the number of the message.
    is_standing: true when it holds for later runs too, false for a correction of this one.
    """

    quote: str
    event: int
    is_standing: bool = True


@dataclass(frozen=True, slots=True)
class FoundWishes:
    """The wishes of the user; none when the messages only ask for work."""

    wishes: list[FoundWish]


QUESTION = ModelQuestion(
    "wishes",
    1,
    "These are the messages that the user typed, in any language. Which sentences say how the user wants "
    "work to be done in later runs too: a style, a tool to use or avoid, something never to do, a "
    "correction of a habit? The task itself is none, nor is a question. Copy each sentence exactly as it "
    "stands.",
    FoundWishes,
)
