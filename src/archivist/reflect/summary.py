"""Write the account of a run as a colleague would."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from archivist.capture.recorder import task_of
from archivist.cold_start import lazy_pattern
from archivist.lessons.risky_text import borrowed_voice, suspicion
from archivist.reading.calls import ToolCall
from archivist.reading.commands import step_purpose
from archivist.reading.launchers import is_of_start
from archivist.reading.narrower_runs import are_all_shards, runs_less
from archivist.reading.remedies import RemedyKind
from archivist.reading.rules import FailureKind
from archivist.reading.run import RunReading, call_text
from archivist.reading.shell import Step
from archivist.reading.signatures import is_telling
from archivist.reading.statements import (
    choices,
    headline,
    is_direction,
    is_errand,
    is_request,
    left_open,
    report,
    result,
)
from archivist.reading.undone import find_undone_edits
from archivist.reading.wording import (
    advice,
    base_name,
    clip_words,
    code,
    format_list,
    is_informative,
    is_scratch,
    mask_command,
    quote_error,
    relative_path,
)
from archivist.reading.works import TASK_RUNNERS, command_purpose, task_name
from archivist.records import Episode, EpisodeStatus, Event, EventKind, Finding, Lesson
from archivist.records.run_words import DECIDED, OUTCOMES, TITLE, UNREAD
from archivist.reflect.progress import open_items

# How a summary ends whose run left a check failing.
STILL_FAILED = "still failed"
_SHOWN = 5
_SHORT_QUOTE = 80
_COSTLY_TIMES = 3
_LONGEST_LINE = 260
_CHECKS = ("test", "lint", "types", "build", "check")
_SOURCE_FILE = lazy_pattern(
    r"\.(?:py|[cm]?[jt]sx?|rs|go|java|kts?|rb|c|cc|cpp|h|hpp|cs|php|swift|scala|sh|svelte|vue|lua|sql|ex|exs|dart)$"
)
_COMMIT_SUBJECT = lazy_pattern(
    r"-\w*m\s+(?:\"\$\(cat <<\s*'?\w+'?\n\s*(?P<here>[^\n]+)"
    r"|\"(?P<double>(?:\\.|[^\"\\])+)\"|'(?P<single>[^']+)')"
)
_COMMITTED = lazy_pattern(r"\[[^\]\n]{1,200} [0-9a-f]{7,40}\]|\bfiles? changed\b")
_NOT_COMMITTED = lazy_pattern(r"\berrors?\b|\bfailed\b|\bnothing to commit\b|\[y\]es / \[n\]o", re.IGNORECASE)
_HOOK_FAILED = lazy_pattern(r"\b(?:pre-commit|commit-msg|hook)\b[^\n]{0,40}\bfailed\b", re.IGNORECASE)
_TITLE = lazy_pattern(r"--title[ =](?:\"(?P<double>[^\"\n]+)\"|'(?P<single>[^'\n]+)')")
_PULL_REQUEST = lazy_pattern(r"/(?:pull|merge_requests)/(\d{1,9})\b")
_ANSWERED = lazy_pattern(r"\"(?P<question>[^\"\n]{3,400})\"=\"(?P<answer>[^\"\n]{1,400})\"")
_TASK_NUMBER = lazy_pattern(r"Task #(\w{1,20}) created")
_PLAN_TITLE = lazy_pattern(r"#+ *(?:(?:implementation )?plan[:\u2014-] *)?([^\n\\]+)", re.IGNORECASE)
_TAG = lazy_pattern(r"</?\w{1,20}[^<>]{0,80}>")
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s+")
# A sentence of more words than these that a program printed is its own; "12 passed in 3 s" is anybody's.
_LEAST_PASSED_ON = 4
_PUNCTUATION = dict.fromkeys(
    map(ord, "→`*_~>\"'\u201c\u201d\u2018\u2019\u201e«»,.;:!?()[]{}#|-\u2013\u2014"), " "
)
_INNER_END = lazy_pattern(r"(?<![.!?])[.!?]++\s++(?=[A-Z`\"“'(\[\d])")
# The check did not run: what it would have found is not known.
_NOT_RUN = (FailureKind.USAGE, FailureKind.MISSING_COMMAND)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a few lines."""

    outcome: str
    worked: tuple[str, ...]
    failed: tuple[str, ...]
    decisions: tuple[str, ...]
    left_open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Background:
    """What is known besides the run: the project's lessons, its usual cost, the progress file of the run."""

    lessons: Sequence[Lesson]
    progress: str
    usual_tokens: float


@dataclass(slots=True)
class _Turn:
    """What was asked, what was called for it, and what the agent said of it; messages with their numbers."""

    request: str
    seq: int = 0
    said: list[Event] = field(default_factory=list)
    last_call: int = -1

    @property
    def report(self) -> str:
        """Return the last message that says what was done: often the last one only says what comes next."""
        return next((event.text for event in reversed(self.said) if report(event.text)), "")

    @property
    def is_answered(self) -> bool:
        """Say whether the agent spoke after its last call."""
        return bool(self.said) and self.said[-1].seq > self.last_call and bool(report(self.said[-1].text))


@dataclass(slots=True)
class _Check:
    """How a test, linter or build went: the failing calls, the first that passed after them, the last."""

    name: str
    failing: list[ToolCall] = field(default_factory=list)
    turned: ToolCall | None = None
    last: ToolCall | None = None
    passed: int = 0


def summarise_run(
    episode: Episode, events: Sequence[Event], reading: RunReading, background: Background
) -> RunSummary:
    """Write what was attempted, what came of it, what turned it, what was decided and what was left open.

    The words are those of the request, of the agent's own reports and of the run's calls.
    """
    turns = list(_turns(events))
    checks = _read_checks(reading.acts)
    has_exit = any(event.kind is EventKind.FINISH and event.text for event in events)
    is_ended = has_exit or (bool(turns) and turns[-1].is_answered)
    handed_in = list(list_deliveries(reading.acts))
    fixed = [finding for event in events if event.kind is EventKind.FIX for finding in event.findings]
    turned = list(_turning_points(reading, checks))
    unsolved = list(_unsolved_failures(reading, checks))
    # A run that succeeded is told by what overcame its failures, one that failed by what nothing overcame.
    stated, episode = episode.status, settle_status(episode, events, reading)
    causes = [] if episode.status is EpisodeStatus.FAILED else turned[:1]
    if episode.status is not EpisodeStatus.SUCCESS:
        ends = [event for event in reversed(events) if event.kind is EventKind.FINISH and event.text]
        # Why the harness says that the run failed; other last words are the agent's.
        causes += [headline(event.text) for event in ends if event.name == EpisodeStatus.FAILED]
        causes += unsolved
    came_of_it = list(_review_outcome(events, fixed))
    came_of_it = came_of_it or [
        _result(episode, turns, reading, handed_in, causes),
        describe_end(reading.acts),
    ]
    worked = [f"fixed: {headline(finding.description)}" for finding in fixed]
    worked += [*turned, *handed_in, *_earlier_reports(turns)]
    if not worked and not any(turn.report for turn in turns) and (files := _edited_files(reading.acts)):
        worked = [f"changed {_name_files(files, _SHOWN)}"]
    failed = [*_failure_lines(reading, events, fixed, background.lessons), *unsolved]
    usage, usual = episode.usage, background.usual_tokens
    tokens = usage.input_tokens + usage.output_tokens if usage else 0
    if usual and tokens >= _COSTLY_TIMES * usual:
        times = f"{tokens / usual:.0f} times the usual of this project"
        failed.append(f"it took {tokens / 1e6:.1f} million tokens, {times}")
    still_open = [*_open_steps(events, turns, is_ended=is_ended)]
    if turns and not is_ended and UNREAD not in episode.extra:
        still_open += _open_request(turns[-1], stated)
    last = [turn for turn in turns if turn.report and not is_errand(turn.request)][-1:] + turns[-1:]
    still_open += [line for turn in last if is_ended for line in left_open(turn.report)]
    still_open += _files_without_check(reading.acts, checks)
    still_open += [f"progress.md: {item}" for item in open_items(background.progress)]

    def pick(lines: Iterable[str], most: int = _SHOWN) -> tuple[str, ...]:
        # Later runs may be shown the account.
        told = dict.fromkeys(clip_words(line, _LONGEST_LINE) for line in lines if line)
        return tuple(line for line in told if not suspicion(line, ""))[:most]

    outcome = pick([_opening(episode, turns), *came_of_it], 3) or (f"{OUTCOMES[episode.status]}.",)
    decisions = pick(_decisions(events, turns))
    return RunSummary(" ".join(outcome), pick(worked), pick(failed), decisions, pick(still_open))


def settle_status(episode: Episode, events: Sequence[Event], reading: RunReading) -> Episode:
    """Return a run that its log calls a success by its end alone as partial, where a check still failed.

    The agent has the last word, whatever the tests said. A result that log or caller state stays.
    """
    is_stated = DECIDED in episode.extra or any(event.kind is EventKind.FINISH for event in events)
    is_left = episode.status is EpisodeStatus.SUCCESS and not is_stated
    is_left = is_left and ended_failing(describe_end(reading.acts))
    return replace(episode, status=EpisodeStatus.PARTIAL) if is_left else episode


def _turns(events: Sequence[Event]) -> Iterator[_Turn]:
    """Yield the run in turns, each with what the user asked, and what comes before the first.

    What an agent only passes on of a program's output is no word of its own.
    """
    turn = _Turn("")
    printed = f" {_plain_words(' '.join(event.output for event in events if event.tool))} "
    for event in events:
        if event.kind is EventKind.MESSAGE and event.role == "user":
            if is_request(request := task_of(event.text)):
                if turn.request or turn.said:
                    yield turn
                turn = _Turn(request, event.seq)
        elif event.kind is EventKind.MESSAGE and event.role == "assistant":
            turn.said.append(replace(event, text=_without_printed(event.text, printed)))
        elif event.tool:
            turn.last_call = event.seq
    if turn.request or turn.said:
        yield turn


def _without_printed(text: str, printed: str) -> str:
    """Return what an agent said without the sentences that a program had printed."""
    lines = []
    for line in text.splitlines():
        sentences = _SENTENCE_END.split(line)
        kept = [each for each in sentences if not _is_printed(each, printed)]
        lines.append(line if len(kept) == len(sentences) else " ".join(kept))
    return "\n".join(lines)


def _is_printed(sentence: str, printed: str) -> bool:
    """Say whether a sentence, or what stands in it behind a label, is one that a program had printed."""
    _, _, labelled = sentence.partition(":")
    forms = (_plain_words(_TAG.sub(" ", each)) for each in (sentence, labelled))
    return any(words.count(" ") >= _LEAST_PASSED_ON and f" {words} " in printed for words in forms)


def _plain_words(text: str) -> str:
    return " ".join(text.casefold().translate(_PUNCTUATION).split())


def _opening(episode: Episode, turns: Sequence[_Turn]) -> str:
    """Say in one sentence how the run ended and what was asked; an agent's first words are no request."""
    asked = [turn.request for turn in turns if turn.request and not is_errand(turn.request)]
    task = str(episode.extra.get(TITLE) or episode.task)
    first = headline(asked[0]) if asked else headline(task) if is_request(task) else ""
    more = len(asked) - 1
    further = f", and {more} further request{'s' if more > 1 else ''}" if more > 0 else ""
    first = _INNER_END.sub("; ", first).rstrip(".!? ")
    return f"{OUTCOMES[episode.status]}{f': {first}' if first else ''}{further}."


def _result(
    episode: Episode,
    turns: Sequence[_Turn],
    reading: RunReading,
    handed_in: list[str],
    causes: Sequence[str],
) -> str:
    """Say in one sentence what came of a run: the agent's report, what it handed in, what it changed.

    What an agent says in the middle of its work is no outcome, nor what it claims of a run that failed.
    """
    told = [turn for turn in turns if turn.report]
    own = [turn for turn in told if turn.request and not is_errand(turn.request)]
    last = (own or told)[-1] if told else None
    is_reported = last is not None and (last.is_answered or episode.status is EpisodeStatus.SUCCESS)
    if episode.status is EpisodeStatus.FAILED and causes:
        return _sentence(clip_words(causes[0], _LONGEST_LINE))
    is_asked = any(turn.request for turn in turns)
    said = next((words for event in reversed(last.said) if (words := result(event.text))), "") if last else ""
    if is_asked and is_reported and said and episode.status is not EpisodeStatus.FAILED:
        return said
    if handed_in:
        # Without a request the agent was sent by a program, and what it handed in says most.
        return f"It {handed_in.pop()}."
    if files := _edited_files(reading.acts):
        return f"It changed {_name_files(files, 3)}."
    if is_reported and said and episode.status is not EpisodeStatus.FAILED:
        return said
    if causes:
        return _sentence(causes[0])
    calls = len(reading.acts)
    if episode.status is EpisodeStatus.SUCCESS:
        return "Nothing failed." if calls and not any(act.has_failed for act in reading.acts) else ""
    return f"It made {calls} call{'s' if calls > 1 else ''} and changed nothing." if calls else ""


def _sentence(line: str) -> str:
    """Return a line of a list as one sentence."""
    text = _INNER_END.sub("; ", line).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _review_findings(events: Sequence[Event]) -> list[tuple[Finding, str]]:
    """Return what reviewers found and who did, the worst first."""
    found = [
        (finding, finding.found_by or event.role or "a reviewer")
        for event in events
        if event.kind is EventKind.VERDICT
        for finding in event.findings
    ]
    return sorted(found, key=lambda each: -each[0].severity.rank)


def _review_outcome(events: Sequence[Event], fixed: Sequence[Finding]) -> Iterator[str]:
    """Say what reviewers found, the worst first, and how much of it was fixed; nothing without a review."""
    if not (found := _review_findings(events)):
        if any(event.kind is EventKind.VERDICT for event in events):
            yield "The reviewers found nothing."
        return
    worst, who = found[0]
    many = "1 issue" if len(found) == 1 else f"{len(found)} issues, the worst by {who}"
    yield _sentence(f"the review found {many}: {headline(worst.description)}")
    if fixed:
        first = headline(fixed[0].description)
        yield _sentence(f"{len(fixed)} {'was' if len(fixed) == 1 else 'were'} fixed, such as: {first}")


def _earlier_reports(turns: Sequence[_Turn]) -> Iterator[str]:
    """Yield what came of the requests before the last, latest first."""
    asked = [turn for turn in turns if turn.request and not is_errand(turn.request) and turn.report]
    answered = [turn for turn in asked[:-1] if turn.is_answered and report(turn.report, 160)]
    for turn in reversed(answered):
        yield f"“{headline(turn.request, 90)}”: {report(turn.report, 160)}"


def is_check(call: ToolCall) -> bool:
    """Say whether a call tests, lints or builds the project."""
    return bool(_check_steps(call))


def _check_steps(call: ToolCall) -> list[Step]:
    steps = [step for step in call.steps if command_purpose(step) in _CHECKS and not _mends(step)]
    return steps or ([call.main] if call.is_test and call.main else [])


def _mends(step: Step) -> bool:
    return "fix" in step.text and command_purpose(step) in ("lint", "format", "check")


def _read_checks(calls: Sequence[ToolCall]) -> dict[str, _Check]:
    """Return the tests, linters and builds of a run by the names of their commands, in order."""
    found: dict[str, _Check] = {}
    purposes: dict[str, str] = {}
    for call in calls:
        if call.failure and call.failure.kind in _NOT_RUN:
            continue
        # After what mends all that a check found, nobody knows that the check still fails.
        mended = set() if call.has_failed else {command_purpose(step) for step in call.steps if _mends(step)}
        steps = _check_steps(call)
        # What could not start and was reached in another way has passed by that.
        passed = set() if call.has_failed else {command_purpose(step) for step in steps}
        for name, check in found.items():
            failure = check.last.failure if check.last else None
            is_unstarted = failure is not None and is_of_start(failure.kind, failure.line)
            if failure and purposes[name] in (mended | passed if is_unstarted else mended):
                check.last = None
        program = call.failure.signature.program if call.failure else ""
        at_fault = [step for step in steps if step_purpose(step).lower() == program] or steps[-1:]
        for step in steps:
            name = _check_name(step)
            check = found.setdefault(name, _Check(name))
            purposes[name] = command_purpose(step)
            has_failed = call.has_failed and step in at_fault
            if call.has_failed and not has_failed:
                continue
            if has_failed:
                check.failing.append(call)
            elif check.failing and check.last is check.failing[-1]:
                part = mask_command(call_text(call))
                is_part = runs_less(call, check.last)
                if is_part and not are_all_shards([*found, part]):
                    # What passes because it runs a part says nothing of the whole.
                    found[part], purposes[part] = _Check(part, last=call, passed=1), purposes[name]
                    continue
                check.turned = call
            check.last = call
            check.passed += not has_failed
    return found


def _check_name(step: Step) -> str:
    """Return a check as it is called; of a runner of tasks also the task."""
    name = step_purpose(step)
    is_bare = name in TASK_RUNNERS or name.split()[-1] == "run"
    return f"{step.program} {task_name(step)}".strip() if is_bare else name


def describe_end(calls: Sequence[ToolCall]) -> str:
    """Say which checks passed at the end of a run, and which did not."""
    checks = _read_checks(calls)
    bad = [code(name) for name, check in checks.items() if check.last and check.last.has_failed]
    good = [code(name) for name, check in checks.items() if check.last and not check.last.has_failed]
    parts = [f"{format_list(good[-4:])} passed"] if good else []
    parts += [f"{format_list(bad)} {STILL_FAILED}"] if bad else []
    return f"At the end {' and '.join(parts)}." if parts else ""


def ended_failing(summary: str) -> bool:
    """Say whether a run's summary tells of a check that failed to the end."""
    return summary.endswith(f" {STILL_FAILED}.")


def _turning_points(reading: RunReading, checks: dict[str, _Check]) -> Iterator[str]:
    """Yield what turned a failure: another command, a step before, or an edit after which a check passed."""
    lines: dict[str, str] = {}
    names: dict[str, None] = {}
    for met in reading.met:
        act, cure = met.act, met.cure
        if cure is None or met.is_suspicious or not act.steps or act.is_look:
            continue
        if cure.remedy.way is RemedyKind.INSTALL and met.failure.subject:
            names[code(met.failure.subject)] = None
            lines["install"] = f"{format_list([*names])} had to be installed: {code(cure.remedy.text)}"
        elif cure.remedy.way in (RemedyKind.COMMAND, RemedyKind.STEP, RemedyKind.SAID):
            command = mask_command(call_text(act))
            why = f" (“{quoted}”)" if (quoted := _quote_line(met.failure.line)) else ""
            if is_informative(command):
                lines.setdefault(advice(cure.remedy), f"{code(command)} failed{why}: {advice(cure.remedy)}")
    yield from lines.values()
    for check in sorted(checks.values(), key=lambda each: -len(each.failing)):
        if check.turned is None or check.last is None or check.last.has_failed:
            continue
        files = _edited_files(reading.acts[check.failing[0].at + 1 : check.turned.at])
        if files and not any(check.name in line for line in lines.values()):
            after = f"passed after changes in {_name_files(files, 3)}"
            yield f"{code(check.name)} failed {_count_failures(check.failing)}, and {after}"


def _count_failures(failing: Sequence[ToolCall]) -> str:
    line = next(
        (quoted for call in reversed(failing) if call.failure and (quoted := _quote_line(call.failure.line))),
        "",
    )
    count = "once" if len(failing) == 1 else f"{len(failing)} times"
    return f"{count} (“{line}”)" if line else count


def _quote_line(line: str) -> str:
    """Return an error as a person would quote it, or nothing if it says nothing or speaks to its reader."""
    if not is_telling(line) or suspicion(line) or borrowed_voice(line):
        return ""
    return quote_error(line, _SHORT_QUOTE).rstrip(":")


def _edited_files(calls: Sequence[ToolCall]) -> list[str]:
    """Return the files of the project that calls changed, the most changed first."""
    files = Counter(
        relative_path(change.file)
        for call in calls
        if not call.has_failed
        for change in call.changes
        if change.file and not change.is_restored and not is_scratch(change.file) and "$" not in change.file
    )
    return [file for file, _ in files.most_common()]


def _name_files(files: Sequence[str], most: int) -> str:
    return format_list([code(file) for file in files], most=most)


def list_deliveries(calls: Sequence[ToolCall]) -> Iterator[str]:
    """Yield the pull requests and commits that a run made, as lines of its account."""
    subjects: list[str] = []
    for call in calls:
        text, output = call.event.text, call.event.output
        # A hook of git may refuse a commit while a wrapper around git reports success.
        is_unclear = not _COMMITTED.search(output) and _NOT_COMMITTED.search(output)
        is_refused = is_unclear or _HOOK_FAILED.search(output)
        if call.has_failed or not call.steps or is_refused:
            continue
        if call.purpose == "gh pr create" or "gh pr create" in text:
            title, url = _TITLE.search(text), _PULL_REQUEST.search(output)
            name = f" “{title['double'] or title['single']}”" if title else ""
            if title or url:
                yield f"opened pull request{f' #{url[1]}' if url else ''}{name}"
        elif "git commit" in text and (subject := _COMMIT_SUBJECT.search(text)):
            words = subject["here"] or subject["double"] or subject["single"]
            subjects.append(words.strip().split("\\n")[0].splitlines()[0])
    named = list(dict.fromkeys(subjects))
    if named:
        more = f" and {len(named) - 2} more" if len(named) > 2 else ""
        yield f"committed {format_list([f'“{subject}”' for subject in named[:2]])}{more}"


def _failure_lines(
    reading: RunReading, events: Sequence[Event], fixed: Sequence[Finding], known: Sequence[Lesson]
) -> Iterator[str]:
    """Yield findings that nobody fixed, refusals, edits that were undone, and failures known before."""
    mended = {finding.description for finding in fixed}
    for finding, who in _review_findings(events):
        if finding.description not in mended:
            yield f"{who} found: {headline(finding.description)}"
    for event in events:
        if event.extra.get("rejected"):
            plan = _PLAN_TITLE.search(event.text) if "plan" in event.tool.lower() else None
            of = f" of {code(mask_command(event.target)[:80])}" if event.target else ""
            what = f"the plan “{plan[1].strip()}”" if plan else f"{event.tool}{of}"
            yield f"the user refused {what}"
    for undone in find_undone_edits(reading.acts):
        change = f"{undone.words} in" if undone.words else "a change of"
        yield f"{change} {code(undone.file)} was undone after {code(undone.check.purpose)} failed"
    started = reading.episode.started
    for met in reading.met:
        for lesson in known:
            if lesson.signature == met.key and lesson.remedies and started and lesson.created < started:
                yield f"{lesson.short_id} was known, and its failure met again: {lesson.summary}"


def _unsolved_failures(reading: RunReading, checks: dict[str, _Check]) -> Iterator[str]:
    """Yield the checks that still failed, the commands that never worked, and what only passed by itself."""
    for name, check in checks.items():
        if check.last and check.last.has_failed:
            yield f"{code(name)} failed {_count_failures(check.failing)}" + (
                " and did not pass" if not check.passed else ""
            )
    seen: set[str] = set(checks)
    seen |= {met.act.purpose for met in reading.met if met.cure is not None and not met.is_suspicious}
    for call in reversed(reading.acts):
        if not call.steps or call.purpose in seen or call.is_look or "<script>" in call.purpose:
            continue
        seen.add(call.purpose)
        counts = reading.attempts.get(call.purpose)
        command = mask_command(call_text(call))
        if call.failure and counts and not counts.ok and is_informative(command):
            quoted = _quote_line(call.failure.line)
            yield f"{code(command)} failed: “{quoted}”" if quoted else f"{code(command)} failed"
    for purpose, counts in reading.attempts.items():
        if counts.timeout:
            yield f"{code(purpose)} timed out {'once' if counts.timeout == 1 else f'{counts.timeout} times'}"
    for met in reading.met:
        if met.is_fleeting and not met.act.event.extra.get("timed_out"):
            yield f"{code(met.act.purpose)} failed and then passed with nothing changed"


def _decisions(events: Sequence[Event], turns: Sequence[_Turn]) -> Iterator[str]:
    """Yield what the user answered, then said after the first request, and what the agent says it chose."""

    def tell(question: str, answer: str) -> str:
        return f"asked “{headline(question, 120)}”, the user chose “{headline(answer, 100)}”"

    for event in events:
        if "ask" not in event.tool.lower() and "user_input" not in event.tool:
            continue
        for pair in _ANSWERED.finditer(event.output):
            yield tell(pair["question"], pair["answer"])
        answers = _parse_object(event.output).get("answers")
        given = answers if isinstance(answers, dict) else {}
        for question in _parse_object(event.text).get("questions") or ():
            chosen = given.get(question.get("id")) if isinstance(question, dict) else None
            words = chosen.get("answers") if isinstance(chosen, dict) else None
            if isinstance(words, list) and words:
                yield tell(str(question.get("question") or ""), ", ".join(map(str, words)))
    asked = [turn.request for turn in turns if turn.request and not is_errand(turn.request)]
    for request in reversed([request for request in asked[1:] if is_direction(request)]):
        yield f"the user said: {headline(request, 140)}"
    for turn in reversed(turns):
        for event in reversed(turn.said):
            yield from choices(event.text)


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _open_steps(events: Sequence[Event], turns: Sequence[_Turn], *, is_ended: bool) -> Iterator[str]:
    """Yield the steps that the agent planned for the last request and never marked as done."""
    since = max((turn.seq for turn in turns if not is_errand(turn.request)), default=0)
    steps: dict[str, tuple[str, str]] = {}
    for event in events:
        if event.seq < since:
            continue
        name, given = event.tool.lower(), _parse_object(event.text) if event.tool else {}
        items = given.get("todos") if "todo" in name else given.get("plan") if name == "update_plan" else None
        if isinstance(items, list):
            rows = [item for item in items if isinstance(item, dict)]
            steps = {
                str(at): (str(row.get("content") or row.get("step") or ""), str(row.get("status")))
                for at, row in enumerate(rows)
            }
        elif name == "taskcreate" and (number := _TASK_NUMBER.search(event.output)):
            steps[number[1]] = str(given.get("subject") or ""), "pending"
        elif name == "taskupdate" and (known := steps.get(str(given.get("taskId")))):
            steps[str(given.get("taskId"))] = known[0], str(given.get("status") or known[1])
    # An agent that has reported forgot to mark the step it was at.
    states = ("pending",) if is_ended else ("pending", "in_progress")
    undone = [step for step, status in steps.values() if step and status in states]
    if undone:
        more = f" and {len(undone) - 3} more" if len(undone) > 3 else ""
        yield f"planned and not done: {'; '.join(undone[:3])}{more}"


def _open_request(last: _Turn, status: EpisodeStatus) -> Iterator[str]:
    """Yield the request that got no answer, and what the agent was about to do."""
    # Some harnesses end a run that went well by a call, not by a message.
    if last.said and status is EpisodeStatus.SUCCESS:
        return
    if last.request:
        yield f"“{headline(last.request, 120)}” got no final report"
    if last.said and any(map(str.isalpha, step := headline(last.said[-1].text))):
        yield f"it stopped at: {step}"


def _files_without_check(calls: Sequence[ToolCall], checks: dict[str, _Check]) -> Iterator[str]:
    """Yield the source files that no check has seen since they were changed."""
    last = max((check.last.at for check in checks.values() if check.last), default=-1)
    own = {base_name(change.file) for call in calls for change in call.changes if change.is_whole}
    files = [file for file in _edited_files(calls[last + 1 :]) if _SOURCE_FILE.search(file)]
    # A new file in the root is likely a script that the agent made for itself.
    files = [file for file in files if not is_scratch(file) and ("/" in file or file not in own)]
    if files:
        since = "after the last check" if checks else "without any check"
        yield f"{_name_files(files, 3)} {'was' if len(files) == 1 else 'were'} changed {since}"
