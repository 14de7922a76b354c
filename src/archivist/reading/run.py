"""Read a run: the failures that it met, what overcame each, and how its purposes went."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import takewhile
from operator import ne
from typing import Any

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall, read_tool_calls, test_noise
from archivist.reading.checker_rules import find_broken_rules
from archivist.reading.commands import (
    called_words,
    is_help,
    is_probe,
    own_scripts,
    step_purpose,
    working_steps,
)
from archivist.reading.cures import HORIZON, failed_remedies, find_cure, guess_cure, is_refused_by_shell
from archivist.reading.elsewhere import without_elsewhere
from archivist.reading.failures import Failure, lacks_export
from archivist.reading.filing import scratch_folder
from archivist.reading.help_texts import find_accepted_words
from archivist.reading.history import AttemptCounts
from archivist.reading.observed import (
    CODE_KINDS,
    ObservedFailure,
    by_project_install,
    by_refusing_command,
    by_remedy,
    observe_checks,
    observe_ci,
)
from archivist.reading.outcomes import has_worked
from archivist.reading.packages import Install, is_being_written, is_own_module
from archivist.reading.remedies import Remedy, RemedyKind, to_digest
from archivist.reading.replacements import Cure
from archivist.reading.rules import CLASSES
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import Step
from archivist.reading.signatures import clean_output, says_more
from archivist.reading.slips import SEVERAL, edit_slip
from archivist.reading.suite_results import digest_suites, find_unfiltered, suite_calls
from archivist.reading.undone import thrashed_files
from archivist.reading.wording import (
    advice,
    base_name,
    code,
    format_rule,
    is_informative,
    is_scratch,
    mask_command,
    quote_error,
    relative_path,
)
from archivist.reading.works import CommandCounts, command_purpose, count_commands, project_steps
from archivist.records import Episode, EpisodeKind, Event, EventKind
from archivist.records.words import OUTSIDE_SANDBOX

# Failures that may name a module of the project's own.
_NAMING_KINDS = frozenset((K.IMPORT_ERROR, K.MISSING_MODULE, K.VERSION_CONFLICT, K.ATTRIBUTE))
# What a program says that does not know how it is asked for help.
_ASKED_KINDS = frozenset((K.USAGE, K.OTHER))
# How many calls around a failure are searched, so that the time to read a run grows with its length only.
_REACH = 300
# A root such as `/w/` is too short to be told from other text.
_SHORTEST_ROOT = 5
# To look for what cured a failure takes about 2 ms: 4,000 failing calls in 4 MB of log took 12 s.
_MOST_FAILURES = 500
_CALL_KINDS = (EventKind.TOOL_CALL, EventKind.TEST)
_OF_THE_DAY = frozenset((K.NETWORK, K.PERMISSION, K.PROVIDER))
_ENTERS_ROOT = lazy_pattern(r"\s{0,20}cd\s{1,4}(/[\w./-]{1,200})")
# Bounds of the digest, which is stored with the episode and read again for every later run.
_MOST_KEYS, _MOST_PURPOSES, _MOST_PASSED = 40, 40, 12
_LONGEST_LINE = 300
_SHORT_ERROR = 40
_MOST_RULES = 4
_MOST_JUDGED = 20
_NOT_FOUND = lazy_pattern(r"(?:\bcommand not found: |\b)([\w.+-]{1,40}): (?:command )?not found\b")
_LONGEST_MISSING, _MANY_MISSING = 4_000, 3
# A line of code or of a difference, a link, or one word alone is no message.
_CODE_LINE = lazy_pattern(r"^\s*[-+@]|[,;{}(\[]\s*$|^\s*(?:https?:)?\S+\s*$")
_TAGGED_KINDS = 6
# A run whose first calls fail could not begin.
_FIRST_CALLS = 3
_PHASES = {"types": "typecheck"}
# Steps that only let time pass.
_PAUSES = frozenset(("sleep", "wait", "echo", "printf", "true", ":"))
_OF_ONE_RUN = ("/tmp/", "/var/", "/dev/", "/private/")  # noqa: S108
# An import by a path is of the project's own code.
_BY_PATH = lazy_pattern(r"__(?:init|main)__|^[./]|^[@~#](?:/|$)")

# What failed, and the number of the call that overcame it.
CureEnd = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RunReading:
    """A run as miners see it. `digest` is what later runs need to know of it.

    `checks` are failures once more under other names: failing tests, linters, builds and commits by what was
    run, whoever is at fault, what was overcome by what overcame it, and refused options by who refused them.
    """

    episode: Episode
    acts: tuple[ToolCall, ...]
    met: tuple[ObservedFailure, ...]
    attempts: Mapping[str, AttemptCounts]
    checks: tuple[ObservedFailure, ...] = ()
    said: tuple[Event, ...] = ()
    refused: tuple[Event, ...] = ()
    digest: dict[str, Any] = field(default_factory=dict)


def not_judged(*_texts: str) -> str:
    """Hold back whatever could be told, since nobody judged it."""
    return "not judged"


def read_run(
    episode: Episode,
    events: Sequence[Event],
    *,
    suspicion: Callable[..., str] = not_judged,
    earlier: Sequence[Mapping[str, Any]] = (),
) -> RunReading:
    """Read a run's events as failures with their remedies, attempts, edits and what the user said.

    `suspicion` returns why texts must not be shown without approval. Without it the digest lists no cures,
    since those are shown to later runs as they are. `earlier` are the digests of the project's runs before.
    """
    # What was done elsewhere, maybe in a stranger's repository, teaches nothing about this project.
    events = without_elsewhere(events, episode)
    # Paths are made relative to the project, wherever a machine keeps it.
    root = (str(episode.extra.get("cwd") or "") or _entered_root(events)).rstrip("/") + "/"
    written: dict[int, str] = {}
    if len(root) >= _SHORTEST_ROOT:
        written = {event.seq: event.text for event in events if root in event.text}
        events = [
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
    noise: dict[str, set[str]] = {}
    for purpose, lines in (item for notes in earlier for item in (notes.get("noise") or {}).items()):
        noise.setdefault(purpose, set()).update(lines)
    calls = read_tool_calls(events, noise)
    steps = list(project_steps(calls, written, episode))
    suites = suite_calls(steps)
    user_messages = [event for event in events if event.kind is EventKind.MESSAGE and event.role == "user"]
    failed = [act.at for act in calls if act.failure]
    # Up to those that may have cured the last failure that is examined.
    examined = calls[: failed[_MOST_FAILURES] + HORIZON] if len(failed) > _MOST_FAILURES else calls
    met = _observe_failures(examined, episode.project, sorted(event.seq for event in user_messages))
    # In a run that another one started, the other one's model speaks in the user's role.
    is_led = (episode.parent and not episode.is_part) or episode.kind is not EpisodeKind.ORCHESTRATOR_RUN
    said = tuple(event for event in user_messages if event.text and not is_led)
    checks = (
        *observe_checks(examined, episode.project),
        *by_remedy((*met, *_guess(examined, met)), episode.project),
        *by_refusing_command(met, examined, episode.project),
        *by_project_install(met, episode.project),
        *(ObservedFailure(*found) for found in find_unfiltered(suites, earlier, episode.project)),
        *observe_ci(calls, episode.project),
    )
    if suspicion is not not_judged:
        met, checks = (_judge_cures(those, suspicion) for those in (met, checks))
    refused = tuple(event for event in events if event.extra.get("rejected"))
    reading = RunReading(episode, tuple(calls), met, _count_attempts(calls), checks, said, refused)
    tests = digest_suites(suites, calls, suspicion)
    return replace(reading, digest=_digest(reading, count_commands(steps), tests, suspicion))


def _entered_root(events: Sequence[Event]) -> str:
    """Return the folder that most commands of a run enter first, for logs that do not say where it ran."""
    texts = [event.text for event in events if event.kind in _CALL_KINDS and event.text]
    entered = Counter(found[1] for text in texts if (found := _ENTERS_ROOT.match(text)))
    folder, times = next(iter(entered.most_common(1)), ("", 0))
    return folder if 2 * times >= len(texts) else ""


def _judge_cures(
    met: Sequence[ObservedFailure], suspicion: Callable[..., str]
) -> tuple[ObservedFailure, ...]:
    """Mark the failures whose lessons would be quarantined: cures are judged in the words of lessons."""
    judged: list[ObservedFailure] = []
    for each in met:
        why = ""
        if each.cure:
            remedy, command, line = each.cure.remedy, code(each.act.display_text), each.failure.line
            rule = format_rule(f"{command} fails with “{quote_error(line, 80)}”", advice(remedy))
            summary = f"{command} fails (“{quote_error(line)}”): {advice(remedy)}"
            why = suspicion(summary, rule, line, remedy.text)
        judged.append(replace(each, is_suspicious=bool(why)))
    return tuple(judged)


def _observe_failures(
    calls: Sequence[ToolCall], project: str, user_turns: Sequence[int]
) -> tuple[ObservedFailure, ...]:
    found: list[ObservedFailure] = []
    scratch: set[str] = set()
    is_untouched = True
    is_python = any(act.purpose.startswith(("python", "pytest", "pip")) for act in calls)
    installed: Install | None = None
    ends: set[CureEnd] = set()
    changes = [change for act in calls for change in act.changes if change.file]
    changed, made = [edit.file for edit in changes], [edit.file for edit in changes if edit.is_whole]
    for act in calls:
        failure = act.failure if not _is_expected(calls, act, changed, made) else None
        if failure and failure.kind is K.EDIT_NOT_APPLIED:
            failure = failure._replace(subject=edit_slip(calls, act) or failure.subject)
        if failure is None or _was_broken_by_run(calls, act):
            is_fleeting, cure, is_lesson = False, None, False
        else:
            is_fleeting = _is_transient(calls, act, user_turns)
            # Nothing cured a failure that went away by itself.
            cure = None if is_fleeting else _keep_first(act, find_cure(calls, act.at), ends)
            is_lesson = _is_mended_without_edit(calls, act, cure) or not _is_own_fault(act, failure, scratch)
        if failure and is_lesson:
            # A script that the run wrote or ran produced the failure in the project's code.
            is_own_script = not failure.is_at_import and any(
                base_name(file) in scratch | own_scripts(act.steps) for file in failure.files[:1]
            )
            is_own_command = failure.kind is K.MISSING_COMMAND and is_own_module(failure.subject, project)
            found.append(
                ObservedFailure(
                    act=act,
                    failure=failure,
                    # A project's own command is missing for the same reason as its module.
                    key=f"{project}|{'missing_module:python' if is_own_command and is_python else act.key}",
                    cure=cure,
                    cost=cure.acts[-1].at - act.at + 1 if cure else 1,
                    # The state before this call's own changes counts, unless it restores an earlier state.
                    is_untouched=is_untouched
                    or any(change.is_restored and not change.file for change in act.changes),
                    is_of_task=failure.kind in CODE_KINDS and (is_own_script or _is_fixed_later(calls, act)),
                    is_fleeting=is_fleeting,
                    after=installed,
                    in_vain=failed_remedies(calls, act.at),
                    accepted=find_accepted_words(calls, act),
                )
            )
        if act.installs and not (failure and act.purpose.endswith("install")):
            installed = act.installs[-1]
        scratch |= {base_name(change.file) for change in act.changes if change.is_whole}
        for change in act.changes:
            name = base_name(change.file)
            # Restored files and files that the run made for itself are no change of the project.
            is_of_project = "/" in relative_path(change.file) if change.is_whole else name not in scratch
            if is_of_project and not (change.is_restored or is_scratch(change.file) or is_scratch(name)):
                is_untouched = False
    return tuple(found)


def _is_expected(
    calls: Sequence[ToolCall], act: ToolCall, changed: Sequence[str], made: Sequence[str]
) -> bool:
    """Say whether a failure is of the run's own making, or of the moment: no lesson for others."""
    failure = act.failure
    if failure is None:
        return False
    if scratch_folder(failure):
        return True
    if failure.kind in _NAMING_KINDS:
        # A test that is written first fails on code that does not exist yet.
        return is_being_written(failure.line, failure.subject, changed, made)
    if failure.kind is K.MISSING_COMMAND:
        return is_probe(act.event.text) or _is_there(calls, act, failure.subject)
    # How a program is used is asked in many ways, until one answers.
    return failure.kind in _ASKED_KINDS and is_help(act.event.text)


def _is_there(calls: Sequence[ToolCall], failed: ToolCall, name: str) -> bool:
    """Say whether a program that was not found is there: it ran before, or many others were not found.

    The shell lost its search path for one call.
    """
    missing = {found[1] for found in _NOT_FOUND.finditer(failed.event.output[:_LONGEST_MISSING])}
    if len(missing) >= _MANY_MISSING:
        return True
    before = calls[max(0, failed.at - _REACH) : failed.at]
    return any(step.program == name for act in before if has_worked(act) for step in act.steps)


def _keep_first(act: ToolCall, cure: Cure | None, ends: set[CureEnd]) -> Cure | None:
    """Return what helped; nothing where it ends with a call that an earlier failure of this kind ends with.

    It answers the first call that failed so, not those that were tried next.
    """
    if cure is None or cure.remedy.way not in (RemedyKind.COMMAND, RemedyKind.STEP):
        return cure
    end = act.key, cure.acts[-1].at
    is_first = end not in ends
    ends.add(end)
    return cure if is_first else None


def _guess(calls: Sequence[ToolCall], met: Sequence[ObservedFailure]) -> Iterator[ObservedFailure]:
    """Yield the failures that no rule explains, each with what may have overcome it."""
    known = {each.act.at for each in met if each.cure or each.is_fleeting}
    ends = {(each.act.key, each.cure.acts[-1].at) for each in met if each.cure}
    for act in calls:
        if act.failure is None or act.at in known:
            continue
        if cure := _keep_first(act, guess_cure(calls, act.at), ends):
            in_vain = failed_remedies(calls, act.at)
            yield ObservedFailure(act=act, failure=act.failure, key="", cure=cure, in_vain=in_vain)


def _is_own_fault(act: ToolCall, failure: Failure, scratch: set[str]) -> bool:
    """Say whether the fault lies in what the run itself was writing, so that it is no lesson."""
    if (
        (failure.is_own_code and not lacks_export(failure))
        or failure.signature.error == "Traceback"
        or (failure.kind is K.MISSING_MODULE and _BY_PATH.search(failure.subject))
        or (failure.kind is K.MISSING_FILE and base_name(failure.subject) in scratch)
        # Only one run has its files there.
        or (failure.kind is K.MISSING_FILE and failure.subject.startswith(_OF_ONE_RUN))
    ):
        return True
    # A test that the run wrote itself says nothing about the project yet.
    arguments = act.main.arguments if act.main and act.is_test and failure.kind in CODE_KINDS else ()
    return any(base_name(argument.split("::")[0]) in scratch for argument in arguments)


def _is_mended_without_edit(calls: Sequence[ToolCall], act: ToolCall, cure: Cure | None) -> bool:
    """Say whether a call went well in another way, or after a step, with no file of the project changed.

    Then the code was not at fault, whatever the error says.
    """
    if cure is None or not cure.remedy.is_command:
        return False
    return not any(other.changes_project for other in calls[act.at + 1 : cure.acts[-1].at])


def _was_broken_by_run(calls: Sequence[ToolCall], failed: ToolCall) -> bool:
    """Say whether a failing test had passed earlier in the run, before the run changed the project."""
    if not failed.main or not failed.is_test or failed.kind not in CODE_KINDS:
        return False
    is_changed = False
    wanted = set(failed.main.arguments)
    for act in reversed(calls[max(0, failed.at - _REACH) : failed.at]):
        has_passed = act.is_test and act.main and not act.has_failed and wanted & set(act.main.arguments)
        if is_changed and has_passed:
            return True
        is_changed = is_changed or any(not change.is_whole for change in act.changes)
    return False


def _is_fixed_later(calls: Sequence[ToolCall], failed: ToolCall) -> bool:
    """Say whether the same call succeeded later, with files of the project changed in between."""
    is_changed = False
    wanted = set(failed.main.arguments) if failed.main else set()
    for act in calls[failed.at + 1 : failed.at + 1 + _REACH]:
        is_changed = is_changed or act.changes_project
        if not is_changed or act.has_failed or act.purpose != failed.purpose or not act.main:
            continue
        if act.text == failed.text or (failed.is_test and wanted & set(act.main.arguments)):
            return True
    return False


def _is_transient(calls: Sequence[ToolCall], failed: ToolCall, user_turns: Sequence[int]) -> bool:
    """Say whether the very same call succeeded next, or a test just before, with nothing done in between.

    Only calls without a user message in between count: before it anything may have been done elsewhere.
    """
    if failed.failure is None or is_refused_by_shell(failed.failure):
        return False
    program = failed.failure.signature.program
    if any(step.is_filter and step_purpose(step).lower() == program for step in failed.steps):
        # Without the filter that failed, or with another, it is not the same call.
        return False
    turn = bisect(user_turns, failed.event.seq)
    near = [
        act
        for act in calls[max(0, failed.at - _REACH) : failed.at + 1 + _REACH]
        if bisect(user_turns, act.event.seq) == turn
    ]
    later = [act for act in near if act.at > failed.at]
    earlier = [act for act in reversed(near) if act.at < failed.at] if failed.is_test else []
    return bool(failed.steps) and (_succeeds_unchanged(failed, later) or _succeeds_unchanged(failed, earlier))


def _succeeds_unchanged(failed: ToolCall, others: Sequence[ToolCall]) -> bool:
    call = call_text(failed)
    for act in others:
        # Outside of the sandbox it is not the same call.
        if act.changes or act.event.extra.get(OUTSIDE_SANDBOX) != failed.event.extra.get(OUTSIDE_SANDBOX):
            return False
        if call_text(act) == call:
            if has_worked(act):
                return True
            continue
        is_pause = bool(act.steps) and all(_is_pause(step) for step in act.steps)
        if act.installs or not (act.is_look or act.is_test or is_pause):
            return False
    return False


def call_text(act: ToolCall) -> str:
    """Return what a call runs, without pauses around it and without filters on its output."""
    text = ""
    for step in act.steps:
        is_kept = not step.is_filter and not _is_pause(step)
        if not is_kept or (step.program == "cd" and "".join(step.arguments[:1]).startswith(("/", "~"))):
            continue
        # What runs at the same time is another call than what runs one after the other.
        text += (" & " if step.operator == "&" else "; ") if text else ""
        # Quotes only matter where they hold several words together.
        text += " ".join(f"'{value}'" if " " in value else value for value in step.values)
    return text


def _is_pause(step: Step) -> bool:
    return step.program in _PAUSES and not step.is_writing


def _count_attempts(calls: Sequence[ToolCall]) -> dict[str, AttemptCounts]:
    found: defaultdict[str, AttemptCounts] = defaultdict(AttemptCounts)
    for act in calls:
        if act.is_look or not act.steps or "<script>" in act.purpose or act.purpose in ("", "write file"):
            continue
        is_timeout = act.kind is K.TIMEOUT or bool(act.event.extra.get("timed_out"))
        # A server or a right that was missing that day says nothing about who called.
        is_failed = act.has_failed and act.kind not in _OF_THE_DAY
        found[act.purpose] += AttemptCounts(
            ok=int(not act.has_failed and not is_timeout),
            failed=int(is_failed and not is_timeout),
            timeout=int(is_timeout),
            seconds=act.event.duration_s or 0.0,
        )
        # Of a chain that went well each step did.
        is_chain = len(act.steps) > 1 and all(step.operator in ("", "&&") for step in act.steps)
        others = [step for step in working_steps(act.steps) if step is not act.main] if is_chain else []
        if others and not is_timeout and has_worked(act):
            for purpose in map(step_purpose, others):
                found[purpose] += AttemptCounts(ok=1)
    return dict(found)


def _digest(
    reading: RunReading,
    works: list[CommandCounts],
    tests: dict[str, Any],
    suspicion: Callable[..., str],
) -> dict[str, Any]:
    by_key: dict[str, list[ObservedFailure]] = {}
    for met in (*reading.met, *reading.checks):
        by_key.setdefault(met.key, []).append(met)
    busiest = sorted(
        reading.attempts.items(), key=lambda item: -item[1].ok - item[1].failed - item[1].timeout
    )
    # Test calls that passed before the run changed anything.
    before = takewhile(lambda act: all(is_scratch(change.file) for change in act.changes), reading.acts)
    passed = [act for act in before if act.is_test and act.steps and not act.has_failed]
    episode, usage = reading.episode, reading.episode.usage
    duration = (episode.finished - episode.started) if episode.started and episode.finished else None
    return {
        # Cures were checked when they were noted: a hook has no time to do it.
        "judged": suspicion is not not_judged,
        "failures": {
            key: digest_failure(those, suspicion, _LONGEST_LINE)
            for key, those in list(by_key.items())[:_MOST_KEYS]
        },
        "attempts": {
            purpose: {**asdict(attempts), "seconds": round(attempts.seconds, 1)}
            for purpose, attempts in busiest[:_MOST_PURPOSES]
        },
        # Told to later runs as they are, like cures.
        "works": [each for each in works if not suspicion(str(each[1]), "")],
        **tests,
        "passed": list(dict.fromkeys(map(call_text, passed)))[:_MOST_PASSED],
        # Never told: only compared with what later runs print.
        "noise": test_noise(reading.acts),
        "thrashed": sorted(thrashed_files(reading.acts)),
        "duration_s": max(0.0, duration.total_seconds()) if duration else 0.0,
        "cost_usd": (usage.cost_usd if usage else None) or 0.0,
        "tokens": usage.input_tokens + usage.output_tokens if usage else 0,
    }


def digest_failure(
    those: Sequence[ObservedFailure],
    suspicion: Callable[..., str] = not_judged,
    longest_line: int | None = None,
) -> dict[str, Any]:
    """Return what is stored about one failure, given every time the run met it."""
    first = those[0]
    # The call that each remedy helped, and its error.
    shown: dict[Remedy, tuple[str, str]] = {}
    cures: dict[tuple[str, str, str], None] = {}
    for met in those:
        if met.cure:
            shown.setdefault(met.cure.remedy, (met.act.display_text, met.failure.line[:longest_line]))
        # Remedies are only counted here. Cures are shown next to an error as they are.
        if met.cure and suspicion is not not_judged and not met.is_suspicious:
            remedy = met.cure.remedy
            text = remedy.text if remedy.is_command else advice(remedy)
            cures[met.failure.subject, text, remedy.way.value] = None
    errors = (error for met in those if says_more(error := met.failure.signature.error, met.act.purpose))
    name = first.act.purpose if first.act.steps else first.act.event.tool
    # A script of one run, or a look at something, is nothing that a project often fails in. Of a line with
    # several commands, which one failed with which of the messages is a guess.
    is_unclear = first.act.is_look or len(working_steps(first.act.steps)) > 1
    name = "" if is_unclear or not {"<", "`"}.isdisjoint(name) else name
    # What a remedy was a guess for, so that it is found from its failure.
    is_remedy = first.key.partition("|")[2].startswith(f"{K.REMEDY}:")
    guessed_for = list(dict.fromkeys(met.act.key for met in those))[:4] if is_remedy else []
    # Judged whole: what is cut off may be what makes it suspicious.
    lines = " ".join(dict.fromkeys(met.failure.line for met in those[:_MOST_JUDGED]))
    return {
        "kind": first.failure.kind.value,
        # Told to later runs as they are.
        "name": name if not suspicion(name, lines) else "",
        **_called_of(those, name, suspicion),
        "errors": _short_errors(those, suspicion),
        # What is told to fail is told in words of ours: a program may choose all others.
        "class": next(filter(CLASSES.__contains__, errors), ""),
        "n": len(those),
        **({"of": guessed_for} if guessed_for else {}),
        "events": [met.act.event.id for met in those[:2]]
        + [act.event.id for met in those[:2] if met.cure for act in met.cure.acts[:2]],
        **_subjects_of(those),
        "remedies": [to_digest(remedy) for remedy in shown][:8],
        "shown": [list(example) for example in shown.values()][:8],
        "in_vain": list(dict.fromkeys(text for met in those for text in met.in_vain))[:8],
        "accepted": next((met.accepted for met in those if met.accepted), ""),
        # One key may cover several subjects: which of them each remedy was for.
        "cures": [list(row) for row in cures][:12],
        "places": [
            place
            for place in list(dict.fromkeys(filter(None, map(_place_of, those))))[:3]
            if suspicion is not_judged or not suspicion(place, "")
        ],
        "untouched": any(met.is_untouched for met in those),
        "fleeting": any(met.is_fleeting for met in those),
        "command": _failing_link(first),
        "line": first.failure.line[:longest_line],
    }


def _called_of(those: Sequence[ObservedFailure], name: str, suspicion: Callable[..., str]) -> dict[str, str]:
    """Return the subcommand that all failing calls of a program were of, where its name does not say it."""
    called = {called_words(met.act.main, most=1) for met in those if met.act.main}
    shown = called.pop() if len(called) == 1 else ""
    is_longer = bool(name) and shown.startswith(f"{name} ")
    return {"called": shown} if is_longer and not suspicion(shown, "") else {}


def _short_errors(those: Sequence[ObservedFailure], suspicion: Callable[..., str]) -> list[str]:
    """Return the classes of a failure, or of a checker the rules that were broken."""
    errors = [error for error in dict.fromkeys(map(_short_error, those)) if error][:2]
    if those[0].failure.kind is not K.CHECK:
        return errors
    # What a checker still finds in the end is what no automatic fix mends.
    broken = find_broken_rules(clean_output(those[-1].act.event.output))
    return [rule for rule in broken if not suspicion(rule, "")][:_MOST_RULES] or errors


def _subjects_of(those: Sequence[ObservedFailure]) -> dict[str, list[str]]:
    """Return what a failure was about, and what of it the calls named: the rest are the program's words."""
    counts = Counter(met.failure.subject for met in those if met.failure.subject)
    # A patch over several files may be wrong in a line as any other.
    is_chance = 2 * counts[SEVERAL] <= len(those) and those[0].failure.kind is K.EDIT_NOT_APPLIED
    subjects = [each for each in counts if each != SEVERAL or not is_chance][:12]
    calls = "\n".join(met.act.event.text for met in those)
    typed = [each for each in subjects if re.search(rf"(?<![\w-]){re.escape(each)}(?!\w)", calls)]
    return {"subjects": subjects, **({"typed": typed} if typed else {})}


def _short_error(met: ObservedFailure) -> str:
    """Return the class of a failure, or the start of its message where the class says nothing."""
    failure = met.failure
    if says_more(failure.signature.error, met.act.purpose):
        return failure.signature.error
    is_message = says_more(failure.line, met.act.purpose) and not _CODE_LINE.search(failure.line)
    quoted = quote_error(failure.line, _SHORT_ERROR) if is_message else ""
    # A word or two before the cut tell nothing.
    return "" if quoted.endswith("…") and len(quoted.split()) < 3 else quoted


def _failing_link(met: ObservedFailure) -> str:
    """Return the step of a line that failed, or the option that was refused; else the whole line."""
    act, program = met.act, met.failure.signature.program
    refused = met.failure.subject.lstrip("-") if met.failure.kind is K.USAGE else ""
    for step in act.steps if refused else ():
        # Of a refused option the rest of the call says nothing.
        if flag := next((flag for flag in step.flags if flag.lstrip("-") == refused), ""):
            before = takewhile(partial(ne, flag), (word.value.partition("=")[0] for word in step.words))
            called = called_words(step)
            return f"{called} -- {flag}" if "--" in before else f"{called} {flag}"
    working = working_steps(act.steps)
    failing = [step for step in working if program and step_purpose(step).lower() == program]
    if len(working) < 2 or len(failing) != 1 or failing[0].bodies:
        return act.display_text
    text = mask_command(failing[0].text)
    return text if is_informative(text) else act.display_text


def _place_of(met: ObservedFailure) -> str:
    """Return the folder of the tests that a failing test call ran, the file of a refused edit, or nothing."""
    if met.failure.kind is K.EDIT_NOT_APPLIED:
        return relative_path(met.act.event.target)
    for argument in met.act.main.arguments if met.act.is_test and met.act.main else ():
        path = argument.split("::")[0]
        if "/" in path and not path.startswith(("/", "~", "-")):
            folder, _, name = path.rstrip("/").rpartition("/")
            return folder if "." in name else path.rstrip("/")
    return ""


def run_tags(reading: RunReading) -> tuple[str, ...]:
    """Return what a run can be found by: the phases that it went through, and the kinds of its failures."""
    phases = (command_purpose(step) for act in reading.acts for step in act.steps)
    named = dict.fromkeys(_PHASES.get(phase, phase) for phase in phases if phase not in ("", "check", "run"))
    kinds = dict.fromkeys(met.failure.kind.value for met in reading.met if met.failure.kind is not K.OTHER)
    is_early = any(act.has_failed for act in reading.acts[:_FIRST_CALLS])
    return (*named, *list(kinds)[:_TAGGED_KINDS], *(("init-failure",) if is_early else ()))
