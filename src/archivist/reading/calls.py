"""A run's tool calls, each understood: what it was for, what it changed, what failed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from archivist.reading.commands import (
    generalise,
    is_preparation,
    is_read_only_step,
    main_step,
    run_scripts,
    step_purpose,
)
from archivist.reading.edits import FileEdit, file_edits, script_edits
from archivist.reading.failures import Failure, detect_failure, failure_key, is_shell
from archivist.reading.installs import Install, installs, is_install
from archivist.reading.phrases import base_name, is_informative, mask_command
from archivist.reading.steps import Step, parse
from archivist.records import Event, EventKind

_CALLS = (EventKind.TOOL_CALL, EventKind.EDIT, EventKind.TEST)
_READING_TOOLS = re.compile(r"read|grep|glob|view|ls|list|search|find|fetch|open|todo|think", re.IGNORECASE)
_TEST_RUNNERS = ("pytest", "unittest", "tox", "nox", "jest", "vitest", "mocha", "ctest", "rspec", "phpunit")
_RUNS_TESTS = re.compile(r"\brun_?tests?\.(?:py|sh|js)\b|\bmanage\.py test\b")
_TEST_WORD = re.compile(r"\btests?\b")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call and what it comes down to.

    `at` is its place among the calls. `key` names its failure the same in every run. `is_look` says that it
    could have changed nothing.
    """

    event: Event
    at: int
    steps: tuple[Step, ...] = ()
    purpose: str = ""
    failure: Failure | None = None
    key: str = ""
    changes: tuple[FileEdit, ...] = ()
    installs: tuple[Install, ...] = ()
    is_look: bool = False

    @property
    def is_test(self) -> bool:
        """Say whether it runs tests."""
        if self.purpose in _TEST_RUNNERS or _TEST_WORD.search(self.purpose):
            return True
        return "<script>" in self.purpose and any(_RUNS_TESTS.search(step.text) for step in self.steps)

    @property
    def has_failed(self) -> bool:
        """Say whether it failed."""
        return self.failure is not None

    @property
    def main(self) -> Step | None:
        """Return the step that it is for."""
        return main_step(self.steps)

    @property
    def text(self) -> str:
        """Return the command in general terms, or the tool with its target."""
        return generalise(self.event.text) if self.steps else self.event.tool

    @property
    def display_text(self) -> str:
        """Return the command as it was called, where another run can read it so, else in general terms."""
        whole = mask_command(self.event.text.strip()) if self.steps else ""
        return whole if is_informative(whole) else mask_command(self.text)

    @property
    def scripts(self) -> frozenset[str]:
        """Return the base names of the script files that it runs."""
        return run_scripts(self.steps)


def read_tool_calls(events: Sequence[Event]) -> list[ToolCall]:
    """Understand every tool call of a run, in order."""
    return list(_iter_tool_calls(events))


def _iter_tool_calls(events: Sequence[Event]) -> Iterator[ToolCall]:
    at = 0
    scripts: dict[str, tuple[FileEdit, ...]] = {}
    for event in events:
        if event.kind not in _CALLS or event.extra.get("call_missing"):
            continue
        act = _make_tool_call(event, at)
        scripts |= _written_scripts(act)
        # What a script of the run's own writes, it writes when it is run.
        by_scripts = tuple(change for name in act.scripts for change in scripts.get(name, ()))
        yield replace(act, changes=act.changes + by_scripts) if by_scripts else act
        at += 1


def _written_scripts(act: ToolCall) -> dict[str, tuple[FileEdit, ...]]:
    """Return the scripts that a call writes, with the files that each would change."""
    if act.event.kind is EventKind.EDIT:
        return {base_name(change.file): tuple(script_edits(change.new)) for change in act.changes}
    return {
        base_name(redirect.target): tuple(script_edits("\n".join(step.bodies)))
        for step in act.steps
        if step.bodies
        for redirect in step.redirects
        if redirect.is_to_file
    }


def _make_tool_call(event: Event, at: int) -> ToolCall:
    in_shell = is_shell(event.tool) and event.kind is not EventKind.EDIT
    steps = parse(event.text) if in_shell else ()
    said = event.text if in_shell else event.target
    failure = detect_failure(event.tool, said, event.exit_code, event.is_error, event.output)
    main = main_step(steps)
    return ToolCall(
        event=event,
        at=at,
        steps=steps,
        purpose=step_purpose(main) if main else event.tool.lower(),
        failure=failure,
        key=failure_key(failure) if failure else "",
        changes=file_edits(event, steps),
        installs=installs(steps),
        is_look=_is_read_only(event, steps),
    )


def _is_read_only(event: Event, steps: tuple[Step, ...]) -> bool:
    if not steps:
        return event.kind is not EventKind.EDIT and bool(_READING_TOOLS.search(event.tool))
    working = [step for step in steps if not is_preparation(step) or is_install(step)]
    return bool(working) and all(is_read_only_step(step) or step.is_filter for step in working)
