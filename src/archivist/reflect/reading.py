"""Read a run: the failures that it met, what overcame each, and how its purposes went."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from archivist.records import Episode, EpisodeStatus, Event, EventKind
from archivist.reflect.acts import Act, acts
from archivist.reflect.edits import Change
from archivist.reflect.failures import Failure
from archivist.reflect.installs import Install, is_of
from archivist.reflect.kinds import FailureKind as K
from archivist.reflect.past import Attempts
from archivist.reflect.phrases import base_name, is_scratch, open_command, relative
from archivist.reflect.remedies import Cure, cure, to_digest

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
_MANY_EDITS = 8
_MANY_RESTORED = 3
_OWN_MODULE = re.compile(r"^(?:test|tests|src)[._]|__(?:init|main)__|^[./]")


@dataclass(frozen=True, slots=True)
class Met:
    """One failure that the run met, which is not the fault of the code being written.

    `cost` counts the calls until it was overcome, or that failed on it again. `is_untouched` says that
    nothing of the project had been changed yet. `is_of_task` says that it may be what the task is about: a
    script of the run's own brought it out, or the same call went well once the run had changed the project.
    `after` names what had just been installed.
    """

    act: Act
    failure: Failure
    key: str
    cure: Cure | None = None
    cost: int = 1
    is_untouched: bool = False
    is_of_task: bool = False
    after: Install | None = None

    @property
    def is_of_code(self) -> bool:
        """Say whether it can be the task's own failure."""
        return self.failure.kind in CODE_KINDS


@dataclass(frozen=True, slots=True)
class Reading:
    """A run as miners see it; `digest` is what later runs need to know of it."""

    episode: Episode
    acts: tuple[Act, ...]
    met: tuple[Met, ...]
    attempts: Mapping[str, Attempts]
    said: tuple[Event, ...] = ()
    digest: dict[str, object] = field(default_factory=dict)


def read(episode: Episode, events: Sequence[Event]) -> Reading:
    """Read a run's events as failures with their remedies, attempts, edits and what the user said."""
    events = _at_home(events, str(episode.extra.get("cwd") or ""))
    calls = acts(events)
    met = _met(calls, episode.project)
    attempts = _attempts(calls)
    said = tuple(
        event for event in events if event.kind is EventKind.MESSAGE and event.role == "user" and event.text
    )
    reading = Reading(episode, tuple(calls), met, attempts, said)
    return replace(reading, digest=_digest(reading))


def _at_home(events: Sequence[Event], root: str) -> Sequence[Event]:
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


def _met(calls: Sequence[Act], project: str) -> tuple[Met, ...]:
    found: list[Met] = []
    scratch: set[str] = set()
    is_untouched = True
    in_python = any(act.purpose.startswith(("python", "pytest", "pip")) for act in calls)
    installed: Install | None = None
    for act in calls:
        failure = act.failure
        # The state before this call's own changes counts, unless the call puts an earlier state back first.
        is_original = is_untouched or any(change.is_restored and not change.file for change in act.changes)
        if failure is not None and not is_own(act, failure, scratch) and not _is_broken_here(calls, act):
            overcome = cure(calls, act.at)
            own_name = failure.kind is K.MISSING_COMMAND and is_of(failure.subject, project)
            found.append(
                Met(
                    act=act,
                    failure=failure,
                    # A project's own command is missing for the same reason as its module.
                    key=f"{project}|{'missing_module:python' if own_name and in_python else act.key}",
                    cure=overcome,
                    cost=overcome.acts[-1].at - act.at + 1 if overcome else 1,
                    is_untouched=is_original,
                    is_of_task=failure.kind in CODE_KINDS
                    and (_is_brought_out(act, failure, scratch) or _is_mended(calls, act)),
                    after=installed,
                )
            )
        if act.installs and not (failure and act.purpose.endswith("install")):
            installed = act.installs[-1]
        scratch |= {base_name(change.file) for change in act.changes if change.is_whole}
        is_untouched = is_untouched and not any(_touches(change, scratch) for change in act.changes)
    return tuple(found)


def _touches(change: Change, scratch: set[str]) -> bool:
    """Say whether a change is one of the project and not of a file that the run keeps for itself."""
    name = base_name(change.file)
    if change.is_restored or is_scratch(change.file) or is_scratch(name):
        return False
    return "/" in relative(change.file) if change.is_whole else name not in scratch


def _is_broken_here(calls: Sequence[Act], failed: Act) -> bool:
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


def _is_mended(calls: Sequence[Act], failed: Act) -> bool:
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


def is_own(act: Act, failure: Failure, scratch: set[str]) -> bool:
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


def _is_brought_out(act: Act, failure: Failure, scratch: set[str]) -> bool:
    """Say whether a script that the run wrote or ran brought a failure out of the project's code."""
    if not failure.files or failure.is_at_import:
        return False
    return base_name(failure.files[0]) in scratch | act.scripts


def _attempts(calls: Sequence[Act]) -> dict[str, Attempts]:
    found: dict[str, Attempts] = {}
    for act in calls:
        if act.is_look or not act.steps or "<script>" in act.purpose or act.purpose in ("", "write file"):
            continue
        has_timed_out = bool(act.failure and act.failure.kind is K.TIMEOUT) or bool(
            act.event.extra.get("timed_out")
        )
        found[act.purpose] = found.get(act.purpose, Attempts()) + Attempts(
            ok=int(not act.has_failed and not has_timed_out),
            failed=int(act.has_failed and not has_timed_out),
            timeout=int(has_timed_out),
            seconds=act.event.duration_s or 0.0,
        )
    return found


def _cured(met: Met) -> tuple[str, str]:
    return met.failure.subject, met.cure.remedy.text if met.cure else ""


def _digest(reading: Reading) -> dict[str, object]:
    failures: dict[str, dict[str, object]] = {}
    for key in list(dict.fromkeys(met.key for met in reading.met))[:_MOST_KEYS]:
        those = [met for met in reading.met if met.key == key]
        failures[key] = {
            "kind": those[0].failure.kind.value,
            "n": len(those),
            "subjects": list(dict.fromkeys(met.failure.subject for met in those if met.failure.subject))[:12],
            "remedies": [
                to_digest(remedy) for remedy in dict.fromkeys(met.cure.remedy for met in those if met.cure)
            ][:8],
            # Of several things under one key, which of them each remedy was for.
            "cures": [list(pair) for pair in dict.fromkeys(_cured(met) for met in those if met.cure)][:12],
            "places": list(dict.fromkeys(filter(None, map(place, those))))[:3],
            "untouched": any(met.is_untouched for met in those),
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
        "verified": verified(reading),
        "thrashed": sorted(thrashed(reading)),
        "duration_s": _seconds(reading.episode.started, reading.episode.finished),
        "cost_usd": usage.cost_usd if usage else 0.0,
        "tokens": usage.input_tokens + usage.output_tokens if usage else 0,
    }


def place(met: Met) -> str:
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


def verified(reading: Reading) -> str:
    """Return the test command that passed after the last change of a run that succeeded, or an empty text."""
    if reading.episode.status is not EpisodeStatus.SUCCESS:
        return ""
    for act in reversed(reading.acts):
        if any(not change.is_whole and not is_scratch(change.file) for change in act.changes):
            return ""
        if act.is_test and act.steps and not act.has_failed:
            return open_command(act.text)
    return ""


def thrashed(reading: Reading) -> dict[str, tuple[Act, ...]]:
    """Return the source files that the run edited over and over and put back, with the calls that did."""
    edits: dict[str, list[Act]] = {}
    restored: Counter[str] = Counter()
    for act in reading.acts:
        for change in act.changes:
            file = relative(change.file)
            if not is_scratch(change.file) and not change.is_whole and _SOURCE.search(file):
                edits.setdefault(file, []).append(act)
                restored[file] += change.is_restored
    return {
        file: tuple(those)
        for file, those in edits.items()
        if len(those) >= _MANY_EDITS and restored[file] >= _MANY_RESTORED
    }
