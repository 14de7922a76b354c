"""Calls that fail and go well with nothing done in between: tests that are flaky, moments that pass."""

from __future__ import annotations

from dataclasses import replace

from archivist.lessons.candidate import Candidate
from archivist.reading.failure_kinds import FailureKind
from archivist.reading.phrases import is_telling
from archivist.reading.remedies import Way
from archivist.reading.run import CODE_KINDS
from archivist.reading.wording import code, named, rule, saying
from archivist.records import Category
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, candidate

_OFTEN = 2
_LEAST = 0.6
# What is missing, forbidden or misspelt does not come by itself: somebody else put it right meanwhile.
_BY_CHANCE = (CODE_KINDS | {FailureKind.NETWORK, FailureKind.TIMEOUT}) - {FailureKind.SYNTAX}


def mine_flaky(material: Material) -> list[Candidate]:
    """Say which call had both outcomes with nothing done between; of what is no test, once is no lesson."""
    return [
        _of_test(material, case) if case.first.act.is_test else _of_moment(material, case)
        for case in material.cases
        if is_fleeting(case) and (case.first.act.is_test or _is_worth(case))
    ]


def is_fleeting(case: Case) -> bool:
    """Say whether a failure went away by itself, and no run knows what else makes it go."""
    is_cured = any(remedy.way is not Way.EDIT for remedy, _ in case.remedies)
    return bool(case.fleeting) and not is_cured and case.kind in _BY_CHANCE and bool(case.first.act.steps)


def _is_worth(case: Case) -> bool:
    command = named(case.first.act.event.text)
    return case.fleeting >= _OFTEN and is_telling(command) and "<url>" not in command


def _of_test(material: Material, case: Case) -> Candidate:
    command = code(named(case.first.act.event.text))
    told = saying(case.line, 80)
    found = candidate(
        material,
        case,
        f"{material.name}: {command} passes and fails with nothing changed (“{told}”): run it again",
        rule=rule(f"{command} fails with “{told}”", "run it again before looking for a cause"),
        category=Category.TEST_STRATEGY,
        words=("flaky", case.first.act.purpose),
        is_answer=True,
    )
    return replace(found, importance=max(found.importance, _LEAST))


def _of_moment(material: Material, case: Case) -> Candidate:
    command = code(named(case.first.act.event.text))
    told = saying(case.line, 80)
    return candidate(
        material,
        case,
        f"{material.name}: {command} fails now and then ({told}): run it again",
        rule=rule(f"{command} fails with “{told}”", "run it again before anything else"),
        words=("flaky", case.first.act.purpose),
        is_answer=True,
    )
