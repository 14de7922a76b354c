"""Tell which commands of a run tested, linted, built or started its project, and whether they worked.

A command worked when its program did its job: a failing test or a lint finding is about the code. It failed
when it could not run: not found, used wrongly, without its script or its own module. Anything else, such as
a time-out, a refusal by the user or a fault of another step of the same line, says nothing about it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.calls import UNFINISHED, ToolCall
from archivist.reading.commands import is_preparation
from archivist.reading.elsewhere import OUTSIDE, relative_folder, run_folders
from archivist.reading.programs import words_of
from archivist.reading.remedies import is_destructive
from archivist.reading.risk_tables import OTHER_SETTINGS
from archivist.reading.rules import FailureKind as K
from archivist.reading.shell import ProjectStep, Step, Word, installed_program, parse
from archivist.reading.wording import is_scratch
from archivist.records.run_words import FOLDER, REDACTED

if TYPE_CHECKING:
    from archivist.records import Episode

# A purpose, a command, the folder it was run in, how often it ran, could not run, and passed; how many tests
# passed at most, as far as it said so; and whether it passed last before a commit.
CommandCounts: TypeAlias = "list[str | int]"
# Bounds of what is stored with a run.
_MOST_COMMANDS = 16
_LONGEST_COMMAND = 80
_COMMIT = ("commit", "git commit", "")
_LONGEST_VALUE = 30


# What a task, a script or a program is for, by the words of its name.
_PURPOSES = {
    word: purpose
    for purpose, named in {
        "test": "test tests spec specs unittest pytest tox nox jest vitest mocha ava rspec ctest phpunit pest"
        " nextest e2e cypress karma",
        "lint": "lint linter eslint oxlint ruff flake8 pylint clippy vet golangci rubocop stylelint"
        " shellcheck biome credo ktlint detekt",
        "types": "types type typecheck tsc mypy pyright basedpyright dialyzer",
        "format": "format fmt prettier black gofmt gofumpt rustfmt isort dprint spotless",
        "build": "build compile package assemble bundle webpack rollup esbuild tsup",
        "run": "start dev serve server runserver up preview",
    }.items()
    for word in named.split()
}
# Words that say less than any other of the same name.
_WEAK_PURPOSES = words_of("check checks verify validate ci precommit")
# Programs that run a task of the project by its name, and words before that name.
TASK_RUNNERS = words_of(
    "npm pnpm yarn bun deno make gmake just task cargo go dotnet mvn mvnw gradle gradlew mix rake rails"
    " composer flutter dart swift zig bazel sbt lein stack cabal nx turbo lerna mise moon poe inv invoke"
    " doit hatch pdm uv ruff biome vite next astro wrangler manage.py django-admin docker podman pre-commit"
)
_BEFORE_TASK = words_of("run run-script r exec compose clean -- workspace")
# With these, `run` is the task itself.
_RUNNING = words_of("cargo go dotnet swift flutter dart zig")
# Programs whose first word is a task.
_NAMED_TASKS = words_of("make gmake just task rake inv invoke doit poe")
# Tasks that bring something in, take something away or send something out are no routine.
_NO_ROUTINE = words_of(
    "run install setup bootstrap deps clean reset drop purge destroy deploy publish release push login upload"
    " upgrade update help list"
)
# The purpose of a task whose name tells none.
ALSO = "also"
# Tools that are known by their own name.
_TOOLS = words_of(
    "pytest py.test tox nox jest vitest mocha ava rspec ctest phpunit pest cypress karma unittest eslint"
    " oxlint flake8 pylint golangci-lint rubocop stylelint shellcheck ktlint detekt tsc mypy pyright"
    " basedpyright prettier black gofmt gofumpt rustfmt isort dprint webpack rollup esbuild tsup"
)
_SCRIPT_PATH = lazy_pattern(r"(?:\./)?(?:[\w.-]+/)*[\w-]+(?:\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|php))?$")
# Words between a program that runs others and the one that it runs.
_RUNS_OTHERS = lazy_pattern(
    r"exec|x|run|develop|shell|--|\.|-{1,2}[a-z][\w-]{0,30}(?:=\S{0,40})?|v?\d[\d.]{0,10}"
)
_MOST_PREFIX = 6
NAME_PART = lazy_pattern(r"[A-Z]?[a-z\d]+|[A-Z\d]+")
# `pnpm lint` and `pnpm run lint` are one command; `bun test` and `bun run test` are two.
_SAME_WITHOUT_RUN = words_of("pnpm yarn")
# Wrappers that change how long or where to a command runs, not what it does.
_PASSING_WRAPPERS = words_of(
    "timeout gtimeout time nice ionice stdbuf nohup setsid unbuffer command exec env"
)
_PASSING_VARIABLES = words_of(
    "CI NO_COLOR FORCE_COLOR CLICOLOR TERM COLUMNS PAGER GIT_PAGER RUST_BACKTRACE RUST_LOG DEBUG"
    " PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE npm_config_loglevel"
)
_PRIVATE_NAME = lazy_pattern(r"(?i)pass|secret|token|key|auth|cred|url|dsn")
_PLAIN_VALUE = lazy_pattern(rf"[\w.:,-]{{0,{_LONGEST_VALUE}}}$")
# Flags that change what is printed or when to stop, not what is done.
_PASSING_FLAG = lazy_pattern(
    r"-(?:q+|v+|s|x|V|sx?v?|xvs?|vx|xq|ra|rA)$|--(?:silent|quiet|verbose|debug|trace|stacktrace|info|(?:no-)?colou?rs?(?:=.*)?|tb=.*|nocapture"
    r"|no-header|no-summary|maxfail=.*|exitfirst|show-output|bail(?:=.*)?|reporters?=.*|durations=.*|nologo"
    r"|failed-first|lf|ff|no-cov|log-?level=.*|verbosity=.*|runInBand|forceExit|progress=.*|message-format=.*)$"
)
# Those of them that may decide whether a call fails.
_DECIDING_FLAGS = words_of("--no-cov --runInBand --forceExit --lf --ff --failed-first")
# Variables that only change what is printed.
_PRINTING_VARIABLE = lazy_pattern(
    r"(?:NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|PYTHONUNBUFFERED|npm_config_loglevel|DEBUG|VERBOSE|V|TRACE"
    r"|\w{1,40}_(?:BACKTRACE|DEBUG|VERBOSE|TRACE|LOG|LOG_LEVEL|LOGLEVEL))="
)
_VALUED_PASSING_FLAGS = words_of(
    "--reporter --reporters --tb --maxfail --color --message-format --loglevel --log-level --verbosity"
)
# Flags before the name of tests, of a package, of a file that is part of the project's set-up.
TEST_FLAGS = words_of("-k -t -g --grep --testNamePattern --test-name-pattern -run --run --tests --only")
_PACKAGE_FLAGS = {
    "cargo": words_of("-p --package"),
    "npm": words_of("-w --workspace"),
    **dict.fromkeys(("pnpm", "turbo", "nx"), words_of("--filter -F")),
}
_SETUP_FLAGS = words_of(
    "-c -p -f -C -d --config --project --configfile --rcfile --tsconfig --manifest-path --file --prefix"
    " --cwd --dir --env-file --bin --features --target --profile --example"
)
_FILE = lazy_pattern(r"(?:[\w.@*+\[\]()-]+/)*[\w.@*+\[\]()-]*[\w*)\]]\.[A-Za-z]\w{0,5}(?::\d+)*$")
_TEST_NAME = lazy_pattern(r"test[_-].|.*[_-](?:test|spec)$|Test[A-Z]|[\w.]+Tests?$")
_UNSTABLE = lazy_pattern(r"[$`{}\n]|<\(|\bREDACTED\b")
# Outcomes in which the program did its job.
_RAN = frozenset((K.TEST_FAILURE, K.BUILD, K.SYNTAX, K.TYPE_ERROR, K.ATTRIBUTE, K.VALUE, K.IMPORT_ERROR))
_COULD_NOT_RUN = frozenset((K.MISSING_COMMAND, K.USAGE, K.PROMPT))
_FINDING_CODES = (1, 2, 101)
# The folder is no project of the tool's, or the project has no such task.
_REFUSED = lazy_pattern(
    r"(?i)no rule to make target|does not contain recipe|task .{1,60} not found|no package\.json"
    r"|(?:cargo\.toml|go\.mod|package\.json)\b.{0,20} not found"
    r"|could not find .?(?:cargo\.toml|package\.json)"
)
# How runners sum up: `45 passing`, `Tests: 45 passed`, `ok. 45 passed`, `pass 45`, `Ran 45 tests`.
_PASSED_TESTS = lazy_pattern(
    r"(?i)\b(\d{1,6}) (?:tests? )?(?:pass(?:ing|ed)?)\b|\bpass(?:ed)?:? (\d{1,6})\b|\bran (\d{1,6}) tests?\b"
)
_SUMMARY_CHARACTERS = 4_000
_IN_BACKGROUND = lazy_pattern(
    r"(?i)running (?:in (?:the )?background|with session)|still running|^\[\d+\] \d+\s*$"
)
# Between names of which each chooses tests, and what makes a call run all others.
_ALTERNATIVES = lazy_pattern(r"\\?\||,| or ")
_LEAVES_OUT = lazy_pattern(r"(?i)\bnot |!|\*|^-+(?:invert|skip|ignore|exclude|deselect)")
FIXES = lazy_pattern(r"\bfix\b|--write\b")


def project_steps(
    calls: Sequence[ToolCall], written: Mapping[int, str], episode: Episode
) -> Iterator[tuple[ToolCall, list[ProjectStep]]]:
    """Yield each call of a run with its steps that are about the project, commits among them.

    `written` holds the command lines as the log has them, by the sequence number of their events.
    """
    began, root = run_folders(episode)
    for act in calls:
        found: list[ProjectStep] = []
        steps = () if not act.steps or act.is_look else parse(written.get(act.event.seq, act.event.text))
        folder = str(act.event.extra.get(FOLDER) or began)
        is_first = True
        for step in steps:
            if step.program in ("cd", "pushd") and step.arguments:
                folder = posixpath.normpath(posixpath.join(folder or ".", step.arguments[0]))
                continue
            if step.name == "git commit" and not act.has_failed:
                found.append(ProjectStep(*_COMMIT))
                continue
            purpose = command_purpose(step) or other_task(step) if step.operator not in ("|", "||") else ""
            outcome = _could_run(act, step, purpose, is_first=is_first) if purpose else None
            # What a line does first may be what failed in it.
            is_first = is_first and is_preparation(step)
            place, command = relative_folder(folder, root), general_form(step, root, purpose)
            is_untold = place == OUTSIDE or REDACTED in command or OTHER_SETTINGS.search(step.text)
            if not purpose or not command or is_untold:
                continue
            chosen: tuple[str, ...] = ()
            if purpose == "test" and "<" in command:
                purpose, chosen = "one test", _chosen_tests(step, root)
            elif purpose in ("lint", "format") and FIXES.search(command):
                purpose = "fix"
            found.append(ProjectStep(purpose, command, place, outcome, chosen))
        yield act, found


def count_commands(calls: Iterable[tuple[ToolCall, Sequence[ProjectStep]]]) -> list[CommandCounts]:
    """Return the commands of a run that tested, linted, built or started its project."""
    counts: dict[tuple[str, str, str], list[int]] = {}
    # What passed since the project was last changed: a commit comes after it.
    checked: set[tuple[str, str, str]] = set()
    for act, steps in calls:
        if act.changes_project:
            checked.clear()
        for step in steps:
            name = step[:3]
            if name == _COMMIT:
                counts.setdefault(_COMMIT, [0] * 5)[0] += 1
                for before in checked:
                    counts[before][4] = 1
            elif step.worked is not None:
                ran = counts.setdefault(name, [0] * 5)
                ran[not step.worked] += 1
                if step.worked and act.failure is None:
                    ran[2] += 1
                    checked.add(name)
                if "test" in step.purpose:
                    ran[3] = max(ran[3], _passed_tests(act.event.output))
    commits = counts.pop(_COMMIT, None)
    often = sorted(counts.items(), key=lambda item: -sum(item[1][:2]))[:_MOST_COMMANDS]
    return [
        [*names, *(worked[: 5 if worked[4] else 4 if worked[3] else 3])]
        for names, worked in (*often, *(((_COMMIT, commits),) if commits else ()))
        if not is_destructive(names[1])
    ]


def _passed_tests(output: str) -> int:
    """Return how many tests a call says to have passed; 0 if it does not say."""
    found = _PASSED_TESTS.finditer(output[-_SUMMARY_CHARACTERS:])
    return max((int(next(filter(None, each.groups()))) for each in found), default=0)


def command_purpose(step: Step) -> str:
    """Return what a step does for the project: test, lint, types, format, build, check, run; else nothing."""
    if purpose := _own_purpose(step):
        return purpose
    if step.wrappers and step.wrappers[-1].endswith(" run"):
        # A runner of tasks, as in `hatch run lint`.
        return _PURPOSES.get(step.program, "")
    # Behind a program that runs others, as in `corepack pnpm lint` or `mise exec -- pnpm lint`.
    words = step.values
    if step.program in programs.LOOKS | programs.PREPARATIONS or len(words) < 3:
        return ""
    for at, word in enumerate(words[1:_MOST_PREFIX], 1):
        if word.partition("@")[0] in TASK_RUNNERS | _TOOLS:
            inner = parse(" ".join([word.partition("@")[0], *words[at + 1 :]]))
            return _own_purpose(inner[0]) if len(inner) == 1 else ""
        if not _RUNS_OTHERS.fullmatch(word):
            break
    return ""


def _own_purpose(step: Step) -> str:
    program = step.program.removeprefix("python -m ")
    if program in programs.SCRIPTED | programs.SHELLS:
        path = "".join(step.arguments[:1])
        if posixpath.basename(path) == "manage.py":
            return purpose_of_name("".join(step.arguments[1:2]))
        # `bash -n` only parses a script, and a file in the root is likely one that the run wrote for itself.
        is_run = not step.subcommand and "-n" not in step.flags and _SCRIPT_PATH.match(path)
        is_own = "/" in path.removeprefix("./") and not is_scratch(path)
        return purpose_of_name(posixpath.basename(path)) if is_run and is_own else ""
    if program in TASK_RUNNERS:
        if program in _RUNNING and step.subcommand == "run":
            return "run"
        if program in ("docker", "podman") and not step.subcommand.startswith("compose"):
            return ""
        task = task_name(step)
        if program in ("make", "gmake") and not task:
            return "build"
        by_task = "" if _FILE.match(task) else purpose_of_name(task)
        return by_task if by_task not in ("", "check") else _PURPOSES.get(program, by_task)
    if program in _TOOLS:
        return purpose_of_name(program)
    call = next((value for value in step.values if value.endswith(step.program)), "")
    is_own_script = "/" in call.removeprefix("./") and not call.startswith(("/", "~"))
    return purpose_of_name(step.program) if is_own_script and _SCRIPT_PATH.match(call) else ""


def other_task(step: Step) -> str:
    """Return `also` for a step that runs another task of the project by its name, such as `make schema`."""
    is_named = step.program in _NAMED_TASKS or (
        step.program in TASK_RUNNERS - _RUNNING and "run" in (*step.subcommand.split(), *step.arguments[:1])
    )
    task = task_name(step) if is_named else ""
    parts = {part.lower() for part in NAME_PART.findall(task)}
    is_routine = parts and not _FILE.match(task) and parts.isdisjoint(_NO_ROUTINE)
    return ALSO if is_routine and not step.wrappers else ""


def task_name(step: Step) -> str:
    """Return the name of the task that a runner runs, or nothing."""
    names = [*step.subcommand.split(), *step.arguments]
    while len(names) > 1 and (names[0] in _BEFORE_TASK or "=" in names[0]):
        del names[: 2 if names[0] == "workspace" else 1]
    return names[0] if names and "=" not in names[0] else ""


def purpose_of_name(name: str) -> str:
    """Return what a task, a script or a check of this name is for."""
    parts = [part.lower() for part in NAME_PART.findall(name)]
    found = next((_PURPOSES[part] for part in parts if part in _PURPOSES), "")
    # `check` is the project's, `license-check` is somebody's.
    return found or ("check" if parts and all(part in _WEAK_PURPOSES for part in parts) else "")


def _could_run(act: ToolCall, step: Step, purpose: str, *, is_first: bool) -> bool | None:
    """Say whether a step of a call could run; None when the call does not tell."""
    event, failure = act.event, act.failure
    if not UNFINISHED.isdisjoint(event.extra):
        return None
    if failure is None:
        # An error without a failure is the user's refusal, or the answer of a filter.
        is_shown = not step.is_unsure or (is_first and _passed_tests(event.output) > 0)
        is_told = is_shown and not event.is_error
        is_running = purpose != "run" and _IN_BACKGROUND.search(event.output[:300])
        return True if is_told and not is_running else None
    if not is_first:
        return None
    is_without_itself = failure.kind is K.MISSING_MODULE and step.program == f"python -m {failure.subject}"
    if is_without_itself or failure.kind in _COULD_NOT_RUN or _REFUSED.search(failure.line):
        return False
    if failure.kind in _RAN:
        return True
    is_finding = purpose in ("test", "lint", "types", "format", "check") and event.exit_code in _FINDING_CODES
    return True if failure.kind is K.OTHER and is_finding else None


def general_form(step: Step, root: str, purpose: str) -> str:
    """Return a command as another run can use it, or nothing when it is about this run only."""
    variables: list[str] = []
    for assignment in step.assignments:
        name, _, value = assignment.partition("=")
        if name in _PASSING_VARIABLES:
            continue
        if _PRIVATE_NAME.search(name) or not _PLAIN_VALUE.match(value):
            return ""
        variables.append(assignment)
    if any("xargs" in wrapper or wrapper in ("sudo", "doas") for wrapper in step.wrappers):
        return ""
    words = drop_wrappers(step)
    parts: list[str] = []
    previous = ""
    for index, word in enumerate(words):
        part = _general_part(word, previous, step, root, is_test=purpose == "test") if index else word.value
        if part is None:
            return ""
        is_passing = previous in _VALUED_PASSING_FLAGS or part in _VALUED_PASSING_FLAGS
        previous = word.value
        if part == "--" and purpose == "run":
            break
        if not part or is_passing or (index and _PASSING_FLAG.match(part)):
            continue
        # A list of files is one thing to the reader.
        if not (parts and part == parts[-1] and part.startswith("<")):
            parts.append(part)
    if parts[:1] and parts[0] in _SAME_WITHOUT_RUN and parts[1:2] == ["run"]:
        del parts[1]
    while parts and parts[-1] == "--":
        parts.pop()
    text = " ".join((*variables, *parts))
    return text if len(text) <= _LONGEST_COMMAND else ""


def _chosen_tests(step: Step, root: str) -> tuple[str, ...]:
    """Return the names and files of tests that a call chooses; nothing where it leaves some out."""
    found: list[str] = []
    previous = ""
    for word in drop_wrappers(step)[1:]:
        part = _general_part(word, previous, step, root, is_test=True) or ""
        previous = word.value
        if part.endswith(("<test>", "<file>")):
            found.append(word.value[len(part) - len("<test>") :])
    if any(_LEAVES_OUT.search(each) for each in (*found, *step.flags)):
        return ()
    return tuple(dict.fromkeys(name for each in found for name in _ALTERNATIVES.split(each) if name))


def without_passing_flags(words: Sequence[str]) -> list[str]:
    """Return the words of a command without those that only change what is printed or when to stop."""
    pairs = zip(words, ["", *words], strict=False)
    return [
        word
        for word, before in pairs
        if not is_passing_flag(word) and not {word, before} & _VALUED_PASSING_FLAGS
    ]


def is_passing_flag(word: str) -> bool:
    """Say whether a word, be it an option or a variable, only changes what is printed or when to stop."""
    is_flag = bool(_PASSING_FLAG.match(word)) and word not in _DECIDING_FLAGS
    return is_flag or bool(_PRINTING_VARIABLE.match(word))


def drop_wrappers(step: Step) -> list[Word]:
    """Return the words of a step from its program on, with the wrappers that it needs, such as `uv run`."""
    words = list(step.words[len(step.assignments) :])
    for wrapper in step.wrappers:
        if wrapper not in _PASSING_WRAPPERS:
            break
        del words[0]
        valued = programs.WRAPPERS.get(wrapper, frozenset())
        is_value = False
        while words and (
            is_value or words[0].value.startswith("-") or re.match(r"\d|[A-Za-z_]\w*=", words[0].value)
        ):
            is_value = not is_value and words[0].value in valued
            del words[0]
    return words


def _general_part(word: Word, previous: str, step: Step, root: str, *, is_test: bool) -> str | None:
    """Return a word as other runs would write it, nothing to leave it out, or None if no other run could."""
    value = word.value
    if previous in TEST_FLAGS:
        return "<test>"
    if previous in _PACKAGE_FLAGS.get(step.program, ()):
        return "<package>"
    flag, is_set, _ = value.partition("=")
    if is_set and flag in (*TEST_FLAGS, "-Dtest", "--filter"):
        return f"{flag}=<test>"
    if _UNSTABLE.search(word.raw):
        return None
    if step.program in (value, installed_program(value)) or value.startswith("-"):
        return value
    if root and value.startswith(f"{root}/"):
        value = value[len(root) + 1 :]
    # A script, a task and a file of the project's set-up belong to the command.
    is_script = step.program in programs.SCRIPTED | programs.SHELLS and value == "".join(step.arguments[:1])
    is_task = step.program in TASK_RUNNERS and value == task_name(step)
    is_own = is_script or is_task or previous in _SETUP_FLAGS
    if not is_own and _FILE.match(value.split("::")[0]):
        return "<file>"
    if value.startswith(("/", "~")) or re.search(r"[\s'\";|&<>]", value) or len(value) > _LONGEST_COMMAND:
        return None
    if is_test and not is_own:
        is_name = step.name == "cargo test" and value in step.arguments
        if is_name or "::" in value or _TEST_NAME.match(posixpath.basename(value)):
            return "<test>"
        # A folder is part of the tests; `./...` is all of them.
        if "/" in value.removeprefix("./").removesuffix("...").rstrip("/"):
            return "<folder>"
    return value
