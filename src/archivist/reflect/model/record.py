"""Show a run to a model as reading understands it: the most telling things first, in few tokens.

Not the raw log: failures with what overcame them and what was tried in vain, what the user said, checks,
edits and reports, each with the number of its event, then what is known already. Any run fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from archivist.capture.clean import Cleaner
from archivist.cold_start import lazy_pattern
from archivist.reading.calls import CALL_KINDS, ToolCall
from archivist.reading.outcomes import has_worked
from archivist.reading.wording import is_scratch, relative_path, without_paths
from archivist.records import Entry, Episode, Event, EventKind, Lesson, Usage
from archivist.reflect.miners.material import Case, Material
from archivist.reflect.model.claimed_failure import acts_on_project, all_cases, overcoming_calls
from archivist.reflect.summary import is_check
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
_SHARE_OF_MESSAGES = 0.3
# Of nine runs, remarks that stand beside no failure were 52 to 75 % of the longest records.
_SHARE_OF_REMARKS = 0.25
# So much of a step is looked for in the line that has it.
_STEP_START = 40
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
_NUMBER = lazy_pattern(r"\A#(\d+) ")
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
    _add_messages(writer, material, int(max_tokens * _SHARE_OF_MESSAGES))
    told: set[int] = set()
    spoken = {event.seq: event for event in events if _is_remark(event)}
    shown_cases = [case for case in all_cases(material) if teaches is None or teaches(case)]
    for case in sorted(shown_cases, key=lambda case: (-case.runs, -case.cost, case.first.act.at)):
        met = {met.act.event.seq for met in case.met}
        # The same failure may have a second name, by what was run or by what overcame it.
        if told >= met:
            continue
        untold = {number: event for number, event in spoken.items() if number not in told}
        for remarks in (untold, {}):
            lines = _describe_case(case, material, writer, remarks)
            if writer.add("\n".join(lines)):
                told |= met | {int(number) for line in lines for number in _NUMBER.findall(line)}
                break
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
    heading = "Further events:"
    for others, share in _other_lines(material, events, writer):
        writer.begin_section(heading, int(max_tokens * share))
        for number, line in others:
            # A model that may be told only of some failures must not take another call for one.
            is_open = teaches is None or shown[number].kind not in CALL_KINDS
            if number not in told and is_open and writer.add(line):
                told.add(number)
                heading = ""
    return RunRecord(writer.text, shown)


def _is_remark(event: Event) -> bool:
    return event.kind is EventKind.MESSAGE and event.role == "assistant" and bool(event.text.strip())


def _remark_line(event: Event, writer: _Writer, longest: int = _LONGEST_MESSAGE) -> str:
    return f"#{event.seq} the agent: {writer.harmless(shorten_line(event.text, longest))}"


def _add_messages(writer: _Writer, material: Material, max_tokens: int) -> None:
    """Add what the user said in its order, all that fits.

    The first request and the last words say most of what a user wants, so they are chosen first.
    """
    said = [event for event in material.reading.said if event.text.strip()]
    lines = {
        event.seq: f"#{event.seq} the user: {shorten_line(event.text, _LONGEST_MESSAGE)}" for event in said
    }
    chosen: set[int] = set()
    for number in dict.fromkeys((*list(lines)[:1], *reversed(lines))):
        tokens = estimate_tokens(lines[number]) + 1
        if tokens <= max_tokens:
            max_tokens -= tokens
            chosen.add(number)
    for number, line in lines.items():
        if number in chosen:
            writer.add(line)


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


def _describe_case(case: Case, material: Material, writer: _Writer, spoken: Mapping[int, Event]) -> list[str]:
    """Return one failure: occurrences with the remarks beside them, what overcame it and what did not."""
    lines = []
    # Of many occurrences those that were overcome show most.
    shown = sorted(case.met[1:], key=lambda met: met.cure is None)[: _MOST_OCCURRENCES - 1]
    for met in sorted((case.first, *shown), key=lambda met: met.act.at):
        number = met.act.event.seq
        before, after = (
            next((spoken[near] for near in (number + step, number + 2 * step) if near in spoken), None)
            for step in (-1, 1)
        )
        lines += [_remark_line(before, writer, _LONGEST_LINE)] if before else []
        lines.append(_call_line(met.act, writer))
        if met.cure:
            cured = [act for act in met.cure.acts if acts_on_project(act) or act is met.cure.acts[-1]]
            lines += [f"{_call_line(act, writer, met.act)} (after #{number})" for act in cured[:2]]
        tried = [text for text in met.in_vain if _is_about(text, met.act)]
        lines += [f"  tried in vain: {shorten_line('; '.join(tried), _LONGEST_LINE)}"] if tried else []
        lines += [_remark_line(after, writer, _LONGEST_LINE)] if after else []
    if not any(met.cure for met in case.met):
        first = case.first.act
        lines += [f"{_edit_line(act) or _call_line(act, writer, first)} (after #{first.event.seq})"
                  for act in overcoming_calls(case, material)]  # fmt: skip
    if case.runs > 1:
        lines.append(f"  {case.runs} runs of this project met it")
    return list(dict.fromkeys(lines))


def _is_about(command: str, failed: ToolCall) -> bool:
    """Say whether a command may have been tried against a failure: they have a word in common."""
    error = failed.failure.line if failed.failure else ""
    words = {*failed.event.text.split(), *error.replace("'", " ").replace('"', " ").split()}
    return bool(failed.steps) and any(len(word) > 2 and word in words for word in command.split())


def _edit_line(act: ToolCall) -> str:
    """Return a call that changed files of the project in a line; empty for any other."""
    if act.failure is not None or not acts_on_project(act) or not act.changes:
        return ""
    names = (relative_path(edit.file) for edit in act.changes if edit.file and not is_scratch(edit.file))
    files = list(dict.fromkeys(names))
    return f"#{act.event.seq} edited {', '.join(files)}" if files else ""


def _call_line(act: ToolCall, writer: _Writer, after: ToolCall | None = None) -> str:
    """Return a call in a line: what was called, and how it ended; `after` is the failure that it overcame."""
    event, failure = act.event, act.failure
    if failure and event.kind is EventKind.MESSAGE:
        return (
            f"#{event.seq} the user reported FAILED: {writer.harmless(shorten(failure.line, _LONGEST_LINE))}"
        )
    output = without_reminders(event.output)
    called = shorten_line(_shown_command(act, after or act), _LONGEST_COMMAND)
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


def _shown_command(act: ToolCall, failed: ToolCall) -> str:
    """Return what was called; of a long line, from the step on that failed, or that was then called again."""
    text = act.event.text
    if not act.steps:
        return f"{act.event.tool} {act.event.target}"
    if failed.failure is None or len(text) <= _LONGEST_COMMAND:
        return text
    program, output = failed.failure.signature.program, failed.event.output
    # A traceback names the script that was run.
    failing = [step for step in failed.steps if any(word in output for word in step.arguments[:1] if word)]
    failing = [step for step in failed.steps if step.program == program] or failing
    names = {(step.program, step.arguments[:1]) for step in failing[-1:]}
    found = [step for step in act.steps if (step.program, step.arguments[:1]) in names]
    start = text.rfind(found[-1].text[:_STEP_START]) if found else -1
    return f"… {text[start:]}" if start > 0 else text


def _other_lines(
    material: Material, events: Sequence[Event], writer: _Writer
) -> Iterator[tuple[list[tuple[int, str]], float]]:
    """Yield what is left with its share of the record: what came of the run, remarks, other calls."""
    reviews = [(event.seq, "; ".join(finding.description for finding in event.findings))
               for event in events if event.kind is EventKind.VERDICT]  # fmt: skip
    found = [
        (number, f"#{number} review: {writer.harmless(shorten_line(text, _LONGEST_MESSAGE))}")
        for number, text in reviews
    ]
    # What came last is nearest to what came of it.
    spoken = [(event.seq, _remark_line(event, writer)) for event in reversed(events) if _is_remark(event)]
    calls = material.reading.acts
    edits = [(act.event.seq, edited) for act in calls if (edited := _edit_line(act))]
    # The last time that something was called tells how it ended.
    last = {act.event.text or act.event.id: act for act in calls if not act.changes}
    checks = sorted(last.values(), key=lambda act: (act.failure is None, act.at))
    checks = [act for act in checks if act.failure or is_check(act) or "git commit" in act.event.text]
    yield [*found, *spoken[:2], *edits, *((act.event.seq, _call_line(act, writer)) for act in checks)], 1.0
    yield spoken[2:], _SHARE_OF_REMARKS
    others = sorted((act for act in calls if not act.changes), key=lambda act: (act.is_look, act.at))
    yield [(act.event.seq, _call_line(act, writer)) for act in others], 1.0
