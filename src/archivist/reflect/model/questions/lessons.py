"""Ask what the next run should know: failures with what overcame them, and warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from archivist.reflect.model.questions import ModelQuestion


@dataclass(frozen=True, slots=True)
class ProposedLesson:
    """One lesson for the next agent that works on this project.

    kind: "remedy" when a later call of the record shows what made it work (after #…), else "warning".
    summary: one sentence: what fails, why, and what to do. Name the command, file or error in `backticks`.
    rule: "IF … THEN …", or empty.
    remedy: the exact command that worked, copied from the record; empty for a warning or an edit.
    events: the numbers of the events that show the failure, and of those that show what worked.
    importance: 0 to 1; see score_importance.
    refines: the id (m-012) of a known lesson that this one says better with the same remedy; empty for a
        warning, which takes no lesson's place.
    """

    kind: Literal["remedy", "warning"]
    summary: str
    events: list[int]
    rule: str = ""
    remedy: str = ""
    importance: float = 0.5
    refines: str = ""


@dataclass(frozen=True, slots=True)
class ProposedLessons:
    """The lessons of a run; none when it teaches nothing that another run needs."""

    lessons: list[ProposedLesson]


QUESTION = ModelQuestion(
    "lessons",
    6,
    "What did this run learn the hard way that the next agent on this project should know? At most three "
    "lessons: calls that failed for a reason of the project or its environment, why, and what overcame it; "
    "traps that cost many calls. Each lesson is about a call that says FAILED, and cites its number and that "
    "of the call which then worked. For example, `#4 `make tset` FAILED: no rule` and `#6 `make test` worked "
    "(after #4)` give: kind remedy, summary “`make tset` fails: there is no rule for it. Use `make test`.”, "
    "remedy `make test`, events 4 and 6. No praise, no advice that fits every project, nothing about bugs of "
    "the code that the run was writing. Whatever you name (commands, paths, errors, quotations, numbers) "
    "must stand in an event that you cite. What stands as (after #…) overcame that failure and can be a "
    "remedy, an edit of the file that it names too; where several edits lie in between, nothing can; "
    "what stands as (next) was only done next, and a warning "
    "may name it. A warning advises only what the record shows to have helped, or a check that failed with "
    "the same error. One failure without a remedy "
    "may be chance: warn only of what came again or of the environment. Do not repeat a known lesson; when "
    "you can say one better, with its reason and its remedy, name it in `refines`.",
    ProposedLessons,
    "create_candidate_lessons",
    "If in doubt call detect_duplicates and score_importance, then hand in by create_candidate_lessons.",
)
