"""How much a candidate matters, from what is known of it."""

from __future__ import annotations

from archivist.reflect.cases import Case

PREFERENCE = 0.9
PROVIDER = 0.75

_BASE = 0.3
_PER_RUN = 0.12
_MOST_RUNS = 0.36
_REMEDY = 0.15
_ENVIRONMENT = 0.1
_COSTLY = 0.05
_MOST = 0.95


def importance(case: Case, *, has_remedy: bool) -> float:
    """Weigh a failure: 0.3, and more for each thing that makes it worth telling.

    Each further run that met it adds 0.12, up to 0.36: what a project met often it meets again. A known
    remedy adds 0.15, for without one a lesson only warns. A fault of the surroundings adds 0.1, since it
    awaits every task. Five calls spent on it add 0.05, fifteen 0.1. What a user wishes weighs 0.9, what
    tells one provider from another 0.75, whatever the counts.
    """
    weight = _BASE + min(_MOST_RUNS, _PER_RUN * (case.runs - 1))
    weight += _REMEDY if has_remedy else 0.0
    weight += _ENVIRONMENT if case.kind.is_environment else 0.0
    weight += _COSTLY * ((case.cost >= 5) + (case.cost >= 15))
    return round(min(_MOST, weight), 3)
