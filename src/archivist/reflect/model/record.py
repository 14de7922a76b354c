"""Show a run to a model as reading understands it: the most telling things first, in few tokens.

Not the raw log: failures with what overcame them and what was tried in vain, what the user said, checks,
edits and reports, each with the number of its event, then what is known already. Any run fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from archivist.capture.clean import Cleaner
from archivist.cold_start import lazy_pattern
from archivist.reading.calls import CALL_KINDS, ToolCall
from archivist.reading.outcomes import has_worked
from archivist.reading.wording import relative_path, without_paths
from archivist.records import Entry, Episode, Event, EventKind, Lesson, Usage
from archivist.reflect.miners.material import Case, Material
from archivist.reflect.model.claimed_failure import all_cases, overcoming_calls
from archivist.text import estimate_tokens, make_legible, shorten, shorten_line

_LONGEST_COMMAND = 240
_LONGEST_LINE = 220
_LONGEST_MESSAGE = 500
# The lines of an output that are shown besides the error itself.
_OUTPUT_LINES = 3
_MOST_OCCURRENCES = 3
# What is known already is a reminder, and must not push the run itself out.
_SHARE_OF_LESSONS = 0.2
_SHARE_OF_CONTEXT = 0.08
_MOST_RELATED = 3
# A line that says why something failed, or where.
_TELLING = lazy_pattern(
    r"(?i)\b(?:\w*error|fail\w*|cannot|can't|could not|unable|no such|not (?:found|installed|defined)|missing"
    r"|unexpected|expected|received|denied|refused|unknown|invalid|unused|fatal)\b|[\u00d7✗✖]|\S\.\w{1,4}:\d+"
)
# What a harness adds to an output for its own model: it is no word of the program.
_REMINDER = lazy_pattern(
    r"<(system-reminder)>.*?(?:</\1>|\Z)|^[ \t]{0,20}(?:REMINDER|IMPORTANT): You (?:MUST|SHOULD)\b[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_OPEN, _CLOSE = "<record>", "</record>"
_LEFT_OUT = "[left out: it speaks to its reader]"

Suspicion = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as a model is shown it, and the events that it may cite, by their numbers."""

    text: str
    events: dict[int, Event]


def describe_run(
    material: Material,
    events: Sequence[Event],
    lessons: Sequence[Lesson],
    *,
    max_tokens: int,
    suspicion: Suspicion,
    teaches: Callable[[Case], bool] | None = None,
    progress: str = "",
    related: Sequence[Episode] = (),
) -> RunRecord:
    """Return a run in at most so many tokens; what tells least is left out.

    With `teaches`, the calls are those of the failures for which it holds. `progress` is the text of
    progress.md, `related` are earlier runs of the project, the latest last.

    Texts that are suspicious are left out, since a model may take them for orders. Everything is redacted
    once more: it leaves the machine.
    """
    episode = material.reading.episode
    shown = {event.seq: event for event in events}
    shown |= {act.event.seq: act.event for act in material.reading.acts}
    writer = _Writer(max_tokens, suspicion)
    writer.add(f"Project: {material.name}. The run ended as: {episode.status}.{_usage_words(episode.usage)}")
    said = [event for event in material.reading.said if event.text.strip()]
    # The first request and the last words say most of what a user wants.
    for event in {event.seq: event for event in (*said[:1], *said[-2:])}.values():
        writer.add(f"#{event.seq} the user: {shorten_line(event.text, _LONGEST_MESSAGE)}")
    told: set[int] = set()
    shown_cases = [case for case in all_cases(material) if teaches is None or teaches(case)]
    for case in sorted(shown_cases, key=lambda case: (-case.runs, -case.cost, case.first.act.at)):
        # The same failure may have a second name, by what was run or by what overcame it.
        if not told.issuperset(met.act.event.seq for met in case.met) and writer.add(
            _describe_case(case, material, writer)
        ):
            cures = [act for met in case.met[:_MOST_OCCURRENCES] if met.cure for act in met.cure.acts[:2]]
            told |= {act.event.seq for act in (*(met.act for met in case.met), *cures)}
    if lessons:
        writer.begin_section("Known lessons:", int(max_tokens * _SHARE_OF_LESSONS))
        for lesson in sorted(lessons, key=lambda lesson: (-lesson.importance, lesson.number)):
            writer.add(f"{lesson.short_id}: {shorten_line(lesson.summary, _LONGEST_LINE)}")
        writer.end_section()
    writer.begin_section("Earlier runs of the project:", int(max_tokens * _SHARE_OF_CONTEXT))
    for run in [run for run in reversed(related) if run.summary][:_MOST_RELATED]:
        writer.add(f"- {writer.harmless(shorten_line(run.summary, _LONGEST_LINE))}")
    writer.begin_section("progress.md:", int(max_tokens * _SHARE_OF_CONTEXT))
    for line in filter(str.strip, progress.splitlines()):
        writer.add(writer.harmless(shorten_line(line, _LONGEST_LINE)))
    writer.end_section()
    writer.begin_section("Further events:", max_tokens)
    for number, line in _other_lines(material, events, said, writer):
        # A model that may be told only of some failures must not take another call for one.
        if number not in told and (teaches is None or shown[number].kind not in CALL_KINDS):
            writer.add(line)
    return RunRecord(writer.text, shown)


def _usage_words(usage: Usage | None) -> str:
    """Return what a run spent as a sentence after others; nothing where it is not known."""
    if usage is None:
        return ""
    tokens = usage.input_tokens + usage.output_tokens
    parts = [f"{tokens} tokens"] if tokens else []
    parts += [f"${usage.cost_usd:.2f}"] if usage.cost_usd else []
    parts += [] if usage.efficiency is None else [f"{usage.efficiency:.0%} of the calls did not fail"]
    return f" It took {', '.join(parts)}." if parts else ""


def describe_messages(said: Sequence[Event], *, max_tokens: int) -> str:
    """Return what the user typed, the latest first, each with the number of its event."""
    writer = _Writer(max_tokens, lambda _text, _more: "")
    for event in reversed(said):
        writer.add(f"#{event.seq}: {make_legible(event.text)}")
    return writer.text


def describe_entries(
    entries: Sequence[Entry],
    related: Sequence[str],
    counted: Sequence[str],
    *,
    max_tokens: int,
    suspicion: Suspicion,
) -> str:
    """Return entries of a stream in their order, what was counted, and what the archive says about them.

    The most important entries are taken where not all fit.
    """
    chooser, writer = _Writer(max_tokens, suspicion), _Writer(max_tokens, suspicion)
    lines = {}
    for entry in entries:
        words = writer.harmless(shorten_line(f"{entry.action}. {entry.content}", _LONGEST_MESSAGE))
        # An issue is `#310`: an entry has another mark.
        lines[entry.seq] = (
            f"e{entry.seq} cycle {entry.cycle}, {entry.role or 'no role'}, {entry.type}: {words}"
        )
    weightiest = sorted(entries, key=lambda entry: (-entry.importance, -entry.seq))
    fitting = {entry.seq for entry in weightiest if chooser.add(lines[entry.seq])}
    for number in sorted(fitting):
        writer.add(lines[number])
    for heading, texts in (("Found by counting:", counted), ("From the archive:", related)):
        writer.begin_section(heading, max_tokens)
        for text in texts:
            writer.add(writer.harmless(shorten_line(text, _LONGEST_LINE)))
    return writer.text


def without_reminders(text: str) -> str:
    """Return an output without what the harness adds to it for its own model."""
    return _REMINDER.sub("", text) if "REMINDER" in text.upper() or "IMPORTANT" in text else text


class _Writer:
    """Collects lines until the tokens are used up; a line that no longer fits is left out, not cut."""

    def __init__(self, max_tokens: int, suspicion: Suspicion) -> None:
        self._left = max_tokens - estimate_tokens(f"{_OPEN}\n\n{_CLOSE}")
        self._section_left = self._left
        self._lines: dict[str, None] = {}
        self._cleaner = Cleaner()
        self._suspicion = suspicion
        self._heading = ""

    def add(self, line: str) -> bool:
        """Add one line, or say that it did not fit."""
        # A record cannot end its own fence; absolute paths name the machine's user.
        line = self._cleaner.text(without_paths(make_legible(line)))
        line = line.replace(_OPEN, "< record>").replace(_CLOSE, "< /record>")
        whole = f"{self._heading}\n{line}" if self._heading else line
        tokens = estimate_tokens(whole) + 1
        if line in self._lines or tokens > min(self._left, self._section_left):
            return False
        self._left -= tokens
        self._section_left -= tokens
        self._heading = ""
        self._lines[whole] = None
        return True

    def begin_section(self, heading: str, max_tokens: int) -> None:
        """Begin a part of at most so many tokens; its heading comes with its first line."""
        self._heading, self._section_left = heading, min(max_tokens, self._left)

    def end_section(self) -> None:
        """Let what follows have all that is left."""
        self._heading, self._section_left = "", self._left

    def harmless(self, text: str) -> str:
        """Return foreign text, or a note in the place of one that is suspicious."""
        return _LEFT_OUT if self._suspicion(text, "") else text

    @property
    def text(self) -> str:
        """Return the whole record."""
        return "\n".join((_OPEN, *self._lines, _CLOSE))


def _describe_case(case: Case, material: Material, writer: _Writer) -> str:
    """Return one failure: its first occurrences, what overcame it, what did not, how many runs met it."""
    lines = []
    for met in case.met[:_MOST_OCCURRENCES]:
        after = f"(after #{met.act.event.seq})"
        lines.append(_call_line(met.act, writer))
        if met.cure:
            lines += [f"{_call_line(act, writer)} {after}" for act in met.cure.acts[:2]]
        if met.in_vain:
            lines.append(f"  tried in vain: {shorten_line('; '.join(met.in_vain), _LONGEST_LINE)}")
    if not any(met.cure for met in case.met):
        first = case.first.act.event.seq
        lines += [f"{_edit_line(act) or _call_line(act, writer)} (after #{first})"
                  for act in overcoming_calls(case, material)]  # fmt: skip
    if case.runs > 1:
        lines.append(f"  {case.runs} runs of this project met it")
    return "\n".join(dict.fromkeys(lines))


def _edit_line(act: ToolCall) -> str:
    """Return a call that changed files in a line; empty for any other."""
    files = list(dict.fromkeys(relative_path(edit.file) for edit in act.changes if edit.file))
    return f"#{act.event.seq} edited {', '.join(files)}" if act.failure is None and files else ""


def _call_line(act: ToolCall, writer: _Writer) -> str:
    """Return a call in a line: what was called, and how it ended."""
    event, failure = act.event, act.failure
    if failure and event.kind is EventKind.MESSAGE:
        return (
            f"#{event.seq} the user reported FAILED: {writer.harmless(shorten(failure.line, _LONGEST_LINE))}"
        )
    output = without_reminders(event.output)
    called = shorten_line(event.text if act.steps else f"{event.tool} {event.target}", _LONGEST_COMMAND)
    head = f"#{event.seq} `{called}`"
    if failure is None:
        last = (output.strip().splitlines() or [""])[-1]
        shown = writer.harmless(shorten_line(last, _LONGEST_LINE))
        return f"{head} {'worked' if has_worked(act) else 'ended'}{f': {shown}' if shown else ''}"
    error = failure.line.strip()
    lines = [line.strip() for line in output.splitlines() if line.strip() and error not in line]
    # What ends an output often says only that it failed; why stands where the trouble begins.
    telling = list(dict.fromkeys(line for line in lines if _TELLING.search(line)))
    chosen = telling if len(telling) <= _OUTPUT_LINES else [*telling[: _OUTPUT_LINES - 1], telling[-1]]
    texts = [
        writer.harmless(shorten(line, _LONGEST_LINE)) for line in (error, *(chosen or lines[:1])) if line
    ]
    return f"{head} FAILED ({failure.kind}): " + " | ".join(texts)


def _other_lines(
    material: Material, events: Sequence[Event], said: Sequence[Event], writer: _Writer
) -> Iterator[tuple[int, str]]:
    """Yield what is left, the most telling first: findings, reports, messages, edits, failures, calls."""
    for event in events:
        if event.kind is EventKind.VERDICT:
            found = "; ".join(finding.description for finding in event.findings)
            yield event.seq, f"#{event.seq} review: {writer.harmless(shorten_line(found, _LONGEST_MESSAGE))}"
    spoken = [event for event in events if event.kind is EventKind.MESSAGE and event.role == "assistant"]
    for event in (*reversed(spoken[-2:]), *spoken[:-2]):
        words = writer.harmless(shorten_line(event.text, _LONGEST_MESSAGE))
        yield event.seq, f"#{event.seq} the agent: {words}"
    for event in said:
        yield event.seq, f"#{event.seq} the user: {shorten_line(event.text, _LONGEST_MESSAGE)}"
    calls = material.reading.acts
    for act in calls:
        if edited := _edit_line(act):
            yield act.event.seq, edited
    for act in sorted(calls, key=lambda act: (act.failure is None, act.is_look, not act.is_test, act.at)):
        if not act.changes:
            yield act.event.seq, _call_line(act, writer)
