"""What a brief is asked for: who it is for, what it is about, and how its text is shown.

Every door builds a `BriefRequest`, so that the same question has the same answer everywhere. The classes have
no postponed annotations: a hook makes them on its way, and compiling annotations from text costs it time.
"""

from enum import StrEnum
from typing import NamedTuple

from archivist.config import BriefRules


class BriefFormat(StrEnum):
    """The forms of a brief's text."""

    MARKDOWN = "markdown"
    KNOWN_ISSUES = "known-issues"
    YAML = "yaml"


class BriefPreset(StrEnum):
    """Who reads the brief: an orchestrator, a subagent, a reviewer, a healer."""

    ORCHESTRATOR = "orchestrator"
    SUBAGENT = "subagent"
    REVIEWER = "reviewer"
    HEALER = "healer"


class Audience(NamedTuple):
    """Who is briefed; an empty word means anybody."""

    domain: str = ""
    role: str = ""
    provider: str = ""
    tool: str = ""
    tags: tuple[str, ...] = ()


class BriefRequest(NamedTuple):
    """Everything that a caller can ask of a brief.

    `repo` is a name that somebody gave, `project` the exact name in the bank. A brief with a run is recorded.
    `preset` and `form` are words of BriefPreset and BriefFormat. Where `form` or `fence` is None,
    `presentation` decides; where a limit is None, the configuration does.
    """

    task: str = ""
    repo: str = ""
    project: str = ""
    run: str = ""
    domain: str = ""
    role: str = ""
    provider: str = ""
    tool: str = ""
    tags: tuple[str, ...] = ()
    preset: str | None = None
    form: str | None = None
    fence: bool | None = None
    max_lessons: int | None = None
    budget_tokens: int | None = None

    @property
    def audience(self) -> Audience:
        """Return who is briefed."""
        return Audience(self.domain, self.role, self.provider, self.tool, tuple(self.tags))

    @property
    def is_about_project(self) -> bool:
        """Say whether the brief is about the work on one project; otherwise it lists known issues."""
        return bool(self.task or self.repo or self.project) or self.preset == BriefPreset.SUBAGENT

    def presentation(self) -> tuple[BriefFormat, bool]:
        """Decide the form of the text, and whether it is fenced.

        A brief about a project goes into a prompt: markdown, between marks that keep its words from being
        mined again. YAML is read by programs, which the marks would disturb.
        """
        usual = BriefFormat.MARKDOWN if self.is_about_project else BriefFormat.KNOWN_ISSUES
        form = BriefFormat(self.form) if self.form else usual
        is_fenced = self.is_about_project and form is not BriefFormat.YAML
        return form, is_fenced if self.fence is None else self.fence

    def for_run(self, run: str) -> "BriefRequest":
        """Return the request of a run that starts; with a domain it asks for the domain's known issues."""
        return self._replace(run=run, task="" if self.domain else self.task)


def rules_for(request: BriefRequest, rules: BriefRules) -> BriefRules:
    """Return the limits of a brief: the request's own, else the preset's, else the configured ones."""
    if request.preset == BriefPreset.SUBAGENT:
        # A subagent has one small job: about half as much serves it.
        rules = rules._replace(
            max_task_lessons=max(1, (rules.max_task_lessons + 1) // 2),
            budget_tokens=max(1, rules.budget_tokens // 2),
            max_candidates=min(1, rules.max_candidates),
        )
    most = request.max_lessons
    if most is not None:
        rules = rules._replace(max_lessons=most, max_task_lessons=most)
    return rules if request.budget_tokens is None else rules._replace(budget_tokens=request.budget_tokens)
