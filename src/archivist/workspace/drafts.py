"""Drafts: what a captured run offers to `save_memory`, and how sentences are taken out of what was said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from archivist.reading.wording import clip_words
from archivist.records import Category, Lesson, LessonType
from archivist.workspace.learnings import Learning
from archivist.workspace.topology import FileKind

LEAST_WEIGHT = 0.6
LONGEST_TITLE = 120
LONGEST_REASON = 320
LONGEST_MESSAGE = 4_000
_SHORTEST_SENTENCE = 25
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])|\n+")
_CATEGORIES = {
    Category.INFRA: "configuration",
    Category.TOOL_USAGE: "tooling",
    Category.PROVIDER_QUIRK: "integration",
    Category.TEST_STRATEGY: "testing",
    Category.BUGFIX_PATTERN: "debugging",
    Category.ANTI_PATTERN: "debugging",
    Category.PROMPTING: "convention",
    Category.HEURISTIC: "convention",
}


class SaveTrigger(StrEnum):
    """Why something is worth saving."""

    HARD_WON_FIX = "hard_won_fix"
    NON_OBVIOUS_SOLUTION = "non_obvious_solution"
    CONFLICT = "conflict"
    DECISION_MOMENT = "decision_moment"
    END_OF_SESSION = "end_of_session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Something worth saving, worded; `evidence` names the events or lessons that show it.

    `conflicts_with` is the file and line of the entry that it contradicts, `lesson` the lesson of the bank
    that it was made of.
    """

    kind: FileKind
    title: str
    text: str
    category: str
    tags: tuple[str, ...] = ()
    trigger: SaveTrigger
    evidence: tuple[str, ...] = ()
    scope: str = ""
    weight: float = LEAST_WEIGHT
    conflicts_with: str = ""
    lesson: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftContext:
    """What the workspace and the bank know: entries, every word of the documents, the run's own lessons."""

    learnings: tuple[Learning, ...] = ()
    words: frozenset[str] = frozenset()
    lessons: tuple[Lesson, ...] = ()
    scope: str = ""


def end_sentence(sentence: str) -> str:
    """Return a sentence with its full stop."""
    return sentence if sentence.endswith((".", "!", "…")) else f"{sentence}."


def message_sentences(message: str) -> Iterator[str]:
    """Yield the sentences of a message without list marks; what is too short to be one is left out."""
    for part in _SENTENCE.split(message[:LONGEST_MESSAGE]):
        sentence = " ".join(part.strip(' -*#>\t"').split())
        if len(sentence) >= _SHORTEST_SENTENCE and not sentence.startswith(("```", "|", "{", "<")):
            yield sentence


def draft_lesson(lesson: Lesson, known: DraftContext, trigger: SaveTrigger) -> Draft:
    """Word a lesson of the bank as a draft."""
    is_wish = lesson.type is LessonType.PREFERENCE
    text = lesson.summary if not lesson.rule or lesson.signature else f"{lesson.summary}\n\n{lesson.rule}"
    return Draft(
        kind=FileKind.LESSONS,
        title=clip_words(lesson.summary, LONGEST_TITLE),
        text=end_sentence(text) + (f"\n\n{lesson.detail}" if lesson.detail else ""),
        category="convention" if is_wish else _CATEGORIES[lesson.category],
        tags=lesson.tags,
        trigger=trigger,
        evidence=(lesson.short_id, *lesson.evidence.events[:4]),
        scope=known.scope,
        weight=min(0.85, lesson.importance),
        lesson=lesson.id,
    )
