"""Find the call that did what a failed one was for: the same verb and target, or what its error asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from rapidfuzz import fuzz

from archivist.cold_start import lazy_pattern
from archivist.reading.calls import ToolCall
from archivist.reading.commands import (
    TEXT_FLAGS,
    have_like_verbs,
    is_help,
    is_look,
    is_preparation,
    is_read_only_step,
    working_steps,
)
from archivist.reading.evasions import FORCES, SELECTING, is_evasion, only_shows
from archivist.reading.failures import Failure
from archivist.reading.outcomes import asking_sentences, had_no_effect, has_offer, has_worked
from archivist.reading.remedies import ENTERS, Remedy, RemedyKind
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import Step
from archivist.reading.wording import (
    TO_NO_FILE,
    base_name,
    general_command,
    is_informative,
    is_scratch,
    relative_path,
)
from archivist.records.run_words import FOLDER

_LEAST_SIMILARITY = 60
_SAME_NAME = 70
_SHORTEST_NAME = 4
_INSTANCE_ID = lazy_pattern(r"(?<![\w.-])(?:[a-z]{1,3}-)?\d{2,}(?![\w.])")
# A subcommand, a task or a name: what a call is about, no path, number or text.
_BARE_WORD = lazy_pattern(r"[a-z][a-z_-]*(?::[a-z_-]+)*$")
# Without these a check becomes the mending itself.
_CHECK_FLAG = lazy_pattern(r"--(?:check|dry-run|diff|list-different|check-only|verify)?$")
_MENDING = lazy_pattern(r"(?:^|[:_-])(?:fix|write|format|fmt)(?:$|[:=_-])")
# A pattern or the value of a variable is no file that was found. A name with spaces may be a sentence.
_NO_PATH = lazy_pattern(r"[*?<>|\[{\s]|^\w+=")
# Every project has files of these names, so finding another one says nothing about the missing one.
_GENERIC_FILES = frozenset(
    ("__init__.py", "mod.rs", "lib.rs", "main.rs", "index.ts", "index.js", "main.py", "Cargo.toml",
     "package.json", "README.md", "Makefile", "index.tsx", "conftest.py", "setup.py")
)  # fmt: skip
# The program ran and found a fault: fewer targets or other options only keep it from finding it again.
_FOUND_FAULT = frozenset((K.OTHER, K.BUILD, K.CRASH))
# What another call does not overcome.
_OF_CODE = frozenset((K.TEST_FAILURE, K.SYNTAX, K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.TIMEOUT, K.NETWORK))
# What a call finds that ran.
_OF_RUN_CODE = _OF_CODE - {K.TIMEOUT, K.NETWORK} | {K.BUILD, K.IMPORT_ERROR}
# The beginning of a text that has a type: `fix(cart): …`.
_TYPED_TEXT = lazy_pattern(r"[a-z]{2,12}(?:\([\w./-]{1,40}\))?!?: \S")
# What these report does not go away by something done elsewhere.
_CERTAIN = frozenset((K.USAGE, K.MISSING_COMMAND, K.GIT))
# A pull or merge that ends in a conflict was still needed.
_CONFLICT = "merge conflict"
# Steps that come before any push and so explain nothing.
ORDINARY = frozenset(("git add", "git commit", "git push", "git status", "git diff", "git log"))
_LONGEST_SENTENCE = 600
_TEST_COUNT = lazy_pattern(r"\b[1-9]\d* (?:tests?|specs?|examples?|passed|passing)\b", re.IGNORECASE)
_LAST_CHARACTERS = 2_000
# A folder of another name needs quotes, or speaks.
PLAIN_FOLDER = lazy_pattern(r"[\w.@+$/<>-]{1,100}")


@dataclass(frozen=True, slots=True)
class Cure:
    """A remedy with the calls that show it."""

    remedy: Remedy
    acts: tuple[ToolCall, ...]


def replacement(act: ToolCall, failed: ToolCall) -> Cure:
    """Return the cure of running one call instead of another."""
    right, wrong = general_command(_worked_part(act, failed)), general_command(_worked_part(failed, failed))
    if not is_informative(right):
        # What general terms leave out, such as the name of a script, is the point here.
        right, wrong = shorten_alike(act.display_text, failed.display_text)
    return Cure(Remedy(RemedyKind.COMMAND, right, wrong), (act,))


def shorten_alike(right: str, wrong: str) -> tuple[str, str]:
    """Return two calls without the end that they share, where only that keeps them from being told."""
    words, others = right.split(" "), wrong.split(" ")
    while (
        not is_informative(" ".join(words)) and len(others) > 1 and len(words) > 1 and words[-1] == others[-1]
    ):
        del words[-1], others[-1]
        # A flag says nothing without its value.
        if words[-1] == others[-1] and words[-1].startswith("-") and len(others) > 1:
            del words[-1], others[-1]
    is_told = is_informative(" ".join(words)) and words != others
    return (" ".join(words), " ".join(others)) if is_told else (right, wrong)


def _worked_part(act: ToolCall, failed: ToolCall) -> str:
    """Return a command line without looks at its end; where words were refused, the step that had them."""
    working = [index for index, step in enumerate(act.steps) if not is_read_only_step(step)]
    steps = act.steps[: working[-1] + 1] if working else act.steps
    main = act.main
    # What was looked at before is no part of what worked.
    piped = {index - 1 for index, step in enumerate(steps) if step.operator == "|"}
    steps = tuple(
        step
        for index, step in enumerate(steps)
        if step is main or index in piped or is_preparation(step) or not is_look(step)
    )
    if failed.kind is K.USAGE and main and failed.main and main.program == failed.main.program:
        steps = tuple(step for step in steps if step is main or is_preparation(step))
    return join_steps(steps) or act.event.text


def join_steps(steps: Sequence[Step]) -> str:
    """Return steps as one command line, without filters of their output and redirections to no file."""
    kept = [step for step in steps if not step.is_filter]
    joints = ["", *("; " if step.operator in ("", ";") else f" {step.operator} " for step in kept[1:])]
    texts = [TO_NO_FILE.sub("", step.text) for step in kept]
    return "".join(joint + text for joint, text in zip(joints, texts, strict=False))


def entered_folder(act: ToolCall, failed: ToolCall) -> str:
    """Return the folder that a call ran in and another did not: entered in its line, or before it."""
    entered = _folder_in_line(act)
    if entered or _folder_in_line(failed):
        return entered if entered != _folder_in_line(failed) else ""
    here, there = (str(call.event.extra.get(FOLDER) or "").rstrip("/") for call in (act, failed))
    return here[len(there) + 1 :] if there and here.startswith(f"{there}/") else ""


def _folder_in_line(act: ToolCall) -> str:
    """Return the folder below the project that a line enters before its main step, or nothing."""
    before = act.steps[: act.steps.index(act.main)] if act.main in act.steps else ()
    named = [step.arguments[0] for step in before if is_entering(step) and step.arguments]
    return "/".join(path.strip("/") for path in named if not path.startswith(("/", "~", "$", "-")))


def is_entering(step: Step) -> bool:
    """Say whether a step goes to another folder."""
    return step.program in ("cd", "pushd")


def enters_within(step: Step) -> bool:
    """Say whether a step goes to another folder of the project, by a name that every machine has for it."""
    return is_entering(step) and not "".join(step.arguments).startswith(("/", "~"))


def in_folder(cure: Cure, failed: ToolCall) -> Cure | None:
    """Return what helped with the folder that it works in; None where that leaves too much to be told.

    Without its folder another call fails as the first one did, and an install is another one.
    """
    remedy = cure.remedy
    folder = entered_folder(cure.acts[-1], failed)
    is_placed = remedy.way in (RemedyKind.COMMAND, RemedyKind.INSTALL)
    if not is_placed or not folder or ENTERS.match(remedy.text):
        return cure
    text = f"cd {folder} && {remedy.text}"
    is_told = PLAIN_FOLDER.fullmatch(folder) and is_informative(text)
    return replace(cure, remedy=remedy._replace(text=text)) if is_told else None


def cure_by_folder(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same call in a folder that has what it lacked; paths may be written from there."""
    wanted = {word.removeprefix("./") for word in failed.main.values} if failed.main else set()
    for act in later if wanted else ():
        folder = entered_folder(act, failed)
        if not folder or act.purpose != failed.purpose or not act.main or not has_worked(act):
            continue
        words = {word.removeprefix("./") for word in act.main.values}
        if all(word in wanted or f"{folder}/{word}" in wanted for word in words):
            return replacement(act, failed)
    return None


def plain_command(act: ToolCall) -> str:
    """Return a command line without filters of its output and without redirections to no file."""
    return act.event.text.strip() if any(step.bodies for step in act.steps) else join_steps(act.steps)


def fails_alike(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call fails as the other did."""
    return act.has_failed and failed.has_failed and (act.key, act.subject) == (failed.key, failed.subject)


_PROSE = lazy_pattern(r"\.(?:mdx?|rst|adoc)$")


def edits_project(act: ToolCall) -> bool:
    """Say whether a call changed files of the project that a program may read: no prose."""
    files = (change.file for change in act.changes if change.file)
    return any(not is_scratch(file) and not _PROSE.search(file) for file in files)


def cure_by_interpreter(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same call with another Python, which has the missing module."""
    for act in later:
        if not has_worked(act) or not act.main or not failed.main or act.purpose != failed.purpose:
            continue
        is_same = (act.main.flags, act.main.arguments) == (failed.main.flags, failed.main.arguments)
        if is_same and act.text != failed.text:
            return replacement(act, failed)
    return None


def cure_by_flags(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same tests passing with more flags and nothing changed: they were run in the wrong way."""
    before = set(failed.text.split())
    for act in later if failed.is_test else ():
        if act.changes or act.installs:
            return None
        words = act.text.split()
        gained = [word for word in words if word not in before]
        is_selection = any(SELECTING.match(word) or FORCES.match(word) for word in gained)
        if not has_worked(act) or act.purpose != failed.purpose or is_selection:
            continue
        # Only flags came in addition, each with its value if it has one.
        if (
            gained
            and is_informative(act.text)
            and before <= set(words)
            and all(
                word.startswith("-") or (previous.startswith("-") and previous in gained and "/" not in word)
                for previous, word in pairwise(("", *words))
                if word in gained
            )
        ):
            return replacement(act, failed)
    return None


def cure_by_other_runner(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for another program that ran all tests, when the first came to none and nothing was changed."""
    is_refused = failed.kind is K.USAGE
    is_blocked = failed.is_test and failed.kind in _FOUND_FAULT | {K.TEST_FAILURE, K.USAGE}
    for act in later if is_blocked and failed.main and not failed.main.arguments else ():
        if edits_project(act) or act.installs:
            return None
        is_whole = act.is_test and act.main and not act.main.arguments
        # Where the way to test is refused, a script that counts tests is the other way.
        is_other = is_refused and not act.is_look and _TEST_COUNT.search(act.event.output[-_LAST_CHARACTERS:])
        if not (is_whole or is_other) or not act.main or not has_worked(act):
            continue
        if failed.main and act.main.program != failed.main.program:
            return replacement(act, failed)
    return None


def cure_by_variant(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the most similar call that succeeded, or else one that got further.

    A test run that failed on its tests got past what kept the failed call from running any.
    """
    wrong = failed.text
    if failed.kind not in _CERTAIN:
        # What was changed or done in between may be what helped.
        later = list(takewhile(lambda act: not _may_have_helped(act, failed), later))
    # What came before the very same call succeeded is a step towards it; neither that nor a later call is one
    # that replaces it.
    repeated = next((at for at, act in enumerate(later) if act.text == wrong and has_worked(act)), None)
    is_repeated, later = repeated is not None, later[:repeated]
    if failed.kind is K.USAGE and failed.subject:
        # The next call with the refused name ran it, whatever it found; not if it was told to use another.
        named = (act for act in later if failed.subject in act.text.split() and act.kind not in _CERTAIN)
        if next_one := next(named, None):
            is_sent_on = next_one.has_failed and has_offer(next_one)
            later = [] if is_sent_on else [next_one]
            if next_one.kind in _OF_RUN_CODE and not is_sent_on and can_replace(next_one, failed):
                return replacement(next_one, failed)
    # What failed itself before it worked was helped by something else.
    calls = [_worked_part(act, failed) for act in later]
    failing = {
        call: index
        for index, call in reversed([*enumerate(calls)])
        if later[index].has_failed and not _found_fault(later[index])
    }
    tried = [
        act
        for index, act in enumerate(later)
        if failed.steps
        and index <= failing.get(calls[index], index)
        and not (is_repeated and act.purpose != failed.purpose)
        and can_replace(act, failed)
    ]
    got_further = [act for act in tried if _found_fault(act) and act.key != failed.key]
    for acts in ([act for act in tried if has_worked(act)], got_further):
        best: ToolCall | None = None
        highest = 0.0
        for act in acts:
            similarity = fuzz.ratio(wrong, act.text)
            is_other_program = act.main and failed.main and act.main.program != failed.main.program
            if is_other_program or set(wrong.split()) < set(act.text.split()):
                similarity = max(similarity, _LEAST_SIMILARITY)
            # The first of nearly equal calls is the one that was tried because of the failure.
            if similarity >= _LEAST_SIMILARITY and (best is None or similarity > highest + 3):
                best, highest = act, similarity
        found = replacement(best, failed) if best else None
        # In general terms a refused word may be gone from the call: then nothing shows what helped.
        is_refused = failed.kind is K.USAGE and failed.subject in failed.event.text
        is_hidden = found and is_refused and failed.subject not in found.remedy.instead
        is_new = found and is_informative(found.remedy.text) and found.remedy.text != found.remedy.instead
        if is_new and not is_hidden:
            return found
    return None


def _found_fault(act: ToolCall) -> bool:
    """Say whether a test ran and failed: the call did its work."""
    return act.is_test and act.kind is K.TEST_FAILURE


def _may_have_helped(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call changed something and did not do what the failed one was for."""
    if edits_project(act):
        return True
    if not act.steps or act.is_look or act.purpose == failed.purpose or is_asked_for(act, failed):
        return False
    words, wanted = (call.main.values if call.main else [] for call in (act, failed))
    is_same = bool(words and wanted) and (_has_same_rest(words, wanted) or _wraps_either(words, wanted))
    return not is_same and has_worked(act) and not had_no_effect(act)


def _has_same_rest(words: list[str], wanted: list[str]) -> bool:
    """Say whether a call only has another program."""
    return bool(wanted[1:]) and words[1:] == wanted[1:]


def _wraps(words: list[str], wanted: list[str]) -> bool:
    """Say whether a call runs another one through a program before it."""
    wrapped = words[-len(wanted) :] if len(words) > len(wanted) else []
    return wrapped[1:] == wanted[1:] and wrapped[:1] in ([wanted[0]], [wanted[0].removeprefix("./")])


def _wraps_either(words: list[str], wanted: list[str]) -> bool:
    """Say whether one call is the other with a program before it, which was lacking or in the way."""
    return _wraps(words, wanted) or (len(words) > 1 and _wraps(wanted, words))


def can_replace(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call does what another was for: the same verb on the same target.

    It may also be what the error asks for. It must name the same number, or only leave words out.
    """
    right, wrong = act.main, failed.main
    if not right or not wrong or act.text == failed.text or is_help(act.event.text):
        return False
    rest, whole = ([step.name for step in working_steps(call.steps)] for call in (act, failed))
    if len(rest) < len(whole) and set(rest) <= set(whole):
        # The step that is left out may be the one at fault.
        return False
    own = " ".join(step.text for step in act.steps if not step.is_filter)
    numbers = _INSTANCE_ID.findall(failed.event.text)
    is_named = not numbers or any(number in own for number in numbers)
    if not is_named and not set(act.text.split()) <= set(failed.text.split()):
        return False
    if is_asked_for(act, failed):
        return True
    if right.program == wrong.program:
        return _keeps_purpose(right, wrong, failed)
    if failed.kind is K.MISSING_COMMAND and _does_same_job(act, failed):
        return True
    if failed.kind is K.USAGE and len(failed.subject) >= _SHORTEST_NAME and not act.is_look:
        # A task that is refused may be a script of that name.
        return failed.subject in re.split(r"\W+", " ".join(right.values))
    words, wanted = right.values, wrong.values
    # Another program does the rest of the same words: one that the error names, or one that runs the first.
    is_other = _has_same_rest(words, wanted) and _names(failed, words[0])
    return is_other or _wraps_either(words, wanted) or act.purpose == failed.purpose


def _names(failed: ToolCall, word: str) -> bool:
    """Say whether the error of a call names a word, or what it asks the caller to do does."""
    line = f"{failed.failure.line} {failed.subject}" if failed.failure else ""
    said = (line, *asking_sentences(failed.event.output))
    whole = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    return any(word in text and whole.search(text) for text in said)


def _keeps_purpose(right: Step, wrong: Step, failed: ToolCall) -> bool:
    """Say whether a call of the same program has the same verb and target, but for what the error names."""
    dropped, added = set(wrong.flags) - set(right.flags), set(right.flags) - set(wrong.flags)
    unset, values = (
        {word for flag, word in pairwise(step.values) if flag in flags}
        for step, flags in ((wrong, dropped), (right, added))
    )
    words, wanted = ({*step.subcommand.split(), *step.arguments} for step in (right, wrong))
    lost, gained = (
        list(filter(_BARE_WORD.match, some)) for some in (wanted - words - unset, words - wanted - values)
    )
    if any(_MENDING.search(word) for word in {*dropped, *lost}) and not any(
        map(_MENDING.search, {*added, *gained})
    ):
        # Without the word that mends, a call only checks.
        return False
    is_refusal = failed.kind is not K.PROMPT
    if is_refusal and any(FORCES.match(flag) and not _names(failed, flag) for flag in added):
        return False
    has_found_fault = failed.kind in _FOUND_FAULT
    # A program that ran and names its task does not refuse it; only the task that mends does the same job.
    verbs = wrong.subcommand.split() if has_found_fault else []
    is_asked = bool(gained) and all(_names(failed, word) for word in gained)
    is_mending = bool(gained) and all(re.match(rf"{verb}[:_-]", word) for verb in lost for word in gained)
    # Where a refused name is all that a call says, another name must be like it.
    rest = (wanted & words) - {*right.subcommand.split()[:1]}
    if (
        lost
        and gained
        and not rest
        and not is_asked
        and not any(are_like_names(old, new) for old in lost for new in gained)
    ):
        return False
    if not (is_asked or is_mending) and any(word in verbs or not _names(failed, word) for word in lost):
        return False
    if not has_found_fault:
        return True
    if any(not _names(failed, word) for word in wanted - words - unset - set(lost)):
        return False
    is_mending = bool(dropped) and not added and all(_CHECK_FLAG.match(flag) for flag in dropped)
    if any(not _names(failed, flag) for flag in dropped) and not is_mending:
        return False
    # A new word is the value of a new flag, a setting, or replaces what the error names.
    new = {word for word in words - wanted - values if "=" not in word and word[:1] != "+"}
    return not new or bool(wanted - words)


def are_like_names(one: str, other: str) -> bool:
    """Say whether two names of tasks share a part, or are nearly the same."""
    if one.startswith("-") or other.startswith("-"):
        return fuzz.ratio(one.lstrip("-"), other.lstrip("-")) >= _SAME_NAME
    parts = [{*re.split(r"[:_.-]", name)} for name in (one, other)]
    if re.sub(r"\W", "", one) == re.sub(r"\W", "", other):
        return True
    return not parts[0].isdisjoint(parts[1]) or fuzz.ratio(one, other) >= _SAME_NAME


def _does_same_job(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether a call does the job of a command that is missing.

    The words are the same but for the first or for their spelling, both run tests, or the other call is of
    something with a part of the command's name, as `make lint` is of `golangci-lint`.
    """
    right, wrong = act.main, failed.main
    if not right or not wrong or act.is_look != failed.is_look:
        return False
    words, wanted = right.values, wrong.values
    if (wanted[1:] and words[1:] == wanted[1:]) or (act.is_test and failed.is_test):
        return True
    if re.sub(r"\W", "", "".join(words)) == re.sub(r"\W", "", "".join(wanted)):
        return True
    parts = {part for part in re.split(r"\W+", wrong.program) if len(part) >= _SHORTEST_NAME}
    return not parts.isdisjoint(re.split(r"\W+", " ".join(words)))


def is_asked_for(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether the error asks for a call: it names its first words, or its object by the initials."""
    if not act.main or act.purpose == failed.purpose:
        return False
    name = act.main.name.split()
    for sentence in asking_sentences(failed.event.output):
        words = re.findall(r"[\w.:-]{0,80}\w", sentence[:_LONGEST_SENTENCE])
        if len(name) > 1 and f" {' '.join(name)} " in f" {' '.join(words)} ":
            return True
        # A pull request is made with `pr`, a merge request with `mr`.
        initials = {one[0] + other[0] for one, other in pairwise(words)}
        if act.main.program != failed.purpose.split()[0] and not initials.isdisjoint(name[1:]):
            return True
    return False


def next_of_program(later: Sequence[ToolCall], wrong: Step, failure: Failure) -> list[tuple[ToolCall, Step]]:
    """Return the next call that may stand for a step that failed, if only looks came before it.

    Alone it shows little, since a program is called for many things. Two runs that go on alike show more.
    """
    for act in later:
        working = [step for step in working_steps(act.steps) if not (is_look(step) or only_shows(step))]
        if working or not (act.is_look or act.steps):
            is_next = len(working) == 1 and _takes_place(working[0], wrong, failure)
            return [(act, working[0])] if is_next else []
    return []


def _takes_place(step: Step, wrong: Step, failure: Failure) -> bool:
    """Say whether a step has all words of another, is about the same thing, or has another name for it."""
    if failure.is_own_code or failure.kind in _OF_CODE or failure.kind is K.GIT:
        return False
    if is_evasion(step, wrong):
        return False
    words, wanted = step.values, wrong.values
    rest = iter(words)
    if len(wanted) > 1 and len(words) > len(wanted) and all(word in rest for word in wanted[1:]):
        return True
    if step.program != wrong.program or not asks_alike(step, wrong, failure):
        return False
    targets = {word for word in wrong.arguments if not _BARE_WORD.match(word) or len(word) >= _SHORTEST_NAME}
    is_refused = failure.kind is K.USAGE and failure.subject in wanted
    return is_refused or not targets.isdisjoint(step.arguments) or step.name == wrong.name


def asks_alike(step: Step, wrong: Step, failure: Failure) -> bool:
    """Say whether a call asks its program for what another did: by the same verb, about no other number.

    Where a word was refused, it keeps some other word: what a program did next need not be what was refused.
    """
    if failure.kind is K.USAGE and failure.subject in wrong.values:
        others = {*wrong.values[1:]} - {failure.subject}
        return not others or not others.isdisjoint(step.values[1:])
    numbers, wanted = (set(_INSTANCE_ID.findall(" ".join(each.arguments))) for each in (step, wrong))
    is_other = bool(numbers and wanted) and numbers.isdisjoint(wanted)
    return not is_other and have_like_verbs(step, wrong)


def differing_messages(step: Step, wrong: Step) -> tuple[str, str]:
    """Return two calls that differ in how the text they are given begins: `fix: …` has a type."""
    for flag, text in pairwise(step.values):
        before = next((value for name, value in pairwise(wrong.values) if name == flag), "")
        if before and flag in TEXT_FLAGS and _TYPED_TEXT.match(text) and not _TYPED_TEXT.match(before):
            return f'{step.name} {flag} "<type>: \u2026"', f'{wrong.name} {flag} "\u2026"'
    return "", ""


def cure_by_path(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the path where a missing file was found. A folder must lie on the way that was looked for.

    A path that only begins elsewhere is the same file from another folder, unless both calls ran in one.
    """
    wrong = failed.subject.split("::")[0].strip("'\"").rstrip("/")
    name = base_name(wrong)
    if not name or name in _GENERIC_FILES or is_scratch(wrong) or not re.search(r"\w", name):
        return None
    for act in later:
        if not has_worked(act):
            continue
        arguments = [argument for step in act.steps for argument in step.arguments if "/" in argument]
        for path in [word.split("::")[0] for word in arguments] if act.steps else [act.event.target]:
            one, other = path.removeprefix("./").rstrip("/"), wrong.removeprefix("./")
            is_suffix = one.endswith(other) or other.endswith(one)
            is_same = one == other or (is_suffix and not _runs_beside(act, failed))
            if base_name(path) != name or is_same or is_scratch(path) or _NO_PATH.search(path):
                continue
            # Of a folder, one path only has more folders in between than the other.
            short, long = sorted((one.split("/"), other.split("/")), key=len)
            rest = iter(long)
            if "." in name or all(part in rest for part in short):
                return Cure(Remedy(RemedyKind.PATH, relative_path(path), relative_path(wrong)), (act,))
    return None


def cure_by_other_name(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the same call with another file of the missing one's folder and kind, which the run found."""
    wrong = failed.subject.removeprefix("./")
    wanted = [word.value for word in failed.main.words] if failed.main else []
    named = [word for word in wanted if base_name(word) == base_name(wrong) and "/" in word]
    for act in later if len(named) == 1 and not is_scratch(named[0]) else ():
        if edits_project(act):
            return None
        words = [word.value for word in act.main.words] if act.main else []
        changed = [pair for pair in zip(wanted, words, strict=False) if pair[0] != pair[1]]
        if len(words) != len(wanted) or len(changed) != 1 or changed[0][0] != named[0] or not has_worked(act):
            continue
        folder, ending = named[0].rpartition("/")[0], named[0].rpartition(".")[2]
        if changed[0][1].rpartition("/")[0] == folder and changed[0][1].endswith(f".{ending}"):
            missing, there = (relative_path(path.removeprefix("./")) for path in changed[0])
            return Cure(Remedy(RemedyKind.PATH, there, missing), (act,))
    return None


def _runs_beside(act: ToolCall, failed: ToolCall) -> bool:
    """Say whether two calls run a script each in the same way and in the same folder."""
    if not act.scripts or act.purpose != failed.purpose:
        return False
    is_moving = any(is_entering(step) for call in (act, failed) for step in call.steps)
    return not is_moving and act.event.extra.get(FOLDER) == failed.event.extra.get(FOLDER)


def cure_by_sequence(failed: ToolCall, later: Sequence[ToolCall]) -> Cure | None:
    """Look for the calls of the same program that led to its success, or to what the error asks for."""
    program = failed.main.program if failed.main else ""
    used: list[ToolCall] = []
    asked = next((act for act in later if is_asked_for(act, failed) and has_worked(act)), None)
    for act in later:
        if act is asked:
            text = " && ".join([*_general_texts(used), general_command(act.event.text)])
            text = text if is_informative(text) else general_command(act.event.text)
            remedy = Remedy(RemedyKind.COMMAND, text, failed.text)
            return Cure(remedy, (*used[-2:], act)) if is_informative(text) else None
        if act.is_look or not act.main or act.main.program != program:
            continue
        if act.failure and act.failure.signature.error != _CONFLICT:
            continue
        used.append(act)
        if asked or not failed.main or not has_worked(act):
            continue
        same = [step for step in act.steps if step.name == failed.main.name]
        if same:
            text = " && ".join(_general_texts(used))
            # The same with fewer words does less.
            is_new = set(same[-1].values) - set(failed.main.values) or any(
                step.name not in ORDINARY | {failed.main.name}
                for call in used
                for step in call.steps
                if step.program == program
            )
            is_told = bool(is_new) and is_informative(text)
            return Cure(Remedy(RemedyKind.COMMAND, text, failed.text), tuple(used)) if is_told else None
    return None


def _general_texts(used: Sequence[ToolCall]) -> list[str]:
    """Return the last calls that led to a success, each once, without what matters to one run only."""
    texts: dict[str, None] = {}
    for call in used[-3:]:
        text = re.sub(
            r"git commit .{0,400}?(?= &&|$)", "git commit", general_command(_worked_part(call, call))
        )
        # Which files a conflict was in matters to this run only.
        texts[re.sub(r"git add (?:(?!&&).){0,400}&& (?=.{0,400}--continue)", "", text)] = None
    return list(texts)
