"""Files that runs edit over and over and put back again."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.calls import ToolCall
from archivist.reading.run import thrashed_files
from archivist.reading.wording import clip_words, code, format_rule, tags
from archivist.records import Category, LessonType, Scope
from archivist.reflect.miners.material import Material

_LEAST_RUNS = 2
_IMPORTANCE = 0.45


def mine_thrashing(material: Material) -> list[Candidate]:
    """Say which file more than one run could not get right; once it may have been the task."""
    before = [run.digest.get("thrashed") or () for run in material.past.runs_of(material.project)]
    found = []
    for file, acts in thrashed_files(material.reading).items():
        runs = 1 + sum(file in files for files in before)
        if runs >= _LEAST_RUNS:
            found.append(_lesson(material, file, acts, runs))
    return found


def _lesson(material: Material, file: str, acts: tuple[ToolCall, ...], runs: int) -> Candidate:
    deed = "read it whole and plan the change before the first edit"
    return Candidate(
        key=f"{material.project}|thrashing:{file}",
        summary=clip_words(
            f"{material.name}: {runs} runs edited {code(file)} over and over and put it back: {deed}"
        ),
        rule=format_rule(f"{code(file)} of {material.name} is to be changed", deed),
        type=LessonType.ANTI_PATTERN,
        category=Category.ANTI_PATTERN,
        scope=Scope.REPO,
        repo=material.project,
        tags=tags("thrashing", file),
        importance=_IMPORTANCE,
        events=tuple(dict.fromkeys(act.event.id for act in acts))[:6],
    )
