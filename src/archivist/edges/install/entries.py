"""Add our hooks and our server to the text of a client's settings, and remove them; recognise our calls."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from archivist.edges.install import jsonc
from archivist.errors import InputError

PROGRAM = "archivist"
_HOOKS = "hooks"
# The commands of our program that clients call.
_HOOK, _SERVER = "hook", "mcp"
# A shell operator, which ends a command; or a word, quoted or not.
_TOKEN = re.compile(
    r"""(?P<mark>[;&|<>()`\n]|\$\()|(?P<word>(?:"[^"]*"|'[^']*'|\$(?!\()|[^\s;&|<>()`"'$])+)|(?P<odd>\S)"""
)
_TOML_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*([^\]\n]*?)[ \t]*\]\]?[ \t]*(?:#.*)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# The program's options that take a value.
_WITH_VALUE = ("--bank", "--actor", "--set")


class Hook(NamedTuple):
    """One event that a client calls us for: the client's name of it, and the entry for it."""

    event: str
    entry: Mapping[str, Any]


class ProgramCall(NamedTuple):
    """A call of our program: its words after the program's own options."""

    words: tuple[str, ...]
    is_alone: bool
    """Whether the command does nothing else; otherwise a user wrote it around our call."""


def calls_in(handler: object) -> Iterator[ProgramCall]:
    """Yield the calls of our program in a handler or a server's entry."""
    commands, is_one = _commands(handler)
    for words in commands:
        at = _program_index(words)
        if at is None:
            continue
        start = at + 1
        while start < len(words) and words[start].startswith("-"):
            start += 2 if words[start] in _WITH_VALUE else 1
        before = [word for word in words[:at] if not _ASSIGNMENT.match(word)]
        is_alone = is_one and (not before or before[-1] == "-m")
        yield ProgramCall(tuple(words[start:]), is_alone)


def named_programs(text: str, where: str) -> list[tuple[str, str]]:
    """Return the program and the bank, if any, that each hook of ours in a file names."""
    hooks = jsonc.find(jsonc.parse(text, where), (_HOOKS,), where)
    found = []
    for entry in hooks.entries if hooks is not None else ():
        for _, handler in _iter_handlers(entry.node):
            for words in _commands(handler)[0]:
                at = _program_index(words)
                if at is not None:
                    bank = next((after for word, after in pairwise(words[at + 1 :]) if word == "--bank"), "")
                    found.append((words[at], bank))
    return found


def _commands(handler: object) -> tuple[list[list[str]], bool]:
    """Return the commands of a handler as words, and whether they are a single command."""
    if not isinstance(handler, Mapping):
        return [], True
    command, args = handler.get("command"), handler.get("args")
    if isinstance(command, list):
        return [[str(word) for word in command]], True
    if not isinstance(command, str):
        return [], True
    if isinstance(args, list):
        return [[command, *(str(word) for word in args)]], True
    commands: list[list[str]] = [[]]
    for token in _TOKEN.finditer(command.strip()):
        if token["word"] is not None:
            commands[-1].append(re.sub(r"[\"']", "", token["word"]))
        else:
            commands.append([])
    return commands, len(commands) == 1


def _program_index(words: Sequence[str]) -> int | None:
    names = (PurePosixPath(word.replace("\\", "/")).name.removesuffix(".exe") for word in words)
    return next((index for index, name in enumerate(names) if name == PROGRAM), None)


def add_hooks(text: str, hooks: Sequence[Hook], where: str) -> str:
    """Add the hooks that are missing, remove outdated ones of ours, and leave the rest.

    A user's command line that calls our hook among other things serves its event, and stays.
    """
    wanted = {hook.event: next(calls_in(_handlers_of(hook.entry)[0])) for hook in hooks}
    text = _remove_hooks(text, where, wanted, None)
    for hook in hooks:
        node = jsonc.find(jsonc.parse(text, where), (_HOOKS, hook.event), where)
        entries = node.to_plain() if node is not None else []
        if not isinstance(entries, list):
            raise InputError(f"{where}: an event of 'hooks' is not a list", hint=jsonc.CORRECT)
        if not any(
            _serves(call, hook.event, wanted)
            for entry in entries
            for handler in _handlers_of(entry)
            for call in calls_in(handler)
        ):
            text = jsonc.append(text, (_HOOKS, hook.event), hook.entry, where)
    return text


def remove_hooks(text: str, original: str | None, where: str) -> str:
    """Remove our hooks and what is empty then, except what the original text, if known, had."""
    return _remove_hooks(text, where, {}, original)


def add_server(text: str, path: tuple[str, str], server: Mapping[str, Any], where: str) -> str:
    """Add our server to a JSON text, unless it is there; refuse another server of that name."""
    node = jsonc.find(jsonc.parse(text, where), path, where)
    if node is None:
        return jsonc.put(text, path, server, where)
    _require_own_server(node.to_plain(), path, where)
    return text


def remove_server(text: str, original: str | None, path: tuple[str, str], where: str) -> str:
    """Remove our server from a JSON text, and the object around it when that is empty then."""
    node = jsonc.find(jsonc.parse(text, where), path, where)
    if node is None or not _is_server(node.to_plain()):
        return text
    return _remove_if_empty(jsonc.remove(text, path, where), path[:1], where, original)


def add_table(text: str, path: tuple[str, str], server: Mapping[str, object], where: str) -> str:
    """Add our server to a TOML text, unless it is there; refuse another server of that name."""
    known = _find_table(text, path, where)
    if known is not None:
        _require_own_server(known, path, where)
        return text
    import tomlkit

    table: dict[str, Any] = dict(server)
    for key in reversed(path):
        table = {key: table}
    newline = "\r\n" if "\r\n" in text else "\n"
    end = newline if text and not text.endswith("\n") else ""
    gap = newline if text else ""
    after = text + end + gap + tomlkit.dumps(table).replace("\n", newline)
    _check_edit(text, after, path, server, where)
    return after


def remove_table(text: str, path: tuple[str, str], where: str) -> str:
    """Remove our server's table and its subtables from a TOML text, with the blank line before it.

    Lines are removed: tomlkit would also remove the comments after the table, which may be about the next.
    """
    if not _is_server(_find_table(text, path, where)):
        return text
    kept: list[str] = []
    trailing: list[str] = []
    name, is_inside = ".".join(path), False
    for line in text.splitlines(keepends=True):
        if header := _TOML_HEADER.fullmatch(line.rstrip("\r\n")):
            header_name = re.sub(r"[ \t\"']", "", header.group(1))
            was_inside, is_inside = is_inside, f"{header_name}.".startswith(f"{name}.")
            if is_inside and not was_inside and kept and not kept[-1].strip():
                kept.pop()
            if not is_inside:
                kept += trailing
            trailing = []
        if not is_inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            # Kept if no key follows: then the comment is about the next table.
            trailing.append(line)
        else:
            trailing = []
    after = "".join(kept + trailing)
    _check_edit(text, after, path, None, where)
    return after


def _find_table(text: str, path: tuple[str, ...], where: str) -> object:
    """Return the value at a path, or None."""
    try:
        value: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: {error}", hint="correct or move the file, then try again") from None
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def _check_edit(
    before: str, after: str, path: tuple[str, ...], table: Mapping[str, object] | None, where: str
) -> None:
    """Refuse an edit that changed anything but the one table, which is None when it was removed."""
    wanted = tomllib.loads(before)
    *owners, last = path
    owner: Any = wanted
    for key in owners:
        inner = owner.get(key)
        owner[key] = inner if isinstance(inner, dict) else {}
        owner = owner[key]
    if table is None:
        owner.pop(last, None)
    else:
        owner[last] = dict(table)
    try:
        is_safe = _drop_empty_tables(tomllib.loads(after)) == _drop_empty_tables(wanted)
    except tomllib.TOMLDecodeError:
        is_safe = False
    if not is_safe:
        name = ".".join(path)
        raise InputError(
            f"{where}: {name} stands in a form that cannot be edited safely",
            hint=f"write [{name}] as a table of its own, or edit the file by hand",
        )


def _drop_empty_tables(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values without empty tables: a header without a key means nothing."""
    inner = {
        key: _drop_empty_tables(value) if isinstance(value, dict) else value for key, value in values.items()
    }
    return {key: value for key, value in inner.items() if value != {}}


def _is_server(entry: object) -> bool:
    return any(call.is_alone and call.words[:1] == (_SERVER,) for call in calls_in(entry))


def _require_own_server(entry: object, path: tuple[str, str], where: str) -> None:
    if not _is_server(entry):
        hint = "give that server another name, then try again"
        raise InputError(f"{where}: {'.'.join(path)!r} is another program's server", hint=hint)


def _remove_hooks(text: str, where: str, keep: Mapping[str, ProgramCall], original: str | None) -> str:
    """Remove our handlers one at a time, except those to keep, with the containers that are empty then."""
    while (path := _find_unwanted(text, where, keep)) is not None:
        text = jsonc.remove(text, path, where)
        while len(path) > 1:
            path = path[:-1]
            if path[-1] == _HOOKS and len(path) > 1:
                # A group without handlers does nothing, whatever its matcher.
                node = jsonc.find(jsonc.parse(text, where), path, where)
                if node is not None and not node.entries:
                    path = path[:-1]
                    text = jsonc.remove(text, path, where)
                continue
            text = _remove_if_empty(text, path, where, original)
    return text


def _find_unwanted(text: str, where: str, keep: Mapping[str, ProgramCall]) -> tuple[str | int, ...] | None:
    """Return the path of a handler of ours that is not to be kept; None when there is none left."""
    hooks = jsonc.find(jsonc.parse(text, where), (_HOOKS,), where)
    if hooks is None:
        return None
    if hooks.kind != "object":
        raise InputError(f"{where}: 'hooks' is not an object", hint=jsonc.CORRECT)
    for entry in hooks.entries:
        for path, handler in _iter_handlers(entry.node):
            for call in calls_in(handler):
                is_ours = call.is_alone and call.words[:1] == (_HOOK,)
                if is_ours and not _serves(call, entry.key, keep):
                    return (_HOOKS, entry.key, *path)
    return None


def _serves(call: ProgramCall, event: str, wanted: Mapping[str, ProgramCall]) -> bool:
    """Say whether a call is the one wanted for an event: with our name of it, the client's, or none."""
    if event not in wanted:
        return False
    name, client, moment = wanted[event].words
    return call.words[:2] == (name, client) and call.words[2:3] in ((), (moment,), (event,))


def _iter_handlers(event: jsonc.Node) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield each handler of an event and its path, the last first: in a group of handlers, or by itself."""
    for index, entry in reversed(list(enumerate(event.entries))):
        value = entry.node.to_plain()
        if not isinstance(value, dict):
            continue
        handlers = value.get(_HOOKS)
        if isinstance(handlers, list):
            for inner_index, handler in reversed(list(enumerate(handlers))):
                yield (index, _HOOKS, inner_index), handler
        else:
            yield (index,), value


def _handlers_of(entry: object) -> list[Any]:
    if not isinstance(entry, Mapping):
        return []
    handlers = entry.get(_HOOKS)
    return handlers if isinstance(handlers, list) else [entry]


def _remove_if_empty(text: str, path: Sequence[str | int], where: str, original: str | None) -> str:
    node = jsonc.find(jsonc.parse(text, where), path, where)
    if node is None or node.kind not in ("object", "list") or node.entries:
        return text
    was_there = original is not None and jsonc.find(jsonc.parse(original, where), path, where) is not None
    return text if was_there else jsonc.remove(text, path, where)
