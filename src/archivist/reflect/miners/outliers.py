"""Runs that took far more time or money than others of the project, when one thing explains it."""

from __future__ import annotations

from archivist.lessons.candidate import Candidate
from archivist.reading.history import TypicalRun
from archivist.reading.wording import clip_words, format_rule, quote_error, tags
from archivist.records import Category, Scope, Severity
from archivist.reflect.miners.material import Material

_LEAST_RUNS = 5
_TIMES = 3.0
_SHARE = 0.2
_LEAST_CALLS = 4
_IMPORTANCE = 0.4


def mine_outliers(material: Material) -> list[Candidate]:
    """Say what made a run dear; an outlier without a cause teaches nothing."""
    typical = material.past.typical_run(material.project)
    if typical is None or typical.runs < _LEAST_RUNS or not material.cases:
        return []
    much = _describe_excess(material, typical)
    worst = max(material.cases, key=lambda case: case.cost)
    if not much or worst.cost < max(_LEAST_CALLS, _SHARE * len(material.reading.acts)):
        return []
    told = quote_error(worst.line, 70)
    return [
        Candidate(
            key=f"{material.project}|outlier:{worst.key.split('|', 1)[1]}",
            summary=clip_words(
                f"{material.name}: a run took {much}; {worst.cost} of its {len(material.reading.acts)} calls "
                f"went into “{told}”"
            ),
            rule=format_rule(
                f"{material.name} fails with “{told}”", "settle it first, or work around it early"
            ),
            category=Category.HEURISTIC,
            scope=Scope.REPO,
            repo=material.project,
            tags=tags("cost", "outlier"),
            importance=_IMPORTANCE,
            severity=Severity.INFO,
            events=worst.events,
        )
    ]


def _describe_excess(material: Material, typical: TypicalRun) -> str:
    digest = material.reading.digest
    for name, middle, what in (
        ("cost_usd", typical.cost_usd, "the usual cost"),
        ("duration_s", typical.duration_s, "the usual time"),
    ):
        value = digest.get(name)
        if isinstance(value, int | float) and middle > 0 and value >= _TIMES * middle:
            return f"{value / middle:.1f} times {what}"
    return ""
