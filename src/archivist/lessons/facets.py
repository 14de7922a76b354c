"""What a query asks of lessons: which of them it means, and which come first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from archivist.store.filters import (
    Condition,
    any_of,
    contains_item,
    contains_text,
    equals,
    not_equals,
    one_of,
    refuse_many,
)

if TYPE_CHECKING:
    from archivist.config import RecallRules
    from archivist.recall.query import Query

_DAY_S = 86_400


def facet_conditions(
    query: Query, runs_of_task: Sequence[str] = (), met_by_provider: Sequence[str] = ()
) -> Iterator[Condition]:
    """Yield the conditions on tags, tool, provider, task, phase, kind of error and repository.

    A task has the lessons that are for it and those that its runs met, and so has a provider; the ids of the
    latter are given. A lesson's phase is in the name of its command or in its tags, its error in its
    signature or in its tags.
    """
    if query.tags:
        refuse_many("tags", query.tags)
        yield any_of(*((contains_item("tags", tag),) for tag in query.tags))
    if query.tool:
        yield one_of("tool", dict.fromkeys((query.tool, *query.matching_tools)))
    if query.provider:
        yield any_of((equals("provider", query.provider),), (one_of("id", met_by_provider),))
    if query.task:
        met_in = ((contains_item("runs", run),) for run in runs_of_task)
        yield any_of((equals("task", query.task),), *met_in)
    if query.phase:
        yield any_of((contains_text("tool", query.phase),), (contains_text("tags", query.phase),))
    if query.error:
        error = query.error.strip().lower()
        yield any_of((contains_text("signature", f"|{error}:"),), (contains_item("tags", error),))
    for repo in sorted(query.other_repos):
        yield not_equals("repo", repo)


def score_record(
    importance: float,
    seen: datetime,
    tags: Sequence[str],
    asked: Sequence[str],
    *,
    now: datetime,
    rules: RecallRules,
) -> float:
    """Return the documented score: importance, recency by exponential decay, and overlap of tags."""
    age_days = max(0.0, (now - seen).total_seconds() / _DAY_S)
    overlap = len({*tags} & {*asked}) / len({*asked}) if asked else 0.0
    return (
        rules.archivist_importance * importance
        + rules.archivist_recency * math.pow(0.5, age_days / rules.half_life_days)
        + rules.archivist_relevance * overlap
    )
