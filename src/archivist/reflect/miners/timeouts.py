"""Commands that did not end in time, and what was run in their place."""

from __future__ import annotations

import re

from archivist.lessons.candidate import Candidate
from archivist.reading.rules import FailureKind
from archivist.reading.wording import advice, code, format_rule, general_command
from archivist.records import Category
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, make_candidate

_OFTEN = 2
_KILLED = re.compile(r"SIGKILL|[Kk]illed|out of memory|OOM")


def mine_timeouts(material: Material) -> list[Candidate]:
    """Say which command is too heavy as it stands."""
    found = material.of_kind(FailureKind.TIMEOUT)
    found += [case for case in material.of_kind(FailureKind.CRASH) if _KILLED.search(case.first.failure.line)]
    return [
        _lesson(material, case)
        for case in found
        if case.first.act.steps and (case.remedies or _is_sure(case))
    ]


def _is_sure(case: Case) -> bool:
    """Say whether it is the command, not the moment: more than once, and no mere look."""
    is_often = case.runs >= _OFTEN or len(case.met) >= _OFTEN
    return is_often and not case.fleeting and not case.first.act.is_look


def _lesson(material: Material, case: Case) -> Candidate:
    act = case.first.act
    command = code(general_command(act.event.text))
    took = (
        f" after {round(act.event.duration_s, -1):.0f} s"
        if act.event.duration_s and act.event.duration_s >= 10
        else ""
    )
    ended = "timed out" if case.kind is FailureKind.TIMEOUT else "was killed"
    remedy = case.best_remedy()
    deed = advice(remedy) if remedy else ""
    if not deed and case.kind is FailureKind.TIMEOUT:
        deed = "run a part of it, or in the background with its output in a file"
    return make_candidate(
        material,
        case,
        f"{material.name}: {command} {ended}{took}" + (f": {deed}" if deed else ""),
        rule=format_rule(f"{command} is to be run in {material.name}", deed) if deed else "",
        remedies=(remedy.text,) if remedy else (),
        category=Category.TEST_STRATEGY if act.is_test else Category.TOOL_USAGE,
        words=("timeout", act.purpose),
    )
