"""Tell what a command line is for, what it only looks at, and how to show it to another run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import takewhile

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.shell import TASK_WORD, Step, Word, parse

_LONGEST_TEST_ID = 300
_SCRIPT = lazy_pattern(r"[\w./~-]+\.(?:py|js|mjs|cjs|ts|tsx|sh|rb|pl|php)$")
_TEST_ID = lazy_pattern(
    r"[\w./\[\]-]+::[\w:.\[\]-]+$|[\w./-]*\btests?[\w/-]*/[\w./-]*\.\w+$|(?:[\w-]+/)*(?:test_[\w-]+|[\w-]+_test)\.py$",
    longest=_LONGEST_TEST_ID,
)
_DOTTED_TEST = lazy_pattern(r"(?:\w+\.)*(?:test\w*|Test\w*)(?:\.\w+)*$", longest=_LONGEST_TEST_ID)
_URL = lazy_pattern(r"(?:https?|ftp|ssh|git)(?:\+\w+)?://\S+")
_SED_RANGE = lazy_pattern(r"\d+(?:,[+]?\d+|,\$)?[pd]$")
_HASH = lazy_pattern(r"\b(?:[0-9a-f]{12,64}|[0-9a-f]{8}-[0-9a-f-]{27})\b")
# Paths below these mean the same on every machine.
_HOST_PATHS = ("/dev/", "/etc/", "/usr/", "/bin/", "/opt/homebrew/", "/proc/", "/sys/")
_WRITERS = ("cat", "echo", "printf", "tee")
# What prints a log, and how a log is asked for from a server; with the other flags something is sent to it.
_RAW_CALLS = frozenset(("api", "graphql", "request", "rest", "rpc", "raw"))
_LOG_PROGRAMS = frozenset(("journalctl", "dmesg", "logread", "lnav"))
_FETCHERS = frozenset(("curl", "wget", "http", "https", "xh"))
_LOG_ENDPOINT = lazy_pattern(
    r"(?:^|[/.])(?:logs?|trace|stdout|stderr|console(?:Text)?)(?:[?/#]|$)", longest=500
)
_SENDING = lazy_pattern(r"-(?:X|d|F|f|T)|--(?:method|request|data|form|field|raw-field|input|upload|post)")
# Options of sed and perl that take no value may stand before `i` in one word.
_IN_PLACE = lazy_pattern(r"-[nrEsuzpla0]*i|--i")
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FINDS_TO_CHANGE = frozenset(("-delete", "-fprint", "-fprint0", "-fprintf", "-fls"))
_HELP_PROGRAMS = ("man", "which", "type", "whereis", "info", "apropos", "help", "hash")
# Flags before a text in somebody's own words.
TEXT_FLAGS = ("-m", "--message", "--body", "--title", "-k")
_LONGEST_QUOTED = 60
_LONGEST_COMMAND = 200


def is_preparation(step: Step) -> bool:
    """Say whether a step only prepares or cleans up."""
    return step.program in programs.PREPARATIONS or not step.program or _is_text_write(step)


def working_steps(steps: Iterable[Step]) -> list[Step]:
    """Return the steps that are more than a filter, a preparation or a clean-up."""
    return [step for step in steps if not step.is_filter and not is_preparation(step)]


def _is_text_write(step: Step) -> bool:
    return step.is_writing and step.program in _WRITERS


def is_help(command: str) -> bool:
    """Say whether a command only asks how a program is used, or where and which it is."""
    steps = working_steps(parse(command))
    return bool(steps) and all(map(_is_help_step, steps))


def is_probe(command: str) -> bool:
    """Say whether a command only asks which of several programs there are, and of which version."""
    steps = working_steps(parse(command))
    return len({step.program for step in steps}) > 1 and all(map(_is_help_step, steps))


def _is_help_step(step: Step) -> bool:
    return (
        step.program in _HELP_PROGRAMS
        or ("command" in step.wrappers and "-v" in step.values)
        or not {"--help", "--version", "-V", "-version"}.isdisjoint(step.flags)
        or ("-h" in step.flags and step.program not in programs.H_IS_NO_HELP)
        or step.subcommand in ("help", "version")
        or step.subcommand.endswith(" help")
    )


def is_read_only_step(step: Step) -> bool:
    """Say whether a step changes nothing."""
    return not step.is_writing and (is_display_step(step) or _is_help_step(step))


def is_display_step(step: Step) -> bool:
    """Say whether a step prints what existed before, so that an error in its output is not its own."""
    if step.is_writing:
        return False
    if step.program == "sed":
        return not edits_in_place(step)
    if step.program == "find":
        is_looking = _FINDS_TO_CHANGE.isdisjoint(step.flags)
        return is_looking and all(
            each.program != "find" and is_display_step(each) for each in _steps_of_find(step)
        )
    if step.program in programs.LOOKS or _prints_log(step):
        return True
    # `git stash list` only looks; `git stash` alone does not.
    first = step.subcommand.split(" ")[0]
    looking = programs.LOOKING_SUBCOMMANDS.get(step.program, frozenset())
    return step.subcommand in looking or first in looking or step.subcommand == "stash list"


def edits_in_place(step: Step) -> bool:
    """Say whether sed or perl writes its result back into the files."""
    return any(map(_IN_PLACE.match, (step.subcommand, *step.flags)))


def _steps_of_find(step: Step) -> Iterator[Step]:
    """Yield what `find` runs for the files that it finds."""
    words = iter(step.values)
    for word in words:
        if word in _FIND_RUNS:
            yield from parse(shlex.join(takewhile(lambda each: each not in (";", "+"), words)))


def _prints_log(step: Step) -> bool:
    """Say whether a step prints what another program has said before."""
    if step.program in _LOG_PROGRAMS or "logs" in (*step.subcommand.split(), *step.arguments[:1]):
        return True
    is_fetch = (step.program in _FETCHERS or is_raw_call(step)) and not is_sending(step)
    return is_fetch and any(map(_LOG_ENDPOINT.search, (step.subcommand, *step.arguments)))


def is_raw_call(step: Step) -> bool:
    """Say whether a step asks a tool's server without one of the tool's own commands, as `gh api` does."""
    called = step.subcommand.split(" ")[0] or "".join(step.arguments[:1])
    return called in _RAW_CALLS and step.program not in programs.LOOKS


def is_sending(step: Step) -> bool:
    """Say whether a step that asks a server sends something to it."""
    return any(map(_SENDING.match, step.flags))


def main_step(steps: tuple[Step, ...]) -> Step | None:
    """Return the step a command line is for: the last that works, else the last that looks, else any."""
    own = [step for step in steps if not step.is_filter]
    looking = [step for step in own if not is_preparation(step)]
    working = [step for step in looking if not is_read_only_step(step)]
    written = [step for step in own if _is_text_write(step)]
    return next((group[-1] for group in (working, looking, written, own) if group), None)


# What a program is asked to tell, whatever the program.
_LOOKS = frozenset((
    "list", "ls", "status", "show", "view", "describe", "get", "ps", "inspect", "logs", "info", "version",
    "versions", "whoami", "diff", "log", "history", "search", "outdated", "why", "tree", "config", "uptime",
    "df", "du", "tasks", "targets", "routes", "presets",
))  # fmt: skip


def is_look(step: Step) -> bool:
    """Say whether a step only tells something, by what is known of it or by the verb it is called with."""
    verb = "".join((step.subcommand.split() or list(step.arguments[:1]))[-1:])
    # `docker context ls`: of a group of commands the verb comes after its name.
    is_listing = bool(step.subcommand) and step.arguments[:1] in (("ls",), ("list",), ("show",), ("inspect",))
    # `gradle :app:tasks`: a part of the project stands before the verb.
    named = (step.program, verb, verb.partition("-")[0], verb.rpartition(":")[2], _verb(step))
    return is_listing or is_read_only_step(step) or not _LOOKS.isdisjoint(named)


# Verbs that ask for the same.
_LIKE_VERBS = (
    _LOOKS | frozenset(("export", "dump", "print", "cat", "read", "fetch", "find", "query", "summary")),
    frozenset(("create", "new", "add", "make", "open", "init")),
    frozenset(("edit", "update", "set", "patch", "modify", "change", "amend")),
    frozenset(("delete", "remove", "rm", "drop", "destroy", "uninstall")),
    frozenset(("run", "start", "exec", "launch", "serve", "up")),
)


def have_like_verbs(step: Step, other: Step) -> bool:
    """Say whether two calls of one program ask for the same: by one verb, or by two that mean the same."""
    first, second = (_verb(each) for each in (step, other))
    return first == second or any(first in verbs and second in verbs for verbs in _LIKE_VERBS)


def _verb(step: Step) -> str:
    """Return the verb that a program is called with; a program without subcommands has none."""
    if step.subcommand or step.program in programs.SUBCOMMANDED:
        return step.subcommand.rpartition(" ")[2]
    first, second = (*step.values[1:3], "", "")[:2]
    # `hostcli item edit`: what it is about stands before the verb.
    is_behind = TASK_WORD.fullmatch(first) and not any(first in verbs for verbs in _LIKE_VERBS)
    value = second if is_behind and any(second in verbs for verbs in _LIKE_VERBS) else first
    return value if TASK_WORD.fullmatch(value) else ""


def ends_with_own_status(steps: tuple[Step, ...]) -> bool:
    """Say whether the status of a command line is that of the step it is for."""
    main = main_step(steps)
    after = steps[steps.index(main) + 1 :] if main else ()
    return not any(step.operator in ("|", "||", ";") for step in after)


def step_purpose(step: Step) -> str:
    """Return a stable key for what one step is for."""
    if _is_text_write(step):
        return "write file"
    if step.program in ("uv", "python -m uv") and step.subcommand.startswith("pip "):
        return step.subcommand
    if step.program in ("python -m pytest", "python -m unittest"):
        return step.program.removeprefix("python -m ")
    if step.program.startswith("python -m "):
        return step.name
    if not step.subcommand and step.program in programs.SCRIPTED and _script(step):
        return f"{step.program} <script>"
    if step.name == "python" and any(redirect.operator == "<<" for redirect in step.redirects):
        return "python -"
    return "<script>" if _SCRIPT.match(step.program) else step.name


def called_words(step: Step, *, most: int = 2) -> str:
    """Return what a step calls with its subcommand.

    Where it is not known which words those are, so many before the first option or file count.
    """
    values = step.values
    if step.subcommand or step.program in programs.LOOKS or step.program not in values:
        return step.name
    found = [step.program]
    for value in values[values.index(step.program) + 1 :]:
        is_script = len(found) == 1 and step.program in programs.SCRIPTED and _SCRIPT.match(value)
        most += bool(is_script)
        if len(found) > most or not (is_script or TASK_WORD.fullmatch(value)):
            break
        found.append(value)
    return " ".join(found)


def _script(step: Step) -> str:
    return next((argument for argument in step.arguments[:1] if _SCRIPT.match(argument)), "")


def own_scripts(steps: tuple[Step, ...]) -> frozenset[str]:
    """Return the base names of files that the command line itself writes from a here-document."""
    redirected = (
        redirect.target
        for step in steps
        if step.bodies or step.program in ("echo", "printf")
        for redirect in step.redirects
        if redirect.is_to_file
    )
    copied = (
        argument for step in steps if step.program == "tee" and step.bodies for argument in step.arguments
    )
    return frozenset(path.rsplit("/", 1)[-1] for path in (*redirected, *copied))


def run_scripts(steps: tuple[Step, ...]) -> frozenset[str]:
    """Return the base names of the script files that the command line runs."""
    scripts = (_script(step) for step in steps if step.program in programs.SCRIPTED)
    return frozenset(path.rsplit("/", 1)[-1] for path in scripts) - {""}


def is_query_step(step: Step) -> bool:
    """Say whether exit code 1 of a step is an answer and not a failure."""
    return (
        step.program in programs.ASKING
        or ("xargs" in step.wrappers and step.program in programs.LOOKS)
        or "command" in step.wrappers
        or (step.program == "git" and step.subcommand in programs.ASKING_GIT)
    )


def generalise(command: str) -> str:
    """Return the command as another run can use it, without paths and texts of this one."""
    steps = parse(command)
    root = next((step.arguments[0] for step in steps if step.program == "cd" and step.arguments), "")
    root = root.rstrip("/") if root.startswith("/") else ""
    # Whether only filters and steps that read no pipe follow, from the end.
    are_filters = [True]
    for step in reversed(steps[1:]):
        are_filters.append(are_filters[-1] and (step.is_filter or step.operator != "|"))
    parts: list[str] = []
    for index, step in enumerate(steps):
        following = steps[index + 1] if index + 1 < len(steps) else None
        if (following or parts) and _is_dropped(step, following, ends_in_filters=are_filters[-1 - index]):
            continue
        if sum(map(len, parts)) > 2 * _LONGEST_COMMAND:
            break
        if parts:
            parts.append(";" if step.operator in ("", ";", "&") else step.operator)
        words: list[str] = []
        for previous, word in zip(("", *step.values), step.words, strict=False):
            general = _general_word(word, previous, step, root)
            # A list of paths or tests is one thing to the reader.
            if not (words and general == words[-1] and general.startswith("<")):
                words.append(general)
        for redirect in step.redirects:
            if redirect.operator == "<<":
                words.append("<<'EOF' …")
            elif redirect.target and not redirect.target.startswith("/dev/"):
                words.append(f"{redirect.operator} {_general_path(redirect.target, root)}")
        parts.append(" ".join(words))
    text = " ".join(parts).replace(" ;", ";")
    if len(text) <= _LONGEST_COMMAND:
        return text
    return f"{text[: _LONGEST_COMMAND - 1].rsplit(' ', 1)[0]} …"


def _is_dropped(step: Step, following: Step | None, *, ends_in_filters: bool) -> bool:
    """Say whether a step is useless to another run: it changes the folder, prints a note, cuts the output."""
    if step.program in ("cd", "pushd") and step.arguments:
        return step.arguments[0].startswith(("/", "~", "$"))
    if step.program in ("echo", "printf", "true", ":", "set", "pwd") and not step.is_writing:
        return following is None or following.operator != "|"
    return step.is_filter and ends_in_filters


def _general_word(word: Word, previous: str, step: Step, root: str) -> str:
    value, raw = word.value, word.raw
    if value == step.program:
        return value
    if raw.startswith("$("):
        return "…"
    if previous in TEXT_FLAGS and step.program != "python" and "python -m" not in step.program:
        return '"…"'
    if previous == "-k":
        return "<expr>"
    if previous in ("-c", "-e") and step.program in programs.SCRIPTED:
        return '"…"' if "\n" in value or len(value) > _LONGEST_QUOTED else raw
    if "\n" in value or (len(value) > _LONGEST_QUOTED and raw[:1] in "'\""):
        return '"…"'
    if step.program == "sed" and _SED_RANGE.match(value):
        return "<range>"
    if step.program in programs.SCRIPTED and step.arguments[:1] == (value,) and _SCRIPT.match(value):
        return "<script>"
    return _general_value(value, raw, step, root)


def _general_value(value: str, raw: str, step: Step, root: str) -> str:
    if _URL.match(value):
        return "<url>"
    is_test_run = step.program in programs.TEST_RUNNERS or step.subcommand == "test"
    is_test_id = ("::" in value or (is_test_run and not value.startswith("-"))) and _TEST_ID.match(value)
    is_dotted = is_test_run and "unittest" in step.program and not value.startswith("-")
    if is_test_id or (is_dotted and _DOTTED_TEST.match(value)):
        return "<test>"
    if value.startswith(("/", "~/")) and raw[:1] not in "'\"":
        return _general_path(value, root)
    return _HASH.sub("<id>", raw)


def _general_path(path: str, root: str) -> str:
    if root and path.startswith(root + "/"):
        return path[len(root) + 1 :]
    return path if path.startswith(_HOST_PATHS) or not path.startswith(("/", "~")) else "<path>"
