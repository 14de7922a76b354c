"""Calls that fail and go well with nothing done in between: tests that are flaky, moments that pass."""

from __future__ import annotations

from dataclasses import replace

from archivist.lessons.candidate import Candidate
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.run import CODE_KINDS
from archivist.reading.wording import code, format_rule, general_command, is_informative, quote_error
from archivist.records import Category
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, make_candidate

_OFTEN = 2
_LEAST = 0.6
# What is missing, forbidden or misspelt does not come by itself: somebody else put it right meanwhile.
_BY_CHANCE = (CODE_KINDS | {FailureKind.NETWORK, FailureKind.TIMEOUT}) - {FailureKind.SYNTAX}


def mine_flaky(material: Material) -> list[Candidate]:
    """Say which call had both outcomes with nothing done between; of what is no test, once is no lesson."""
    return [
        _flaky_test_lesson(material, case) if case.first.act.is_test else _flaky_call_lesson(material, case)
        for case in material.cases
        if is_transient(case) and (case.first.act.is_test or _is_worth_telling(case))
    ]


def is_transient(case: Case) -> bool:
    """Say whether a failure went away by itself, and no run knows what else makes it go."""
    is_cured = any(remedy.way is not RemedyKind.EDIT for remedy, _ in case.remedies)
    return bool(case.fleeting) and not is_cured and case.kind in _BY_CHANCE and bool(case.first.act.steps)


def _is_worth_telling(case: Case) -> bool:
    command = general_command(case.first.act.event.text)
    return case.fleeting >= _OFTEN and is_informative(command) and "<url>" not in command


def _flaky_test_lesson(material: Material, case: Case) -> Candidate:
    command = code(general_command(case.first.act.event.text))
    told = quote_error(case.line, 80)
    found = make_candidate(
        material,
        case,
        f"{material.name}: {command} passes and fails with nothing changed (“{told}”): run it again",
        rule=format_rule(f"{command} fails with “{told}”", "run it again before looking for a cause"),
        category=Category.TEST_STRATEGY,
        words=("flaky", case.first.act.purpose),
        is_answer=True,
    )
    return replace(found, importance=max(found.importance, _LEAST))


def _flaky_call_lesson(material: Material, case: Case) -> Candidate:
    command = code(general_command(case.first.act.event.text))
    told = quote_error(case.line, 80)
    return make_candidate(
        material,
        case,
        f"{material.name}: {command} fails now and then ({told}): run it again",
        rule=format_rule(f"{command} fails with “{told}”", "run it again before anything else"),
        words=("flaky", case.first.act.purpose),
        is_answer=True,
    )
