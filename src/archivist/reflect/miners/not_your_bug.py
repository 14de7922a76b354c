"""Tests that fail before anything of the project was changed, or in run after run: not the new code's fault."""

from __future__ import annotations

from archivist.records import Category
from archivist.reflect.candidates import Candidate
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, candidate
from archivist.reflect.remedies import Way
from archivist.reflect.wording import advice, code, listed, rule, saying

_OFTEN = 2


def mine_not_your_bug(material: Material) -> list[Candidate]:
    """Say which test failure was there before: untouched and never mended, or met by several runs."""
    return [
        _lesson(material, case)
        for case in material.cases
        if case.is_of_code and case.first.act.is_test and _is_old(case, material)
    ]


def _is_old(case: Case, material: Material) -> bool:
    if case.runs >= _OFTEN:
        return True
    untouched = [met for met in case.met if met.is_untouched]
    if not untouched or case.first.cure:
        return False
    # A test that fails first and passes after the change is what the task was about.
    later = [act for act in material.reading.acts if act.at > untouched[-1].act.at and act.is_test]
    return not any(act.purpose == untouched[-1].act.purpose and not act.has_failed for act in later)


def _lesson(material: Material, case: Case) -> Candidate:
    failure = case.first.failure
    told = saying(failure, 100)
    where = f"tests under {listed([code(each) for each in case.places[:2]])}" if case.places else "its tests"
    remedy = case.best(Way.EDIT, Way.INSTALL)
    since = "fail before any change" if case.untouched else f"failed in {case.runs} runs"
    deed = f"; {advice(remedy)} if they are needed" if remedy and remedy.way is Way.INSTALL else ""
    if remedy and remedy.way is Way.EDIT and remedy.text != "edit":
        deed = f"; {remedy.text.replace('change', 'changing', 1)} helps"
    return candidate(
        material,
        case,
        f"{material.name}: {where} {since} (“{told}”): not your bug{deed}",
        rule=rule(
            f"{where} of {material.name} fail with “{told}”", "do not look for the cause in your change"
        ),
        remedies=(remedy.text,) if remedy else (),
        category=Category.TEST_STRATEGY,
        words=("tests", "not-your-bug", failure.subject),
        is_answer=True,
    )
