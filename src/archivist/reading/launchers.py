"""Find the same command under another launcher, such as a version manager, that got past an error."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.calls import ToolCall
from archivist.reading.commands import is_look, is_preparation
from archivist.reading.evasions import only_shows
from archivist.reading.failures import Failure
from archivist.reading.outcomes import has_step_worked, is_unsure
from archivist.reading.refutations import NEAR
from archivist.reading.remedies import Remedy, RemedyKind
from archivist.reading.replacements import Cure, fails_alike, join_steps
from archivist.reading.rules import FailureKind as K
from archivist.reading.rules import is_of_runtime
from archivist.reading.shell import Step, installed_program
from archivist.reading.wording import base_name, is_informative, is_scratch, mask_command
from archivist.reading.works import command_purpose, drop_wrappers

# What no launcher overcomes: a fault of the code, a refused word, git's own refusals, an edit.
_NOT_OF_LAUNCH = frozenset((
    K.TEST_FAILURE, K.SYNTAX, K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.BUILD, K.USAGE, K.GIT, K.TIMEOUT,
    K.EDIT_NOT_APPLIED, K.MISSING_FILE,
))  # fmt: skip
# What shows no progress: the launcher itself may be missing or misused, or nobody knows what failed.
_NO_PROGRESS = frozenset((K.MISSING_COMMAND, K.USAGE, K.TIMEOUT, K.NETWORK, K.PROMPT, K.OTHER))
_ERROR_CLASS = lazy_pattern(r"^[A-Z]\w{2,60}(?:Error|Exception)$")
_OF_START = frozenset((K.MISSING_COMMAND, K.VERSION_CONFLICT))
_SOURCE_FILE = lazy_pattern(r"\.(?!(?:json|toml|ya?ml|lock|cfg|ini|env|properties)$)[A-Za-z]\w{0,4}$")
# Programs that say or look for the words behind them instead of running them.
_RUN_NOTHING = programs.LOOKS | programs.PREPARATIONS | {"git", "man", "sudo", "doas", "xargs"}
_MOST_LAUNCHER_WORDS = 8
# A program, a task or the word before one.
_BARE_WORD = lazy_pattern(r"[A-Za-z][\w:-]{0,40}$")


def is_of_start(kind: K, line: str) -> bool:
    """Say whether a command was not found, or refused by its version: another launcher is what it lacks."""
    return kind in _OF_START or (kind not in _NOT_OF_LAUNCH and is_of_runtime(line))


def launched_call(step: Step, wrong: Step, *, is_any_target: bool = False) -> str:
    """Return how a step runs another one behind a launcher that the other did not have; else nothing.

    What only changes how long a command runs, or what is printed, is no launcher. With `is_any_target` the
    program and its task are the same, whatever file they are about; of a package manager any task shows it.
    """
    raw, words = _words_of(step)
    wanted = _words_of(wrong)[1]
    # The other may have a known launcher, too.
    names = [base_name(word).partition("@")[0] for word in wanted]
    start = names.index(wrong.program) if wrong.wrappers and wrong.program in names else 0
    own, wanted = wanted[:start], wanted[start:]
    place = next((at for at in range(1, len(words)) if words[at:] == wanted), 0)
    called = list(takewhile(_BARE_WORD.match, wanted))
    if not place and is_any_target and len(called) > 1:
        starts = (at for at in range(1, len(words)) if words[at : at + len(called)] == called)
        place = next(starts, 0)
        rest = words[place + len(called) :]
        if place and any(map(_BARE_WORD.match, rest)):
            return ""
        raw[place + len(called) :] = ["<file>" if "." in word or "/" in word else word for word in rest]
    if not place and is_any_target and wrong.program in programs.PACKAGE_MANAGERS and command_purpose(step):
        place = next((at for at in range(1, len(words)) if words[at] == wrong.program), 0)
    launcher = words[:place]
    if not launcher or launcher == own or place > _MOST_LAUNCHER_WORDS or only_shows(step):
        return ""
    name = base_name(launcher[0])
    return "" if name in _RUN_NOTHING or name.startswith("-") else mask_command(" ".join(raw))


def _words_of(step: Step) -> tuple[list[str], list[str]]:
    """Return the words of a step as written and as received, without wrappers that change nothing."""
    words = drop_wrappers(step)
    return [word.raw for word in words], [word.value for word in words]


def cure_by_launcher(failed: ToolCall, wrong: Step | None, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same command behind a launcher that got past its error.

    The one that worked is best. Where the command could not start, it may come many calls later, and one that
    met the next obstacle helped, too: that is another failure.
    """
    failure = failed.failure
    if wrong is None or failure is None or failure.kind in _NOT_OF_LAUNCH:
        return None
    is_start = is_of_start(failure.kind, failure.line)
    later = later if is_start else later[:NEAR]
    got_further: Cure | None = None
    is_any = is_of_runtime(failure.line)
    for act in later:
        if _may_mend(act, failure):
            break
        for at, step in enumerate(act.steps):
            text = launched_call(step, wrong, is_any_target=is_any)
            text = text or (_behind_other_steps(act.steps[: at + 1], wrong) if is_any else "")
            if not is_informative(text) or is_unsure(act):
                continue
            cure = Cure(Remedy(RemedyKind.COMMAND, text, mask_command(wrong.text)), (act,))
            if has_step_worked(act, step):
                return cure
            if is_start and got_further is None and _gets_past(act, at, failed):
                got_further = cure
    return got_further


def cure_by_other_way(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the missing program reached in another way: by its file, another launcher or manager.

    That its tests fail shows as well that it ran. What it was given is of one run.
    """
    wrong = next((step for step in failed.steps if step.program == failed.subject), None)
    for act in later if wrong else ():
        for step in act.steps:
            called = drop_wrappers(step)
            end = end_of_launcher([word.value for word in called], failed.subject)
            text = mask_command(" ".join(word.raw for word in called[:end]))
            has_run = has_step_worked(act, step) or (act.is_test and act.kind is K.TEST_FAILURE)
            is_same = step.program == failed.subject and not only_shows(step) and not is_unsure(act)
            is_other = wrong and [word.value for word in called[:end]] != wrong.called_values[:end]
            if has_run and is_same and is_other and end and is_informative(text):
                return Cure(Remedy(RemedyKind.COMMAND, text, mask_command(failed.subject)), (act,))
    return None


def end_of_launcher(words: Sequence[str], name: str) -> int:
    """Return how many words of a call run a program, without what it is given; 0 if they do not name it.

    `mise x hk -- hk` names it twice: without the second the call runs nothing.
    """
    places = [
        at
        for at, word in enumerate(words)
        if name in (base_name(word).partition("@")[0], installed_program(word))
    ]
    is_named_twice = len(places) > 1 and words[places[1] - 1] == "--"
    return places[is_named_twice] + 1 if places else 0


def _behind_other_steps(steps: Sequence[Step], wrong: Step) -> str:
    """Return a line that runs a call behind steps that choose a version (`nvm use 24`); else nothing."""
    *before, last = steps
    choosing = [step for step in before if not is_preparation(step) and not is_look(step)]
    is_chain = all(step.operator in ("", "&&") for step in steps)
    is_same = _words_of(last)[1] == _words_of(wrong)[1]
    return mask_command(join_steps(steps)) if choosing and is_chain and is_same else ""


def _may_mend(act: ToolCall, failure: Failure) -> bool:
    """Say whether a call changed what the error may be about."""
    files = [edit.file for edit in act.changes if not is_scratch(edit.file)]
    return any(not _SOURCE_FILE.search(file) for file in files) if is_of_runtime(failure.line) else any(files)


def _gets_past(act: ToolCall, at: int, failed: ToolCall) -> bool:
    """Say whether a call met another, known obstacle in one of its steps than an earlier call did."""
    failure = act.failure
    if failure is None or failed.failure is None or fails_alike(act, failed):
        return False
    is_known = failure.kind not in _NO_PROGRESS or _ERROR_CLASS.search(failure.signature.error)
    # What stands before the program, or before the step, may be what failed.
    step, before = act.steps[at], act.steps[:at]
    launchers = {base_name(step.words[len(step.assignments)].value), *(each.program for each in before)}
    is_of_launcher = not launchers.isdisjoint(failure.line.partition(":")[0].split())
    is_of_step = act.main is step or act.steps[-1] is step
    is_other = act.key != failed.key and failed.failure.line not in act.event.output
    return bool(is_known) and is_of_step and is_other and not is_of_launcher
