"""Recognise a call of our own program in a client's settings, in whichever form a person left it there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

PROGRAM = "archivist"
# A mark of the shell, which ends one command and makes the line more than a call; or a word, quoted or not.
_TOKEN = re.compile(
    r"""(?P<mark>[;&|<>()`\n]|\$\()|(?P<word>(?:"[^"]*"|'[^']*'|\$(?!\()|[^\s;&|<>()`"'$])+)|(?P<odd>\S)"""
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# The options that stand before a command, with a word of their own behind them.
_WITH_VALUE = ("--bank", "--actor", "--set")


class ProgramCall(NamedTuple):
    """What of ours a command asks for, as words behind the program's own options."""

    words: tuple[str, ...]
    is_alone: bool
    """Whether the command does nothing else; else it is a line that somebody wrote around ours."""


def calls_in(handler: object) -> Iterator[ProgramCall]:
    """Yield the calls of ours in a handler or a server's entry."""
    commands, is_alone = _commands(handler)
    for words in commands:
        call = _parse_call(words)
        if call is not None:
            yield call._replace(is_alone=call.is_alone and is_alone)


def programs_in(handler: object) -> Iterator[tuple[str, str]]:
    """Yield the program as each call of ours names it, and the bank that it names, if any."""
    for words in _commands(handler)[0]:
        at = next((place for place, word in enumerate(words) if _is_program(word)), None)
        if at is not None:
            bank = next((after for word, after in pairwise(words[at + 1 :]) if word == "--bank"), "")
            yield words[at], bank


def _commands(handler: object) -> tuple[list[list[str]], bool]:
    """Return the commands of a handler, and whether they are one command and nothing more."""
    if not isinstance(handler, Mapping):
        return [], True
    command, args = handler.get("command"), handler.get("args")
    if isinstance(command, list):
        return [[str(word) for word in command]], True
    if not isinstance(command, str):
        return [], True
    if isinstance(args, list):
        return [[command, *(str(word) for word in args)]], True
    return _shell_commands(command)


def _shell_commands(line: str) -> tuple[list[list[str]], bool]:
    """Return the commands of a line, and whether it is one command and nothing more."""
    commands: list[list[str]] = [[]]
    is_one = True
    for token in _TOKEN.finditer(line.strip()):
        if token["word"] is not None:
            commands[-1].append(re.sub(r"[\"']", "", token["word"]))
        else:
            commands.append([])
            is_one = False
    return commands, is_one


def _parse_call(words: Sequence[str]) -> ProgramCall | None:
    at = next((place for place, word in enumerate(words) if _is_program(word)), None)
    if at is None:
        return None
    before = [word for word in words[:at] if not _ASSIGNMENT.match(word)]
    return ProgramCall(_skip_options(words[at + 1 :]), not before or before[-1] == "-m")


def _skip_options(words: Sequence[str]) -> tuple[str, ...]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_VALUE else 1
    return tuple(words[at:])


def _is_program(word: str) -> bool:
    return PurePosixPath(word.replace("\\", "/")).name.removesuffix(".exe") == PROGRAM
