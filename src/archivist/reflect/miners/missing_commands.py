"""Commands that are not there, and what brings or replaces them."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.wording import advice, code, format_rule
from archivist.records import Category
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, make_candidate


def mine_missing_commands(material: Material) -> list[Candidate]:
    """Say which command is missing; a name that no person would type is none.

    That something is missing is worth telling once a second run missed it, or with what brings it.
    """
    return [
        _lesson(material, case)
        for case in material.of_kind(FailureKind.MISSING_COMMAND)
        if case.first.failure.subject
        and not case.first.failure.subject.startswith(("_", "-", "$"))
        and (case.best_remedy() is not None or case.runs > 1)
    ]


def _lesson(material: Material, case: Case) -> Candidate:
    missing = code(case.first.failure.subject)
    remedy = case.best_remedy()
    if remedy is None:
        return make_candidate(
            material, case, f"{missing} is not installed where {material.name} runs", category=Category.INFRA
        )
    deed = advice(remedy)
    is_install = remedy.way is RemedyKind.INSTALL
    lacks = (
        f"{missing} is not found until it is installed" if is_install else f"{missing} is not installed here"
    )
    return make_candidate(
        material,
        case,
        f"{material.name}: {lacks}: {deed}",
        rule=format_rule(f"{missing} is needed in {material.name}", f"first {deed}" if is_install else deed),
        remedies=(remedy.text,),
        category=Category.INFRA,
        words=(case.first.failure.subject,),
    )
