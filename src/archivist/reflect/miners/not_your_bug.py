"""Tests that fail in task after task, whatever was changed: not the new code's fault."""

from __future__ import annotations

import re

from archivist.lessons.candidate import Candidate
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.run import ObservedFailure, call_text
from archivist.reading.wording import clip_words, code, format_list, format_rule, quote_error
from archivist.records import Category, EpisodeStatus
from archivist.reflect.cases import Case
from archivist.reflect.miners.material import Material, make_candidate

_OFTEN = 2
_TEST_NAME = re.compile(r"\b(?:test_\w+|\w+_tests?|\w+[._](?:test|spec)\.\w+|Test[A-Z]\w+)\b")
_SHORTEST_SAYING = 18


def mine_not_your_bug(material: Material) -> list[Candidate]:
    """Say which test failure was there before: met in several tasks, or left by a finished run.

    What a step, an install, another way to run it or mere repetition overcame is told as that.
    """
    return [
        _lesson(material, case)
        for case in material.cases
        if case.is_of_code
        and case.first.act.is_test
        and _is_specific(case)
        and not _is_named_by_task(case, material.reading.episode.task)
        and _is_preexisting(case, material)
    ]


def _is_named_by_task(case: Case, task: str) -> bool:
    """Say whether the task names the failing test or its file: then it is what the run is to mend."""
    told = {name for met in case.met for name in _TEST_NAME.findall(_words(met))}
    return any(name in told for name in _TEST_NAME.findall(task))


def _words(met: ObservedFailure) -> str:
    failure = met.failure
    return " ".join((failure.line, *failure.signature.words, *failure.files, met.act.event.output))


def _is_specific(case: Case) -> bool:
    """Say whether the failure is told apart from any other failing test."""
    return bool(case.first.failure.signature.words)


def _is_preexisting(case: Case, material: Material) -> bool:
    if _is_overcome(case, material):
        return False
    # What fails first and goes well after the change is what the task was about.
    is_mended = any(met.is_of_task or met.cure for met in case.met)
    # The same task tried twice shows the same failure, and it may be the one to mend.
    if case.tasks >= _OFTEN and (case.untouched or case.remedies or not is_mended):
        return True
    if is_mended:
        return False
    return _was_left_failing(material) and len(_quote_case(case)) > _SHORTEST_SAYING


def _is_overcome(case: Case, material: Material) -> bool:
    """Say whether anything but mending the project makes it go: then that is to be told, and nobody's bug."""
    if case.fleeting or any(remedy.way is not RemedyKind.EDIT for remedy, _ in case.remedies):
        return True
    calls = {call_text(met.act) for met in case.met}
    return any(material.past.has_passed(material.project, case.key, call) for call in calls)


def _was_left_failing(material: Material) -> bool:
    """Say whether the run finished its task and let the failure be, after another test had passed."""
    if material.reading.episode.status is not EpisodeStatus.SUCCESS:
        return False
    return any(act.is_test and not act.has_failed for act in material.reading.acts)


def _lesson(material: Material, case: Case) -> Candidate:
    failure = case.first.failure
    test = _failing_test(case)
    where = (
        f"tests under {format_list([code(each) for each in case.places[:2]])}" if case.places else "its tests"
    )
    remedy = case.best_remedy(RemedyKind.EDIT)
    told = _quote_case(case, remedy)
    is_sure = case.tasks >= _OFTEN
    since = "before any change" if case.untouched else "in several runs" if is_sure else "in a finished run"
    is_told = remedy is not None and remedy.text != "edit"
    deed = f"; {remedy.text.replace('change', 'changing', 1)} helps" if remedy and is_told else ""
    verdict = "not your bug" if is_sure else "likely not your bug"
    what = f"{code(test)} fails" if test else f"{where} fail"
    because = f" (“{told}”)" if len(told) > _SHORTEST_SAYING else ""
    return make_candidate(
        material,
        case,
        f"{material.name}: {what} {since}{because}: {verdict}{deed}",
        rule=format_rule(f"{what} in {material.name}{because}", "do not look for the cause in your change"),
        remedies=(remedy.text,) if remedy else (),
        category=Category.TEST_STRATEGY,
        words=("tests", "not-your-bug", failure.subject),
        is_answer=is_sure,
    )


def _quote_case(case: Case, remedy: Remedy | None = None) -> str:
    return clip_words(quote_error(case.failing_example(remedy)[1], 200).split(". ", 1)[0], 100)


def _failing_test(case: Case) -> str:
    """Return the one test that fails, when the failure is of one test."""
    first = case.first.failure.signature.words[0]
    return first if case.kind is FailureKind.TEST_FAILURE and first.startswith("test") else ""
