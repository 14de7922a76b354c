"""Options that one command refuses, one after the other: it may take none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from archivist.reading.calls import ToolCall
from archivist.reading.commands import step_purpose
from archivist.reading.outcomes import has_step_worked
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
            name = step_purpose(step)
            taken = next(
                (
                    flag
                    for act in calls
                    for other in act.steps
                    if step_purpose(other) == name and has_step_worked(act, other)
                    for flag in other.flags
                ),
                "",
            )
            key = f"{project}|{K.USAGE}:{name.lower()}:{ANY_OPTION}"
            yield replace(each, key=key, cure=None, accepted=taken)


def refusing_step(met: ObservedFailure) -> Step | None:
    """Return the step that was given an option which it refused."""
    option = met.failure.subject
    if met.failure.kind is not K.USAGE or not option.startswith("-"):
        return None
    steps = [step for step in met.act.steps if any(flag.partition("=")[0] == option for flag in step.flags)]
    return steps[0] if len(steps) == 1 else None
