"""Failures of any other kind that several runs of a project met."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.wording import code, format_rule, quote_error
from archivist.records import Category
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, describe_remedy, make_candidate

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

    Of failing code only runs of different tasks are witnesses: a task tried twice fails alike twice. What
    something started, made or set put right was not the code's fault, whatever the task.
    """
    # What goes away by itself is told as that, or not at all.
    if case.fleeting and not case.remedies:
        return False
    is_of_task = case.is_of_code and not case.best_remedy(RemedyKind.STEP, RemedyKind.COMMAND)
    often = case.tasks if is_of_task else case.runs
    if any(met.is_of_task for met in case.met):
        return often >= _MANY and len(case.first.failure.signature.words) >= _TELLING_WORDS
    return often >= _OFTEN


def _lesson(material: Material, case: Case) -> Candidate:
    act = case.first.act
    remedy = case.best_remedy()
    told = quote_error(case.failing_example(remedy)[1], 120)
    what = code(act.purpose) if act.steps else f"the {act.event.tool} tool"
    done = describe_remedy(case, remedy) if remedy else ""
    return make_candidate(
        material,
        case,
        f"{material.name}: {what} keeps failing: {told}" + (f": {done}" if done else ""),
        rule=format_rule(f"{what} fails with “{told}”", done) if done else "",
        remedies=(remedy.text,) if remedy else (),
        category=Category.TOOL_USAGE if done else Category.ANTI_PATTERN,
        words=(act.purpose,),
    )
