"""Tell a failed tool call from a successful one, and say what failed."""

import re
from functools import lru_cache
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.commands import (
    is_display_step,
    is_preparation,
    is_query_step,
    main_step,
    own_scripts,
    run_scripts,
    step_purpose,
    working_steps,
)
from archivist.reading.rules import FROM_HARNESS, LOOSE, NOT_FORMATTED, SUMMARY, TOLD, TOOL, is_of_runtime
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import Step, parse
from archivist.reading.signatures import (
    Clue,
    Signature,
    clean_output,
    clue_signature,
    fallback_clue,
    find_clues,
    pick_clue,
)

# Separates the resource that a failure is about from the rest of its key.
ABOUT = "@"
# Stands in the key of a built file that lacks what its sources have.
STALE = "<stale>"
_SHELL_TOOL = lazy_pattern(r"bash|shell|terminal|exec|command|^run$|swe-agent|^$|console|^sh$", re.IGNORECASE)
# The line in which a harness reports the exit code.
_EXIT_LINE = lazy_pattern(r"\A\s*(?:Exit code:? |<returncode>)(-?\d+)[^\n]*(?:\n|\Z)")
# What a harness says of a call that the user refused, or that it did not make since another one failed. It
# says nothing else: more lines follow only where it announces the user's words or plan.
_NOT_MADE = lazy_pattern(
    r"[^\n]{0,200}?(?:The user doesn't want to (?:proceed|take this action)|\[Request interrupted by user"
    r"|(?i:user) (?:rejected|declined|denied|cancell?ed|aborted)"
    r"|(?:rejected|declined|denied|cancell?ed|aborted) by (?:the )?user"
    r"|(?i:sibling|parallel|other) tool calls? (?:has )?(?:errored|failed)"
    r"|[Tt]ool (?:call|use) (?:was )?(?:cancell?ed|aborted|skipped|not executed|rejected))"
    r"[^\n]{0,2000}(?:\Z|(?<=:)\n|\n{1,2}Rejected plan:)"
)
# How programs that ask a server begin when they are refused.
_REFUSES_FIRST = lazy_pattern(
    r"\s*(?:(?:[Ee]rror|ERROR|fatal|X )\b|[Uu]n(?:known|recognized) (?:shorthand )?(?:flag|option|command)\b)"
)
# One line that begins with who complains. What reports how something went elsewhere prints a table.
_ONE_COMPLAINT = lazy_pattern(r"[\w()/.-]{2,40}(?: [\w()/.-]{1,40}){0,3}: [^\n\t]{8,600}")
_PASSED = lazy_pattern(
    r"^(?:=+ )?(?:\d+ passed\b(?!.*\b[1-9]\d* (?:failed|error))|OK(?: \(.*\))?$)|^test result: ok"
    r"|^\[?(?:INFO)?\]? ?BUILD SUCCESS|^Successfully installed |^ok\s+\S+\s+[\d.]+s"
    r"|^Tests: +\d+ passed, \d+ total",
    re.MULTILINE,
)
_NAMED_CODES = {
    124: ("timed out", K.TIMEOUT),
    -1: ("timed out", K.TIMEOUT),
    137: ("killed", K.CRASH),
    139: ("segmentation fault", K.CRASH),
    134: ("aborted", K.CRASH),
    127: ("command not found", K.MISSING_COMMAND),
    126: ("permission denied", K.PERMISSION),
}
_CODE_KINDS = frozenset((K.SYNTAX, K.ATTRIBUTE, K.TYPE_ERROR, K.VALUE, K.TEST_FAILURE, K.OTHER))
# What ends by an interrupt was ended by whoever ran it: its exit code, and the key that a terminal is sent.
_INTERRUPTED = 130
_INTERRUPT = "\x03"
_SHELLS = ("bash", "sh", "zsh", "/bin/bash", "/bin/sh")
# An exit code above 128 means that a signal ended the program.
_FIRST_SIGNAL_CODE = 128
# What a harness says about a call stands at the start of a short output.
_SHORT_OUTPUT = 2000
_HARNESS_REACH = 200
_LONGEST_REFUSAL = 4000
_LONGEST_PATH = 300
_SHORTEST_MESSAGE = 8
_COMPARED_CHARACTERS = 40
# What a failing test may print as its error.
_SAID_BY_TESTS = (K.TEST_FAILURE, K.TIMEOUT)
_LAST_LINES = 3
_MOST_STEPS = 20
_OF_INSTANCE = frozenset(("unexpected argument", "unrecognized arguments", "argument error", "invalid value"))
# An option or a subcommand, not a word of one instance such as a test's name.
_REFUSED_WORD = lazy_pattern(r"-{0,2}[a-z](?:[\w-]|:(?!:)){0,24}|-?\w")
_NOT_IN = lazy_pattern(r"cannot import name '?(\w+)'? from (?:partially initialized module )?'?([\w.]+)")
_PATCHERS = ("patch", "git apply", "git am")
# Scripts that come with a project's framework; nobody writes them for a task.
_FRAMEWORK_SCRIPTS = frozenset(("manage.py", "setup.py"))
_BACKTICKS = lazy_pattern(r"`([^`\n]{1,80})`")
_INLINE = ("<string>", "<stdin>")
# Failures whose message is the same for every resource; the key needs the resource too.
_KINDS = frozenset(map(str, K))
_ABOUT_RESOURCES = frozenset((K.PERMISSION, K.NETWORK, K.GIT))
# The step of a line that looks whether files are formatted.
_FORMATS = lazy_pattern(r"\b(?:\w{0,10}fmt|format|prettier|black|biome|dprint|yapf)\b")
_USAGE_LINE = lazy_pattern(r"(?im)^\s{0,8}usage:[ \t]{1,4}([^\n]{1,200})")
_INSTALLED = lazy_pattern(
    r"site-packages|dist-packages|node_modules|/\.cargo/|/lib/python\d|/go/pkg/|<frozen"
)


_BUILT_FILE = lazy_pattern(
    r"(?:^|[\s'\"(/])(?:dist|build|out|target|generated|gen|_build|\.next)/(?:[\w.@-]{1,80}/){0,8}[\w.@-]{1,80}"
)
# A package, other than a file of the project, has not the name that is imported from it.
_PACKAGE_EXPORT = lazy_pattern(r"(?i)\b(?:module|from|by) ['\"]{1,2}(?![./~])[@\w].{0,200}\bexport")
# What names an export that is not there; the name is another one in each run.
_NO_EXPORT = lazy_pattern(r"(?i)\bexport(?:ed|s)?\b")


# So many failures of one call are told apart besides the one that a person would quote.
_MOST_OTHERS = 4


class Failure(NamedTuple):
    """One failed tool call.

    `line` is the line of the output that a person would quote and `subject` the module, command, file or flag
    that it is about. `is_own_code` says that the code being written is at fault, `is_at_import` that an
    import failed. `files` are those that an exception passed through, outermost first.
    """

    kind: K
    line: str
    subject: str
    signature: Signature
    is_own_code: bool = False
    is_at_import: bool = False
    files: tuple[str, ...] = ()


@lru_cache(maxsize=1024)
def is_shell(tool: str) -> bool:
    """Say whether a tool runs command lines."""
    return bool(_SHELL_TOOL.search(tool))


def was_not_made(exit_code: int | None, is_error: bool, output: str) -> bool:
    """Say whether a call was refused or left out by the user or the harness: it shows nothing.

    A command that exited ran, whatever it printed.
    """
    return is_error and exit_code is None and _NOT_MADE.match(output[:_LONGEST_REFUSAL].strip()) is not None


def detect_failure(
    tool: str, command: str, exit_code: int | None, is_error: bool, output: str
) -> Failure | None:
    """Return what failed in a tool call, or None when it succeeded. Never raises."""
    if reported := _EXIT_LINE.match(output[:200]):
        output = output[reported.end() :]
        exit_code = int(reported[1]) if exit_code is None else exit_code
    if was_not_made(exit_code, is_error, output) or exit_code == _INTERRUPTED or command == _INTERRUPT:
        return None
    if not is_shell(tool):
        return _detect_in_tool(tool, command, is_error or bool(exit_code), output)
    steps = parse(command)
    text = _without_slips(steps, clean_output(output))
    if exit_code or (is_error and exit_code is None):
        clue = _clue_by_code(steps, exit_code or 1, text)
    else:
        clue = _clue_by_output(steps, exit_code, text)
    if clue is None:
        return None
    if clue.kind is K.MISSING_MODULE and clue.subject.rsplit("/", 1)[-1] in run_scripts(steps):
        # The script itself is what was not found.
        clue = clue._replace(kind=K.MISSING_FILE, error="no such file")
    step = _blamed_step(steps, clue, text)
    return _make_failure(step_purpose(step) if step else "", _name_test(clue, text), steps)


def _name_test(clue: Clue, text: str) -> Clue:
    """Return what failed in a test as the failure of that test, with its error.

    One that ran out of time and one with a wrong result are two failures.
    """
    if clue.raised or clue.kind not in _SAID_BY_TESTS:
        return clue
    from archivist.reading.runner_reports import ASSERTION, TIMEOUT, error_class, failing_tests

    is_named = clue.kind is K.TEST_FAILURE
    of_tests = [clue] if is_named else find_clues(text)
    of_tests = [each for each in of_tests if each.kind is K.TEST_FAILURE]
    failing = failing_tests(text) if of_tests else ()
    if not failing:
        return clue
    line = " ".join(clue.line.split())
    test = next((test for test in failing if test.name in line), failing[0])
    kind = error_class(test.error)
    error = "test timed out" if kind == TIMEOUT else "test failed"
    if kind not in (TIMEOUT, ASSERTION) and kind.isidentifier():
        error = f"{error}: {kind}"
    line = line if is_named and test.name in line else test.name
    line = line if not test.error or test.error[:_COMPARED_CHARACTERS] in line else f"{line}: {test.error}"
    subject = clue.subject if clue.subject in test.name else ""
    return of_tests[0]._replace(error=error, subject=subject, text=test.name, line=line)


def _without_slips(steps: tuple[Step, ...], text: str) -> str:
    """Return an output without what the shell says of names in backticks in a text that a call was given.

    The shell runs them as commands, which is no reason why the call failed.
    """
    if " not found" not in text:
        return text
    # What is all of a word is no part of a text.
    words = (word.value for step in steps for word in step.words if "`" in word.value)
    texts = [value for value in words if " " in _BACKTICKS.sub("", value)]
    texts += [body for step in steps for body in step.bodies]
    names = {span.split()[0] for each in texts for span in _BACKTICKS.findall(each) if span.split()}
    said = {form for name in names for form in (f": {name}: ", f"not found: {name}")}
    lines = text.split("\n")
    return "\n".join(
        line for line in lines if " not found" not in line or not any(map(line.__contains__, said))
    )


def other_failures(command: str, output: str, first: Failure) -> list[Failure]:
    """Return what else the output of a call that failed reports, each under another key than the first."""
    steps, text = parse(command), clean_output(output)
    clues = [clue for clue in find_clues(text) if clue.rank >= TOOL and clue.line != first.line]
    found: dict[str, Failure] = {failure_key(first): first}
    for clue in sorted(clues, key=lambda clue: (-clue.rank, clue.at)):
        step = _blamed_step(steps, clue, text)
        failure = _make_failure(step_purpose(step) if step else "", _name_test(clue, text), steps)
        if all(failure.line != other.line for other in found.values()):
            found.setdefault(failure_key(failure), failure)
    return list(found.values())[1 : 1 + _MOST_OTHERS]


def _blamed_step(steps: tuple[Step, ...], clue: Clue, text: str) -> Step | None:
    """Return the step that an error names, if it names one of several; else the one that the line is for.

    A utility that refuses a word says so under its own name, wherever it stands in a pipe.
    """
    speaker = clue.line.partition(":")[0]
    speaking = [step for step in steps[:_MOST_STEPS] if step.is_filter and step.program == speaker]
    if clue.kind is K.USAGE and speaking:
        return speaking[0]
    working = working_steps(steps)
    if clue.kind is K.USAGE and len(working) > 1 and (usage := _USAGE_LINE.search(text)):
        # Who prints how it is used was used wrongly.
        used = [step for step in working if f"{usage[1]} ".startswith(f"{step.name} ")]
        if len({step.name for step in used}) == 1:
            return used[0]
    formatting = [step for step in working if _FORMATS.search(step.text)]
    if clue.error == NOT_FORMATTED and formatting:
        return formatting[0]
    words = {step: (step.subcommand or step.program).rsplit(" ", 1)[-1] for step in working[:_MOST_STEPS]}
    named = [
        step
        for step, word in words.items()
        if word in clue.line and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-]|:\w)", clue.line)
    ]
    return named[0] if len(words) > 1 and len(named) == 1 else main_step(steps)


def _detect_in_tool(tool: str, target: str, is_error: bool, output: str) -> Failure | None:
    """Judge a tool that is no shell by its error flag, else by what a harness says in the first lines."""
    text = clean_output(output if is_error else output[:600])
    found = find_clues(text)
    if not is_error:
        found = [clue for clue in found if clue.rank == FROM_HARNESS and clue.at < _HARNESS_REACH]
    clue = pick_clue(found) or (fallback_clue(text) if is_error else None)
    if clue is None:
        return None
    if clue.kind is K.MISSING_FILE and not clue.subject and len(target) < _LONGEST_PATH:
        clue = clue._replace(subject=target.strip())
    return _make_failure(tool, clue, ())


def _clue_by_code(steps: tuple[Step, ...], code: int, text: str) -> Clue | None:
    """Judge a command that ended with a non-zero exit code: a failure, unless the code was an answer."""
    working = [step for step in steps if not is_preparation(step)]
    if code > _FIRST_SIGNAL_CODE and any(step.program in ("kill", "pkill", "killall") for step in steps):
        return None
    if working and all(is_display_step(step) for step in working):
        clue = _complaint_of(working, text)
        is_local = all(step.program in programs.LOOKS for step in working)
        if clue is None and not is_local:
            if _REFUSES_FIRST.match(text) or _ONE_COMPLAINT.fullmatch(text.strip()):
                return pick_clue(find_clues(text)) or fallback_clue(text)
            # It ends with nothing but that its server cannot be reached.
            end = "\n".join(text.strip().split("\n")[-_LAST_LINES:])
            clue = pick_clue([each for each in find_clues(end) if each.kind is K.NETWORK])
        # `gh pr checks` exits with 8 while checks are pending.
        if clue is None and (code in (1, 8) or not text.strip()):
            return None
    else:
        clue = pick_clue(find_clues(text))
        if clue is None and code in (1, 123) and any(is_query_step(step) for step in working):
            return None
    if clue is not None:
        return clue
    rest = fallback_clue(text)
    if code in _NAMED_CODES:
        error, kind = _NAMED_CODES[code]
        return Clue(kind, "", error, "", rest.line or f"exit code {code} ({error})", "", SUMMARY, 0)
    if rest.line:
        return rest
    return Clue(K.OTHER, "", f"exit {code}", "", f"exit code {code}", "", SUMMARY, 0)


def _clue_by_output(steps: tuple[Step, ...], code: int | None, text: str) -> Clue | None:
    """Judge a command whose exit code is zero or unknown: only its output can show a failure."""
    working = working_steps(steps)
    if len(text) < _SHORTEST_MESSAGE:
        return None
    if working and all(is_display_step(step) for step in working):
        return _complaint_of(working, text)
    found = find_clues(text)
    # Exit code zero speaks for every step without a pipe, an alternative or a step after a failure.
    is_conclusive = all(
        step.operator in ("", "&&")
        or (step.operator == ";" and all(is_preparation(before) for before in steps[:index]))
        for index, step in enumerate(steps)
    )
    if code == 0 and is_conclusive:
        # A script that went on to succeed may still have shown a fault of its environment.
        faults = (K.MISSING_MODULE, K.VERSION_CONFLICT)
        found = [
            clue
            for clue in found
            if (clue.raised is None and clue.rank == TOLD)
            or (clue.raised and clue.kind in faults)
            or (clue.raised and clue.kind is K.IMPORT_ERROR and "cannot import name" in clue.line)
        ]
    clue = pick_clue([clue for clue in found if clue.is_sure or _ends_output(clue, text, steps)])
    return None if clue is None or _is_overruled(clue, text, steps) else clue


def _ends_output(clue: Clue, text: str, steps: tuple[Step, ...]) -> bool:
    """Say whether a general "error: ..." ends the output of a program that the agent did not write itself."""
    if run_scripts(steps) or any(step.subcommand in ("-c", "-e", "-") for step in steps):
        return False
    own = [step for step in steps if not step.is_filter]
    if own and is_display_step(own[-1]):
        return False
    after = text[clue.at :]
    return (
        after.rstrip().count("\n") <= _LAST_LINES or "backtrace" in after[:800] or "Caused by:" in after[:800]
    )


def _is_overruled(clue: Clue, text: str, steps: tuple[Step, ...]) -> bool:
    """Say whether the output itself shows that the command succeeded after all."""
    if "roken pipe" in text[clue.at : clue.at + 400]:
        return True
    passed = list(_PASSED.finditer(text, clue.at))
    if passed and clue.rank < FROM_HARNESS:
        return "FAILED" not in text[passed[-1].start() :]
    if clue.raised is None or clue.kind.is_environment or not run_scripts(steps):
        return False
    # A script that prints an exception it caught goes on; the message then stands on a second line.
    message = clue.raised.message[:60]
    before = text[: max(0, text.rfind("Traceback (most", 0, clue.at))]
    return len(message) > _SHORTEST_MESSAGE and (
        message in text[clue.at + len(clue.raised.line) :] or message in before
    )


def _complaint_of(steps: list[Step], text: str) -> Clue | None:
    """Return an error of one of the programs itself, not one in the text that it displays."""
    speakers = tuple(f"{name}:" for name in (*{step.program for step in steps}, *_SHELLS))
    spoken = "\n".join(line for line in text.split("\n") if line.startswith(speakers))
    found = find_clues(spoken) if spoken else []
    if len(text) < _SHORT_OUTPUT:
        found += [
            clue
            for clue in find_clues(text)
            if clue.rank == FROM_HARNESS
            or (clue.kind is K.MISSING_FILE and clue.is_sure and len(text) < _LONGEST_PATH)
        ]
    return pick_clue(found)


def _make_failure(program: str, clue: Clue, steps: tuple[Step, ...]) -> Failure:
    trace, is_usage = clue.raised, clue.kind is K.USAGE and clue.program not in programs.SHELLS
    if is_usage and program and not program.endswith("<script>"):
        # A complaint about a call's words is one of the whole call: `cargo test` knows other words.
        clue = clue._replace(program="")
    manager = program.partition(" ")[0]
    if manager in programs.PACKAGE_MANAGERS and manager in clue.line.lower() and is_of_runtime(clue.line):
        # It refuses whatever it is called with.
        program = manager
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
    """Say whether the fault is likely in the code that is being written."""
    trace, step = clue.raised, main_step(steps)
    if trace is None:
        is_report = clue.kind in (K.BUILD, K.OTHER)
        if clue.is_own or (is_report and any(step.program in programs.LINTERS for step in steps)):
            return True
        # A script that the agent wrote reports a failure in its own words.
        if step is None or clue.kind is not K.OTHER or clue.rank > LOOSE:
            return False
        is_script = step.subcommand in ("-c", "-e", "-") or step_purpose(step).endswith("<script>")
        return is_script and not run_scripts((step,)) & _FRAMEWORK_SCRIPTS
    own_names = own_scripts(steps) | run_scripts(steps)
    is_own = [file in _INLINE or file.rsplit("/", 1)[-1] in own_names for file in trace.files]
    if clue.kind is K.IMPORT_ERROR:
        # A name that the project itself lacks was guessed; a name that a library removed was not.
        return any(is_own[-1:]) and not _INSTALLED.search(trace.message)
    if clue.kind not in _CODE_KINDS:
        return False
    # The last frame outside of installed packages decides; no package has a syntax error.
    outside = [at for at, file in enumerate(trace.files) if not _INSTALLED.search(file)]
    return bool(outside) and (clue.kind is K.SYNTAX or is_own[outside[-1]])


def is_of_built_file(failure: Failure) -> bool:
    """Say whether an error is about what a file or package lacks that is made from others."""
    return bool(_BUILT_FILE.search(failure.line) or _PACKAGE_EXPORT.search(failure.line))


def lacks_export(failure: Failure) -> str:
    """Return the built file that lacks an export, which a build brings, whatever its name; else nothing."""
    is_missing = failure.kind in (K.SYNTAX, K.BUILD) and _NO_EXPORT.search(failure.line)
    named = (word.strip(" '\"().,:;") for word in failure.line.split() if is_missing)
    return next((word.lstrip("./") for word in named if _BUILT_FILE.search(word)), "")


def failure_key(failure: Failure) -> str:
    """Return the key that is the same for all failures that belong to one lesson."""
    kind, signature = failure.kind, failure.signature
    if kind is K.MISSING_MODULE and signature.program == "python":
        # Imported late: the hooks call this function, and few failures need that module.
        from archivist.reading.packages import is_uninstallable

        if is_uninstallable(failure.subject):
            return f"{kind}:{signature.program}:{failure.subject}"
    if built := lacks_export(failure):
        return f"{kind}:{STALE}:{built}"
    match kind:
        case K.EDIT_NOT_APPLIED if signature.program in _PATCHERS:
            return f"{kind}:patch"
        case K.EDIT_NOT_APPLIED:
            return f"{kind}:{signature.program}:{signature.error}"
        case K.MISSING_MODULE | K.PROVIDER:
            return f"{kind}:{signature.program}"
        case K.USAGE:
            # A word that no option begins is one of the instance, unless it stands for a subcommand.
            is_flag = failure.subject.startswith("-") or signature.error not in _OF_INSTANCE
            is_flag = is_flag and signature.program not in programs.SHELLS
            is_word = is_flag and _REFUSED_WORD.fullmatch(failure.subject)
            return f"{kind}:{signature.program}:{failure.subject if is_word else signature.error}"
        case K.MISSING_FILE if signature.words:
            # Whoever looks for it, it is not there.
            return f"{kind}:{signature.words[0]}"
        case K.IMPORT_ERROR if named := _NOT_IN.search(failure.line):
            # The same key whether the error was raised or printed.
            return f"{kind}:{signature.program}:{named[2]}.{named[1]}"
    if kind not in _ABOUT_RESOURCES:
        return f"{kind}:{signature.key}"
    # What helps with one script, port or host does not help with another.
    subject = failure.subject.strip("'\"").removeprefix("./")
    resource = subject.rsplit("/", 1)[-1] if subject.startswith(("/", "~")) else subject
    about = f" {ABOUT}{resource}" if resource else ""
    if kind is not K.GIT and (resource or signature.words):
        # Whoever asks for it, it is not there, or not allowed.
        return f"{kind}:{signature._replace(program='').key}{about}"
    return f"{kind}:{signature.key}{about}"


def have_different_subjects(first: str, second: str) -> bool:
    """Say whether two keys are of two failures: of one kind with other words, or about other resources.

    A key holds what makes a failure the same. Two programs that are not installed are told in nearly the same
    words, and so are two tests of one name in other suites.
    """
    kinds = [key.partition("|")[2].partition(":")[0] for key in (first, second)]
    if kinds[0] == kinds[1] and kinds[0] in _KINDS:
        return first != second
    resource, other = (key.partition(f" {ABOUT}")[2] for key in (first, second))
    return bool(resource and other) and resource != other
