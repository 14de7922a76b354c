"""Recognise a call of our own program in a client's settings, in whichever form a person left it there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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


class Call(NamedTuple):
    """What of ours a command asks for, as words behind the program's own options."""

    words: tuple[str, ...]
    is_alone: bool
    """Whether the command does nothing else; else it is a line that somebody wrote around ours."""


def calls_in(handler: object) -> Iterator[Call]:
    """Yield the calls of ours in a handler or a server's entry."""
    if not isinstance(handler, Mapping):
        return
    command, args = handler.get("command"), handler.get("args")
    if isinstance(command, list):
        commands, is_alone = [[str(word) for word in command]], True
    elif not isinstance(command, str):
        return
    elif isinstance(args, list):
        commands, is_alone = [[command, *(str(word) for word in args)]], True
    else:
        commands, is_alone = _shell_commands(command)
    for words in commands:
        call = _call(words)
        if call is not None:
            yield call._replace(is_alone=call.is_alone and is_alone)


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


def _call(words: Sequence[str]) -> Call | None:
    at = next((place for place, word in enumerate(words) if _is_program(word)), None)
    if at is None:
        return None
    before = [word for word in words[:at] if not _ASSIGNMENT.match(word)]
    return Call(_behind_options(words[at + 1 :]), not before or before[-1] == "-m")


def _behind_options(words: Sequence[str]) -> tuple[str, ...]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_VALUE else 1
    return tuple(words[at:])


def _is_program(word: str) -> bool:
    return PurePosixPath(word.replace("\\", "/")).name.removesuffix(".exe") == PROGRAM
