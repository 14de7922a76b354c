"""Understand a shell command line: its steps, what it is for, and what of it another run could use."""

from __future__ import annotations

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.shell import Redirect, Word
from archivist.reading.steps import Step, parse

__all__ = [
    "Step",
    "generalise",
    "is_display_step",
    "is_help",
    "is_preparation",
    "is_query_step",
    "is_read_only",
    "is_read_only_step",
    "main_step",
    "own_scripts",
    "parse",
    "purpose",
    "run_scripts",
    "step_purpose",
]

_SCRIPT = lazy_pattern(r"[\w./~-]+\.(?:py|js|mjs|cjs|ts|tsx|sh|rb|pl|php)$")
_TEST_ID = lazy_pattern(
    r"[\w./\[\]-]+::[\w:.\[\]-]+$|[\w./-]*\btests?[\w/-]*/[\w./-]*\.\w+$|(?:[\w-]+/)*(?:test_[\w-]+|[\w-]+_test)\.py$"
)
_DOTTED_TEST = lazy_pattern(r"(?:\w+\.)*(?:test\w*|Test\w*)(?:\.\w+)*$")
_URL = lazy_pattern(r"(?:https?|ftp|ssh|git)(?:\+\w+)?://\S+")
_SED_RANGE = lazy_pattern(r"\d+(?:,[+]?\d+|,\$)?[pd]$")
_HASH = lazy_pattern(r"\b(?:[0-9a-f]{12,64}|[0-9a-f]{8}-[0-9a-f-]{27})\b")
_HOST_PATHS = ("/dev/", "/etc/", "/usr/", "/bin/", "/opt/homebrew/", "/proc/", "/sys/")
_LONGEST_QUOTED = 60
_LONGEST_COMMAND = 200


def is_preparation(step: Step) -> bool:
    """Say whether a step only makes ready or tidies up."""
    return step.program in programs.PREPARATIONS or not step.program or _is_written_text(step)


def _is_written_text(step: Step) -> bool:
    return step.is_writing and step.program in ("cat", "echo", "printf", "tee")


def is_help(command: str) -> bool:
    """Say whether a command only asks how something is used, or where and which it is."""
    steps = [step for step in parse(command) if not step.is_filter and not is_preparation(step)]
    return bool(steps) and all(_is_help_step(step) for step in steps)


def _is_help_step(step: Step) -> bool:
    if step.program in ("man", "which", "type", "whereis", "info", "apropos", "help", "hash"):
        return True
    if "command" in step.wrappers and "-v" in [word.value for word in step.words]:
        return True
    if "--help" in step.flags or "--version" in step.flags or "-V" in step.flags:
        return True
    if "-h" in step.flags and step.program not in programs.H_IS_NO_HELP:
        return True
    return step.subcommand in ("help", "version") or step.subcommand.endswith(" help")


def is_read_only(command: str) -> bool:
    """Say whether a command only looks at things: lists, prints, searches, compares."""
    steps = [step for step in parse(command) if not is_preparation(step)]
    return bool(steps) and all(is_read_only_step(step) for step in steps)


def is_read_only_step(step: Step) -> bool:
    """Say whether a step only looks at things."""
    return not step.is_writing and (is_display_step(step) or _is_help_step(step))


def is_display_step(step: Step) -> bool:
    """Say whether a step prints what is there already, so that its output is not its own words."""
    if step.is_writing:
        return False
    if step.program == "sed":
        return step.subcommand != "-i" and not any(flag.startswith("-i") for flag in step.flags)
    if step.program == "find":
        return not any(flag in ("-delete", "-exec", "-execdir") for flag in step.flags) or "grep" in step.text
    if step.program in programs.LOOKS:
        return True
    # A second word says whether `git stash list` looks; `git stash` alone does not.
    first = step.subcommand.split(" ")[0]
    looking = programs.LOOKING_SUBCOMMANDS.get(step.program, frozenset())
    return step.subcommand in looking or first in looking or step.subcommand == "stash list"


def main_step(steps: tuple[Step, ...]) -> Step | None:
    """Return the step a command line is for: the last that works, else that looks, else any."""
    own = [step for step in steps if not step.is_filter]
    working = [step for step in own if not is_preparation(step) and not is_read_only_step(step)]
    looking = [step for step in own if not is_preparation(step)]
    written = [step for step in own if _is_written_text(step)]
    for group in (working, looking, written, own):
        if group:
            return group[-1]
    return None


def purpose(command: str) -> str:
    """Return a stable key for what a command line is for, whatever its arguments."""
    step = main_step(parse(command))
    return step_purpose(step) if step else ""


def step_purpose(step: Step) -> str:
    """Return a stable key for what one step is for."""
    if _is_written_text(step):
        return "write file"
    if step.program in ("uv", "python -m uv") and step.subcommand.startswith("pip "):
        return step.subcommand
    if step.program.startswith("python -m ") and step.program in ("python -m pytest", "python -m unittest"):
        return step.program.removeprefix("python -m ")
    if step.program.startswith("python -m "):
        return f"{step.program} {step.subcommand}".rstrip()
    if step.program == "sed" and any(flag.startswith("-i") for flag in step.flags):
        return "sed -i"
    if not step.subcommand and step.program in programs.SCRIPTED and _script(step):
        return f"{step.program} <script>"
    if (
        step.program == "python"
        and not step.subcommand
        and "<<" in [item.operator for item in step.redirects]
    ):
        return "python -"
    if _SCRIPT.match(step.program):
        return "<script>"
    return step.name


def _script(step: Step) -> str:
    return next((argument for argument in step.arguments[:1] if _SCRIPT.match(argument)), "")


def own_scripts(steps: tuple[Step, ...]) -> frozenset[str]:
    """Return the base names of files that the command line itself writes from a here-document."""
    return frozenset(
        redirect.target.rsplit("/", 1)[-1]
        for step in steps
        if step.bodies or step.program in ("echo", "printf")
        for redirect in step.redirects
        if redirect.is_to_file
    ) | frozenset(
        argument.rsplit("/", 1)[-1]
        for step in steps
        if step.program == "tee" and step.bodies
        for argument in step.arguments
    )


def run_scripts(steps: tuple[Step, ...]) -> frozenset[str]:
    """Return the base names of the script files that the command line runs."""
    return frozenset(
        _script(step).rsplit("/", 1)[-1] for step in steps if step.program in programs.SCRIPTED
    ) - {""}


def is_query_step(step: Step) -> bool:
    """Say whether exit code 1 of a step is an answer and not a failure."""
    if step.program in programs.ASKING or ("xargs" in step.wrappers and step.program in programs.LOOKS):
        return True
    if "command" in step.wrappers:
        return True
    return step.program == "git" and step.subcommand in programs.ASKING_GIT


def generalise(command: str) -> str:
    """Return the command without what belongs to the instance, fit to be shown to another run."""
    steps = parse(command)
    root = next((step.arguments[0] for step in steps if step.program == "cd" and step.arguments), "")
    root = root.rstrip("/") if root.startswith("/") else ""
    parts: list[str] = []
    for index, step in enumerate(steps):
        is_last = index == len(steps) - 1
        if _is_dropped(step, steps, index) and not (is_last and not parts):
            continue
        if parts:
            parts.append(";" if step.operator in ("", ";", "&") else step.operator)
        parts.append(_general_step(step, root))
    text = " ".join(parts).replace(" ;", ";")
    if len(text) <= _LONGEST_COMMAND:
        return text
    return f"{text[: _LONGEST_COMMAND - 1].rsplit(' ', 1)[0]} …"


def _is_dropped(step: Step, steps: tuple[Step, ...], index: int) -> bool:
    """Say whether a step tells another run nothing: moving there, saying so, cutting the output."""
    if step.program in ("cd", "pushd") and step.arguments:
        return step.arguments[0].startswith(("/", "~", "$"))
    if step.program in ("echo", "printf", "true", ":", "set", "pwd") and not step.is_writing:
        return not (index + 1 < len(steps) and steps[index + 1].operator == "|")
    return step.is_filter and all(later.is_filter or later.operator != "|" for later in steps[index:])


def _general_step(step: Step, root: str) -> str:
    words: list[str] = []
    previous = ""
    for word in step.words:
        general = _general_word(word, previous, step, root)
        # A list of paths or tests is one thing to the reader.
        if not (words and general == words[-1] and general.startswith("<")):
            words.append(general)
        previous = word.value
    for redirect in step.redirects:
        words += _general_redirect(redirect, root)
    return " ".join(words)


def _general_redirect(redirect: Redirect, root: str) -> list[str]:
    if redirect.operator == "<<":
        return ["<<'EOF' …"]
    if not redirect.target or redirect.target.startswith("/dev/"):
        return []
    return [f"{redirect.operator} {_general_path(redirect.target, root)}"]


def _general_word(word: Word, previous: str, step: Step, root: str) -> str:
    value, raw = word.value, word.raw
    if value == step.program or raw.startswith("$("):
        return value if value == step.program else "…"
    if (
        previous in ("-m", "--message", "--body", "--title", "-k")
        and step.program != "python"
        and "python -m" not in step.program
    ):
        return '"…"'
    if previous == "-k":
        return "<expr>"
    if previous in ("-c", "-e") and step.program in programs.SCRIPTED:
        return '"…"' if "\n" in value or len(value) > _LONGEST_QUOTED else raw
    if "\n" in value or (len(value) > _LONGEST_QUOTED and raw[:1] in "'\""):
        return '"…"'
    if _SED_RANGE.match(value) and step.program == "sed":
        return "<range>"
    if step.program in programs.SCRIPTED and _SCRIPT.match(value) and value == (step.arguments or ("",))[0]:
        return "<script>"
    return _general_value(value, raw, step, root)


def _general_value(value: str, raw: str, step: Step, root: str) -> str:
    flag, equals, rest = value.partition("=")
    if equals and flag.startswith("-") and rest.startswith(("/", "~")):
        return f"{flag}={_general_path(rest, root)}"
    if _URL.match(value):
        return "<url>"
    is_test_run = step.program in programs.TEST_RUNNERS or step.subcommand == "test"
    if ("::" in value and _TEST_ID.match(value)) or (is_test_run and _is_test_name(value, step)):
        return "<test>"
    if value.startswith(("/", "~/")) and raw[:1] not in "'\"":
        return _general_path(value, root)
    return _HASH.sub("<id>", raw)


def _is_test_name(value: str, step: Step) -> bool:
    if value.startswith("-"):
        return False
    return bool(_TEST_ID.match(value)) or ("unittest" in step.program and bool(_DOTTED_TEST.match(value)))


def _general_path(path: str, root: str) -> str:
    if root and path.startswith(root + "/"):
        return path[len(root) + 1 :]
    if path.startswith(_HOST_PATHS) or not path.startswith(("/", "~")):
        return path
    return "<path>"
