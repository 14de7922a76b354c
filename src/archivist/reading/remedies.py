"""Find what made a failed call work, in words that another run can use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rapidfuzz import fuzz

from archivist.reading.calls import ToolCall
from archivist.reading.commands import generalise, is_help
from archivist.reading.edits import FileEdit
from archivist.reading.failure_kinds import FailureKind as K
from archivist.reading.failures import Failure
from archivist.reading.installs import Install, distribution_name, is_install, package_name
from archivist.reading.modules import is_standard
from archivist.reading.phrases import (
    base_name,
    differing_words,
    is_informative,
    is_scratch,
    mask_command,
    relative_path,
)
from archivist.reading.steps import Step, parse

HORIZON = 40
_NEAR = 12
_ALIKE = 60
_LONGEST = 110
_PYTHON = ("python", "pytest", "unittest", "<script>")
# Words of a message that name something: a figure, an underscore or a capital within.
_TELLING = re.compile(r"\b(?=\w*(?:\d|_|[a-z][A-Z]))(?!\d+\b)\w{2,}(?<!Error)(?<!Exception)\b")
_INSTANCE = re.compile(r"(?<![\w.-])(?:[a-z]{1,3}-)?\d{2,}(?![\w.])")
# Flags that leave out tests: what fails is then merely not run.
_SELECTING = re.compile(
    r"-k|-m$|--deselect|--ignore|--lf|--ff|--last|--exclude|--skip|-t$|--testName|--grep|<test>"
)
_UNDONE = re.compile(r"site-packages/([\w-]+)")
_GENERIC_FILES = frozenset(
    ("__init__.py", "mod.rs", "lib.rs", "main.rs", "index.ts", "index.js", "main.py", "Cargo.toml",
     "package.json", "README.md", "Makefile", "index.tsx", "conftest.py", "setup.py")
)  # fmt: skip


# Nothing that is done elsewhere makes these calls go well.
_STEPLESS = frozenset((K.GIT, K.USAGE, K.SYNTAX, K.EDIT_NOT_APPLIED))
# A pull or merge that ends in one was needed all the same.
_CONFLICT = "merge conflict"
# But for what another process left behind.
_STEPPED = frozenset(("index locked",))
# Steps that come before any push and so explain nothing.
_ORDINARY = frozenset(("git add", "git commit", "git push", "git status", "git diff", "git log"))


class RemedyKind(StrEnum):
    """In what manner a failure was overcome."""

    INSTALL = "install"
    EDIT = "edit"
    COMMAND = "command"
    PATH = "path"
    STEP = "step"
    SAID = "said"


@dataclass(frozen=True, slots=True)
class Remedy:
    """What helped. `text` is a command or says what to change in `files`; `instead` is what it replaces."""

    way: RemedyKind
    text: str
    instead: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cure:
    """A remedy with the calls that show it."""

    remedy: Remedy
    acts: tuple[ToolCall, ...]


def to_digest(remedy: Remedy) -> list[str]:
    """Write a remedy as plain values."""
    return [remedy.way.value, remedy.text, remedy.instead, *remedy.files]


def from_digest(value: Sequence[str]) -> Remedy:
    """Read what `to_digest` wrote."""
    way, text, instead, *files = (*value, *[""] * (3 - len(value)))
    return Remedy(RemedyKind(way), text, instead, tuple(files))


def find_cure(acts: Sequence[ToolCall], at: int) -> Cure | None:
    """Return what overcame the failure of the call at a place, or None when nothing shows it."""
    failed = acts[at]
    failure = failed.failure
    if failure is None:
        return None
    later = acts[at + 1 : at + 1 + HORIZON]
    found = _cure_by_kind(failed, failure, later)
    if found is None and (failure.kind not in _STEPLESS or failure.signature.error in _STEPPED):
        found = _cure_by_step(failed, later[:_NEAR])
    return None if found and _is_what_failed(found.remedy, failed) else found


def failed_remedies(acts: Sequence[ToolCall], at: int) -> tuple[str, ...]:
    """Return what was done about a failure and did not help: it failed itself, or the failure came again."""
    failed = acts[at]
    in_vain: list[ToolCall] = []
    pending: list[ToolCall] = []
    for act in acts[at + 1 : at + 1 + _NEAR]:
        if act.is_look or not act.steps:
            continue
        if _fails_alike(act, failed):
            in_vain, pending = in_vain + pending, []
        elif act.has_failed:
            in_vain.append(act)
        elif _has_same_purpose(act, failed):
            break
        else:
            pending.append(act)
    texts = [mask_command(act.event.text.strip()) for act in in_vain]
    texts += [_install_text([act]) for act in in_vain if act.installs]
    return tuple(dict.fromkeys(text for text in texts if is_informative(text)))


def _is_what_failed(remedy: Remedy, failed: ToolCall) -> bool:
    """Say whether a remedy says no more than the call that failed."""
    if remedy.way is RemedyKind.INSTALL:
        return remedy.text == _install_text([failed])
    return remedy.way in (RemedyKind.COMMAND, RemedyKind.STEP) and remedy.text in (
        failed.display_text,
        mask_command(failed.text),
    )


def _cure_by_kind(failed: ToolCall, failure: Failure, later: Sequence[ToolCall]) -> Cure | None:
    """Look for what overcomes failures of this kind."""
    if failed.installs and failure.kind is not K.MISSING_COMMAND:
        found = _cure_by_other_install(failed, later[:_NEAR])
        if found:
            return found
    match failure.kind:
        case K.MISSING_MODULE if is_standard(failure.subject):
            return _cure_by_change(failed, failure, later) or _cure_by_interpreter(failed, later)
        case K.MISSING_MODULE | K.VERSION_CONFLICT | K.IMPORT_ERROR | K.NETWORK:
            return _cure_by_change(failed, failure, later)
        case K.MISSING_COMMAND:
            return _cure_by_install(failed, failure, later) or _cure_by_variant(failed, later[:_NEAR])
        case K.MISSING_FILE:
            return _cure_by_path(failure, later[:_NEAR])
        case K.EDIT_NOT_APPLIED:
            return _cure_by_other_edit(failed, later)
        case K.GIT:
            return _cure_by_sequence(failed, later[:_NEAR])
        case K.ATTRIBUTE | K.TYPE_ERROR | K.VALUE | K.TEST_FAILURE | K.SYNTAX:
            return _cure_by_change(failed, failure, later) or _cure_by_flags(failed, later[:_NEAR])
        case _:
            return _cure_by_variant(failed, later[:_NEAR])


def _fails_alike(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call fails as the other did."""
    return bool(
        act.failure
        and failed.failure
        and act.key == failed.key
        and act.failure.subject == failed.failure.subject
    )


def _has_same_purpose(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call does again what failed: the same script, or the same purpose."""
    if failed.scripts and act.scripts:
        return bool(failed.scripts & act.scripts)
    if failed.purpose.startswith(_PYTHON) and act.purpose.startswith(_PYTHON):
        return failed.is_test == act.is_test
    return act.purpose == failed.purpose


def _cure_by_change(failed: ToolCall, failure: Failure, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the installs or edits after which the same call no longer failed so."""
    tried: list[ToolCall] = []
    for act in later:
        if act.is_look:
            continue
        if _fails_alike(act, failed):
            # What was installed so far did not help; an edit may be half of the cure.
            tried = [each for each in tried if _related_edits(each, failed, failure)]
            continue
        tried.append(act)
        if _is_broken_install(act, failure):
            tried = [each for each in tried if not each.installs]
        if not _has_same_purpose(act, failed) or _is_broken_install(act, failure):
            continue
        installing = [each for each in tried if each.installs and _is_about(each.installs, failure)]
        if installing:
            return Cure(Remedy(RemedyKind.INSTALL, _install_text(installing)), tuple(installing))
        editing = [each for each in tried if _related_edits(each, failed, failure)]
        if editing:
            return Cure(_edit_remedy(editing, failed, failure), tuple(editing))
    # What was missing was installed by name and never missed again.
    named = [each for each in tried if not each.has_failed and _names_package(each.installs, failure)]
    return Cure(Remedy(RemedyKind.INSTALL, _install_text(named[-1:])), (named[-1],)) if named else None


def _names_package(found: tuple[Install, ...], failure: Failure) -> bool:
    return failure.kind is K.MISSING_MODULE and any(
        distribution_name(failure.subject) in map(package_name, each.packages) for each in found
    )


def _is_broken_install(act: ToolCall, failure: Failure) -> bool:
    """Say whether a call fails within the very module that was missing: what was installed is no good."""
    if not act.failure or not act.failure.files or failure.kind is not K.MISSING_MODULE:
        return False
    found = _UNDONE.search(act.failure.files[-1])
    return found is not None and package_name(found[1]) == distribution_name(failure.subject)


def _is_about(found: tuple[Install, ...], failure: Failure) -> bool:
    """Say whether what was installed can have to do with the failure."""
    if failure.kind is K.MISSING_MODULE:
        return any(
            each.is_of_project or distribution_name(failure.subject) in map(package_name, each.packages)
            for each in found
        )
    told = " ".join((failure.line, failure.subject, *failure.files)).lower().replace("_", "-")
    return any(
        not each.is_of_project and any(package_name(package) in told for package in each.packages)
        for each in found
    )


def _install_text(installing: Sequence[ToolCall]) -> str:
    texts = dict.fromkeys(each.text for act in installing[-2:] for each in act.installs)
    return "; ".join(texts)


def _cure_by_other_install(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the call that installed the very same in another way: with an option more, or elsewhere."""
    wanted = {_install_target(each): each for each in failed.installs}
    for act in later if wanted else ():
        for install in () if act.has_failed else act.installs:
            before = wanted.get(_install_target(install))
            if before is None:
                continue
            if install.text != before.text:
                return Cure(Remedy(RemedyKind.COMMAND, install.text, before.text), (act,))
            steps, wrong = _steps_to_install(act), _steps_to_install(failed)
            text = _steps_text(steps)
            if _words_without_options(steps) != _words_without_options(wrong) and is_informative(text):
                return Cure(Remedy(RemedyKind.COMMAND, text, _steps_text(wrong)), (act,))
    return None


def _install_target(install: Install) -> tuple[str, ...]:
    """Return what an install is of; the project itself only the same program can install alike."""
    return install.packages if not install.is_of_project else (install.manager, *install.packages)


def _steps_to_install(act: ToolCall) -> tuple[Step, ...]:
    last = max(index for index, step in enumerate(act.steps) if is_install(step))
    return act.steps[: last + 1]


def _steps_text(steps: Sequence[Step]) -> str:
    return mask_command(generalise(" && ".join(step.text for step in steps)))


def _words_without_options(steps: Sequence[Step]) -> list[str]:
    """Return steps without their options, which may only make them quiet."""
    return [word.raw for step in steps for word in step.words if not word.raw.startswith("-")]


def _cure_by_install(failed: ToolCall, failure: Failure, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the install after which a missing command was there."""
    installing: list[ToolCall] = []
    for act in later:
        if act.installs and not (act.failure and not _runs_program(act, failure.subject)):
            installing.append(act)
        if installing and not _fails_alike(act, failed) and _runs_program(act, failure.subject):
            return Cure(Remedy(RemedyKind.INSTALL, _install_text(installing)), tuple(installing))
    return None


def _runs_program(act: ToolCall, program: str) -> bool:
    return any(step.program == program for step in act.steps)


def _related_edits(act: ToolCall, failed: ToolCall, failure: Failure) -> tuple[FileEdit, ...]:
    """Return the changes of a call that can have to do with the failure."""
    if any(step.program == "cd" and "site-packages" in step.text for step in act.steps):
        return ()
    telling = {failure.subject.rsplit(".", 1)[-1], *_TELLING.findall(failure.line)} - {""}
    named = {base_name(file) for file in failure.files} | {
        base_name(each.split("::")[0]) for step in failed.steps for each in step.arguments
    }
    return tuple(
        change
        for change in act.changes
        if change.old
        and not change.is_whole
        and not change.is_restored
        and change.file
        and not is_scratch(change.file)
        and any(word in change.old and (len(word) > 2 or base_name(change.file) in named) for word in telling)
    )


def _edit_remedy(editing: Sequence[ToolCall], failed: ToolCall, failure: Failure) -> Remedy:
    found = [change for act in editing for change in _related_edits(act, failed, failure)]
    files = tuple(dict.fromkeys(relative_path(change.file) for change in found))
    old, new = differing_words(found[0].old.strip(), found[0].new.strip())
    is_short = old and new and not re.search(r"\n|#|//", old + new) and len(old) + len(new) < _LONGEST
    return Remedy(RemedyKind.EDIT, f"change `{old}` to `{new}`" if is_short else "edit", "", files[:4])


def _cure_by_interpreter(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same call by another Python, which has what this one lacks."""
    for act in later:
        if act.has_failed or not act.main or not failed.main or act.purpose != failed.purpose:
            continue
        is_other = (act.main.flags, act.main.arguments) == (failed.main.flags, failed.main.arguments)
        if is_other and act.text != failed.text:
            return Cure(Remedy(RemedyKind.COMMAND, mask_command(act.text), mask_command(failed.text)), (act,))
    return None


def _cure_by_flags(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same tests gone well with more flags and nothing changed: the way they are run is it."""
    for act in later if failed.is_test else ():
        if act.changes or act.installs:
            return None
        if act.has_failed or act.purpose != failed.purpose or not is_informative(act.text):
            continue
        if _gains_flags(act.text.split(), set(failed.text.split())):
            return Cure(Remedy(RemedyKind.COMMAND, mask_command(act.text), mask_command(failed.text)), (act,))
    return None


def _gains_flags(words: list[str], before: set[str]) -> bool:
    """Say whether words have all that others have, and beyond that only flags with their values."""
    gained = [word for word in words if word not in before]
    if not gained or not before <= set(words) or any(_SELECTING.match(word) for word in gained):
        return False
    is_flag = [word.startswith("-") for word in words]
    return all(
        is_flag[at] or (at and is_flag[at - 1] and words[at - 1] in gained and "/" not in word)
        for at, word in enumerate(words)
        if word in gained
    )


def _cure_by_variant(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the call most like the failed one that went well, or else one that got further."""
    went_well = [act for act in later if not act.has_failed]
    got_further = [act for act in later if _got_further(act, failed)]
    return _most_similar(failed, went_well) or _most_similar(failed, got_further)


def _most_similar(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    if not failed.steps or failed.failure is None:
        return None
    wrong = failed.text
    best: tuple[float, ToolCall] | None = None
    for act in later:
        if not act.steps or is_help(act.event.text) or act.text == wrong:
            continue
        if not _is_comparable_call(act, failed, failed.failure) or not _is_of_instance(act, failed):
            continue
        likeness = fuzz.ratio(wrong, act.text)
        if set(wrong.split()) < set(act.text.split()):
            likeness = max(likeness, _ALIKE)
        if likeness >= _ALIKE and (best is None or likeness > best[0] + 3):
            best = likeness, act
    text = mask_command(best[1].text) if best else ""
    if best is None or not is_informative(text) or text == mask_command(wrong):
        return None
    return Cure(Remedy(RemedyKind.COMMAND, text, mask_command(wrong)), (best[1],))


def _got_further(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a test run that failed on its tests came past what kept the other from running any."""
    return bool(act.failure and act.is_test and act.failure.kind is K.TEST_FAILURE and act.key != failed.key)


def _is_comparable_call(act: ToolCall, failed: ToolCall, failure: Failure) -> bool:
    """Say whether a call can stand for another: the same purpose, or one that the error itself asks for."""
    if act.purpose == failed.purpose:
        return True
    if failure.kind is K.MISSING_COMMAND:
        return bool(
            failed.main and act.main and failed.main.arguments and act.main.arguments == failed.main.arguments
        )
    if failure.subject and failure.subject in failed.purpose.split():
        return bool(act.main and failed.main and act.main.program == failed.main.program)
    return " " in act.purpose and act.purpose in failure.line


def _is_of_instance(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call is about the same thing: it names it too, or only leaves words out."""
    named = set(_INSTANCE.findall(failed.event.text))
    return (
        not named
        or any(each in act.event.text for each in named)
        or set(act.text.split()) <= set(failed.text.split())
    )


def _cure_by_path(failure: Failure, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the place where a missing file was found."""
    wrong = failure.subject.split("::")[0].strip("'\"").rstrip("/")
    name = base_name(wrong)
    if not name or name in _GENERIC_FILES or is_scratch(wrong) or not re.search(r"\w", name):
        return None
    for act in later:
        if act.has_failed:
            continue
        for path in _paths(act):
            if base_name(path) == name and not _ends_alike(path, wrong) and not is_scratch(path):
                return Cure(Remedy(RemedyKind.PATH, relative_path(path), relative_path(wrong)), (act,))
    return None


def _paths(act: ToolCall) -> list[str]:
    if not act.steps:
        return [act.event.target]
    return [
        each.split("::")[0]
        for step in act.steps
        for each in step.arguments
        # What a variable is set to is no file that was found.
        if "/" in each and not re.search(r"[*?<>|]|^\w+=", each)
    ]


def _ends_alike(one: str, other: str) -> bool:
    one, other = one.removeprefix("./").rstrip("/"), other.removeprefix("./").rstrip("/")
    return one.endswith(other) or other.endswith(one)


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
            return Cure(Remedy(RemedyKind.SAID, _edit_method(act, failed, has_read=has_read)), (act,))
    return None


def _edit_method(act: ToolCall, failed: ToolCall, *, has_read: bool) -> str:
    same = act.purpose == failed.purpose and bool(act.steps) == bool(failed.steps)
    if same and failed.steps:
        return "a new patch, made after reading the file again" if has_read else "a smaller patch"
    if same:
        return "read the file again, then edit" if has_read else "give the exact current text"
    if act.purpose == "sed -i":
        return "`sed -i`"
    if act.purpose.startswith("python"):
        return "a short Python script that replaces the exact text"
    if act.purpose == "write file":
        return "writing the file anew"
    return f"`{act.purpose}`" if act.steps else f"the {act.event.tool} tool"


def _cure_by_sequence(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the calls of the same program that led to its success."""
    program = failed.main.program if failed.main else ""
    used: list[ToolCall] = []
    for act in later:
        if act.is_look or not act.main or act.main.program != program:
            continue
        if act.failure and act.failure.signature.error != _CONFLICT:
            continue
        used.append(act)
        if not act.has_failed and failed.main and any(step.name == failed.main.name for step in act.steps):
            text = " && ".join(dict.fromkeys(_sequence_text(each) for each in used[-3:]))
            is_new = any(
                step.name not in _ORDINARY for each in used for step in each.steps if step.program == program
            )
            return (
                Cure(Remedy(RemedyKind.COMMAND, text, failed.text), tuple(used))
                if is_new and is_informative(text)
                else None
            )
    return None


def _cure_by_step(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for what was done before the very same call went well: something started, made or set.

    Where files of the project were changed meanwhile, the change may be what helped.
    """
    wrong = failed.event.text.strip()
    done: list[ToolCall] = []
    for act in later if failed.steps else ():
        if act.is_look or not act.steps:
            continue
        if any(change.file and not is_scratch(change.file) for change in act.changes):
            return None
        text = act.event.text.strip()
        if not _ends_in_call(text, wrong):
            done += [] if act.has_failed or act.is_test or act.purpose in _ORDINARY else [act]
        elif act.has_failed:
            done = []
        else:
            before = text.removesuffix(wrong).rstrip(" ;&\n")
            texts = [each.event.text for each in done[-2:]] + [before] * bool(before)
            return _step_cure(failed, texts, (*done, act))
    return None


def _ends_in_call(text: str, call: str) -> bool:
    """Say whether a command line ends in a whole call, not in the end of another word."""
    return text == call or (text.endswith(call) and text[-len(call) - 1] in " \t\n;&|(")


def _mask_except_subject(command: str, failed: ToolCall) -> str:
    """Return a command left open but for the number that the failure is about: a port is no instance."""
    subject = failed.failure.subject if failed.failure else ""
    if not subject.isdigit():
        return mask_command(command)
    parts = re.split(rf"(?<!\d){subject}(?!\d)", command)
    return subject.join(mask_command(part) for part in parts)


def _step_cure(failed: ToolCall, texts: Sequence[str], shown: tuple[ToolCall, ...]) -> Cure | None:
    text = " && ".join(dict.fromkeys(_mask_except_subject(each.strip(), failed) for each in texts))
    remedy = Remedy(RemedyKind.STEP, text, failed.text)
    if texts and all(not step.program for step in parse(texts[-1])):
        # Variables that the call was given are no step of their own.
        call = mask_command(failed.event.text.strip())
        remedy = Remedy(RemedyKind.COMMAND, f"{text} {call}", call)
    return Cure(remedy, shown[-3:]) if text and is_informative(remedy.text) else None


def _sequence_text(act: ToolCall) -> str:
    text = re.sub(r"git commit .*?(?= &&|$)", "git commit", mask_command(generalise(act.event.text)))
    # Which files a conflict was in belongs to the instance.
    return re.sub(r"git add (?:(?!&&).)*&& (?=.*--continue)", "", text)
