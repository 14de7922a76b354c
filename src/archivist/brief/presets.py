"""The moments at which a run is told something, and what suits each."""

from __future__ import annotations

from enum import StrEnum

from archivist.config import BriefRules


class BriefPreset(StrEnum):
    """Who is told: an orchestrator at its start, a subagent before its call, a reviewer, a healer."""

    ORCHESTRATOR = "orchestrator"
    SUBAGENT = "subagent"
    REVIEWER = "reviewer"
    HEALER = "healer"


def rules_for_preset(
    rules: BriefRules,
    preset: BriefPreset | None,
    *,
    max_lessons: int | None = None,
    budget_tokens: int | None = None,
) -> BriefRules:
    """Return the rules for a moment: a subagent has one small job and is told about half as much.

    What is named for the moment itself counts as it is.
    """
    if preset is BriefPreset.SUBAGENT:
        rules = rules._replace(
            max_task_lessons=max(1, (rules.max_task_lessons + 1) // 2),
            budget_tokens=max(1, rules.budget_tokens // 2),
            max_candidates=min(1, rules.max_candidates),
        )
    if max_lessons is not None:
        rules = rules._replace(max_lessons=max_lessons, max_task_lessons=max_lessons)
    return rules if budget_tokens is None else rules._replace(budget_tokens=budget_tokens)
