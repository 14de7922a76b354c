"""Put our hooks and our server into a client's settings, and take them out: pure edits of a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from archivist.edges.install import jsonc
from archivist.errors import InputError

PROGRAM = "archivist"
_HOOKS = "hooks"


class Hook(NamedTuple):
    """One event that a client is to call us for: its name for it, and what it wants written there."""

    event: str
    entry: Mapping[str, Any]


def add_hooks(text: str, hooks: Sequence[Hook], where: str) -> str:
    """Add the hooks that are missing; what is ours and is no longer wanted goes, all else stays."""
    wanted = {hook.event: words_of(_handlers(hook.entry)[0]) for hook in hooks}
    text = _take_hooks(text, where, keep=wanted)
    root = jsonc.parse(text, where) if text.strip() else None
    for hook in hooks:
        known = jsonc.find(root, (_HOOKS, hook.event), where) if root else None
        if known is None or not any(_ours(entry) for entry in _listed(known, where)):
            text = jsonc.append(text, (_HOOKS, hook.event), hook.entry, where)
    return text


def take_hooks(text: str, where: str) -> str:
    """Take every hook out that is ours."""
    return _take_hooks(text, where, keep={})


def add_server(text: str, path: tuple[str, str], server: Mapping[str, Any], where: str) -> str:
    """Add our server; one that is ours and says more is left as it is, another's of that name is refused."""
    known = jsonc.find(jsonc.parse(text, where), path, where) if text.strip() else None
    if known is None:
        return jsonc.put(text, path, server, where)
    value = known.to_plain()
    if not is_server(value):
        raise InputError(
            f"{where}: {'.'.join(path)!r} is somebody else's",
            hint="give that server another name, then again",
        )
    if server.items() <= value.items():
        return text
    return jsonc.put(text, path, {**value, **server}, where)


def take_server(text: str, path: tuple[str, str], where: str) -> str:
    """Take our server out, and the object around it when nothing else is in it."""
    if not text.strip():
        return text
    known = jsonc.find(jsonc.parse(text, where), path, where)
    if known is None or not is_server(known.to_plain()):
        return text
    return _cut_empty(jsonc.cut(text, path, where), path[:1], where)


def is_server(entry: object) -> bool:
    """Say whether an entry starts our server."""
    words = words_of(entry)
    return (bool(words) and _is_program(words[0]) and "mcp" in words[1:]) or words[1:4] == (
        "-m",
        PROGRAM,
        "mcp",
    )


def words_of(handler: object) -> tuple[str, ...]:
    """Return the command of a handler as words, in whichever form it stands."""
    if not isinstance(handler, Mapping):
        return ()
    command, args = handler.get("command"), handler.get("args")
    if isinstance(command, list):
        return tuple(str(word) for word in command)
    if not isinstance(command, str):
        return ()
    return (command, *(str(word) for word in args)) if isinstance(args, list) else tuple(command.split())


def _take_hooks(text: str, where: str, keep: Mapping[str, tuple[str, ...]]) -> str:
    """Take our handlers out, one at a time from the end, but those that are to be kept."""
    while (path := _unwanted(text, where, keep)) is not None:
        text = jsonc.cut(text, path, where)
        while len(path) > 1:
            path = path[:-1]
            if path[-1] == _HOOKS and len(path) > 1:
                # A group of handlers is nothing without them, whatever it matches.
                node = jsonc.find(jsonc.parse(text, where), path, where)
                if node is not None and not node.entries:
                    path = path[:-1]
                    text = jsonc.cut(text, path, where)
                continue
            text = _cut_empty(text, path, where)
    return text


def _unwanted(text: str, where: str, keep: Mapping[str, tuple[str, ...]]) -> tuple[str | int, ...] | None:
    if not text.strip():
        return None
    hooks = jsonc.find(jsonc.parse(text, where), (_HOOKS,), where)
    if hooks is None:
        return None
    if hooks.kind != "object":
        raise InputError(f"{where}: 'hooks' is no object", hint="mend the file, then again")
    for entry in hooks.entries:
        for path, handler in _placed(entry.node):
            words = words_of(handler)
            if _is_hook(words) and keep.get(entry.key) != words:
                return (_HOOKS, entry.key, *path)
    return None


def _placed(event: jsonc.Node) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield each handler of an event and where it stands: in a group of handlers, or by itself."""
    for place, item in reversed(list(enumerate(event.entries))):
        value = item.node.to_plain()
        if not isinstance(value, dict):
            continue
        inner = value.get(_HOOKS)
        if isinstance(inner, list):
            yield from (((place, _HOOKS, at), each) for at, each in reversed(list(enumerate(inner))))
        else:
            yield (place,), value


def _listed(node: jsonc.Node, where: str) -> list[Any]:
    value = node.to_plain()
    if not isinstance(value, list):
        raise InputError(f"{where}: an event of 'hooks' is no list", hint="mend the file, then again")
    return value


def _ours(entry: object) -> bool:
    return any(_is_hook(words_of(handler)) for handler in _handlers(entry))


def _handlers(entry: object) -> list[Any]:
    if not isinstance(entry, Mapping):
        return []
    inner = entry.get(_HOOKS)
    return inner if isinstance(inner, list) else [entry]


def _is_hook(words: tuple[str, ...]) -> bool:
    if len(words) > 1 and _is_program(words[0]):
        return words[1] == "hook"
    return words[1:4] == ("-m", PROGRAM, "hook")


def _is_program(word: str) -> bool:
    return PurePosixPath(word.replace("\\", "/")).name.removesuffix(".exe") == PROGRAM


def _cut_empty(text: str, path: Sequence[str | int], where: str) -> str:
    node = jsonc.find(jsonc.parse(text, where), path, where)
    is_empty = node is not None and node.kind in ("object", "list") and not node.entries
    return jsonc.cut(text, path, where) if is_empty else text
