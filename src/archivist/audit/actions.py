"""A command as one action, so that what a lesson asks for and what a run did can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from archivist.reading import programs
from archivist.reading.commands import step_purpose
from archivist.reading.packages import installs, is_install, package_name
from archivist.reading.shell import Step, parse

_PLACEHOLDER = re.compile(r"<\w+>")
# Flags that change what is printed and not what is done. Leaving them out is following all the same.
_OUTPUT_FLAGS = frozenset([
    "-q", "-qq", "-v", "-vv", "-vvv", "-s", "-x", "-y", "--quiet", "--verbose", "--silent", "--no-header",
    "--yes",
])  # fmt: skip
_INSTALL_FLAGS = frozenset([
    "-U", "--pre", "--force-reinstall", "--no-deps", "--legacy-peer-deps", "--no-build-isolation",
    "--break-system-packages",
])  # fmt: skip
_SOURCE = "source"
# Steps that leave everything as it was.
_IDLE = frozenset([
    "echo", "printf", "true", ":", "sleep", "wait", "clear", "pwd", "exit", "return", "local", "set", "shopt",
])  # fmt: skip
_SETTING = re.compile(r"[A-Z_][A-Z0-9_]*=")
_VERSIONED = re.compile(r"[a-z]+\d+(?:\.\d+)+$")


@dataclass(frozen=True, slots=True)
class CommandAction:
    """One step of a command line: its purpose whatever its arguments, its name as written, its words.

    `packages` are what an installing step installs. `size` counts the words before placeholders were removed.
    """

    purpose: str
    program: str = ""
    name: str = ""
    words: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    size: int = 0

    @property
    def needle(self) -> str:
        """Return a text that every command line which does this contains."""
        if self.packages:
            return self.purpose.rsplit(" ", 1)[-1]
        # `source` may be written as a dot.
        purpose = "" if self.purpose == _SOURCE else self.purpose
        parts = (part for word in (*self.words, purpose) for part in word.split())
        return max(parts, key=len, default="")

    @property
    def is_preparing(self) -> bool:
        """Say whether it only prepares for what follows: changes the folder, sets or removes something."""
        return self.program in programs.PREPARATIONS or not self.purpose

    @property
    def is_setting(self) -> bool:
        """Say whether it only sets variables, for whatever command."""
        return bool(self.words) and all(_SETTING.match(word) for word in self.words)

    def includes(self, wanted: CommandAction) -> bool:
        """Say whether doing this is doing what is wanted, apart from packages."""
        is_bare = bool(wanted.program) and wanted.purpose == wanted.program and not wanted.words
        # A wrapper such as `uv run` is a word of the command that it runs.
        if is_bare and (
            self.program == wanted.program
            or any(word == wanted.program or word.startswith(f"{wanted.program} ") for word in self.words)
        ):
            return True
        return wanted.purpose in (self.purpose, "") and all(
            word in self.words or any(own.endswith(f"/{word}") for own in self.words) for word in wanted.words
        )


def command_actions(command: str) -> tuple[CommandAction, ...]:
    """Return what a command line does, without printing, waiting and filtering of output."""
    return tuple(
        _step_action(step)
        for step in parse(command)
        if not step.is_filter and (step.is_writing or step.program not in _IDLE)
    )


def advised_actions(command: str) -> tuple[CommandAction, ...]:
    """Return what a lesson's command asks for, without its placeholders."""
    found = []
    # A shell would read `<file>` as redirections, so placeholders are replaced by a mark first.
    for action in command_actions(_PLACEHOLDER.sub("…", command)):
        words = frozenset(word for word in action.words if "…" not in word)
        packages = frozenset(package for package in action.packages if "…" not in package)
        action = replace(action, words=words, packages=packages, size=len(words))  # noqa: PLW2901
        is_vague = "<script>" in action.purpose or action.purpose == "write file"
        if (action.purpose or action.is_setting) and not is_vague:
            found.append(action)
    return tuple(found)


def distinguish_action(wanted: CommandAction, unwanted: Iterable[CommandAction]) -> CommandAction:
    """Return a wanted action by the words that the one it replaces lacks, else by its important words."""
    replaced = [action for action in unwanted if action.purpose == wanted.purpose]
    gained = wanted.words.difference(*(action.words for action in replaced)) if replaced else frozenset()
    found = replace(wanted, words=gained or wanted.words - _OUTPUT_FLAGS - _versions(wanted.words))
    if gained and found.is_setting:
        # A variable may be set in one call and used in another.
        return CommandAction("", name=found.name, words=found.words, size=found.size)
    return found


def _versions(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if _VERSIONED.match(word))


def _step_action(step: Step) -> CommandAction:
    purpose = _SOURCE if step.program == "." else step_purpose(step)
    packages: frozenset[str] = frozenset()
    if is_install(step):
        (install,) = installs((step,))
        packages = frozenset(map(_advised_package, install.packages))
        words = frozenset(install.flags) & _INSTALL_FLAGS
    else:
        written = (*step.flags, *step.arguments, *step.assignments)
        words = frozenset(part for word in written for part in split_word(word)) | frozenset(step.wrappers)
        # Another version of an interpreter is another program.
        words |= _versions(frozenset(word.value.rsplit("/", 1)[-1] for word in step.words[:1]))
    if step.program == "export" or not step.program:
        return CommandAction("", words=words, size=len(words))
    program = purpose.split(" ")[0] if purpose in programs.TEST_RUNNERS else step.program
    return CommandAction(purpose, program, step.name, words, packages, len(words))


def split_word(word: str) -> tuple[str, ...]:
    """Return a word of a command in one spelling: a flag apart from its value, a path without its dot."""
    flag, equals, value = word.partition("=")
    if equals and flag.startswith("--"):
        return (flag, value.strip("'\"")) if value else (flag,)
    return (word.strip("'\"").removeprefix("./").rstrip("/") or ".",)


def _advised_package(package: str) -> str:
    # A requested version is part of the advice; an extra of the project itself is not.
    if package.startswith("."):
        return "."
    bare = package.replace(" ", "").lower().replace("_", "-")
    return bare if re.search(r"[<>=!~]", bare) else package_name(package)
