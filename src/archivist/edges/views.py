"""Plain views of results, the same for every door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from archivist.audit.verdicts import Regression
    from archivist.bank import Bank
    from archivist.capture.results import ExtractResult, FinishedRun
    from archivist.lessons.service import AgeingResult
    from archivist.records import Verdict

View = dict[str, Any]


def finished_run_view(bank: Bank, done: FinishedRun) -> View:
    """Return what finishing a run did."""
    outcome = done.outcome
    return {
        "run": done.run,
        "events": done.events,
        "scenario": outcome.scenario.value,
        "status": outcome.status,
        "summary": outcome.summary,
        "error": outcome.error,
        "created": len(done.created),
        "updated": len(done.updated),
        "lessons": bank.lessons.views([*done.created, *done.updated]),
        **ageing_view(bank, done.aged),
        "verdicts": verdicts_view(done.verdicts),
        "regressions": [regression_view(regression) for regression in done.regressions],
    }


def extract_view(bank: Bank, learnt: ExtractResult) -> View:
    """Return what review findings taught."""
    return {
        "created": len(learnt.created),
        "updated": len(learnt.updated),
        "slight": learnt.slight,
        "lessons": bank.lessons.views([*learnt.created, *learnt.updated]),
        "skipped": list(learnt.skipped),
    }


def ageing_view(bank: Bank, aged: AgeingResult) -> View:
    """Return which lessons a run let fade or retired."""
    return {
        "faded": [view["id"] for view in bank.lessons.views(aged.faded)],
        "archived": [view["id"] for view in bank.lessons.views(aged.archived)],
        "was_counted": aged.was_counted,
    }


def verdicts_view(verdicts: Iterable[Verdict]) -> list[View]:
    """Return whether each lesson of a brief helped."""
    return [
        {"lesson": verdict.lesson, "effect": verdict.effect.value, "following": verdict.following.value}
        for verdict in verdicts
    ]


def regression_view(regression: Regression) -> View:
    """Return a finding that an earlier run had fixed."""
    return {
        "found": regression.found.description,
        "fixed": regression.fixed,
        "fixed_in": regression.fixed_in,
    }
