"""Find the failure that a claim is about, and what the run shows to have overcome it.

The miners' remedies count, and what this run shows by the same rule of having worked: the changed call
succeeded, one step was all that was done before the call went well, or a file was edited in between.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.lessons.support import (
    CODE,
    content_words,
    destroys,
    holds_form,
    is_shown,
    names_in,
    normal_text,
)
from archivist.reading.calls import ToolCall
from archivist.reading.commands import is_help
from archivist.reading.cures import HORIZON
from archivist.reading.failures import Failure, detect_failure, failure_key, other_failures
from archivist.reading.narrower_runs import leaves_out_failure
from archivist.reading.observed import CODE_KINDS, ObservedFailure
from archivist.reading.outcomes import has_step_worked, has_worked
from archivist.reading.remedies import Remedy, RemedyKind, is_destructive, split_steps
from archivist.reading.rules import FailureKind
from archivist.reading.run import call_text
from archivist.reading.wording import is_scratch
from archivist.records import Event, EventKind
from archivist.reflect.miners.material import Case, Material
from archivist.reflect.summary import is_check

_SHELL = "bash"
# What a wrapper, a hook or a service says of a step that failed, while the call itself ends well.
_PRINTED = lazy_pattern(r"(?m)^[^\w\n]{0,20}FAILED\b|\b(?:script|hook|job|checks?)\b[^\n]{0,40}\bfailed\b")
# What a program printed, and nobody types.
_DATA = lazy_pattern(r"\s{0,20}[\[{]\s{0,20}[\[{\"\]}]")
_PASTED = lazy_pattern(r"\b\w*(?:Error|Exception)\b:|^\W*error(?:\[\w+\])?:|\b(?:Uncaught|fatal:|panic:)")


# A tool or a library of the system that a build needs: every task meets it.
_MISSING_TOOL = lazy_pattern(
    r"(?i)\b(?:is|are) not installed\b|\blinker `[^`\n]{1,80}` not found|\bfailed to find tool\b"
    r"|\bpkg-config\b"
    r"|\b(?:could not|cannot|unable to) find (?:the )?(?:system )?(?:library|compiler|program|executable)\b"
)
_AT_ONCE = " & "
_OPERATOR = lazy_pattern(r" ?(?:;|&&?|\|\|)(?: |\Z)")
# What an agent turned to after a failure follows within so many calls.
SOON = 2
# A longer command may be claimed by its beginning.
_LONGEST_COPIED = 120


class ShownRemedy(NamedTuple):
    """What overcame a failure, and the calls of this run that show it; none where earlier runs do."""

    remedy: Remedy
    calls: tuple[ToolCall, ...] = ()


def find_case(material: Material, cited: Sequence[Event], summary: str) -> Case | None:
    """Return the failure that a claim is about: the one that its first command names, else the most cited.

    Where one call shows several, it is the one whose error has most of the claim's names and words. A remark
    of the agent right after a call that failed is about that call. What only the user reported is a failure
    too. Failures under the name of what overcame them are the last choice: only several runs show that it
    was no chance.
    """
    events = {event.id for event in cited}
    calls = material.calls_of(cited)
    if not any(act.has_failed for act in calls):
        remarked = {event.seq - 1 for event in cited if event.kind is EventKind.MESSAGE}
        calls += [act for act in material.reading.acts if act.event.seq in remarked and act not in calls]
        events |= {act.event.id for act in calls}
    named = (CODE.findall(summary) or [""])[0]
    cases = [*material.cases, *(other for act in calls for other in other_cases(material, act))]
    best: tuple[tuple[bool, bool, int, int, int, int], Case] | None = None
    for place, case in enumerate(cases):
        met_there = [met for met in case.met if met.act.event.id in events]
        if not met_there:
            continue
        called = [normal_text(met.act.event.text or met.act.event.tool) for met in case.met]
        is_sure = case.kind is not FailureKind.REMEDY or case.runs > 1
        is_named = bool(named) and is_shown(named, called)
        rank = (is_sure, is_named, *_likeness(summary, met_there), len(met_there), -place)
        if best is None or rank > best[0]:
            # In the words of the occurrences that are cited, which come first.
            others, first = [met for met in case.met if met not in met_there], met_there[0]
            command = first.act.display_text if first.act.steps else ""
            told = replace(case, met=(*met_there, *others), line=first.failure.line, command=command)
            best = rank, told
    return best[1] if best is not None else next(_unmarked_cases(material, cited, calls), None)


def _likeness(summary: str, cited: Sequence[ObservedFailure]) -> tuple[int, int]:
    """Return how many names, and then words, of a claim each error has, besides those of its call."""
    found = []
    for met in cited:
        error, called = normal_text(met.failure.line), normal_text(met.act.event.text)
        names = [name for name in names_in(summary) if not is_shown(name, [called])]
        words = [word for word in content_words(summary) if not holds_form(called, word)]
        shown = sum(is_shown(name, [error]) for name in names), sum(holds_form(error, word) for word in words)
        found.append(shown)
    return min(found, default=(0, 0))


def other_cases(material: Material, act: ToolCall) -> list[Case]:
    """Return what a call that failed shows to have failed besides what it is known for."""
    if act.failure is None or not act.steps or not act.has_failed:
        return []
    known = {case.key: case for case in material.cases}
    found = []
    for failure in other_failures(act.event.text, act.event.output, act.failure):
        case = _single_case(material, replace(act, failure=failure), failure)
        if older := known.get(case.key):
            case = replace(older, met=tuple(sorted((*older.met, *case.met), key=lambda met: met.act.at)))
        found.append(case)
    return found


def _unmarked_cases(material: Material, events: Iterable[Event], calls: Iterable[ToolCall]) -> Iterator[Case]:
    """Yield errors that the user pasted, and those that a call printed, of a hook or a check elsewhere."""
    for event in events:
        if event in material.reading.said:
            failure = detect_failure(_SHELL, "", None, True, event.text)
            if failure and _PASTED.search(failure.line):
                after = [act.at for act in material.reading.acts if act.event.seq > event.seq]
                at = (after[0] if after else len(material.reading.acts)) - 1
                yield _single_case(material, ToolCall(event, at, failure=failure), failure)
    for act in calls:
        is_shown_file = act.is_look and not (act.main and act.main.program == "gh")
        output = act.event.output
        if act.has_failed or not act.steps or is_shown_file or not _PRINTED.search(output):
            continue
        # What a service returns as data quotes what others wrote.
        failure = None if _DATA.match(output) else detect_failure(_SHELL, act.event.text, None, True, output)
        if failure:
            yield _single_case(material, replace(act, failure=failure), failure)


def _single_case(material: Material, act: ToolCall, failure: Failure) -> Case:
    key, command = f"{material.project}|{failure_key(failure)}", act.display_text if act.steps else ""
    met = (ObservedFailure(act, failure, key),)
    return Case(key, met, material.reading, material.past, command, failure.line)


def all_cases(material: Material) -> list[Case]:
    """Return the failures of a run with those that only the user reported or that were only printed."""
    reading = material.reading
    return [*material.cases, *_unmarked_cases(material, reading.said, reading.acts)]


def proven_remedies(case: Case) -> list[Remedy]:
    """Return what the miners found to have worked, without what can destroy work."""
    return [remedy for remedy, _ in case.remedies if not is_destructive(remedy.text)]


def is_lasting(case: Case) -> bool:
    """Say whether a failure without remedy is worth a warning: it came again, or every task meets it."""
    # A program that does not know a word will not know it next time either.
    is_refused = case.kind is FailureKind.USAGE and bool(case.first.failure.subject)
    is_repeated = case.runs > 1 or len(case.met) > 1 or is_refused
    is_of_task = all(met.is_of_task for met in case.met)
    is_of_machine = case.kind.is_environment or bool(_MISSING_TOOL.search(case.first.act.event.output))
    return (is_repeated or is_of_machine) and not case.is_passing_by_itself and not is_of_task


def can_teach(case: Case, material: Material) -> bool:
    """Say whether any claim about a failure could hold: what overcame it is shown, or it lasts."""
    return bool(proven_remedies(case)) or is_lasting(case) or bool(overcoming_calls(case, material))


def overcoming_calls(case: Case, material: Material) -> tuple[ToolCall, ...]:
    """Return a failed call, what was done after it and the call that then worked for it; nothing without.

    What the user reported is overcome when files were edited and it was not reported again. What overcame a
    call that was tried instead overcame the first one too.
    """
    cured = {met.act.event.id: met.cure.acts for other in material.cases for met in other.met if met.cure}
    for met in case.met:
        failed = met.act
        # What ran at the same time is overcome when all of it has run.
        missing = _steps_of(failed) if _AT_ONCE in call_text(failed) else set()
        steps: list[ToolCall] = []
        for act in material.reading.acts[failed.at + 1 : failed.at + 1 + HORIZON]:
            is_changed = act.event.text != failed.event.text
            missing -= _steps_of(act) if has_worked(act) else set()
            if missing or is_help(act.event.text) or not _has_same_aim(failed, act):
                pass
            elif (steps or is_changed) and has_worked(act):
                mended = mending_edits(failed, calls_between(failed, material, act.event.seq))
                done = [step for step in steps if not _edits_project(step) or step in mended]
                return (failed, *done[-3:], act)
            elif is_changed and not is_of_code(met) and act.event.id in cured:
                return (failed, *cured[act.event.id])
            if acts_on_project(act) and not is_check(act):
                steps.append(act)
        if failed.event.kind is EventKind.MESSAGE:
            later = [event for event in material.reading.said if event.seq > failed.event.seq]
            is_back = any(met.failure.line.strip() in event.text for event in later)
            # What was edited after the user's next message was edited for that.
            until = later[0].seq if later else math.inf
            mended = mending_edits(failed, calls_between(failed, material, until))
            return (failed, *mended[-3:]) if mended and not is_back else ()
    return ()


def mending_edits(failed: ToolCall, between: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the edits that can have mended a failure: of files that it names, else those of the only file.

    Of edits of several other files nobody can say which one helped. What another failure in between names was
    edited for that.
    """
    edits = [act for act in between if _edits_project(act)]
    named = [act for act in edits if _names_files(failed, act)]
    others = [act for act in between if act.has_failed]
    free = [act for act in edits if not any(each.at < act.at and _names_files(each, act) for each in others)]
    files = {edit.file for act in free for edit in act.changes}
    return tuple(named or (free if len(files) == 1 else ()))


def _names_files(failed: ToolCall, act: ToolCall) -> bool:
    """Say whether a failure names a file that was edited, whatever its ending: built files have another."""
    text = f"{failed.event.text}\n{failed.event.output}"
    paths = (PurePosixPath(edit.file.replace("\\", "/")) for edit in act.changes)
    for path in paths:
        if path.stem in text:
            named = rf"(?:([\w@.+-]{{1,100}})/)?(?<![\w.+-]){re.escape(path.stem)}\.\w"
            folders = {match[1] for match in re.finditer(named, text)}
            if not folders.isdisjoint((None, ".", path.parent.name)):
                return True
    return False


def calls_between(failed: ToolCall, material: Material, until: float) -> list[ToolCall]:
    """Return the calls soon after a failure and before the event of a number."""
    later = material.reading.acts[failed.at + 1 : failed.at + 1 + HORIZON]
    return [act for act in later if act.event.seq < until]


def edits_between(failed: ToolCall, worked: ToolCall, material: Material) -> list[ToolCall]:
    """Return the calls that edited the project between a failure and what worked."""
    return list(filter(_edits_project, calls_between(failed, material, worked.event.seq)))


def has_unclear_edits(failed: ToolCall, worked: ToolCall, material: Material) -> bool:
    """Say whether several edits lie between a failure and what worked, and none is known to have helped."""
    between = calls_between(failed, material, worked.event.seq)
    return any(map(_edits_project, between)) and not mending_edits(failed, between)


def is_of_code(met: ObservedFailure) -> bool:
    """Say whether a failure can be the code's, whatever name it is looked at under."""
    return met.is_of_code or (met.act.failure is not None and met.act.failure.kind in CODE_KINDS)


def acts_on_project(act: ToolCall) -> bool:
    """Say whether a call may have overcome a failure: it edited the project, or ran and did not only look."""
    is_run = bool(act.steps) and not act.changes and not act.is_look and has_worked(act)
    return not act.has_failed and (is_run or _edits_project(act))


def _has_same_aim(failed: ToolCall, act: ToolCall) -> bool:
    """Say whether a call is for what a failed one was for; another test that passes shows nothing."""
    if not failed.steps:
        return act.purpose == failed.purpose and act.event.target == failed.event.target
    if leaves_out_failure(act, failed):
        return False
    if act.purpose != failed.purpose:
        return _is_other_wording(normal_text(call_text(act)), failed)
    usual = {*failed.purpose.split(), "&&"}
    words, others = (
        {word for word in call_text(each).split() if not word.startswith("-")} - usual
        for each in (act, failed)
    )
    return not words or not others or not words.isdisjoint(others)


def _edits_project(act: ToolCall) -> bool:
    return any(not change.is_restored and not is_scratch(change.file) for change in act.changes)


def find_remedy(command: str, words: str, case: Case, material: Material) -> ShownRemedy | None:
    """Return the remedy that a claim means: by its command, else the best that is no command."""
    proven = proven_remedies(case)
    # Words that name no remedy name what failed.
    failing = {step_text(step.words) for met in case.met for step in met.act.steps}
    spans = (
        [command] if command else [span for span in CODE.findall(words) if normal_text(span) not in failing]
    )
    fitting = [remedy for remedy in proven if any(is_of_remedy(span, remedy) for span in spans)]
    if fitting:
        # Of a general and a narrower one it is that which has most of its words.
        wanted = set(normal_text(" ".join(spans)).split())
        return ShownRemedy(max(fitting, key=lambda each: len(wanted & set(normal_text(each.text).split()))))
    for span in spans:
        if found := next(_overcome(case, span, material), None):
            return found
    if command:
        return None
    others = (RemedyKind.EDIT, RemedyKind.PATH, RemedyKind.SAID)
    if other := next((remedy for remedy in proven if remedy.way in others), None):
        return ShownRemedy(other)
    mending = overcoming_calls(case, material)[1:]
    if any(map(_edits_project, mending)):
        files = tuple(dict.fromkeys(edit.file for act in mending for edit in act.changes if edit.file))
        return ShownRemedy(Remedy(RemedyKind.SAID, "", files=files), mending)
    return None


def find_said_recovery(
    case: Case, material: Material, cited: Sequence[Event], command: str = ""
) -> ShownRemedy | None:
    """Return what the record shows as a recovery, if a claim cites the call that worked then.

    It is told in words, or by a command of those calls. What a tool refused, and nobody runs, may have been
    overcome by a look.
    """
    events, wanted = {event.id for event in cited}, normal_text(command)
    found = [(met.act, met.cure.acts) for met in case.met if met.cure and command]
    found += [(calls[0], calls[1:]) for calls in [overcoming_calls(case, material)] if calls]
    for failed, overcame in found:
        worked = overcame[-1]
        is_unclear = any(map(is_of_code, case.met)) and edits_between(failed, worked, material)
        if worked.event.id not in events or is_unclear or any(destroys(act.event.text) for act in overcame):
            continue
        between = () if failed.steps else calls_between(failed, material, worked.event.seq)
        looks = [act for act in between if act.event.id in events and has_worked(act)]
        # The same call is no remedy: something else made the difference.
        helped = [act for act in (*looks, *overcame) if not _is_again(failed, act) and has_worked(act)]
        called = {normal_text(act.event.text) for act in helped}
        called |= {step_text(step.words) for act in helped for step in act.steps}
        if not command or wanted in called:
            return ShownRemedy(Remedy(RemedyKind.SAID, ""), tuple(overcame))
    return None


def _overcome(case: Case, command: str, material: Material) -> Iterator[ShownRemedy]:
    """Yield a command as the remedy of a failure where the calls after it show that it helped."""
    wanted = normal_text(command).rstrip("… ")
    if destroys(command):
        return
    shown = {met.cure.acts[-1].event.id for met in case.met if met.cure}
    shown |= {act.event.id for act in overcoming_calls(case, material)[-1:]}
    for met in case.met:
        failed = met.act
        later = material.reading.acts[failed.at + 1 : failed.at + 1 + HORIZON]
        for place, act in enumerate(later):
            step = next((step for step in act.steps if _is_step(step_text(step.words), wanted, failed)), None)
            is_whole = normal_text(act.event.text) == wanted and has_worked(act)
            if not is_whole and (step is None or not has_step_worked(act, step)):
                continue
            if act.is_look and not failed.is_look:
                continue
            if call_text(act) == call_text(failed):
                # The same call: something else made the difference.
                break
            is_again = act.event.id in shown or act.purpose == failed.purpose
            # An edit may be what made the difference to a failure of the code.
            is_mended = is_of_code(met) and any(map(_edits_project, later[:place]))
            is_again = is_again or _is_other_wording(wanted, failed)
            if is_again and not is_mended and not leaves_out_failure(act, failed):
                yield ShownRemedy(Remedy(RemedyKind.COMMAND, command, failed.display_text), (act,))
            done = next(
                (each for each in later[place:] if _is_again(failed, each) and has_worked(each)), None
            )
            between = later[: later.index(done)] if done else ()
            if done and all(each is act or each is done or each.is_look for each in between):
                yield ShownRemedy(Remedy(RemedyKind.STEP, command), (act, done))


def _is_step(step: str, wanted: str, failed: ToolCall) -> bool:
    """Say whether a command is a step, or the beginning of a long one, which nobody copies to its end."""
    is_begun = len(step) > _LONGEST_COPIED and step.startswith(wanted) and " " in wanted
    return step == wanted or (is_begun and not normal_text(call_text(failed)).startswith(wanted))


def step_text(words: Iterable[object]) -> str:
    """Return the words of a step, for comparison."""
    return normal_text(" ".join(str(getattr(word, "value", word)) for word in words))


def _is_again(failed: ToolCall, act: ToolCall) -> bool:
    return bool(act.steps) and call_text(act) == call_text(failed)


def _is_other_wording(command: str, failed: ToolCall) -> bool:
    """Say whether a command is a failed call with words left out or added, or runs its steps otherwise."""
    called = normal_text(call_text(failed))
    words, others = ({*_OPERATOR.sub(" ", text).split()} for text in (command, called))
    return bool(words and others) and command != called and (words <= others or others <= words)


def _steps_of(act: ToolCall) -> set[str]:
    return {*_OPERATOR.split(call_text(act))}


def is_of_remedy(span: str, remedy: Remedy | None) -> bool:
    """Say whether a command or name is a remedy's, or one of its steps or of the files that it changes."""
    if remedy is None:
        return False
    wanted = normal_text(span).split()
    if normal_text(span) in {normal_text(file) for file in remedy.files}:
        return True
    for step in (remedy, *split_steps(remedy)):
        words = normal_text(step.text).split()
        # The claim may leave out arguments of the one call, or give them back; the program stays the same.
        if words and wanted and wanted[0] in words:
            shorter, longer = sorted((wanted, words), key=len)
            others = [word for word in shorter if word not in longer and not word.startswith("<")]
            if len(others) <= sum(word.startswith("<") for word in longer):
                return True
    if remedy.way is RemedyKind.PATH and normal_text(remedy.text) in wanted:
        return True
    return bool(remedy.text) and normal_text(span) in normal_text(remedy.text)
