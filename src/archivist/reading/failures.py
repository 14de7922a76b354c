"""Tell a failed tool call from one that went well, and say what failed."""

import re
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.commands import (
    Step,
    is_display_step,
    is_preparation,
    is_query_step,
    main_step,
    own_scripts,
    parse,
    run_scripts,
    step_purpose,
)
from archivist.reading.failure_kinds import FailureKind
from archivist.reading.rules.rule import FROM_HARNESS, LOOSE, SUMMARY, TOLD
from archivist.reading.signatures import (
    Clue,
    Signature,
    best_clue,
    clean_output,
    clue_signature,
    fallback_clue,
    find_clues,
    pick_clue,
    split_exit_line,
)

__all__ = ["Failure", "FailureKind", "detect_failure", "failure_key", "have_different_subjects", "is_shell"]

_SHELL_TOOL = lazy_pattern(r"bash|shell|terminal|exec|command|^run$|swe-agent|^$|console|^sh$", re.IGNORECASE)
_REFUSED = lazy_pattern(
    r"The user doesn't want to (?:proceed|take this action)|\[Request interrupted by user"
    r"|user (?:rejected|declined|denied)"
)
_PASSED = lazy_pattern(
    r"^(?:=+ )?(?:\d+ passed\b(?!.*\b[1-9]\d* (?:failed|error))|OK(?: \(.*\))?$)|^test result: ok"
    r"|^\[?(?:INFO)?\]? ?BUILD SUCCESS|^Successfully installed |^ok\s+\S+\s+[\d.]+s"
    r"|^Tests: +\d+ passed, \d+ total",
    re.MULTILINE,
)
_NAMED_SIGNALS = {
    124: ("timed out", FailureKind.TIMEOUT),
    -1: ("timed out", FailureKind.TIMEOUT),
    137: ("killed", FailureKind.CRASH),
    139: ("segmentation fault", FailureKind.CRASH),
    134: ("aborted", FailureKind.CRASH),
    127: ("command not found", FailureKind.MISSING_COMMAND),
    126: ("permission denied", FailureKind.PERMISSION),
}
_OWN_KINDS = frozenset(
    (
        FailureKind.SYNTAX,
        FailureKind.ATTRIBUTE,
        FailureKind.TYPE_ERROR,
        FailureKind.VALUE,
        FailureKind.TEST_FAILURE,
        FailureKind.OTHER,
    )
)
_SHELLS = ("bash", "sh", "zsh", "/bin/bash", "/bin/sh")
_SHORT_TEXT = 2000
_SHORTEST_MESSAGE = 8
_FIRST_WORDS = 200
_LONGEST_PATH = 300
_SIGNALLED = 128
_LAST_LINES = 3
_NOT_IN = lazy_pattern(r"cannot import name '?(\w+)'? from (?:partially initialized module )?'?([\w.]+)")
_PATCHERS = ("patch", "git apply", "git am")
# Scripts that a project has of its framework; nobody writes them for a task.
_OF_FRAMEWORKS = frozenset(("manage.py", "setup.py"))
_INLINE = ("<string>", "<stdin>")
# Stands in a key before the thing that the failure is about.
ABOUT = "@"
# Failures whose message is the same whatever thing they are about.
_OF_THINGS = frozenset((FailureKind.PERMISSION, FailureKind.NETWORK, FailureKind.GIT))
_INSTALLED = lazy_pattern(
    r"site-packages|dist-packages|node_modules|/\.cargo/|/lib/python\d|/go/pkg/|<frozen"
)


class Failure(NamedTuple):
    """One failed tool call.

    `line` is what a person would quote of the output and `subject` the module, command, file or flag that it
    is about. `is_own_code` says that the code just being written is at fault, `is_at_import` that nothing but
    importing was going on. `files` are the source files that the error came through, outermost first.
    """

    kind: FailureKind
    line: str
    subject: str
    signature: Signature
    is_own_code: bool = False
    is_at_import: bool = False
    files: tuple[str, ...] = ()


def is_shell(tool: str) -> bool:
    """Say whether a tool runs command lines."""
    return bool(_SHELL_TOOL.search(tool))


def detect_failure(
    tool: str, command: str, exit_code: int | None, is_error: bool, output: str
) -> Failure | None:
    """Return what failed in a tool call, or None when it went well. Never raises."""
    reported, rest = split_exit_line(output[:200])
    if reported is not None:
        output = rest + output[200:]
        exit_code = reported if exit_code is None else exit_code
    if is_error and _REFUSED.search(output[:400]):
        return None
    if not is_shell(tool):
        return _detect_in_tool(tool, command, is_error or bool(exit_code), output)
    steps = parse(command)
    if exit_code or (is_error and exit_code is None):
        return _detect_by_code(steps, exit_code or 1, clean_output(output))
    return _detect_by_output(steps, exit_code, clean_output(output))


def _detect_in_tool(tool: str, target: str, is_error: bool, output: str) -> Failure | None:
    """Judge a tool that is no shell: its error bit counts, else what a harness says in the first lines."""
    text = clean_output(output if is_error else output[:600])
    found = find_clues(text)
    if not is_error:
        found = [clue for clue in found if clue.rank == FROM_HARNESS and clue.at < _FIRST_WORDS]
    clue = pick_clue(found) or (fallback_clue(text) if is_error else None)
    if clue is None:
        return None
    if clue.kind is FailureKind.MISSING_FILE and not clue.subject and len(target) < _LONGEST_PATH:
        clue = clue._replace(subject=target.strip())
    return _failure(tool, clue, ())


def _detect_by_code(steps: tuple[Step, ...], code: int, text: str) -> Failure | None:
    """Judge a command that ended with a non-zero exit code: a failure, unless the code was an answer."""
    working = [step for step in steps if not is_preparation(step)]
    if code > _SIGNALLED and any(step.program in ("kill", "pkill", "killall") for step in steps):
        return None
    if working and all(is_display_step(step) for step in working):
        clue = _complaint_of(working, text)
        # With 8 a check says that it is not over yet.
        if clue is None and (code in (1, 8) or not text.strip()):
            return None
    else:
        clue = best_clue(text)
        if clue is None and code in (1, 123) and any(is_query_step(step) for step in working):
            return None
        if clue is not None and not clue.is_sure and code == 1 and steps and is_query_step(steps[-1]):
            return None
    if clue is None:
        clue = _clue_from_code(code, text)
    return _failure(_program(steps), clue, steps)


def _clue_from_code(code: int, text: str) -> Clue:
    rest = fallback_clue(text)
    if code not in _NAMED_SIGNALS:
        return (
            rest
            if rest.line
            else Clue(FailureKind.OTHER, "", f"exit {code}", "", f"exit code {code}", "", SUMMARY, 0)
        )
    said, kind = _NAMED_SIGNALS[code]
    return Clue(kind, "", said, "", rest.line or f"exit code {code} ({said})", "", SUMMARY, 0)


def _detect_by_output(steps: tuple[Step, ...], code: int | None, text: str) -> Failure | None:
    """Judge a command whose exit code is zero or unknown: only its output can tell of a failure."""
    working = [step for step in steps if not is_preparation(step) and not step.is_filter]
    if not text or len(text) < 8:
        return None
    if working and all(is_display_step(step) for step in working):
        clue = _complaint_of(working, text)
        return _failure(_program(steps), clue, steps) if clue else None
    found = find_clues(text)
    if code == 0 and _is_trusted(steps):
        found = [clue for clue in found if _is_of_environment(clue)]
    sure = [clue for clue in found if clue.is_sure or _ends_output(clue, text, steps)]
    clue = pick_clue(sure)
    if clue is None or _is_overruled(clue, text, steps):
        return None
    return _failure(_program(steps), clue, steps)


def _is_of_environment(clue: Clue) -> bool:
    """Say whether a script that went on all the same has shown that its surroundings are at fault."""
    if clue.raised is None:
        return clue.rank == TOLD
    if clue.kind is FailureKind.IMPORT_ERROR:
        return "cannot import name" in clue.line
    return clue.kind in (FailureKind.MISSING_MODULE, FailureKind.VERSION_CONFLICT)


def _is_trusted(steps: tuple[Step, ...]) -> bool:
    """Say whether exit code zero speaks for every step: no pipe, no alternative, nothing after a failure."""
    return all(
        step.operator in ("", "&&")
        or (step.operator == ";" and all(is_preparation(before) for before in steps[:index]))
        for index, step in enumerate(steps)
    )


def _ends_output(clue: Clue, text: str, steps: tuple[Step, ...]) -> bool:
    """Say whether a general "error: ..." ends the output of a program that the agent did not write itself."""
    if run_scripts(steps) or any(step.subcommand in ("-c", "-e", "-") for step in steps):
        return False
    after = text[clue.at :]
    return (
        after.rstrip().count("\n") <= _LAST_LINES or "backtrace" in after[:800] or "Caused by:" in after[:800]
    )


def _is_overruled(clue: Clue, text: str, steps: tuple[Step, ...]) -> bool:
    """Say whether the output itself shows that all went well after all."""
    if "roken pipe" in text[clue.at : clue.at + 400]:
        return True
    passed = list(_PASSED.finditer(text, clue.at))
    if passed and clue.rank < FROM_HARNESS:
        return "FAILED" not in text[passed[-1].start() :]
    if clue.raised is None or clue.kind.is_environment or not run_scripts(steps):
        return False
    # A script that prints what it caught went on; the same message stands on a second line.
    message = clue.raised.message[:60]
    before = text[: max(0, text.rfind("Traceback (most", 0, clue.at))]
    return len(message) > _SHORTEST_MESSAGE and (
        message in text[clue.at + len(clue.raised.line) :] or message in before
    )


def _complaint_of(steps: list[Step], text: str) -> Clue | None:
    """Return a complaint of one of the programs itself, not one in the text that it shows."""
    speakers = tuple(f"{name}:" for name in (*{step.program for step in steps}, *_SHELLS))
    spoken = "\n".join(line for line in text.split("\n") if line.startswith(speakers))
    found = find_clues(spoken) if spoken else []
    if len(text) < _SHORT_TEXT:
        found += [clue for clue in find_clues(text) if _is_of_harness(clue, text)]
    return pick_clue(found)


def _is_of_harness(clue: Clue, text: str) -> bool:
    if clue.rank == FROM_HARNESS:
        return True
    return clue.kind is FailureKind.MISSING_FILE and clue.is_sure and len(text) < _LONGEST_PATH


def _program(steps: tuple[Step, ...]) -> str:
    step = main_step(steps)
    return step_purpose(step) if step else ""


def _failure(program: str, clue: Clue, steps: tuple[Step, ...]) -> Failure:
    trace = clue.raised
    return Failure(
        kind=clue.kind,
        line=clue.line[:400],
        subject=clue.endpoint or clue.subject,
        signature=clue_signature(program.lower(), clue),
        is_own_code=_is_own_code(clue, steps),
        is_at_import=bool(trace and trace.is_at_import),
        files=(trace.files[:1] + trace.files[1:][-4:]) if trace else (),
    )


def _is_own_code(clue: Clue, steps: tuple[Step, ...]) -> bool:
    """Say whether the fault is likely in the code just being written."""
    trace = clue.raised
    if trace is None:
        is_report = clue.kind in (FailureKind.BUILD, FailureKind.OTHER)
        if is_report and any(step.program in programs.LINTERS for step in steps):
            return True
        # What a script that the agent wrote says in its own words.
        return clue.is_own or (clue.kind is FailureKind.OTHER and clue.rank <= LOOSE and _is_scripted(steps))
    if clue.kind is FailureKind.IMPORT_ERROR:
        # A name that the project itself does not have was guessed; one that a library lost was not.
        return (
            bool(trace.files)
            and _is_own_file(trace.files[-1], steps)
            and not _INSTALLED.search(trace.message)
        )
    if clue.kind not in _OWN_KINDS:
        return False
    beyond = [file for file in trace.files if not _INSTALLED.search(file)]
    if beyond and _is_own_file(beyond[-1], steps):
        return True
    return clue.kind is FailureKind.SYNTAX and bool(beyond)


def _is_scripted(steps: tuple[Step, ...]) -> bool:
    step = main_step(steps)
    if step is None or run_scripts((step,)) & _OF_FRAMEWORKS:
        return False
    return step.subcommand in ("-c", "-e", "-") or step_purpose(step).endswith("<script>")


def _is_own_file(file: str, steps: tuple[Step, ...]) -> bool:
    return file in _INLINE or file.rsplit("/", 1)[-1] in own_scripts(steps) | run_scripts(steps)


def failure_key(failure: Failure) -> str:
    """Return the key under which failures that belong to one lesson fall together."""
    sign_ = failure.signature
    match failure.kind:
        case FailureKind.EDIT_NOT_APPLIED if sign_.program in _PATCHERS:
            return f"{failure.kind}:patch"
        case FailureKind.EDIT_NOT_APPLIED:
            return f"{failure.kind}:{sign_.program}:{sign_.error}"
        case FailureKind.MISSING_MODULE if sign_.program == "python" and _is_uninstallable(failure.subject):
            return f"{failure.kind}:{sign_.program}:{failure.subject}"
        case FailureKind.MISSING_MODULE | FailureKind.PROVIDER:
            return f"{failure.kind}:{sign_.program}"
        case FailureKind.USAGE:
            return f"{failure.kind}:{sign_.program}"
        case FailureKind.IMPORT_ERROR if named := _NOT_IN.search(failure.line):
            # The same whether it was raised or printed.
            return f"{failure.kind}:{sign_.program}:{named[2]}.{named[1]}"
        case _:
            thing = _failing_resource(failure)
            return f"{failure.kind}:{sign_.key}{f' {ABOUT}{thing}' if thing else ''}"


def _failing_resource(failure: Failure) -> str:
    """Return the script, port or host that a failure is about: what helps one of them is not for another."""
    if failure.kind not in _OF_THINGS:
        return ""
    subject = failure.subject.strip("'\"").removeprefix("./")
    return subject.rsplit("/", 1)[-1] if subject.startswith(("/", "~")) else subject


def have_different_subjects(first: str, second: str) -> bool:
    """Say whether two keys name different things, or only one of them any: however alike, they are two."""
    kind, mark, thing = first.partition(f" {ABOUT}")
    other_kind, other_mark, other = second.partition(f" {ABOUT}")
    return thing != other if mark and other_mark else mark != other_mark and kind == other_kind


def _is_uninstallable(module: str) -> bool:
    from archivist.reading.modules import is_uninstallable

    return is_uninstallable(module)
