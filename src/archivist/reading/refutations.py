"""Tell when another call succeeded for another reason than how it differs from the one that failed."""

from __future__ import annotations

from collections.abc import Sequence

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.commands import is_look
from archivist.reading.evasions import shows_instead
from archivist.reading.narrower_runs import leaves_out_failure
from archivist.reading.outcomes import has_worked, sums_up_success
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.replacements import (
    Cure,
    edits_project,
    entered_folder,
    enters_within,
    fails_alike,
    plain_command,
)
from archivist.reading.rules import FailureKind as K
from archivist.reading.works import NAME_PART, without_passing_flags

# Another try of a command comes soon.
NEAR = 12
_NOT_READY = lazy_pattern(
    r"(?i)connection (?:refused|reset|closed)|(?:could not|couldn't|failed to|cannot|unable to) connect"
    r"|not ready|starting up|still (?:loading|starting)|try again (?:later|in)|temporarily unavailable"
)
# What says where to: a path, a host, a port, or an option about such.
_ADDRESS = lazy_pattern(
    r"(?i)[/:@<]|\w\.\w|^\d{2,5}$|=|host|port|url|server|sock|context|profile|config|region|endpoint|offline"
    r"|local|proxy|registry|mirror|index|source|^-[hpHPDL]"
)
# Options that say what is to be done, not how.
_DEEDS = frozenset((
    "fix", "write", "apply", "update", "upgrade", "save", "create", "delete", "remove", "install", "generate",
    "sync", "migrate", "coverage", "cov",
))  # fmt: skip
_SHORTEST_STEM, _SOON = 4, 6
_RESUMING = frozenset(("--continue", "--abort", "--skip", "--quit"))
_FAULTS_OF_CODE = frozenset((K.TEST_FAILURE, K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.SYNTAX))


def is_refuted(acts: Sequence[ToolCall], failed: ToolCall, cure: Cure) -> bool:
    """Say whether the run shows that another call was not what helped.

    It only looked or only printed otherwise, it failed alike before or after, it printed no more than the
    failed one did, or the failed call itself works then with nothing done in between.
    """
    if cure.remedy.way is not RemedyKind.COMMAND:
        return False
    is_narrower = leaves_out_failure(cure.acts[-1], failed)
    if is_narrower or _only_seems_to_help(cure, failed) or _drops_what_it_was_for(cure, acts):
        return True
    right, call, wrong = cure.acts[-1], plain_command(cure.acts[-1]), plain_command(failed)
    printed = {line.strip() for line in right.event.output.splitlines() if line.strip()}
    if (
        printed
        and not sums_up_success(right)
        and printed <= {line.strip() for line in failed.event.output.splitlines()}
    ):
        return True
    # What had run before the failure too was no reaction to it, unless the failed call could not run at all.
    could_run = failed.kind not in (K.MISSING_COMMAND, K.USAGE)
    is_other_program = right.main and failed.main and right.purpose != failed.purpose
    before = acts[max(0, failed.at - NEAR) : failed.at] if could_run and is_other_program else ()
    if any(act.steps and plain_command(act) == call and has_worked(act) for act in before):
        return True
    near = acts[failed.at + 1 : right.at + 1 + NEAR]
    if any(plain_command(act) == call and fails_alike(act, failed) for act in near if act.steps):
        return True
    # The same call answered nothing at first: time helped, or something else.
    between = (act for act in acts[failed.at + 1 : right.at] if act.steps and not act.has_failed)
    if any(plain_command(act) == call and not has_worked(act) for act in between):
        return True
    for act in near[right.at - failed.at :]:
        if act.steps and plain_command(act) == wrong:
            return has_worked(act)
        if edits_project(act) or act.installs or not (act.is_look or plain_command(act) == call):
            break
    return False


def _only_seems_to_help(cure: Cure, failed: ToolCall) -> bool:
    """Say whether the two calls alone show that nothing was overcome."""
    main, wanted = cure.acts[-1].main, failed.main
    refused = failed.refused_word
    # Where the word was refused that may be the verb, nothing shows what was wanted.
    is_verb = wanted and not refused.startswith("-") and refused in wanted.values
    if main and wanted and is_look(main) and not is_look(wanted) and not (refused and is_verb):
        return True
    # It goes on with what was stopped; what was done meanwhile helped.
    if main and not _RESUMING.isdisjoint(main.flags) and (not wanted or main.flags != wanted.flags):
        return True
    message = failed.failure.line if failed.failure else ""
    if shows_instead(cure.acts[-1].steps, failed.steps, message):
        return True
    # What only prints more, or less, helps nothing.
    if without_passing_flags(cure.remedy.text.split()) == without_passing_flags(cure.remedy.instead.split()):
        return True
    # From one part of the project to another it is another check; into a part it may be the right place.
    is_other_part = any(map(enters_within, failed.steps))
    faults = _FAULTS_OF_CODE | {K.OTHER, K.BUILD} if is_other_part else _FAULTS_OF_CODE
    is_tested_elsewhere = failed.kind in faults and bool(entered_folder(cure.acts[-1], failed))
    return is_tested_elsewhere or _only_time_passed(failed, cure.remedy)


def _drops_what_it_was_for(cure: Cure, acts: Sequence[ToolCall]) -> bool:
    """Say whether a call only leaves an option out that names a deed, or whose purpose was reached later.

    `check --fix` was to mend something: `check` succeeds and mends nothing.
    """
    words, wanted = cure.remedy.text.split(), cure.remedy.instead.split()
    dropped = [word for word in wanted if word not in words and word.startswith("-")]
    if not dropped or any(word not in wanted for word in words):
        return False
    names = [{part.lower() for part in NAME_PART.findall(flag.partition("=")[0])} for flag in dropped]
    if any(
        parts & _DEEDS and not flag.startswith("--no-") for flag, parts in zip(dropped, names, strict=True)
    ):
        return True
    stems = {part for parts in names for part in parts if len(part) >= _SHORTEST_STEM}
    right = cure.acts[-1].at
    later = (step for act in acts[right + 1 : right + 1 + _SOON] for step in act.steps)
    return any(not stems.isdisjoint(part.lower() for part in NAME_PART.findall(step.text)) for step in later)


def _only_time_passed(failed: ToolCall, remedy: Remedy) -> bool:
    """Say whether a server that was not there was asked again with options that name no other one."""
    failure = failed.failure
    if failure is None or not (failure.kind is K.NETWORK or _NOT_READY.search(failure.line)):
        return False
    words, wanted = remedy.text.split(), remedy.instead.split()
    gained = [(word, before) for word, before in zip(words, ["", *words], strict=False) if word not in wanted]
    changed = [word for word, _ in gained] + [word for word in wanted if word not in words]
    is_same_call = all(word.startswith("-") or before.startswith("-") for word, before in gained)
    return is_same_call and not any(map(_ADDRESS.search, changed))
