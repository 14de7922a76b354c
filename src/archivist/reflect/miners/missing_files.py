"""Paths that are not there, and where the file is."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.wording import code, format_rule, is_scratch, relative_path
from archivist.records import Category
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, make_candidate

_OFTEN = 2


def mine_missing_files(material: Material) -> list[Candidate]:
    """Say where a file is that was looked for in the wrong place; a mere wrong guess is no lesson."""
    return [
        _lesson(material, case)
        for case in material.of_kind(FailureKind.MISSING_FILE)
        if case.best_remedy(RemedyKind.PATH) or (case.runs >= _OFTEN and _is_of_project(case, material))
    ]


def _is_of_project(case: Case, material: Material) -> bool:
    """Say whether the path is one of the project that no call of the run found after all."""
    subject = case.first.failure.subject.rstrip("/")
    if "/" not in subject or is_scratch(subject) or "::" in subject:
        return False
    return not any(subject in act.event.text for act in material.reading.acts if not act.has_failed)


def _lesson(material: Material, case: Case) -> Candidate:
    remedy = case.best_remedy(RemedyKind.PATH)
    wrong = code(relative_path(case.first.failure.subject))
    if remedy is None:
        return make_candidate(material, case, f"{material.name} has no {wrong}", category=Category.HEURISTIC)
    return make_candidate(
        material,
        case,
        f"{material.name}: {code(remedy.instead)} does not exist: it is {code(remedy.text)}",
        rule=format_rule(f"{code(remedy.instead)} is looked for", f"open {code(remedy.text)}"),
        remedies=(remedy.text,),
        category=Category.HEURISTIC,
        words=("path",),
    )
