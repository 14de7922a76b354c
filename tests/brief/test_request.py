"""A brief's form and fence are decided by its request alone."""

from __future__ import annotations

from typing import Any

import pytest

from archivist.brief.select import BriefFormat, BriefPreset, BriefRequest, rules_for
from archivist.config import BriefRules


@pytest.mark.parametrize(
    ("fields", "form", "is_fenced"),
    [
        ({}, "known-issues", False),
        ({"domain": "code", "role": "maker"}, "known-issues", False),
        ({"preset": "reviewer"}, "known-issues", False),
        ({"task": "Fix it"}, "markdown", True),
        ({"repo": "shop"}, "markdown", True),
        ({"project": "shop"}, "markdown", True),
        ({"preset": "subagent"}, "markdown", True),
        ({"task": "Fix it", "form": "yaml"}, "yaml", False),
        ({"task": "Fix it", "form": "known-issues"}, "known-issues", True),
        ({"task": "Fix it", "fence": False}, "markdown", False),
        ({"form": "yaml", "fence": True}, "yaml", True),
        ({"form": BriefFormat.MARKDOWN}, "markdown", False),
    ],
)
def test_form_and_fence_follow_from_what_is_asked(fields: dict[str, Any], form: str, is_fenced: bool) -> None:
    assert BriefRequest(**fields).presentation() == (form, is_fenced)


def test_a_run_with_a_domain_starts_with_its_known_issues() -> None:
    started = BriefRequest(task="Fix it", domain="code", role="maker").for_run("r-1")
    assert (started.run, started.task, started.is_about_project) == ("r-1", "", False)
    assert BriefRequest(task="Fix it").for_run("r-1").task == "Fix it"
    assert BriefRequest(task="Fix it", domain="code", repo="shop").for_run("r-1").is_about_project


def test_the_audience_is_hashable_whatever_the_tags_are_given_as() -> None:
    tags: Any = ["sql"]
    assert {BriefRequest(role="maker", tags=tags).audience} == {BriefRequest(role="maker", tags=("sql",))}


def test_limits_come_from_the_request_then_the_preset_then_the_rules() -> None:
    rules = BriefRules(max_task_lessons=5, budget_tokens=400, max_candidates=2)
    assert rules_for(BriefRequest(), rules) == rules
    halved = rules_for(BriefRequest(preset=BriefPreset.SUBAGENT), rules)
    assert (halved.max_task_lessons, halved.budget_tokens, halved.max_candidates) == (3, 200, 1)
    named = rules_for(BriefRequest(preset="subagent", max_lessons=9, budget_tokens=50), rules)
    assert (named.max_lessons, named.max_task_lessons, named.budget_tokens) == (9, 9, 50)
