"""What a run saw of its continuous integration: the checks that failed after a push, and what it then ran."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.outcomes import has_step_worked
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.replacements import Cure
from archivist.reading.works import command_purpose, general_form, other_task

# What GitHub's client is called with to report checks.
_REPORTS = frozenset(("pr checks", "pr view", "run view", "run watch"))
_LONGEST_OUTPUT, _LONGEST_ROW, _LONGEST_NAME = 200_000, 400, 80
_NAME = rf"[\w .()/:,+-]{{1,{_LONGEST_NAME}}}?"
# A row of `gh pr checks`; a job of `gh run view`; an error in a job's log, maybe behind a line number.
_FAILED_ROW = lazy_pattern(
    rf"(?P<check>{_NAME})\tfail\t|[X✗] (?P<job>{_NAME}) in (?:\d{{1,4}}[hms]){{1,3}}(?: \(|$)"
    rf"|(?:\d{{1,7}}[:-])?(?P<logged>{_NAME})\t[^\t]{{1,100}}\t\S{{0,40}}Z ##\[error\]",
    longest=_LONGEST_ROW,
)
_FAILED = ("failure", "fail")
# What tells one instance of a job from the others: the matrix, the number of a shard.
_INSTANCE = lazy_pattern(r" ?\([^()]{0,80}\)$|[-_ /]?\d{1,3}$")


class CiFailure(NamedTuple):
    """A check that failed on the server, as a call reported it, and what overcame it, as far as is known."""

    act: ToolCall
    check: str
    cure: Cure | None = None


def find_ci_failures(calls: Sequence[ToolCall]) -> Iterator[CiFailure]:
    """Yield the checks that failed after each push, with each command that then was run before the next push.

    A command that had been run before the first push did not keep the check from failing.
    """
    reports = [(act, failed) for act in calls if (failed := read_failed_checks(act))]
    going = [act for act in calls if reports and not act.has_failed]
    pushes = [act.at for act in going if any(step.name == "git push" for step in act.steps)]
    seen: set[tuple[str, int]] = set()
    for act, failed in reports:
        before = max((at for at in pushes if at < act.at), default=0)
        after = next((at for at in pushes if at > act.at), act.at)
        known = {text for call in calls[:before] for text in _project_commands(call)}
        commands = {text: call for call in calls[act.at + 1 : after] for text in _project_commands(call)}
        for check in failed:
            if (check, before) in seen:
                continue
            seen.add((check, before))
            is_mended = not any(later.at > after and check in those for later, those in reports)
            helped = [text for text in commands if is_mended and text not in known]
            if not helped:
                yield CiFailure(act, check)
            for text in helped:
                yield CiFailure(act, check, Cure(Remedy(RemedyKind.STEP, text), (commands[text],)))


def read_failed_checks(act: ToolCall) -> tuple[str, ...]:
    """Return the checks that a call reports as failed, those of a matrix as one."""
    if not any(step.program == "gh" and step.subcommand in _REPORTS for step in act.steps):
        return ()
    output = act.event.output[:_LONGEST_OUTPUT]
    rows = filter(None, map(_FAILED_ROW.match, output.splitlines()))
    found = [row[row.lastgroup] for row in rows if row.lastgroup]
    if output.lstrip()[:1] in ("{", "["):
        # A client may have cut it.
        with suppress(ValueError, RecursionError):
            found += _failed_jobs(json.loads(output))
    return tuple(dict.fromkeys(_INSTANCE.sub("", name.strip()) for name in found))


def _failed_jobs(value: Any) -> Iterator[str]:
    """Yield the names of the failed jobs in a reply, not those of their steps."""
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            continue
        ends = (each.get(key) for key in ("conclusion", "bucket", "state"))
        if isinstance(name := each.get("name"), str) and any(str(end).lower() in _FAILED for end in ends):
            yield name[:_LONGEST_NAME]
        for key in ("jobs", "statusCheckRollup"):
            yield from _failed_jobs(each.get(key))


def _project_commands(act: ToolCall) -> Iterator[str]:
    """Yield the checks and other tasks of the project that a call ran with success, as another run can."""
    for step in act.steps:
        purpose = command_purpose(step) or other_task(step)
        if purpose not in ("", "run") and has_step_worked(act, step):
            text = general_form(step, "", purpose)
            # With a test or a file of its own it is about the change at hand.
            if text and "<" not in text:
                yield text
