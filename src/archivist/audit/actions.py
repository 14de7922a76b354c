"""A command as one thing done, so that what a lesson asks for and what a run did can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from archivist.reading import programs
from archivist.reading.commands import parse, step_purpose
from archivist.reading.packages import installs, is_install, package_name
from archivist.reading.shell import Step

_OPEN = re.compile(r"<\w+>")
# Flags that change what is said and not what is done; leaving them out is following all the same.
_MANNER = frozenset([
    "-q", "-qq", "-v", "-vv", "-vvv", "-s", "-x", "-y", "--quiet", "--verbose", "--silent", "--no-header",
    "--yes",
])  # fmt: skip
_INSTALLING = frozenset([
    "-U", "--pre", "--force-reinstall", "--no-deps", "--legacy-peer-deps", "--no-build-isolation",
    "--break-system-packages",
])  # fmt: skip
_SOURCE = "source"
_UNTOLD = ("<script>", "write file")
# Steps that leave everything as it was.
_IDLE = frozenset([
    "echo", "printf", "true", ":", "sleep", "wait", "clear", "pwd", "exit", "return", "local", "set", "shopt",
])  # fmt: skip
_SETTING = re.compile(r"[A-Z_][A-Z0-9_]*=")
_VERSIONED = re.compile(r"[a-z]+\d+(?:\.\d+)+$")


@dataclass(frozen=True, slots=True)
class CommandAction:
    """One step of a command line: its purpose whatever its arguments, its name as written, its words.

    `packages` are what an installing step brings. `size` counts the words before any were left open.
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
        # A dot is the same as the word.
        purpose = "" if self.purpose == _SOURCE else self.purpose
        parts = (part for word in (*self.words, purpose) for part in word.split())
        return max(parts, key=len, default="")

    @property
    def is_preparing(self) -> bool:
        """Say whether it only makes ready for what comes after: moves there, sets or removes something."""
        return self.program in programs.PREPARATIONS or not self.purpose

    @property
    def is_setting(self) -> bool:
        """Say whether it only sets variables, for whatever command."""
        return bool(self.words) and all(_SETTING.match(word) for word in self.words)

    @property
    def is_bare(self) -> bool:
        """Say whether it names a program and nothing of what to do with it."""
        return bool(self.program) and self.purpose == self.program and not self.words

    def includes(self, wanted: CommandAction) -> bool:
        """Say whether doing this is doing what is wanted, packages aside."""
        if wanted.is_bare and (self.program == wanted.program or self._runs_through(wanted.program)):
            return True
        is_same = wanted.purpose in (self.purpose, "")
        return is_same and all(self._has(word) for word in wanted.words)

    def _runs_through(self, program: str) -> bool:
        return any(word.split(" ")[0] == program for word in self.words if " " in word or word == program)

    def _has(self, word: str) -> bool:
        return word in self.words or any(each.endswith(f"/{word}") for each in self.words)


def command_actions(command: str) -> tuple[CommandAction, ...]:
    """Return what a command line does, without saying so, waiting and cutting the output."""
    return tuple(
        _step_action(step)
        for step in parse(command)
        if not step.is_filter and (step.is_writing or step.program not in _IDLE)
    )


def advised_actions(command: str) -> tuple[CommandAction, ...]:
    """Return what a lesson's command asks for: its telling words, without those that were left open."""
    # The marks of what was left open are redirections to a shell.
    found = (_without_placeholders(deed) for deed in command_actions(_OPEN.sub("…", command)))
    return tuple(
        deed
        for deed in found
        if (deed.purpose or deed.is_setting)
        and deed.purpose not in _UNTOLD
        and "<script>" not in deed.purpose
    )


def distinguish_action(wanted: CommandAction, unwanted: Iterable[CommandAction]) -> CommandAction:
    """Return a wanted deed by the words that it has and what it replaces has not, else by those that tell."""
    replaced = [each for each in unwanted if each.purpose == wanted.purpose]
    gained = wanted.words.difference(*(each.words for each in replaced)) if replaced else frozenset()
    told = _with_words(wanted, gained or wanted.words - _MANNER - _versions(wanted.words))
    # A variable may be set in one call and used in another.
    is_open = bool(gained) and told.is_setting
    return CommandAction("", name=told.name, words=told.words, size=told.size) if is_open else told


def _versions(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if _VERSIONED.match(word))


def _with_words(deed: CommandAction, words: frozenset[str]) -> CommandAction:
    return CommandAction(deed.purpose, deed.program, deed.name, words, deed.packages, deed.size)


def _without_placeholders(deed: CommandAction) -> CommandAction:
    words = frozenset(word for word in deed.words if "…" not in word)
    packages = frozenset(each for each in deed.packages if "…" not in each)
    return CommandAction(deed.purpose, deed.program, deed.name, words, packages, len(words))


def _step_action(step: Step) -> CommandAction:
    purpose = _SOURCE if step.program == "." else step_purpose(step)
    if is_install(step):
        (install,) = installs((step,))
        packages = frozenset(_package(each) for each in install.packages)
        words = frozenset(install.flags) & _INSTALLING
    else:
        packages = frozenset()
        words = frozenset(
            part for word in (*step.flags, *step.arguments, *step.assignments) for part in split_word(word)
        ) | frozenset(step.wrappers)
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


def _package(package: str) -> str:
    # A version that is asked for is part of the advice; an extra of the project itself is not.
    if package.startswith("."):
        return "."
    bare = package.replace(" ", "").lower().replace("_", "-")
    return bare if re.search(r"[<>=!~]", bare) else package_name(package)
