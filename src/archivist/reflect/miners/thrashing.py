"""Files that were edited over and over, or put back again and again."""

from __future__ import annotations

import re

from archivist.records import Category, LessonType, Scope
from archivist.reflect.acts import Act
from archivist.reflect.candidates import Candidate
from archivist.reflect.miners.material import Material
from archivist.reflect.phrases import is_scratch, relative
from archivist.reflect.wording import clipped, code, rule, tags

_SOURCE = re.compile(r"\.(?!(?:md|txt|patch|log|json|lock)$)\w{1,5}$")
_LEAST_EDITS = 8
_LEAST_RESTORED = 3
_MANY_EDITS = 15
_IMPORTANCE = 0.35


def mine_thrashing(material: Material) -> list[Candidate]:
    """Say which file a run could not get right: many edits that were put back, or very many that failed."""
    edits: dict[str, list[Act]] = {}
    restored: dict[str, int] = {}
    for act in material.reading.acts:
        for change in act.changes:
            file = relative(change.file)
            if is_scratch(change.file) or change.is_whole or not _SOURCE.search(file):
                continue
            edits.setdefault(file, []).append(act)
            restored[file] = restored.get(file, 0) + change.is_restored
    return [
        _lesson(material, file, acts, restored[file])
        for file, acts in edits.items()
        if len(acts) >= _LEAST_EDITS
        and (restored[file] >= _LEAST_RESTORED or _failed_between(material, acts) >= _MANY_EDITS)
    ]


def _failed_between(material: Material, acts: list[Act]) -> int:
    first, last = acts[0].at, acts[-1].at
    return sum(act.has_failed for act in material.reading.acts[first : last + 1])


def _lesson(material: Material, file: str, acts: list[Act], restored: int) -> Candidate:
    back = f" and put back {restored} times" if restored else ""
    return Candidate(
        key=f"{material.project}|thrashing:{file}",
        summary=clipped(
            f"{material.name}: {code(file)} was edited {len(acts)} times{back} in one run: read it whole and plan the change first"
        ),
        rule=rule(
            f"{code(file)} of {material.name} is to be changed",
            "read it whole and plan the change before the first edit",
        ),
        type=LessonType.ANTI_PATTERN,
        category=Category.ANTI_PATTERN,
        scope=Scope.REPO,
        repo=material.project,
        tags=tags("thrashing", file),
        importance=_IMPORTANCE,
        events=tuple(dict.fromkeys(act.event.id for act in acts))[:6],
    )
