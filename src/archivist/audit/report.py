"""Sum verdicts up: per lesson, overall, and over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from archivist.records import Effect, Verdict


@dataclass(frozen=True, slots=True)
class Line:
    """How one lesson, or all of them, did."""

    lesson: str
    summary: str
    helpful: int
    ineffective: int

    @property
    def share(self) -> float | None:
        """Return the helpful share, or None before the first verdict."""
        judged = self.helpful + self.ineffective
        return self.helpful / judged if judged else None


@dataclass(frozen=True, slots=True)
class Report:
    """Verdicts per lesson, worst first, per month, and in all."""

    lessons: tuple[Line, ...]
    months: tuple[Line, ...]
    total: Line


def report(verdicts: Iterable[Verdict], summaries: Mapping[str, tuple[str, str]]) -> Report:
    """Count verdicts; `summaries` gives each lesson's short id and words."""
    judged = [verdict for verdict in verdicts if verdict.effect in (Effect.HELPFUL, Effect.INEFFECTIVE)]
    by_lesson: dict[str, list[Verdict]] = {}
    by_month: dict[str, list[Verdict]] = {}
    for verdict in judged:
        by_lesson.setdefault(verdict.lesson, []).append(verdict)
        by_month.setdefault(f"{verdict.time:%Y-%m}", []).append(verdict)
    lessons = [_line(*summaries.get(lesson, (lesson, "")), group) for lesson, group in by_lesson.items()]
    lessons.sort(key=lambda line: (line.share or 0.0, -line.ineffective, line.lesson))
    months = [_line(month, "", group) for month, group in sorted(by_month.items())]
    return Report(tuple(lessons), tuple(months), _line("all", "", judged))


def _line(name: str, summary: str, verdicts: list[Verdict]) -> Line:
    helpful = sum(verdict.effect is Effect.HELPFUL for verdict in verdicts)
    return Line(name, summary, helpful, len(verdicts) - helpful)
