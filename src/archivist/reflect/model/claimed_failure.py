"""Find the failure that a claim is about, and what the run shows to have overcome it.

The miners' remedies count, and what this run shows by the same rule of having worked: the changed call
succeeded, one step was all that was done before the call went well, or a file was edited in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.lessons.support import CODE, destroys, is_shown, normal_text
from archivist.reading.calls import ToolCall
from archivist.reading.commands import is_help
from archivist.reading.cures import HORIZON
from archivist.reading.failures import Failure, detect_failure, failure_key
from archivist.reading.outcomes import has_step_worked, has_worked
from archivist.reading.remedies import Remedy, RemedyKind, is_destructive, split_steps
from archivist.reading.rules import FailureKind
from archivist.reading.run import ObservedFailure, call_text
from archivist.reading.wording import is_scratch
from archivist.records import Event, EventKind
from archivist.reflect.miners.material import Case, Material
from archivist.reflect.summary import is_check

_SHELL = "bash"
# What a wrapper, a hook or a service says of a step that failed, while the call itself ends well.
_PRINTED = lazy_pattern(r"(?m)^[^\w\n]{0,20}FAILED\b|\b(?:script|hook|job|checks?)\b[^\n]{0,40}\bfailed\b")
# What a program printed, and nobody types.
_PASTED = lazy_pattern(r"\b\w*(?:Error|Exception)\b:|^\W*error(?:\[\w+\])?:|\b(?:Uncaught|fatal:|panic:)")


class ShownRemedy(NamedTuple):
    """What overcame a failure, and the calls of this run that show it; none where earlier runs do."""

    remedy: Remedy
    calls: tuple[ToolCall, ...] = ()


def find_case(material: Material, cited: Sequence[Event], summary: str) -> Case | None:
    """Return the failure that a claim is about: the one that its first command names, else the most cited.

    A remark of the agent right after a call that failed is about that call. What only the user reported is
    a failure too. Failures under the name of what overcame them are the last choice: only several runs show
    that it was no chance.
    """
    events = {event.id for event in cited}
    remarked = {event.seq - 1 for event in cited if event.kind is EventKind.MESSAGE}
    named = (CODE.findall(summary) or [""])[0]
    best: tuple[tuple[bool, bool, int, int], Case] | None = None
    for place, case in enumerate(material.cases):
        count = sum(met.act.event.id in events for met in case.met)
        if not count and not any(met.act.event.seq in remarked for met in case.met):
            continue
        calls = [normal_text(met.act.event.text or met.act.event.tool) for met in case.met]
        is_sure = case.kind is not FailureKind.REMEDY or case.runs > 1
        rank = (is_sure, bool(named) and is_shown(named, calls), count, -place)
        if best is None or rank > best[0]:
            best = rank, case
    reported = [reported_case(material, event) for event in cited]
    reported += [
        printed_case(material, act)
        for act in material.reading.acts
        if act.event.id in events or act.event.seq in remarked
    ]
    return best[1] if best is not None else next(filter(None, reported), None)


def reported_case(material: Material, event: Event) -> Case | None:
    """Return the failure that a user's message reports, by an error that was pasted; None without one."""
    if event not in material.reading.said:
        return None
    failure = detect_failure(_SHELL, "", None, True, event.text)
    if failure is None or not _PASTED.search(failure.line):
        return None
    after = [act.at for act in material.reading.acts if act.event.seq > event.seq]
    at = (after[0] if after else len(material.reading.acts)) - 1
    return _single_case(material, ToolCall(event, at, failure=failure), failure)


def printed_case(material: Material, act: ToolCall) -> Case | None:
    """Return a failure that a call only printed and ended well: of a hook, or of a check elsewhere."""
    is_shown_file = act.is_look and not (act.main and act.main.program == "gh")
    if act.has_failed or not act.steps or is_shown_file or not _PRINTED.search(act.event.output):
        return None
    failure = detect_failure(_SHELL, act.event.text, None, True, act.event.output)
    return _single_case(material, replace(act, failure=failure), failure) if failure else None


def _single_case(material: Material, act: ToolCall, failure: Failure) -> Case:
    key = f"{material.project}|{failure_key(failure)}"
    met = ObservedFailure(act, failure, key)
    return Case(
        key=key, met=(met,), runs=1, tasks=1, untouched=0, fleeting=0, subjects={}, remedies=(), vain={},
        places=(), command="", line=failure.line, shown={}, calls={}, varying=frozenset(),
    )  # fmt: skip


def all_cases(material: Material) -> list[Case]:
    """Return the failures of a run with those that only the user reported or that were only printed."""
    reported = [reported_case(material, event) for event in material.reading.said]
    reported += [printed_case(material, act) for act in material.reading.acts]
    return [*material.cases, *(case for case in reported if case)]


def proven_remedies(case: Case) -> list[Remedy]:
    """Return what the miners found to have worked, without what can destroy work."""
    return [remedy for remedy, _ in case.remedies if not is_destructive(remedy.text)]


def is_lasting(case: Case) -> bool:
    """Say whether a failure without remedy is worth a warning: it came again, or every task meets it."""
    # A program that does not know a word will not know it next time either.
    is_refused = case.kind is FailureKind.USAGE and bool(case.first.failure.subject)
    is_repeated = case.runs > 1 or len(case.met) > 1 or is_refused
    is_of_task = all(met.is_of_task for met in case.met)
    return (is_repeated or case.kind.is_environment) and not case.is_passing_by_itself and not is_of_task


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
        steps: list[ToolCall] = []
        for act in material.reading.acts[failed.at + 1 : failed.at + 1 + HORIZON]:
            is_changed = act.event.text != failed.event.text
            if is_help(act.event.text) or not _has_same_aim(failed, act):
                pass
            elif (steps or is_changed) and has_worked(act):
                return (failed, *steps[-3:], act)
            elif is_changed and not case.is_of_code and act.event.id in cured:
                return (failed, *cured[act.event.id])
            if acts_on_project(act) and not is_check(act):
                steps.append(act)
        if failed.event.kind is EventKind.MESSAGE and any(map(_edits_project, steps)):
            later = [event for event in material.reading.said if event.seq > failed.event.seq]
            is_back = any(met.failure.line.strip() in event.text for event in later)
            return () if is_back else (failed, *list(filter(_edits_project, steps))[-3:])
    return ()


def acts_on_project(act: ToolCall) -> bool:
    """Say whether a call may have overcome a failure: it edited the project, or ran and did not only look."""
    is_run = bool(act.steps) and not act.changes and not act.is_look and has_worked(act)
    return not act.has_failed and (is_run or _edits_project(act))


def _has_same_aim(failed: ToolCall, act: ToolCall) -> bool:
    """Say whether a call is for what a failed one was for; another test that passes shows nothing."""
    if not failed.steps:
        return act.purpose == failed.purpose and act.event.target == failed.event.target
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


def _overcome(case: Case, command: str, material: Material) -> Iterator[ShownRemedy]:
    """Yield a command as the remedy of a failure where the calls after it show that it helped."""
    wanted = normal_text(command)
    if destroys(command):
        return
    shown = {met.cure.acts[-1].event.id for met in case.met if met.cure}
    shown |= {act.event.id for act in overcoming_calls(case, material)[-1:]}
    for failed in (met.act for met in case.met):
        later = material.reading.acts[failed.at + 1 : failed.at + 1 + HORIZON]
        for place, act in enumerate(later):
            step = next((step for step in act.steps if step_text(step.words) == wanted), None)
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
            is_mended = case.is_of_code and any(map(_edits_project, later[:place]))
            if (is_again or _is_other_wording(wanted, failed)) and not is_mended:
                yield ShownRemedy(Remedy(RemedyKind.COMMAND, command, failed.display_text), (act,))
            done = next(
                (each for each in later[place:] if _is_again(failed, each) and has_worked(each)), None
            )
            between = later[: later.index(done)] if done else ()
            if done and all(each is act or each is done or each.is_look for each in between):
                yield ShownRemedy(Remedy(RemedyKind.STEP, command), (act, done))


def step_text(words: Iterable[object]) -> str:
    """Return the words of a step, for comparison."""
    return normal_text(" ".join(str(getattr(word, "value", word)) for word in words))


def _is_again(failed: ToolCall, act: ToolCall) -> bool:
    return bool(act.steps) and call_text(act) == call_text(failed)


def _is_other_wording(command: str, failed: ToolCall) -> bool:
    """Say whether a command is a failed call with words left out or added."""
    words, others = set(command.split()), set(normal_text(call_text(failed)).split())
    return bool(words and others) and (words < others or others < words)


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
