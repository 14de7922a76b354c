"""Tell what the words of a command name: a program, another machine, a place outside of the project."""

from __future__ import annotations

import re
from posixpath import normpath

from archivist.cold_start import lazy_pattern
from archivist.reading import risk_tables as tables
from archivist.reading.shell import Step

# A shorter beginning of an option could be that of many.
_LEAST_LETTERS = 3
# The words of a name are parted by marks or by capitals.
NAME_WORD = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def find_call(step: Step, names: frozenset[str], *, within: int = 6) -> tuple[str, tuple[str, ...]]:
    """Return which of these programs a step calls, wrapped or not, and what it is given; empty for none."""
    values = step.called_values
    for at, value in enumerate(values[:within]):
        name = program_name(value)
        if name in names:
            return name, tuple(values[at + 1 :])
    return "", ()


def program_name(program: str) -> str:
    """Return a program's name without its folder."""
    return program.rsplit("/", 1)[-1].lower().removesuffix(".exe")


def is_elsewhere(value: str) -> bool:
    """Say whether a value names a place on another machine that is no public registry's own."""
    if tables.REPOSITORY.match(value):
        return True
    for url in tables.URL.finditer(value):
        scheme, host = url["scheme"].lower(), url["host"].lower()
        if scheme == "file" or host in tables.LOOPBACK:
            continue
        if scheme != "https" or host not in tables.ENDPOINTS:
            return True
    return False


def names_url(step: Step) -> bool:
    """Say whether any word of a step names a place on another machine."""
    return any(is_elsewhere(word.value) for word in step.words)


def names_target(step: Step) -> bool:
    """Say whether a step of git goes to an address that it is given.

    In a sentence an error may follow: "git push fails: unable to access 'https://…'" names no target.
    """
    return any(map(is_elsewhere, (*step.flags, *step.arguments[:2])))


def leads_outside(path: str) -> bool:
    """Say whether a path leads out of the project, whatever its last part is called; /tmp is nobody's."""
    if not tables.OUTSIDE.match(path):
        return ".." in path and (normpath(path).startswith("..") or "$" in path)
    return ".." in path or not tables.TEMPORARY.match(path)


def last_part(path: str) -> str:
    """Return the name of the file or repository that a path or an address ends with."""
    return re.split(r"[?#]", path)[0].rstrip("/").rsplit("/", 1)[-1].removesuffix(".git")


def whole_options(text: str) -> str:
    """Return a text with the risky options whole of which a program takes a beginning of three letters."""
    if "--" not in text:
        return text

    def complete(call: re.Match[str]) -> str:
        options = tables.ABBREVIATED[call[1]]
        # Two letters are enough for make.
        least = _LEAST_LETTERS - (call[1] in ("make", "gmake"))

        def whole(word: re.Match[str]) -> str:
            meant = [option for option in options if option.startswith(word[0])]
            return meant[0] if meant and len(word[0]) >= len("--") + least else word[0]

        return tables.LONG_OPTION.sub(whole, call[0])

    return tables.ABBREVIATING_CALL.sub(complete, text)
