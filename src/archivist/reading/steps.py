"""Read a command line as steps: one program call each, with its wrappers looked through."""

import re
from functools import lru_cache
from typing import NamedTuple

from archivist.cold_start import lazy_pattern
from archivist.reading import programs
from archivist.reading.shell import Redirect, SimpleCommand, Word, split_command

_ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*\+?=")
_VERSIONED = lazy_pattern(r"(python|pip|node|ruby|perl|php|gcc|clang|lua)(?:w?[\d.]+)(?:\.exe)?$")
_NUMBER = lazy_pattern(r"-?\d+(?:\.\d+)?[smhd]?$")
_DEEPEST_SHELL = 3


class Step(NamedTuple):
    """One program call of a command line.

    `operator` is what stands before it. `is_filtered` says that its output runs into a filter, so that the
    exit code seen is not its own; `is_filter` that it is such a filter.
    """

    text: str
    operator: str = ""
    assignments: tuple[str, ...] = ()
    wrappers: tuple[str, ...] = ()
    program: str = ""
    subcommand: str = ""
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    bodies: tuple[str, ...] = ()
    is_filter: bool = False
    is_filtered: bool = False

    @property
    def name(self) -> str:
        """Return the program with its subcommand."""
        return f"{self.program} {self.subcommand}".rstrip()

    @property
    def is_writing(self) -> bool:
        """Say whether its output goes to a file that is kept."""
        return any(redirect.is_to_file for redirect in self.redirects)


@lru_cache(maxsize=64)
def parse(command: str) -> tuple[Step, ...]:
    """Return the steps of a command line in order. Never raises."""
    steps = _parse(command, 0)
    return tuple(
        step._replace(is_filtered=not step.is_filter and _runs_into_filter(steps, index))
        for index, step in enumerate(steps)
    )


def _parse(command: str, depth: int) -> list[Step]:
    steps: list[Step] = []
    for simple in split_command(command):
        step = _step(simple, command)
        inner = _inner_script(step) if depth < _DEEPEST_SHELL else ""
        if inner:
            nested = _parse(inner, depth + 1)
            steps += [nested[0]._replace(operator=step.operator), *nested[1:]] if nested else []
        elif step.program or step.assignments or step.redirects:
            steps.append(step)
    return steps


def _runs_into_filter(steps: list[Step], index: int) -> bool:
    following = steps[index + 1 : index + 2]
    return bool(following) and following[0].operator == "|"


def _inner_script(step: Step) -> str:
    """Return the script of `bash -c '...'`, which is looked through."""
    if step.program not in programs.SHELLS or not step.arguments:
        return ""
    return step.arguments[0] if any(re.fullmatch(r"-[a-z]*c", flag) for flag in step.flags) else ""


def _step(simple: SimpleCommand, command: str) -> Step:
    words = simple.words
    start = 0
    while start < len(words) and words[start].raw in programs.KEYWORDS:
        start += 1
    assigned = start
    while assigned < len(words) and _ASSIGNMENT.match(words[assigned].raw):
        assigned += 1
    assignments = tuple(word.raw for word in words[start:assigned])
    wrappers, at = _unwrap(words, assigned)
    program, used = _program(words, at)
    rest = words[at + used :]
    subcommand, taken = _subcommand(program, rest)
    rest = [word for index, word in enumerate(rest) if index not in taken]
    return Step(
        text=command[simple.start : simple.end].strip(),
        operator=simple.operator,
        assignments=assignments,
        wrappers=tuple(wrappers),
        program=program,
        subcommand=subcommand,
        flags=tuple(word.value for word in rest if word.value.startswith("-") and len(word.value) > 1),
        arguments=tuple(word.value for word in rest if not word.value.startswith("-") or word.value == "-"),
        words=tuple(words[start:]),
        redirects=tuple(simple.redirects),
        bodies=tuple(simple.bodies),
        is_filter=simple.operator == "|" and program in programs.FILTERS,
    )


def _unwrap(words: list[Word], at: int) -> tuple[list[str], int]:
    """Return the wrappers before the program, and where the program stands."""
    wrappers: list[str] = []
    while at < len(words):
        name = _program_base(words[at].value)
        runner = programs.RUNNERS.get(name, {})
        second = words[at + 1].value if at + 1 < len(words) else ""
        if second in runner:
            label, valued, after = f"{name} {second}", runner[second], at + 2
        elif name in programs.WRAPPERS:
            label, valued, after = name, programs.WRAPPERS[name], at + 1
        else:
            break
        after = _skip_options(words, after, valued)
        if after >= len(words):
            break
        wrappers.append(label)
        at = after
    return wrappers, at


def _skip_options(words: list[Word], at: int, valued: frozenset[str]) -> int:
    while at < len(words):
        value = words[at].value
        if value in valued:
            at += 2
        elif value.startswith("-") or _NUMBER.match(value) or _ASSIGNMENT.match(words[at].raw):
            at += 1
        else:
            break
    return at


def _program_base(name: str) -> str:
    base = name.rstrip("/").rsplit("/", 1)[-1] if "/" in name else name
    versioned = _VERSIONED.match(base)
    return versioned.group(1) if versioned else base


def _program(words: list[Word], at: int) -> tuple[str, int]:
    """Return the program's name and how many words name it."""
    if at >= len(words):
        return "", 0
    name = _program_base(words[at].value)
    if name == "python":
        for index in range(at + 1, min(at + 6, len(words) - 1)):
            if words[index].value == "-m":
                module = words[index + 1].value
                # pip is the same program by either name.
                return ("pip" if module == "pip" else f"python -m {module}"), index + 2 - at
            if not words[index].value.startswith("-"):
                break
    return name, 1


def _subcommand(program: str, rest: list[Word]) -> tuple[str, frozenset[int]]:
    """Return the subcommand and which of the words it takes."""
    if program in ("python", "node", "ruby", "perl", "sed"):
        for index, word in enumerate(rest[:4]):
            if word.value in ("-c", "-e", "-i", "-n", "-") or word.value.startswith("-i."):
                value = "-i" if word.value.startswith("-i") else word.value
                return value, frozenset((index,))
            if not word.value.startswith("-"):
                break
        return "", frozenset()
    if program not in programs.SUBCOMMANDED:
        return "", frozenset()
    return _named_subcommand(program, rest)


def _named_subcommand(program: str, rest: list[Word]) -> tuple[str, frozenset[int]]:
    names: list[str] = []
    taken: set[int] = set()
    skip = False
    for index, word in enumerate(rest):
        value = word.value
        if skip or value.startswith(("-", "+")):
            # `git -C dir`, `npm --prefix dir`, `kubectl -n space`: the flag's value is no subcommand.
            skip = not skip and value in (
                "-C",
                "-c",
                "--prefix",
                "-n",
                "--namespace",
                "--manifest-path",
                "-f",
                "--cwd",
            )
            continue
        if not re.fullmatch(r"[\w:.@-]{1,40}", value):
            break
        names.append(value)
        taken.add(index)
        if len(names) == 2 or value not in programs.NESTED.get(program, frozenset()):
            break
    return " ".join(names), frozenset(taken)
