"""Commands that ask on a terminal which an agent does not have."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.rules import FailureKind
from archivist.reading.wording import advice, code, format_rule, quote_error
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, make_candidate


def mine_prompts(material: Material) -> list[Candidate]:
    """Say which command waits for an answer, and how it is kept from asking."""
    return [_lesson(material, case) for case in material.of_kind(FailureKind.PROMPT)]


def _lesson(material: Material, case: Case) -> Candidate:
    command = code("sudo" if case.first.failure.line.startswith("sudo:") else case.first.act.purpose)
    remedy = case.best_remedy()
    if remedy is None:
        said = quote_error(case.line, 90)
        return make_candidate(material, case, f"{command} asks on a terminal and dies without one ({said})")
    deed = advice(remedy)
    return make_candidate(
        material,
        case,
        f"{command} asks on a terminal and dies without one: {deed}",
        rule=format_rule(f"{command} is run without a terminal", deed),
        remedies=(remedy.text,),
        words=(case.first.act.purpose, "non-interactive"),
    )
