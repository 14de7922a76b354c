"""Options that one command refuses, one after the other: it may take none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from archivist.reading.calls import ToolCall
from archivist.reading.commands import step_purpose
from archivist.reading.outcomes import has_step_worked
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import Step

# Stands for the option in the key of a command that refused several.
ANY_OPTION = "<options>"

if TYPE_CHECKING:
    from archivist.reading.run import ObservedFailure


def by_refusing_command(
    met: Sequence[ObservedFailure], calls: Sequence[ToolCall], project: str
) -> Iterator[ObservedFailure]:
    """Yield refused options once more under the name of the command, with an option that it took.

    Each option alone is another failure, though all are refused for the same reason.
    """
    for each in met:
        step = refusing_step(each)
        if step is not None:
            name = _refuser_name(step)
            taken = next(
                (
                    flag
                    for act in calls
                    for other in act.steps
                    if _refuser_name(other) == name and has_step_worked(act, other)
                    for flag in other.flags
                ),
                "",
            )
            key = f"{project}|{K.USAGE}:{name.lower()}:{ANY_OPTION}"
            cure = each.cure if each.cure and each.cure.remedy.way is RemedyKind.COMMAND else None
            # Whichever option was refused, the same call may have worked.
            cure = replace(cure, remedy=cure.remedy._replace(instead="")) if cure else None
            yield replace(each, key=key, cure=cure, accepted=taken)


def _refuser_name(step: Step) -> str:
    """Return what a step calls; a script by its path."""
    path = next((word.value for word in step.words[:2] if "/" in word.value), "")
    return path if step_purpose(step).endswith("<script>") and path else step_purpose(step)


def refusing_step(met: ObservedFailure) -> Step | None:
    """Return the step that was given an option which it refused."""
    option = met.failure.subject
    if met.failure.kind is not K.USAGE or not option.startswith("-"):
        return None
    steps = [step for step in met.act.steps if any(flag.partition("=")[0] == option for flag in step.flags)]
    return steps[0] if len(steps) == 1 else None
