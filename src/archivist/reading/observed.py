"""A failure that a run met, and the other names under which the same one is counted.

What is the same about failures may be what overcame them, who refused them, or which check found them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.ci import find_ci_failures
from archivist.reading.commands import step_purpose
from archivist.reading.cures import failed_remedies, find_cure
from archivist.reading.failures import Failure
from archivist.reading.filing import FINDINGS, failing_check, scratch_folder
from archivist.reading.making import mends_style
from archivist.reading.outcomes import has_step_worked
from archivist.reading.packages import Install, installs
from archivist.reading.remedies import Remedy, RemedyKind, split_steps
from archivist.reading.replacements import Cure, is_entering
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import Step, parse
from archivist.reading.signatures import Signature
from archivist.records.words import OUTSIDE_ADVICE, OUTSIDE_SANDBOX

# Failures of code as such. Only recurrence tells a fault of the environment from one of the task.
CODE_KINDS = frozenset(
    (K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.TEST_FAILURE, K.SYNTAX, K.BUILD, K.OTHER, K.CRASH)
)
# Stand for the option in the key of a command that refused several, and for the program in the key of those
# that one install brings.
ANY_OPTION = "<options>"
ANY_PROGRAM = "<programs>"
# What a client's sandbox blocks, by the message, where it is not the network.
_BLOCKED = (
    ("git index", lazy_pattern(r"\.git/|index\.lock")),
    ("ports", lazy_pattern(r"(?i)\b(?:listen|bind)(?:ing)?\b")),
)


@dataclass(frozen=True, slots=True)
class ObservedFailure:
    """One failure that the run met and that is not the fault of the code being written.

    `cost` counts the calls until it was overcome. `is_untouched` says that the project had not been changed
    yet. `is_of_task` says that it may be what the task is about: a script of the run's own produced it, or
    the same call succeeded once the run had changed the project. `is_fleeting` says that the very same call
    succeeded with nothing done in between. `after` is the last install before it, `in_vain` what was tried
    against it without success, `accepted` which words the program takes. `is_suspicious` says that a lesson
    about it would be quarantined: its cure is only counted, and shown in no note or account.
    """

    act: ToolCall
    failure: Failure
    key: str
    cure: Cure | None = None
    cost: int = 1
    is_untouched: bool = False
    is_of_task: bool = False
    is_fleeting: bool = False
    after: Install | None = None
    in_vain: tuple[str, ...] = ()
    accepted: str = ""
    is_suspicious: bool = False

    @property
    def is_of_code(self) -> bool:
        """Say whether it can be the task's own failure."""
        return self.failure.kind in CODE_KINDS


def observe_checks(calls: Sequence[ToolCall], project: str) -> tuple[ObservedFailure, ...]:
    """Return the checks of the project that failed, each under the name of what was run.

    Mostly they are right and the run's own code is wrong. Which of them are often right is worth knowing.
    """
    found: list[ObservedFailure] = []
    for act in calls:
        failure = act.failure
        if failure is None or failure.kind not in FINDINGS:
            continue
        if not (step := failing_check(act.steps, failure)):
            continue
        if folder := scratch_folder(failure):
            left = failure._replace(kind=K.LEFTOVER, subject=folder)
            found.append(ObservedFailure(act=act, failure=left, key=f"{project}|{K.LEFTOVER}:{folder}"))
            continue
        cure = find_cure(calls, act.at)
        steps = split_steps(cure.remedy) if cure and cure.remedy.way is RemedyKind.STEP else []
        mending = next((each for each in reversed(steps) if mends_style(each.text)), None)
        found.append(
            ObservedFailure(
                act=act,
                failure=failure._replace(kind=K.CHECK, subject=failure.signature.error),
                key=f"{project}|{K.CHECK}:{step_purpose(step)}",
                cure=replace(cure, remedy=mending) if cure and mending else None,
                # What no fixer mended is a matter of the code.
                in_vain=failed_remedies(calls, act.at) if mending else (),
            )
        )
    return tuple(found)


def observe_ci(calls: Sequence[ToolCall], project: str) -> Iterator[ObservedFailure]:
    """Yield the checks that failed on the server after a push."""
    for act, check, cure in find_ci_failures(calls):
        failure = Failure(K.CI, f"{check} failed", check, Signature("ci", "", (check,)))
        yield ObservedFailure(act, failure, f"{project}|{K.CI}:{check}", cure)


def by_remedy(met: Sequence[ObservedFailure], project: str) -> Iterator[ObservedFailure]:
    """Yield failures by what overcame them: one way round may help with many messages.

    What a sandbox forbids fails under many names; the calls are what such failures are about.
    """
    for each in met:
        if each.cure and each.cure.remedy.text == OUTSIDE_ADVICE:
            blocked = next((name for name, pattern in _BLOCKED if pattern.search(each.failure.line)), "")
            blocked = "network" if each.failure.kind is K.NETWORK else blocked
            about = each.failure._replace(subject=f"{blocked}: {each.act.purpose}")
            yield replace(each, key=f"{project}|{K.REMEDY}:{OUTSIDE_SANDBOX}", failure=about)
        if each.cure is None or each.cure.remedy.way not in (RemedyKind.COMMAND, RemedyKind.STEP):
            continue
        for step in split_steps(each.cure.remedy):
            yield replace(
                each, key=f"{project}|{K.REMEDY}:{step.change}", cure=replace(each.cure, remedy=step)
            )


def by_refusing_command(
    met: Sequence[ObservedFailure], calls: Sequence[ToolCall], project: str
) -> Iterator[ObservedFailure]:
    """Yield refused options once more under the name of the command, with an option that it took.

    Each option alone is another failure, though all are refused for the same reason.
    """
    for each in met:
        step = refusing_step(each)
        if step is None:
            continue
        name = _refuser_name(step)
        alike = (
            other
            for act in calls
            for other in act.steps
            if _refuser_name(other) == name and has_step_worked(act, other)
        )
        taken = next((flag for other in alike for flag in other.flags), "")
        key = f"{project}|{K.USAGE}:{name.lower()}:{ANY_OPTION}"
        cure = each.cure if each.cure and each.cure.remedy.way is RemedyKind.COMMAND else None
        # Whichever option was refused, the same call may have worked.
        cure = replace(cure, remedy=cure.remedy._replace(instead="")) if cure else None
        yield replace(each, key=key, cure=cure, accepted=taken)


def _refuser_name(step: Step) -> str:
    """Return what a step calls; a script by its path."""
    path = next((word for word in step.values[:2] if "/" in word), "")
    return path if step_purpose(step).endswith("<script>") and path else step_purpose(step)


def refusing_step(met: ObservedFailure) -> Step | None:
    """Return the step that was given an option which it refused."""
    option = met.failure.subject
    if met.failure.kind is not K.USAGE or not option.startswith("-"):
        return None
    steps = [step for step in met.act.steps if any(flag.partition("=")[0] == option for flag in step.flags)]
    return steps[0] if len(steps) == 1 else None


def by_project_install(met: Sequence[ObservedFailure], project: str) -> Iterator[ObservedFailure]:
    """Yield missing programs once more under the package manager that installed what the project lists."""
    for each in met:
        if each.cure is None or each.failure.kind is not K.MISSING_COMMAND:
            continue
        remedy = each.cure.remedy
        steps = [step for step in parse(remedy.text) if not is_entering(step)]
        found = installs(steps)
        is_of_project = len(found) == len(steps) == 1 and found[0].is_of_project
        if is_of_project and remedy.way in (RemedyKind.INSTALL, RemedyKind.STEP):
            key = f"{project}|{K.MISSING_COMMAND}:{found[0].manager.split()[0]}:{ANY_PROGRAM}"
            yield replace(each, key=key, cure=replace(each.cure, remedy=Remedy(RemedyKind.STEP, remedy.text)))
