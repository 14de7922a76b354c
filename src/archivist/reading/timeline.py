"""A run at a glance: which steps stand out, which fold away, and which tools it went through."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from archivist.records.run_words import CALL_KINDS, EventKind

# How many calls later a success still counts as the recovery from a failure.
_REACH = 12
_SHELLS = ("bash", "shell", "exec_command", "execute_bash", "local_shell", "terminal", "run")
# What stands before a command's own name: a change of folder, variables, wrappers.
_PRELUDE = re.compile(
    r"(?:cd\s++[^\s;&]++\s*+(?:&&|;)\s*+|\w++=\S*+\s++|set\s++-[^\s;]++\s*+;?\s*+"
    r"|(?:sudo|time|env|command|exec|nohup|timeout(?=\s+[-\d]))(?:\s++-\S++|\s++\d\w*+)*+\s++)*+"
)
_NAME = re.compile(r"[A-Za-z_.~/][\w./+-]*")


class EventOutline(NamedTuple):
    """An event without its output, for the overview of a run."""

    seq: int
    time: datetime | None
    kind: EventKind
    role: str
    tool: str
    text: str
    is_error: bool


class StepMark(StrEnum):
    """Why a step stands out."""

    FAILED = "failed"
    RECOVERED = "recovered"
    CITED = "cited"
    SAID = "said"
    REVIEWED = "reviewed"


class TimelinePart(NamedTuple):
    """One step that stands out, or a stretch of steps that does not: its first and last number."""

    first: int
    last: int
    mark: StepMark | None
    steps: int
    tools: tuple[tuple[str, int], ...] = ()


class ToolUse(NamedTuple):
    """How often a provider's runs called a program, and how often that failed."""

    provider: str
    program: str
    calls: int
    failed: int


def program_of(tool: str, text: str) -> str:
    """Return what a call runs: of a shell the program, else the tool."""
    if tool.lower() not in _SHELLS:
        return tool
    command = text.strip()
    prelude = _PRELUDE.match(command)
    found = _NAME.match(command, prelude.end() if prelude else 0)
    return found[0].rpartition("/")[2] or tool if found else tool


def mark_steps(
    events: Sequence[EventOutline], cited: Collection[int] = (), failed: Collection[int] = ()
) -> dict[int, StepMark]:
    """Return the steps that stand out: failures, what worked afterwards, evidence, and what people said.

    `failed` are steps in which reflection found a failure that their exit code does not show.
    """
    marks: dict[int, StepMark] = {}
    waiting: dict[str, int] = {}
    for at, event in enumerate(events):
        if event.kind in CALL_KINDS:
            program = program_of(event.tool, event.text)
            if event.is_error or event.seq in failed:
                marks[event.seq] = StepMark.FAILED
                waiting[program] = at
            elif program in waiting and at - waiting.pop(program) <= _REACH:
                marks[event.seq] = StepMark.RECOVERED
        elif event.kind is EventKind.MESSAGE and event.role == "user":
            marks[event.seq] = StepMark.SAID
        elif event.kind in (EventKind.VERDICT, EventKind.FIX):
            marks[event.seq] = StepMark.REVIEWED
        if event.seq in cited:
            marks.setdefault(event.seq, StepMark.CITED)
    return marks


def fold_timeline(events: Sequence[EventOutline], marks: dict[int, StepMark]) -> list[TimelinePart]:
    """Return a run's steps in order, with stretches of ordinary ones as one part each."""
    parts: list[TimelinePart] = []
    stretch: list[EventOutline] = []

    def close_stretch() -> None:
        if stretch:
            tools = Counter(program_of(each.tool, each.text) for each in stretch if each.kind in CALL_KINDS)
            ends = stretch[0].seq, stretch[-1].seq
            parts.append(TimelinePart(*ends, None, len(stretch), tuple(tools.most_common(4))))
            stretch.clear()

    for event in events:
        if event.seq in marks:
            close_stretch()
            parts.append(TimelinePart(event.seq, event.seq, marks[event.seq], 1))
        else:
            stretch.append(event)
    close_stretch()
    return parts


def count_tools(calls: Iterable[tuple[str, str, str, bool]]) -> list[ToolUse]:
    """Count calls given by provider, tool, text and whether they failed; most used programs first."""
    used: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for provider, tool, text, is_error in calls:
        if tool:
            key = provider, program_of(tool, text)
            used[key] += 1
            failed[key] += is_error
    return [ToolUse(*key, count, failed[key]) for key, count in used.most_common()]
