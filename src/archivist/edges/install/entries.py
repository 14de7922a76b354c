"""Add our hooks and our server to the text of a client's settings, and remove them; recognise our calls."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from archivist.edges.hook_events import SESSION_START
from archivist.edges.install import jsonc
from archivist.errors import InputError
from archivist.files.open import repository_above
from archivist.files.parse import parse_toml

PROGRAM = "archivist"
_EXECUTABLE = "archivist.exe" if sys.platform == "win32" else PROGRAM
OUR_PROGRAM = Path(sys.executable).with_name(_EXECUTABLE)
_HOOKS = "hooks"
# Each is removed by an edit of the whole text: 100 take a second.
_MOST_CALLS = 100
# The commands of our program that clients call.
HOOK, SERVER = "hook", "mcp"
# A shell operator, which ends a command; or a word, quoted or not. Only these blanks part words in a shell.
_TOKEN = re.compile(
    r"""(?P<mark>[;&|<>()`\n]|\$\()|(?P<word>(?:"[^"]*"|'[^']*'|\$(?!\()|[^ \t\n;&|<>()`"'$])+)|(?P<odd>\S)"""
)
# Our hook somewhere in a line, whatever calls it there.
_MENTION = re.compile(r"(?is)(?<![\w.\-])archivist(?:\.\w{1,3})?[\"']?\s.{0,200}?\bhook\b")
_TOML_HEADER = re.compile(r"(?m)^(?=[ \t]*\[[^\]\n]*\]\]?[ \t]*(?:#.*)?\r?$)")
# The line of OpenCode's plugin that calls us, with the program and what the user gave it before our words.
_PLUGIN_CALL = re.compile(
    r'(?m)^ {0,8}const child = spawn\("([^"\n]{1,4096})", \[((?:"[^"\n]{0,4096}", ){0,8})'
    r'"hook", "opencode", event\], \{$'
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# The program's options that take a value. A repository's settings could name a bank or an actor of theirs.
_WITH_VALUE = ("--bank", "--actor", "--set")
# Variables by which settings could choose the program, its home or whom it trusts.
_REDIRECTING = re.compile(r"(?i)(?:ARCHIVIST_|PYTHON|LD_|DYLD_|GIT_|XDG_|(?:PATH|HOME|USERPROFILE)(?:=|\Z))")


class Hook(NamedTuple):
    """One event that a client calls us for: the client's name of it, the words of the call, the entry."""

    event: str
    words: tuple[str, str, str]
    entry: Mapping[str, Any]


class ProgramCall(NamedTuple):
    """A call of our program: its words after the program's own options."""

    words: tuple[str, ...]
    is_alone: bool
    """Whether the command does nothing else; otherwise a user wrote it around our call."""
    is_redirected: bool = False
    """Whether it names a bank, an actor, settings, variables or a program that a repository could choose."""
    line: tuple[str, ...] = ()
    """The whole command, if it begins with the program and is all that runs."""


def calls_in(handler: object) -> Iterator[ProgramCall]:
    """Yield the calls of our program in a handler or a server's entry."""
    for words, at, is_only in _own_commands(handler):
        start = at + 1
        while start < len(words) and words[start].startswith("-"):
            start += 2 if words[start] in _WITH_VALUE else 1
        before = [word for word in words[:at] if not _ASSIGNMENT.match(word)]
        is_alone = is_only and (not before or before[-1] == "-m")
        # Python looks for a module in the project's folder first.
        is_of_user = before[-1:] != ["-m"] and is_own_program(words[at])
        fields = handler if isinstance(handler, Mapping) else {}
        # OpenCode calls it environment.
        given = fields.get("env") or fields.get("environment")
        variables = (*filter(_ASSIGNMENT.match, words[:at]), *(given if isinstance(given, Mapping) else ()))
        is_redirected = (
            not is_of_user
            or any(word.partition("=")[0] in _WITH_VALUE for word in words[at + 1 :])
            or any(map(_REDIRECTING.match, variables))
        )
        line = tuple(words) if is_only and at == 0 else ()
        yield ProgramCall(tuple(words[start:]), is_alone, is_redirected, line)


def is_own_program(word: str) -> bool:
    """Say whether a word names our program and no other: its bare name, or a file that no repository brings.

    What a shell or the kernel replaces (`$HOME`, `/proc/self/cwd`) leads to another file in each folder.
    """
    if word in (PROGRAM, _EXECUTABLE) or word == str(OUR_PROGRAM):
        return True
    path = Path(word)
    if not path.is_absolute() or path.parts[1:2] in (("proc",), ("dev",)):
        return False
    real = os.path.realpath(path)
    is_outside = all(repository_above(os.path.dirname(each)) is None for each in (path, real))  # noqa: PTH120
    try:
        # Another account's file is none that this user named.
        owner = os.stat(real).st_uid  # noqa: PTH116
    except OSError:
        return False
    return is_outside and os.path.isfile(real) and (sys.platform == "win32" or owner in (0, os.getuid()))  # noqa: PTH113


def named_programs(text: str, where: str) -> list[tuple[str, str]]:
    """Return the program and the bank, if any, that each hook of ours in a file names."""
    if where.endswith(".js"):
        found = _PLUGIN_CALL.finditer(text)
        calls = [[call[1], *re.findall(r'"([^"]{0,4096})"', call[2])] for call in found]
    else:
        handlers = (handler for _, _, handler in _read_handlers(text, where))
        calls = [words[at:] for handler in handlers for words, at, _ in _own_commands(handler)]
    banks = [[after for word, after in pairwise(words) if word == "--bank"] for words in calls]
    return [(words[0], (named or [""])[0]) for words, named in zip(calls, banks, strict=True)]


def keep_plugin_call(text: str, known: str) -> str:
    """Return the text of our plugin with the program and the options by which a known one calls us."""
    call = _PLUGIN_CALL.search(known.replace("\r\n", "\n"))
    return text if call is None else _PLUGIN_CALL.sub(lambda _: call[0], text, count=1)


def _own_commands(handler: object) -> Iterator[tuple[list[str], int, bool]]:
    """Yield the words of each command of a handler that calls us, where, and whether it is the only one."""
    fields = handler if isinstance(handler, Mapping) else {}
    command, args = fields.get("command"), fields.get("args")
    commands: list[list[str]] = [[]]
    if isinstance(command, list):
        commands = [[str(word) for word in command]]
    elif isinstance(command, str) and not isinstance(args, list):
        for token in _TOKEN.finditer(command.strip(" \t\n")):
            if token["word"] is not None:
                commands[-1].append(re.sub(r"[\"']", "", token["word"]))
            else:
                commands.append([])
    elif isinstance(command, str):
        commands = [[command, *(str(word) for word in args or ())]]
    for words in commands:
        names = [PurePosixPath(word.replace("\\", "/")).name.removesuffix(".exe") for word in words]
        if PROGRAM in names:
            yield words, names.index(PROGRAM), len(commands) == 1


def add_hooks(text: str, hooks: Sequence[Hook], where: str, *, is_user: bool) -> str:
    """Add the hooks that are missing, remove outdated ones of ours, and leave the rest.

    A user's command line that calls our hook among other things serves its event, and stays. In a project's
    file a redirected call serves nothing.
    """
    text = remove_hooks(text, None, where, keep=hooks, is_user=is_user)
    handlers = _read_handlers(text, where)
    for hook in hooks:
        calls = (call for event, _, handler in handlers if event == hook.event for call in calls_in(handler))
        if not any(_serves(call, hook, is_user=is_user) for call in calls):
            text = jsonc.append(text, (_HOOKS, hook.event), hook.entry, where)
    return text


def remove_hooks(
    text: str, original: str | None, where: str, *, keep: Sequence[Hook] = (), is_user: bool = False
) -> str:
    """Remove our hooks, except those to keep, and what is empty then, except what the original had."""
    handlers = _read_handlers(text, where)
    if sum(any(calls_in(handler)) for _, _, handler in handlers) > _MOST_CALLS:
        hint = "remove those that you did not write, then try again"
        raise InputError(f"{where} calls {PROGRAM} in more than {_MOST_CALLS} hooks", hint=hint)
    # The last first, so that the paths of the others stay right.
    for event, path, handler in reversed(handlers):
        hook = next((hook for hook in keep if hook.event == event), None)
        ours = [call for call in calls_in(handler) if call.is_alone and call.words[:1] == (HOOK,)]
        is_kept = all(hook is not None and _serves(call, hook, is_user=is_user) for call in ours)
        fields = handler if isinstance(handler, Mapping) else {}
        # The words of our hook were once installed apart from the program.
        if is_kept and not (fields.get("command") == PROGRAM and "args" in fields):
            continue
        text = jsonc.remove(text, path, where)
        group = jsonc.find(jsonc.parse(text, where), path[:4], where) if len(path) > 4 else None
        if group is not None and not group.entries:
            # A group without handlers does nothing, whatever its matcher.
            text = jsonc.remove(text, path[:3], where)
        for owner in (path[:2], path[:1]):
            text = _remove_if_empty(text, owner, where, original)
    return text


def add_server(
    text: str, path: tuple[str, str], server: Mapping[str, Any], where: str, *, is_user: bool
) -> str:
    """Add our server to a JSON or TOML text, unless it is there; refuse another server of that name."""
    known = _read_server(text, path, where)
    if known is not None:
        if not _is_server(known):
            hint = "give that server another name, then try again"
            raise InputError(f"{where}: {'.'.join(path)!r} is another program's server", hint=hint)
        if is_user or not _redirected_calls(known):
            return text
    if where.endswith(".toml"):
        return _add_table(text if known is None else _remove_table(text, path, where), path, server, where)
    return jsonc.put(text if known is None else jsonc.remove(text, path, where), path, server, where)


def remove_server(text: str, original: str | None, path: tuple[str, str], where: str) -> str:
    """Remove our server from a text, and in JSON the object around it when that is empty then."""
    if not _is_server(_read_server(text, path, where)):
        return text
    if where.endswith(".toml"):
        return _remove_table(text, path, where)
    return _remove_if_empty(jsonc.remove(text, path, where), path[:1], where, original)


def _read_server(text: str, path: tuple[str, str], where: str) -> object:
    """Return the server at a path of a JSON or TOML text, or None."""
    if where.endswith(".toml"):
        return _split_table(text, path, where)[1]
    node = jsonc.find(jsonc.parse(text, where), path, where) if path[0] else None
    return None if node is None else node.value


def _add_table(text: str, path: tuple[str, str], server: Mapping[str, Any], where: str) -> str:
    import tomlkit

    newline = "\r\n" if "\r\n" in text else "\n"
    end = newline if text and not text.endswith("\n") else ""
    gap = newline if text else ""
    table = tomlkit.dumps({path[0]: {path[1]: dict(server)}})
    after = text + end + gap + table.replace("\n", newline)
    _check_edit(text, after, path, dict(server), where)
    return after


def _remove_table(text: str, path: tuple[str, str], where: str) -> str:
    """Remove our server's table and its subtables from a TOML text, with the blank line before it.

    Lines are removed: tomlkit would also remove the comments after the table, which may be about the next.
    """
    kept, trailing, is_inside = "", "", False
    # Each part is a table: its header and the lines below.
    for part in _TOML_HEADER.split(text):
        name = re.sub(r"[\[\s\"']", "", part.partition("]")[0])
        if not f"{name}.".startswith(f"{'.'.join(path)}."):
            kept, trailing, is_inside = kept + trailing + part, "", False
            continue
        if not is_inside:
            kept = re.sub(r"(?m)^[ \t]*\r?\n\Z", "", kept)
        # Comments at its end are kept unless another table of ours follows: they are about the next.
        lines, trailing, is_inside = part.splitlines(keepends=True), "", True
        while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            trailing = lines.pop() + trailing
    after = kept + trailing
    _check_edit(text, after, path, None, where)
    return after


def _split_table(text: str, path: tuple[str, str], where: str) -> tuple[dict[str, Any], object]:
    """Return the values of a text without one table, and that table or None."""
    values = parse_toml(text, where)
    owner = values.get(path[0])
    table = owner.pop(path[1], None) if isinstance(owner, dict) else None
    # A header without a key means nothing.
    return {key: value for key, value in values.items() if value != {}}, table


def _check_edit(before: str, after: str, path: tuple[str, str], table: object, where: str) -> None:
    """Refuse an edit that changed anything but the one table, which is None when it was removed."""
    rest, _ = _split_table(before, path, where)
    with suppress(InputError):
        if _split_table(after, path, where) == (rest, table):
            return
    name = ".".join(path)
    raise InputError(
        f"{where}: {name} stands in a form that cannot be edited safely",
        hint=f"write [{name}] as a table of its own, or edit the file by hand",
    )


def find_calls(text: str, path: tuple[str, str], where: str) -> list[ProgramCall]:
    """Return the calls of our hook and server in a text."""
    if where.endswith(".js"):
        words = (HOOK, "opencode", SESSION_START)
        found = [(call[1], *re.findall(r'"([^"]*)"', call[2])) for call in _PLUGIN_CALL.finditer(text)]
        return [ProgramCall(words, is_alone=True, line=(*program, *words)) for program in found]
    handlers = [] if where.endswith(".toml") else _read_handlers(text, where)
    entries = (*(handler for _, _, handler in handlers), _read_server(text, path, where))
    return [call for entry in entries for call in _calls_of_ours(entry)]


def has_line_around(text: str, where: str) -> bool:
    """Say whether a hook in a text calls ours among other things, or in a way that is not understood."""
    for _, _, handler in _read_handlers(text, where):
        fields = handler if isinstance(handler, Mapping) else {}
        args = fields.get("args")
        words = [fields.get("command"), *(args if isinstance(args, list) else ())]
        is_known = any(call.is_alone or call.is_redirected for call in calls_in(handler))
        if not is_known and _MENTION.search(" ".join(map(str, words))):
            return True
    return False


def has_foreign_server(text: str, path: tuple[str, str], where: str) -> bool:
    """Say whether the server under our name in a text is another program's; a text in no form has none."""
    with suppress(InputError):
        entry = _read_server(text, path, where)
        return entry is not None and not _is_server(entry)
    return False


def _calls_of_ours(entry: object) -> list[ProgramCall]:
    return [call for call in calls_in(entry) if call.words[:1] in ((HOOK,), (SERVER,))]


def _redirected_calls(entry: object) -> list[ProgramCall]:
    return [call for call in _calls_of_ours(entry) if call.is_redirected]


def _is_server(entry: object) -> bool:
    return any(call.is_alone and call.words[:1] == (SERVER,) for call in calls_in(entry))


def _serves(call: ProgramCall, hook: Hook, *, is_user: bool) -> bool:
    """Say whether a call is a hook's: with our name of its event, the client's, or none."""
    name, client, moment = hook.words
    if not is_user and (call.is_redirected or len(call.words) > len(hook.words)):
        return False
    return call.words[:2] == (name, client) and call.words[2:3] in ((), (moment,), (hook.event,))


def _read_handlers(text: str, where: str) -> list[tuple[str, tuple[str | int, ...], object]]:
    """Return each handler with its event and path: in a group of handlers, or by itself."""
    hooks = jsonc.find(jsonc.parse(text, where), (_HOOKS,), where)
    if hooks is not None and not isinstance(hooks.value, dict):
        raise InputError(f"{where}: 'hooks' is not an object", hint=jsonc.CORRECT)
    found: list[tuple[str, tuple[str | int, ...], object]] = []
    for event, entries in hooks.value.items() if hooks is not None else ():
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            path, inner = (_HOOKS, event, index), entry.get(_HOOKS) if isinstance(entry, dict) else None
            if isinstance(inner, list):
                found += [(event, (*path, _HOOKS, at), handler) for at, handler in enumerate(inner)]
            else:
                found.append((event, path, entry))
    return found


def _remove_if_empty(text: str, path: Sequence[str | int], where: str, original: str | None) -> str:
    node = jsonc.find(jsonc.parse(text, where), path, where)
    if node is None or node.value not in ({}, []):
        return text
    was_there = original is not None and jsonc.find(jsonc.parse(original, where), path, where) is not None
    return text if was_there else jsonc.remove(text, path, where)
