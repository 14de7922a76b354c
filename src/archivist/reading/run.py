"""Read a run: the failures that it met, what overcame each, and how its purposes went."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from archivist.lessons.quarantine import suspicion
from archivist.reading.calls import ToolCall, read_tool_calls
from archivist.reading.edits import FileEdit
from archivist.reading.failure_kinds import FailureKind as K
from archivist.reading.failures import Failure
from archivist.reading.history import AttemptCounts
from archivist.reading.installs import Install, is_own_module
from archivist.reading.modules import is_being_written
from archivist.reading.phrases import base_name, is_scratch, mask_command, relative_path
from archivist.reading.remedies import Cure, Remedy, RemedyKind, failed_remedies, find_cure, to_digest
from archivist.reading.steps import Step
from archivist.reading.wording import advice
from archivist.records import Episode, EpisodeKind, EpisodeStatus, Event, EventKind

_MOST_KEYS = 40
# A root such as `/w/` is too short to be told from other text.
_SHORTEST_ROOT = 5
# How far around a failure is looked: a run of a million calls is read in time.
_REACH = 300
_MOST_PURPOSES = 40
_LONGEST_LINE = 200
# Failures of code as such; only recurrence tells the surroundings' fault from the task's.
CODE_KINDS = frozenset(
    (K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.TEST_FAILURE, K.SYNTAX, K.BUILD, K.OTHER, K.CRASH)
)
_SOURCE = re.compile(r"\.(?!(?:md|txt|patch|log|json|lock)$)\w{1,5}$")
# Failures that may name a module of the project's own.
_NAMING = frozenset((K.IMPORT_ERROR, K.MISSING_MODULE, K.VERSION_CONFLICT, K.ATTRIBUTE))
# Steps that do nothing but let time go by.
_PAUSES = frozenset(("sleep", "wait", "echo", "printf", "true", ":"))
_MOST_PASSED = 12
_MANY_EDITS = 8
_MANY_RESTORED = 3
_OWN_MODULE = re.compile(r"^(?:test|tests|src)[._]|__(?:init|main)__|^[./]|^[@~#](?:/|$)")


@dataclass(frozen=True, slots=True)
class ObservedFailure:
    """One failure that the run met, which is not the fault of the code being written.

    `cost` counts the calls until it was overcome, or that failed on it again. `is_untouched` says that
    nothing of the project had been changed yet. `is_of_task` says that it may be what the task is about: a
    script of the run's own brought it out, or the same call went well once the run had changed the project.
    `is_fleeting` says that the very same call went well with nothing done in between. `after` names what had
    just been installed, `in_vain` what was done about it and did not help.
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

    @property
    def is_of_code(self) -> bool:
        """Say whether it can be the task's own failure."""
        return self.failure.kind in CODE_KINDS


@dataclass(frozen=True, slots=True)
class RunReading:
    """A run as miners see it; `digest` is what later runs need to know of it."""

    episode: Episode
    acts: tuple[ToolCall, ...]
    met: tuple[ObservedFailure, ...]
    attempts: Mapping[str, AttemptCounts]
    said: tuple[Event, ...] = ()
    digest: dict[str, object] = field(default_factory=dict)


def read_run(episode: Episode, events: Sequence[Event]) -> RunReading:
    """Read a run's events as failures with their remedies, attempts, edits and what the user said."""
    events = _with_relative_paths(events, str(episode.extra.get("cwd") or ""))
    calls = read_tool_calls(events)
    met = _observe_failures(calls, episode.project, _user_turns(events))
    attempts = _attempts(calls)
    # In a run that another one started, it is the other one's model that speaks in the user's role.
    is_led = bool(episode.parent) and not episode.is_part
    is_delegated = is_led or episode.kind is not EpisodeKind.ORCHESTRATOR_RUN
    said = tuple(
        event
        for event in (() if is_delegated else events)
        if event.kind is EventKind.MESSAGE and event.role == "user" and event.text
    )
    reading = RunReading(episode, tuple(calls), met, attempts, said)
    return replace(reading, digest=_digest(reading))


def _with_relative_paths(events: Sequence[Event], root: str) -> Sequence[Event]:
    """Return events with paths of the project relative to it, wherever a machine keeps it."""
    root = root.rstrip("/") + "/"
    if len(root) < _SHORTEST_ROOT:
        return events
    return [
        replace(
            event,
            text=event.text.replace(root, ""),
            target=event.target.replace(root, ""),
            output=event.output.replace(root, ""),
        )
        if root in event.text or root in event.target or root in event.output
        else event
        for event in events
    ]


def _user_turns(events: Sequence[Event]) -> list[int]:
    """Return when the user spoke: meanwhile anything may have been done elsewhere."""
    return sorted(event.seq for event in events if event.kind is EventKind.MESSAGE and event.role == "user")


def _observe_failures(
    calls: Sequence[ToolCall], project: str, spoken: Sequence[int]
) -> tuple[ObservedFailure, ...]:
    found: list[ObservedFailure] = []
    scratch: set[str] = set()
    is_untouched = True
    in_python = any(act.purpose.startswith(("python", "pytest", "pip")) for act in calls)
    installed: Install | None = None
    changed = [change for act in calls for change in act.changes if change.file]
    files, made = [each.file for each in changed], [each.file for each in changed if each.is_whole]
    for act in calls:
        failure = act.failure
        # What a test written first misses in the code that is to come is no lesson.
        if (
            failure
            and failure.kind in _NAMING
            and is_being_written(failure.line, failure.subject, files, made)
        ):
            failure = None
        # The state before this call's own changes counts, unless the call puts an earlier state back first.
        is_original = is_untouched or any(change.is_restored and not change.file for change in act.changes)
        if (
            failure is not None
            and not is_own_fault(act, failure, scratch)
            and not _was_broken_by_run(calls, act)
        ):
            is_fleeting = _is_transient(_calls_in_turn(calls, act, spoken), act)
            # What goes away by itself nothing has cured.
            overcome = None if is_fleeting else find_cure(calls, act.at)
            own_name = failure.kind is K.MISSING_COMMAND and is_own_module(failure.subject, project)
            found.append(
                ObservedFailure(
                    act=act,
                    failure=failure,
                    # A project's own command is missing for the same reason as its module.
                    key=f"{project}|{'missing_module:python' if own_name and in_python else act.key}",
                    cure=overcome,
                    cost=overcome.acts[-1].at - act.at + 1 if overcome else 1,
                    is_untouched=is_original,
                    is_of_task=failure.kind in CODE_KINDS
                    and (_is_from_own_script(act, failure, scratch) or _is_fixed_later(calls, act)),
                    is_fleeting=is_fleeting,
                    after=installed,
                    in_vain=failed_remedies(calls, act.at),
                )
            )
        if act.installs and not (failure and act.purpose.endswith("install")):
            installed = act.installs[-1]
        scratch |= {base_name(change.file) for change in act.changes if change.is_whole}
        is_untouched = is_untouched and not any(_changes_project(change, scratch) for change in act.changes)
    return tuple(found)


def _changes_project(change: FileEdit, scratch: set[str]) -> bool:
    """Say whether a change is one of the project and not of a file that the run keeps for itself."""
    name = base_name(change.file)
    if change.is_restored or is_scratch(change.file) or is_scratch(name):
        return False
    return "/" in relative_path(change.file) if change.is_whole else name not in scratch


def _was_broken_by_run(calls: Sequence[ToolCall], failed: ToolCall) -> bool:
    """Say whether a test went well earlier in the run, before the run changed the project."""
    if (
        not failed.is_test
        or not failed.main
        or failed.failure is None
        or failed.failure.kind not in CODE_KINDS
    ):
        return False
    is_changed = False
    wanted = set(failed.main.arguments)
    for act in reversed(calls[max(0, failed.at - _REACH) : failed.at]):
        if (
            is_changed
            and act.is_test
            and act.main
            and not act.has_failed
            and wanted & set(act.main.arguments)
        ):
            return True
        is_changed = is_changed or any(not change.is_whole for change in act.changes)
    return False


def _calls_in_turn(calls: Sequence[ToolCall], act: ToolCall, spoken: Sequence[int]) -> list[ToolCall]:
    """Return the calls around one between which the user said nothing."""
    turn = bisect(spoken, act.event.seq)
    near = calls[max(0, act.at - _REACH) : act.at + 1 + _REACH]
    return [each for each in near if bisect(spoken, each.event.seq) == turn]


def _is_transient(calls: Sequence[ToolCall], failed: ToolCall) -> bool:
    """Say whether the very same call went well next, or a test just before, with nothing done between."""
    later = [act for act in calls if act.at > failed.at]
    earlier = [act for act in reversed(calls) if act.at < failed.at] if failed.is_test else []
    return bool(failed.steps) and (_succeeds_unchanged(failed, later) or _succeeds_unchanged(failed, earlier))


def _succeeds_unchanged(failed: ToolCall, others: Sequence[ToolCall]) -> bool:
    call = call_text(failed)
    for act in others:
        if act.changes:
            return False
        if call_text(act) == call:
            if not act.has_failed:
                return True
        elif act.installs or not (act.is_look or act.is_test or _is_wait(act)):
            return False
    return False


def call_text(act: ToolCall) -> str:
    """Return what a call runs, without the pauses around it and without what cuts its output."""
    return "; ".join(
        " ".join(word.value for word in step.words)
        for step in act.steps
        if not step.is_filter and not _is_pause(step) and not _is_absolute_cd(step)
    )


def _is_absolute_cd(step: Step) -> bool:
    return step.program == "cd" and "".join(step.arguments[:1]).startswith(("/", "~"))


def _is_wait(act: ToolCall) -> bool:
    return bool(act.steps) and all(_is_pause(step) for step in act.steps)


def _is_pause(step: Step) -> bool:
    return step.program in _PAUSES and not step.is_writing


def _is_fixed_later(calls: Sequence[ToolCall], failed: ToolCall) -> bool:
    """Say whether the same call went well later, with files of the project changed in between."""
    is_changed = False
    wanted = set(failed.main.arguments) if failed.main else set()
    for act in calls[failed.at + 1 : failed.at + 1 + _REACH]:
        is_changed = is_changed or any(
            not change.is_whole and not is_scratch(change.file) for change in act.changes
        )
        if not is_changed or act.has_failed or act.purpose != failed.purpose or not act.main:
            continue
        if act.text == failed.text or (failed.is_test and wanted & set(act.main.arguments)):
            return True
    return False


def is_own_fault(act: ToolCall, failure: Failure, scratch: set[str]) -> bool:
    """Say whether a failure is of what the run itself was writing, and so no lesson."""
    if failure.is_own_code or failure.signature.error == "Traceback":
        return True
    if failure.kind is K.MISSING_MODULE and _OWN_MODULE.search(failure.subject):
        return True
    if failure.kind is K.MISSING_FILE and is_scratch(failure.subject):
        return True
    # A test that the run wrote itself says nothing of the project yet.
    arguments = act.main.arguments if act.main and act.is_test and failure.kind in CODE_KINDS else ()
    return any(base_name(each.split("::")[0]) in scratch for each in arguments)


def _is_from_own_script(act: ToolCall, failure: Failure, scratch: set[str]) -> bool:
    """Say whether a script that the run wrote or ran brought a failure out of the project's code."""
    if not failure.files or failure.is_at_import:
        return False
    return base_name(failure.files[0]) in scratch | act.scripts


def _attempts(calls: Sequence[ToolCall]) -> dict[str, AttemptCounts]:
    found: dict[str, AttemptCounts] = {}
    for act in calls:
        if act.is_look or not act.steps or "<script>" in act.purpose or act.purpose in ("", "write file"):
            continue
        has_timed_out = bool(act.failure and act.failure.kind is K.TIMEOUT) or bool(
            act.event.extra.get("timed_out")
        )
        found[act.purpose] = found.get(act.purpose, AttemptCounts()) + AttemptCounts(
            ok=int(not act.has_failed and not has_timed_out),
            failed=int(act.has_failed and not has_timed_out),
            timeout=int(has_timed_out),
            seconds=act.event.duration_s or 0.0,
        )
    return found


def _cure_row(met: ObservedFailure) -> tuple[str, str, str]:
    """Return what was cured, by what and in what way; what is no command as a sentence says it."""
    if met.cure is None:
        return met.failure.subject, "", ""
    remedy = met.cure.remedy
    is_command = remedy.way in (RemedyKind.COMMAND, RemedyKind.STEP, RemedyKind.INSTALL)
    return met.failure.subject, remedy.text if is_command else advice(remedy), remedy.way.value


def _calls_by_remedy(cured: Sequence[ObservedFailure]) -> dict[Remedy, tuple[str, str]]:
    """Return each remedy with the first call that it helped, and what that had said."""
    found: dict[Remedy, tuple[str, str]] = {}
    for met in cured:
        if met.cure:
            found.setdefault(met.cure.remedy, (met.act.display_text, met.failure.line[:_LONGEST_LINE]))
    return found


def _digest(reading: RunReading) -> dict[str, object]:
    failures: dict[str, dict[str, object]] = {}
    for key in list(dict.fromkeys(met.key for met in reading.met))[:_MOST_KEYS]:
        those = [met for met in reading.met if met.key == key]
        cured = [met for met in those if met.cure]
        # These are told beside an error as they are, so what must wait for a person is left out; the others
        # are counted, in lessons that are judged when they are worded.
        told = [met for met in cured if met.cure and not suspicion(met.cure.remedy.text, met.failure.line)]
        failures[key] = {
            "kind": those[0].failure.kind.value,
            "n": len(those),
            "subjects": list(dict.fromkeys(met.failure.subject for met in those if met.failure.subject))[:12],
            "remedies": [to_digest(remedy) for remedy in _calls_by_remedy(cured)][:8],
            # What each of them was seen against: the call and what it said.
            "shown": [list(pair) for pair in _calls_by_remedy(cured).values()][:8],
            "in_vain": list(dict.fromkeys(text for met in those for text in met.in_vain))[:8],
            # Of several things under one key, which of them each remedy was for.
            "cures": [list(pair) for pair in dict.fromkeys(map(_cure_row, told))][:12],
            "places": list(dict.fromkeys(filter(None, map(test_folder, those))))[:3],
            "untouched": any(met.is_untouched for met in those),
            "fleeting": any(met.is_fleeting for met in those),
            "command": those[0].act.display_text,
            "line": those[0].failure.line[:_LONGEST_LINE],
        }
    busiest = sorted(
        reading.attempts.items(), key=lambda item: -item[1].ok - item[1].failed - item[1].timeout
    )
    usage = reading.episode.usage
    return {
        "failures": failures,
        "attempts": {
            purpose: {
                "ok": it.ok,
                "failed": it.failed,
                "timeout": it.timeout,
                "seconds": round(it.seconds, 1),
            }
            for purpose, it in busiest[:_MOST_PURPOSES]
        },
        "verified": verifying_command(reading),
        "passed": _passed_tests(reading),
        "thrashed": sorted(thrashed_files(reading)),
        "duration_s": _seconds(reading.episode.started, reading.episode.finished),
        "cost_usd": usage.cost_usd if usage else 0.0,
        "tokens": usage.input_tokens + usage.output_tokens if usage else 0,
    }


def test_folder(met: ObservedFailure) -> str:
    """Return the folder of the tests that a failing test call ran, or an empty text."""
    if not met.act.is_test or not met.act.main:
        return ""
    for argument in met.act.main.arguments:
        path = argument.split("::")[0]
        if "/" in path and not path.startswith(("/", "~", "-")):
            return path.rstrip("/").rsplit("/", 1)[0] if "." in path.rsplit("/", 1)[-1] else path.rstrip("/")
    return ""


def _seconds(started: datetime | None, finished: datetime | None) -> float:
    return max(0.0, (finished - started).total_seconds()) if started and finished else 0.0


def verifying_command(reading: RunReading) -> str:
    """Return the test command that passed after the last change of a run that succeeded, or an empty text."""
    if reading.episode.status is not EpisodeStatus.SUCCESS:
        return ""
    for act in reversed(reading.acts):
        if any(not change.is_whole and not is_scratch(change.file) for change in act.changes):
            return ""
        if act.is_test and act.steps and not act.has_failed:
            return mask_command(act.text)
    return ""


def _passed_tests(reading: RunReading) -> list[str]:
    """Return the test calls that went well before the run changed anything."""
    found: dict[str, None] = {}
    for act in reading.acts:
        if any(not is_scratch(change.file) for change in act.changes):
            break
        if act.is_test and act.steps and not act.has_failed:
            found[call_text(act)] = None
    return list(found)[:_MOST_PASSED]


def thrashed_files(reading: RunReading) -> dict[str, tuple[ToolCall, ...]]:
    """Return the source files that the run edited over and over and put back, with the calls that did."""
    edits: dict[str, list[ToolCall]] = {}
    restored: Counter[str] = Counter()
    for act in reading.acts:
        for change in act.changes:
            file = relative_path(change.file)
            if not is_scratch(change.file) and not change.is_whole and _SOURCE.search(file):
                edits.setdefault(file, []).append(act)
                restored[file] += change.is_restored
    return {
        file: tuple(those)
        for file, those in edits.items()
        if len(those) >= _MANY_EDITS and restored[file] >= _MANY_RESTORED
    }
