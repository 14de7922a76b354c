"""Failures of any other kind that several runs of a project met."""

from __future__ import annotations

from archivist.records import Category
from archivist.reflect.candidates import Candidate
from archivist.reflect.cases import Case
from archivist.reflect.kinds import FailureKind
from archivist.reflect.miners.material import Material, candidate
from archivist.reflect.wording import advice, code, rule, saying

# Of the other kinds the miner of the kind has the last word.
_KINDS = (
    FailureKind.ATTRIBUTE,
    FailureKind.TYPE_ERROR,
    FailureKind.VALUE,
    FailureKind.TEST_FAILURE,
    FailureKind.PROVIDER,
    FailureKind.CRASH,
    FailureKind.OTHER,
)
_OFTEN = 2
_MANY = 3
_TELLING_WORDS = 4


def mine_recurring(material: Material) -> list[Candidate]:
    """Say what a project's runs keep meeting; a failure of one run alone is the task's own affair."""
    return [_lesson(material, case) for case in material.of_kind(*_KINDS) if _is_recurring(case)]


def _is_recurring(case: Case) -> bool:
    """Say whether several runs met it; what their own scripts brought out must be telling and met by more.

    Of failing code only runs of different tasks are witnesses: a task tried twice fails alike twice.
    """
    often = case.tasks if case.is_of_code else case.runs
    if any(met.is_of_task for met in case.met):
        return often >= _MANY and len(case.first.failure.signature.words) >= _TELLING_WORDS
    return often >= _OFTEN


def _lesson(material: Material, case: Case) -> Candidate:
    act = case.first.act
    told = saying(case.line, 120)
    remedy = case.best()
    what = code(act.purpose) if act.steps else f"the {act.event.tool} tool"
    deed = advice(remedy) if remedy else ""
    return candidate(
        material,
        case,
        f"{material.name}: {what} keeps failing: {told}" + (f": {deed}" if deed else ""),
        rule=rule(f"{what} fails with “{told}”", deed) if deed else "",
        remedies=(remedy.text,) if remedy else (),
        category=Category.ANTI_PATTERN if not deed else Category.TOOL_USAGE,
        words=(act.purpose,),
    )
