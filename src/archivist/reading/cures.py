"""Find what made a failed call work, in words that another run can use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import FileEdit, ToolCall
from archivist.reading.command_risks import text_risk
from archivist.reading.commands import is_look, is_raw_call, is_sending, step_purpose
from archivist.reading.evasions import is_evasion, only_shows
from archivist.reading.failures import Failure, is_of_built_file
from archivist.reading.launchers import cure_by_launcher, cure_by_other_way
from archivist.reading.making import (
    cure_by_fixer,
    installed_only,
    makes_files,
    mends_style,
    without_mended_files,
)
from archivist.reading.narrower_runs import leaves_out_failure
from archivist.reading.outcomes import had_no_effect, has_step_worked, has_worked, is_unsure, refuses
from archivist.reading.packages import Install, distribution_name, is_install, is_standard, package_name
from archivist.reading.programs import LOOKS, SHELLS
from archivist.reading.refutations import NEAR, is_refuted
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.replacements import (
    ORDINARY,
    PLAIN_FOLDER,
    Cure,
    are_like_names,
    asks_alike,
    cure_by_flags,
    cure_by_folder,
    cure_by_interpreter,
    cure_by_other_name,
    cure_by_other_runner,
    cure_by_path,
    cure_by_sequence,
    cure_by_variant,
    differing_messages,
    edits_project,
    enters_within,
    fails_alike,
    in_folder,
    is_asked_for,
    is_entering,
    join_steps,
    next_of_program,
    plain_command,
    shorten_alike,
)
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import Step, parse
from archivist.reading.wording import (
    base_name,
    differing_words,
    general_command,
    is_informative,
    is_scratch,
    mask_command,
    relative_path,
    tells_paths_truly,
)
from archivist.reading.works import is_passing_flag
from archivist.records.run_words import REDACTED
from archivist.records.words import OUTSIDE_ADVICE, OUTSIDE_SANDBOX

# How many later calls are searched.
HORIZON = 40
# A name that is refused is spelt otherwise at once.
_TRIES = 4
_LONGEST_CHANGE = 110
_PYTHON = ("python", "pytest", "unittest", "<script>")
# Words of a message that name something: they hold a digit, an underscore or an inner capital.
_NAME_IN_MESSAGE = lazy_pattern(r"\b(?=\w*(?:\d|_|[a-z][A-Z]))(?!\d+\b)\w{2,}(?<!Error)(?<!Exception)\b")
# A call that only checks changes nothing, unless it also mends what it finds.
_CHECK = lazy_pattern(
    r"(?:^|[\s:_-])(?:check|lint|typecheck|type-check|verify|validate|vet|tsc|clippy)(?:$|[\s:_-])"
)
_INSTALLED = lazy_pattern(r"site-packages/([\w-]+)")
_LOCKED = "index locked"
_NUMBER = lazy_pattern(r"(?<![\w.])\d{2,}(?![\w.])")


def find_cure(acts: Sequence[ToolCall], at: int) -> Cure | None:
    """Return what overcame the failure of the call at an index, or None when no call shows it.

    In general terms a command may look harmless that was not: a risky one is kept as it was called.
    """
    cure = _find_cure(acts, at)
    cure = in_folder(cure, acts[at]) if cure else None
    is_shown = cure is not None and not _held_secret(cure, acts[at]) and not is_refuted(acts, acts[at], cure)
    return _as_it_ran(_without_new_files(acts, cure), acts) if cure and is_shown else None


def _held_secret(cure: Cure, failed: ToolCall) -> bool:
    """Say whether something was taken out of what helped: nobody can do it again as it is told.

    After a step the call that had failed ran again: that shows the step, and is no part of it.
    """
    is_step = cure.remedy.way is RemedyKind.STEP
    helping = [act for act in cure.acts if not is_step or act.event.text != failed.event.text]
    return REDACTED in cure.remedy.text or any(REDACTED in act.event.text for act in helping)


def _without_new_files(acts: Sequence[ToolCall], cure: Cure) -> Cure:
    """Return another call with `<name>` for files that the run itself made: the next run has others."""
    if cure.remedy.way is not RemedyKind.COMMAND:
        return cure
    made = {change.file for act in acts[: cure.acts[-1].at] for change in act.changes if change.is_whole}
    known = cure.remedy.instead.split()
    words = [
        "<name>"
        if word not in known
        and "/" in word
        and any(f"{file}/".startswith(f"{word.rstrip('/')}/") for file in made)
        else word
        for word in cure.remedy.text.split()
    ]
    return replace(cure, remedy=cure.remedy._replace(text=" ".join(words)))


def _as_it_ran(cure: Cure, acts: Sequence[ToolCall]) -> Cure | None:
    """Return a cure whose command ran so; a risky one with all its words, for a person to judge."""
    if not cure.remedy.is_command:
        return cure
    ran = [step for act in cure.acts for step in act.steps]
    # A text that a call was given cannot be shown.
    is_fed = any("<<" in redirect.operator for step in ran for redirect in step.redirects)
    if is_fed or any(map(is_unsure, cure.acts)):
        return None
    for text in filter(text_risk, (act.event.text.strip() for act in cure.acts)):
        if text_risk(installed_only(text, acts)):
            return replace(cure, remedy=cure.remedy._replace(text=text))
        cure = replace(cure, remedy=cure.remedy._replace(text=installed_only(cure.remedy.text, acts)))
    told = parse(cure.remedy.text)
    # The name of a folder is the repository's choice: without its quotes it may hold other commands.
    entered = [*filter(enters_within, ran), *filter(is_entering, told)]
    is_plain = all(PLAIN_FOLDER.fullmatch(folder) for step in entered for folder in step.arguments[:1])
    is_true = is_plain and {step.program for step in told} <= {step.program for step in ran}
    is_true = is_true and all(tells_paths_truly(cure.remedy.text, act.event.text) for act in cure.acts)
    # A here-document on one line is another command.
    return cure if is_true and "<<" not in cure.remedy.text else None


def _find_cure(acts: Sequence[ToolCall], at: int) -> Cure | None:
    failed = acts[at]
    failure = failed.failure
    if failure is None:
        return None
    later = acts[at + 1 : at + 1 + HORIZON]
    if found := _cure_by_permission(failed, later[:NEAR]) or _cure_by_quotes(failed, later[:NEAR]):
        return found
    looks = _LOOKS.get(failure.kind, _OTHER_LOOKS)
    if failure.kind is K.MISSING_MODULE and is_standard(failure.subject):
        looks = (_cure_by_change, cure_by_interpreter, _cure_by_step)
    if failed.installs and failure.kind is not K.MISSING_COMMAND:
        looks = (_cure_by_other_install, *looks)
    cures = (look(failed, later if look in _LATE_LOOKS else later[:NEAR]) for look in looks)
    found = next(filter(None, cures), None) or _cure_of_next_try(acts, failed)
    found = found or cure_by_launcher(failed, _step_at_fault(failed), later)
    if found is None:
        return None
    # A remedy that says no more than the call that failed is none.
    is_install = found.remedy.way is RemedyKind.INSTALL
    same = (_install_text([failed]),) if is_install else (failed.display_text, mask_command(failed.text))
    return None if found.remedy.text in same else found


def _cure_of_next_try(acts: Sequence[ToolCall], failed: ToolCall) -> Cure | None:
    """Look for what overcame another spelling of a refused name that was tried next, in vain."""
    for act in acts[failed.at + 1 : failed.at + 1 + _TRIES] if failed.refused_word else ():
        if act.kind is not K.USAGE or act.subject == failed.subject:
            continue
        is_next = bool(act.main and failed.main) and are_like_names(failed.subject, act.subject)
        found = _find_cure(acts, act.at) if is_next else None
        if found and found.remedy.way is RemedyKind.COMMAND:
            return Cure(found.remedy._replace(instead=general_command(plain_command(failed))), found.acts)
    return None


def _cure_by_permission(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same call outside of the sandbox that the failed one was in."""
    for act in later if failed.steps and not failed.event.extra.get(OUTSIDE_SANDBOX) else ():
        is_same = act.steps and _words_before(failed, act) is not None
        if is_same and has_worked(act):
            is_outside = act.event.extra.get(OUTSIDE_SANDBOX)
            return Cure(Remedy(RemedyKind.SAID, OUTSIDE_ADVICE), (act,)) if is_outside else None
    return None


def _cure_by_quotes(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same words in quotes, where the shell took one of them for a pattern."""
    subject = failed.subject if failed.failure and is_refused_by_shell(failed.failure) else ""
    for act in later if subject else ():
        values = {word.value: word.raw for step in act.steps for word in step.words}
        if values.get(subject, subject) != subject and not act.has_failed:
            return Cure(Remedy(RemedyKind.SAID, "put such words in quotes"), (act,))
    return None


def is_refused_by_shell(failure: Failure) -> bool:
    """Say whether a shell refused a word before it ran anything."""
    return failure.kind is K.USAGE and failure.signature.program in SHELLS


def _first_that_worked(
    tries: Sequence[tuple[ToolCall, Step]], later: Sequence[ToolCall]
) -> tuple[ToolCall, Step] | None:
    """Return the first try that worked, else one that got further, else one that was plainly answered."""
    done = {step.text for act in later if has_worked(act) for step in act.steps}
    got_further, answered = [], []
    for act, step in tries:
        if has_step_worked(act, step):
            return act, step
        # It got further where only the run's own code stood in its way then. What ends badly without a known
        # error may have gone no further.
        is_of_own_code = act.failure is not None and act.failure.is_own_code and act.kind is not K.OTHER
        got_further += [(act, step)] if is_of_own_code or step.text in done else []
        # Behind a filter an answer need not speak of success.
        answered += [(act, step)] if not act.has_failed and _is_plain_answer(act) else []
    return next(iter(got_further + answered), None)


def guess_cure(acts: Sequence[ToolCall], at: int) -> Cure | None:
    """Return what may have overcome a failure that no rule explains: how the next call like it differed.

    One run shows no more than that. The same guess in a second run is no chance.
    """
    failed = acts[at]
    wrong = _step_at_fault(failed)
    if wrong is None or not failed.failure:
        return None
    if wrong.program in LOOKS:
        return _guess_other_option(acts, failed, wrong)
    is_built = is_of_built_file(failed.failure)
    reach = acts[at + 1 : at + 1 + (HORIZON if is_built else NEAR)]
    # An edit changes no file that is built from others, until it is built again.
    near = list(takewhile(lambda act: is_built or not edits_project(act), reach))
    # What fails alike later shows that nothing before it helped.
    again = next((act.at for act in reversed(near) if fails_alike(act, failed)), at)
    later = [act for act in near if act.at > again]
    found = [
        (act, step)
        for act in later
        for step in act.steps
        if _is_other_try(step, wrong, failed.failure) or _runs_same_tests(act, step, failed)
    ] or next_of_program(later, wrong, failed.failure)
    worked = _first_that_worked(found, acts[at + 1 : at + 1 + HORIZON])
    if worked is None:
        return None
    act, step = worked
    others = {other.program for other in failed.steps} - {wrong.program}
    if not others.isdisjoint(step.values):
        # It tries another program of the line.
        return None
    texts = shorten_alike(
        *(general_command(" ".join(word.raw for word in each.words)) for each in (step, wrong))
    )
    texts = differing_messages(step, wrong) if texts[0] == texts[1] else texts
    found_cure = in_folder(Cure(Remedy(RemedyKind.COMMAND, *texts), (act,)), failed)
    if found_cure is None:
        return None
    remedy, showing = found_cure.remedy, [act]
    if remedy.text == remedy.instead:
        steps = {
            text: call
            for call in near[: near.index(act)]
            if has_worked(call)
            and not call.is_look
            and call.purpose not in (*ORDINARY, "write file")
            and (text := _changing_steps(call, failed))
            and (not is_built or any(map(makes_files, call.steps)))
        }
        remedy = _step_remedy(failed, list(steps)[-2:])
        showing = [*list(steps.values())[-2:], act]
    elif remedy.is_other_call and not is_raw_call(step) and not next_of_program([act], wrong, failed.failure):
        return None
    cure = Cure(remedy, tuple(showing))
    is_shown = is_informative(remedy.text) and not _held_secret(cure, failed)
    is_shown = is_shown and not is_refuted(acts, failed, cure)
    return _as_it_ran(cure, acts) if is_shown else None


def _guess_other_option(acts: Sequence[ToolCall], failed: ToolCall, wrong: Step) -> Cure | None:
    """Return the options with which a utility went on that refused one; what it looks for is of one run."""
    refused = failed.refused_word.lstrip("-")
    flag = next((flag for flag in wrong.flags if refused and refused in flag), "")
    for act in acts[failed.at + 1 : failed.at + 1 + _TRIES] if flag else ():
        for step in act.steps:
            gained = [each for each in step.flags if each not in wrong.flags]
            is_other = step.program == wrong.program and flag not in step.flags and gained
            if is_other and not act.has_failed and not is_evasion(step, wrong):
                remedy = f"{step.program} {' '.join(gained)}"
                cure = Cure(Remedy(RemedyKind.COMMAND, remedy, f"{step.program} {flag}"), (act,))
                is_shown = is_informative(mask_command(remedy)) and not _held_secret(cure, failed)
                return _as_it_ran(cure, acts) if is_shown else None
    return None


def _step_at_fault(act: ToolCall) -> Step | None:
    """Return the step that a failure is of: the one that its error names, else the main one."""
    program = act.failure.signature.program if act.failure else ""
    missing = act.subject if act.kind is K.MISSING_COMMAND else None
    named = [step for step in act.steps if step_purpose(step).lower() == program or step.program == missing]
    return named[0] if len(named) == 1 else act.main


def _is_plain_answer(act: ToolCall) -> bool:
    """Say whether a call that asks for something got it: what reads the answer would refuse an error."""
    is_parsed = any(step.is_filter and step.program in ("jq", "yq") for step in act.steps)
    is_asking = is_parsed or (act.main is not None and is_look(act.main))
    output = act.event.output.strip()
    return is_asking and act.event.exit_code == 0 and bool(output) and not refuses(output)


def _is_other_try(step: Step, wrong: Step, failure: Failure) -> bool:
    """Say whether a step does what another was for: the same program and verb, or the rest of its words."""
    # Other tests pass where these fail.
    if failure.kind is K.TEST_FAILURE and step.arguments != wrong.arguments:
        return False
    words, wanted = step.values, wrong.values
    if only_shows(step) and not only_shows(wrong):
        return False
    if step.program != wrong.program:
        return words[1:] == wanted[1:] and bool(wanted[1:])
    if is_raw_call(step) and not is_raw_call(wrong):
        # It asks the tool's server about the same number as a command of the tool did.
        numbers = set(_NUMBER.findall(wrong.text))
        return not numbers.isdisjoint(_NUMBER.findall(step.text)) and is_sending(step) != is_look(wrong)
    is_same = step_purpose(step) == step_purpose(wrong) and asks_alike(step, wrong, failure)
    return is_same and not is_evasion(step, wrong)


def _runs_same_tests(act: ToolCall, step: Step, failed: ToolCall) -> bool:
    """Say whether a call runs the tests that another one named, by another task or program."""
    if not failed.main or not failed.is_test or not act.is_test or step is not act.main:
        return False
    targets = failed.main.arguments
    # What stands before them is the other program's own word, as in `vitest run`.
    is_same = bool(targets) and step.arguments[-len(targets) :] == targets
    return is_same and len(step.arguments) <= len(targets) + 1 and not is_evasion(step, failed.main)


# What only a check that ran can find.
_FOUND_IN_CODE = frozenset((K.TEST_FAILURE, K.BUILD, K.SYNTAX, K.TYPE_ERROR, K.ATTRIBUTE, K.VALUE))


def failed_remedies(acts: Sequence[ToolCall], at: int) -> tuple[str, ...]:
    """Return what was done about a failure without success: it failed itself, or the failure came again."""
    failed = acts[at]
    in_vain: list[ToolCall] = []
    pending: list[ToolCall] = []
    for act in acts[at + 1 : at + 1 + NEAR]:
        if act.is_look or not act.steps or leaves_out_failure(act, failed):
            continue
        if fails_alike(act, failed):
            in_vain, pending = in_vain + pending, []
        elif act.kind in _FOUND_IN_CODE:
            # A check that finds something in the code did its work.
            if _has_same_purpose(act, failed):
                break
        elif act.has_failed:
            in_vain += [] if _got_further(act, failed) else [act]
        elif _has_same_purpose(act, failed):
            break
        else:
            pending.append(act)
    texts = [mask_command(act.event.text.strip()) for act in in_vain]
    texts += [_install_text([act]) for act in in_vain if act.installs]
    return tuple(dict.fromkeys(text for text in texts if is_informative(text)))


def _got_further(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call found what an earlier one could not find or start, and failed for another reason."""
    if act.failure is None or failed.failure is None:
        return False
    texts = [call.main.text if call.main else "" for call in (act, failed)]
    # A wrapper that was left out or added changes what a call is named after, not what it is for.
    if act.purpose != failed.purpose and not (all(texts) and (texts[0] in texts[1] or texts[1] in texts[0])):
        return False
    kinds = (K.USAGE, K.MISSING_COMMAND, K.MISSING_FILE)
    return failed.kind in kinds and act.kind not in kinds


def _has_same_purpose(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call repeats what failed: the same script, or the same purpose."""
    if leaves_out_failure(act, failed):
        return False
    if failed.scripts and act.scripts:
        return bool(failed.scripts & act.scripts)
    if failed.purpose.startswith(_PYTHON) and act.purpose.startswith(_PYTHON):
        return failed.is_test == act.is_test
    return act.purpose == failed.purpose


def _cure_by_change(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the installs or edits after which the same call no longer failed in this way."""
    is_module = failed.kind is K.MISSING_MODULE
    tried: list[ToolCall] = []
    for act in later:
        if act.is_look:
            continue
        if fails_alike(act, failed):
            # What was installed so far did not help; an edit may be half of the cure.
            tried = [call for call in tried if _related_edits(call, failed)]
            continue
        # Edits that a later call takes back did not help: it restores their files, or edits the reverse.
        tried = [
            *(call for call in tried if not call.changes or not all(map(act.takes_back, call.changes))),
            act,
        ]
        broken = _INSTALLED.search(act.failure.files[-1]) if act.failure and act.failure.files else None
        if is_module and broken and package_name(broken[1]) == distribution_name(failed.subject):
            # The call fails inside the module that was missing: the installed version does not work.
            tried = [call for call in tried if not call.installs]
            continue
        if not _has_same_purpose(act, failed):
            continue
        if not act.has_failed and not has_worked(act):
            # Its output does not show that it got any further.
            tried = [call for call in tried if not call.installs]
            continue
        installing = [
            call
            for call in tried
            if call.installs
            and not (call.has_failed and call.purpose.endswith("install"))
            and _is_about(call.installs, failed)
            and not had_no_effect(call)
        ]
        if installing:
            return Cure(Remedy(RemedyKind.INSTALL, _install_text(installing)), tuple(installing))
        editing = [call for call in tried if _related_edits(call, failed)]
        if editing:
            edits = [edit for call in editing for edit in _related_edits(call, failed)]
            files = tuple(dict.fromkeys(relative_path(edit.file) for edit in edits))
            old, new = differing_words(edits[0].old.strip(), edits[0].new.strip())
            is_long = re.search(r"\n|#|//", old + new) or len(old) + len(new) >= _LONGEST_CHANGE
            text = f"change `{old}` to `{new}`" if old and new and not is_long else "edit"
            return Cure(Remedy(RemedyKind.EDIT, text, "", files[:4]), tuple(editing))
    # The missing module was installed by name and was not missing again.
    for act in reversed(tried if is_module else ()):
        if not act.has_failed and any(_has_package(install, failed) for install in act.installs):
            return Cure(Remedy(RemedyKind.INSTALL, _install_text([act])), (act,))
    return None


def _has_package(install: Install, failed: ToolCall) -> bool:
    """Say whether an install names the distribution of the missing module."""
    return distribution_name(failed.subject) in map(package_name, install.packages)


def _is_about(found: tuple[Install, ...], failed: ToolCall) -> bool:
    """Say whether the installed packages can be related to the failure."""
    if failed.kind is K.MISSING_MODULE:
        return any(install.is_of_project or _has_package(install, failed) for install in found)
    failure = failed.failure
    said = (failure.line, failure.subject, *failure.files) if failure else ()
    message = " ".join(said).lower().replace("_", "-")
    return any(
        not install.is_of_project and any(package_name(package) in message for package in install.packages)
        for install in found
    )


def _install_text(installing: Sequence[ToolCall]) -> str:
    return "; ".join(dict.fromkeys(install.text for act in installing[-2:] for install in act.installs))


def _cure_by_other_install(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for a call that installed the same packages in another way, for example with one more option."""
    wanted = {_install_target(install): install for install in failed.installs}
    for act in later if wanted else ():
        is_done = any(has_step_worked(act, step) for step in act.steps if is_install(step))
        for install in act.installs if is_done else ():
            before = wanted.get(_install_target(install))
            if before is None:
                continue
            if install.text != before.text:
                return Cure(Remedy(RemedyKind.COMMAND, install.text, before.text), (act,))
            (words, text), (wrong, instead) = _steps_to_install(act), _steps_to_install(failed)
            if words != wrong and is_informative(text):
                return Cure(Remedy(RemedyKind.COMMAND, text, instead), (act,))
    return None


def _install_target(install: Install) -> tuple[str, ...]:
    """Return what an install is of. Installs of the project itself are alike only by the same program."""
    return install.packages if not install.is_of_project else (install.manager, *install.packages)


def _steps_to_install(act: ToolCall) -> tuple[list[str], str]:
    """Return the steps up to an install: their words, without options that may only quiet them, and text."""
    last = max(index for index, step in enumerate(act.steps) if is_install(step))
    steps = act.steps[: last + 1]
    words = [word.raw for step in steps for word in step.words if not word.raw.startswith("-")]
    return words, general_command(" && ".join(step.text for step in steps))


def _cure_by_install(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the install after which a missing command was found."""
    installing: list[ToolCall] = []
    for act in later:
        is_run = any(step.program == failed.subject for step in act.steps)
        if act.installs and not (act.failure and not is_run):
            installing.append(act)
        if installing and is_run and not fails_alike(act, failed):
            return Cure(Remedy(RemedyKind.INSTALL, _install_text(installing)), tuple(installing))
    return None


def _related_edits(act: ToolCall, failed: ToolCall) -> tuple[FileEdit, ...]:
    """Return the edits of a call that can be related to the failure."""
    failure = failed.failure
    if failure is None or act.has_failed:
        return ()
    if any(step.program == "cd" and "site-packages" in step.text for step in act.steps):
        return ()
    names = {failed.subject.rsplit(".", 1)[-1], *_NAME_IN_MESSAGE.findall(failure.line)} - {""}
    files = {base_name(file) for file in failure.files} | {
        base_name(argument.split("::")[0]) for step in failed.steps for argument in step.arguments
    }
    return tuple(
        change
        for change in act.changes
        if change.old
        and not change.is_whole
        and not change.is_restored
        and change.file
        and not is_scratch(change.file)
        # A name of two letters occurs in any file; it counts only in one that the failure names.
        and any(name in change.old and (len(name) > 2 or base_name(change.file) in files) for name in names)
    )


def _cure_by_other_edit(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the edit of the same file that did apply."""
    files = {base_name(change.file) for change in failed.changes if change.file} or {
        base_name(failed.event.target)
    }
    has_read = False
    for act in later:
        if act.has_failed:
            continue
        if act.is_look and any(file and file in act.event.text for file in files):
            has_read = True
        if any(base_name(change.file) in files and not change.is_restored for change in act.changes):
            is_same = act.purpose == failed.purpose and bool(act.steps) == bool(failed.steps)
            if is_same and failed.steps:
                method = "a new patch, made after reading the file again" if has_read else "a smaller patch"
            elif is_same:
                method = "read the file again, then edit" if has_read else "give the exact current text"
            elif act.purpose.startswith("python"):
                method = "a short Python script that replaces the exact text"
            elif act.purpose == "write file":
                method = "writing the file anew"
            else:
                method = f"`{act.purpose}`" if act.steps else f"the {act.event.tool} tool"
            return Cure(Remedy(RemedyKind.SAID, method), (act,))
    return None


def _cure_by_step(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for what was done before the very same call succeeded: something started, created or set.

    When files of the project were changed in between, the change may be what helped.
    """
    done: list[ToolCall] = []
    if failed.refused_word:
        # A program that refuses a word of the call lacks nothing that a step brings.
        return None
    if failed.failure and failed.kind is K.GIT and failed.failure.signature.error != _LOCKED:
        # Unless another process held the lock, git does not mind what it does not ask for.
        later = [act for act in later if is_asked_for(act, failed) or act.purpose == failed.purpose]
    wanted = _said_words(failed.main) if failed.main else ()
    for act in later if failed.steps else ():
        if edits_project(act):
            return None
        before = _words_before(failed, act) if act.steps else None
        if before is None and (act.is_look or not act.steps):
            continue
        if before is None:
            is_ordinary = act.purpose in ORDINARY and not any(_is_staging(step, failed) for step in act.steps)
            is_of_use = has_worked(act) and not is_ordinary and not had_no_effect(act)
            done += [act] if is_of_use else []
        elif not has_step_worked(
            act, next((step for step in act.steps if _said_words(step) == wanted), act.main)
        ):
            done = []
        else:
            # Where the error asks for one of them, the others were done for another reason.
            done = [call for call in done if is_asked_for(call, failed)] or done
            changing = {text: call for call in done if (text := _changing_steps(call, failed))}
            leading = _changing_steps(act, failed, before.rstrip(" ;&")) if before else ""
            texts = [*list(changing)[-2:], *[leading] * bool(leading)]
            # What mended the files last is what the check passed with.
            fixers = [text for text in texts if mends_style(text)]
            texts = [text for text in texts if text not in fixers[:-1]]
            remedy = _step_remedy(failed, texts)
            acts = (*list(changing.values())[-2:], act)
            return Cure(remedy, acts) if texts and is_informative(remedy.text) else None
    return None


def _is_staging(step: Step, failed: ToolCall) -> bool:
    """Say whether a step stages what a hook changed that refused a commit."""
    return step.name == "git add" and "commit" in failed.purpose


def _words_before(failed: ToolCall, act: ToolCall) -> str | None:
    """Return what stands before a failed call where a later line repeats it; None when it does not.

    The call may be one step of a longer line, have variables set before it, or print more or less.
    """
    entered = {step.text for step in failed.steps}
    if any(enters_within(step) and step.text not in entered for step in act.steps):
        # In another folder it is another call.
        return None
    text, wrong = plain_command(act), plain_command(failed)
    before = text.removesuffix(wrong).rstrip()
    if text == wrong or (
        text.endswith(wrong) and (before[-1:] in (";", "&", "|", "(") or not parse(before)[0].program)
    ):
        return before
    own, wanted = (
        [step for step in call.steps if not step.is_filter and not is_entering(step)]
        for call in (act, failed)
    )
    words, called = ([_said_words(step) for step in steps] for steps in (own, wanted))
    for at in range(len(words) - len(called) + 1 if called else 0):
        if words[at : at + len(called)] == called:
            return join_steps(own[:at])
    return None


def _said_words(step: Step) -> tuple[str, ...]:
    """Return the words of a step without those that only change what is printed."""
    return tuple(word for word in step.values if not is_passing_flag(word))


def _changing_steps(act: ToolCall, failed: ToolCall, command: str = "") -> str:
    """Return the steps of a call that can be why another one works then: no tests, and no checks.

    What mends the style of files helps only where something judges it: a check, or a hook of git.
    """
    is_judged = bool(_CHECK.search(failed.event.text)) or "git" in [step.program for step in failed.steps]

    # A folder that the failed call entered too is no part of what helped.
    entered = {step.text for step in failed.steps if is_entering(step)}

    def is_changing(step: Step) -> bool:
        if step.text in entered or (is_entering(step) and not enters_within(step)) or is_look(step):
            return False
        # A file that was written with a here-document says nothing without its text.
        if step.bodies or only_shows(step):
            return False
        is_ordinary = any(name in step.text for name in ORDINARY) and not _is_staging(step, failed)
        if is_ordinary:
            return False
        return is_judged if mends_style(step.text) else not _CHECK.search(step.text)

    if act.is_test and not command:
        return ""
    return join_steps([step for step in (parse(command) if command else act.steps) if is_changing(step)])


def _step_remedy(failed: ToolCall, texts: Sequence[str]) -> Remedy:
    # A number that the failure names, such as a port, is not masked.
    named = f"{failed.failure.line} {failed.failure.subject}" if failed.failure else ""
    numbers = re.findall(r"(?<!\d)\d{2,5}(?!\d)", named)
    parts = re.compile(rf"(?<!\d)({'|'.join(numbers)})(?!\d)" if numbers else r"(?!)()")
    masked = (
        "".join(part if part in numbers else mask_command(part) for part in parts.split(text.strip()) if part)
        for text in map(without_mended_files, texts)
    )
    done = " && ".join(dict.fromkeys(masked))
    if texts and all(not step.program for step in parse(texts[-1])):
        # Variables that are set for the call are no step of their own.
        call = mask_command(plain_command(failed))
        return Remedy(RemedyKind.COMMAND, f"{done} {call}", call)
    return Remedy(RemedyKind.STEP, done, failed.text)


# What overcomes failures of a kind, the surest first.
_Look = Callable[[ToolCall, Sequence[ToolCall]], Cure | None]
_LOOKS: dict[K, tuple[_Look, ...]] = {
    K.NETWORK: (_cure_by_change, _cure_by_step),
    **dict.fromkeys(
        (K.MISSING_MODULE, K.VERSION_CONFLICT, K.IMPORT_ERROR),
        (_cure_by_change, cure_by_variant, _cure_by_step),
    ),
    K.MISSING_COMMAND: (_cure_by_install, cure_by_folder, cure_by_variant, cure_by_other_way, _cure_by_step),
    K.MISSING_FILE: (cure_by_folder, cure_by_path, cure_by_other_name, _cure_by_step),
    K.EDIT_NOT_APPLIED: (_cure_by_other_edit,),
    K.GIT: (cure_by_sequence, cure_by_variant, _cure_by_step),
    K.USAGE: (cure_by_variant, cure_by_other_runner, cure_by_fixer, _cure_by_step),
    **dict.fromkeys(
        (K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.TEST_FAILURE, K.SYNTAX),
        (_cure_by_change, _cure_by_step, cure_by_flags, cure_by_other_runner),
    ),
}
_OTHER_LOOKS: tuple[_Look, ...] = (_cure_by_step, cure_by_variant, cure_by_other_runner)
# Installs and edits may come late; another try of a command comes soon.
_LATE_LOOKS = frozenset((
    _cure_by_change, _cure_by_install, _cure_by_other_edit, cure_by_interpreter, cure_by_other_way,
))  # fmt: skip
