"""Ask for the insights of a stream of entries, with the words of the memory architecture's document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from archivist.reflect.model.questions import STREAM_GROUND, ModelQuestion


@dataclass(frozen=True, slots=True)
class ProposedInsight:
    """One high-level insight.

    kind: what it is about. title: a few words. content: what it is, its evidence and what follows from it.
    entries: the numbers of the entries that show it, at least two.
    importance: 9, or 10 when it changes what should be done next.
    """

    kind: Literal["pattern", "lesson", "theme", "dynamics", "strategy"]
    title: str
    content: str
    entries: list[int]
    importance: int = 9
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProposedInsights:
    """Three to five insights; fewer when the entries show no more."""

    insights: list[ProposedInsight]


QUESTION = ModelQuestion(
    "insights",
    2,
    "Given these recent memories, generate 3-5 high-level insights. Focus on:\n- Patterns you notice\n"
    "- Lessons learned\n- Emerging themes\n- Cross-role dynamics\n- Strategic implications\n"
    "What was found by counting is told anyway: add what it does not say.",
    ProposedInsights,
    ground=STREAM_GROUND,
)
